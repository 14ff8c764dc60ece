//! The events for which a session can wait, and their names.

#[cfg(not(any(feature = "pg15", feature = "pg16")))]
use std::ffi::CStr;

/// An event for which a session waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WaitEvent {
    /// The session waits for the clock, because the lead is at its limit.
    Throttled,
    /// The session waits for the mark, because another session is extending the reservation or because the synchronous
    /// standby has not acknowledged the mark yet.
    Mark,
    /// The session waits for the wall clock, because it was set back.
    Clock,
    /// The session waits for the registrar to fetch numbers of a segment.
    Segment,
}

impl WaitEvent {
    pub const ALL: [WaitEvent; 4] = [WaitEvent::Throttled, WaitEvent::Mark, WaitEvent::Clock, WaitEvent::Segment];

    /// Returns the name that `pg_stat_activity` shows in PostgreSQL 17 and later.
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    pub fn wait_event_name(self) -> &'static CStr {
        match self {
            WaitEvent::Throttled => c"SnowflakeThrottled",
            WaitEvent::Mark => c"SnowflakeMark",
            WaitEvent::Clock => c"SnowflakeClock",
            WaitEvent::Segment => c"SnowflakeSegment",
        }
    }

    /// Returns the name that this extension's views show.
    pub fn name(self) -> &'static str {
        match self {
            WaitEvent::Throttled => "throttled",
            WaitEvent::Mark => "mark",
            WaitEvent::Clock => "clock",
            WaitEvent::Segment => "segment",
        }
    }
}
