//! The errors about keys, tweaks and concealed IDs. None of them contains a key.

use flake::{InvalidKey, KEY_LENGTHS};
use pgrx::PgSqlErrorCode::{ERRCODE_INVALID_PARAMETER_VALUE, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE};

use crate::message::error::ConcealProblem;
use crate::message::reasons::Sentences;

/// Returns the error for a problem with the arguments of a function that conceals or reveals IDs.
pub fn report(problem: &ConcealProblem) -> Sentences {
    match problem {
        ConcealProblem::Key(invalid) => key(*invalid),
        ConcealProblem::TweakLength { bytes, max } => (
            ERRCODE_INVALID_PARAMETER_VALUE,
            "invalid length of a tweak".into(),
            format!("The tweak has {bytes} bytes, but a tweak can have at most {max} bytes."),
            "Pass a shorter tweak, for example the name of a table, or sha256() of a longer value.".into(),
        ),
        ConcealProblem::Negative { concealed } => (
            ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{concealed} is not a concealed ID"),
            "A concealed ID cannot be negative.".into(),
            "Pass a number that snowflake_conceal() returned.".into(),
        ),
    }
}

/// Returns the error for bytes that are not a key.
fn key(invalid: InvalidKey) -> Sentences {
    let [short, middle, long] = KEY_LENGTHS;
    let (message, detail) = match invalid {
        InvalidKey::Length { length } => ("invalid length of a key", format!("The key has {length} bytes.")),
        InvalidKey::Hexadecimal { length } => (
            "key consists of hexadecimal digits",
            format!(
                "The key has {length} bytes, and each byte is the character of a hexadecimal digit. The digits represent a key of {} \
                 bytes.",
                length / 2
            ),
        ),
    };
    let random = format!("Pass a key of {short}, {middle} or {long} random bytes.");
    let program = "In a program, pass the key as bytes and not as a string.";
    let hint = match invalid {
        InvalidKey::Length { length: 0 } => {
            "If the key is read from a table, check that the row of the key exists.".into()
        }
        // The bytes that the digits represent are not a key either.
        InvalidKey::Hexadecimal { length } if !KEY_LENGTHS.contains(&(length / 2)) => format!("{random} {program}"),
        _ => format!(
            "{random} To pass hexadecimal digits, call decode('000102030405060708090a0b0c0d0e0f', 'hex'), or write them as a \
             bytea: '\\x000102030405060708090a0b0c0d0e0f'. {program}"
        ),
    };
    (ERRCODE_INVALID_PARAMETER_VALUE, message.into(), detail, hint)
}
