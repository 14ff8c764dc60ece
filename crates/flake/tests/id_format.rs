//! ID formats: the conversion between instants and IDs, and its limits.

mod common;

use common::{Shape, fields, forall, formats, largest, micros};
use flake::{FormatError, IdFormat, Node, Part, PartError, Parts};
use proptest::prelude::*;

/// More microseconds than a timestamptz can hold.
const FAR: i128 = 9_300_000_000_000_000_000;

/// The time at which `tick` begins, in microseconds since the Unix epoch.
fn begins(shape: Shape, format: IdFormat, tick: u64) -> i128 {
    i128::from(format.epoch.unix_ms()) * 1_000 + i128::from(tick) * i128::from(micros(shape.tick))
}

/// A format, fields that fit it, and an offset into a tick.
fn cases() -> impl Strategy<Value = (Shape, IdFormat, (u64, Node, u64), i128)> {
    formats().prop_flat_map(|(shape, format)| {
        let last = i128::from(micros(shape.tick)) - 1;
        (Just(shape), Just(format), fields(shape), prop_oneof![Just(0), Just(last), 0..=last])
    })
}

#[test]
fn an_id_gives_back_the_instant_and_the_parts_it_was_joined_from() {
    forall(3_000, cases(), |(shape, format, (tick, node, sequence), into)| {
        let begin = begins(shape, format, tick);
        let id = format.join(begin + into, node, sequence as u32).unwrap();
        prop_assert_eq!(id, shape.id(tick, node, sequence));
        prop_assert_eq!(format.split(id), Ok(Parts { tick, node, sequence: sequence as u32 }));
        prop_assert_eq!(format.instant(tick), begin);
        Ok(())
    });
}

#[test]
fn a_part_that_does_not_fit_is_an_error_and_never_masked() {
    forall(2_000, cases(), |(shape, format, (tick, ..), into)| {
        let at = begins(shape, format, tick) + into;
        let max = |bits| largest(bits) as u32;
        let (datacenter, worker) = (max(shape.datacenter_bits()), max(shape.worker));
        let (node, sequence) = (Node { datacenter, worker }, max(shape.sequence));
        let error =
            |part, value, max| Err(FormatError::Part(PartError { part, value: i64::from(value), max: i64::from(max) }));
        prop_assert!(format.join(at, node, sequence).is_ok());
        for over in [1, u32::MAX - datacenter] {
            let node = Node { datacenter: datacenter + over, ..node };
            prop_assert_eq!(format.join(at, node, sequence), error(Part::Datacenter, node.datacenter, datacenter));
        }
        for over in [1, u32::MAX - worker] {
            let node = Node { worker: worker + over, ..node };
            prop_assert_eq!(format.join(at, node, sequence), error(Part::Worker, node.worker, worker));
        }
        for over in [1, u32::MAX - sequence] {
            prop_assert_eq!(format.join(at, node, sequence + over), error(Part::Sequence, sequence + over, sequence));
        }
        Ok(())
    });
}

#[test]
fn the_first_and_last_instant_of_a_layout_have_ids_and_their_neighbours_have_none() {
    forall(2_000, (formats(), 1..=FAR), |((shape, format), far)| {
        let start = begins(shape, format, 0);
        let end = begins(shape, format, largest(shape.timestamp)) + i128::from(micros(shape.tick));
        let all = |at| [format.min_id(at), format.max_id(at), format.join(at, Node::default(), 0)];
        for at in [start, end - 1] {
            prop_assert!(all(at).iter().all(Result::is_ok));
        }
        for at in [start - 1, start - far] {
            prop_assert_eq!(all(at), [Err(FormatError::BeforeEpoch); 3]);
        }
        for at in [end, end + far] {
            prop_assert_eq!(all(at), [Err(FormatError::AfterEnd); 3]);
        }
        Ok(())
    });
}

#[test]
fn a_number_outside_the_layout_is_no_id() {
    forall(2_000, (formats(), any::<i64>()), |((shape, format), id)| {
        let node = Node { datacenter: largest(shape.datacenter_bits()) as u32, worker: largest(shape.worker) as u32 };
        let max = shape.id(largest(shape.timestamp), node, largest(shape.sequence));
        let expected = |id: i64| match id {
            ..0 => Some(FormatError::Negative),
            _ if id > max => Some(FormatError::TooLarge { max }),
            _ => None,
        };
        for id in [id, 0, -1, i64::MIN, i64::MAX, max, max.saturating_add(1)] {
            prop_assert_eq!(format.split(id).err(), expected(id), "{}", id);
        }
        Ok(())
    });
}

#[test]
fn a_ticks_ids_lie_between_its_first_and_last_and_no_others_do() {
    forall(3_000, (cases(), any::<u64>()), |((shape, format, (tick, node, sequence), into), other)| {
        let at = begins(shape, format, tick) + into;
        let (min, max) = (format.min_id(at).unwrap(), format.max_id(at).unwrap());
        prop_assert!((min..=max).contains(&shape.id(tick, node, sequence)));
        // The bounds belong to the tick, so no ID of the tick lies outside them.
        let of_tick = |id| format.split(id).is_ok_and(|parts| parts.tick == tick);
        prop_assert!(of_tick(min) && of_tick(max));
        prop_assert!(!of_tick(min - 1) && !max.checked_add(1).is_some_and(of_tick));
        let last = largest(shape.timestamp);
        for other in [tick.saturating_sub(1), (tick + 1).min(last), other % (last + 1)] {
            prop_assert_eq!((min..=max).contains(&shape.id(other, node, sequence)), other == tick);
        }
        Ok(())
    });
}

/// An instant, and the IDs to compare with it: any two, and those of the ticks around the instant if there are any.
fn instants_and_ids() -> impl Strategy<Value = (Shape, IdFormat, i128, Vec<(u64, Node, u64)>)> {
    let instants = formats().prop_flat_map(|(shape, format)| {
        let length = i128::from(micros(shape.tick));
        let near = (0..=largest(shape.timestamp), -1..=1i128);
        let inside = (0..=largest(shape.timestamp), 0..length);
        let at = prop_oneof![
            near.prop_map(move |(tick, by)| begins(shape, format, tick) + by),
            inside.prop_map(move |(tick, into)| begins(shape, format, tick) + into),
            // The ends of the layout.
            (-2..=2i128).prop_map(move |by| begins(shape, format, 0) + by * length / 2),
            (-2..=2i128).prop_map(move |by| begins(shape, format, largest(shape.timestamp)) + by * length / 2),
            // Anywhere.
            Just(-FAR),
            Just(FAR),
            -FAR..=FAR,
        ];
        (Just(shape), Just(format), at, fields(shape), fields(shape))
    });
    instants.prop_map(|(shape, format, at, one, other)| {
        let around = (at - begins(shape, format, 0)).div_euclid(i128::from(micros(shape.tick)));
        let ticks = (around - 1..=around + 1).filter(|tick| (0..=i128::from(largest(shape.timestamp))).contains(tick));
        let near = ticks.map(|tick| (tick as u64, other.1, other.2));
        (shape, format, at, near.chain([one, other]).collect())
    })
}

#[test]
fn an_instant_divides_the_ids_into_those_issued_before_it_and_those_issued_at_it_or_later() {
    forall(6_000, instants_and_ids(), |(shape, format, at, ids)| {
        let (last, first) = (format.last_id_before(at), format.first_id_from(at));
        prop_assert!((-1..=format.layout.last_id()).contains(&last));
        prop_assert!(first.is_none_or(|first| first >= 0));
        for (tick, node, sequence) in ids {
            let (id, time) = (shape.id(tick, node, sequence), begins(shape, format, tick));
            prop_assert_eq!(id <= last, time < at, "ID {} of {} and the last before {}: {}", id, time, at, last);
            let from = first.is_some_and(|first| id >= first);
            prop_assert_eq!(from, time >= at, "ID {} of {} and the first from {}: {:?}", id, time, at, first);
        }
        // No ID is left only if the layout fills all 63 bits and its last tick has begun.
        let over = at > begins(shape, format, largest(shape.timestamp));
        prop_assert_eq!(first.is_none(), over && format.layout.last_id() == i64::MAX);
        Ok(())
    });
}
