//! The epoch: the instant that corresponds to a timestamp of 0 in an ID.

use crate::Nanos;

/// The instant that corresponds to a timestamp of 0, in whole milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// 2010-11-04 01:42:54.657 UTC, the epoch of Twitter's snowflakes (`twepoch` in Twitter's `IdWorker.scala`). It is the
    /// default epoch of layouts that are not presets ([`IdFormat::parse`](crate::IdFormat::parse)).
    pub const TWITTER: Epoch = Epoch(1_288_834_974_657);

    /// 2014-09-01 00:00:00 UTC, the default start time of Sonyflake (`sonyflake.go`).
    pub const SONYFLAKE: Epoch = Epoch(1_409_529_600_000);

    /// 2199-12-31 23:59:59.999 UTC, the latest epoch that is accepted. With this epoch, all generator times still fit
    /// into [`Nanos`].
    pub const MAX: Epoch = Epoch(7_258_118_399_999);

    /// Creates the epoch of a preset.
    pub(crate) const fn at(ms: u64) -> Epoch {
        Epoch(ms)
    }

    /// Returns the epoch that is `ms` milliseconds after 1970-01-01 00:00:00 UTC, or `None` if `ms` is not in the range
    /// from 0 to [`Epoch::MAX`].
    pub const fn from_unix_ms(ms: i64) -> Option<Epoch> {
        if ms >= 0 && ms as u64 <= Epoch::MAX.0 { Some(Epoch(ms as u64)) } else { None }
    }

    /// Returns the epoch as milliseconds since 1970-01-01 00:00:00 UTC.
    pub const fn unix_ms(self) -> i64 {
        self.0 as i64
    }

    /// Returns the epoch as nanoseconds since 1970-01-01 00:00:00 UTC.
    pub const fn nanos(self) -> Nanos {
        self.0 * 1_000_000
    }
}
