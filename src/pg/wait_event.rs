//! The events that a session can wait for.

/// An event that a session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WaitEvent {
    /// The clock, because the lead is at its limit.
    Throttled,
    /// The mark, because another session extends it, or because the synchronous standby has not acknowledged it yet.
    Mark,
    /// The wall clock, because it was set back.
    Clock,
}

impl WaitEvent {
    /// All events.
    pub const ALL: [WaitEvent; 3] = [WaitEvent::Throttled, WaitEvent::Mark, WaitEvent::Clock];

    /// The name that views show.
    pub fn name(self) -> &'static str {
        match self {
            WaitEvent::Throttled => "throttled",
            WaitEvent::Mark => "mark",
            WaitEvent::Clock => "clock",
        }
    }
}
