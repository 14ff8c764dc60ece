//! Determines when the registrar looks up tags whose existence is unknown to this server. Any role that can draw
//! numbers can request any number of tags, so these lookups must not delay the requests for blocks.

use std::time::{Duration, Instant};

/// The average pause before the next lookup after a tag that did not exist.
const INTERVAL: Duration = Duration::from_millis(50);

/// The number of nonexistent tags that the registrar looks up without a pause, for example when the periods of many
/// series begin.
const BURST: u32 = 100;

/// After this many consecutive requests for blocks, a waiting tag is looked up.
const PASSED: u32 = 8;

/// The order in which tags are looked up.
#[derive(Default)]
pub struct Newcomers {
    /// The time at which all pauses will have ended.
    paid: Option<Instant>,
    /// The number of block requests that have taken precedence since a tag was last looked up.
    passed: u32,
}

impl Newcomers {
    /// Returns how long the registrar must wait before it looks up another tag.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        let unpaid = self.paid?.saturating_duration_since(now).saturating_sub(INTERVAL * BURST);
        (!unpaid.is_zero()).then_some(unpaid)
    }

    /// Chooses between a slot that needs a block and a slot whose tag must be looked up.
    pub fn choose(&mut self, block: Option<usize>, newcomer: Option<usize>) -> Option<usize> {
        let is_turn = block.is_none() || self.passed >= PASSED;
        let chosen = newcomer.filter(|_| is_turn).or(block);
        self.passed = if chosen == newcomer { 0 } else { self.passed + 1 };
        chosen
    }

    /// Records that a tag did not exist.
    pub fn note_unknown(&mut self, now: Instant) {
        self.paid = Some(self.paid.map_or(now, |paid| paid.max(now)) + INTERVAL);
    }
}
