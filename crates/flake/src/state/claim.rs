//! Which caller extends the reservation.

use super::State;
use crate::pending::LONGEST_PAUSE;
use crate::sync::Ordering;
use crate::{MIN_WINDOW, Nanos};

/// The duration after which a claim to extend the reservation ends by itself. It has to end because its holder may be stopped or
/// may be waiting for a disk.
const CLAIM: Nanos = 100_000_000;

/// The duration of a claim in advance: half of the shortest window, in which the other callers need no extension.
const RENEWAL: Nanos = MIN_WINDOW / 2;

/// The longest time from now until the end of a claim. A claim that ends later was taken before the monotonic clock went back.
/// The limit is twice as long as any claim, because a caller may have read the clock before another caller took a claim.
const LONGEST_CLAIM: Nanos = 2 * RENEWAL;

/// The right to extend the reservation until the claim ends by itself.
#[derive(Debug)]
pub struct Claim(Nanos);

impl State {
    /// Takes the right to extend the reservation for 100 ms, or for half of [`MIN_WINDOW`] if the extension is in advance. Returns
    /// `None` if another caller has the right. `now` is the time of the monotonic clock.
    pub fn claim(&self, now: Nanos, in_advance: bool) -> Option<Claim> {
        let claimed_until = &self.extension.claimed_until;
        let until = claimed_until.load(Ordering::Relaxed);
        let ends = now + if in_advance { RENEWAL } else { CLAIM };
        let over = until <= now || until > now + LONGEST_CLAIM;
        // Relaxed: claims limit how many callers extend the reservation at once, but several callers may do so.
        let taken = over && claimed_until.compare_exchange(until, ends, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        taken.then_some(Claim(ends))
    }

    /// Keeps a claim during a pause that begins at `now`. Returns false if the claim has ended and another caller has the right.
    pub fn keep(&self, claim: &mut Claim, now: Nanos, pause: Nanos) -> bool {
        let ends = now + pause + CLAIM;
        let kept = self.extension.claimed_until.compare_exchange(claim.0, ends, Ordering::Relaxed, Ordering::Relaxed);
        if kept.is_ok() {
            claim.0 = ends;
        }
        kept.is_ok()
    }

    /// Releases the claim, unless it has ended by itself.
    pub fn release(&self, claim: &Claim) {
        let _ = self.extension.claimed_until.compare_exchange(claim.0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Makes callers that extend in advance skip the check of the pending mark for the time `pause`.
    pub fn postpone(&self, now: Nanos, pause: Nanos) {
        self.extension.look_at.store(now + pause, Ordering::Relaxed);
    }

    /// Returns true while callers that extend in advance must not check the pending mark.
    pub fn postponed(&self, now: Nanos) -> bool {
        let look_at = self.extension.look_at.load(Ordering::Relaxed);
        // A time that is too far ahead was stored before the monotonic clock went back.
        now < look_at && look_at <= now + 2 * LONGEST_PAUSE
    }
}
