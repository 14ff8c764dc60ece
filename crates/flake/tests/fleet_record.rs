//! The bytes of the witness, and which record a server goes on with.

mod common;

use flake::fleet::{
    Effect, MARGIN, Member, MemberIdentity, MemberStanding, Point, RECORD_SIZE, Record, RegistryAnswer,
    RegistryRefusal, RegistryRequest, Scale, USED_OFFSET, Uuid,
};
use flake::{Epoch, IdFormat, Layout, Mark, Node, Part};
use proptest::prelude::*;

fn records() -> impl Strategy<Value = Record> {
    let uuids = (any::<u128>(), any::<u128>(), any::<u128>(), prop::option::of(1..=u128::MAX));
    let numbers = (1..=u64::MAX, 1..=u64::MAX, 0..=i64::MAX, 0..=i64::MAX, 1..=1u64 << 63);
    (common::formats(), uuids, numbers, any::<u32>(), any::<u32>()).prop_map(
        |((_, format), uuids, numbers, datacenter, worker)| {
            let fits = |number, part| (u64::from(number) & format.layout.max(part)) as u32;
            Record {
                fleet: Uuid(uuids.0),
                format,
                node: Node { datacenter: fits(datacenter, Part::Datacenter), worker: fits(worker, Part::Worker) },
                holder: Uuid(uuids.1),
                nonce: Uuid(uuids.2),
                pending: uuids.3.map(Uuid),
                count: numbers.0,
                life: numbers.1,
                start: Point::new(numbers.2).unwrap(),
                bound: Point::new(numbers.3).unwrap(),
                used: Mark::stored(numbers.4).unwrap(),
            }
        },
    )
}

proptest! {
    #[test]
    fn a_record_is_decoded_as_it_was_encoded(record in records()) {
        prop_assert_eq!(Record::decode(&record.encode()), Some(record));
    }

    #[test]
    fn a_record_with_one_changed_byte_is_no_record(record in records(), at in 0..USED_OFFSET, with in 1..=u8::MAX) {
        let mut bytes = record.encode();
        bytes[at] ^= with;
        prop_assert_eq!(Record::decode(&bytes), None);
    }

    #[test]
    fn a_record_that_was_partly_written_over_another_one_is_one_of_them_or_none(
        old in records(), new in records(), cut in 0..=RECORD_SIZE,
    ) {
        let mut bytes = old.encode();
        bytes[..cut].copy_from_slice(&new.encode()[..cut]);
        if let Some(found) = Record::decode(&bytes) {
            // The number of used IDs is written on its own.
            let same = |record: &Record| Record { used: found.used, ..*record } == found;
            prop_assert!(same(&old) || same(&new));
        }
    }

    #[test]
    fn the_used_number_can_be_raised_in_place_and_must_be_a_mark(
        record in records(), used in 1..=1u64 << 63, beyond in (1u64 << 63) + 1..,
    ) {
        for used in [used, beyond, 0] {
            let mut bytes = record.encode();
            bytes[USED_OFFSET..].copy_from_slice(&used.to_le_bytes());
            prop_assert_eq!(Record::decode(&bytes), Mark::stored(used).map(|used| Record { used, ..record }));
        }
    }

    #[test]
    fn bytes_with_a_correct_checksum_do_not_panic(record in records(), at in 8..USED_OFFSET - 8, with in any::<u8>()) {
        let mut bytes = record.encode();
        bytes[at] = with;
        let sum = bytes[..USED_OFFSET - 8].iter().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        bytes[USED_OFFSET - 8..USED_OFFSET].copy_from_slice(&sum.to_le_bytes());
        if let Some(found) = Record::decode(&bytes) {
            prop_assert_eq!(found.encode(), bytes);
        }
    }
}

const FORMAT: IdFormat = IdFormat { layout: Layout::TWITTER, epoch: Epoch::TWITTER };
const IDENTITY: MemberIdentity = MemberIdentity { fleet: None, format: FORMAT, datacenter: 0 };
const NOW: i64 = 1_700_000_000_000_000;
const LEASE: std::time::Duration = std::time::Duration::from_hours(12);

fn at(micros: i64) -> Point {
    Scale::new(FORMAT).point(NOW + micros)
}

fn record() -> Record {
    Record {
        fleet: Uuid(7),
        format: FORMAT,
        node: Node { datacenter: 0, worker: 5 },
        holder: Uuid(1),
        nonce: Uuid(2),
        pending: None,
        count: 3,
        life: 1,
        start: at(-1_000_000),
        bound: at(0),
        used: Mark::NOTHING_ISSUED,
    }
}

#[test]
fn a_record_is_void_once_its_bound_and_a_margin_have_passed() {
    let margin = MARGIN.as_micros() as i64;
    assert_eq!(Member::start(IDENTITY, Some(record()), at(margin)).record(), Some(&record()));
    assert_eq!(Member::start(IDENTITY, Some(record()), at(margin + 1_000)).record(), None);
}

#[test]
fn a_record_of_something_else_is_void() {
    let other = IdFormat { layout: Layout::parse("41:9:13").unwrap(), ..FORMAT };
    let later = IdFormat { epoch: Epoch::SONYFLAKE, ..FORMAT };
    let foreign = MemberIdentity { fleet: Some(Uuid(8)), ..IDENTITY };
    let elsewhere = MemberIdentity { datacenter: 1, ..IDENTITY };
    for identity in
        [foreign, elsewhere, MemberIdentity { format: other, ..IDENTITY }, MemberIdentity { format: later, ..IDENTITY }]
    {
        assert_eq!(Member::start(identity, Some(record()), Point::ZERO).standing(), MemberStanding::Seeking);
    }
    let same = MemberIdentity { fleet: Some(Uuid(7)), ..IDENTITY };
    assert_eq!(Member::start(same, Some(record()), Point::ZERO).record(), Some(&record()));
}

#[test]
fn a_grant_begins_above_everything_that_was_issued_and_ends_at_its_bound() {
    let stamp = FORMAT.layout.stamp(record().node).unwrap();
    let MemberStanding::Holding(mut grant) = Member::start(IDENTITY, Some(record()), at(0)).standing() else {
        panic!("the server holds a worker ID")
    };
    let mark = |micros| Mark::stored(at(micros).id() as u64).unwrap();
    assert_eq!(grant.begin(Mark::NOTHING_ISSUED), mark(-1_000_000));
    assert_eq!(grant.begin(mark(-5_000)), mark(-5_000));
    grant.used = mark(-4_000);
    assert_eq!(grant.begin(mark(-5_000)), mark(-4_000));
    let ceiling = grant.ceiling(&stamp, FORMAT.layout.last_word());
    assert!(stamp.id(ceiling - 1) <= grant.bound.id() && stamp.id(ceiling) > grant.bound.id());
    grant.bound = Point::MAX;
    assert_eq!(grant.ceiling(&stamp, FORMAT.layout.last_word()), FORMAT.layout.last_word() + 1);
}

#[test]
fn a_renewal_is_repeated_with_the_same_nonce_until_it_is_answered() {
    let mut member = Member::start(IDENTITY, Some(record()), at(0));
    let hello = member.request(at(0), LEASE).unwrap();
    let answer = RegistryAnswer::Hello { fleet: Uuid(7), life: 1, nonce: Uuid(9) };
    assert_eq!(member.answer(&hello, &answer), Effect::Continue);
    assert_eq!(member.answer(&hello, &answer), Effect::Ignored, "an answer is taken once");
    let renewal = member.request(at(0), LEASE).unwrap();
    assert_eq!(member.record().unwrap().pending, Some(Uuid(9)), "the nonce is stored before it is sent");
    assert_eq!(
        member.answer(&renewal, &RegistryAnswer::Refused(RegistryRefusal::Layout)),
        Effect::Refused(RegistryRefusal::Layout)
    );
    assert_eq!((member.refused(), member.request(at(0), LEASE)), (Some(RegistryRefusal::Layout), Some(renewal)));
    let mut restarted = Member::start(IDENTITY, member.record().copied(), at(0));
    assert_eq!(restarted.request(at(0), LEASE), Some(renewal));
    let renewed = RegistryAnswer::Renewed { nonce: Uuid(9), count: 4, life: 2, bound: at(5_000), leave: false };
    assert_eq!(restarted.answer(&renewal, &renewed), Effect::Renewed);
    assert_eq!(restarted.answer(&renewal, &renewed), Effect::Ignored);
    let expected = Record { nonce: Uuid(9), pending: None, count: 4, life: 2, bound: at(5_000), ..record() };
    assert_eq!((restarted.record(), restarted.refused()), (Some(&expected), None));
}

#[test]
fn a_fence_lasts_until_the_server_restarts() {
    let mut member = Member::start(IDENTITY, Some(Record { pending: Some(Uuid(9)), ..record() }), at(0));
    let renewal = member.request(at(0), LEASE).unwrap();
    assert_eq!(member.answer(&renewal, &RegistryAnswer::Conflict { seen: at(-1) }), Effect::Fenced);
    assert_eq!((member.request(at(0), LEASE), member.record()), (None, None));
    let mut member = Member::fenced(IDENTITY, at(-1));
    assert_eq!((member.standing(), member.request(at(0), LEASE)), (MemberStanding::Fenced { seen: at(-1) }, None));
    let call = Member::start(IDENTITY, None, at(0)).request(at(0), LEASE).unwrap();
    assert!(matches!(call.request, RegistryRequest::Hello { .. }));
}

#[test]
fn an_answer_that_contradicts_the_layout_changes_nothing() {
    let mut member = Member::start(IDENTITY, None, at(0));
    let hello = member.request(at(0), LEASE).unwrap();
    member.answer(&hello, &RegistryAnswer::Hello { fleet: Uuid(7), life: 1, nonce: Uuid(9) });
    let claim = member.request(at(0), LEASE).unwrap();
    let claimed = |worker| {
        let (start, bound) = (Point::ZERO, at(5_000));
        RegistryAnswer::Claimed { worker, nonce: Uuid(9), count: 1, life: 1, start, bound }
    };
    assert_eq!(member.answer(&claim, &claimed(1_024)), Effect::Ignored);
    assert_eq!(member.answer(&claim, &claimed(1_023)), Effect::Assigned);
    assert_eq!(member.fleet(), Some(Uuid(7)));
}
