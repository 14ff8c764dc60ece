//! Rules taken away, one at a time. The code under test has no switch: a fault changes what goes into it or what comes out of it.

use std::time::Duration;

use flake::fleet::{
    Call, Grant, Loss, Member, MemberIdentity, Moment, Point, Record, Registry, RegistryAnswer, RegistryRefusal,
    RegistryRequest, RegistryRow, RenewRequest, Ring, SPARE_LEASE, Uuid,
};
use flake::{IdFormat, Mark, Node, Stamp};

use crate::earlier;
use crate::server::ServerProcess;
use crate::world::FORGER;

/// The rule that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetFault {
    None,
    // Claims.
    /// A worker ID is granted as soon as its bound has passed, without a margin.
    ClaimMargin,
    /// A worker ID is granted although its start has not passed by the server's clock.
    ClaimClock,
    /// Worker IDs of the ring begin above their row's bound, and not above the last quarantine.
    RingFloor,
    /// Spare worker IDs begin above their row's bound, and not above the quarantine before.
    SparesFloor,
    /// Spare worker IDs are granted even if their holder might have renewed in the lost part.
    SpareSeen,
    /// Spare worker IDs are granted with one margin instead of two.
    SpareMargin,
    /// The first grant is a whole lease.
    FirstLease,
    /// A repeated claim gets another worker ID.
    ClaimRepeated,
    // Renewals.
    /// A renewal whose answer was lost is taken for one of a copy.
    Repeated,
    /// A holder is renewed after its bound and one margin have passed.
    Expired,
    /// A holder is renewed until its bound and one margin have passed by its own clock, too.
    ExpiredByBoth,
    /// A holder is renewed although another one has the worker ID.
    GivenAway,
    /// A copy is renewed.
    Copied,
    /// The first renewal in a new life has a margin.
    FirstMargin,
    /// The bound follows the server's clock without limit.
    Wanted,
    /// A renewal that was left in a proxy is taken for one of a copy.
    AdoptLower,
    /// A renewal whose row is lost gets no bound.
    AdoptAbsent,
    /// A later holder gets no bound if its claim is lost.
    AdoptLater,
    /// Any holder replaces an older row.
    AdoptAny,
    /// A renewal can name any start.
    ForgedStart,
    /// A renewal can name any bound.
    ForgedBound,
    // Reservations.
    /// A reservation ends.
    Reserved,
    /// The owner does not reserve again what a failover has lost.
    ReservedOnce,
    /// A renewal can name any count, and a claim answers it.
    ForgedCount,
    // Discontinuities.
    /// Another host of the registry begins no life.
    Source,
    /// Restored tables begin no life.
    Tables,
    /// The spare slice stays open although the tables were restored.
    TablesOpen,
    /// What a renewal tells is ignored.
    Told,
    /// A new life without a quarantine.
    Quarantine,
    /// A quarantine is as long as one short lease.
    Far,
    /// A quarantine can end earlier than the one before.
    Earlier,
    /// The bounds of holders that might live are raised to the end of the quarantine.
    Raised,
    /// The spare slice stays open although the timeline is not the next one.
    Jump,
    /// `open` returns to before a quarantine that has ended, if nobody was seen since.
    Before,
    /// The spare slice stays open although a renewal told.
    ToldOpen,
    /// The spare slice stays open although the state can be from within a quarantine.
    Stale,
    /// The spare slice stays open although a life of the old timeline can have been lost.
    Late,
    /// An administrator's word ends all quarantines.
    OpenAll,
    /// A new layout has no floor.
    LayoutFloor,
    /// The floor of a new layout is above the rows, and not above the quarantine.
    LayoutQuarantine,
    /// A grant of a layout is renewed after the layout was changed and changed back.
    LayoutBack,
    // Spare worker IDs.
    /// A spare worker ID has the lease that its holder asks for.
    SpareLease,
    /// The quarantine of the spare worker IDs is as long as a first grant.
    Near,
    /// The common spare worker IDs begin above their row's bound, and not above their quarantine.
    NearFloor,
    /// All timelines have one slice.
    SliceFixed,
    /// A slice is open however many timelines have begun since the settled one.
    SliceWindow,
    /// A timeline counts as settled although what was granted before it can live.
    Calm,
    /// A timeline counts as settled one margin earlier.
    CalmMargin,
    /// The quarantine counts as over one margin earlier.
    StaleMargin,
    /// The holders of a slice are compared with the current life, and not with the settled one.
    SliceSeen,
    /// A slice is used after the quarantine of the spare worker IDs, too.
    SliceLater,
    /// The settled timeline stays although a renewal told.
    ToldSettled,
    /// The settled timeline stays although the system is another one.
    SystemSettled,
    /// The settled timeline stays although the tables were restored.
    TablesSettled,
    /// After the upgrade of a registry, the spare worker IDs are in quarantine as if their leases had been short.
    UpgradeNear,
    /// After the upgrade of a registry, the earlier lives count as settled.
    UpgradeSettled,
    /// After the upgrade of a registry, the common spare worker IDs stay open, which were in the ring before.
    UpgradeOpen,
    /// The upgrade of a registry does not notice that another host runs it.
    UpgradeUnnoticed,
    /// A lost timeline has used no life.
    OneLife,
    /// The holder of a spare worker ID keeps it.
    Stay,
    // The server.
    /// A renewal is repeated with another nonce.
    PendingChanged,
    /// The nonce of a renewal is stored after the answer.
    PendingNotStored,
    /// The bound does not limit what is issued.
    Bound,
    /// The start of the grant is ignored.
    Start,
    /// The witness does not know what was issued.
    Used,
    /// The witness is copied together with the disk.
    WitnessOnDisk,
}

fn span_above(registry: &Registry, point: Point) -> Point {
    point.plus(registry.scale().margin())
}

/// Answers a call, with the fault.
pub fn call(fault: FleetFault, registry: &mut Registry, moment: &Moment, call: &Call) -> RegistryAnswer {
    let old_rules = earlier::is_earlier(registry);
    if fault == FleetFault::None && !old_rules {
        return registry.call(moment, call);
    }
    if fault == FleetFault::Source {
        registry.fleet.source = moment.source;
    }
    if fault == FleetFault::Tables {
        registry.fleet.source.tables = moment.source.tables;
    }
    // A hello first notices another host, so that the rest of the call is within one life.
    let hello = Call { request: RegistryRequest::Hello { serial: 0 }, ..*call };
    let newest_seen = registry.rows.values().map(|row| row.seen).max().unwrap_or(Point::ZERO);
    let life = registry.fleet.life;
    live(fault, registry, moment.now, true, |registry| registry.call(moment, &hello));
    if old_rules && registry.fleet.life > life {
        registry.fleet.newest_seen = newest_seen;
    }
    match call.request {
        RegistryRequest::Hello { .. } => registry.call(moment, call),
        RegistryRequest::Claim(request) if old_rules => earlier::claim(registry, moment.now, &request),
        RegistryRequest::Claim(_) => claim(fault, registry, moment, call),
        RegistryRequest::Renew(renew) => {
            let told = fault == FleetFault::Told;
            let renew =
                if told { RenewRequest { life: renew.life.min(registry.fleet.life - 1), ..renew } } else { renew };
            let call = Call { request: RegistryRequest::Renew(renew), ..*call };
            live(fault, registry, moment.now, false, |registry| self::renew(fault, registry, moment, &call, renew))
        }
    }
}

/// Makes a call that can begin a new life, and changes what the new life has stored.
fn live<T>(
    fault: FleetFault,
    registry: &mut Registry,
    now: Point,
    moved: bool,
    call: impl Fn(&mut Registry) -> T,
) -> T {
    let old = registry.fleet;
    let newest_seen = registry.rows.values().map(|row| row.seen).max().unwrap_or(Point::ZERO);
    let answer = call(registry);
    let scale = registry.scale();
    let fleet = &mut registry.fleet;
    if fleet.life == old.life {
        return answer;
    }
    let margin = scale.margin();
    let over = |until: Point, margins| until == Point::ZERO || until.plus(margins).passed(newest_seen);
    let stale = !over(old.quarantine_until, if fault == FleetFault::StaleMargin { margin } else { margin.twice() });
    let calm = over(old.spare_until, if fault == FleetFault::CalmMargin { margin } else { margin.twice() });
    let late = moved && newest_seen.plus(scale.near()).passed(now.plus(margin));
    let restored = fleet.source.tables != old.source.tables;
    let same = fleet.source.system == old.source.system && (!restored || fault == FleetFault::TablesOpen);
    let repeated = restored && fleet.source.timeline == old.source.timeline;
    let successor = same && (repeated || fleet.source.timeline == old.source.timeline + 1);
    let next = same && fleet.source.timeline > old.source.timeline;
    let missed = if moved { !successor && fault != FleetFault::Jump } else { fault != FleetFault::ToldOpen };
    fleet.spare_closed = missed || (stale && fault != FleetFault::Stale) || (late && fault != FleetFault::Late);
    match fault {
        FleetFault::Quarantine => fleet.quarantine_until = old.quarantine_until,
        FleetFault::OneLife if moved => fleet.life = old.life + 1,
        FleetFault::Near => fleet.spare_until = old.spare_until.max(now.plus(margin.twice())),
        FleetFault::Calm | FleetFault::CalmMargin if moved && (calm || fault == FleetFault::Calm) && next => {
            fleet.settled = Some(old.source.timeline);
            fleet.newest_seen = newest_seen;
            fleet.spare_before = old.spare_until;
        }
        FleetFault::SliceSeen => fleet.newest_seen = newest_seen,
        FleetFault::ToldSettled if !moved => fleet.settled = old.settled,
        FleetFault::SystemSettled if moved && fleet.settled.is_none() => {
            fleet.settled = fleet.source.timeline.checked_sub(1);
        }
        FleetFault::TablesSettled if restored && fleet.source.system == old.source.system => {
            fleet.settled = if calm { Some(old.source.timeline) } else { old.settled };
        }
        FleetFault::Before if stale => fleet.quarantine_before = old.quarantine_before,
        FleetFault::Raised => {
            let end = fleet.quarantine_until;
            let live = registry.rows.values_mut().filter(|row| !row.bound.plus(margin).passed(fleet.newest_seen));
            live.for_each(|row| row.bound = row.bound.max(end));
        }
        FleetFault::Earlier => fleet.quarantine_until = now.plus(scale.far()),
        FleetFault::Far => {
            let end = now.plus(scale.span(Duration::from_mins(10))).plus(margin.twice());
            fleet.quarantine_until = old.quarantine_until.max(end);
        }
        _ => {}
    }
    answer
}

fn claim(fault: FleetFault, registry: &mut Registry, moment: &Moment, call: &Call) -> RegistryAnswer {
    let RegistryRequest::Claim(mut claim) = call.request else { return registry.call(moment, call) };
    let (mut moment, repeated) = (*moment, claim.nonce);
    let old = registry.fleet;
    let quarantined = registry.in_quarantine(moment.now);
    let ring = Ring::of(&old.format.layout);
    let later = old.spare_until.plus(registry.scale().margin()).passed(moment.now);
    match fault {
        FleetFault::NearFloor if later => registry.fleet.spare_until = Point::ZERO,
        FleetFault::SliceFixed if ring.slices > 0 => {
            let fixed = old.source.timeline / ring.slices * ring.slices;
            registry.fleet.source.timeline = fixed + ring.slices;
            registry.fleet.settled = old.settled.filter(|at| old.source.timeline - at <= ring.slices).map(|_| fixed);
            moment.source = registry.fleet.source;
        }
        FleetFault::SliceWindow => registry.fleet.settled = old.settled.map(|_| old.source.timeline - 1),
        FleetFault::ClaimMargin => {
            claim.clock = span_above(registry, claim.clock);
            moment.now = span_above(registry, moment.now);
        }
        FleetFault::ClaimClock => claim.clock = Point::MAX,
        FleetFault::RingFloor if !quarantined => registry.fleet.quarantine_until = Point::ZERO,
        FleetFault::SparesFloor if quarantined => {
            registry.fleet.quarantine_before = Point::ZERO;
            registry.fleet.spare_before = Point::ZERO;
        }
        FleetFault::SpareSeen => registry.fleet.newest_seen = Point::MAX,
        FleetFault::SpareMargin => registry.fleet.newest_seen = span_above(registry, old.newest_seen),
        // A claim with another nonce is another claim.
        FleetFault::ClaimRepeated => claim.nonce = moment.nonce,
        _ => {}
    }
    let rows = registry.rows.clone();
    let mut answer = registry.call(&moment, &Call { request: RegistryRequest::Claim(claim), ..*call });
    if let (FleetFault::SliceLater, true, RegistryAnswer::Refused(RegistryRefusal::Quarantine { .. })) =
        (fault, quarantined && later, answer)
    {
        registry.fleet.spare_before = old.spare_until;
        registry.fleet.spare_until = Point::MAX;
        registry.fleet.spare_closed = true;
        answer = registry.call(&moment, &Call { request: RegistryRequest::Claim(claim), ..*call });
    }
    registry.fleet = old;
    let lease = registry.scale().span(claim.lease);
    let RegistryAnswer::Claimed { worker, nonce, count, bound, .. } = &mut answer else { return answer };
    let node = Node { datacenter: claim.datacenter, worker: *worker };
    let (before, Some(row)) = (rows.get(&node), registry.rows.get_mut(&node)) else { return answer };
    let changed = before != Some(&*row);
    match (fault, before) {
        (FleetFault::ForgedCount, Some(before)) if changed => {
            row.count = before.count + 1;
            *count = row.count;
        }
        (FleetFault::ClaimRepeated, _) => (row.nonce, *nonce) = (repeated, repeated),
        (FleetFault::FirstLease, _) if changed => {
            row.bound = moment.now.plus(lease);
            *bound = row.bound;
        }
        _ => {}
    }
    answer
}

fn renew(
    fault: FleetFault,
    registry: &mut Registry,
    moment: &Moment,
    call: &Call,
    renew: RenewRequest,
) -> RegistryAnswer {
    let node = Node { datacenter: renew.datacenter, worker: renew.worker };
    let life = registry.fleet.life;
    let row = registry.rows.get(&node).copied();
    let own = row.filter(|row| row.holder == renew.holder);
    let older = row.is_none_or(|row| row.life < life);
    let seen = moment.now;
    let mut moment = *moment;
    let change = |registry: &mut Registry, change: &dyn Fn(&mut RegistryRow)| {
        if let Some(row) = registry.rows.get_mut(&node) {
            change(row);
        }
    };
    let take = |registry: &mut Registry| {
        change(registry, &|row| (row.holder, row.nonce) = (renew.holder, renew.nonce));
    };
    match (fault, own) {
        (FleetFault::Repeated, Some(row)) if row.nonce == renew.next_nonce => {
            change(registry, &|row| row.nonce = Uuid(1));
        }
        (FleetFault::Expired, Some(row)) if row.life == life => {
            change(registry, &|row| row.bound = row.bound.max(moment.now));
        }
        (FleetFault::GivenAway, None) => take(registry),
        (FleetFault::AdoptAny, None) if older => take(registry),
        (FleetFault::ForgedStart, None) if older && row.is_some_and(|row| row.bound <= renew.start) => take(registry),
        (FleetFault::Copied, Some(_)) => change(registry, &|row| row.nonce = renew.nonce),
        (FleetFault::FirstMargin, _) if older => {
            // The registry's clock a margin ago gives the renewal a margin more.
            let margin = Point::ZERO.plus(registry.scale().margin()).id();
            moment.now = Point::new(moment.now.id() - margin).unwrap_or(Point::ZERO);
        }
        (FleetFault::ExpiredByBoth, _) => {
            let earlier = Moment { now: moment.now.min(renew.clock), ..moment };
            let answer = |moment: &Moment| registry.clone().call(moment, call);
            let expired = answer(&moment) == RegistryAnswer::Lost(Loss::Expired);
            if expired && !matches!(answer(&earlier), RegistryAnswer::Refused(_)) {
                moment = earlier;
            }
        }
        (FleetFault::AdoptLower, Some(row)) if row.count < renew.count => {
            return RegistryAnswer::Conflict { seen: row.seen };
        }
        (FleetFault::AdoptAbsent, None) if row.is_none() => return RegistryAnswer::Lost(Loss::GivenAway),
        (FleetFault::AdoptLater, None) if row.is_some() => return RegistryAnswer::Lost(Loss::GivenAway),
        _ => {}
    }
    let floor = registry.fleet.floor;
    if fault == FleetFault::LayoutBack {
        registry.fleet.floor = Point::ZERO;
    }
    let mut renewal = renew;
    if fault == FleetFault::ForgedCount && renew.holder == FORGER {
        renewal.count = renew.count.min(own.map_or(0, |row| row.count) + 1);
    }
    let call = Call { request: RegistryRequest::Renew(renewal), ..*call };
    let mut answer = registry.call(&moment, &call);
    registry.fleet.floor = floor;
    change(registry, &|row| {
        if row.nonce == renew.next_nonce && row.holder == renew.holder {
            row.seen = row.seen.max(seen);
        }
    });
    if let (FleetFault::ForgedBound, RegistryAnswer::Renewed { bound, .. }) = (fault, &mut answer) {
        *bound = (*bound).max(renew.bound);
        change(registry, &|row| row.bound = row.bound.max(renew.bound));
    }
    if fault == FleetFault::ForgedCount && renew.holder == FORGER && matches!(answer, RegistryAnswer::Renewed { .. }) {
        change(registry, &|row| row.count = row.count.max(renew.count));
    }
    if let (FleetFault::Stay, RegistryAnswer::Renewed { leave, .. }) = (fault, &mut answer) {
        *leave = false;
    }
    let ring = Ring::of(&registry.fleet.format.layout);
    let old_rules = earlier::is_earlier(registry);
    let unlimited = fault == FleetFault::SpareLease || old_rules;
    if let (true, true, RegistryAnswer::Renewed { bound, leave, .. }) =
        (unlimited, renew.worker >= ring.spare, &mut answer)
    {
        let scale = registry.scale();
        let lease = scale.span(renew.lease);
        *bound = (*bound).max(renew.clock.plus(lease).min(moment.now.plus(lease).plus(scale.margin())));
        *leave &= !old_rules;
        let bound = *bound;
        change(registry, &|row| row.bound = bound);
    }
    if let (FleetFault::Wanted, RegistryAnswer::Renewed { bound, .. }) = (fault, &mut answer) {
        let lease = if renew.worker >= ring.spare { renew.lease.min(SPARE_LEASE) } else { renew.lease };
        *bound = (*bound).max(renew.clock.plus(registry.scale().span(lease)));
        let bound = *bound;
        change(registry, &|row| row.bound = bound);
    }
    answer
}

pub fn open(fault: FleetFault, registry: &mut Registry, moment: &Moment) {
    let opened = registry.open(moment);
    if opened && fault == FleetFault::OpenAll {
        registry.fleet.quarantine_until = Point::ZERO;
        registry.fleet.quarantine_before = Point::ZERO;
    }
}

pub fn reserve(fault: FleetFault, registry: &mut Registry, moment: &Moment, node: Node, holder: Uuid) -> Option<Point> {
    let start = registry.reserve(moment, node, holder)?;
    if fault == FleetFault::Reserved {
        registry.rows.get_mut(&node)?.bound = moment.now.max(start);
    }
    Some(start)
}

pub fn change_layout(fault: FleetFault, registry: &mut Registry, moment: &Moment, format: IdFormat) {
    if fault == FleetFault::LayoutQuarantine {
        let request = RegistryRequest::Hello { serial: 0 };
        registry.call(moment, &Call { fleet: None, format: registry.fleet.format, request });
        registry.fleet.quarantine_until = Point::ZERO;
    }
    registry.change_layout(moment, format);
    if fault == FleetFault::LayoutFloor {
        registry.fleet.floor = Point::ZERO;
    }
}

/// The record with which a server starts.
pub fn start(fault: FleetFault, record: Option<Record>) -> Option<Record> {
    record
        .map(|record| if fault == FleetFault::Used { Record { used: Mark::NOTHING_ISSUED, ..record } } else { record })
}

/// Changes the process before its next request.
pub fn request(fault: FleetFault, process: &mut ServerProcess) {
    let record = match (fault, process.member.record()) {
        (FleetFault::PendingChanged, Some(record)) if record.pending.is_some() => Record { pending: None, ..*record },
        _ => return,
    };
    let identity =
        MemberIdentity { fleet: Some(record.fleet), format: record.format, datacenter: record.node.datacenter };
    process.member = Member::start(identity, Some(record), Point::ZERO);
}

pub fn begin(fault: FleetFault, grant: &Grant, mark: Mark) -> Mark {
    match fault {
        FleetFault::Start => mark.max(grant.used),
        _ => grant.begin(mark),
    }
}

pub fn ceiling(fault: FleetFault, grant: &Grant, stamp: &Stamp, last_word: u64) -> u64 {
    if fault == FleetFault::Bound { last_word + 1 } else { grant.ceiling(stamp, last_word) }
}
