//! The server's clock: the errors for a wrong time, and the log messages about clock steps.

use std::time::Duration;

use flake::{ClockEvent, Epoch, IdFormat, Nanos, OnRegression};
use pgrx::PgSqlErrorCode;

use crate::message::layout;
use crate::message::report::{Report, log, warn_of};
use crate::pg::timestamp;

/// Why no ID can be issued at the clock's current time.
#[derive(Clone, Debug)]
pub enum ClockProblem {
    /// The clock is before the epoch.
    BeforeEpoch { epoch: Epoch },
    /// The clock is this far behind the time that it showed earlier, and the configuration does not allow the server to
    /// continue.
    Behind { behind: Duration },
    /// The clock cannot be accepted, because its time is outside the range of the layout. The time is in microseconds
    /// since the Unix epoch.
    Outside { clock: i128, format: IdFormat },
}

impl ClockProblem {
    pub fn report(&self) -> Report {
        match self {
            ClockProblem::BeforeEpoch { epoch } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the clock is before the epoch",
                format!("The epoch is {}.", timestamp::utc(i128::from(epoch.unix_ms()) * 1_000)),
                "Correct the server's clock. Change \"snowflake_pg.epoch\" only if no IDs have ever been issued.",
            ),
            ClockProblem::Behind { behind } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the clock was set back and is now {:.3} s behind its earlier time", behind.as_secs_f64()),
                "All reserved IDs have been issued, and \"snowflake_pg.on_clock_regression\" does not allow the server to \
                 reserve more until the clock has caught up.",
                "Correct the server's clock, or set \"snowflake_pg.on_clock_regression\" to \"continue\" and reload the \
                 configuration. Neither action causes duplicate IDs.",
            ),
            ClockProblem::Outside { clock, format } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!(
                    "the clock shows {}, which is outside the range of layout \"{}\"",
                    timestamp::utc(*clock),
                    format.layout
                ),
                layout::range(format),
                "Correct the server's clock.",
            ),
        }
    }
}

/// Additional information for a log message about a clock event.
pub struct Occasion {
    /// How many times such an event has occurred since `since`, which is in microseconds since the Unix epoch.
    pub count: u64,
    pub since: i128,
    /// True if the last ID's time is so far ahead of the clock that the server would not issue IDs after a restart.
    pub far: bool,
    pub on_regression: OnRegression,
    /// How many similar messages have been suppressed since the last one was logged.
    pub withheld: u64,
}

/// Logs a clock event.
pub fn event(event: ClockEvent, occasion: &Occasion) {
    let withheld = match occasion.withheld {
        0 => String::new(),
        1 => "1 similar message has been suppressed since the last one was logged.".into(),
        withheld => format!("{withheld} similar messages have been suppressed since the last one was logged."),
    };
    let seconds = |by: Nanos| format!("{:.3}", by as f64 / 1e9);
    match event {
        ClockEvent::Regression(by) => {
            let going_on = match occasion.on_regression {
                OnRegression::Continue => "The timestamps of new IDs advance with the monotonic clock.",
                OnRegression::Hold => "The server will not reserve more IDs until the clock has caught up.",
            };
            let restart = match occasion.far {
                true => {
                    "After a restart, the server would issue no IDs, because the time of the last ID is more than a day \
                     ahead of the clock."
                }
                false => "",
            };
            let count = counted("been set back", occasion);
            warn(format!("the clock was set back by {} s", seconds(by)), [going_on, &count, restart, &withheld], "");
        }
        ClockEvent::Jump(by) => {
            let count = counted("jumped", occasion);
            let limit = "This is more than \"snowflake_pg.max_clock_jump\".";
            let hint = "If the new time is correct, call snowflake_accept_clock() as a superuser so that new IDs follow the clock.";
            let message = format!("the clock was set forward by {} s, but IDs do not follow it", seconds(by));
            warn(message, [limit, &count, &withheld, ""], hint);
        }
        ClockEvent::Step(by) => {
            log(format!("the clock was set forward by {} s, and IDs follow it", seconds(by)), withheld);
        }
        ClockEvent::Restored(by) => warn(
            format!(
                "the monotonic clock has gone backward by {} s, because the machine or container was restored",
                seconds(by)
            ),
            ["New IDs begin at the current clock time or after the last ID, whichever is later.", &withheld, "", ""],
            "If the original machine or container is still running, stop one of the two servers, because they have the same \
             worker ID.",
        ),
        ClockEvent::Returned => log("the clock was corrected after a jump that IDs did not follow", withheld),
    }
}

fn counted(what: &str, occasion: &Occasion) -> String {
    let times = match occasion.count {
        1 => "once".into(),
        count => format!("{count} times"),
    };
    format!("The wall clock has {what} {times} since {}.", timestamp::utc(occasion.since))
}

fn warn(message: String, detail: [&str; 4], hint: &str) {
    let sentences: Vec<&str> = detail.into_iter().filter(|sentence| !sentence.is_empty()).collect();
    warn_of(message, sentences.join(" "), hint);
}

/// Logs that a superuser has accepted the clock's time. Generator time was moved by `moved` microseconds as a result.
pub fn accepted(clock: i128, moved: u64) {
    log(
        format!("clock time {} was accepted", timestamp::utc(clock)),
        format!("The time in new IDs moved forward by {:.3} s.", moved as f64 / 1e6),
    );
}
