//! The contents of the view `snowflake_segments`.

use std::sync::atomic::Ordering;

use flake::Nanos;
use flake::segment_refill::Reason;

use crate::segments::slots::{self as slots, Phase, Slot};
use crate::server::clock;

/// The state of one segment on this server.
pub struct Shown {
    /// The tag in UTF-8.
    pub tag: String,
    pub state: &'static str,
    pub generation: Option<u64>,
    /// The next number that will be drawn, if there is one.
    pub next: Option<i64>,
    /// How many numbers remain.
    pub left: u64,
    /// The recent rate at which numbers have been drawn, per second.
    pub rate: f64,
    /// The length of the last block.
    pub step: u64,
    pub fetches: u64,
    pub waits: u64,
    /// Why the last request did not return a block.
    pub problem: Option<String>,
}

/// Returns the state of this server's segments.
pub fn all() -> impl Iterator<Item = Shown> {
    let failing = if slots::all().is_empty() { None } else { slots::failing() };
    let now = clock::monotonic();
    slots::all().iter().filter_map(move |slot| {
        let (tag, phase, ..) = slot.read();
        let refused = slot.refusal.get().map(|(reason, _)| reason);
        let problem = match refused {
            Some(Reason::Unknown) => Some("the segment does not exist".into()),
            Some(Reason::Wait) => Some("the segment has issued too many numbers in a short time".into()),
            Some(Reason::Exhausted) => Some("the segment has issued its last number".into()),
            Some(Reason::NotBegun) => Some("the period has not begun".into()),
            Some(Reason::Locked) => Some("another session has locked the segment in the registry".into()),
            Some(Reason::NotCreated) => Some("the registry has raised an error instead of creating the segment".into()),
            Some(Reason::Encoding) => Some("the registry's database cannot store the tag".into()),
            None => failing.filter(|_| slot.is_wanted()).map(|failing| failing.cause()),
        };
        let state = match phase {
            Phase::Free => return None,
            Phase::Asked => "waiting",
            Phase::Refused if matches!(refused, Some(Reason::Locked | Reason::NotCreated | Reason::Encoding)) => {
                "failing"
            }
            Phase::Refused => "refused",
            Phase::Leaving => "leaving",
            Phase::Open if problem.is_some() => "failing",
            Phase::Open => "drawing",
        };
        let facts = &slot.facts;
        let fact = |fact: &std::sync::atomic::AtomicU64| fact.load(Ordering::Relaxed);
        let left = slot.segment.left();
        let open = phase == Phase::Open;
        let next = if left.current.count > 0 { left.current } else { left.next };
        Some(Shown {
            tag,
            state,
            generation: Some(fact(&facts.generation)).filter(|generation| *generation != 0),
            next: (open && next.count > 0).then_some(next.first),
            left: if open { left.count() } else { 0 },
            rate: if open { rate(slot, now) } else { 0.0 },
            step: fact(&facts.step),
            fetches: fact(&facts.fetches),
            waits: fact(&facts.waits),
            problem,
        })
    })
}

/// Returns how many numbers per second have been drawn since the block before the last one was fetched.
fn rate(slot: &Slot, now: Nanos) -> f64 {
    let facts = &slot.facts;
    let (mut since, mut before) =
        (facts.fetch_before.load(Ordering::Relaxed), facts.drawn_before.load(Ordering::Relaxed));
    if since == 0 {
        (since, before) = (facts.last_fetch.load(Ordering::Relaxed), facts.last_drawn.load(Ordering::Relaxed));
    }
    match now.saturating_sub(since) {
        0 => 0.0,
        time => slot.drawn().saturating_sub(before) as f64 * 1e9 / time as f64,
    }
}
