//! What the server's log is told unasked: who this server is when it begins, what its clock does, and when its layout ends.

use std::sync::atomic::Ordering;

use flake::{ClockEvent, Incidents, Mark, Nanos, Node, OnRegression, Steered};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, ereport};

use crate::failure::Failure;
use crate::identity::Identity;
use crate::limiter::Limiter;
use crate::{extend, guc, shmem, timestamp};

/// Each kind of clock event is told once in this time at most: a clock that is set there and back again and again, by two
/// daemons for example, would fill the log.
const CLOCK_EVERY: Nanos = 60_000_000_000;

/// The end of the layout is told once a day, while IDs are drawn.
const END_EVERY: Nanos = 86_400_000_000_000;

/// How many years before the end of the layout the log begins to warn of it: moving to another takes planning.
const NOTICE_YEARS: f64 = 2.0;

/// A year of the Gregorian calendar, in microseconds: 365.2425 days.
const YEAR: f64 = 365.2425 * 86_400e6;

/// What keeps each message from repeating too often.
#[derive(Default)]
pub struct Limiters {
    regression: Limiter,
    jump: Limiter,
    step: Limiter,
    returned: Limiter,
    end: Limiter,
}

/// One line: the server has come up, or was promoted, and this is who it is.
pub fn server(identity: &Identity, mark: Mark, was_standby: bool) {
    let scheme = &identity.scheme;
    let name = identity.name(identity.node);
    let begun = match (was_standby, writer(identity, mark)) {
        (false, _) => format!("started with {name}"),
        (true, Some(writer)) if writer == identity.node => format!("promoted, taking over {name}"),
        (true, Some(writer)) => format!("promoted with {name}, after {}", identity.name(writer)),
        (true, None) => format!("promoted with {name}"),
    };
    let mark = match mark {
        Mark::NOTHING_ISSUED => "no ID issued yet".into(),
        mark => {
            let at = identity.limits.time(identity.first_word(mark));
            format!("high-water mark {} ({})", mark.value(), timestamp::utc(timestamp::of(at)))
        }
    };
    log(format!("{begun}, layout \"{}\", epoch {}, {mark}", scheme.layout, timestamp::utc(scheme.instant(0)),));
}

/// Who wrote the mark, as an ID below it tells; `None` where it tells nothing.
fn writer(identity: &Identity, mark: Mark) -> Option<Node> {
    let last = i64::try_from(mark.value() - 1).ok().filter(|last| *last > 0)?;
    identity.scheme.split(last).ok().map(|parts| parts.node)
}

/// A failure that every session will meet, as a warning.
pub fn refusal(failure: &Failure) {
    let report = failure.report();
    ErrorReport::new(report.code, format!("snowflake_pg: no IDs are issued: {}", report.message), "snowflake_pg")
        .set_detail(report.detail)
        .set_hint(report.hint)
        .report(PgLogLevel::WARNING);
}

/// Years until the time of the layout is used up, when the wall clock shows `now`.
pub fn years_left(identity: &Identity, now: Nanos) -> f64 {
    (identity.scheme.end() - timestamp::of(now)) as f64 / YEAR
}

/// Warns where the layout ends before long.
pub fn end_of_layout(identity: &Identity, now: Nanos) {
    let years = years_left(identity, now);
    if years >= NOTICE_YEARS || shmem::limiters().end.pass(END_EVERY).is_none() {
        return;
    }
    let layout = identity.scheme.layout;
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!("the time of layout \"{layout}\" is used up in {years:.1} years"),
        "snowflake_pg",
    )
    .set_detail(format!("Its last tick ends at {}. Then no more IDs are issued.", timestamp::utc(identity.scheme.end())))
    .set_hint("Plan a layout with more bits of timestamp, or other keys: what another layout issues can repeat IDs of this one.")
    .report(PgLogLevel::WARNING);
}

/// Tells what happened to the clock, once.
pub fn clock(steered: &Steered) {
    let Some(event) = steered.event else {
        return;
    };
    let (state, limiters) = (shmem::state(), shmem::limiters());
    let limiter = match event {
        ClockEvent::Regression(_) => &limiters.regression,
        ClockEvent::Jump(_) => &limiters.jump,
        ClockEvent::Step(_) => &limiters.step,
        ClockEvent::Returned => &limiters.returned,
    };
    let Some(withheld) = limiter.pass(CLOCK_EVERY) else {
        return;
    };
    let withheld = match withheld {
        0 => String::new(),
        _ => format!(" {withheld} messages like this were withheld since the last."),
    };
    let seconds = |by: Nanos| format!("{:.3}", by as f64 / 1e9);
    match event {
        ClockEvent::Regression(by) => {
            let going_on = match guc::clock_rules().on_regression {
                OnRegression::Continue => "IDs go on at the speed of the monotonic clock.",
                OnRegression::Hold => "No more IDs are reserved until the clock is back where it was.",
            };
            let restart = if steered.lead > extend::MAX_LEAD {
                " After a restart no ID would be issued: the last one is more than a day ahead of the clock."
            } else {
                ""
            };
            let count = counted("regression", state.clock_regressions());
            warn(
                format!("the clock was set back by {} s", seconds(by)),
                format!("{going_on} {count}{restart}{withheld}"),
            );
        }
        ClockEvent::Jump(by) => {
            let count = counted("jump", state.clock_jumps());
            warn(
                format!("the clock was set forward by {} s, which is not followed", seconds(by)),
                format!(
                    "It is more than \"snowflake_pg.max_clock_jump\". If the clock is right now, a superuser makes IDs follow \
                     it with snowflake_accept_clock(). {count}{withheld}"
                ),
            );
        }
        ClockEvent::Step(by) => {
            log(format!("the clock was set forward by {} s, and IDs follow it.{withheld}", seconds(by)));
        }
        ClockEvent::Returned => log(format!("the clock is back from a jump that was not followed.{withheld}")),
    }
}

fn counted(what: &str, incidents: Incidents) -> String {
    let since = timestamp::of(shmem::counting_since().load(Ordering::Relaxed));
    format!("Clock {what} {} since {}.", incidents.count, timestamp::utc(since))
}

fn log(message: String) {
    ereport!(PgLogLevel::LOG, PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, format!("snowflake_pg: {message}"));
}

fn warn(message: String, detail: String) {
    ereport!(PgLogLevel::WARNING, PgSqlErrorCode::ERRCODE_WARNING, message, detail);
}
