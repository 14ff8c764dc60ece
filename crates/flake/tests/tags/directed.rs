//! Schedules, step by step, in which one rule decides. Each one holds with all rules, and draws a number twice without the rule.

use std::convert::Infallible;

use flake::fleet::{Begun, Kept, LAST_NUMBER, NoBlock, ReportAnswer, TagBlock, Tags, Uuid, lost_windows};
use flake::segment_refill::{Arrival, Decision, Reason, Refill, TakeAnswer, Taken};

use crate::faults::TagFault;
use crate::world::{GAP, PERIOD, TagFailure, TagSetup, TagWorld};

fn world(fault: TagFault) -> TagWorld {
    TagWorld::new(TagSetup {
        fault,
        servers: 2,
        step: 10,
        max_step: 10,
        start: 1,
        period: None,
        strict: fault == TagFault::None,
    })
}

/// Runs a schedule with all rules and without one.
#[track_caller]
fn needed(fault: TagFault, schedule: impl Fn(&mut TagWorld)) {
    for fault in [TagFault::None, fault] {
        let mut world = world(fault);
        schedule(&mut world);
        let kind = world.failure.as_ref().map(TagFailure::kind);
        assert_eq!(kind, (fault != TagFault::None).then_some("duplicate"), "{fault:?}: {:?}", world.failure);
    }
}

impl TagWorld {
    /// A server takes a block of a tag.
    fn get(&mut self, server: usize, tag: usize) -> bool {
        let fresh = self.nonce();
        let (nonce, _) = self.request(server, tag, fresh);
        let answer = self.ask(tag, nonce, i64::MAX);
        self.hear(server, tag, nonce, &answer);
        answer.is_ok()
    }

    /// The first server takes and draws what the window has left, up to `blocks` blocks.
    fn burst(&mut self, blocks: usize) {
        for _ in 0..blocks {
            if !self.get(0, 0) {
                return;
            }
            self.draw(0, 0, i64::MAX);
        }
    }

    /// A standby without what happened since it had this state becomes the registry.
    fn promote(&mut self, state: &crate::world::StoredTags) {
        self.newest.timeline += 1;
        self.source = self.newest;
        self.state = state.clone();
    }

    /// What can be taken at most between a heartbeat and a failover that are less than a margin apart by the registry's clocks: the
    /// rest of a window, and three more windows. The schedule begins one microsecond before the first window ends.
    fn take_most(&mut self) {
        self.ahead = GAP;
        self.beat(0);
        let state = self.state.clone();
        self.ahead = 0;
        self.burst(100);
        self.time += 1;
        self.burst(100);
        self.ahead = GAP;
        self.burst(100);
        self.time += GAP;
        self.burst(100);
        self.ahead = 0;
        self.promote(&state);
    }
}

#[test]
fn a_tag_can_be_lost_two_margins_before_its_period_caught() {
    needed(TagFault::BeginMargin, |world| {
        world.setup.period = Some(2 * GAP);
        let state = world.state.clone();
        // By the clock of the registry, the period begins in one margin.
        world.ahead = GAP;
        world.begin();
        world.get(0, PERIOD);
        world.draw(0, PERIOD, i64::MAX);
        // By the clock of the next one, it begins in two.
        world.ahead = 0;
        world.promote(&state);
        world.burst(1);
        world.time += GAP;
        world.begin();
        world.get(1, PERIOD);
        world.draw(1, PERIOD, i64::MAX);
    });
}

/// A fleet that was created in place of one that was lost knows nothing of the tags of periods that had begun.
#[test]
fn a_tag_that_another_registry_has_given_out_is_not_created() {
    let now = 1_700_000_000_000_000;
    let mut tags = Tags { life: 1, floor: now, ..Tags::default() };
    let mut begin = |begins| tags.begin(now + 3 * GAP, "a", begins, 1, (1, 1), Uuid(1));
    assert_eq!(begin(now), Begun::Unknown);
    assert_eq!(begin(now + 2 * GAP - 1), Begun::Unknown);
    assert!(matches!(begin(now + 2 * GAP), Begun::Created(_)));
    assert_eq!(begin(now), Begun::Current);
}

#[test]
fn a_block_that_the_administrator_forgot_is_not_drawn_again_caught() {
    needed(TagFault::Reach, |world| {
        world.setup.strict = false;
        let state = world.state.clone();
        world.get(1, 0);
        world.promote(&state);
        world.beat(0);
        world.state.tags.open();
        world.beat(1);
        world.burst(1);
        world.draw(1, 0, i64::MAX);
    });
}

#[test]
fn four_windows_can_be_lost_within_a_margin_caught() {
    needed(TagFault::WindowFewer, |world| {
        world.time += GAP - 1;
        world.take_most();
        world.burst(1);
        assert_eq!(world.state.tags.segments["a"].next, 1 + 4 * 640 + 10 - 640 * i64::from(world.failure.is_some()));
    });
}

#[test]
fn what_is_given_back_does_not_lower_a_skip_caught() {
    needed(TagFault::Pending, |world| {
        assert!(world.get(1, 0));
        world.time += 3 * GAP;
        assert!(world.get(1, 0));
        world.time += GAP - 1;
        world.take_most();
        world.close(1, 0);
        for message in std::mem::take(&mut world.wire) {
            let crate::world::Message::GiveBack { tag, rest } = message else { panic!("{message:?}") };
            world.give_back(tag, &rest);
        }
        world.burst(2);
    });
}

#[test]
fn a_skip_is_longer_the_older_the_state_is_caught() {
    needed(TagFault::Since, |world| {
        world.beat(0);
        let state = world.state.clone();
        for _ in 0..6 {
            world.burst(100);
            world.time += GAP;
        }
        world.promote(&state);
        world.burst(1);
    });
}

#[test]
fn a_tag_gives_no_more_than_its_limit_in_a_window_caught() {
    needed(TagFault::Window, |world| {
        world.beat(0);
        let state = world.state.clone();
        world.burst(400);
        world.promote(&state);
        world.burst(1);
    });
}

#[test]
fn no_new_window_begins_when_the_clock_is_set_back_caught() {
    needed(TagFault::WindowClock, |world| {
        world.beat(0);
        let state = world.state.clone();
        for ahead in [GAP, GAP - 1, GAP - 2, GAP - 3, GAP - 4] {
            world.ahead = ahead;
            world.burst(100);
        }
        world.promote(&state);
        world.burst(1);
    });
}

#[test]
fn a_window_from_a_clock_of_a_later_year_ends() {
    let mut world = world(TagFault::None);
    let (time, year) = (world.time, 40_000 * GAP);
    world.time += year;
    world.burst(100);
    world.time = time;
    assert!(world.get(0, 0));
    // Within a margin, the window goes on.
    world.burst(100);
    world.time -= GAP;
    assert!(!world.get(0, 0));
}

#[test]
fn the_words_of_an_administrator_come_before_the_first_block() {
    let mut world = world(TagFault::None);
    world.create(1);
    world.burst(1);
    world.promote(&world.state.clone());
    // The first tag gives a block before the administrator says that nothing was lost, and the second one does not.
    world.burst(1);
    world.open();
    let nonce = world.nonce();
    let block = world.ask(1, nonce, 1).expect("a block");
    assert_eq!((block.first, block.count), (1, 10));
    assert_eq!(world.state.tags.segments["a"].next, 11 + 4 * 640 + 10);
}

#[test]
fn a_server_with_two_blocks_gives_both_back() {
    let mut world = world(TagFault::None);
    assert!(world.get(0, 0) && world.get(0, 0));
    world.draw(0, 0, 4);
    world.close(0, 0);
    for message in std::mem::take(&mut world.wire) {
        let crate::world::Message::GiveBack { tag, rest } = message else { panic!("{message:?}") };
        world.give_back(tag, &rest);
        // A second copy of the call changes nothing.
        let state = world.state.clone();
        world.give_back(tag, &rest);
        assert_eq!(world.state.tags, state.tags);
    }
    assert_eq!(world.state.tags.segments["a"].next, 5);
}

/// A server that takes the same numbers again and again, because it has few slots, does not use up the window.
#[test]
fn numbers_that_are_given_back_do_not_count() {
    let mut tags = Tags { life: 1, ..Tags::default() };
    let generation = tags.create(0, "a", 1, (10, 10), Uuid(1)).expect("a new tag");
    for nonce in (2..).step_by(2).take(100) {
        let block = tags.take(0, "a", Uuid(nonce), 10).expect("the window has numbers left");
        assert_eq!((block.first, block.count), (1, 10));
        assert_eq!(tags.give_back("a", generation, block.nonce, (1, 10), Uuid(nonce + 1)), Ok(()));
    }
    // The highest number of a window is still limited.
    let taken = (1_000..).map_while(|nonce| tags.take(0, "a", Uuid(nonce), 10).ok());
    assert_eq!(taken.last().map(|block| block.first + block.count), Some(641));
}

#[test]
fn a_tag_ends_at_the_last_number() {
    let mut tags = Tags { life: 1, ..Tags::default() };
    let generation = tags.create(0, "a", LAST_NUMBER - 4, (3, 100), Uuid(1)).expect("a new tag");
    assert_eq!(tags.create(0, "a", 1, (1, 1), Uuid(1)), None);
    let mut take = |nonce| tags.take(0, "a", Uuid(nonce), 1);
    let block = |nonce, first, count| Ok(TagBlock { generation, nonce: Uuid(nonce), first, count });
    assert_eq!(take(2), block(2, LAST_NUMBER - 4, 3));
    assert_eq!(take(2), block(2, LAST_NUMBER - 4, 3));
    assert_eq!(take(3), block(3, LAST_NUMBER - 1, 2));
    assert_eq!(take(4), Err(NoBlock::Exhausted));
    // What is given back can be taken again.
    assert_eq!(tags.give_back("a", generation, Uuid(3), (LAST_NUMBER, LAST_NUMBER), Uuid(9)), Ok(()));
    assert_eq!(tags.take(0, "a", Uuid(5), 1), block(5, LAST_NUMBER, 1));
    // A skip does not go beyond the end.
    tags.begin_life(i64::MAX, i64::MIN, 1, u32::MAX, false);
    assert_eq!(tags.take(0, "a", Uuid(6), 1), Err(NoBlock::Exhausted));
    assert_eq!(tags.report("a", generation, LAST_NUMBER, Uuid(9)), ReportAnswer::Current);
    assert!(tags.drop("a") && !tags.drop("a"));
    assert_eq!(tags.take(0, "a", Uuid(7), 1), Err(NoBlock::UnknownTag));
    assert_eq!(tags.give_back("a", generation, Uuid(5), (1, 1), Uuid(9)), Err(Kept::UnknownTag));
    assert!(tags.create(0, "a", 1, (1, 1), Uuid(1)) > Some(generation));
    assert_eq!(tags.give_back("a", generation, Uuid(5), (1, 1), Uuid(9)), Err(Kept::Generation));
    assert_eq!(tags.report("a", generation, 1, Uuid(9)), ReportAnswer::Generation);
}

#[test]
fn a_reported_block_is_above_nothing_that_was_not_lost() {
    let mut world = world(TagFault::None);
    let state = world.state.clone();
    world.burst(3);
    let generation = world.state.tags.segments["a"].generation;
    assert_eq!(world.report(0, generation, 30), ReportAnswer::Current);
    assert_eq!(world.report(0, generation, 31), ReportAnswer::Ahead);
    world.promote(&state);
    assert_eq!(world.report(0, generation, 30), ReportAnswer::Raised);
    assert_eq!(world.report(0, generation, 30), ReportAnswer::Current);
    assert_eq!(world.report(0, generation, 1 + 8 * 640), ReportAnswer::Ahead);
    // The administrator's word comes too late for this tag.
    world.state.tags.open();
    assert!(world.get(1, 0));
    assert_eq!(world.servers[1].slots[0].segment.left().current.first, 1 + 4 * 640);
}

#[test]
fn the_number_of_lost_windows_never_overflows() {
    assert_eq!(lost_windows(-1, 1), 4);
    assert_eq!(lost_windows(GAP - 1, 1), 4);
    assert_eq!(lost_windows(GAP, 1), 5);
    assert_eq!(lost_windows(GAP, 2), 18);
    assert_eq!(lost_windows(i64::MAX, u32::MAX), i64::MAX);
}

/// A refusal decides when the request is sent again, and whether the sessions lose their segment.
#[test]
fn a_refused_request_is_sent_again_when_this_can_help() {
    let second = 1_000_000_000;
    let refused = |reason, until, empty| {
        let mut refill = Refill::default();
        let Ok((nonce, _)) = refill.request(None, || Ok::<_, Infallible>(Uuid(1)));
        let arrival = Arrival { now: second, wall: 5_000_000, empty, ..Arrival::default() };
        let refused = refill.answer(nonce, TakeAnswer::Refused(reason, until), &arrival);
        let Decision::Refuse(refusal) = refused else { panic!("{refused:?}") };
        assert_eq!(refusal.again, refill.retry().is_some());
        assert!(refill.retry().is_none_or(|retry| !refill.is_due(retry - 1) && refill.is_due(retry)));
        (refusal.closes, refill.retry().map(|retry| retry - second))
    };
    assert_eq!(refused(Reason::Wait, 9_000_000, true), (true, None));
    assert_eq!(refused(Reason::Wait, 9_000_000, false), (false, Some(4 * second)));
    assert_eq!(refused(Reason::Wait, 0, false), (false, Some(second / 10)));
    assert_eq!(refused(Reason::Wait, i64::MAX, false), (false, Some(1_200 * second)));
    for reason in [Reason::Locked, Reason::Encoding] {
        assert_eq!([true, false].map(|empty| refused(reason, 0, empty)), [(true, None), (false, Some(2 * second))]);
    }
    assert_eq!([true, false].map(|empty| refused(Reason::Exhausted, 0, empty)), [(true, None), (false, None)]);
    assert_eq!([true, false].map(|empty| refused(Reason::Unknown, 0, empty)), [(true, None); 2]);
}

/// A request without an answer keeps its nonce, and the length of a block follows from the time that the last one lasted.
#[test]
fn a_request_is_repeated_until_it_is_answered() {
    let mut refill = Refill::default();
    let minute = 60_000_000_000;
    let request = |refill: &mut Refill, lasted, nonce| refill.request(lasted, || nonce);
    assert_eq!(request(&mut refill, None, Err("no registry")), Err("no registry"));
    assert_eq!(request(&mut refill, None, Ok(Uuid(1))), Ok((Uuid(1), 1)));
    assert_eq!(request(&mut refill, None, Ok(Uuid(2))), Ok((Uuid(1), 1)));
    let taken = TakeAnswer::Taken(Taken { generation: 7, first: 1, count: 10, step: 10, max_step: 100 });
    let arrival = Arrival { generation: 6, ..Arrival::default() };
    assert_eq!(refill.answer(Uuid(2), taken, &arrival), Decision::Ignored);
    let Decision::Install(fetched) = refill.answer(Uuid(1), taken, &arrival) else { panic!("no block") };
    assert!(fetched.replaces);
    refill.installed(&fetched);
    assert_eq!(request(&mut refill, Some(20 * minute), Ok(Uuid(2))), Ok((Uuid(2), 10)));
    assert_eq!(request(&mut refill, Some(10 * minute), Ok(Uuid(3))), Ok((Uuid(2), 20)));
    assert_eq!(request(&mut refill, Some(40 * minute), Ok(Uuid(3))), Ok((Uuid(2), 5)));
}
