//! Lives and quarantines.
//!
//! # Discontinuities
//!
//! The registry's state might be older than what the registry has answered if
//!
//! - the server's system identifier, its timeline or the registry's tables are not the recorded ones, or
//! - a renewal knows a life above the fleet's, or
//! - a renewal of the fleet's life finds that its row is absent, of an earlier life, or has a lower count.
//!
//! If the registry is reverted without a new timeline, it notices this at the next renewal of any grant that it has
//! renewed since then, which takes one heartbeat. The newest `seen` of its rows cannot show this sooner. Between two
//! heartbeats, it is as old in a registry that has lost nothing, and a new server knows no newer one.
//!
//! The registry then begins a new life and two quarantines. It changes no row, because a higher bound in a row would revive a holder
//! that has expired.
//!
//! The quarantine of the ring lasts longer than every lease. The quarantine of the spare worker IDs lasts longer than the lease of a
//! spare worker ID, which is at most [`crate::fleet::SPARE_LEASE`]. As a result, no server loses its worker ID in a
//! failover, or in several failovers in a row. While the spare worker IDs are in quarantine, each timeline grants those
//! of its own *slice*, which earlier timelines did not grant.

use super::super::{Point, Source};
use super::{Moment, Registry};

impl Registry {
    /// Returns true during a quarantine, which includes one margin after its end.
    pub fn in_quarantine(&self, now: Point) -> bool {
        self.fleet.quarantine_until > Point::ZERO && !self.end_of_quarantine().passed(now)
    }

    pub(super) fn end_of_quarantine(&self) -> Point {
        self.fleet.quarantine_until.plus(self.scale().margin())
    }

    pub(super) fn end_of_spare_quarantine(&self) -> Point {
        self.fleet.spare_until.plus(self.scale().margin())
    }

    /// Begins a new life if the registry does not run on the server, the timeline and the tables that were recorded.
    pub(super) fn compare_source(&mut self, moment: &Moment) {
        if moment.source != self.fleet.source {
            self.begin_life(moment.now, moment.source);
        }
    }

    /// Begins a new life and the two quarantines. The source is the recorded one if a renewal has shown a loss.
    pub(super) fn begin_life(&mut self, now: Point, source: Source) {
        let quarantined = self.in_quarantine(now);
        let newest_seen = self.rows.values().map(|row| row.seen).max().unwrap_or(Point::ZERO);
        // The answers that were lost came from a clock that can be one margin behind the newest time in the state. For
        // this reason, a quarantine may have granted what was lost until one margin after its end.
        let margins = self.scale().margin().twice();
        let over = |until: Point| until == Point::ZERO || until.plus(margins).passed(newest_seen);
        let (stale, calm) = (!over(self.fleet.quarantine_until), over(self.fleet.spare_until));
        // A renewal may have begun a life on the old timeline that was lost. After the spare quarantine of that life,
        // the common spare worker IDs may have been granted. If clocks differ by one margin, this takes at least this
        // long.
        let late = newest_seen.plus(self.scale().near()).passed(now.plus(self.scale().margin()));
        let (far, near) = (now.plus(self.scale().far()), now.plus(self.scale().near()));
        let fleet = &mut self.fleet;
        let old = core::mem::replace(&mut fleet.source, source);
        // Only the timelines show how much may have been lost.
        let timelines = if source.system == old.system { source.timeline.saturating_sub(old.timeline) } else { 0 };
        let followed = timelines > 0 && source.tables == old.tables;
        // A timeline that was lost has also used a life. If that number were used again, renewals of that life would
        // look like renewals of this one.
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
