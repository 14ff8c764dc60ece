//! Bulk requests do not starve single requests: an occasional request for one word is granted at once, whatever the size and the
//! number of the bulk requests. A bulk request is granted eventually, even if other callers take all single words.

mod common;

use common::NO_CEILING;
use flake::{Epoch, IdFormat, Layout, Limits, Nanos, Obstacle, Pace, Request, State, Tick, step};

const MS: Nanos = 1_000_000;

/// How long a step takes: fast callers, who find the layout's limit.
const STEP: Nanos = 200;

/// How long they ask.
const TIME: Nanos = 3_000 * MS;

/// One request of a caller: how many words it was granted, or until when it has to wait.
fn ask(limits: &Limits, last: &mut u64, now: Nanos, pace: Pace, request: Request) -> Result<u64, Nanos> {
    match step(*last, now, NO_CEILING, limits, pace, request) {
        Ok(run) => {
            *last = run.last();
            Ok(run.count)
        }
        Err(Obstacle::Throttled(wait)) => Err(now + wait.as_nanos() as Nanos),
        other => panic!("{other:?}"),
    }
}

/// For three seconds, some callers repeat a request, each as soon as it may, and one caller requests one word every three
/// milliseconds. Returns the longest time that this caller waited, and how many words the others were granted.
fn beside(layout: Layout, max_ahead: Nanos, callers: usize, request: Request) -> (Nanos, u64) {
    let format = IdFormat { layout, epoch: Epoch::TWITTER };
    let (limits, pace) = (Limits::of(&format), Pace { max_ahead, random_start: false, overdue: false });
    let begun = 1_700_000_000_000 * MS + 123_456;
    let (mut now, mut last, mut words) = (begun, 0, 0);
    let mut others = vec![now; callers];
    let (mut due, mut asleep, mut longest) = (now, now, 0);
    while now < begun + TIME {
        let mut ask = |request, now| ask(&limits, &mut last, now, pace, request);
        for other in others.iter_mut().filter(|asleep| **asleep <= now) {
            match ask(request, now) {
                Ok(count) => words += count,
                Err(until) => *other = until,
            }
        }
        if due <= now && asleep <= now {
            match ask(Request::UpTo(1), now) {
                Ok(_) => {
                    longest = longest.max(now - due);
                    due = now + 3 * MS;
                }
                Err(until) => asleep = until,
            }
        }
        // Nothing happens until the next of them wakes.
        let next = others.iter().copied().chain([due.max(asleep)]).min().unwrap_or(now);
        now = next.max(now + STEP);
    }
    (longest, words)
}

fn layouts() -> [Layout; 4] {
    let layout = |timestamp, sequence, tick| Layout::of(timestamp, None, 10, sequence, tick).unwrap();
    [Layout::TWITTER, layout(37, 12, Tick::Ms10), layout(31, 22, Tick::S1), layout(31, 13, Tick::S1)]
}

#[test]
fn a_single_word_is_granted_at_once_beside_any_number_of_bulk_callers() {
    for layout in layouts() {
        for max_ahead in [2 * MS, 100 * MS, 1_000 * MS] {
            let limits = Limits::of(&IdFormat { layout, epoch: Epoch::TWITTER });
            let most = limits.largest_grant(Pace { max_ahead, random_start: false, overdue: false });
            for callers in [1, 5, 60] {
                for request in [Request::InOneTick(most), Request::UpTo(u64::MAX), Request::UpTo(50)] {
                    let (longest, words) = beside(layout, max_ahead, callers, request);
                    let what = format!("{layout}, {max_ahead} ahead, {callers} callers, {request:?}");
                    assert!(longest <= 2 * STEP, "{what}: waited {longest} ns");
                    // The bulk callers are served, too.
                    assert!(words > layout.sequence_capacity() / 8, "{what}: {words} words");
                }
            }
        }
    }
}

#[test]
fn bulk_callers_reach_what_the_layout_holds() {
    for layout in layouts() {
        let (_, words) = beside(layout, 100 * MS, 5, Request::UpTo(u64::MAX));
        let whole = TIME / layout.tick().nanos() * layout.sequence_capacity();
        assert!(words as f64 > whole as f64 * 0.95, "{layout}: {words} of {whole}");
    }
}

#[test]
fn callers_who_take_all_of_the_run_ahead_are_noticed() {
    // The control: one word at a time takes all that single words may.
    let layout = Layout::of(41, None, 10, 4, Tick::Ms1).unwrap();
    let (longest, _) = beside(layout, 100 * MS, 5, Request::UpTo(1));
    assert!(longest > 5 * MS, "waited {longest} ns");
}

/// One caller repeats a bulk request, while others take single words without a pause. Returns how often the bulk request is
/// granted in two seconds. If `overdue` is set, it is made like a request for one word after it has waited for `max_ahead`, as
/// sessions do.
fn granted_beside_singles(layout: Layout, callers: usize, request: Request, overdue: bool) -> u64 {
    let limits = Limits::of(&IdFormat { layout, epoch: Epoch::TWITTER });
    let state = State::new();
    let begun = 1_700_000_000_000 * MS + 123_456;
    let (mut now, mut last, mut granted) = (begun, 0, 0);
    let mut others = vec![now; callers];
    let (mut asleep, mut since) = (now, None);
    while now < begun + TIME {
        let mut ask = |request, overdue, now| {
            let pace = Pace { max_ahead: 100 * MS, random_start: false, overdue };
            ask(&limits, &mut last, now, pace, request)
        };
        for other in others.iter_mut().filter(|asleep| **asleep <= now) {
            if let Err(until) = ask(Request::UpTo(1), false, now) {
                *other = until;
            }
        }
        if asleep <= now {
            let late = since.is_some_and(|since| now - since >= 100 * MS) && overdue && state.takes_overdue(now);
            match ask(request, late, now) {
                Ok(count) => {
                    // Not while the lead builds up.
                    granted += u64::from(now > begun + TIME / 3);
                    since = None;
                    if late {
                        state.granted_overdue(now, limits.span(count));
                    }
                }
                Err(until) => {
                    since = since.or(Some(now));
                    asleep = until;
                }
            }
        }
        let next = others.iter().copied().chain([asleep]).min().unwrap_or(now);
        now = next.max(now + STEP);
    }
    granted
}

#[test]
fn callers_who_take_all_single_words_do_not_keep_blocks_waiting_for_ever() {
    for (timestamp, sequence, tick) in [(41, 6, Tick::Ms1), (37, 10, Tick::Ms10), (31, 10, Tick::S1)] {
        let layout = Layout::of(timestamp, None, 10, sequence, tick).unwrap();
        for callers in [1, 3, 20] {
            let found = [true, false].map(|overdue| {
                let request = Request::InOneTick(16);
                granted_beside_singles(layout, callers, request, overdue)
            });
            // Within twice the run-ahead, or in a tick where those are longer.
            let least = if tick == Tick::S1 { 1 } else { 10 };
            assert!(found[0] >= least && found[1] == 0, "{layout} beside {callers}: {found:?} blocks");
        }
    }
}
