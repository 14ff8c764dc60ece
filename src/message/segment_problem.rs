//! The errors that a session can get when it draws a number of a segment, as facts. [`crate::message::segment`] turns them into text.

/// Why there is no number of a segment.
#[derive(Clone, Debug)]
pub enum SegmentProblem {
    /// The server has no registry.
    NoRegistry,
    /// The server is in recovery.
    Standby,
    /// The tag is empty or too long.
    Length {
        /// How many bytes the tag has, in UTF-8.
        bytes: usize,
    },
    /// The registry has no such segment.
    Unknown,
    /// The segment has issued as many numbers as it may until this time, in microseconds since the Unix epoch.
    Wait { until: i128 },
    /// The segment has issued its last number.
    Exhausted,
    /// The segment is one of a period of a series that has not begun.
    NotBegun {
        /// When the period begins, in microseconds since the Unix epoch.
        begins: i128,
    },
    /// The segment is one of a period of a series that ended long ago, and only the owner of the series can begin it.
    LongAgo {
        /// When the period began, in microseconds since the Unix epoch.
        begins: i128,
    },
    /// The tag is one of a series.
    OfSeries,
    /// Another session has locked the segment in the registry.
    Locked,
    /// The registry has raised an error instead of creating the segment.
    NotCreated,
    /// The encoding of the registry's database lacks a character of the tag.
    Encoding,
    /// The registry cannot be asked for numbers.
    Unreachable {
        /// When the first request failed, in microseconds since the Unix epoch.
        since: i128,
        /// How many requests have failed since then.
        failures: u64,
        /// Why the last request failed.
        cause: String,
        /// What to do about the cause, or an empty text.
        hint: String,
    },
    /// The registrar looks up tags, but has not looked up this one in time.
    Crowded,
    /// The registrar does not answer.
    NoRegistrar,
}
