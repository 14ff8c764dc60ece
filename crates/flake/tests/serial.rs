//! Serials: a serial is its template with the fields replaced, in the civil time that the calendar of another library shows. It is read
//! back, and each text that is not a serial is refused.

mod common;

use common::forall;
use flake::serial::{Civil, Field, MAX_DIGITS, NotASerial, Overflow, Period, Template, TemplateError, Unit, YearRange};
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use proptest::prelude::*;

/// Time zones with summer time at midnight, with half hours, with years of other rules, and with a day that was left out.
const ZONES: [&str; 10] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Asia/Beirut",
    "Antarctica/Troll",
];

/// Each template, and the same in the notation of `strftime`, with `#` for the number.
const TEMPLATES: [(&str, &str, Unit); 8] = [
    ("{n:9}", "#", Unit::All),
    ("RE-{YYYY}-{n:5}", "RE-%Y-#", Unit::Year),
    ("{n:4}/{YY}", "#/%y", Unit::Year),
    ("{MM}.{YYYY}: {n:1}", "%m.%Y: #", Unit::Month),
    ("ORD-{YYYY}{MM}{DD}-{n:6}", "ORD-%Y%m%d-#", Unit::Day),
    ("{DD}{MM}{YY}{n:3}", "%d%m%y#", Unit::Day),
    ("{YYYY}{MM}{DD}{HH}{n:18}", "%Y%m%d%H#", Unit::Hour),
    ("{HH}h{n:2}h{DD}h{MM}h{YYYY}Größe", "%Hh#h%dh%mh%YGröße", Unit::Hour),
];

fn template(text: &str) -> Template {
    Template::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn text(serial: &[u8]) -> &str {
    str::from_utf8(serial).expect("the template is UTF-8")
}

/// The civil time that the core computes, with the offset that the other library knows.
fn civil(at: Timestamp, zone: &TimeZone) -> Civil {
    Civil::of(at.as_microsecond().into(), zone.to_offset(at).seconds()).expect("a year of the calendar")
}

/// Instants of all years, of our time, and beside each other.
fn instants() -> impl Strategy<Value = Timestamp> {
    let of = |micros| Timestamp::from_microsecond(micros).unwrap();
    let (first, last) = (Timestamp::MIN.as_microsecond(), Timestamp::MAX.as_microsecond());
    prop_oneof![
        2 => (first..=last).prop_map(of),
        6 => (0..=4_102_444_800_000_000i64).prop_map(of),
        // The hours of a year, and the microseconds around each of them.
        2 => (0..600_000i64, -2..=2i64).prop_map(move |(hour, beside)| of(hour * 3_600_000_000 + beside)),
    ]
}

/// Checks the serial of an instant against the notation of `strftime`, and reads it back.
fn check(at: Timestamp, zone: &TimeZone, number: i64) -> Result<(), TestCaseError> {
    let zoned = at.to_zoned_datetime(zone.clone());
    for (form, naive, unit) in TEMPLATES {
        let template = template(form);
        prop_assert_eq!(template.unit(), unit);
        let years = if naive.contains("%y") { 2000..=2099 } else { 1..=9999 };
        let period = template.period(civil(at, zone));
        if !years.contains(&i32::from(zoned.year())) && unit != Unit::All {
            prop_assert_eq!(period, Err(YearRange { first: *years.start(), last: *years.end() }));
            continue;
        }
        let (period, number) = (period.unwrap(), number % (template.max() + 1));
        let width = template.max().to_string().len();
        let serial = template.format(period, number).unwrap();
        let expected = zoned.strftime(naive).to_string().replace('#', &format!("{number:0width$}"));
        prop_assert_eq!(text(&serial), &expected);
        prop_assert_eq!(template.read(&serial), Ok((period, number)));
        let key = match unit {
            Unit::All => "",
            Unit::Year => "%Y",
            Unit::Month => "%Y-%m",
            Unit::Day => "%Y-%m-%d",
            Unit::Hour => "%Y-%m-%d %H",
        };
        prop_assert_eq!(period.key(), zoned.strftime(key).to_string());
        prop_assert_eq!(template.period_of_key(period.key().as_bytes()), Some(period));
    }
    Ok(())
}

#[test]
fn a_serial_is_the_template_in_the_civil_time_of_the_zone() {
    let zones: Vec<TimeZone> = ZONES.iter().map(|name| TimeZone::get(name).unwrap()).collect();
    forall(5_000, (instants(), 0..zones.len(), 0..10i64.pow(18)), |(at, zone, number)| check(at, &zones[zone], number));
}

/// Every change of the offset in two centuries, and New Year and midnight in each zone, a microsecond before and after.
#[test]
fn periods_change_at_midnight_with_summer_time_and_at_new_year() {
    for name in ZONES {
        let zone = TimeZone::get(name).unwrap();
        let from: Timestamp = "1950-01-01T00:00:00Z".parse().unwrap();
        let changes = zone.following(from).map(|change| change.timestamp()).take(300);
        let new_years = (1970..2100).filter_map(|year| {
            let midnight = jiff::civil::date(year, 1, 1).at(0, 0, 0, 0);
            Some(midnight.to_zoned_datetime(zone.clone()).ok()?.timestamp())
        });
        // PostgreSQL and POSIX time have no leap seconds: the last one was at the end of 2016.
        let leap = "2017-01-01T00:00:00Z".parse().unwrap();
        for at in changes.chain(new_years).chain([leap]).collect::<Vec<Timestamp>>() {
            for beside in [-1_000_001, -1_000_000, -1, 0, 1, 1_000_000, 3_600_000_000, -3_600_000_000] {
                let at = Timestamp::from_microsecond(at.as_microsecond() + beside).unwrap();
                check(at, &zone, 1).unwrap_or_else(|wrong| panic!("{name} {at}: {wrong}"));
            }
        }
    }
}

/// Civil time from any instant that PostgreSQL has, and far beyond.
#[test]
fn any_instant_has_a_civil_time_or_none() {
    let zone = |seconds| TimeZone::fixed(Offset::from_seconds(seconds).unwrap());
    forall(20_000, (instants(), -86_400..=86_400), |(at, offset)| {
        let there = at.to_zoned_datetime(zone(offset)).datetime();
        let expected = Civil {
            year: there.year().into(),
            month: there.month() as u8,
            day: there.day() as u8,
            hour: there.hour() as u8,
        };
        prop_assert_eq!(Civil::of(at.as_microsecond().into(), offset), Some(expected));
        let hour = at.as_microsecond().div_euclid(3_600_000_000) * 3_600_000_000;
        prop_assert_eq!(Civil::of(hour.into(), 0).map(|civil| civil.in_utc()), Some(hour.into()));
        Ok(())
    });
    assert_eq!(Civil::of(i128::MAX / 4, 0), None);
    assert_eq!(Civil::of(i128::MIN / 4, -86_400), None);
    let late = Civil::of(9_224_318_015_999_999_999, 0).unwrap();
    assert_eq!(late, Civil { year: 294_276, month: 12, day: 31, hour: 23 });
    assert_eq!(template("{YYYY}{n:1}").period(late), Err(YearRange { first: 1, last: 9999 }));
    assert_eq!(template("{n:1}").period(late).unwrap().key(), "");
}

#[test]
fn a_number_that_outgrows_its_width_is_an_error_and_never_cut() {
    forall(2_000, (1..=MAX_DIGITS, any::<i64>()), |(digits, number)| {
        let template = template(&format!("A{{n:{digits}}}"));
        let max = "9".repeat(digits as usize).parse().unwrap();
        let period = template.period(Civil::day(2026, 1, 1).unwrap()).unwrap();
        let serial = template.format(period, number);
        match (0..=max).contains(&number) {
            true => prop_assert_eq!(serial.unwrap().len(), 1 + digits as usize),
            false => prop_assert_eq!(serial, Err(Overflow { max })),
        }
        prop_assert_eq!(template.format(period, max).unwrap(), format!("A{max}").into_bytes());
        prop_assert_eq!(template.format(period, max + 1), Err(Overflow { max }));
        Ok(())
    });
}

/// A serial with one byte replaced, inserted or removed is refused, or is another serial that is written in the same way.
#[test]
fn a_text_has_one_meaning_or_none() {
    let change = (0..TEMPLATES.len(), 0..100usize, any::<u8>(), 0..3, 0..10i64.pow(9), 2000..2100, 1..=12u8, 1..=28u8);
    forall(30_000, change, |(form, at, byte, how, number, year, month, day)| {
        let template = template(TEMPLATES[form].0);
        let period = template.period(Civil { year, month, day, hour: 23 }).unwrap();
        let number = number % (template.max() + 1);
        let mut serial = template.format(period, number).unwrap();
        let (before, at) = (serial.clone(), at % serial.len());
        match how {
            0 => serial[at] = byte,
            1 => serial.insert(at, byte),
            _ => drop(serial.remove(at)),
        }
        match template.read(&serial) {
            Ok((other, other_number)) => {
                prop_assert_eq!(&template.format(other, other_number).unwrap(), &serial);
                prop_assert_eq!((other, other_number) == (period, number), serial == before);
            }
            Err(_) => prop_assert_ne!(serial, before),
        }
        Ok(())
    });
}

#[test]
fn a_text_that_is_no_serial_is_refused_with_the_reason() {
    let daily = template("A-{YY}{MM}{DD}{HH}-{n:3}");
    for (serial, error) in [
        ("A-26022912-001", NotASerial::Time),
        ("A-26130112-001", NotASerial::Time),
        ("A-26010024-001", NotASerial::Time),
        ("A-26010124-001", NotASerial::Time),
        ("A-26010112-01", NotASerial::Form),
        ("A-26010112-0001", NotASerial::Form),
        ("B-26010112-001", NotASerial::Form),
        ("A-26010112-0o1", NotASerial::Form),
        ("A-26010112-+01", NotASerial::Form),
        ("A-26010112-\u{661}1", NotASerial::Form),
        ("", NotASerial::Form),
    ] {
        assert_eq!(daily.read(serial.as_bytes()), Err(error), "{serial}");
    }
    assert!(daily.read(b"A-28022912-001").is_ok());
    assert_eq!(template("{YYYY}{n:1}").read(b"00001"), Err(NotASerial::Time));
}

#[test]
fn a_text_that_is_no_template_is_refused_with_the_reason() {
    let brace = |position| TemplateError::Brace { position };
    let twice = |field| TemplateError::Twice { field };
    let lacks = |field, needs| TemplateError::Lacks { field, needs };
    let long = "x".repeat(97) + "{n:1}";
    for (text, error) in [
        ("", TemplateError::NoNumber),
        ("INV-{YYYY}", TemplateError::NoNumber),
        ("{n:1}{n:1}", twice(Field::Number)),
        ("{n:3}{YY}{YYYY}", twice(Field::Year)),
        ("{n:3}{YY}{MM}{MM}", twice(Field::Month)),
        ("{n:0}", TemplateError::Width),
        ("{n:19}", TemplateError::Width),
        ("{n:}", TemplateError::Width),
        ("{n}", TemplateError::Width),
        ("{n:+1}", TemplateError::Width),
        ("{n:18446744073709551617}", TemplateError::Width),
        ("{MM}{n:3}", lacks(Field::Month, Field::Year)),
        ("{YYYY}{DD}{n:3}", lacks(Field::Day, Field::Month)),
        ("{DD}{n:3}", lacks(Field::Day, Field::Year)),
        ("{YY}{MM}{HH}{n:3}", lacks(Field::Hour, Field::Day)),
        ("{YYYY{n:3}", brace(1)),
        ("A{n:3", brace(2)),
        ("A}{n:3}", brace(2)),
        ("{yyyy}{n:3}", brace(1)),
        ("{YYYYMMDD}{n:3}", brace(1)),
        ("{}{n:3}", brace(1)),
        (&long, TemplateError::Long { length: 102 }),
    ] {
        assert_eq!(Template::parse(text.as_bytes()), Err(error), "{text}");
    }
}

#[test]
fn a_period_has_one_text() {
    let key = |unit, key: &str| Period::from_key(unit, key.as_bytes()).map(|period| period.key());
    for (unit, good) in [
        (Unit::All, ""),
        (Unit::Year, "2026"),
        (Unit::Month, "2026-11"),
        (Unit::Day, "2028-02-29"),
        (Unit::Hour, "2026-11-22 23"),
    ] {
        assert_eq!(key(unit, good).as_deref(), Some(good));
        for bad in [format!("{good} "), format!(" {good}"), format!("{good}0"), good.replace('2', "\u{662}")] {
            assert!(bad == good || key(unit, &bad).is_none(), "{bad}");
        }
    }
    for (unit, bad) in [
        (Unit::Year, "+026"),
        (Unit::Year, ""),
        (Unit::Month, "2026-13"),
        (Unit::Month, "2026/11"),
        (Unit::Day, "2026-02-29"),
        (Unit::Day, "2026-11-+1"),
        (Unit::Day, "2026-11"),
        (Unit::Hour, "2026-11-22 24"),
        (Unit::Hour, "2026-11-22T23"),
    ] {
        assert_eq!(key(unit, bad), None, "{bad}");
    }
    // Years that the template cannot write.
    assert_eq!(template("{YY}{n:3}").period_of_key(b"1999"), None);
    assert_eq!(template("{YYYY}{n:3}").period_of_key(b"0000"), None);
}

/// Two templates are distinct if no serial of one is a serial of the other: the oracle tries many serials.
#[test]
fn templates_are_distinct_if_they_share_no_serial() {
    let pieces = prop_oneof!["[A0-2]{0,2}", Just("{n:1}".to_string()), Just("{n:2}".to_string())];
    let form = (pieces.clone(), pieces.clone(), pieces).prop_map(|(one, two, three)| one + &two + &three);
    forall(20_000, (form.clone(), form), |(one, other)| {
        let parse = |form: &String| Template::parse(form.as_bytes());
        let (Ok(one), Ok(other)) = (parse(&one), parse(&other)) else { return Ok(()) };
        let period = one.period(Civil::day(2026, 1, 1).unwrap()).unwrap();
        let shared = (0..=one.max()).any(|number| other.read(&one.format(period, number).unwrap()).is_ok());
        prop_assert_eq!(one.distinct(&other), one == other || !shared);
        prop_assert_eq!(one.distinct(&other), other.distinct(&one));
        Ok(())
    });
    let distinct = |one, other| template(one).distinct(&template(other));
    assert!(distinct("RE-{YYYY}-{n:5}", "RG-{YYYY}-{n:5}"));
    assert!(distinct("RE-{YYYY}-{n:5}", "RE-{YYYY}-{n:6}"));
    assert!(!distinct("{YYYY}{MM}{n:2}", "{MM}{YYYY}{n:2}"));
    assert!(!distinct("1{n:3}", "{n:4}"));
}
