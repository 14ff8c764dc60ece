//! Periods of civil time.

/// The number of microseconds in a second.
const SECOND: i128 = 1_000_000;

/// The number of seconds in a day. As in PostgreSQL, civil time has no leap seconds.
const DAY: i128 = 86_400;

/// The number of days in 400 years, after which the calendar repeats.
const CYCLE: i128 = 146_097;

/// The number of days from 0000-03-01 to 1970-01-01. If years begin in March, the leap day is the last day of the year.
const FROM_MARCH: i128 = 719_468;

/// The length of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// One period for all time.
    All,
    /// A calendar year.
    Year,
    /// A calendar month.
    Month,
    /// A calendar day.
    Day,
    /// An hour of the clock. When summer time ends, two consecutive hours have the same name. They form one period.
    Hour,
}

/// A date and an hour in the proleptic Gregorian calendar, as a calendar and a wall clock show them. The year 0 is 1
/// BC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Civil {
    /// The year.
    pub year: i32,
    /// The month, from 1 to 12.
    pub month: u8,
    /// The day of the month, from 1 to 31.
    pub day: u8,
    /// The hour, from 0 to 23.
    pub hour: u8,
}

impl Civil {
    /// Returns the civil time at an instant, which is given in microseconds since the Unix epoch. Clocks are `offset`
    /// seconds ahead of UTC. Returns `None` if the year does not fit into `i32`.
    pub fn of(instant: i128, offset: i32) -> Option<Civil> {
        let seconds = instant.div_euclid(SECOND) + i128::from(offset);
        let days = seconds.div_euclid(DAY) + FROM_MARCH;
        let hour = seconds.rem_euclid(DAY) / 3_600;
        let (cycle, day_of_cycle) = (days.div_euclid(CYCLE), days.rem_euclid(CYCLE));
        // The last day of every four years is a leap day, except at the end of a century. The last day of the cycle is
        // also one.
        let year_of_cycle =
            (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / (CYCLE - 1)) / 365;
        let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        // From March on, each group of five months has 153 days.
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let (year, month) = (cycle * 400 + year_of_cycle, if month < 10 { month + 3 } else { month - 9 });
        let year = i32::try_from(if month < 3 { year + 1 } else { year }).ok()?;
        Some(Civil { year, month: month as u8, day: day as u8, hour: hour as u8 })
    }

    /// Returns the instant at which this hour begins in UTC, in microseconds since the Unix epoch.
    pub fn in_utc(&self) -> i128 {
        let (year, month, day) = (i128::from(self.year), i128::from(self.month), i128::from(self.day));
        // If years begin in March, the leap day is the last day of the year.
        let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
        let day_of_year = (153 * month + 2) / 5 + day - 1;
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let days = 365 * year + leap_days + day_of_year - FROM_MARCH;
        (days * DAY + i128::from(self.hour) * 3_600) * SECOND
    }

    /// Returns the first hour of a day, or `None` if the calendar does not contain this day.
    pub fn day(year: i32, month: u8, day: u8) -> Option<Civil> {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        (1..=days).contains(&day).then_some(Civil { year, month, day, hour: 0 })
    }
}

/// A period. Its text form sorts in chronological order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period {
    unit: Unit,
    /// The first hour of the period. For [`Unit::All`], it is a constant that has no meaning.
    start: Civil,
}

impl Period {
    /// Returns the period of this length that contains a civil time.
    pub fn of(unit: Unit, at: Civil) -> Period {
        let start = Civil {
            year: if unit >= Unit::Year { at.year } else { 0 },
            month: if unit >= Unit::Month { at.month } else { 1 },
            day: if unit >= Unit::Day { at.day } else { 1 },
            hour: if unit >= Unit::Hour { at.hour } else { 0 },
        };
        Period { unit, start }
    }

    /// Returns the first hour of the period.
    pub fn start(&self) -> Civil {
        self.start
    }

    /// Returns the text form of the period: `2026`, `2026-11`, `2026-11-22`, `2026-11-22 14`, or an empty string if
    /// there is only one period. The year must have four digits, as do all years that
    /// [`crate::serial::Template::period`] accepts.
    pub fn key(&self) -> String {
        let Civil { year, month, day, hour } = self.start;
        match self.unit {
            Unit::All => String::new(),
            Unit::Year => format!("{year:04}"),
            Unit::Month => format!("{year:04}-{month:02}"),
            Unit::Day => format!("{year:04}-{month:02}-{day:02}"),
            Unit::Hour => format!("{year:04}-{month:02}-{day:02} {hour:02}"),
        }
    }

    /// Returns the period of this length that has this text form, or `None` if there is no such period.
    pub fn from_key(unit: Unit, key: &[u8]) -> Option<Period> {
        let key = str::from_utf8(key).ok()?;
        let part = |from: usize, to: usize| key.get(from..to)?.parse::<u16>().ok();
        let small = |from, to| Some(part(from, to)? as u8);
        let year = if unit >= Unit::Year { i32::from(part(0, 4)?) } else { 0 };
        let month = if unit >= Unit::Month { small(5, 7)? } else { 1 };
        let day = if unit >= Unit::Day { small(8, 10)? } else { 1 };
        let hour = if unit >= Unit::Hour { small(11, 13)? } else { 0 };
        let start = Civil { hour, ..Civil::day(year, month, day)? };
        let period = Period::of(unit, start);
        // The comparison also checks the separators and the length.
        (hour < 24 && period.key() == key).then_some(period)
    }
}
