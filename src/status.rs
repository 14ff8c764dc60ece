//! What the generator is doing, for people and for monitoring: the views' functions.

use std::sync::atomic::Ordering;

use flake::{Incidents, Mark, Nanos};
use pgrx::prelude::*;

use crate::failure::{Failure, MarkProblem};
use crate::identity::{self, Identity};
use crate::stats::{self, Count};
use crate::{announce, clock, extend, load, mark, shmem, timestamp};

/// The generator, in one row: what view `snowflake_status` shows. Nothing is loaded, written or waited for.
#[pg_extern(volatile, parallel_safe)]
#[allow(clippy::type_complexity)]
fn snowflake_status() -> TableIterator<
    'static,
    (
        name!(state, &'static str),
        name!(problem, Option<String>),
        name!(hint, Option<String>),
        name!(worker_id, Option<i32>),
        name!(datacenter_id, i32),
        name!(layout, String),
        name!(epoch, Option<TimestampWithTimeZone>),
        name!(last_id, Option<i64>),
        name!(last_id_at, Option<TimestampWithTimeZone>),
        name!(lead, Option<Interval>),
        name!(mark, Option<i64>),
        name!(mark_lead, Option<Interval>),
        name!(ids_issued, i64),
        name!(throttled_waits, i64),
        name!(throttled_time, f64),
        name!(mark_waits, i64),
        name!(mark_time, f64),
        name!(clock_waits, i64),
        name!(clock_time, f64),
        name!(retries, i64),
        name!(extensions, i64),
        name!(slowest_extension, f64),
        name!(clock_regressions, i64),
        name!(last_clock_regression, Option<Interval>),
        name!(last_clock_regression_at, Option<TimestampWithTimeZone>),
        name!(clock_jumps, i64),
        name!(last_clock_jump, Option<Interval>),
        name!(last_clock_jump_at, Option<TimestampWithTimeZone>),
        name!(exhaustion_date, Option<TimestampWithTimeZone>),
        name!(years_left, f64),
        name!(stats_reset, Option<TimestampWithTimeZone>),
    ),
> {
    let identity @ Identity { scheme, limits, .. } = identity::get();
    let (state, wall) = (shmem::state(), clock::wall());
    let (mark, problem) = condition(identity, wall);
    let phase = match (&problem, state.last()) {
        (Some(Failure::Standby), _) => "standby",
        (Some(_), _) => "refused",
        (None, Some(_)) => "issuing",
        (None, None) => "idle",
    };
    let report = problem.map(|failure| failure.report());
    let last = state.last_issued();
    let next = state.last().map(|last| state.clock().time(clock::monotonic()).max(limits.time(last)));
    let marked = mark.filter(|mark| *mark > Mark::NOTHING_ISSUED);
    let counts = stats::total();
    let count = |count| counts.get(count) as i64;
    let (regressions, jumps) = (state.clock_regressions(), state.clock_jumps());
    let size = |incidents: Incidents| (incidents.count > 0).then(|| interval(timestamp::of(incidents.size)));
    let at = |incidents: Incidents| time(incidents.at).filter(|_| incidents.count > 0);
    TableIterator::once((
        phase,
        report.as_ref().map(|report| report.message.clone()),
        report.map(|report| report.hint).filter(|hint| !hint.is_empty()),
        identity.worker_set.then_some(identity.node.worker as i32),
        identity.node.datacenter as i32,
        scheme.layout.to_string(),
        timestamp::timestamptz(scheme.instant(0)).ok(),
        last.map(|last| identity.stamp.id(last)),
        last.and_then(|last| timestamp::timestamptz(identity.instant(last)).ok()),
        next.map(|next| interval(timestamp::of(next) - timestamp::of(wall))),
        mark.map(|mark| i64::try_from(mark.value()).unwrap_or(i64::MAX)),
        marked.map(|mark| interval(identity.instant(identity.first_word(mark)) - timestamp::of(wall))),
        count(Count::Issued),
        count(Count::ThrottledWaits),
        counts.milliseconds(Count::ThrottledTime),
        count(Count::MarkWaits),
        counts.milliseconds(Count::MarkTime),
        count(Count::ClockWaits),
        counts.milliseconds(Count::ClockTime),
        count(Count::Retries),
        count(Count::Extensions),
        shmem::slowest_extension().load(Ordering::Relaxed) as f64 / 1e6,
        regressions.count as i64,
        size(regressions),
        at(regressions),
        jumps.count as i64,
        size(jumps),
        at(jumps),
        timestamp::timestamptz(scheme.end()).ok(),
        announce::years_left(identity, wall),
        time(shmem::counting_since().load(Ordering::Relaxed)),
    ))
}

/// The backends that have drawn or waited: what view `snowflake_stat_backends` shows.
#[pg_extern(volatile, parallel_safe)]
#[allow(clippy::type_complexity)]
fn snowflake_stat_backends() -> TableIterator<
    'static,
    (
        name!(pid, i32),
        name!(waiting_for, Option<&'static str>),
        name!(ids_issued, i64),
        name!(throttled_waits, i64),
        name!(throttled_time, f64),
        name!(mark_waits, i64),
        name!(mark_time, f64),
        name!(clock_waits, i64),
        name!(clock_time, f64),
        name!(retries, i64),
        name!(extensions, i64),
    ),
> {
    // The error that the library is not preloaded comes first.
    identity::get();
    TableIterator::new(stats::backends().map(|backend| {
        let counts = backend.counts;
        let count = |count| counts.get(count) as i64;
        (
            backend.pid,
            backend.asleep.map(|wait| wait.name()),
            count(Count::Issued),
            count(Count::ThrottledWaits),
            counts.milliseconds(Count::ThrottledTime),
            count(Count::MarkWaits),
            counts.milliseconds(Count::MarkTime),
            count(Count::ClockWaits),
            counts.milliseconds(Count::ClockTime),
            count(Count::Retries),
            count(Count::Extensions),
        )
    }))
}

/// Lets all counts begin at 0 again.
#[pg_extern(volatile, parallel_restricted)]
fn snowflake_stat_reset() {
    identity::get();
    stats::reset();
}

/// The mark, and the failure that who asks for an ID would meet now.
fn condition(identity: &Identity, wall: Nanos) -> (Option<Mark>, Option<Failure>) {
    let state = shmem::state();
    // What is published lies below the mark, if the mark is read later.
    let (generation, published) = (state.generation(), state.published());
    let mark = mark::read();
    let failure = load::refusal(identity).or_else(|| match (&mark, state.last()) {
        (Err(problem), _) => Some(Failure::MarkMissing { problem: *problem }),
        (Ok(mark), None) => load::beginning(identity, *mark, wall).err(),
        (Ok(mark), Some(last)) => {
            let set_back = published.is_some_and(|ceiling| *mark < Mark::above(&identity.stamp, ceiling));
            let clock = state.clock();
            let behind = clock.hold_until.saturating_sub(wall);
            let (now, last_word) = (clock.time(clock::monotonic()), identity.limits.last_word());
            if set_back && state.generation() == generation {
                Some(Failure::MarkMissing { problem: MarkProblem::SetBack })
            } else if extend::refuses(behind) {
                Some(Failure::ClockBehind { behind: std::time::Duration::from_nanos(behind) })
            } else if last >= last_word || identity.limits.word_at(now).is_some_and(|word| word > last_word) {
                Some(Failure::Exhausted { scheme: identity.scheme })
            } else {
                None
            }
        }
    });
    (mark.ok(), failure)
}

fn time(at: Nanos) -> Option<TimestampWithTimeZone> {
    timestamp::timestamptz(timestamp::of(at)).ok()
}

/// An interval of microseconds, the longest there is where it would be longer.
fn interval(micros: i128) -> Interval {
    Interval::new(0, 0, micros.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
        .unwrap_or_else(|_| Failure::Unreachable("an interval out of range").raise())
}
