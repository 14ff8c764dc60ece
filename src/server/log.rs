//! The messages that the server logs on its own: its identity at server start, clock events, and the end of its layout.

use std::io;
use std::sync::atomic::Ordering;

use flake::{ClockEvent, Disciplined, Incidents, MAX_LEAD, Mark, Nanos, OnRegression};
use pgrx::{PgLogLevel, PgSqlErrorCode};

use crate::config::guc;
use crate::config::identity::{self, Identity, YEAR_DAYS};
use crate::message::error::{Error, MarkProblem};
use crate::message::pages;
use crate::message::wording::Report;
use crate::os::memory_file;
use crate::pg::startup::Startup;
use crate::pg::{recovery, server, timestamp};
use crate::server::{clock, shmem};

/// Each kind of clock event is logged at most once within this time, unless an event is much larger than the last one that was
/// logged. Otherwise, a clock that is set back and forth repeatedly, for example by two daemons, would fill the log.
const CLOCK_EVERY: Nanos = 60_000_000_000;

/// How often the server logs that the layout ends soon: once a day, while IDs are drawn.
const END_EVERY: Nanos = 86_400_000_000_000;

/// How many years before the end of the layout the warnings begin. The warnings begin this early because moving to a different
/// layout takes planning.
const NOTICE_YEARS: f64 = 2.0;

/// Logs one line with the identity of a server that has started or has been promoted. Also logs a warning if the mark may not
/// cover all existing IDs.
pub fn server(identity: &Identity, mark: Mark, startup: Startup, now: Nanos) {
    let format = &identity.format;
    let name = match identity.worker_set {
        true => identity.name(identity.node),
        false => "a worker ID that the registry assigns".into(),
    };
    let issuer = identity.issuer(mark);
    // `alone` is true if this server itself issued the last ID, restarted as a standby, and was promoted, as happens with Patroni
    // after a crash.
    let copied = startup == Startup::Standby { copied: true };
    let alone = issuer == Some(identity.node) && !copied && !recovery::followed();
    let begun = match (startup, issuer) {
        // What the registry assigns does not depend on who issued the last ID.
        (Startup::Standby { .. }, _) if identity.registry_set => format!("promoted with {name}"),
        (Startup::Standby { .. }, Some(issuer)) if issuer != identity.node => {
            format!("promoted with {name}, last ID issued with {}", identity.name(issuer))
        }
        (Startup::Standby { .. }, Some(_)) if alone => format!("promoted, continuing with {name}"),
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
        _ if identity.registry_set => {}
        Startup::Standby { .. } if lead > guc::FARTHEST_AHEAD && !alone => former_primary(&name, lead),
        Startup::Restored if mark > Mark::NOTHING_ISSUED => restored(identity, mark, now),
        _ => {}
    }
}

/// Warns that a promoted server may have been a primary before. The IDs that the server issued at that time can be above the mark.
fn former_primary(name: &str, lead: Nanos) {
    warn_of(
        format!("the server was promoted with {name}, but the high-water mark is {:.3} s ahead of the clock", lead as f64 / 1e9),
        "IDs with timestamps ahead of the clock have been issued. If this server was previously a primary, the mark might \
         be lower than IDs that the server issued as a primary, because running pg_rewind or restoring a base backup \
             replaces the mark."
            .into(),
        &format!(
            "If this server was previously a primary, either set the mark above all IDs that the server issued as a primary, \
             or give the server a worker ID that no server has used. See {}.",
            pages::WORKER_IDS.section("Streaming replication")
        ),
    );
}

/// Logs the warning for a server that was restored from a backup or an archive.
fn restored(identity: &Identity, mark: Mark, now: Nanos) {
    warn_of(
        "restored from a backup or an archive, so the high-water mark might be below existing IDs".into(),
        format!(
            "This server does not know which IDs were issued after the point to which it was restored. The mark is at {}, and the \
             clock shows {}.",
            timestamp::utc(identity.instant(identity.first_word(mark))),
            timestamp::utc(timestamp::of(now)),
        ),
        &format!(
            "Before clients connect, set the mark above all IDs that this server has issued, or give this server a worker ID \
             that no server has used. See {}.",
            pages::BAD_DAY.section("After a restore")
        ),
    );
}

/// Warns that this standby and its primary have the same worker ID. This problem is not an error, because synchronous replication
/// allows the same worker ID on both servers.
pub fn same_number(identity: &Identity) {
    warn_of(
        format!("this standby and its primary both have {}", identity.name(identity.node)),
        "If the standby is promoted while the primary is still running, or before the standby has received all WAL from the \
         primary, both servers might issue the same IDs. This message might also mean that this server was previously the \
         primary, and that the new primary has not issued an ID yet."
            .into(),
        &format!(
            "Give this server its own worker ID, and set that ID in a configuration file outside the data directory. See {}.",
            pages::WORKER_IDS.section("Streaming replication")
        ),
    );
}

/// Logs a warning about an error that every session will get.
pub fn refusal(error: &Error) {
    warn_of_error(error, "cannot issue IDs: ");
}

/// Warns that the server runs without a witness.
pub fn no_witness(directory: &str, error: &io::Error) {
    warn_of(
        format!("cannot use directory \"{directory}\" for the witness: {error}"),
        "Without a witness, this server does not notice that its data directory was reverted to an earlier state, or that another \
         server on this machine has the same worker ID."
            .into(),
        witness_hint(error),
    );
}

/// Returns what to do about a witness that cannot be opened.
fn witness_hint(error: &io::Error) -> &'static str {
    if memory_file::is_foreign(error) {
        return "Remove this file as root. To keep other users from creating it, set \"snowflake_pg.witness_directory\" to a directory to \
                which only the user of the server can write, for example \"/dev/shm/snowflake_pg\". Then restart the server.";
    }
    "Set \"snowflake_pg.witness_directory\" to a directory in an in-memory file system, or to an empty string to run without a witness."
}

/// Warns that the server cannot lock the witness.
pub fn no_lock(error: &io::Error) {
    warn_of(
        format!("cannot lock the witness: {error}"),
        "The server continues to issue IDs. It does not notice another server on this machine with the same worker ID."
            .into(),
        "Make sure that no other server has the same worker ID.",
    );
}

/// Warns that the file of the witness was removed while the server is running.
pub fn witness_removed() {
    warn_of(
        "the file of the witness was removed".into(),
        "The server continues to issue IDs. Its next start begins without a witness, and it does not notice another server on this \
         machine with the same worker ID."
            .into(),
        "Restart the server to create the file again. If systemd removes the file, run the server as a system user, or set \
         RemoveIPC=no in logind.conf.",
    );
}

/// Warns that the file of the witness of a server with a registry was removed while the server is running.
pub fn fleet_witness_removed() {
    warn_of(
        "the file of the witness was removed".into(),
        "The server continues to issue IDs with its worker ID. At its next start, it asks the registry for another worker ID, and issues \
         no IDs until the registry answers."
            .into(),
        "Restart the server while the registry answers, to create the file again. If systemd removes the file, run the server as a \
         system user, or set RemoveIPC=no in logind.conf.",
    );
}

/// Warns that a server with a registry runs without a witness.
pub fn no_fleet_witness(directory: &str, error: &io::Error) {
    warn_of(
        format!("cannot use directory \"{directory}\" for the witness: {error}"),
        "Without a witness, this server asks the registry for another worker ID at every start, and issues no IDs until the registry \
         answers."
            .into(),
        witness_hint(error),
    );
}

/// Warns that there is no slot for the registrar.
pub fn no_registrar() {
    warn_of(
        "no free slot for background worker \"snowflake_pg registrar\"".into(),
        "The background worker gets the worker ID of this server from the registry. All slots allowed by \"max_worker_processes\" are \
         in use by other background workers."
            .into(),
        "Increase \"max_worker_processes\" by 1 or more and restart the server.",
    );
}

/// Warns in the postmaster that a registry was added to the configuration of a server that has started without one.
pub fn registry_given() {
    if server::is_postmaster() && identity::find().is_some_and(|identity| !identity.registry_set) {
        warn_of(
            "parameter \"snowflake_pg.registry\" was set, but takes effect only after a restart".into(),
            "The server has started without a registry.".into(),
            &format!(
                "Restart the server. If it has a worker ID in its configuration, first see {}.",
                pages::FLEET.section("Change from configured worker IDs to a registry")
            ),
        );
    }
}

/// Warns of a problem with the mark. The problem is not an error, because a server that has issued IDs before can run without the
/// background worker.
pub fn mark_problem(problem: MarkProblem) {
    warn_of_error(&Error::MarkMissing { problem }, "");
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
        format!("the timestamps of layout \"{layout}\" will be exhausted in {left}"),
        format!("The last tick of this layout ends at {end}. After that, the server will not issue any IDs."),
        "Plan a move to a layout with a wider timestamp field, or to another kind of key. IDs issued with a different layout might \
         duplicate existing IDs.",
    );
}

/// Logs one clock event.
pub fn clock(disciplined: &Disciplined) {
    let Some(event) = disciplined.event else {
        return;
    };
    let (state, limiters) = (shmem::state(), shmem::limiters());
    let far = disciplined.lead > MAX_LEAD;
    let (limiter, by) = match event {
        // Far steps back have their own limiter, so that a smaller event does not suppress a larger one.
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
        1 => "1 similar message has been suppressed since the last one was logged.".into(),
        _ => format!("{withheld} similar messages have been suppressed since the last one was logged."),
    };
    let seconds = format!("{:.3}", by as f64 / 1e9);
    match event {
        ClockEvent::Regression(_) => {
            let going_on = match guc::clock_rules().on_regression {
                OnRegression::Continue => "The timestamps of new IDs advance with the monotonic clock.",
                OnRegression::Hold => "The server will not reserve more IDs until the clock has caught up.",
            };
            let restart = match far {
                true => {
                    "After a restart, the server would issue no IDs, because the time of the last ID is more than a day \
                     ahead of the clock."
                }
                false => "",
            };
            let count = counted("been set back", state.clock_regressions());
            warn(format!("the clock was set back by {seconds} s"), [going_on, &count, restart, &withheld], "");
        }
        ClockEvent::Jump(_) => {
            let count = counted("jumped", state.clock_jumps());
            let limit = "This is more than \"snowflake_pg.max_clock_jump\".";
            let hint = "If the new time is correct, call snowflake_accept_clock() as a superuser so that new IDs follow the clock.";
            let message = format!("the clock was set forward by {seconds} s, but IDs do not follow it");
            warn(message, [limit, &count, &withheld, ""], hint);
        }
        ClockEvent::Step(_) => log(format!("the clock was set forward by {seconds} s, and IDs follow it"), withheld),
        ClockEvent::Restored(_) => warn(
            format!("the monotonic clock went back by {seconds} s, because the machine or the container was restored"),
            ["New IDs begin at the current clock time or after the last ID, whichever is later.", &withheld, "", ""],
            "If the original machine or container is still running, stop one of the two servers, because they have the same \
             worker ID.",
        ),
        ClockEvent::Returned => log("the clock was corrected after a jump that IDs did not follow".into(), withheld),
    }
}

fn counted(what: &str, incidents: Incidents) -> String {
    let since = timestamp::of(shmem::counting_since().load(Ordering::Relaxed));
    let times = match incidents.count {
        1 => "once".into(),
        count => format!("{count} times"),
    };
    format!("The wall clock has {what} {times} since {}.", timestamp::utc(since))
}

/// Writes a message at level LOG.
pub fn log(message: String, detail: String) {
    log_with_hint(message, detail, String::new());
}

/// Writes a message with advice at level LOG.
pub fn log_with_hint(message: String, detail: String, hint: String) {
    let code = PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION;
    tell(PgLogLevel::LOG, Report { code, message, detail, hint });
}

fn warn(message: String, detail: [&str; 4], hint: &str) {
    let sentences: Vec<&str> = detail.into_iter().filter(|sentence| !sentence.is_empty()).collect();
    warn_of(message, sentences.join(" "), hint);
}

/// Writes a message at level WARNING.
pub fn warn_of(message: String, detail: String, hint: &str) {
    let code = PgSqlErrorCode::ERRCODE_WARNING;
    tell(PgLogLevel::WARNING, Report { code, message, detail, hint: hint.into() });
}

/// Writes a message that begins with the name of the extension, because the log also contains messages from other programs.
pub fn tell(level: PgLogLevel, report: Report) {
    let message = format!("snowflake_pg: {}", report.message);
    Report { message, ..report }.error().report(level);
}
