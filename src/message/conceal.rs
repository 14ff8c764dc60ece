//! The errors about keys, tweaks and concealed IDs. None of them contains a key.

use flake::KEY_LENGTHS;
use pgrx::prelude::*;

use crate::message::error::ConcealProblem;
use crate::message::reasons::Sentences;

/// Returns the error for a problem with the arguments of a function that conceals or reveals IDs.
pub fn report(problem: &ConcealProblem) -> Sentences {
    use PgSqlErrorCode::{ERRCODE_INVALID_PARAMETER_VALUE, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE};
    match problem {
        ConcealProblem::KeyLength { bytes } => {
            let [short, middle, long] = KEY_LENGTHS;
            (
                ERRCODE_INVALID_PARAMETER_VALUE,
                "invalid length of a key".into(),
                format!("The key has {bytes} bytes."),
                format!(
                    "Pass a key of {short}, {middle} or {long} random bytes. To pass hexadecimal digits, write them as a bytea, \
                     for example '\\x0123', or call decode(.., 'hex')."
                ),
            )
        }
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
