//! The parts of an error, a notice or a log message, and how they are sent to a session or to the log.
//!
//! Messages follow PostgreSQL's style guide: the message says what happened, the detail gives facts, and the hint gives
//! advice.

use std::fmt::Display;

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode};

/// An error or a message in the form that PostgreSQL reports.
pub struct Report {
    pub code: PgSqlErrorCode,
    pub message: String,
    /// Facts, or an empty string.
    pub detail: String,
    /// Advice, or an empty string.
    pub hint: String,
}

impl Report {
    /// Returns a report. If the detail or the hint is empty, it is omitted.
    pub fn of(
        code: PgSqlErrorCode,
        message: impl Into<String>,
        detail: impl Into<String>,
        hint: impl Into<String>,
    ) -> Report {
        Report { code, message: message.into(), detail: detail.into(), hint: hint.into() }
    }

    /// Raises an ERROR. In the postmaster, the error cannot be caught, so the server does not start.
    #[cold]
    pub fn raise(self) -> ! {
        self.send(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }

    /// Sends the report to the session or to the log, depending on the level.
    pub fn send(self, level: PgLogLevel) {
        let mut report = ErrorReport::new(self.code, self.message, "snowflake_pg");
        if !self.detail.is_empty() {
            report = report.set_detail(self.detail);
        }
        if !self.hint.is_empty() {
            report = report.set_hint(self.hint);
        }
        report.report(level);
    }

    /// Logs a warning whose message starts with `before`.
    pub fn warn(self, before: &str) {
        write(PgLogLevel::WARNING, Report { message: format!("{before}{}", self.message), ..self });
    }
}

/// Returns an error of the crate `flake` as a sentence. Its text begins with a lower-case letter and has no period.
pub fn as_sentence(error: &impl Display) -> String {
    let mut sentence = format!("{error}.");
    sentence[..1].make_ascii_uppercase();
    sentence
}

/// Returns a number with the words after it, which are `one` if the number is 1 and otherwise `many`.
pub fn number_of(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Logs a message at level LOG.
pub fn log(message: impl Into<String>, detail: impl Into<String>) {
    log_with_hint(message, detail, "");
}

/// Logs a message with a hint at level LOG.
pub fn log_with_hint(message: impl Into<String>, detail: impl Into<String>, hint: impl Into<String>) {
    write(PgLogLevel::LOG, Report::of(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, detail, hint));
}

/// Logs a message at level WARNING.
pub fn warn_of(message: impl Into<String>, detail: impl Into<String>, hint: impl Into<String>) {
    write(PgLogLevel::WARNING, Report::of(PgSqlErrorCode::ERRCODE_WARNING, message, detail, hint));
}

/// Logs a message that starts with the name of the extension, because the log also contains messages from other
/// programs.
fn write(level: PgLogLevel, report: Report) {
    let message = format!("snowflake_pg: {}", report.message);
    Report { message, ..report }.send(level);
}
