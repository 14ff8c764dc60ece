//! The lines that the server logs by itself: its identity at the start, events of its clock, and the end of its layout.

use std::sync::atomic::Ordering;

use flake::{ClockEvent, Disciplined, Incidents, MAX_LEAD, Mark, Nanos, OnRegression};
use pgrx::{PgLogLevel, PgSqlErrorCode};

use crate::config::guc;
use crate::config::identity::{Identity, YEAR_DAYS};
use crate::generator::{clock, shmem};
use crate::message::error::{Error, MarkProblem};
use crate::message::wording::Report;
use crate::pg::startup::Startup;
use crate::pg::{recovery, timestamp};

/// Each kind of clock event is logged at most once in this time, unless it is much larger than the one before. Otherwise a clock
/// that is set back and forth repeatedly, for example by two daemons, would fill the log.
const CLOCK_EVERY: Nanos = 60_000_000_000;

/// The end of the layout is logged once a day, while IDs are drawn.
const END_EVERY: Nanos = 86_400_000_000_000;

/// How many years before the end of the layout the warnings begin, because moving to another layout takes planning.
const NOTICE_YEARS: f64 = 2.0;

/// Logs one line with the identity of a server that has started or was promoted. Also logs a warning if the mark may not cover all
/// existing IDs.
pub fn server(identity: &Identity, mark: Mark, startup: Startup, now: Nanos) {
    let format = &identity.format;
    let name = identity.name(identity.node);
    let issuer = identity.issuer(mark);
    // This server issued the last ID itself: it restarted as a standby and was promoted, as Patroni does after a crash.
    let copied = startup == Startup::Standby { copied: true };
    let alone = issuer == Some(identity.node) && !copied && !recovery::followed();
    let begun = match (startup, issuer) {
        (Startup::Standby { .. }, Some(issuer)) if issuer != identity.node => {
            format!("promoted with {name}, after {}", identity.name(issuer))
        }
        (Startup::Standby { .. }, Some(_)) if alone => format!("promoted, going on with {name}"),
        (Startup::Standby { .. }, Some(_)) => format!("promoted, taking over {name}"),
        (Startup::Standby { .. }, None) => format!("promoted with {name}"),
        (Startup::Primary | Startup::Restored, _) => format!("started with {name}"),
    };
    let first = identity.first_word(mark);
    let at = match mark {
        Mark::NOTHING_ISSUED => "no ID issued yet".into(),
        mark => format!("high-water mark {} ({})", mark.value(), timestamp::utc(identity.instant(first))),
    };
    let epoch = timestamp::utc(format.instant(0));
    log(format!("{begun}, layout \"{}\", epoch {epoch}, {at}", format.layout), String::new());
    let lead = identity.limits.time(first).saturating_sub(now);
    match startup {
        Startup::Standby { .. } if lead > guc::FARTHEST_AHEAD && !alone => former_primary(&begun, lead),
        Startup::Restored if mark > Mark::NOTHING_ISSUED => restored(identity, mark, now),
        _ => {}
    }
}

/// Warns if a promoted server may have been a primary before: the IDs that it issued then can be above the mark.
fn former_primary(begun: &str, lead: Nanos) {
    warn_of(
        format!("{begun}, while the high-water mark is {:.3} s ahead of the clock", lead as f64 / 1e9),
        "IDs have led the clock. If this server was a primary before, it may have issued IDs above the mark, because \
         pg_rewind and base backups take away the mark that it had."
            .into(),
        "If so, set the mark above what it issued then, or give it a worker ID that no server has had: see \"Streaming \
         replication\" in docs/configuration.md.",
    );
}

/// Logs the warning for a server that was restored from a backup or an archive.
fn restored(identity: &Identity, mark: Mark, now: Nanos) {
    warn_of(
        "restored from a backup or an archive, the high-water mark may be below IDs that exist".into(),
        format!(
            "IDs issued after the restored state are not known to this server. The mark is at {}, the clock shows {}.",
            timestamp::utc(identity.instant(identity.first_word(mark))),
            timestamp::utc(timestamp::of(now)),
        ),
        "Set the mark above them before clients connect, or give this server a worker ID that no server has had: see \
         \"After a restore\" in docs/durability.md.",
    );
}

/// Warns if the primary of this standby has the same number. Not an error, because it is allowed with synchronous replication.
pub fn same_number(identity: &Identity) {
    warn_of(
        format!("this standby has {}, with which its primary issues", identity.name(identity.node)),
        "If it is promoted while the primary goes on, or lacks the primary's last WAL, the two issue the same IDs. It may \
         also be that this server was the primary before, and the new one has issued nothing yet."
            .into(),
        "Give this server a number of its own, outside the data directory: see \"Streaming replication\" in \
         docs/configuration.md.",
    );
}

/// Logs a warning about an error that every session will get.
pub fn refusal(error: &Error) {
    warn_of_error(error, "no IDs are issued: ");
}

/// Warns that there is no slot for the background worker. Not an error: a server that has issued IDs before runs without it.
pub fn no_place() {
    warn_of_error(&Error::MarkMissing { problem: MarkProblem::NoPlace }, "");
}

fn warn_of_error(error: &Error, before: &str) {
    let Report { code, message, detail, hint } = error.report();
    tell(PgLogLevel::WARNING, Report { code, message: format!("{before}{message}"), detail, hint });
}

/// Logs a warning if the layout ends soon.
pub fn end_of_layout(identity: &Identity, now: Nanos) {
    let years = identity.years_left(now);
    if years >= NOTICE_YEARS || shmem::limiters().end.pass(clock::monotonic(), END_EVERY, 0).is_none() {
        return;
    }
    let layout = identity.format.layout;
    let left = match years {
        1.0.. => format!("{years:.1} years"),
        _ => format!("{:.0} days", years * YEAR_DAYS),
    };
    let end = timestamp::utc(identity.format.end());
    warn_of(
        format!("the time of layout \"{layout}\" is used up in {left}"),
        format!("Its last tick ends at {end}. Then no more IDs are issued."),
        "Plan a layout with more bits of timestamp, or other keys: what another layout issues can repeat IDs of this one.",
    );
}

/// Logs an event of the clock once.
pub fn clock(disciplined: &Disciplined) {
    let Some(event) = disciplined.event else {
        return;
    };
    let (state, limiters) = (shmem::state(), shmem::limiters());
    let far = disciplined.lead > MAX_LEAD;
    let (limiter, by) = match event {
        // A smaller event does not hold back a larger one.
        ClockEvent::Regression(by) if far => (&limiters.far, by),
        ClockEvent::Regression(by) => (&limiters.regression, by),
        ClockEvent::Jump(by) => (&limiters.jump, by),
        ClockEvent::Step(by) => (&limiters.step, by),
        ClockEvent::Returned => (&limiters.returned, 0),
        ClockEvent::Restored(by) => (&limiters.restored, by),
    };
    let Some(withheld) = limiter.pass(clock::monotonic(), CLOCK_EVERY, by) else {
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
        ClockEvent::Restored(_) => warn(
            format!("the monotonic clock went back by {seconds} s: the machine or the container was restored"),
            ["IDs continue at the clock or after the last ID, whichever is later.", &withheld, "", ""],
        ),
        ClockEvent::Returned => log("the clock is back from a jump that was not followed".into(), withheld),
    }
}

fn counted(what: &str, incidents: Incidents) -> String {
    let since = timestamp::of(shmem::counting_since().load(Ordering::Relaxed));
    format!("Clock {what} {} since {}.", incidents.count, timestamp::utc(since))
}

/// Writes a line at level LOG.
pub fn log(message: String, detail: String) {
    let code = PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION;
    tell(PgLogLevel::LOG, Report { code, message, detail, hint: String::new() });
}

fn warn(message: String, detail: [&str; 4]) {
    let sentences: Vec<&str> = detail.into_iter().filter(|sentence| !sentence.is_empty()).collect();
    warn_of(message, sentences.join(" "), "");
}

fn warn_of(message: String, detail: String, hint: &str) {
    let code = PgSqlErrorCode::ERRCODE_WARNING;
    tell(PgLogLevel::WARNING, Report { code, message, detail, hint: hint.into() });
}

/// With the name of the extension, because the log has lines of many programs.
fn tell(level: PgLogLevel, report: Report) {
    let message = format!("snowflake_pg: {}", report.message);
    Report { message, ..report }.error().report(level);
}
