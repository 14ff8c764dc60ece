//! The hybrid clock: generator time advances with the monotonic clock, and is compared with the wall clock from time to time.
//!
//! The comparison is not between the two times. It is about how far the wall clock has moved since it was last trusted. A *step* is
//! a change of (wall clock - boot clock). Both advance while the machine is suspended, and both are slewed together, so the
//! difference changes only if the wall clock is set. A generator that leads the wall clock because it began at its mark does not
//! see a step.

use crate::Nanos;

/// The times of the machine's clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The monotonic clock. It cannot be set, and stops while the machine is suspended.
    pub monotonic: Nanos,
    /// The boot clock. It is a monotonic clock that also advances while the machine is suspended.
    pub boot: Nanos,
    /// The wall clock, since the Unix epoch.
    pub wall: Nanos,
    /// The time between the first and the last read. On a busy machine, the process can lose the processor between two reads.
    pub apart: Nanos,
}

impl Reading {
    /// Wall clock less boot clock, modulo 2^64: The difference of two such values is correct up to 292 years.
    const fn difference(&self) -> u64 {
        self.wall.wrapping_sub(self.boot)
    }
}

/// What to do if the wall clock was set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRegression {
    /// Continue at the speed of the monotonic clock.
    Continue,
    /// Reserve nothing more until the wall clock has reached its earlier value.
    Hold,
}

/// The rules for the clock, which a reload of the configuration can change.
#[derive(Clone, Copy, Debug)]
pub struct ClockRules {
    /// Steps up to this size, in nanoseconds, are followed without an event. Generator time may be set back by at most half of this
    /// below the last ID issued.
    pub slack: Nanos,
    /// Forward steps that would move generator time by more than this are not followed, in nanoseconds.
    pub max_jump: Nanos,
    /// What to do about backward steps.
    pub on_regression: OnRegression,
}

/// Something that happened to the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockEvent {
    /// It was set back by this much.
    Regression(Nanos),
    /// It was set forward by this much, more than `max_jump`, and is not followed.
    Jump(Nanos),
    /// It was set forward by this much, and is followed.
    Step(Nanos),
    /// It has come back from a jump.
    Returned,
    /// The monotonic clock went back by this much: the machine or the container was restored on another host. There is nothing to
    /// compare the wall clock with, so it is trusted as at a start.
    Restored(Nanos),
}

/// The state of the hybrid clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hybrid {
    /// The difference between generator time and the monotonic clock, modulo 2^64.
    pub offset: u64,
    /// Wall clock less boot clock when the wall clock was last trusted.
    pub reference: u64,
    /// Wall clock less boot clock at the last comparison, trusted or not.
    pub seen: u64,
    /// The wall-clock time before which nothing more may be reserved; 0 for none.
    pub hold_until: Nanos,
    /// The times between the reads from which `reference` and `seen` were made.
    pub apart: Nanos,
    /// The monotonic clock at the last comparison.
    pub compared_at: Nanos,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disciplined {
    /// The state from now on.
    pub clock: Hybrid,
    /// The event, if there was one.
    pub event: Option<ClockEvent>,
    /// How far the wall clock is behind the time at which reserving continues.
    pub behind: Option<Nanos>,
    /// How far generator time is ahead of the wall clock that is trusted.
    pub lead: Nanos,
}

impl Hybrid {
    /// A lead is reduced by one part in this of the time that passes, so that generator time always advances.
    const SLEW: Nanos = 10;

    /// The clock of a generator that starts at the wall clock or at `not_before`, whichever is later. There is nothing to compare
    /// the wall clock with.
    pub const fn start(reading: Reading, not_before: Nanos) -> Hybrid {
        let begin = if reading.wall > not_before { reading.wall } else { not_before };
        Hybrid {
            offset: begin.wrapping_sub(reading.monotonic),
            reference: reading.difference(),
            seen: reading.difference(),
            hold_until: 0,
            apart: reading.apart,
            compared_at: reading.monotonic,
        }
    }

    /// Generator time when the monotonic clock shows `monotonic`.
    #[inline]
    pub const fn time(&self, monotonic: Nanos) -> Nanos {
        monotonic.wrapping_add(self.offset)
    }

    /// Accepts the wall clock as correct, whatever its last comparison was.
    pub fn accept(mut self, reading: Reading) -> Hybrid {
        (self.reference, self.seen) = (reading.difference(), reading.difference());
        (self.hold_until, self.apart) = (0, reading.apart);
        self.raise(reading, reading.wall);
        self
    }

    /// Compares the clocks, which were read after this state. `issued` is the time of the last ID issued.
    pub fn discipline(mut self, reading: Reading, issued: Nanos, rules: &ClockRules) -> Disciplined {
        if reading.monotonic < self.compared_at {
            let clock = Hybrid::start(reading, issued);
            let event = Some(ClockEvent::Restored(self.compared_at - reading.monotonic));
            let lead = clock.time(reading.monotonic).saturating_sub(reading.wall);
            return Disciplined { clock, event, behind: None, lead };
        }
        // Each of the two readings that are compared can be wrong by the time between its first and its last read.
        let slack = rules.slack.saturating_add(reading.apart).saturating_add(self.apart);
        let difference = reading.difference();
        let moved = difference.wrapping_sub(self.reference) as i64;
        let unseen = difference.wrapping_sub(self.seen) as i64;
        let elapsed = reading.monotonic - self.compared_at;
        self.seen = difference;
        self.compared_at = reading.monotonic;

        let by = moved.unsigned_abs();
        // What counts is how far IDs would move. If they lead because the clock was set back, the clock can return to its earlier
        // value without being accepted.
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
        // An event is one change of the clock, however many comparisons see it.
        let event = (unseen.unsigned_abs() > slack).then_some(kind);

        let trusted = if matches!(kind, ClockEvent::Jump(_)) {
            // The uncertainty of two readings: the reference and the last one.
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
            // Otherwise the rest of the reservation would be drawn from again.
            0
        } else if held {
            // Nothing was reserved meanwhile, so generator time returns to the wall clock at once, as far as the issued IDs allow.
            lead.min(now.saturating_sub(issued))
        } else if moved < 0 && by > rules.max_jump && by <= elapsed && issued <= trusted {
            // By the monotonic clock this time has passed, by the wall clock it has not, and no ID was issued in it. This happens
            // if a machine is restored on a host that has been up for longer.
            lead
        } else {
            // At most half of the slack below the last ID, which is less than the lead that would throttle the next request.
            lead.min(elapsed / Hybrid::SLEW).min(now.saturating_add(rules.slack / 2).saturating_sub(issued))
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
