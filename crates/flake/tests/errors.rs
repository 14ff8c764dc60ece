//! The texts of the errors, which programs outside PostgreSQL show to their users.

use core::error::Error;
use core::time::Duration;

use flake::fleet::{Point, RegistryRefusal};
use flake::serial::{Field, NotASerial, Overflow, TemplateError, YearRange};
use flake::{FormatError, InvalidKey, Layout, LayoutError, Obstacle, Part, PartError, TextError, Undrawn, UuidError};

/// Checks the texts of errors, in boxes as in a program that passes on errors of any type. Each is a sentence in the style of the
/// messages of PostgreSQL.
fn check<const COUNT: usize>(errors: [(Box<dyn Error + Send + Sync>, &str); COUNT]) {
    for (error, expected) in errors {
        assert!(error.source().is_none(), "{error} repeats itself");
        let text = error.to_string();
        assert_eq!(text, expected);
        let first = text.chars().next().expect("a text");
        assert!(!first.is_uppercase() && !text.ends_with('.') && !text.contains('\n'), "{text:?}");
    }
}

#[test]
fn layouts() {
    let width = LayoutError::Width { part: Part::Worker, bits: 33, min: 0, max: 32 };
    check([
        (LayoutError::Malformed.into(), "a layout is three or four widths in bits, or the name of a preset"),
        (LayoutError::UnknownTick.into(), "the tick after \"@\" must be \"1ms\", \"10ms\" or \"1s\""),
        (width.into(), "the worker field is 33 bits wide, but it can be 0 to 32 bits wide"),
        (LayoutError::TooWide { bits: 64 }.into(), "the widths add up to 64 bits, but an ID can have at most 63"),
    ]);
    assert_eq!(Layout::MAX_BITS, 63);
}

#[test]
fn ids() {
    let part = PartError { part: Part::Sequence, value: -1, max: 4095 };
    let sequence = "-1 does not fit into the sequence field, which can hold 0 to 4095";
    check([
        (part.into(), sequence),
        (FormatError::Part(part).into(), sequence),
        (FormatError::Negative.into(), "a negative number is not an ID"),
        (FormatError::TooLarge { max: 1023 }.into(), "the number is above 1023, the largest ID of the layout"),
        (FormatError::BeforeEpoch.into(), "the time is before the epoch"),
        (FormatError::AfterEnd.into(), "the time is after the last tick of the layout"),
    ]);
}

#[test]
fn texts() {
    let digit = |byte| TextError::Digit { position: 3, byte };
    check([
        (TextError::Short { length: 12 }.into(), "the text has 12 characters, but the text of an ID has 13"),
        (TextError::Long.into(), "the text has more than 13 characters"),
        (digit(b'U').into(), "character 3 is \"U\", which is not a base-32 digit"),
        (digit(0xc3).into(), "character 3 is not a base-32 digit"),
        (TextError::TooLarge.into(), "the number has more than 63 bits, because the first character is above \"7\""),
    ]);
}

#[test]
fn uuids() {
    check([
        (UuidError::Variant.into(), "the UUID does not have the variant that RFC 9562 defines"),
        (UuidError::Version { version: 7 }.into(), "the UUID has version 7, but an ID in UUID form has version 8"),
        (UuidError::Rest.into(), "the last 59 bits of the UUID are not 0"),
    ]);
}

#[test]
fn keys() {
    let expected = "the key has 15 bytes, but a key has 16, 24 or 32 bytes";
    let digits = "the key consists of 32 hexadecimal digits instead of the bytes that they represent";
    check([
        (InvalidKey::Length { length: 15 }.into(), expected),
        (InvalidKey::Hexadecimal { length: 32 }.into(), digits),
    ]);
}

#[test]
fn templates() {
    let (twice, lacks) = (
        TemplateError::Twice { field: Field::Month },
        TemplateError::Lacks { field: Field::Month, needs: Field::Year },
    );
    let periods = "the template contains {MM} but not {YYYY}, so serials of different periods would be identical";
    check([
        (TemplateError::Long { length: 101 }.into(), "the template has 101 bytes, but the maximum is 100"),
        (TemplateError::Brace { position: 4 }.into(), "the brace at byte 4 does not belong to a field"),
        (TemplateError::Width.into(), "the width of the number must be from 1 to 18 digits"),
        (TemplateError::NoNumber.into(), "the template does not contain {n:width}"),
        (twice.into(), "the template contains {MM}, or a different field for the same unit of time, more than once"),
        (lacks.into(), periods),
        (Overflow { max: 999 }.into(), "the template has room for numbers from 0 to 999"),
        (YearRange { first: 2000, last: 2099 }.into(), "the template can represent years from 2000 to 2099"),
        (NotASerial::Form.into(), "the text does not match the template"),
        (NotASerial::Time.into(), "the text contains a time that does not exist"),
    ]);
}

#[test]
fn obstacles() {
    check([
        (Obstacle::NotLoaded.into(), "the state is not loaded"),
        (Obstacle::NotReserved(8).into(), "word 8 is not reserved"),
        (Obstacle::Throttled(Duration::from_millis(2)).into(), "the lead is at its limit for another 2ms"),
        (Obstacle::Exhausted.into(), "the timestamps of the layout are exhausted"),
        (Obstacle::BeforeEpoch.into(), "the clock is before the epoch"),
        (Undrawn::Dry.into(), "all numbers have been drawn, and the next block has not arrived yet"),
        (Undrawn::Closed.into(), "the segment is closed, or now serves a different tag"),
    ]);
}

#[test]
fn the_registry() {
    let quarantine = RegistryRefusal::Quarantine { until: Point::new(7).expect("a point") };
    check([
        (RegistryRefusal::ForeignFleet.into(), "the server belongs to a different fleet"),
        (RegistryRefusal::Layout.into(), "the server's layout or epoch differs from the fleet's"),
        (RegistryRefusal::Life.into(), "the registry has begun a new life"),
        (quarantine.into(), "the registry is in quarantine, and no spare worker ID is free"),
        (RegistryRefusal::Floor { until: Point::ZERO }.into(), "the fleet does not grant IDs yet"),
        (RegistryRefusal::Clock { until: Point::ZERO }.into(), "the server's clock is behind"),
        (RegistryRefusal::Full.into(), "no worker ID is free"),
        (RegistryRefusal::Range.into(), "the datacenter ID or the worker ID does not fit into its field"),
        (RegistryRefusal::Lease.into(), "the lease is out of range"),
        (RegistryRefusal::Implausible.into(), "the renewal contains values that the registry cannot have granted"),
    ]);
}
