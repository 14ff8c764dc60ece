//! The segment of a tag under every order of its atomics that loom can find:
//! `RUSTFLAGS="--cfg loom" cargo test -p flake --test loom_segment --release --target-dir target/loom`
#![cfg(loom)]

mod models;

use flake::{Block, OrderedStep, Segment, Span, Undrawn};
use loom::sync::Arc;
use loom::thread;
use models::{caught, explore};

/// The tag that is served first, and the one that is served after it.
const FIRST: u64 = 1;
const SECOND: u64 = 2;

fn block(first: i64, length: u64) -> Block {
    Block { first, length, fetch_below: 1 }
}

fn segment(weak: Option<OrderedStep>) -> Segment {
    weak.map_or_else(Segment::default, Segment::weakened)
}

fn draw(segment: &Segment, version: u64) -> Option<i64> {
    segment.draw(version).ok().map(|drawn| drawn.number)
}

/// All numbers that were drawn are of the given spans, each of them once, and together with what is left they are all of them.
fn check(mut drawn: Vec<i64>, segment: &Segment, given: &[(i64, u64)]) {
    let mut all: Vec<i64> = given.iter().flat_map(|&(first, count)| first..first + count as i64).collect();
    let left = segment.left();
    let numbers = |span: Span| span.first..span.first + span.count as i64;
    assert!(drawn.iter().all(|number| all.contains(number)), "a number is of no block: {drawn:?}");
    drawn.extend([left.current, left.next].into_iter().flat_map(numbers));
    drawn.sort();
    all.sort();
    assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]), "a number was drawn twice: {drawn:?}");
    assert_eq!(drawn, all, "numbers were lost");
}

/// Sessions draw while the registrar puts the third block into the cell of the first one.
fn putting(sessions: usize, draws: usize, preemptions: Option<usize>, weak: Option<OrderedStep>) {
    explore(preemptions, move || {
        let segment = Arc::new(segment(weak));
        segment.open(FIRST, block(10, 1));
        assert!(segment.put(block(20, 1)));
        let mut drawn = vec![draw(&segment, FIRST).expect("the first block has a number")];
        let drawing = || {
            let segment = segment.clone();
            thread::spawn(move || (0..draws).filter_map(|_| draw(&segment, FIRST)).collect::<Vec<i64>>())
        };
        let threads: Vec<_> = (0..sessions).map(|_| drawing()).collect();
        while !segment.put(block(30, 2)) {
            thread::yield_now();
        }
        threads.into_iter().for_each(|thread| {
            let numbers = thread.join().unwrap();
            // The blocks are put in ascending order.
            assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "a session goes back: {numbers:?}");
            drawn.extend(numbers);
        });
        check(drawn, &segment, &[(10, 1), (20, 1), (30, 2)]);
    });
}

#[test]
fn a_session_draws_every_number_once_while_blocks_are_put() {
    putting(1, 3, None, None);
}

#[test]
fn two_sessions_draw_every_number_once_while_blocks_are_put() {
    putting(2, 2, Some(3), None);
}

/// Sessions draw while the registrar closes the segment and takes what is left.
fn closing(sessions: usize, fault: bool) {
    explore(Some(3), move || {
        let segment = Arc::new(segment(None));
        segment.open(FIRST, block(10, 2));
        assert!(segment.put(block(20, 2)));
        let drawing = || {
            let segment = segment.clone();
            thread::spawn(move || (0..2).filter_map(|_| draw(&segment, FIRST)).collect::<Vec<i64>>())
        };
        let threads: Vec<_> = (0..sessions).map(|_| drawing()).collect();
        let early = segment.left();
        segment.close();
        let left = if fault { early } else { segment.left() };
        let drawn: Vec<i64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let given_back = |number: &i64| {
            let within = |span: Span| (span.first..span.first + span.count as i64).contains(number);
            within(left.current) || within(left.next)
        };
        assert!(!drawn.iter().any(given_back), "a number was drawn and given back: {drawn:?}, {left:?}");
        check(drawn, &segment, &[(10, 2), (20, 2)]);
        assert_eq!(segment.draw(FIRST), Err(Undrawn::Closed));
    });
}

#[test]
fn what_a_session_has_drawn_is_not_given_back() {
    closing(1, false);
}

#[test]
fn what_two_sessions_have_drawn_is_not_given_back() {
    closing(2, false);
}

#[test]
fn looking_at_what_is_left_before_closing_is_caught() {
    caught("a number was drawn and given back", || closing(2, true));
}

/// Sessions of two tags draw while the registrar gives the segment to the second one.
fn changing_hands(sessions: usize, preemptions: Option<usize>, weak: Option<OrderedStep>) {
    explore(preemptions, move || {
        let segment = Arc::new(segment(weak));
        segment.open(FIRST, block(10, 2));
        let drawing = |version| {
            let segment = segment.clone();
            thread::spawn(move || [draw(&segment, version), draw(&segment, version)])
        };
        let threads: Vec<_> = [FIRST, SECOND].into_iter().take(sessions).map(|tag| (tag, drawing(tag))).collect();
        segment.close();
        segment.open(SECOND, block(50, 2));
        for (tag, thread) in threads {
            for number in thread.join().unwrap().into_iter().flatten() {
                assert_eq!(number < 50, tag == FIRST, "a session of tag {tag} drew {number}");
            }
        }
    });
}

#[test]
fn a_session_draws_only_numbers_of_its_own_tag() {
    changing_hands(1, None, None);
}

#[test]
fn two_sessions_draw_only_numbers_of_their_own_tags() {
    changing_hands(2, Some(3), None);
}

#[test]
fn opening_without_release_is_caught() {
    caught("a session of tag 1 drew 50", || changing_hands(1, None, Some(OrderedStep::Open)));
}

#[test]
fn putting_without_release_is_caught() {
    caught("a session goes back", || putting(1, 3, None, Some(OrderedStep::Put)));
}

#[test]
fn looking_without_acquire_is_caught() {
    caught("a session goes back", || putting(1, 3, None, Some(OrderedStep::Look)));
}

#[test]
fn reading_without_acquire_is_caught() {
    caught("a number was drawn twice", || putting(2, 2, Some(3), Some(OrderedStep::Read)));
}

#[test]
fn failing_without_acquire_is_caught() {
    caught("a number was drawn twice", || putting(2, 2, Some(3), Some(OrderedStep::Fail)));
}

#[test]
fn moving_without_release_is_caught() {
    caught("a session goes back", || putting(2, 2, Some(3), Some(OrderedStep::Move)));
}
