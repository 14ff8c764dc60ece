//! Segments: the errors of sessions that draw numbers from them, and the registrar's log messages about them.

use pgrx::PgSqlErrorCode;

use crate::message::pages;
use crate::message::registry::Trouble;
use crate::message::report::{Report, log, log_with_hint, number_of, warn_of};
use crate::pg::text_arg::ascii;
use crate::pg::timestamp;

/// Why no number can be drawn from a segment. Times are in microseconds since the Unix epoch.
#[derive(Clone, Debug)]
pub enum SegmentProblem {
    /// The server does not use a registry.
    NoRegistry,
    /// The server is in recovery.
    Standby,
    /// The tag is empty or too long. Its length is in bytes of UTF-8.
    Length { bytes: usize },
    /// The registry has no such segment.
    Unknown,
    /// The segment has reached its limit and issues no more numbers until this time.
    Wait { until: i128 },
    /// The segment has issued its last number.
    Exhausted,
    /// The segment belongs to a period of a series that has not begun. The period begins at this time.
    NotBegun { begins: i128 },
    /// The segment belongs to a period that began at this time and ended long ago. Only the owner of the series can
    /// create it.
    LongAgo { begins: i128 },
    /// The tag belongs to a series.
    OfSeries,
    /// Another session has locked the segment in the registry.
    Locked,
    /// The registry raised an error instead of creating the segment.
    NotCreated,
    /// The tag contains a character that does not exist in the encoding of the registry's database.
    Encoding,
    /// The registry cannot be reached. The first request failed at `since`, and `failures` requests have failed since
    /// then. `cause` is why the last one failed, and `hint` is how to resolve the cause, or an empty string.
    Unreachable { since: i128, failures: u64, cause: String, hint: String },
    /// The registrar is looking up tags but has not looked up this one in time.
    Crowded,
    /// The registrar does not respond.
    NoRegistrar,
}

impl SegmentProblem {
    /// Returns the error report. The tag is in ASCII.
    pub fn report(&self, tag: &str) -> Report {
        match self {
            SegmentProblem::NoRegistry => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "this server has no registry",
                "Segment numbers come from a registry, which can be in a database of this server.",
                format!(
                    "Create a registry, remove \"snowflake_pg.worker_id\" from the configuration, set \"snowflake_pg.registry\", and \
                     restart the server. See {}.",
                    pages::ORDERS
                ),
            ),
            SegmentProblem::Standby => Report::of(
                PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
                "cannot draw a number from a segment during recovery",
                "The server is a standby or has not finished recovery yet.",
                "Run the statement on the primary.",
            ),
            SegmentProblem::Length { bytes } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "invalid tag length",
                format!("The tag has {bytes} bytes in UTF-8."),
                "Pass a tag of 1 to 200 bytes.",
            ),
            SegmentProblem::Unknown => Report::of(
                PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
                format!("segment \"{tag}\" does not exist"),
                "",
                match tag.starts_with("series ") {
                    false => {
                        "In the database of the registry, run SELECT snowflake_registry.create_segment(tag) as the owner \
                         of the registry."
                    }
                    true => {
                        "In the database of the registry, run SELECT snowflake_registry.create_segment(tag, start, \
                         begins_at => ..) as the owner of the registry. Pass the first unused number as the start."
                    }
                },
            ),
            SegmentProblem::Wait { until } => Report::of(
                PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                format!("segment \"{tag}\" has issued too many numbers in a short time"),
                format!("The registry will issue the next numbers at {}.", timestamp::utc(*until)),
                "Wait until then. To issue more numbers in the same time, call snowflake_registry.recreate_segment(tag, \
                 max_step => ..) as the owner of the registry.",
            ),
            SegmentProblem::Exhausted => Report::of(
                PgSqlErrorCode::ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!("segment \"{tag}\" has issued its last number"),
                "The largest number is 9223372036854775806.",
                "Create another segment.",
            ),
            SegmentProblem::NotBegun { begins } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the period of segment \"{tag}\" has not begun"),
                format!(
                    "The period begins at {}, which is more than 10 minutes ahead of the registry's clock.",
                    timestamp::utc(*begins)
                ),
                "Pass a time in a period that has begun, or use a series of kind \"gapless\". If the period has begun, check the clocks of \
                 this server and of the registry.",
            ),
            SegmentProblem::LongAgo { begins } => Report::of(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("only the owner of the series can begin segment \"{tag}\""),
                format!(
                    "No number has been drawn for this period, which began at {} and ended more than 100 days ago.",
                    timestamp::utc(*begins)
                ),
                "As the owner of the series, call snowflake_serial() once with a time in this period. After that, other \
                 roles can also draw numbers.",
            ),
            SegmentProblem::OfSeries => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("segment \"{tag}\" belongs to a series"),
                "",
                "Call snowflake_serial() with the series, or pass a tag that does not begin with \"series \".",
            ),
            SegmentProblem::NotCreated => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("the registry has not created segment \"{tag}\""),
                "The registry raised an error, which was written to the server log.",
                "Correct the cause shown in the server log, and retry the statement.",
            ),
            SegmentProblem::Locked => Report::of(
                PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
                format!("segment \"{tag}\" is locked in the registry"),
                "The server has waited for the lock, and will retry.",
                "In the database of the registry, find the session that has locked the row of the tag, and end its transaction. See views \
                 \"pg_locks\" and \"pg_stat_activity\".",
            ),
            SegmentProblem::Encoding => Report::of(
                PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER,
                format!("the registry cannot store tag \"{tag}\""),
                "The tag contains a character that the encoding of the registry's database cannot represent.",
                "Use a tag that consists of ASCII characters only, or move the registry to a database whose encoding \
                 is UTF8.",
            ),
            SegmentProblem::Unreachable { since, failures, cause, hint } => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("segment \"{tag}\" has no more numbers on this server, and the registry is not issuing any"),
                format!(
                    "Since {}, {}. The last error was: {}.",
                    timestamp::utc(*since),
                    number_of(*failures, "request has failed", "requests have failed"),
                    cause.trim_end_matches('.')
                ),
                format!(
                    "{hint} The server resumes issuing numbers as soon as a request succeeds. See view \
                    \"snowflake_segments\"."
                )
                .trim(),
            ),
            SegmentProblem::Crowded => Report::of(
                PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
                format!("segment \"{tag}\" was not looked up in time"),
                "Sessions are requesting new segments faster than the server can look them up.",
                "Find the sessions that request segments that do not exist, revoke EXECUTE on function \
                 snowflake_segment_nextval(text) from their roles, and retry the statement.",
            ),
            SegmentProblem::NoRegistrar => Report::of(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("segment \"{tag}\" has no numbers on this server"),
                "Background worker \"snowflake_pg registrar\" is not responding.",
                "Check that the background worker is running: increase \"max_worker_processes\" if all slots are in \
                 use, and look for errors in the server log.",
            ),
        }
    }
}

/// Logs why no blocks can be fetched from the registry.
pub fn failed(trouble: &Trouble) {
    let mut report = trouble.report();
    report.detail =
        format!("{} Sessions continue to draw numbers until their segments are used up.", report.detail).trim().into();
    report.warn("cannot fetch segment numbers: ");
}

/// Logs that this server cannot report its blocks to the registry.
pub fn unreported(trouble: &Trouble) {
    trouble.report().warn("cannot report the segments of this server: ");
}

/// Logs that another session has locked a tag in the registry.
pub fn locked(tag: &str) {
    warn_of(
        format!("segment \"{}\" is locked in the registry", ascii(tag)),
        "The server retries every few seconds. Sessions continue to draw numbers until the segment is used up.",
        "In the database of the registry, find the session that has locked the row of the tag, and end its transaction.",
    );
}

/// Logs why the registry did not create the tag of a period.
pub fn not_created(tag: &str, trouble: &Trouble) {
    trouble.report().warn(&format!("cannot create segment \"{}\": ", ascii(tag)));
}

/// Logs that the registry issues blocks again after earlier requests failed.
pub fn recovered(failures: u64) {
    let times = number_of(failures, "failed request", "failed requests");
    log(format!("fetched segment numbers after {times}"), "");
}

/// Logs that the blocks of a tag belong to an earlier segment with this tag.
pub fn created_again(tag: &str) {
    log(
        format!("segment \"{}\" was created again", ascii(tag)),
        "The earlier segment was dropped, or the registry had lost it. This server has discarded the numbers that it \
         held from the earlier segment.",
    );
}

/// Logs that this server holds blocks of a segment that does not exist in the registry.
pub fn gone(tag: &str) {
    log_with_hint(
        format!("segment \"{}\" no longer exists", ascii(tag)),
        "The segment was dropped, or the registry has lost it. This server has discarded the numbers that it held from \
         the segment.",
        format!(
            "If nobody has dropped the segment, read {} before you create it again.",
            pages::ORDERS.section("A segment skips numbers after a failover")
        ),
    );
}

/// Logs that the registry had lost a block of this server.
pub fn raised(tag: &str) {
    warn_of(
        format!("the registry had forgotten numbers of segment \"{}\"", ascii(tag)),
        "This server continues to issue the numbers that it holds. They remain unique, because the registry skips all \
         numbers that it might have forgotten.",
        "Check whether the registry's server has failed over or was restored. Run it with a synchronous standby if numbers must not be \
         skipped.",
    );
}
