//! Layouts: their text form, and the way between words and IDs, against IDs written digit by digit.

mod common;

use common::{PRESETS, Shape, digits, fields, forall, largest, nodes, number, shapes, ticks};
use flake::{Epoch, Layout, LayoutError, Node, Part, PartError, Parts, Preset, Scheme, Tick};
use proptest::prelude::*;

#[test]
fn a_layout_reads_back_from_what_it_prints() {
    forall(2_000, shapes(), |shape| {
        let layout = shape.layout();
        prop_assert_eq!(Layout::parse(&layout.to_string()), Ok(layout));
        Ok(())
    });
}

#[test]
fn a_layout_prints_the_widths_it_was_made_of() {
    forall(2_000, (shapes(), ticks()), |(shape, tick)| {
        let Shape { timestamp, worker, sequence, .. } = shape;
        let layout = Layout::of(timestamp, shape.datacenter, worker, sequence, tick).unwrap();
        let datacenter = shape.datacenter.map(|bits| format!("{bits}:")).unwrap_or_default();
        let tick = match tick {
            Tick::Ms1 => "",
            Tick::Ms10 => "@10ms",
            Tick::S1 => "@1s",
        };
        prop_assert_eq!(layout.to_string(), format!("{timestamp}:{datacenter}{worker}:{sequence}{tick}"));
        Ok(())
    });
}

#[test]
fn an_id_is_the_digits_of_its_fields_and_comes_apart_again() {
    let cases = shapes().prop_flat_map(|shape| (Just(shape), fields(shape)));
    forall(5_000, cases, |(shape, (tick, node, sequence))| {
        let layout = shape.layout();
        let word = tick * shape.capacity() + sequence;
        let id = shape.id(tick, node, sequence);
        prop_assert_eq!(layout.stamp(node).unwrap().id(word), id);
        prop_assert_eq!(layout.word(id), word);
        prop_assert_eq!(layout.split(id), Parts { tick, node, sequence: sequence as u32 });
        Ok(())
    });
}

#[test]
fn ids_of_one_node_increase_with_their_words_and_are_never_negative() {
    let cases = shapes().prop_flat_map(|shape| {
        let word = || prop_oneof![3 => 0..shape.words(), 1 => Just(0), 1 => Just(shape.words() - 1)];
        (Just(shape), nodes(shape), word(), word())
    });
    forall(5_000, cases, |(shape, node, one, other)| {
        let layout = shape.layout();
        let stamp = layout.stamp(node).unwrap();
        // The nearest neighbours are the likeliest to collide.
        for (low, high) in [(one.min(other), one.max(other)), (one.saturating_sub(1), one)] {
            prop_assert!(stamp.id(low) >= 0);
            prop_assert!(stamp.id(high) <= layout.last_id());
            prop_assert_eq!(stamp.id(low) < stamp.id(high), low < high, "words {} and {}", low, high);
        }
        Ok(())
    });
}

#[test]
fn limits_are_fields_full_of_ones() {
    forall(2_000, shapes(), |shape| {
        let layout = shape.layout();
        let node = Node { datacenter: largest(shape.datacenter_bits()) as u32, worker: largest(shape.worker) as u32 };
        prop_assert_eq!(layout.max(Part::Timestamp), largest(shape.timestamp));
        prop_assert_eq!(layout.max(Part::Datacenter), u64::from(node.datacenter));
        prop_assert_eq!(layout.max(Part::Worker), u64::from(node.worker));
        prop_assert_eq!(layout.max(Part::Sequence), largest(shape.sequence));
        prop_assert_eq!(layout.sequence_capacity(), shape.capacity());
        prop_assert_eq!(layout.last_word(), shape.words() - 1);
        prop_assert_eq!(layout.last_id(), shape.id(largest(shape.timestamp), node, largest(shape.sequence)));
        prop_assert_eq!(layout.has_datacenter(), shape.datacenter.is_some());
        prop_assert_eq!(layout.sequence_lowest(), shape.sequence_lowest);
        prop_assert_eq!(layout.tick(), shape.tick);
        // 1 in the lowest place of the timestamp, nothing below.
        let one = "1".to_string() + &digits(0, layout.timestamp_shift());
        prop_assert_eq!(shape.id(1, Node::default(), 0), i64::from_str_radix(&one, 2).unwrap());
        Ok(())
    });
}

#[test]
fn a_node_that_does_not_fit_is_an_error_that_names_the_part() {
    let over = |bits| prop_oneof![Just(largest(bits) + 1), largest(bits) + 1..=u64::from(u32::MAX)];
    let cases = shapes()
        .prop_flat_map(move |shape| (Just(shape), nodes(shape), over(shape.datacenter_bits()), over(shape.worker)));
    forall(2_000, cases, |(shape, node, datacenter, worker)| {
        let layout = shape.layout();
        let error = |part, value, bits| Err(PartError { part, value: value as i64, max: largest(bits) as i64 });
        prop_assert!(layout.stamp(node).is_ok());
        prop_assert_eq!(
            layout.stamp(Node { datacenter: datacenter as u32, ..node }),
            error(Part::Datacenter, datacenter, shape.datacenter_bits())
        );
        prop_assert_eq!(
            layout.stamp(Node { worker: worker as u32, ..node }),
            error(Part::Worker, worker, shape.worker)
        );
        Ok(())
    });
}

#[test]
fn widths_are_accepted_exactly_inside_their_ranges() {
    let width = || prop_oneof![6 => 0..=33u32, 1 => 30..=70u32, 1 => any::<u32>()];
    let cases = (width(), proptest::option::of(width()), width(), width(), ticks());
    forall(10_000, cases, |(timestamp, datacenter, worker, sequence, tick)| {
        let wrong = [
            (Part::Timestamp, timestamp, 1..=62),
            (Part::Datacenter, datacenter.unwrap_or(0), 0..=31),
            (Part::Worker, worker, 0..=31),
            (Part::Sequence, sequence, 1..=31),
        ]
        .into_iter()
        .find(|(_, bits, range)| !range.contains(bits));
        let sum = [timestamp, datacenter.unwrap_or(0), worker, sequence].map(u64::from).iter().sum::<u64>();
        let made = Layout::of(timestamp, datacenter, worker, sequence, tick);
        match wrong {
            Some((part, bits, range)) => {
                let (min, max) = range.into_inner();
                prop_assert_eq!(made, Err(LayoutError::Width { part, bits, min, max }));
            }
            None if sum > 63 => prop_assert_eq!(made, Err(LayoutError::TooWide { bits: sum as u32 })),
            None => prop_assert!(made.is_ok()),
        }
        Ok(())
    });
}

#[test]
fn a_text_that_is_no_layout_is_refused_with_its_reason() {
    let width = |part, bits, min, max| LayoutError::Width { part, bits, min, max };
    let refused = [
        ("", LayoutError::Malformed),
        (":", LayoutError::Malformed),
        ("@", LayoutError::UnknownTick),
        ("41", LayoutError::Malformed),
        ("41:10", LayoutError::Malformed),
        ("41:10:", LayoutError::Malformed),
        (":10:12", LayoutError::Malformed),
        ("41:10:12:", LayoutError::Malformed),
        ("41:10:12:1:1", LayoutError::Malformed),
        ("a:b:c", LayoutError::Malformed),
        ("-41:10:12", LayoutError::Malformed),
        ("+41:10:12", LayoutError::Malformed),
        ("41: 10:12", LayoutError::Malformed),
        ("41:10:12 @1ms", LayoutError::Malformed),
        ("41:1_0:12", LayoutError::Malformed),
        ("0x29:10:12", LayoutError::Malformed),
        ("٤١:10:12", LayoutError::Malformed),
        ("Twitter", LayoutError::Malformed),
        ("twitter@1s", LayoutError::Malformed),
        ("41:10:12@", LayoutError::UnknownTick),
        ("41:10:12@2ms", LayoutError::UnknownTick),
        ("41:10:12@1MS", LayoutError::UnknownTick),
        ("41:10:12@ 1ms", LayoutError::UnknownTick),
        ("41:10:12@1ms@1s", LayoutError::UnknownTick),
        ("0:10:12", width(Part::Timestamp, 0, 1, 62)),
        ("63:0:1", width(Part::Timestamp, 63, 1, 62)),
        ("4294967296:10:12", width(Part::Timestamp, u32::MAX, 1, 62)),
        ("20:32:1:12", width(Part::Datacenter, 32, 0, 31)),
        ("41:32:12", width(Part::Worker, 32, 0, 31)),
        ("41:10:0", width(Part::Sequence, 0, 1, 31)),
        ("20:10:32", width(Part::Sequence, 32, 1, 31)),
        ("42:10:12", LayoutError::TooWide { bits: 64 }),
        ("50:10:12", LayoutError::TooWide { bits: 72 }),
        ("62:31:31:31", LayoutError::TooWide { bits: 155 }),
    ];
    for (text, reason) in refused {
        assert_eq!(Layout::parse(text), Err(reason), "{text:?}");
    }
}

#[test]
fn equal_layouts_have_several_spellings() {
    for text in ["twitter", "41:10:12", " 41:10:12\n", "41:10:12@1ms", "041:10:012"] {
        assert_eq!(Layout::parse(text), Ok(Layout::TWITTER), "{text:?}");
    }
    assert_ne!(Layout::parse("41:0:10:12"), Ok(Layout::TWITTER), "a datacenter field of no bits is still a field");
    assert_ne!(Layout::parse("39:16:8@10ms"), Ok(Layout::SONYFLAKE), "Sonyflake's fields stand in another order");
}

#[test]
fn no_text_makes_the_parser_panic_and_what_it_accepts_reads_back() {
    let near = "[0-9]{0,3}(:[0-9]{0,3}){0,4}(@(1ms|10ms|1s|.?))?";
    let text = prop_oneof![any::<String>(), "[0-9:@ ms+-]{0,24}", near];
    forall(10_000, text, |text| {
        if let Ok(layout) = Layout::parse(&text) {
            prop_assert_eq!(Layout::parse(&layout.to_string()), Ok(layout));
        }
        Ok(())
    });
}

#[test]
fn presets_are_what_the_systems_of_that_name_use() {
    assert_eq!(Preset::ALL.map(|preset| preset.name), PRESETS.map(|(name, ..)| name));
    for (name, shape, epoch) in PRESETS {
        let preset = Preset::named(name).unwrap();
        assert_eq!(preset.layout, Layout::parse(name).unwrap());
        assert_eq!(preset.epoch.unix_ms(), epoch);
        assert_eq!(preset.layout.max(Part::Timestamp), largest(shape.timestamp));
        assert_eq!(preset.layout.max(Part::Worker), largest(shape.worker));
        assert_eq!(preset.layout.max(Part::Sequence), largest(shape.sequence));
        assert_eq!(preset.layout.tick(), shape.tick);
    }
    assert_eq!(Preset::named("twitter "), None);
}

/// The example of Wikipedia's article "Snowflake ID": a tweet of 2022-06-28 16:07:40.105 UTC by machine 378.
#[test]
fn the_default_reads_a_published_snowflake() {
    let id = 1_541_815_603_606_036_480;
    let parts = Layout::TWITTER.split(id);
    assert_eq!(parts, Parts { tick: 367_597_485_448, node: Node { datacenter: 0, worker: 378 }, sequence: 0 });
    let scheme = Scheme { layout: Layout::TWITTER, epoch: Epoch::TWITTER };
    assert_eq!(scheme.instant(parts.tick), 1_656_432_460_105_000);
    assert_eq!(scheme.join(1_656_432_460_105_000, parts.node, 0), Ok(id));
}

/// The same, in Sonyflake's order of fields: 2014-09-01 00:00:02.56 UTC, sequence 3, machine 258.
#[test]
fn sonyflake_keeps_its_sequence_above_the_machine() {
    let id = (256 * 256 + 3) * 65_536 + 258;
    let parts = Layout::SONYFLAKE.split(id);
    assert_eq!(parts, Parts { tick: 256, node: Node { datacenter: 0, worker: 258 }, sequence: 3 });
    assert_eq!(Layout::SONYFLAKE.stamp(parts.node).unwrap().id(256 * 256 + 3), id);
}

#[test]
fn numbers_cover_both_ends_of_a_field() {
    // A control of the generators above: what never draws an end tests no boundary.
    let seen = std::cell::RefCell::new([false; 2]);
    forall(200, number(31), |value| {
        seen.borrow_mut()[0] |= value == 0;
        seen.borrow_mut()[1] |= value == largest(31);
        Ok(())
    });
    assert_eq!(seen.into_inner(), [true; 2]);
}
