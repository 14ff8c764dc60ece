//! Layouts: their text form, and the conversion between words and IDs, compared with IDs written digit by digit.

mod common;

use common::{Shape, digits, fields, forall, largest, nodes, shapes, ticks};
use flake::{IdFormat, Layout, LayoutError, Node, Part, Parts, Tick};
use proptest::prelude::*;

#[test]
fn a_layout_prints_the_widths_it_was_made_of_and_reads_them_back() {
    forall(2_000, shapes(), |shape| {
        let Shape { timestamp, worker, sequence, .. } = shape;
        let datacenter = shape.datacenter.map(|bits| format!("{bits}:")).unwrap_or_default();
        let tick = match shape.tick {
            Tick::Ms1 => "",
            Tick::Ms10 => "@10ms",
            Tick::S1 => "@1s",
        };
        let low = match shape.sequence_lowest {
            true => format!("{datacenter}{worker}:{sequence}"),
            false => format!("{sequence}s:{datacenter}{worker}"),
        };
        let (layout, text) = (shape.layout(), format!("{timestamp}:{low}{tick}"));
        prop_assert_eq!(&layout.to_string(), &text);
        prop_assert_eq!(Layout::parse(&text), Ok(layout));
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
        // The nearest neighbours are the most likely to collide.
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
        prop_assert_eq!(layout.has_datacenter(), shape.datacenter.unwrap_or(0) != 0);
        prop_assert_eq!(layout.has_worker(), shape.worker != 0);
        prop_assert_eq!(layout.sequence_lowest(), shape.sequence_lowest);
        prop_assert_eq!(layout.tick(), shape.tick);
        // 1 in the lowest digit of the timestamp, zeros below it.
        let one = "1".to_string() + &digits(0, layout.timestamp_shift());
        prop_assert_eq!(shape.id(1, Node::default(), 0), i64::from_str_radix(&one, 2).unwrap());
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
        ("41s:10:12", LayoutError::Malformed),
        ("41:10:12s", LayoutError::Malformed),
        ("41:5:5:12s", LayoutError::Malformed),
        ("41:12s:5s:5", LayoutError::Malformed),
        ("41:s:10", LayoutError::Malformed),
        ("41:12ss:10", LayoutError::Malformed),
        ("41:12s", LayoutError::Malformed),
        ("twitter@1s", LayoutError::Malformed),
        ("41:10:12@", LayoutError::UnknownTick),
        ("41:10:12@2ms", LayoutError::UnknownTick),
        ("41:10:12@ 1ms", LayoutError::UnknownTick),
        ("41:10:12@1ms@1s", LayoutError::UnknownTick),
        ("0:10:12", width(Part::Timestamp, 0, 1, 62)),
        ("63:0:1", width(Part::Timestamp, 63, 1, 62)),
        ("4294967296:10:12", width(Part::Timestamp, u32::MAX, 1, 62)),
        ("20:32:1:12", width(Part::Datacenter, 32, 0, 31)),
        ("41:32:12", width(Part::Worker, 32, 0, 31)),
        ("41:10:0", width(Part::Sequence, 0, 1, 31)),
        ("41:0s:10", width(Part::Sequence, 0, 1, 31)),
        ("20:1s:32:5", width(Part::Datacenter, 32, 0, 31)),
        ("20:10:32", width(Part::Sequence, 32, 1, 31)),
        ("42:10:12", LayoutError::TooWide { bits: 64 }),
        ("41:12s:5:6", LayoutError::TooWide { bits: 64 }),
        ("50:10:12", LayoutError::TooWide { bits: 72 }),
        ("62:31:31:31", LayoutError::TooWide { bits: 155 }),
    ];
    for (text, reason) in refused {
        assert_eq!(Layout::parse(text), Err(reason), "{text:?}");
    }
}

#[test]
fn equal_layouts_have_several_spellings() {
    for text in ["41:10:12", " 41:10:12\n", "41:10:12@1ms", "041:10:012", "41:10:12@1MS"] {
        assert_eq!(Layout::parse(text), Ok(Layout::TWITTER), "{text:?}");
    }
    assert_ne!(Layout::parse("41:0:10:12"), Ok(Layout::TWITTER), "a datacenter field of no bits is still a field");
    assert_eq!(Layout::parse("39:8s:16@10ms"), Ok(Layout::SONYFLAKE));
    assert_eq!(Layout::parse("39:8S:16@10Ms"), Ok(Layout::SONYFLAKE));
    assert_ne!(Layout::parse("39:16:8@10ms"), Ok(Layout::SONYFLAKE), "Sonyflake's fields stand in another order");
}

#[test]
fn no_text_makes_the_parser_panic_and_what_it_accepts_reads_back() {
    let near = "[0-9]{0,3}(:[0-9]{0,3}s?){0,4}(@(1ms|10ms|1s|.?))?";
    let text = prop_oneof![any::<String>(), "[0-9:@ msS+-]{0,24}", near];
    forall(10_000, text, |text| {
        if let Ok(layout) = Layout::parse(&text) {
            prop_assert_eq!(IdFormat::parse(&text).map(|format| format.layout), Ok(layout));
            prop_assert_eq!(Layout::parse(&layout.to_string()), Ok(layout));
        }
        Ok(())
    });
}
