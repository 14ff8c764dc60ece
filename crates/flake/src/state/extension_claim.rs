//! Claims, which determine which caller extends the reservation.

use super::State;
use crate::pending::LONGEST_PAUSE;
use crate::sync::Ordering;
use crate::{MIN_WINDOW, Nanos};

/// The time after which a claim expires. Claims must expire because the process that holds a claim may be suspended or
/// waiting for a disk.
const CLAIM: Nanos = 100_000_000;

/// The duration of a claim for an extension in advance: half of the shortest window. Other callers do not need an
/// extension during this time.
const RENEWAL: Nanos = MIN_WINDOW / 2;

/// The longest time until a claim can expire. A claim that expires later than this was made before the monotonic clock
/// went backward. The limit is twice as long as any claim, because a caller may have read the clock before another
/// caller made its claim.
const LONGEST_CLAIM: Nanos = 2 * RENEWAL;

/// The right to extend the reservation, until the claim expires.
#[derive(Debug)]
pub struct Claim(Nanos);

impl State {
    /// Claims the right to extend the reservation. The claim expires after 100 ms or, if the extension is in advance,
    /// after half of [`MIN_WINDOW`]. Returns `None` if another caller holds a claim. `now` is the time of the monotonic
    /// clock.
    pub fn claim(&self, now: Nanos, in_advance: bool) -> Option<Claim> {
        let claimed_until = &self.extension.claimed_until;
        let until = claimed_until.load(Ordering::Relaxed);
        let ends = now + if in_advance { RENEWAL } else { CLAIM };
        let over = until <= now || until > now + LONGEST_CLAIM;
        // Relaxed: claims only limit how many callers extend the reservation at the same time. It is safe if several
        // callers do so.
        let taken = over && claimed_until.compare_exchange(until, ends, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        taken.then_some(Claim(ends))
    }

    /// Extends the claim to cover a pause that begins at `now`. Returns false if the claim has expired and another
    /// caller has made one.
    pub fn keep(&self, claim: &mut Claim, now: Nanos, pause: Nanos) -> bool {
        let ends = now + pause + CLAIM;
        let kept = self.extension.claimed_until.compare_exchange(claim.0, ends, Ordering::Relaxed, Ordering::Relaxed);
        if kept.is_ok() {
            claim.0 = ends;
        }
        kept.is_ok()
    }

    /// Releases the claim unless it has expired.
    pub fn release(&self, claim: &Claim) {
        let _ = self.extension.claimed_until.compare_exchange(claim.0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Makes callers that extend in advance skip the check of the pending mark for the duration `pause`.
    pub fn postpone(&self, now: Nanos, pause: Nanos) {
        self.extension.look_at.store(now + pause, Ordering::Relaxed);
    }

    /// Returns true while callers that extend in advance must skip the check of the pending mark.
    pub fn postponed(&self, now: Nanos) -> bool {
        let look_at = self.extension.look_at.load(Ordering::Relaxed);
        // If the time is further ahead, it was stored before the monotonic clock went backward.
        now < look_at && look_at <= now + 2 * LONGEST_PAUSE
    }
}
