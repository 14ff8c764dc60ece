//! The segment of a tag in one thread: a comparison with a plain list of numbers, and what the list does not show.

use std::collections::VecDeque;

use flake::{Block, MAX_BLOCK, Segment, Span, Undrawn};
use proptest::prelude::*;

fn block(first: i64, length: u64, fetch_below: u64) -> Block {
    Block { first, length, fetch_below }
}

fn draw(segment: &Segment) -> Result<i64, Undrawn> {
    segment.draw(1).map(|drawn| drawn.number)
}

#[test]
fn each_block_asks_once_for_the_next() {
    for (below, at) in [(1, 9), (3, 7), (10, 0), (99, 0), (0, 9)] {
        let segment = Segment::default();
        segment.open(1, block(1, 10, below));
        let asked: Vec<usize> = (0..10).filter(|_| segment.draw(1).is_ok_and(|drawn| drawn.fetch)).collect();
        assert_eq!(asked, [at], "with {below} numbers left");
    }
}

#[test]
fn the_longest_block_and_the_largest_numbers_fit() {
    let segment = Segment::default();
    segment.open(1, block(i64::MAX - 1, 2, 1));
    assert_eq!([draw(&segment), draw(&segment), draw(&segment)], [Ok(i64::MAX - 1), Ok(i64::MAX), Err(Undrawn::Dry)]);
    assert!(segment.put(block(-5, MAX_BLOCK, 1)));
    assert_eq!(draw(&segment), Ok(-5));
    assert_eq!(segment.left().count(), MAX_BLOCK - 1);
}

#[test]
#[should_panic(expected = "the length of a block")]
fn a_block_that_is_too_long_is_refused() {
    Segment::default().open(1, block(1, MAX_BLOCK + 1, 1));
}

/// What the registrar and a session do.
#[derive(Clone, Debug)]
enum SegmentAction {
    Draw,
    Put(u64),
    Close,
    Open(u64),
}

fn action() -> impl Strategy<Value = SegmentAction> {
    prop_oneof![
        6 => Just(SegmentAction::Draw),
        2 => (1..5_u64).prop_map(SegmentAction::Put),
        1 => Just(SegmentAction::Close),
        1 => (1..5_u64).prop_map(SegmentAction::Open),
    ]
}

proptest! {
    #[test]
    fn a_segment_is_a_list_of_two_blocks(actions in prop::collection::vec(action(), 1..200)) {
        let segment = Segment::default();
        let (mut blocks, mut closed, mut version, mut next) = (VecDeque::<VecDeque<i64>>::new(), true, 0_u64, 1_i64);
        let mut give = |length: u64| {
            // Another server has the numbers in between.
            let first = next + 3;
            next = first + length as i64;
            (block(first, length, 1), (first..next).collect::<VecDeque<i64>>())
        };
        for action in actions {
            match action {
                SegmentAction::Draw => {
                    while blocks.len() == 2 && blocks[0].is_empty() {
                        blocks.pop_front();
                    }
                    let expected = match closed {
                        true => Err(Undrawn::Closed),
                        false => blocks[0].pop_front().ok_or(Undrawn::Dry),
                    };
                    // A session of the tag that the segment served before draws nothing.
                    prop_assert_eq!(segment.draw(version.wrapping_sub(1)), Err(Undrawn::Closed));
                    prop_assert_eq!(segment.draw(version).map(|drawn| drawn.number), expected);
                }
                SegmentAction::Put(length) => {
                    let (block, numbers) = give(length);
                    let room = !closed && blocks.len() < 2;
                    prop_assert_eq!(segment.put(block), room);
                    if room {
                        blocks.push_back(numbers);
                    }
                }
                SegmentAction::Close => {
                    segment.close();
                    closed = true;
                }
                SegmentAction::Open(length) if closed => {
                    let (block, numbers) = give(length);
                    version += 1;
                    segment.open(version, block);
                    (blocks, closed) = ([numbers].into(), false);
                }
                SegmentAction::Open(_) => {}
            }
            prop_assert_eq!(segment.is_closed(), closed);
            let left = segment.left();
            let numbers = |span: Span| span.first..span.first + span.count as i64;
            let numbers: Vec<i64> = [left.current, left.next].into_iter().flat_map(numbers).collect();
            prop_assert_eq!(left.count(), numbers.len() as u64);
            prop_assert_eq!(numbers, blocks.iter().flatten().copied().collect::<Vec<_>>());
        }
    }
}
