//! Instants in ISO 8601.

/// Days in 400 years, after which the calendar repeats.
const ERA_DAYS: i128 = 146_097;

/// Days from 0000-03-01 to 1970-01-01.
const TO_UNIX_EPOCH: i128 = 719_468;

const DAY_MS: i128 = 86_400_000;

/// A number of milliseconds since 1970 in ISO 8601, in UTC. A year of more than four digits has a sign and at least six
/// digits, as in JavaScript.
pub fn iso(unix_ms: i128) -> String {
    let (days, ms) = (unix_ms.div_euclid(DAY_MS), unix_ms.rem_euclid(DAY_MS));
    let (year, month, day) = date(days);
    let year = if year > 9_999 { format!("+{year:06}") } else { format!("{year:04}") };
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

/// Year, month and day of a number of days since 1970. Years begin in March here, so that a leap day is the last day.
fn date(days: i128) -> (i128, i128, i128) {
    let days = days + TO_UNIX_EPOCH;
    let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + 400 * era + i128::from(month <= 2), month, day)
}

#[test]
fn known_instants_have_their_dates() {
    for (unix_ms, text) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_288_834_974_657, "2010-11-04T01:42:54.657Z"),
        (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        // The last instant of JavaScript's Date.
        (8_640_000_000_000_000, "+275760-09-13T00:00:00.000Z"),
    ] {
        assert_eq!(iso(unix_ms), text);
    }
}
