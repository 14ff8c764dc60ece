//! The plain values in a segment's slot.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use flake::Nanos;
use flake::segment_refill::{Fetched, Reason};
use pgrx::PGRXSharedMemory;

use crate::pg::text_arg::ascii;

/// The maximum length of a tag, in bytes of UTF-8. The registry has the same limit.
pub const MAX_TAG: usize = 200;

/// The maximum length of a tag in any database encoding, in bytes. No character is more than four times as long as in
/// UTF-8. A longer string, which could be a gigabyte in size, must not be copied.
pub const MAX_ENCODED: usize = 4 * MAX_TAG;

/// The prefix of tags that belong to a period of a series. The registry refuses a tag that has this prefix but does not
/// name a period of a series.
pub const PERIOD: &[u8] = b"series ";

const WORDS: usize = MAX_TAG / size_of::<u64>();

/// A tag in UTF-8. The slots' lock protects it.
#[derive(Default)]
pub struct SharedTag {
    length: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl SharedTag {
    /// Stores a tag of at most [`MAX_TAG`] bytes.
    pub fn set(&self, tag: &str) {
        for (word, stored) in words(tag).zip(&self.words) {
            stored.store(word, Ordering::Relaxed);
        }
        self.length.store(tag.len().min(MAX_TAG) as u64, Ordering::Relaxed);
    }

    /// Returns true if the stored tag is equal to `tag`.
    pub fn is(&self, tag: &str) -> bool {
        self.length.load(Ordering::Relaxed) == tag.len() as u64
            && words(tag).zip(&self.words).all(|(word, stored)| stored.load(Ordering::Relaxed) == word)
    }

    /// Returns the stored tag.
    pub fn get(&self) -> String {
        let bytes = self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
        let bytes: Vec<u8> = bytes.take(self.length.load(Ordering::Relaxed) as usize).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Returns the bytes of a tag as words.
fn words(tag: &str) -> impl Iterator<Item = u64> {
    tag.as_bytes().chunks(size_of::<u64>()).map(|bytes| {
        let mut word = [0; size_of::<u64>()];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    })
}

/// The values with which the tag of a series' period is created if the registry does not have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodTag {
    /// When the period begins, in microseconds since the Unix epoch.
    pub begins: i64,
    /// The first number.
    pub start: i64,
    /// The lengths of the shortest and the longest block.
    pub lengths: (u64, u64),
}

/// A session's request for the tag of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub period: PeriodTag,
    /// True if the session may create the tag.
    pub creates: bool,
}

impl Asked {
    /// Returns the period if the session may create its tag.
    pub fn created(asked: Option<&Asked>) -> Option<&PeriodTag> {
        asked.filter(|asked| asked.creates).map(|asked| &asked.period)
    }
}

/// The period to which a slot's tag belongs, if it is the tag of a series. The period is set when the slot is assigned
/// to the tag.
pub struct OfPeriod {
    begins: AtomicI64,
    start: AtomicI64,
    lengths: (AtomicU64, AtomicU64),
}

/// The value of `begins` if there is no period. No period begins at this time.
const NEVER: i64 = i64::MIN;

impl Default for OfPeriod {
    fn default() -> OfPeriod {
        let lengths = (AtomicU64::default(), AtomicU64::default());
        OfPeriod { begins: AtomicI64::new(NEVER), start: AtomicI64::default(), lengths }
    }
}

impl OfPeriod {
    /// Stores a period, or the fact that there is none.
    pub fn set(&self, period: Option<&PeriodTag>) {
        let Some(period) = period else { return self.begins.store(NEVER, Ordering::Release) };
        self.start.store(period.start, Ordering::Relaxed);
        self.lengths.0.store(period.lengths.0, Ordering::Relaxed);
        self.lengths.1.store(period.lengths.1, Ordering::Relaxed);
        self.begins.store(period.begins, Ordering::Release);
    }

    /// Returns the period.
    pub fn get(&self) -> Option<PeriodTag> {
        let begins = self.begins.load(Ordering::Acquire);
        let lengths = (self.lengths.0.load(Ordering::Relaxed), self.lengths.1.load(Ordering::Relaxed));
        (begins != NEVER).then(|| PeriodTag { begins, start: self.start.load(Ordering::Relaxed), lengths })
    }
}

/// The registrar's statistics for a slot's tag.
#[derive(Default)]
pub struct TagFacts {
    pub generation: AtomicU64,
    /// The last number of the highest block.
    pub highest: AtomicU64,
    /// How many numbers have been added to the segment since the slot was assigned to its tag.
    pub given: AtomicU64,
    /// The length of the last block.
    pub step: AtomicU64,
    /// How many times a block was fetched, and how many times a session had to wait for one.
    pub fetches: AtomicU64,
    pub waits: AtomicU64,
    /// When the last block and the previous one were fetched, on the monotonic clock, and how many numbers had been
    /// drawn by then.
    pub last_fetch: AtomicU64,
    pub last_drawn: AtomicU64,
    pub fetch_before: AtomicU64,
    pub drawn_before: AtomicU64,
}

impl TagFacts {
    /// Returns how long ago the last block was fetched, if a block has been fetched.
    pub fn lasted(&self, now: Nanos) -> Option<Nanos> {
        let last = self.last_fetch.load(Ordering::Relaxed);
        (last != 0).then(|| now.saturating_sub(last))
    }

    /// Records that a block was added to the segment, after `drawn` numbers had been drawn.
    pub fn note(&self, fetched: &Fetched, now: Nanos, drawn: u64) {
        let count = fetched.block.length;
        self.generation.store(fetched.rest.generation, Ordering::Relaxed);
        self.highest.fetch_max(fetched.rest.last as u64, Ordering::Relaxed);
        self.given.fetch_add(count, Ordering::Relaxed);
        self.step.store(count, Ordering::Relaxed);
        self.fetches.fetch_add(1, Ordering::Relaxed);
        if !fetched.replaces {
            self.fetch_before.store(self.last_fetch.load(Ordering::Relaxed), Ordering::Relaxed);
            self.drawn_before.store(self.last_drawn.load(Ordering::Relaxed), Ordering::Relaxed);
            self.last_drawn.store(drawn, Ordering::Relaxed);
        }
        self.last_fetch.store(now, Ordering::Relaxed);
    }

    /// Resets all values to 0 for a different tag.
    pub fn reset(&self) {
        let all = [&self.generation, &self.highest, &self.given, &self.step, &self.fetches, &self.waits];
        let times = [&self.last_fetch, &self.last_drawn, &self.fetch_before, &self.drawn_before];
        all.into_iter().chain(times).for_each(|fact| fact.store(0, Ordering::Relaxed));
    }
}

/// The registry's last refusal for a tag. Only the registrar writes it.
#[derive(Default)]
pub struct Refusal {
    reason: AtomicU32,
    /// When the refusal ends, in microseconds since the Unix epoch.
    until: AtomicU64,
}

impl Refusal {
    /// Returns the reason for the refusal, and when the refusal ends.
    pub fn get(&self) -> Option<(Reason, i64)> {
        let reason = Reason::of(self.reason.load(Ordering::Acquire))?;
        Some((reason, self.until.load(Ordering::Relaxed) as i64))
    }

    /// Stores a refusal.
    pub fn set(&self, reason: Reason, until: i64) {
        self.until.store(until as u64, Ordering::Relaxed);
        self.reason.store(reason as u32, Ordering::Release);
    }

    /// Clears the refusal.
    pub fn clear(&self) {
        self.reason.store(0, Ordering::Release);
    }
}

/// The maximum length of a text about the registry, in bytes.
const TEXT: usize = 400;

/// The current problem with the registry. The slots' lock protects it.
#[derive(Clone, Copy)]
pub struct Failing {
    /// When the first failed request was sent, in microseconds since the Unix epoch.
    pub since: i64,
    /// How many requests have failed since then.
    pub failures: u64,
    cause: [u8; TEXT],
    hint: [u8; TEXT],
}

// SAFETY: the type consists of plain numbers.
#[allow(unsafe_code)]
unsafe impl PGRXSharedMemory for Failing {}

impl Default for Failing {
    fn default() -> Failing {
        Failing { since: 0, failures: 0, cause: [0; TEXT], hint: [0; TEXT] }
    }
}

impl Failing {
    /// Returns a problem with its cause and a hint. Every user can read both.
    pub fn new(since: i64, failures: u64, cause: &str, hint: &str) -> Failing {
        Failing { since, failures, cause: bytes(cause), hint: bytes(hint) }
    }

    /// Returns why the last request failed.
    pub fn cause(&self) -> String {
        text(&self.cause)
    }

    /// Returns a hint about how to resolve the cause.
    pub fn hint(&self) -> String {
        text(&self.hint)
    }
}

fn bytes(text: &str) -> [u8; TEXT] {
    let mut bytes = [0; TEXT];
    for (byte, character) in bytes.iter_mut().zip(ascii(text).bytes()) {
        *byte = character;
    }
    bytes
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}
