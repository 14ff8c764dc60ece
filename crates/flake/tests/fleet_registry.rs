//! The registry's answers, one call at a time, and the conversion of times to points.

use std::time::Duration;

use flake::fleet::{
    Call, ClaimRequest, Effect, FAR, Grant, Loss, MARGIN, MAX_LEASE, Member, MemberIdentity, MemberStanding, Moment,
    NEAR, Point, Registry, RegistryAnswer, RegistryRefusal, RegistryRequest, RenewRequest, Ring, SPARE_LEASE, Scale,
    Source, Uuid,
};
use flake::{Epoch, IdFormat, Layout, Node};
use proptest::prelude::*;

const FORMAT: IdFormat = IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER };
const NOW: i64 = 1_700_000_000_000_000;
const SOURCE: Source = Source { system: 1, timeline: 1, tables: 1 };
const LEASE: Duration = Duration::from_hours(12);

fn at(micros: i64) -> Point {
    Scale::new(FORMAT).point(NOW + micros)
}

fn moment(micros: i64) -> Moment {
    Moment { now: at(micros), source: SOURCE, nonce: Uuid(99) }
}

fn registry() -> Registry {
    Registry::new(Uuid(7), FORMAT, SOURCE)
}

fn claim(nonce: u128) -> ClaimRequest {
    ClaimRequest { datacenter: 0, holder: Uuid(nonce), life: 1, nonce: Uuid(nonce), clock: at(0), lease: LEASE }
}

fn call(request: RegistryRequest) -> Call {
    Call { fleet: Some(Uuid(7)), format: FORMAT, request }
}

fn renew(nonce: u128, next_nonce: u128) -> RenewRequest {
    RenewRequest {
        datacenter: 0,
        worker: 0,
        holder: Uuid(1),
        count: 1,
        life: 1,
        nonce: Uuid(nonce),
        next_nonce: Uuid(next_nonce),
        start: Point::ZERO,
        bound: at(600_000_000),
        clock: at(1_000),
        lease: LEASE,
    }
}

#[test]
fn a_claim_and_a_renewal() {
    let mut registry = registry();
    let hello = registry.call(&moment(0), &Call { fleet: None, ..call(RegistryRequest::Hello { serial: 1 }) });
    assert_eq!(hello, RegistryAnswer::Hello { fleet: Uuid(7), life: 1, nonce: Uuid(99) });
    let (start, bound) = (renew(1, 2).start, at(600_000_000));
    let claimed = RegistryAnswer::Claimed { worker: 0, nonce: Uuid(1), count: 1, life: 1, start, bound };
    for micros in [0, 1_000] {
        assert_eq!(registry.call(&moment(micros), &call(RegistryRequest::Claim(claim(1)))), claimed);
    }
    let renewed = RegistryAnswer::Renewed {
        nonce: Uuid(2),
        count: 2,
        life: 1,
        bound: at(LEASE.as_micros() as i64 + 1_000),
        leave: false,
    };
    for _ in 0..2 {
        assert_eq!(registry.call(&moment(1_000), &call(RegistryRequest::Renew(renew(1, 2)))), renewed);
    }
    assert_eq!(
        registry.call(&moment(2_000), &call(RegistryRequest::Renew(renew(3, 4)))),
        RegistryAnswer::Conflict { seen: at(1_000) }
    );
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let good = registry();
    let other = IdFormat { epoch: Epoch::SONYFLAKE, ..FORMAT };
    let (hello, claim) = (call(RegistryRequest::Hello { serial: 1 }), claim(1));
    // Another host runs the registry, but a refused call does not tell.
    let moment = Moment { source: Source { timeline: 2, ..SOURCE }, ..moment(0) };
    let lease = |lease| call(RegistryRequest::Claim(ClaimRequest { lease, ..claim }));
    for (call, refusal) in [
        (Call { fleet: Some(Uuid(8)), ..hello }, RegistryRefusal::ForeignFleet),
        (Call { format: other, ..hello }, RegistryRefusal::Layout),
        (call(RegistryRequest::Claim(ClaimRequest { datacenter: 1, ..claim })), RegistryRefusal::Range),
        (call(RegistryRequest::Renew(RenewRequest { worker: 1_024, ..renew(1, 2) })), RegistryRefusal::Range),
        (lease(Duration::from_millis(599_999)), RegistryRefusal::Lease),
        (lease(MAX_LEASE + Duration::from_millis(1)), RegistryRefusal::Lease),
    ] {
        let mut registry = good.clone();
        assert_eq!(registry.call(&moment, &call), RegistryAnswer::Refused(refusal));
        assert_eq!(registry, good);
    }
}

#[test]
fn a_new_life_refuses_the_nonces_of_the_old_one() {
    let mut registry = registry();
    registry.call(&moment(0), &call(RegistryRequest::Claim(claim(2))));
    let moment = Moment { source: Source { timeline: 2, ..SOURCE }, ..moment(0) };
    assert_eq!(
        registry.call(&moment, &call(RegistryRequest::Claim(claim(1)))),
        RegistryAnswer::Refused(RegistryRefusal::Life)
    );
    let spare = registry.call(&moment, &call(RegistryRequest::Claim(ClaimRequest { life: 2, ..claim(1) })));
    assert!(matches!(spare, RegistryAnswer::Claimed { worker: 768, life: 2, .. }), "{spare:?}");
    assert_eq!(registry.fleet.quarantine_until, at(FAR.as_micros() as i64));
}

#[test]
fn a_closed_spare_slice_says_until_when_and_can_be_opened() {
    let mut registry = registry();
    let moment = Moment { source: Source { tables: 2, ..SOURCE }, ..moment(0) };
    let claim = call(RegistryRequest::Claim(ClaimRequest { life: 2, ..claim(1) }));
    registry.call(&moment, &call(RegistryRequest::Hello { serial: 1 }));
    let until = at((NEAR + MARGIN).as_micros() as i64);
    assert_eq!(registry.call(&moment, &claim), RegistryAnswer::Refused(RegistryRefusal::Quarantine { until }));
    assert!(registry.open(&moment));
    assert!(!registry.open(&moment));
    assert!(matches!(registry.call(&moment, &claim), RegistryAnswer::Claimed { worker: 0, .. }));
}

#[test]
fn worker_ids_are_granted_in_ring_order_until_none_is_free() {
    let format = IdFormat { layout: Layout::parse("41:3:12").unwrap(), ..FORMAT };
    let mut registry = Registry::new(Uuid(7), format, SOURCE);
    let scale = Scale::new(format);
    let mut claimed = |nonce: u128, micros: i64| {
        let now = scale.point(NOW + micros);
        let request = RegistryRequest::Claim(ClaimRequest { clock: now, ..claim(nonce) });
        let call = Call { fleet: None, format, request };
        match registry.call(&Moment { now, ..moment(0) }, &call) {
            RegistryAnswer::Claimed { worker, .. } => Some(worker),
            answer => {
                assert_eq!(answer, RegistryAnswer::Refused(RegistryRefusal::Full));
                None
            }
        }
    };
    for worker in 0..6 {
        assert_eq!(claimed(u128::from(worker) + 1, i64::from(worker) * 1_000), Some(worker));
    }
    assert_eq!(claimed(8, 1_000_000), None);
    let later = 2 * MARGIN.as_micros() as i64;
    assert_eq!(claimed(9, later), None, "the bound and a margin must have passed");
    assert_eq!(claimed(10, later + 1_000), Some(0));
    assert_eq!(claimed(11, later + 3_000), Some(1));
}

#[test]
fn the_last_quarter_is_spare() {
    for (text, spare, sliced, slices, end) in [
        ("41:0:12", 1, 1, 0, 1),
        ("41:2:12", 4, 4, 0, 4),
        ("41:3:12", 6, 7, 1, 8),
        ("41:4:12", 12, 14, 2, 16),
        ("41:8:12", 192, 224, 32, 256),
        ("41:10:12", 768, 896, 32, 1_024),
    ] {
        assert_eq!(Ring::of(&Layout::parse(text).unwrap()), Ring { spare, sliced, slices, end });
    }
    // A claim does not look at each of two billion worker IDs.
    let format = IdFormat { layout: Layout::parse("30:31:2").unwrap(), ..FORMAT };
    let mut registry = Registry::new(Uuid(7), format, SOURCE);
    registry.fleet.quarantine_until = Point::MAX;
    registry.fleet.quarantine_before = Point::MAX;
    let call = Call { fleet: None, format, request: RegistryRequest::Claim(claim(1)) };
    assert!(matches!(registry.call(&moment(0), &call), RegistryAnswer::Refused(RegistryRefusal::Quarantine { .. })));
}

/// The reason is what lasts longest, so that nobody opens a quarantine and still has to wait.
#[test]
fn a_refused_claim_says_what_it_waits_for() {
    let moved = Moment { source: Source { tables: 2, ..SOURCE }, ..moment(0) };
    let claim = call(RegistryRequest::Claim(ClaimRequest { life: 2, ..claim(1) }));
    for (hours, quarantine) in [(1, true), (48, false)] {
        let mut registry = registry();
        registry.fleet.floor = at(hours * 3_600_000_000);
        registry.call(&moved, &call(RegistryRequest::Hello { serial: 1 }));
        match registry.call(&moved, &claim) {
            RegistryAnswer::Refused(RegistryRefusal::Quarantine { .. }) => assert!(quarantine),
            RegistryAnswer::Refused(RegistryRefusal::Floor { .. }) => assert!(!quarantine),
            answer => panic!("{answer:?}"),
        }
    }
    let mut behind = registry();
    let request = RegistryRequest::Claim(ClaimRequest { life: 1, clock: Point::ZERO, ..self::claim(1) });
    assert_eq!(
        behind.call(&moment(0), &call(request)),
        RegistryAnswer::Refused(RegistryRefusal::Clock { until: Point::ZERO })
    );
}

/// The registry's clock is ahead of the server's. The server would use up a worker ID with each grant that it cannot renew.
#[test]
fn a_claim_whose_grant_could_not_be_renewed_is_refused() {
    let reach = (LEASE + MARGIN).as_micros() as i64;
    let claim = call(RegistryRequest::Claim(claim(1)));
    let refused = RegistryAnswer::Refused(RegistryRefusal::Clock { until: at(1_000) });
    assert_eq!(registry().call(&moment(reach + 1_000), &claim), refused);
    assert!(matches!(registry().call(&moment(reach), &claim), RegistryAnswer::Claimed { .. }));
    // A spare worker ID has a shorter lease.
    let claim = call(RegistryRequest::Claim(ClaimRequest { life: 2, ..self::claim(1) }));
    let answer = |micros| {
        let mut registry = registry();
        let other = ClaimRequest { clock: at(micros), ..self::claim(2) };
        registry.call(&moment(micros), &call(RegistryRequest::Claim(other)));
        registry.call(&Moment { source: Source { timeline: 2, ..SOURCE }, ..moment(micros) }, &claim)
    };
    assert!(matches!(answer((SPARE_LEASE + MARGIN).as_micros() as i64), RegistryAnswer::Claimed { worker: 768, .. }));
    assert_eq!(answer((SPARE_LEASE + MARGIN).as_micros() as i64 + 1_000), refused);
}

/// Sends a heartbeat while the clocks show these times, and returns its effect.
fn beat(registry: &mut Registry, member: &mut Member, registry_clock: i64, clock: i64) -> Effect {
    loop {
        let call = member.request(at(clock), LEASE).expect("the server is not fenced");
        let nonce = Uuid(registry.rows.values().map(|row| row.count).sum::<u64>().into());
        let answer = registry.call(&Moment { nonce, ..moment(registry_clock) }, &call);
        let effect = member.answer(&call, &answer);
        if effect != Effect::Continue {
            return effect;
        }
    }
}

#[test]
fn a_server_keeps_its_grant_while_only_the_clock_of_the_registry_has_passed_the_bound() {
    let (hour, lease, margin) = (3_600_000_000, LEASE.as_micros() as i64, MARGIN.as_micros() as i64);
    let identity = MemberIdentity { fleet: None, format: FORMAT, datacenter: 0 };
    let (mut registry, mut member) = (registry(), Member::start(identity, None, Point::ZERO));
    assert_eq!(beat(&mut registry, &mut member, 0, 0), Effect::Assigned);
    assert_eq!(beat(&mut registry, &mut member, 0, 0), Effect::Renewed);
    let granted = member.standing();
    // The registry's clock is five days ahead.
    for clock in [hour, 2 * hour] {
        let effect = beat(&mut registry, &mut member, clock + 120 * hour, clock);
        assert!(matches!(effect, Effect::Refused(RegistryRefusal::Clock { .. })), "{effect:?}");
        assert_eq!(member.standing(), granted);
    }
    assert_eq!(registry.rows.len(), 1);
    // It is correct again.
    assert_eq!(beat(&mut registry, &mut member, 3 * hour, 3 * hour), Effect::Renewed);
    let bound = 3 * hour + lease;
    // It is so little ahead that a different worker ID is granted, which replaces the grant.
    let mut assigned = member.clone();
    assert_eq!(beat(&mut registry.clone(), &mut assigned, bound + margin + 1_000, bound), Effect::Assigned);
    assert!(matches!(assigned.standing(), MemberStanding::Holding(Grant { node: Node { worker: 1, .. }, .. })));
    // The server's clock has passed the bound, too.
    let call = member.request(at(0), LEASE).expect("hello");
    member.answer(&call, &registry.call(&moment(bound), &call));
    let call = member.request(at(bound + 1_000), LEASE).expect("a renewal");
    let answer = registry.call(&moment(bound + margin + 1_000), &call);
    assert_eq!(member.answer(&call, &answer), Effect::Lost(Loss::Expired));
}

/// The registry has times from a clock that was ahead. They do not show that it has lost nothing since then.
#[test]
fn a_time_in_the_future_may_be_a_day_old() {
    let day = 86_400_000_000;
    let mut registry = registry();
    registry.call(&moment(0), &call(RegistryRequest::Claim(claim(1))));
    for (seen, newest) in
        [(MARGIN.as_micros() as i64, at(MARGIN.as_micros() as i64)), (day, at(-(FAR.as_micros() as i64)))]
    {
        let mut registry = registry.clone();
        registry.rows.values_mut().for_each(|row| row.seen = at(seen));
        registry.call(
            &Moment { source: Source { timeline: 2, ..SOURCE }, ..moment(0) },
            &call(RegistryRequest::Hello { serial: 1 }),
        );
        assert_eq!((registry.fleet.newest_seen, registry.fleet.spare_closed), (newest, seen == day));
    }
}

#[test]
fn points_outside_the_layout_are_its_first_and_last_ids() {
    let scale = Scale::new(FORMAT);
    assert_eq!(scale.point(0), Point::ZERO);
    assert_eq!(scale.point(i64::MIN), Point::ZERO);
    assert_eq!(scale.point(i64::MAX).id(), FORMAT.layout.last_id());
    assert_eq!(scale.point(Epoch::TWITTER.unix_ms() * 1_000 + 1_999).id(), 1 << 22);
    assert_eq!(scale.time(Point::new(1 << 22).unwrap()), i128::from(Epoch::TWITTER.unix_ms() + 1) * 1_000);
    assert_eq!(Point::MAX.plus(scale.margin()), Point::MAX);
    assert_eq!(Point::ZERO.plus(scale.span(Duration::from_micros(1))).id(), 1 << 22);
    assert_eq!(Point::ZERO.plus(scale.span(Duration::MAX)), Point::MAX);
    assert_eq!(scale.span(FAR), scale.far());
}

proptest! {
    #[test]
    fn a_point_is_the_first_id_of_its_tick(micros in 1_300_000_000_000_000i64..3_400_000_000_000_000) {
        let scale = Scale::new(FORMAT);
        prop_assert_eq!(Ok(scale.point(micros).id()), FORMAT.min_id(i128::from(micros)));
        prop_assert_eq!(scale.time(scale.point(micros)), i128::from(micros / 1_000 * 1_000));
    }

    #[test]
    fn a_span_is_never_shorter_than_its_duration(
        micros in 1_300_000_000_000_000i64..3_000_000_000_000_000,
        nanos in 0..90_000_000_000_000u64,
    ) {
        let scale = Scale::new(FORMAT);
        let duration = Duration::from_nanos(nanos);
        let later = scale.point(micros + nanos as i64 / 1_000);
        prop_assert!(scale.point(micros).plus(scale.span(duration)) >= later);
    }
}
