//! The errors of sessions that draw the numbers of a segment.

use pgrx::PgSqlErrorCode::{
    self, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, ERRCODE_INSUFFICIENT_PRIVILEGE, ERRCODE_INVALID_PARAMETER_VALUE,
    ERRCODE_LOCK_NOT_AVAILABLE, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, ERRCODE_READ_ONLY_SQL_TRANSACTION,
    ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED, ERRCODE_UNDEFINED_OBJECT, ERRCODE_UNTRANSLATABLE_CHARACTER,
};

use crate::message::pages;
use crate::message::reasons::Sentences;
use crate::message::segment_problem::SegmentProblem;
use crate::pg::timestamp;

/// Returns the error of a session that gets no number of a segment. The tag is in ASCII.
pub fn report(tag: &str, problem: &SegmentProblem) -> Sentences {
    let (code, message, detail, hint): (PgSqlErrorCode, String, String, String) = match problem {
        SegmentProblem::NoRegistry => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "this server has no registry".into(),
            "The numbers of segments come from a registry, which can be in a database of this server.".into(),
            format!(
                "Create a registry, remove \"snowflake_pg.worker_id\" from the configuration, set \"snowflake_pg.registry\", and \
                 restart the server. See {}.",
                pages::ORDERS
            ),
        ),
        SegmentProblem::Standby => (
            ERRCODE_READ_ONLY_SQL_TRANSACTION,
            "cannot draw a number of a segment during recovery".into(),
            "The server is a standby or has not finished recovery yet.".into(),
            "Run the statement on the primary.".into(),
        ),
        SegmentProblem::Length { bytes } => (
            ERRCODE_INVALID_PARAMETER_VALUE,
            "invalid length of a tag".into(),
            format!("The tag has {bytes} bytes in UTF-8."),
            "Pass a tag of 1 to 200 bytes.".into(),
        ),
        SegmentProblem::Unknown => (
            ERRCODE_UNDEFINED_OBJECT,
            format!("segment \"{tag}\" does not exist"),
            String::new(),
            match tag.starts_with("series ") {
                false => "In the database of the registry, run SELECT snowflake_registry.create_segment(tag) as its owner.",
                true => {
                    "In the database of the registry, run SELECT snowflake_registry.create_segment(tag, start, begins_at => ..) as its \
                     owner, with the first number that is not used."
                }
            }
            .into(),
        ),
        SegmentProblem::Wait { until } => (
            ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            format!("segment \"{tag}\" has issued too many numbers in a short time"),
            format!("The registry issues the next numbers at {}.", timestamp::utc(*until)),
            "Wait until then. To issue more numbers in the same time, call snowflake_registry.recreate_segment(tag, \
             max_step => ..) as the owner of the registry."
                .into(),
        ),
        SegmentProblem::Exhausted => (
            ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
            format!("segment \"{tag}\" has issued its last number"),
            "The greatest number is 9223372036854775806.".into(),
            "Create another segment.".into(),
        ),
        SegmentProblem::NotBegun { begins } => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("the period of segment \"{tag}\" has not begun"),
            format!("By the clock of the registry, it begins in more than 10 minutes, at {}.", timestamp::utc(*begins)),
            "Pass a time in a period that has begun, or use a series of kind \"gapless\". If the period has begun, check the clocks of \
             this server and of the registry."
                .into(),
        ),
        SegmentProblem::LongAgo { begins } => (
            ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("only the owner of the series can begin segment \"{tag}\""),
            format!(
                "No number of this period was drawn, and the period, which began at {}, ended more than 100 days ago.",
                timestamp::utc(*begins)
            ),
            "Call snowflake_serial() with a time in this period once as the owner of the series. After that, other roles can draw.".into(),
        ),
        SegmentProblem::OfSeries => (
            ERRCODE_INVALID_PARAMETER_VALUE,
            format!("segment \"{tag}\" belongs to a series"),
            String::new(),
            "Call snowflake_serial() with the series, or pass a tag that does not begin with \"series \".".into(),
        ),
        SegmentProblem::NotCreated => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("the registry has not created segment \"{tag}\""),
            "The registry has raised an error, which is in the server log.".into(),
            "Correct the cause that the server log shows, and run the statement again.".into(),
        ),
        SegmentProblem::Locked => (
            ERRCODE_LOCK_NOT_AVAILABLE,
            format!("segment \"{tag}\" is locked in the registry"),
            "The server has waited for the lock, and asks again.".into(),
            "In the database of the registry, find the session that has locked the row of the tag, and end its transaction. See views \
             \"pg_locks\" and \"pg_stat_activity\"."
                .into(),
        ),
        SegmentProblem::Encoding => (
            ERRCODE_UNTRANSLATABLE_CHARACTER,
            format!("the registry cannot store tag \"{tag}\""),
            "The encoding of the registry's database lacks a character of the tag.".into(),
            "Use a tag with ASCII characters only, or move the registry to a database whose encoding is UTF8.".into(),
        ),
        SegmentProblem::Unreachable { since, failures, cause, hint } => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("segment \"{tag}\" has no more numbers on this server, and the registry issues none"),
            format!(
                "Since {}, {}. The last error is: {}.",
                timestamp::utc(*since),
                if *failures == 1 { "1 request has failed".into() } else { format!("{failures} requests have failed") },
                cause.trim_end_matches('.')
            ),
            format!("{hint} The server issues numbers again as soon as a request succeeds. See view \"snowflake_segments\".")
                .trim()
                .into(),
        ),
        SegmentProblem::Crowded => (
            ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            format!("segment \"{tag}\" was not looked up in time"),
            "Sessions ask for more new segments than the server looks up.".into(),
            "Find the sessions that ask for segments that do not exist, revoke EXECUTE on function snowflake_segment_nextval(text) from \
             their roles, and retry the statement."
                .into(),
        ),
        SegmentProblem::NoRegistrar => (
            ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("segment \"{tag}\" has no numbers on this server"),
            "Background worker \"snowflake_pg registrar\" does not answer.".into(),
            "Check that the background worker runs: increase \"max_worker_processes\" if all slots are in use, and look for errors in \
             the server log."
                .into(),
        ),
    };
    (code, message, detail, hint)
}
