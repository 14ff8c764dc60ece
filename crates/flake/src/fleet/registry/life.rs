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
//! A registry that is put back without a new timeline therefore notices this at the next renewal of any grant that it has renewed since,
//! which takes one heartbeat. The newest `seen` of its rows cannot show this sooner, because between two heartbeats it is as old in a
//! registry that has lost nothing, and a new server knows no newer one.
//!
//! The registry then begins a new life and two quarantines. It changes no row, because a higher bound in a row would revive a holder
//! that has expired.
//!
//! The quarantine of the ring lasts longer than every lease. The quarantine of the spare worker IDs lasts longer than the lease of a
//! spare worker ID, which is at most [`crate::fleet::SPARE_LEASE`]. A failover therefore costs nobody a worker ID, and several failovers in
//! a row cost nobody one either: while the spare worker IDs are in quarantine, each timeline grants those of its own *slice*, which the
//! timelines before it did not grant.

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

    /// Begins a new life if the registry runs on another server, timeline or tables than the recorded ones.
    pub(super) fn compare_source(&mut self, moment: &Moment) {
        if moment.source != self.fleet.source {
            self.begin_life(moment.now, moment.source);
        }
    }

    /// Begins a new life and the two quarantines. The source is the recorded one if a renewal has told of a loss.
    pub(super) fn begin_life(&mut self, now: Point, source: Source) {
        let quarantined = self.in_quarantine(now);
        let newest_seen = self.rows.values().map(|row| row.seen).max().unwrap_or(Point::ZERO);
        // What was lost was answered by a clock that can be one margin behind the newest one that the state shows. Up to its end and
        // one more margin, a quarantine can therefore have granted what was lost.
        let margins = self.scale().margin().twice();
        let over = |until: Point| until == Point::ZERO || until.plus(margins).passed(newest_seen);
        let (stale, calm) = (!over(self.fleet.quarantine_until), over(self.fleet.spare_until));
        // A renewal can have begun a life on the old timeline, which was lost. After its spare quarantine, the common spare worker IDs
        // were granted. By clocks that differ by one margin, this takes at least this long.
        let late = newest_seen.plus(self.scale().near()).passed(now.plus(self.scale().margin()));
        let (far, near) = (now.plus(self.scale().far()), now.plus(self.scale().near()));
        let fleet = &mut self.fleet;
        let old = core::mem::replace(&mut fleet.source, source);
        // Only the timelines show how much can be lost.
        let timelines = if source.system == old.system { source.timeline.saturating_sub(old.timeline) } else { 0 };
        let followed = timelines > 0 && source.tables == old.tables;
        // A timeline that was lost has used a life, too. Otherwise, its renewals would look like renewals of this life.
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
        // A life that begins within a quarantine is stale, too: no call was seen two margins after its end.
        fleet.spare_closed = !followed || timelines > 1 || stale || late;
    }
}
