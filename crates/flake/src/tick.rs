//! The unit of an ID's timestamp.

use core::fmt;

/// Nanoseconds since the Unix epoch, the unit of generator time. The type can represent times until the year 2554.
pub type Nanos = u64;

/// The unit of the timestamp. Because these are the only units, the division that each ID requires has a constant
/// divisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tick {
    /// 1 ms, the unit of Twitter's, Discord's and most other snowflakes.
    Ms1,
    /// 10 ms, the unit of Sonyflake.
    Ms10,
    /// 1 s, the unit of uid-generator.
    S1,
}

impl Tick {
    /// All ticks that a layout can have, in ascending order of length.
    pub const ALL: [Tick; 3] = [Tick::Ms1, Tick::Ms10, Tick::S1];

    /// Returns the length in microseconds.
    pub const fn micros(self) -> u64 {
        match self {
            Tick::Ms1 => 1_000,
            Tick::Ms10 => 10_000,
            Tick::S1 => 1_000_000,
        }
    }

    /// Returns the length in nanoseconds.
    pub const fn nanos(self) -> Nanos {
        self.micros() * 1_000
    }

    /// Returns the number of whole ticks in `nanos`.
    #[inline]
    pub const fn whole(self, nanos: Nanos) -> u64 {
        match self {
            Tick::Ms1 => nanos / Tick::Ms1.nanos(),
            Tick::Ms10 => nanos / Tick::Ms10.nanos(),
            Tick::S1 => nanos / Tick::S1.nanos(),
        }
    }

    /// Returns the name that follows the `@` in a layout: `1ms`, `10ms` or `1s`.
    pub const fn name(self) -> &'static str {
        match self {
            Tick::Ms1 => "1ms",
            Tick::Ms10 => "10ms",
            Tick::S1 => "1s",
        }
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
