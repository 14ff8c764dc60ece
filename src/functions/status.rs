//! The functions behind the views that show the state of the generator.

use std::sync::atomic::Ordering;

use flake::{Incidents, Mark, Nanos};
use pgrx::prelude::*;

use crate::config::identity::{self, Identity};
use crate::fleet::grant;
use crate::generator::{clock_behind, grant_end, mark_storage, refusal, start, witness};
use crate::message::clock::ClockProblem;
use crate::message::error::Error;
use crate::message::issue::IssueProblem;
use crate::message::layout::LayoutProblem;
use crate::message::mark::{MarkProblem, WaitCause};
use crate::message::preload::NotPreloaded;
use crate::pg::wait_event::WaitEvent;
use crate::pg::{sync_standby, timestamp, wal};
use crate::server::stats::{self, Count};
use crate::server::{clock, shmem};

/// Returns the state of the generator in one row, for the view `snowflake_status`. This function does not load the
/// state, does not write anything, and does not wait. If the library is not preloaded, the row reports this.
#[pg_extern(volatile, parallel_safe)]
fn snowflake_status() -> TableIterator<
    'static,
    (
        name!(state, &'static str),
        name!(problem, Option<String>),
        name!(hint, Option<String>),
        name!(worker_id, Option<i32>),
        name!(datacenter_id, Option<i32>),
        name!(layout, Option<String>),
        name!(epoch, Option<TimestampWithTimeZone>),
        name!(last_id, Option<i64>),
        name!(last_id_at, Option<TimestampWithTimeZone>),
        name!(lead, Option<Interval>),
        name!(mark, Option<i64>),
        name!(mark_lead, Option<Interval>),
        name!(ids_issued, Option<i64>),
        name!(throttled_waits, Option<i64>),
        name!(throttled_time, Option<f64>),
        name!(mark_waits, Option<i64>),
        name!(mark_time, Option<f64>),
        name!(clock_waits, Option<i64>),
        name!(clock_time, Option<f64>),
        name!(retries, Option<i64>),
        name!(extensions, Option<i64>),
        name!(slowest_extension, Option<f64>),
        name!(clock_regressions, Option<i64>),
        name!(last_clock_regression, Option<Interval>),
        name!(last_clock_regression_at, Option<TimestampWithTimeZone>),
        name!(clock_jumps, Option<i64>),
        name!(last_clock_jump, Option<Interval>),
        name!(last_clock_jump_at, Option<TimestampWithTimeZone>),
        name!(exhaustion_date, Option<TimestampWithTimeZone>),
        name!(years_left, Option<f64>),
        name!(stats_reset, Option<TimestampWithTimeZone>),
    ),
> {
    let Some(identity @ Identity { format, limits, .. }) = &grant::identity() else {
        let report = NotPreloaded.report();
        let (state, problem, hint) = ("not preloaded", Some(report.message), Some(report.hint));
        return TableIterator::once((
            state, problem, hint, None, None, None, None, None, None, None, None, None, None, None, None, None, None,
            None, None, None, None, None, None, None, None, None, None, None, None, None, None,
        ));
    };
    let (state, wall) = (shmem::state(), clock::wall());
    let (mark, problem) = condition(identity, wall);
    let (loaded, last) = of_assignment(identity, state.last(), state.last_issued());
    let phase = match (&problem, loaded) {
        (Some(Error::Issue(IssueProblem::Standby)), _) => "standby",
        (Some(Error::Mark(MarkProblem::Waits { .. })), _) => "waiting",
        (Some(_), _) => "refused",
        (None, Some(_)) => "issuing",
        (None, None) => "idle",
    };
    let report = problem.map(|error| error.report());
    let next = loaded.map(|last| state.clock().time(clock::monotonic()).max(limits.time(last)));
    let marked = mark.filter(|mark| *mark > Mark::NOTHING_ISSUED);
    let counts = stats::total();
    let count = |count| Some(counts.get(count) as i64);
    let time_of = |count| Some(counts.milliseconds(count));
    let (regressions, jumps) = (state.clock_regressions(), state.clock_jumps());
    let size = |incidents: Incidents| (incidents.count > 0).then(|| timestamp::interval(timestamp::of(incidents.size)));
    let at = |incidents: Incidents| time(incidents.at).filter(|_| incidents.count > 0);
    TableIterator::once((
        phase,
        report.as_ref().map(|report| report.message.clone()),
        report.map(|report| report.hint).filter(|hint| !hint.is_empty()),
        identity.worker_set.then_some(identity.node.worker as i32),
        Some(identity.node.datacenter as i32),
        Some(format.layout.to_string()),
        timestamp::timestamptz(format.instant(0)),
        last.map(|last| identity.stamp.id(last)),
        last.and_then(|last| timestamp::timestamptz(identity.instant(last))),
        next.map(|next| timestamp::interval(timestamp::of(next) - timestamp::of(wall))),
        mark.map(|mark| i64::try_from(mark.value()).unwrap_or(i64::MAX)),
        marked.map(|mark| timestamp::interval(identity.instant(identity.first_word(mark)) - timestamp::of(wall))),
        count(Count::Issued),
        count(Count::ThrottledWaits),
        time_of(Count::ThrottledTime),
        count(Count::MarkWaits),
        time_of(Count::MarkTime),
        count(Count::ClockWaits),
        time_of(Count::ClockTime),
        count(Count::Retries),
        count(Count::Extensions),
        Some(shmem::slowest_extension().load(Ordering::Relaxed) as f64 / 1e6),
        Some(regressions.count as i64),
        size(regressions),
        at(regressions),
        Some(jumps.count as i64),
        size(jumps),
        at(jumps),
        timestamp::timestamptz(format.end()),
        Some(identity.years_left(wall)),
        time(shmem::counting_since().load(Ordering::Relaxed)),
    ))
}

/// Returns the worker ID and datacenter ID of the server that wrote the mark, for the view `snowflake_status`. This is
/// a separate function because the result columns of an existing C function cannot be changed.
#[pg_extern(volatile, parallel_safe)]
fn snowflake_last_issuer()
-> TableIterator<'static, (name!(last_issuer_worker_id, Option<i32>), name!(last_issuer_datacenter_id, Option<i32>))> {
    // If the library is not preloaded, there is no node. snowflake_status() reports the problem in this case.
    let node = identity::find().and_then(|identity| identity.issuer(mark_storage::read().ok()?));
    TableIterator::once((node.map(|node| node.worker as i32), node.map(|node| node.datacenter as i32)))
}

/// Returns the backends that have drawn IDs or have waited, for the view `snowflake_stat_backends`.
#[pg_extern(volatile, parallel_safe)]
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
    // Raises an error if the library is not preloaded.
    identity::get();
    TableIterator::new(stats::backends().map(|backend| {
        let counts = backend.counts;
        let count = |count| counts.get(count) as i64;
        (
            backend.pid,
            backend.asleep.map(WaitEvent::name),
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

/// Resets all counts to 0.
#[pg_extern(volatile, parallel_restricted)]
fn snowflake_stat_reset() {
    identity::get();
    stats::reset();
}

/// Returns the mark, and the error that `snowflake_nextval()` would raise now.
fn condition(identity: &Identity, wall: Nanos) -> (Option<Mark>, Option<Error>) {
    let state = shmem::state();
    // The ceiling is read first, so that the words below the ceiling are also below the mark, which is read later.
    let (generation, published) = (state.generation(), state.published());
    let mark = mark_storage::read();
    let refused = || refusal::of_server(identity).or_else(|| witness::refusal(identity));
    let (loaded, _) = of_assignment(identity, state.last(), None);
    let error = refused().or_else(|| match (&mark, loaded) {
        (Err(problem), _) => Some(Error::Mark(*problem)),
        (Ok(mark), None) => start::beginning(identity, *mark, wall).err(),
        (Ok(mark), Some(last)) => {
            let set_back = published.is_some_and(|ceiling| *mark < Mark::above(&identity.stamp, ceiling));
            let clock = state.clock();
            let behind = clock.hold_until.saturating_sub(wall);
            let (now, last_word) = (clock.time(clock::monotonic()), identity.limits.last_word());
            if set_back && state.generation() == generation {
                Some(Error::Mark(MarkProblem::SetBack))
            } else if clock_behind::refuses(behind) {
                Some(Error::Clock(ClockProblem::Behind { behind: std::time::Duration::from_nanos(behind) }))
            } else if let Some(problem) = shmem::origin_state().refused_write(clock::monotonic()) {
                Some(Error::Mark(problem))
            } else if last >= last_word || identity.limits.word_at(now).is_some_and(|word| word > last_word) {
                Some(Error::Layout(LayoutProblem::Exhausted { format: identity.format }))
            } else if let Some(error) = grant_end::ended_before(identity, next(identity, last, now)) {
                Some(error.into())
            } else {
                waiting(identity, last, now)
            }
        }
    });
    (mark.ok(), error)
}

/// Returns the two words unchanged, or `None` if the state is loaded for a worker ID other than the identity's.
fn of_assignment(identity: &Identity, one: Option<u64>, other: Option<u64>) -> (Option<u64>, Option<u64>) {
    // The words were read before this check, so they cannot belong to a later assignment.
    match shmem::state().assignment().get() == identity.assignment {
        true => (one, other),
        false => (None, None),
    }
}

/// Returns the next word at generator time `now`.
fn next(identity: &Identity, last: u64, now: Nanos) -> u64 {
    identity.limits.word_at(now).map_or(last, |word| word.max(last + 1))
}

/// Returns the reason why the next ID will have to wait. `last` is the last word issued, and `now` is generator time.
fn waiting(identity: &Identity, last: u64, now: Nanos) -> Option<Error> {
    let state = shmem::state();
    let pending = state.pending()?;
    if state.published().is_some_and(|ceiling| next(identity, last, now) < ceiling) {
        return None;
    }
    let cause = match wal::is_flushed(pending.position) {
        false => WaitCause::Disk,
        true if sync_standby::acknowledged(pending.position) => return None,
        true => WaitCause::Standby,
    };
    let ago = clock::monotonic().saturating_sub(pending.written);
    Some(Error::Mark(MarkProblem::Waits { cause, since: timestamp::of(clock::wall().saturating_sub(ago)) }))
}

fn time(at: Nanos) -> Option<TimestampWithTimeZone> {
    timestamp::timestamptz(timestamp::of(at))
}
