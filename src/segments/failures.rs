//! Records and reports failed requests while the registry does not issue blocks, and determines when the registrar
//! retries.

use std::time::{Duration, Instant};

use crate::fleet::grant;
use crate::message::registry::Trouble;
use crate::message::segment;
use crate::segments::facts::Failing;
use crate::segments::slots::{self as slots, Slot};

/// The pause after the first failed request, and the longest pause.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// The requests that have failed since the last answer.
#[derive(Default)]
pub struct Failures {
    failing: Option<(Failing, Trouble)>,
    retry: Option<Instant>,
}

impl Failures {
    /// Returns how long the registrar must wait before it sends the next request.
    pub fn pause(&self, now: Instant) -> Option<Duration> {
        self.retry.filter(|retry| now < *retry).map(|retry| retry - now)
    }

    /// Ends the pause.
    pub fn retry_now(&mut self) {
        self.retry = None;
    }

    /// Records that a request was answered.
    pub fn succeeded(&mut self) {
        if let Some(failures) = self.forget() {
            segment::recovered(failures);
        }
    }

    /// Makes the next session that needs a block wait for an answer. Returns how many requests have failed.
    pub fn forget(&mut self) -> Option<u64> {
        self.retry = None;
        let (failing, _) = self.failing.take()?;
        slots::set_failing(&Failing::default());
        Some(failing.failures)
    }

    /// Records that a request failed, and notifies all waiting sessions.
    pub fn failed(&mut self, trouble: Trouble, slot: &Slot) {
        let report = trouble.report();
        let (since, failures) = match &self.failing {
            Some((failing, _)) => (failing.since, failing.failures + 1),
            None => (grant::now(), 1),
        };
        if self.failing.as_ref().is_none_or(|(_, logged)| !logged.is_like(&trouble)) {
            segment::failed(&trouble);
        }
        let failing = Failing::new(since, failures, &report.message, &report.hint);
        slots::set_failing(&failing);
        self.failing = Some((failing, trouble));
        let pause = PAUSE.0.saturating_mul(1 << (failures - 1).min(10)).min(PAUSE.1);
        self.retry = Some(Instant::now() + pause);
        slot.note_unanswered();
        slots::all().iter().filter(|other| other.is_wanted()).for_each(Slot::note_unanswered);
        slots::freed().wake_all();
    }
}
