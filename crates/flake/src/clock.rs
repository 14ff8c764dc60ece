//! The generator's clock. Generator time advances with the monotonic clock, and is compared with the wall clock from
//! time to time.
//!
//! The comparison determines how far the wall clock has moved since it was last trusted, not how far it is from
//! generator time. A *step* is a change of the difference between the wall clock and the boot clock. Both clocks
//! advance while the machine is suspended, and both are slewed together, so the difference changes only if the wall
//! clock is set. It is not a step if a generator is ahead of the wall clock because it began at its mark.
//!
//! If the rules of the configuration do not let a generator continue after the wall clock was set back, the caller waits
//! or raises an error: in the server, this is `src/generator/clock_behind.rs`.

use crate::Nanos;

/// The times of the machine's clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The monotonic clock. It cannot be set, and it stops while the machine is suspended.
    pub monotonic: Nanos,
    /// The boot clock. Unlike the monotonic clock, it also advances while the machine is suspended.
    pub boot: Nanos,
    /// The wall clock, as the time since the Unix epoch.
    pub wall: Nanos,
    /// The time between the first read and the last read. On a busy machine, the process can be suspended between two
    /// reads.
    pub apart: Nanos,
}

impl Reading {
    /// Returns the wall clock minus the boot clock, modulo 2^64. The difference between two results is correct for up
    /// to 292 years.
    const fn difference(&self) -> u64 {
        self.wall.wrapping_sub(self.boot)
    }
}

/// What to do if the wall clock was set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRegression {
    /// Continue at the speed of the monotonic clock.
    Continue,
    /// Reserve nothing until the wall clock has reached its earlier value again.
    Hold,
}

/// The rules for following the wall clock. They can be changed by reloading the configuration.
#[derive(Clone, Copy, Debug)]
pub struct ClockRules {
    /// The size of the largest step that is followed without an event, in nanoseconds. Generator time can be set back
    /// to a time before the last ID, but by at most half of this value.
    pub slack: Nanos,
    /// The largest distance by which a forward step may move generator time, in nanoseconds. A step that would move it
    /// further is not followed.
    pub max_jump: Nanos,
    /// What to do after a backward step.
    pub on_regression: OnRegression,
}

/// A change of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockEvent {
    /// The wall clock was set back by this much.
    Regression(Nanos),
    /// The wall clock was set forward by this much, which is more than `max_jump`. The step is not followed.
    Jump(Nanos),
    /// The wall clock was set forward by this much. The step is followed.
    Step(Nanos),
    /// The wall clock has returned from a jump.
    Returned,
    /// The monotonic clock went backward by this much, because the machine or the container was restored on a different
    /// host. The wall clock cannot be compared with an earlier reading, so it is trusted, as when a server starts.
    Restored(Nanos),
}

/// The state of the generator clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratorClock {
    /// The difference between generator time and the monotonic clock, modulo 2^64.
    pub offset: u64,
    /// The wall clock minus the boot clock when the wall clock was last trusted.
    pub reference: u64,
    /// The wall clock minus the boot clock at the last comparison, whether or not the wall clock was trusted.
    pub seen: u64,
    /// The wall-clock time until which nothing may be reserved, or 0 if there is no such time.
    pub hold_until: Nanos,
    /// The time between the first read and the last read of the reading from which `reference` and `seen` were
    /// computed. If they come from two readings, this is the longer of the two times.
    pub apart: Nanos,
    /// The time of the monotonic clock at the last comparison.
    pub compared_at: Nanos,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disciplined {
    /// The new state.
    pub clock: GeneratorClock,
    /// The event, if there was one.
    pub event: Option<ClockEvent>,
    /// How far the wall clock is behind the time at which reservations resume, if it is behind.
    pub behind: Option<Nanos>,
    /// How far generator time is ahead of the trusted wall-clock time.
    pub lead: Nanos,
}

impl GeneratorClock {
    /// The lead is reduced by the elapsed time divided by this number, so that generator time always advances.
    const SLEW: Nanos = 10;

    /// Returns the clock of a generator that starts at the wall-clock time or at `not_before`, whichever is later. The
    /// wall clock is trusted, because there is no earlier reading to compare it with.
    pub const fn start(reading: Reading, not_before: Nanos) -> GeneratorClock {
        let begin = if reading.wall > not_before { reading.wall } else { not_before };
        GeneratorClock {
            offset: begin.wrapping_sub(reading.monotonic),
            reference: reading.difference(),
            seen: reading.difference(),
            hold_until: 0,
            apart: reading.apart,
            compared_at: reading.monotonic,
        }
    }

    /// Returns generator time when the monotonic clock shows `monotonic`.
    #[inline]
    pub const fn time(&self, monotonic: Nanos) -> Nanos {
        monotonic.wrapping_add(self.offset)
    }

    /// Accepts the wall clock as correct, regardless of the last comparison.
    pub fn accept(mut self, reading: Reading) -> GeneratorClock {
        (self.reference, self.seen) = (reading.difference(), reading.difference());
        (self.hold_until, self.apart) = (0, reading.apart);
        self.raise(reading, reading.wall);
        self
    }

    /// Compares the clocks. `reading` must have been taken after this state was read. `issued` is the time of the ID
    /// that was issued last.
    pub fn discipline(mut self, reading: Reading, issued: Nanos, rules: &ClockRules) -> Disciplined {
        if reading.monotonic < self.compared_at {
            let clock = GeneratorClock::start(reading, issued);
            let event = Some(ClockEvent::Restored(self.compared_at - reading.monotonic));
            let lead = clock.time(reading.monotonic).saturating_sub(reading.wall);
            return Disciplined { clock, event, behind: None, lead };
        }
        // Each of the two readings can be wrong by the time between its first and its last read.
        let slack = rules.slack.saturating_add(reading.apart).saturating_add(self.apart);
        let difference = reading.difference();
        let moved = difference.wrapping_sub(self.reference) as i64;
        let unseen = difference.wrapping_sub(self.seen) as i64;
        let elapsed = reading.monotonic - self.compared_at;
        self.seen = difference;
        self.compared_at = reading.monotonic;

        let by = moved.unsigned_abs();
        // The size of a forward step is the distance by which it would move the IDs. If the IDs are ahead because the
        // wall clock was set back, the wall clock can return to its earlier value without being accepted manually.
        let ahead = reading.wall.saturating_sub(self.time(reading.monotonic));
        let kind = if moved > 0 && by.min(ahead) > rules.max_jump.max(slack) {
            ClockEvent::Jump(by)
        } else if by <= slack {
            ClockEvent::Returned
        } else if moved < 0 {
            ClockEvent::Regression(by)
        } else {
            ClockEvent::Step(by)
        };
        // One change of the clock causes only one event, even if several comparisons detect it.
        let event = (unseen.unsigned_abs() > slack).then_some(kind);

        let trusted = if matches!(kind, ClockEvent::Jump(_)) {
            // `reference` and `seen` now come from different readings, so the larger uncertainty applies.
            self.apart = self.apart.max(reading.apart);
            reading.boot.wrapping_add(self.reference)
        } else {
            (self.reference, self.apart) = (difference, reading.apart);
            reading.wall
        };

        if matches!(kind, ClockEvent::Regression(_)) {
            self.hold_until = self.hold_until.max(reading.wall.saturating_add(by));
        }
        if rules.on_regression == OnRegression::Continue {
            self.hold_until = 0;
        }
        let held = self.hold_until > 0;
        let behind = self.hold_until.saturating_sub(trusted);
        if behind == 0 {
            self.hold_until = 0;
        }

        let now = self.time(reading.monotonic);
        self.raise(reading, trusted);
        let lead = now.saturating_sub(trusted);
        let lower = if behind > 0 {
            // Generator time must not be set back here. Otherwise, sessions could resume drawing from the rest of the
            // reservation.
            0
        } else if held {
            // Nothing has been reserved in the meantime. Generator time returns to the wall clock at once,
            // but not to a time before the last ID.
            lead.min(now.saturating_sub(issued))
        } else if moved < 0 && by > rules.max_jump && by <= elapsed && issued <= trusted {
            // While the monotonic clock advanced by this much, the wall clock did not, and no ID was issued. This
            // happens if a machine is restored on a host that has been up for longer.
            lead
        } else {
            // Generator time is set back to at most half of the slack before the last ID. This is less than the lead at
            // which the next request would be throttled.
            lead.min(elapsed / GeneratorClock::SLEW).min(now.saturating_add(rules.slack / 2).saturating_sub(issued))
        };
        self.offset = self.offset.wrapping_sub(lower);
        Disciplined {
            clock: self,
            event,
            behind: (behind > 0).then_some(behind),
            lead: self.time(reading.monotonic).saturating_sub(trusted),
        }
    }

    fn raise(&mut self, reading: Reading, to: Nanos) {
        if to > self.time(reading.monotonic) {
            self.offset = to.wrapping_sub(reading.monotonic);
        }
    }
}
