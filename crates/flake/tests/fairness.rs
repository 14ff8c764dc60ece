//! Bulk requests do not starve single requests: an occasional request for one word is granted at once, whatever the size and the
//! number of the bulk requests. A bulk request is granted eventually, even if other callers take all single words.

mod common;

use common::NO_CEILING;
use flake::{Bulk, Epoch, IdFormat, Layout, Limits, Nanos, Obstacle, Pace, Request, Tick, step};

const MS: Nanos = 1_000_000;

/// How long a step takes. It is short, so that the callers reach the limit of the layout.
const STEP: Nanos = 200;

/// When the callers begin, and how long they run.
const BEGUN: Nanos = 1_700_000_000_000 * MS + 123_456;
const TIME: Nanos = 3_000 * MS;

/// One request of a caller. Returns how many words it was granted, or the time until which it has to wait.
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

/// When a bulk request that has waited for `max_ahead` is made like a request for one word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OverdueRule {
    Never,
    /// What sessions do: unless other bulk requests are granted meanwhile.
    Sessions,
    /// Bulk requests are not told of each other's grants.
    Untold,
}

/// For three seconds, some callers repeat a request, each as soon as it can, and one caller requests one word every three
/// milliseconds. Returns the longest time that this caller waited, how often it had to wait, and how many words the others were
/// granted.
fn beside(layout: Layout, max_ahead: Nanos, callers: usize, request: Request, rule: OverdueRule) -> (Nanos, u64, u64) {
    let (limits, bulk, pace) = (limits(layout), Bulk::default(), Pace { max_ahead, ..Pace::default() });
    let (mut now, mut last, mut words) = (BEGUN, 0, 0);
    let mut others = vec![(now, None); callers];
    let (mut due, mut asleep, mut longest, mut throttled) = (now, now, 0, 0);
    while now < BEGUN + TIME {
        let mut ask = |pace, request| ask(&limits, &mut last, now, pace, request);
        for (asleep, since) in others.iter_mut().filter(|(asleep, _)| *asleep <= now) {
            let waited = since.map_or(0, |since| now - since);
            let overdue = rule != OverdueRule::Never && waited >= max_ahead && bulk.takes_overdue(now, max_ahead);
            match ask(Pace { overdue, ..pace }, request) {
                Ok(count) => {
                    *since = None;
                    words += count;
                    if overdue {
                        bulk.granted_overdue(now, limits.span(count));
                    } else if rule == OverdueRule::Sessions {
                        bulk.granted(now);
                    }
                }
                Err(until) => (*asleep, *since) = (until, since.or(Some(now))),
            }
        }
        if due <= now && asleep <= now {
            match ask(pace, Request::UpTo(1)) {
                Ok(_) => {
                    longest = longest.max(now - due);
                    due = now + 3 * MS;
                }
                Err(until) => (asleep, throttled) = (until, throttled + 1),
            }
        }
        // Nothing happens until the next caller wakes.
        let next = others.iter().map(|(asleep, _)| *asleep).chain([due.max(asleep)]).min().unwrap_or(now);
        now = next.max(now + STEP);
    }
    (longest, throttled, words)
}

fn limits(layout: Layout) -> Limits {
    Limits::of(&IdFormat { layout, epoch: Epoch::TWITTER })
}

fn layouts() -> [Layout; 4] {
    let layout = |timestamp, sequence, tick| Layout::of(timestamp, None, 10, sequence, tick).unwrap();
    [Layout::TWITTER, layout(37, 12, Tick::Ms10), layout(31, 22, Tick::S1), layout(31, 13, Tick::S1)]
}

#[test]
fn a_single_word_is_granted_at_once_beside_any_number_of_bulk_callers() {
    for layout in layouts() {
        for max_ahead in [2 * MS, 100 * MS, 1_000 * MS] {
            let most = limits(layout).largest_grant(Pace { max_ahead, ..Pace::default() });
            for callers in [1, 5, 60] {
                for request in [Request::InOneTick(most), Request::UpTo(u64::MAX), Request::UpTo(50)] {
                    let (longest, _, words) = beside(layout, max_ahead, callers, request, OverdueRule::Never);
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
        let words = beside(layout, 100 * MS, 5, Request::UpTo(u64::MAX), OverdueRule::Never).2;
        let whole = TIME / layout.tick().nanos() * layout.sequence_capacity();
        assert!(words as f64 > whole as f64 * 0.95, "{layout}: {words} of {whole}");
    }
}

#[test]
fn callers_who_take_all_of_the_run_ahead_are_noticed() {
    // The control: requests for one word at a time take all that single words are allowed.
    let layout = Layout::of(41, None, 10, 4, Tick::Ms1).unwrap();
    let longest = beside(layout, 100 * MS, 5, Request::UpTo(1), OverdueRule::Never).0;
    assert!(longest > 5 * MS, "waited {longest} ns");
}

#[test]
fn bulk_callers_are_not_overdue_because_of_each_other() {
    // The most words of one grant take half of the run-ahead, so few callers find room in 100 ms.
    let layout = Layout::of(31, None, 10, 20, Tick::S1).unwrap();
    let throttled = |callers, rule| beside(layout, 100 * MS, callers, Request::UpTo(300_000), rule).1;
    for callers in [1, 5, 60] {
        assert_eq!(throttled(callers, OverdueRule::Sessions), 0, "{callers} callers");
    }
    let control = throttled(60, OverdueRule::Untold);
    assert!(control > 0, "bulk requests that do not learn of each other's grants throttle no single words");
}

/// One caller repeats a bulk request, while others take single words without a pause. Returns how often the bulk request is
/// granted in two seconds. If `overdue` is set, it is made like a request for one word after it has waited for `max_ahead`, as
/// sessions do.
fn granted_beside_singles(layout: Layout, callers: usize, request: Request, overdue: bool) -> u64 {
    let (limits, bulk) = (limits(layout), Bulk::default());
    let (mut now, mut last, mut granted) = (BEGUN, 0, 0);
    let mut others = vec![(now, None); callers];
    let (mut asleep, mut since) = (now, None);
    while now < BEGUN + TIME {
        let mut ask = |request, overdue, since: Option<Nanos>, now| {
            let waited = since.map_or(0, |since| now - since);
            let pace = Pace { max_ahead: 100 * MS, overdue, waited, ..Pace::default() };
            ask(&limits, &mut last, now, pace, request)
        };
        for (asleep, since) in others.iter_mut().filter(|(asleep, _)| *asleep <= now) {
            match ask(Request::UpTo(1), false, *since, now) {
                Ok(_) => *since = None,
                Err(until) => (*asleep, *since) = (until, since.or(Some(now))),
            }
        }
        if asleep <= now {
            let late =
                since.is_some_and(|since| now - since >= 100 * MS) && overdue && bulk.takes_overdue(now, 100 * MS);
            match ask(request, late, since, now) {
                Ok(count) => {
                    // Grants are not counted while the lead builds up.
                    granted += u64::from(now > BEGUN + TIME / 3);
                    since = None;
                    if late {
                        bulk.granted_overdue(now, limits.span(count));
                    } else {
                        bulk.granted(now);
                    }
                }
                Err(until) => (asleep, since) = (until, since.or(Some(now))),
            }
        }
        let next = others.iter().map(|(asleep, _)| *asleep).chain([asleep]).min().unwrap_or(now);
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
            // One within twice the run-ahead, or within a tick if that is longer.
            let least = if tick == Tick::S1 { 1 } else { 10 };
            assert!(found[0] >= least && found[1] == 0, "{layout} beside {callers}: {found:?} blocks");
        }
    }
}

#[test]
fn overdue_requests_share_a_quarter_of_the_time() {
    let bulk = Bulk::default();
    assert!(bulk.takes_overdue(BEGUN, 100 * MS));
    bulk.granted_overdue(BEGUN, 10 * MS);
    assert!(!bulk.takes_overdue(BEGUN + 39 * MS, 100 * MS));
    assert!(bulk.takes_overdue(BEGUN + 40 * MS, 100 * MS));
    // The request becomes overdue again even if the monotonic clock has gone back by an hour.
    let later = BEGUN + 3_600_000 * MS;
    bulk.granted_overdue(later, 10 * MS);
    assert!(bulk.takes_overdue(BEGUN, 100 * MS));
}

#[test]
fn no_request_is_overdue_while_bulk_requests_are_granted() {
    let bulk = Bulk::default();
    bulk.granted(BEGUN);
    assert!(!bulk.takes_overdue(BEGUN + 99 * MS, 100 * MS));
    assert!(bulk.takes_overdue(BEGUN + 100 * MS, 100 * MS));
    // The caller read the clock before another caller's grant.
    assert!(!bulk.takes_overdue(BEGUN - MS, 100 * MS));
    // The request becomes overdue again even if the monotonic clock has gone back by an hour.
    bulk.granted(BEGUN + 3_600_000 * MS);
    assert!(bulk.takes_overdue(BEGUN, 100 * MS));
}
