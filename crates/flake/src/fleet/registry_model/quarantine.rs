//! Lives and quarantines.
//!
//! # Discontinuities
//!
//! The registry's state might be older than its answers if
//!
//! - the server's system identifier, its timeline or the registry's tables differ from the recorded ones, or
//! - a renewal contains a higher life than the fleet's, or
//! - a renewal contains the fleet's life, but its row is missing, is from an earlier life, or has a lower count.
//!
//! If the registry is reverted to an earlier state without a new timeline, it detects this at the next renewal of any
//! grant that it had renewed since then. This takes one heartbeat. The newest `seen` in its rows does not reveal the
//! loss sooner. Between two heartbeats, this value is just as old in a registry that has lost nothing, and a new server
//! does not provide a newer one.
//!
//! The registry then begins a new life and two quarantines. It does not change any rows, because a higher bound in a
//! row would revive a holder whose grant has expired.
//!
//! The quarantine of the ring lasts longer than any lease. The quarantine of the spare worker IDs lasts longer than the
//! lease of a spare worker ID, which is at most [`crate::fleet::SPARE_LEASE`]. As a result, no server loses its worker
//! ID in a failover, or in several failovers in a row. While the spare worker IDs are in quarantine, each timeline
//! grants those of its own *slice*, which earlier timelines did not grant.

use crate::fleet::Point;

use super::{Moment, Registry, RegistryRow, Source};

impl Registry {
    /// Returns true during a quarantine and for one margin after its end.
    pub fn in_quarantine(&self, now: Point) -> bool {
        self.fleet.quarantine_until > Point::ZERO && !self.end_of_quarantine().passed(now)
    }

    pub(super) fn end_of_quarantine(&self) -> Point {
        self.fleet.quarantine_until.plus(self.scale().margin())
    }

    pub(super) fn end_of_spare_quarantine(&self) -> Point {
        self.fleet.spare_until.plus(self.scale().margin())
    }

    /// Begins a new life if the registry's server, timeline or tables differ from the recorded ones.
    pub(super) fn compare_source(&mut self, moment: &Moment) {
        if moment.source != self.fleet.source {
            self.begin_life(moment.now, moment.source);
        }
    }

    /// Begins a new life and the two quarantines. If a renewal has shown a loss, `source` is the recorded source.
    pub(super) fn begin_life(&mut self, now: Point, source: Source) {
        let quarantined = self.in_quarantine(now);
        // A time in the future is from a clock that was ahead. The registry grants nothing while it is more than one lease and
        // one margin ahead of the servers, so the renewal can be that old.
        let limit = now.plus(self.scale().margin());
        let seen = |row: &RegistryRow| if limit.passed(row.seen) { now.minus(self.scale().far()) } else { row.seen };
        let newest_seen = self.rows.values().map(seen).max().unwrap_or(Point::ZERO);
        // The clock that gave the times in the lost answers may have been up to one margin behind the newest time in the state.
        // The lost answers may therefore date from a quarantine if the newest time is less than one margin after its
        // end.
        let margins = self.scale().margin().twice();
        let over = |until: Point| until == Point::ZERO || until.plus(margins).passed(newest_seen);
        let (stale, calm) = (!over(self.fleet.quarantine_until), over(self.fleet.spare_until));
        // A life that a renewal has begun may have been lost. After the spare quarantine of that life, the common spare
        // worker IDs may have been granted. Even if the clocks differ by one margin, this takes at least this long.
        let late = newest_seen.plus(self.scale().near()).passed(now.plus(self.scale().margin()));
        let (far, near) = (now.plus(self.scale().far()), now.plus(self.scale().near()));
        let fleet = &mut self.fleet;
        let old = core::mem::replace(&mut fleet.source, source);
        // Only the timelines show how much may have been lost.
        let timelines = if source.system == old.system { source.timeline.saturating_sub(old.timeline) } else { 0 };
        let followed = timelines > 0 && source.tables == old.tables;
        // Each lost timeline has also used up a life. If that life's number were used again, renewals from the lost
        // life would look like renewals from the new life.
        fleet.life += u64::from(timelines).max(1);
        if !quarantined {
            fleet.quarantine_before = fleet.quarantine_until;
        }
        if calm {
            fleet.settled = Some(old.timeline);
            fleet.newest_seen = newest_seen;
            fleet.spare_before = fleet.spare_until;
        }
        if !followed {
            fleet.settled = None;
        }
        fleet.quarantine_until = fleet.quarantine_until.max(far);
        fleet.spare_until = fleet.spare_until.max(near);
        // A life that begins within a quarantine is also stale, because no call was seen two margins after the end of
        // that quarantine.
        fleet.spare_closed = !followed || timelines > 1 || stale || late;
    }
}
