//! What the server's log is told unasked: who this server is when it begins, what its clock does, and when its layout ends.

use std::sync::atomic::Ordering;

use flake::{ClockEvent, Incidents, Mark, Nanos, Node, OnRegression, Part, Steered};
use pgrx::{PgLogLevel, PgSqlErrorCode};

use crate::failure::Failure;
use crate::identity::Identity;
use crate::limiter::Limiter;
use crate::report::Report;
use crate::{extend, guc, shmem, timestamp};

/// Each kind of clock event is told once in this time at most, unless it is much larger than the one before: a clock that is
/// set there and back again and again, by two daemons for example, would fill the log.
const CLOCK_EVERY: Nanos = 60_000_000_000;

/// The end of the layout is told once a day, while IDs are drawn.
const END_EVERY: Nanos = 86_400_000_000_000;

/// How many years before the end of the layout the log begins to warn of it: moving to another takes planning.
const NOTICE_YEARS: f64 = 2.0;

/// Days of a year of the Gregorian calendar, on average.
const YEAR_DAYS: f64 = 365.2425;

/// What keeps each message from repeating too often.
#[derive(Default)]
pub struct Limiters {
    regression: Limiter,
    far: Limiter,
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
            let at = identity.instant(identity.first_word(mark));
            format!("high-water mark {} ({})", mark.value(), timestamp::utc(at))
        }
    };
    let epoch = timestamp::utc(scheme.instant(0));
    log(format!("{begun}, layout \"{}\", epoch {epoch}, {mark}", scheme.layout), String::new());
}

/// Who wrote the mark, as the ID below it tells: the last of a tick, for reservations end with one. `None` for a mark that was
/// set by hand, and one that leaves no ID.
fn writer(identity: &Identity, mark: Mark) -> Option<Node> {
    let scheme = &identity.scheme;
    let last = i64::try_from(mark.value() - 1).ok().filter(|_| mark > Mark::NOTHING_ISSUED)?;
    let parts = scheme.split(last).ok()?;
    (u64::from(parts.sequence) == scheme.layout.max(Part::Sequence)).then_some(parts.node)
}

/// A failure that every session will meet, as a warning.
pub fn refusal(failure: &Failure) {
    let mut report = failure.report();
    report.message = format!("snowflake_pg: no IDs are issued: {}", report.message);
    report.error().report(PgLogLevel::WARNING);
}

/// Years until the time of the layout is used up, when the wall clock shows `now`.
pub fn years_left(identity: &Identity, now: Nanos) -> f64 {
    (identity.scheme.end() - timestamp::of(now)) as f64 / (YEAR_DAYS * 86_400e6)
}

/// Warns where the layout ends before long.
pub fn end_of_layout(identity: &Identity, now: Nanos) {
    let years = years_left(identity, now);
    if years >= NOTICE_YEARS || shmem::limiters().end.pass(END_EVERY, 0).is_none() {
        return;
    }
    let layout = identity.scheme.layout;
    let left = match years {
        1.0.. => format!("{years:.1} years"),
        _ => format!("{:.0} days", years * YEAR_DAYS),
    };
    let end = timestamp::utc(identity.scheme.end());
    let report = Report {
        code: PgSqlErrorCode::ERRCODE_WARNING,
        message: format!("snowflake_pg: the time of layout \"{layout}\" is used up in {left}"),
        detail: format!("Its last tick ends at {end}. Then no more IDs are issued."),
        hint: "Plan a layout with more bits of timestamp, or other keys: what another layout issues can repeat IDs of this one."
            .into(),
    };
    report.error().report(PgLogLevel::WARNING);
}

/// Tells what happened to the clock, once.
pub fn clock(steered: &Steered) {
    let Some(event) = steered.event else {
        return;
    };
    let (state, limiters) = (shmem::state(), shmem::limiters());
    let far = steered.lead > extend::MAX_LEAD;
    let (limiter, by) = match event {
        // Not withheld for a lesser one.
        ClockEvent::Regression(by) if far => (&limiters.far, by),
        ClockEvent::Regression(by) => (&limiters.regression, by),
        ClockEvent::Jump(by) => (&limiters.jump, by),
        ClockEvent::Step(by) => (&limiters.step, by),
        ClockEvent::Returned => (&limiters.returned, 0),
    };
    let Some(withheld) = limiter.pass(CLOCK_EVERY, by) else {
        return;
    };
    let withheld = match withheld {
        0 => String::new(),
        1 => "1 message like this was withheld since the last.".into(),
        _ => format!("{withheld} messages like this were withheld since the last."),
    };
    let seconds = format!("{:.3}", by as f64 / 1e9);
    match event {
        ClockEvent::Regression(_) => {
            let going_on = match guc::clock_rules().on_regression {
                OnRegression::Continue => "IDs go on at the speed of the monotonic clock.",
                OnRegression::Hold => "No more IDs are reserved until the clock is back where it was.",
            };
            let restart = match far {
                true => "After a restart no ID would be issued: the last one is more than a day ahead of the clock.",
                false => "",
            };
            let count = counted("regression", state.clock_regressions());
            warn(format!("the clock was set back by {seconds} s"), [going_on, &count, restart, &withheld]);
        }
        ClockEvent::Jump(_) => {
            let count = counted("jump", state.clock_jumps());
            let what_to_do = "It is more than \"snowflake_pg.max_clock_jump\". If the clock is right now, a superuser makes \
                              IDs follow it with snowflake_accept_clock().";
            let message = format!("the clock was set forward by {seconds} s, which is not followed");
            warn(message, [what_to_do, &count, &withheld, ""]);
        }
        ClockEvent::Step(_) => log(format!("the clock was set forward by {seconds} s, and IDs follow it"), withheld),
        ClockEvent::Returned => log("the clock is back from a jump that was not followed".into(), withheld),
    }
}

fn counted(what: &str, incidents: Incidents) -> String {
    let since = timestamp::of(shmem::counting_since().load(Ordering::Relaxed));
    format!("Clock {what} {} since {}.", incidents.count, timestamp::utc(since))
}

fn log(message: String, detail: String) {
    tell(PgLogLevel::LOG, PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, detail);
}

fn warn(message: String, detail: [&str; 4]) {
    let sentences: Vec<&str> = detail.into_iter().filter(|sentence| !sentence.is_empty()).collect();
    tell(PgLogLevel::WARNING, PgSqlErrorCode::ERRCODE_WARNING, message, sentences.join(" "));
}

fn tell(level: PgLogLevel, code: PgSqlErrorCode, message: String, detail: String) {
    // With the name: in the log it stands among lines of many.
    Report { code, message: format!("snowflake_pg: {message}"), detail, hint: String::new() }.error().report(level);
}
