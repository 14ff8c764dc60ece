//! IDs as text: each ID has one text, which sorts like the ID. Each text is an ID or is refused with the reason.

mod common;

use common::{forall, ids};
use flake::{TEXT_LENGTH, TextError, from_text, to_text};
use proptest::prelude::*;

/// The digits as Crockford's page lists them, each with the characters that are read as it.
const DIGITS: [&str; 32] = [
    "0Oo", "1IiLl", "2", "3", "4", "5", "6", "7", "8", "9", "Aa", "Bb", "Cc", "Dd", "Ee", "Ff", "Gg", "Hh", "Jj", "Kk",
    "Mm", "Nn", "Pp", "Qq", "Rr", "Ss", "Tt", "Vv", "Ww", "Xx", "Yy", "Zz",
];

/// The text of an ID by division, digit by digit. This is the oracle.
fn written(id: i64) -> String {
    let digit = |place: u32| DIGITS[(id as u128 / 32u128.pow(place) % 32) as usize].chars().next().unwrap();
    (0..TEXT_LENGTH as u32).rev().map(digit).collect()
}

fn text(id: i64) -> String {
    String::from_utf8(to_text(id).expect("an ID has a text").to_vec()).expect("ASCII")
}

#[test]
fn an_id_is_written_in_thirteen_digits_and_read_back() {
    forall(20_000, ids(), |id| {
        prop_assert_eq!(text(id), written(id));
        prop_assert_eq!(from_text(text(id).as_bytes()), Ok(id));
        // A negative number has no text.
        prop_assert_eq!(to_text(-1 - id), None);
        Ok(())
    });
    assert_eq!(text(0), "0000000000000");
    assert_eq!(text(1), "0000000000001");
    assert_eq!(text(31), "000000000000Z");
    assert_eq!(text(32), "0000000000010");
    assert_eq!(text(i64::MAX), "7ZZZZZZZZZZZZ");
}

#[test]
fn texts_sort_like_their_ids() {
    forall(20_000, (ids(), ids()), |(one, other)| {
        for (one, other) in [(one, other), (one, one.saturating_add(1))] {
            prop_assert_eq!(text(one).cmp(&text(other)), one.cmp(&other));
        }
        Ok(())
    });
}

/// Fuzz: arbitrary bytes, and texts that are nearly right.
#[test]
fn no_bytes_make_the_reader_panic_and_what_it_accepts_is_what_they_say() {
    let near = "[0-9A-Za-z]{12,14}".prop_map(String::into_bytes);
    let nearer = "[0-7][0-9A-HJKMNP-TV-Z]{12}".prop_map(String::into_bytes);
    let bytes = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..20),
        any::<String>().prop_map(String::into_bytes),
        near,
        nearer
    ];
    forall(40_000, bytes, |bytes| {
        let value = |byte: &u8| DIGITS.iter().position(|alike| alike.contains(*byte as char) && byte.is_ascii());
        let bad = bytes.iter().take(TEXT_LENGTH).position(|byte| value(byte).is_none());
        let number =
            bytes.iter().take(TEXT_LENGTH).fold(0u128, |sum, byte| sum * 32 + value(byte).unwrap_or(0) as u128);
        let expected = match (bad, bytes.len()) {
            (Some(at), _) => Err(TextError::Digit { position: at + 1, byte: bytes[at] }),
            (None, length) if length < TEXT_LENGTH => Err(TextError::Short { length }),
            (None, length) if length > TEXT_LENGTH => Err(TextError::Long),
            (None, _) => i64::try_from(number).map_err(|_| TextError::TooLarge),
        };
        prop_assert_eq!(from_text(&bytes), expected);
        Ok(())
    });
}
