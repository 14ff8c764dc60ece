//! A breadth-first search. Of the schedules that fail, it finds one with the fewest steps.
//!
//! A crate would not be shorter: Stateright contains a web server that cannot be switched off, and needs a third version of hashbrown.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::bounds::Bounds;
use crate::faults::FleetFault;
use crate::state::SearchState;
use crate::step::Step;

/// What a search has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The number of different states.
    pub states: usize,
    /// The number of steps after which the search has ended.
    pub depth: usize,
}

/// A schedule that fails, and how far the search had come.
#[derive(Debug)]
pub struct FailedSchedule {
    pub schedule: Vec<Step>,
    pub extent: Extent,
}

/// The step that has led to a state, and the state before it.
struct Link {
    step: Step,
    before: usize,
}

const BEGIN: usize = usize::MAX;

/// A state is known by its hash. Of ten million states, two have the same hash of 64 bits with a probability of one in 300,000.
fn hash(state: &SearchState) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

fn schedule(links: &[Link], mut last: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    while last != BEGIN {
        steps.push(links[last].step);
        last = links[last].before;
    }
    steps.reverse();
    steps
}

/// Looks at every state that can be reached with at most `depth` steps. Returns the first schedule that fails, if any.
pub fn search(fault: FleetFault, bounds: &Bounds, depth: usize) -> Result<Extent, FailedSchedule> {
    let alike = bounds.alike();
    let begin = SearchState::new(fault, bounds);
    let mut seen = HashSet::from([hash(&begin)]);
    let mut links: Vec<Link> = Vec::new();
    let mut reached = vec![(begin, BEGIN)];
    for steps in 1..=depth {
        let mut next = Vec::new();
        for (state, before) in reached {
            for step in bounds.steps() {
                if !state.can(step, bounds, alike) {
                    continue;
                }
                let after = state.after(step);
                if !seen.insert(hash(&after)) {
                    continue;
                }
                let failed = after.failure().is_some();
                // The states after the last step are the most, and nothing comes after them.
                if failed || steps < depth {
                    links.push(Link { step, before });
                }
                if failed {
                    let extent = Extent { states: seen.len(), depth: steps };
                    return Err(FailedSchedule { schedule: schedule(&links, links.len() - 1), extent });
                }
                if steps < depth {
                    next.push((after, links.len() - 1));
                }
            }
        }
        reached = next;
    }
    Ok(Extent { states: seen.len(), depth })
}
