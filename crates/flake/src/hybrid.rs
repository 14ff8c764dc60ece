//! The hybrid clock: generator time runs on the monotonic clock and is compared with the wall clock now and then.
//!
//! What is compared is not the two times but how the wall clock moved since it was last trusted. A *step* is a change of
//! (wall clock - boot clock): both run on through a suspension of the machine, and both are slewed together, so that the
//! difference changes only when somebody sets the wall clock. A generator that leads the wall clock, because it began at
//! its mark, sees no step for that.

use crate::Nanos;

/// What the clocks of the machine show at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The monotonic clock, which nobody sets and which stands still while the machine is suspended.
    pub monotonic: Nanos,
    /// The boot clock: the monotonic one, but running on through a suspension.
    pub boot: Nanos,
    /// The wall clock, since the Unix epoch.
    pub wall: Nanos,
    /// How far apart in time the three were read: a busy machine can take the processor away between two reads.
    pub apart: Nanos,
}

impl Reading {
    /// Wall clock less boot clock, modulo 2^64: differences of two of these are right within 292 years.
    const fn difference(&self) -> u64 {
        self.wall.wrapping_sub(self.boot)
    }
}

/// What to do when the wall clock was set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRegression {
    /// Go on at the speed of the monotonic clock.
    Continue,
    /// Reserve nothing more until the wall clock is back where it was.
    Hold,
}

/// What a reload of the configuration can change about the clock.
#[derive(Clone, Copy, Debug)]
pub struct ClockRules {
    /// Steps up to this size are followed without notice, in nanoseconds; also how far below the last ID issued generator
    /// time may be taken back, twice over.
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
    /// The monotonic clock went back by this much: the machine or the container was restored on another host. Nothing is left
    /// to judge the wall clock by, which is trusted as at a start.
    Restored(Nanos),
}

/// The state of the hybrid clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hybrid {
    /// What to add to the monotonic clock, modulo 2^64, to get generator time.
    pub offset: u64,
    /// Wall clock less boot clock when the wall clock was last trusted.
    pub reference: u64,
    /// Wall clock less boot clock at the last comparison, trusted or not.
    pub seen: u64,
    /// The wall-clock time before which nothing more may be reserved; 0 for none.
    pub hold_until: Nanos,
    /// How far apart the reads were that `reference` and `seen` come from.
    pub apart: Nanos,
    /// The monotonic clock at the last comparison.
    pub compared_at: Nanos,
}

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disciplined {
    /// The state from now on.
    pub clock: Hybrid,
    /// What was noticed.
    pub event: Option<ClockEvent>,
    /// How far the wall clock is from where it must be before anything more is reserved.
    pub behind: Option<Nanos>,
    /// How far generator time is ahead of the wall clock that is trusted.
    pub lead: Nanos,
}

impl Hybrid {
    /// A lead is reduced by one part in this of the time that passes, so that generator time always advances.
    const SLEW: Nanos = 10;

    /// The clock of a generator that starts: at the wall clock, or at `not_before` where that is later. There is nothing to
    /// judge the wall clock by.
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

    /// Takes the wall clock for right, whatever it was compared with.
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
        // Each of the two readings that are compared can be wrong by as much as it was apart.
        let slack = rules.slack.saturating_add(reading.apart).saturating_add(self.apart);
        let difference = reading.difference();
        let moved = difference.wrapping_sub(self.reference) as i64;
        let unseen = difference.wrapping_sub(self.seen) as i64;
        let elapsed = reading.monotonic - self.compared_at;
        self.seen = difference;
        self.compared_at = reading.monotonic;

        let by = moved.unsigned_abs();
        // By how far IDs would move: where they lead, as after the clock was set back, it may return to them unasked.
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
        // Each event is one change, however often it is looked at.
        let event = (unseen.unsigned_abs() > slack).then_some(kind);

        let trusted = if matches!(kind, ClockEvent::Jump(_)) {
            // Of two readings now, that of the reference and the last.
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
            // What is left of the reservation would be drawn from anew.
            0
        } else if held {
            // Nothing was reserved meanwhile: back to the wall clock at once, as far as what was issued allows.
            lead.min(now.saturating_sub(issued))
        } else if moved < 0 && by > rules.max_jump && by <= elapsed && issued <= trusted {
            // The monotonic clock says that all this time has passed, the wall clock that it has not, and nothing was issued in it:
            // so it is where a machine is restored on a host that has been up for longer.
            lead
        } else {
            // Half of the slack below the last ID at most: less than what would throttle the next.
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
