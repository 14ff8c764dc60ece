//! Concealed IDs: the errors about keys, tweaks and concealed IDs. None of them contains a key.

use flake::{InvalidKey, KEY_LENGTHS};
use pgrx::PgSqlErrorCode;

use crate::message::report::Report;

/// Why an ID cannot be concealed or revealed.
#[derive(Clone, Copy, Debug)]
pub enum ConcealProblem {
    /// AES does not support keys of this length, or the key consists of hexadecimal digits.
    Key(InvalidKey),
    /// The tweak is too long.
    TweakLength { bytes: usize, max: usize },
    /// A negative number cannot be a concealed ID.
    Negative { concealed: i64 },
}

impl ConcealProblem {
    pub fn report(&self) -> Report {
        match self {
            ConcealProblem::Key(invalid) => key(*invalid),
            ConcealProblem::TweakLength { bytes, max } => Report::of(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "invalid tweak length",
                format!("The tweak is {bytes} bytes long, but a tweak can be at most {max} bytes long."),
                "Pass a shorter tweak, for example the name of a table, or sha256() of a longer value.",
            ),
            ConcealProblem::Negative { concealed } => Report::of(
                PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{concealed} is not a concealed ID"),
                "A concealed ID cannot be negative.",
                "Pass a number that snowflake_conceal() returned.",
            ),
        }
    }
}

/// Returns the error for bytes that are not a key.
fn key(invalid: InvalidKey) -> Report {
    let [short, middle, long] = KEY_LENGTHS;
    let (message, detail) = match invalid {
        InvalidKey::Length { length } => ("invalid key length", format!("The key has {length} bytes.")),
        InvalidKey::Hexadecimal { length } => (
            "key consists of hexadecimal digits",
            format!(
                "The key has {length} bytes, and every byte is an ASCII hexadecimal digit. The digits represent a key \
                 of {} bytes.",
                length / 2
            ),
        ),
    };
    let random = format!("Pass a key of {short}, {middle} or {long} random bytes.");
    let program = "In a program, pass the key as bytes, not as a string.";
    let hint = match invalid {
        InvalidKey::Length { length: 0 } => {
            "If the key is read from a table, check that the row with the key exists.".into()
        }
        // The bytes that the digits represent do not form a key either.
        InvalidKey::Hexadecimal { length } if !KEY_LENGTHS.contains(&(length / 2)) => format!("{random} {program}"),
        _ => format!(
            "{random} To pass hexadecimal digits, call decode('000102030405060708090a0b0c0d0e0f', 'hex'), or write them as a \
             bytea: '\\x000102030405060708090a0b0c0d0e0f'. {program}"
        ),
    };
    Report::of(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message, detail, hint)
}
