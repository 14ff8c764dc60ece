//! IDs in text form, for programs that cannot represent 64-bit numbers.

use pgrx::prelude::*;

use crate::message::id::IdProblem;
use crate::pg::text_arg::Text;

/// Returns an ID in text form, which has 13 characters. The strings sort in the same order as the numbers.
#[pg_extern(
    requires = ["text"],
    sql = "CREATE FUNCTION snowflake_to_text(id bigint) RETURNS snowflake_text IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c \
           AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_to_text(id: i64) -> String {
    of(id)
}

/// Returns the text form of an ID. Raises an error if the number is not an ID.
pub fn of(id: i64) -> String {
    match flake::to_text(id) {
        Some(text) => text.map(char::from).iter().collect(),
        None => IdProblem::Negative { id }.raise(),
    }
}

/// Returns the ID that a string represents.
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_from_text(text: Text<'_>) -> i64 {
    id_of(text, "snowflake_to_text")
}

/// Returns the number that a string represents. Raises an error for an invalid string. The error names the function
/// that returns valid strings.
pub fn id_of(text: Text<'_>, returned_by: &'static str) -> i64 {
    flake::from_text(text.0).unwrap_or_else(|error| IdProblem::Text { text: text.shown(), error, returned_by }.raise())
}
