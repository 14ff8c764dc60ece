//! Determines how far ahead of the clock words are reserved, and when the reservation is extended.

use crate::{Limits, Nanos};

/// The shortest window. Under load, a server extends the mark once in each half of the window, so it flushes WAL twice
/// a second.
pub const MIN_WINDOW: Nanos = 1_000_000_000;

/// The longest window. It limits how far ahead of the clock a server can begin after a crash. It also limits how long a
/// server that is cut off from its synchronous standby continues to issue IDs.
pub const MAX_WINDOW: Nanos = 10_000_000_000;

/// The words that a mark covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The first word that is not covered. It is at most the word after the layout's last word.
    pub ceiling: u64,
    /// The word at which the reservation should be extended. It is in the middle of the window.
    pub renew: u64,
}

impl Reservation {
    /// Creates the reservation for one window at generator time `now`. The reservation covers all words below `needed`
    /// and the words of one more tick. If a burst has run ahead of the clock, the window begins at the time of
    /// `needed`, so that the burst gets a whole window.
    pub fn new(limits: &Limits, now: Nanos, needed: u64, window: Nanos) -> Reservation {
        let from = now.max(limits.time(needed));
        let window = window.max(2 * limits.tick().nanos());
        let word = |at: Nanos| limits.word_at(at).unwrap_or(0);
        // If ticks begin at a random sequence number, the next draw can begin anywhere in its tick.
        let spared = needed.saturating_add(limits.capacity());
        let ceiling = word(from.saturating_add(window)).max(spared).min(limits.last_word() + 1);
        Reservation { ceiling, renew: word(from.saturating_add(window / 2)) }
    }
}

/// Returns the length of the next window. Under load, the window is halved. The window is doubled if the server notices
/// late that half of it has been used, because few IDs are drawn. It is always long enough for the next extension to
/// end in its first quarter. `late` is the time from the tick of the word `renew` to the extension. `took` is the
/// duration of the last extension.
pub fn next_window(window: Nanos, late: Nanos, took: Nanos) -> Nanos {
    let wanted = match window {
        0 => MIN_WINDOW,
        _ if late > window / 10 => 2 * window,
        _ => window / 2,
    };
    wanted.max(took.saturating_mul(4)).clamp(MIN_WINDOW, MAX_WINDOW)
}
