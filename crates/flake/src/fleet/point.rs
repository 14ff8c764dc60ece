//! Times as numbers in the range of IDs.

use core::time::Duration;

use crate::{IdFormat, Layout};

/// The distance between two holders of a worker ID. It is also the largest permitted difference between the clocks of
/// the registry's hosts.
pub const MARGIN: Duration = Duration::from_mins(10);

/// How far ahead of the registry's clock the bound of a first grant is.
pub const FIRST_GRANT: Duration = MARGIN;

/// The shortest lease that a server can request.
pub const MIN_LEASE: Duration = Duration::from_mins(10);

/// The longest lease that a server can request.
pub const MAX_LEASE: Duration = Duration::from_hours(24);

/// The longest lease of a spare worker ID, even if a server requests a longer one.
pub const SPARE_LEASE: Duration = Duration::from_hours(1);

/// By how much the count of a worker ID may exceed one per second. This allows for clocks that differ by one margin.
pub const COUNT_SLACK: u64 = 1_000;

/// How far ahead of the registry's clock the quarantine of the spare worker IDs ends. It ends after every bound that a
/// spare worker ID can have.
pub const NEAR: Duration = Duration::from_mins(60 + 20);

/// How far ahead of the registry's clock a quarantine ends. It ends after every bound that can have been granted. The
/// end does not depend on the leases in the registry's records, because these records can also be lost.
pub const FAR: Duration = Duration::from_mins(24 * 60 + 20);

/// A time as a number in the range of IDs, from 0 to 2^63 - 1. It is the lowest ID of any node in the tick that
/// contains the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point(u64);

/// A duration as a distance between two points, from 0 to 2^63 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointSpan(u64);

impl Point {
    /// The lowest point. If a quarantine ends at this point, there was no quarantine.
    pub const ZERO: Point = Point(0);

    /// The highest point, which is the largest `bigint`.
    pub const MAX: Point = Point(i64::MAX as u64);

    /// Returns the point with this number, or `None` if the number is negative.
    pub const fn new(number: i64) -> Option<Point> {
        if number < 0 { None } else { Some(Point(number as u64)) }
    }

    /// Returns the number. It is in the range of IDs.
    pub const fn id(self) -> i64 {
        self.0 as i64
    }

    /// Returns the point that is `span` above this point, but at most [`Point::MAX`].
    pub const fn plus(self, span: PointSpan) -> Point {
        // Both numbers are below 2^63, so the sum fits into `u64`.
        let sum = self.0 + span.0;
        if sum > Point::MAX.0 { Point::MAX } else { Point(sum) }
    }

    /// Returns the point that is `span` below this point, but at least [`Point::ZERO`].
    pub const fn minus(self, span: PointSpan) -> Point {
        Point(self.0.saturating_sub(span.0))
    }

    /// Returns true if this point is below the time `now` of a clock.
    pub const fn passed(self, now: Point) -> bool {
        self.0 < now.0
    }
}

impl PointSpan {
    /// Returns twice this span, but at most 2^63 - 1.
    pub const fn twice(self) -> PointSpan {
        PointSpan(Point(self.0).plus(self).0)
    }
}

/// Converts between times and points for one layout and epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    format: IdFormat,
    margin: PointSpan,
    far: PointSpan,
    near: PointSpan,
}

impl Scale {
    /// Returns the scale for a layout and an epoch.
    pub const fn new(format: IdFormat) -> Scale {
        let margin = span(&format.layout, MARGIN);
        let far = Point(span(&format.layout, MAX_LEASE).0).plus(margin.twice());
        let near = Point(span(&format.layout, SPARE_LEASE).0).plus(margin.twice());
        Scale { format, margin, far: PointSpan(far.0), near: PointSpan(near.0) }
    }

    /// Returns the layout and the epoch.
    pub const fn format(&self) -> IdFormat {
        self.format
    }

    /// Returns the span of [`MARGIN`].
    pub const fn margin(&self) -> PointSpan {
        self.margin
    }

    /// Returns the span of [`FAR`].
    pub const fn far(&self) -> PointSpan {
        self.far
    }

    /// Returns the span of [`NEAR`].
    pub const fn near(&self) -> PointSpan {
        self.near
    }

    /// Returns the point of a time, which is given in microseconds since the Unix epoch. The point of a time before the
    /// layout's epoch is 0. The point of a time after the layout's last tick is the layout's last ID.
    pub fn point(&self, at: i64) -> Point {
        let layout = &self.format.layout;
        let since = i128::from(at) - i128::from(self.format.epoch.unix_ms()) * 1_000;
        match since.div_euclid(i128::from(layout.tick().micros())) {
            ..0 => Point::ZERO,
            tick if tick > i128::from(layout.max(crate::Part::Timestamp)) => Point(layout.last_id() as u64),
            tick => Point((tick as u64) << layout.timestamp_shift()),
        }
    }

    /// Returns the time at which the tick of a point begins, in microseconds since the Unix epoch.
    pub fn time(&self, point: Point) -> i128 {
        self.format.instant(point.0 >> self.format.layout.timestamp_shift())
    }

    /// Returns the first point of the first tick above this number, but at most [`Point::MAX`]. Returns point 0 for the
    /// number 0.
    pub const fn tick_above(&self, number: Point) -> Point {
        let shift = self.format.layout.timestamp_shift();
        let above = ((number.0 >> shift) + 1) << shift;
        if number.0 == 0 {
            Point::ZERO
        } else if above > Point::MAX.0 {
            Point::MAX
        } else {
            Point(above)
        }
    }

    /// Returns the span of a duration, rounded up to a whole number of ticks.
    pub const fn span(&self, duration: Duration) -> PointSpan {
        span(&self.format.layout, duration)
    }
}

const fn span(layout: &Layout, duration: Duration) -> PointSpan {
    let ticks = duration.as_nanos().div_ceil(layout.tick().nanos() as u128);
    let max = Point::MAX.0 as u128;
    // The shift is at most 62 bits. If the shift would lose bits, the number of ticks is above the maximum even before
    // the shift.
    let shift = layout.timestamp_shift();
    if ticks > max >> shift { PointSpan(Point::MAX.0) } else { PointSpan((ticks as u64) << shift) }
}
