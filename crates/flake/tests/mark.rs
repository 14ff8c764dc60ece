//! The mark: no ID above it, in any layout, was issued below it.

mod common;

use common::{Shape, fields, forall, formats, nodes, number, shapes};
use flake::{Mark, Node, Stamp, Tick};
use proptest::prelude::*;

fn stamp(shape: Shape, node: Node) -> Stamp {
    shape.layout().stamp(node).unwrap()
}

/// The ID of a word, digit by digit.
fn id(shape: Shape, node: Node, word: u64) -> u64 {
    shape.id(word / shape.capacity(), node, word % shape.capacity()) as u64
}

/// A layout, a node, and a ceiling: the word after one that the layout has, or 0.
fn ceilings() -> impl Strategy<Value = (Shape, Node, u64)> {
    shapes().prop_flat_map(|shape| {
        fields(shape).prop_flat_map(move |(tick, node, sequence)| {
            let after = tick * shape.capacity() + sequence + 1;
            (Just(shape), Just(node), prop_oneof![1 => Just(0), 9 => Just(after)])
        })
    })
}

/// Any mark that a store can hold.
fn marks() -> impl Strategy<Value = Mark> {
    prop_oneof![1 => Just(Mark::MAX), 1 => Just(Mark::NOTHING_ISSUED), 8 => number(63).prop_map(|id| id.max(1)).prop_map(stored)]
}

fn stored(value: u64) -> Mark {
    Mark::stored(value).unwrap()
}

#[test]
fn the_mark_above_a_ceiling_is_one_above_the_id_of_the_word_below_it_and_issuing_goes_on_there() {
    forall(2_000, ceilings(), |(shape, node, ceiling)| {
        let stamp = stamp(shape, node);
        let mark = Mark::above(&stamp, ceiling);
        let expected = if ceiling == 0 { 1 } else { id(shape, node, ceiling - 1) + 1 };
        prop_assert_eq!(mark.value(), expected);
        prop_assert_eq!(Mark::stored(mark.value()), Some(mark), "a store can hold it");
        // Only the ID 0 is below every mark.
        let no_zero = u64::from(ceiling == 0 && node == Node::default());
        prop_assert_eq!(mark.first_word(&stamp, shape.words() - 1), ceiling + no_zero);
        Ok(())
    });
}

#[test]
fn no_id_is_made_again_whatever_layout_epoch_and_node_come_next() {
    // The epoch is irrelevant: it decides which word is due at the clock, and the test looks at all words from the first on.
    let cases = (ceilings(), formats(), any::<[u64; 3]>())
        .prop_flat_map(|(before, (shape, _), raw)| (Just(before), Just(shape), nodes(shape), Just(raw)));
    forall(4_000, cases, |((before, old_node, ceiling), shape, node, raw)| {
        let mark = Mark::above(&stamp(before, old_node), ceiling);
        let first = mark.first_word(&stamp(shape, node), shape.words() - 1);
        prop_assert!(first <= shape.words());
        let left = shape.words() - first;
        let later = raw.map(|raw| first + raw % left.max(1));
        for word in later.into_iter().chain([first, shape.words() - 1]).filter(|_| left > 0) {
            let new = id(shape, node, word);
            prop_assert!(new >= mark.value(), "{new} of word {word} is below the mark {mark:?}");
            let mut issued = raw.iter().map(|raw| raw % ceiling.max(1)).chain([ceiling.saturating_sub(1)]);
            prop_assert!(ceiling == 0 || issued.all(|old| id(before, old_node, old) < new));
        }
        // No usable word is skipped.
        if let Some(skipped) = first.checked_sub(1) {
            prop_assert!(id(shape, node, skipped) < mark.value(), "begins at {first}, could at {skipped}");
        }
        Ok(())
    });
}

#[test]
fn the_first_word_is_the_first_at_or_above_any_mark() {
    let cases = (shapes(), marks()).prop_flat_map(|(shape, mark)| (Just(shape), nodes(shape), Just(mark)));
    forall(4_000, cases, |(shape, node, mark)| {
        let first = mark.first_word(&stamp(shape, node), shape.words() - 1);
        prop_assert!(first <= shape.words());
        prop_assert!(first == shape.words() || id(shape, node, first) >= mark.value());
        prop_assert!(first == 0 || id(shape, node, first - 1) < mark.value());
        Ok(())
    });
}

#[test]
fn a_store_holds_marks_from_1_to_the_one_above_the_largest_bigint() {
    assert_eq!(Mark::stored(0), None, "what no store was given");
    assert_eq!(Mark::stored(1), Some(Mark::NOTHING_ISSUED));
    assert_eq!(Mark::stored(i64::MAX as u64).map(Mark::value), Some(i64::MAX as u64));
    assert_eq!(Mark::stored(i64::MAX as u64 + 1), Some(Mark::MAX));
    assert_eq!(Mark::stored(i64::MAX as u64 + 2), None);
    assert_eq!(Mark::stored(u64::MAX), None);
}

#[test]
fn the_largest_mark_leaves_no_word() {
    // The largest possible ID: 63 ones.
    let shape =
        Shape { timestamp: 41, datacenter: None, worker: 10, sequence: 12, tick: Tick::Ms1, sequence_lowest: true };
    let stamp = stamp(shape, Node { datacenter: 0, worker: 1_023 });
    assert_eq!(Mark::above(&stamp, shape.words()), Mark::MAX);
    assert_eq!(Mark::MAX.first_word(&stamp, shape.words() - 1), shape.words());
    assert_eq!(stored(i64::MAX as u64).first_word(&stamp, shape.words() - 1), shape.words() - 1);
}
