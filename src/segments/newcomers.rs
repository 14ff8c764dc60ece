//! When the registrar looks up tags of which this server does not know whether they exist. Any role that can draw numbers can ask for
//! any number of tags, so these requests must not delay those for blocks.

use std::time::{Duration, Instant};

/// How long the registrar looks up no other tag after one that did not exist, on average.
const INTERVAL: Duration = Duration::from_millis(50);

/// How many tags that did not exist the registrar looks up without a pause, for example when the periods of many series begin.
const BURST: u32 = 100;

/// After how many requests for blocks in a row a tag is looked up that waits.
const PASSED: u32 = 8;

/// The order in which tags are looked up.
#[derive(Default)]
pub struct Newcomers {
    /// When all pauses will have been made.
    paid: Option<Instant>,
    /// How many requests for blocks came first since a tag was looked up.
    passed: u32,
}

impl Newcomers {
    /// Returns how long no tag must be looked up.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        let unpaid = self.paid?.saturating_duration_since(now).saturating_sub(INTERVAL * BURST);
        (!unpaid.is_zero()).then_some(unpaid)
    }

    /// Chooses between the slot that wants a block and the one whose tag is to be looked up.
    pub fn choose(&mut self, block: Option<usize>, newcomer: Option<usize>) -> Option<usize> {
        let is_turn = block.is_none() || self.passed >= PASSED;
        let chosen = newcomer.filter(|_| is_turn).or(block);
        self.passed = if chosen == newcomer { 0 } else { self.passed + 1 };
        chosen
    }

    /// Notes that a tag did not exist.
    pub fn note_unknown(&mut self, now: Instant) {
        self.paid = Some(self.paid.map_or(now, |paid| paid.max(now)) + INTERVAL);
    }
}
