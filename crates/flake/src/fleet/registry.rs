//! The registry's decisions.

use std::collections::BTreeMap;

use crate::{IdFormat, Node};

use super::{
    Answer, Call, Claim, Cursor, FIRST_GRANT, Fleet, Loss, MAX_LEASE, MIN_LEASE, Point, Refusal, Renew, Request, Ring,
    Row, Scale, Source, Uuid,
};

/// What the registry's server adds to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The registry's wall clock.
    pub now: Point,
    /// The server that runs the registry.
    pub source: Source,
    /// A new nonce. Only `hello` uses it.
    pub nonce: Uuid,
}

/// A registry: its records, and the decisions that depend only on the records, the call and the [`Moment`].
///
/// # Discontinuities
///
/// The registry's state might be older than what the registry has answered if
///
/// - the server's system identifier or timeline is not the recorded one, or
/// - a renewal knows a life above the fleet's, or
/// - a renewal of the fleet's life finds that its row is absent, of an earlier life, or has a lower count.
///
/// The registry then begins a new life and a quarantine. It changes no row, because a higher bound in a row would revive a holder
/// that has expired. The spare worker IDs are closed unless it is certain that no spare worker ID was granted in the lost part: the
/// system identifier is the same and the timeline is exactly one above, no renewal has reported the loss, no quarantine was going
/// on, and the state shows a call after the end of the previous quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    /// The record about the fleet.
    pub fleet: Fleet,
    /// The record of every worker ID that was ever granted.
    pub rows: BTreeMap<Node, Row>,
    /// The positions in the rings of the datacenters, by datacenter ID. A datacenter without a position begins at the default.
    pub cursors: BTreeMap<u32, Cursor>,
}

impl Registry {
    /// Returns the registry of a new fleet.
    pub const fn new(id: Uuid, format: IdFormat, source: Source) -> Registry {
        let fleet = Fleet {
            id,
            format,
            life: 1,
            source,
            quarantine_until: Point::ZERO,
            quarantine_before: Point::ZERO,
            newest_seen: Point::ZERO,
            floor: Point::ZERO,
            spare_closed: false,
        };
        Registry { fleet, rows: BTreeMap::new(), cursors: BTreeMap::new() }
    }

    /// Returns the answer to a call, and stores what the answer promises. The fleet, the layout, the
    /// ranges of the numbers and the lease are checked first. A call in which one of them is wrong changes nothing.
    pub fn call(&mut self, moment: &Moment, call: &Call) -> Answer {
        if let Some(refusal) = self.refusal(call) {
            return Answer::Refused(refusal);
        }
        self.compare_source(moment);
        match &call.request {
            Request::Hello { .. } => Answer::Hello { fleet: self.fleet.id, life: self.fleet.life, nonce: moment.nonce },
            Request::Claim(claim) => self.claim(moment.now, claim).unwrap_or_else(Answer::Refused),
            Request::Renew(renew) => self.renew(moment.now, renew),
        }
    }

    /// Ends a quarantine, on the word of the administrator that nothing was lost since the quarantine began. The floor is then the
    /// end of the quarantine before. Returns false if no quarantine has ended: because there was none, or because the floor of a
    /// change of the layout has not passed.
    pub fn open(&mut self, moment: &Moment) -> bool {
        self.compare_source(moment);
        if !self.in_quarantine(moment.now) {
            return false;
        }
        self.fleet.quarantine_until = self.fleet.quarantine_before;
        self.fleet.spare_closed = false;
        !self.in_quarantine(moment.now)
    }

    /// Changes the layout or the epoch of the fleet, and begins a new life. `moment.now` is a point of the previous layout. Returns
    /// the new floor: no ID below this number is granted with the new layout. Claims are refused until the floor and one margin have
    /// passed by clocks of the new layout, which can take long if the new layout's IDs are lower.
    pub fn change_layout(&mut self, moment: &Moment, format: IdFormat) -> Point {
        self.compare_source(moment);
        let fleet = &self.fleet;
        let granted = self.rows.values().map(|row| row.bound).max().unwrap_or(Point::ZERO);
        // Grants that were lost are below the end of the quarantine.
        let top = granted.max(fleet.quarantine_until).max(fleet.floor);
        let (old, new) = (self.scale(), Scale::new(format));
        let floor = new.tick_above(top);
        // These points stand for times of the registry's clock. No other code compares a point with one of another layout.
        let convert = |point| if point == Point::ZERO { point } else { new.point(old.time(point) as i64) };
        self.fleet = Fleet {
            format,
            life: fleet.life + 1,
            quarantine_until: convert(fleet.quarantine_until),
            quarantine_before: convert(fleet.quarantine_before),
            newest_seen: convert(fleet.newest_seen),
            floor,
            ..*fleet
        };
        // Worker IDs and bounds of the previous layout mean nothing in the new one. The floor replaces all of them.
        self.rows.clear();
        self.cursors.clear();
        floor
    }

    /// Returns true during a quarantine, which includes one margin after its end.
    pub fn in_quarantine(&self, now: Point) -> bool {
        self.fleet.quarantine_until > Point::ZERO && !self.end_of_quarantine().passed(now)
    }

    /// Returns the scale of the fleet's points.
    pub const fn scale(&self) -> Scale {
        Scale::new(self.fleet.format)
    }

    fn end_of_quarantine(&self) -> Point {
        self.fleet.quarantine_until.plus(self.scale().margin())
    }

    fn refusal(&self, call: &Call) -> Option<Refusal> {
        if call.fleet.is_some_and(|fleet| fleet != self.fleet.id) {
            return Some(Refusal::ForeignFleet);
        }
        if call.format != self.fleet.format {
            return Some(Refusal::Layout);
        }
        let (datacenter, worker, lease) = match call.request {
            Request::Hello { .. } => return None,
            Request::Claim(claim) => (claim.datacenter, 0, claim.lease),
            Request::Renew(renew) => (renew.datacenter, renew.worker, renew.lease),
        };
        if call.format.layout.stamp(Node { datacenter, worker }).is_err() {
            return Some(Refusal::Range);
        }
        (lease < MIN_LEASE || lease > MAX_LEASE).then_some(Refusal::Lease)
    }

    /// Begins a new life if another server runs the registry than the recorded one.
    fn compare_source(&mut self, moment: &Moment) {
        let (old, new) = (self.fleet.source, moment.source);
        if new != old {
            let successor = new.system == old.system && Some(new.timeline) == old.timeline.checked_add(1);
            self.begin_life(moment.now, !successor);
            self.fleet.source = new;
        }
    }

    /// Begins a new life and a quarantine. `missed` is true if the registry might have missed a life.
    fn begin_life(&mut self, now: Point, missed: bool) {
        let quarantined = self.in_quarantine(now);
        let newest_seen = self.rows.values().map(|row| row.seen).max().unwrap_or(Point::ZERO);
        // Without a call after the previous quarantine, the state can be from within it, and spare worker IDs were granted then.
        let stale = self.fleet.quarantine_until > Point::ZERO && !self.end_of_quarantine().passed(newest_seen);
        let far = now.plus(self.scale().far());
        let fleet = &mut self.fleet;
        if !quarantined {
            fleet.quarantine_before = fleet.quarantine_until;
        }
        fleet.life += 1;
        fleet.quarantine_until = fleet.quarantine_until.max(far);
        fleet.newest_seen = newest_seen;
        fleet.spare_closed = missed || quarantined || stale;
    }

    fn claim(&mut self, now: Point, claim: &Claim) -> Result<Answer, Refusal> {
        if let Some((node, row)) = self.claimed(claim) {
            return Ok(answer(node, row));
        }
        if claim.life != self.fleet.life {
            return Err(Refusal::Life);
        }
        let spare = self.in_quarantine(now);
        let refusal = if spare { Refusal::Quarantine { until: self.end_of_quarantine() } } else { Refusal::Full };
        if spare && self.fleet.spare_closed {
            return Err(refusal);
        }
        let ring = Ring::of(&self.fleet.format.layout);
        let cursor = self.cursors.get(&claim.datacenter).copied().unwrap_or_default();
        let (begin, end, next) = match spare {
            false => (0, ring.spare, cursor.ring),
            true => (ring.spare, ring.end, ring.spare + cursor.spare),
        };
        let quarantine = if spare { self.fleet.quarantine_before } else { self.fleet.quarantine_until };
        let floor = quarantine.max(self.fleet.floor);
        // Without this check, a claim in a wide field would look at every worker ID.
        let first = self.above(floor);
        if !first.passed(now.min(claim.clock)) {
            return Err(if spare || first.passed(now) { refusal } else { Refusal::Quarantine { until: first } });
        }
        let free = |worker: &u32| self.start(now, claim, *worker, floor, spare).is_some();
        let worker = (next..end).chain(begin..next).find(free).ok_or(refusal)?;
        let node = Node { datacenter: claim.datacenter, worker };
        let row = Row {
            holder: claim.holder,
            nonce: claim.nonce,
            count: self.rows.get(&node).map_or(0, |row| row.count) + 1,
            life: self.fleet.life,
            start: self.start(now, claim, worker, floor, spare).ok_or(refusal)?,
            bound: now.plus(self.scale().span(FIRST_GRANT)),
            seen: now,
        };
        self.rows.insert(node, row);
        let cursor = self.cursors.entry(claim.datacenter).or_default();
        let position = if worker + 1 == end { 0 } else { worker + 1 - begin };
        *(if spare { &mut cursor.spare } else { &mut cursor.ring }) = position;
        Ok(answer(node, &row))
    }

    /// Returns the row of a claim that is repeated because its answer was lost.
    fn claimed(&self, claim: &Claim) -> Option<(Node, &Row)> {
        let node = |worker| Node { datacenter: claim.datacenter, worker };
        let mut rows = self.rows.range(node(0)..=node(u32::MAX));
        rows.find(|(_, row)| row.nonce == claim.nonce && row.holder == claim.holder).map(|(node, row)| (*node, row))
    }

    /// Returns the start of a new grant of a worker ID, or `None` if the worker ID cannot be granted now.
    fn start(&self, now: Point, claim: &Claim, worker: u32, floor: Point, spare: bool) -> Option<Point> {
        let row = self.rows.get(&Node { datacenter: claim.datacenter, worker });
        let margin = self.scale().margin();
        let bound = row.map_or(Point::ZERO, |row| row.bound);
        let start = self.above(bound.max(floor));
        // A holder that renewed late in the lost part was seen by a clock that can be one margin behind this one.
        let renewed = spare && row.is_some() && !bound.plus(margin.twice()).passed(self.fleet.newest_seen);
        (start.passed(now) && start.passed(claim.clock) && !renewed).then_some(start)
    }

    /// Returns the lowest start above a point, which is 0 if nothing was granted or lost.
    const fn above(&self, point: Point) -> Point {
        if point.id() == 0 { point } else { point.plus(self.scale().margin()) }
    }

    fn renew(&mut self, now: Point, renew: &Renew) -> Answer {
        let node = Node { datacenter: renew.datacenter, worker: renew.worker };
        let row = self.rows.get(&node).copied();
        if renew.start < self.fleet.floor {
            // The layout was changed and changed back since this grant began. In between, other servers were granted the IDs above
            // the grant's bound.
            return Answer::Lost(Loss::GivenAway);
        }
        if self.knows_more(renew, row.as_ref()) {
            self.begin_life(now, true);
        }
        let life = self.fleet.life;
        let scale = self.scale();
        let margin = scale.margin();
        let own = row.filter(|row| row.holder == renew.holder);
        let matching = own.filter(|row| row.nonce == renew.nonce || row.nonce == renew.next_nonce);
        let adopted = row.is_none_or(|row| match row.holder == renew.holder {
            true => row.count < renew.count || (row.life < life && row.count == renew.count),
            false => row.life < life && row.bound.plus(margin) <= renew.start,
        });
        if matching.is_none() && !adopted {
            return own.map_or(Answer::Lost(Loss::GivenAway), |row| Answer::Conflict { seen: row.seen });
        }
        // The lost part of the state can contain another server's claim of this worker ID if the bound and one margin have passed by
        // an earlier clock of the registry. That clock can be one margin ahead of this one, so the margin is already used up. The
        // bound of another holder's row says nothing about this grant.
        let expired = match row {
            Some(row) if row.life == life => row.bound.max(renew.bound).plus(margin),
            _ => own.map_or(Point::ZERO, |row| row.bound).max(renew.bound),
        };
        if expired.passed(now) {
            return Answer::Lost(Loss::Expired);
        }
        let lease = scale.span(renew.lease);
        let wanted = renew.clock.plus(lease).min(now.plus(lease).plus(margin));
        let repeated = matching.filter(|row| row.nonce == renew.next_nonce);
        let counted = row.map_or(0, |row| row.count);
        let row = Row {
            holder: renew.holder,
            nonce: renew.next_nonce,
            count: repeated.map_or_else(|| counted.max(renew.count) + 1, |row| row.count),
            life,
            start: matching.map_or(renew.start, |row| row.start),
            bound: row.map_or(Point::ZERO, |row| row.bound).max(renew.bound).max(wanted),
            seen: now,
        };
        self.rows.insert(node, row);
        Answer::Renewed { nonce: row.nonce, count: row.count, life, bound: row.bound }
    }

    /// Returns true if a renewal shows that the registry has lost something. The life of the renewal decides: of an earlier life,
    /// the loss is known already.
    fn knows_more(&self, renew: &Renew, row: Option<&Row>) -> bool {
        let life = self.fleet.life;
        let newer = |row: &Row| row.life < life || row.count < renew.count;
        renew.life > life || (renew.life == life && row.is_none_or(newer))
    }
}

fn answer(node: Node, row: &Row) -> Answer {
    Answer::Claimed {
        worker: node.worker,
        nonce: row.nonce,
        count: row.count,
        life: row.life,
        start: row.start,
        bound: row.bound,
    }
}
