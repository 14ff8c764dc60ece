//! Concealed IDs. They are used instead of IDs if readers must not learn when and by which server an ID was issued.
//!
//! Error messages never contain a key.
//!
//! A call takes as long as a sequential scan with count(*) takes for 20 to 30 rows. The planner's cost is 0.0125 for
//! such a row and 0.0025 for an operator, so a call costs as much as 100 to 150 operators. With `COST 100`, the planner
//! evaluates the functions after cheaper conditions, and after a sort with LIMIT.

use flake::Concealer;
use pgrx::prelude::*;

use crate::faults;
use crate::functions::text;
use crate::message::conceal::ConcealProblem;
use crate::message::id::IdProblem;
use crate::pg::text_arg::Text;

/// The maximum length of a tweak in bytes. The limit is needed because a call cannot be cancelled, and a tweak could
/// otherwise be a gigabyte long.
const MAX_TWEAK: usize = 1024;

/// Returns the concealed ID for an ID. Raises an error if the number is not an ID.
#[pg_extern(immutable, strict, parallel_safe, cost = 100)]
fn snowflake_conceal(id: i64, key: &[u8], tweak: default!(&[u8], "''")) -> i64 {
    concealed(id, key, tweak)
}

/// Returns the ID for a concealed ID. Raises an error if the number is not a concealed ID.
#[pg_extern(immutable, strict, parallel_safe, cost = 100)]
fn snowflake_reveal(concealed: i64, key: &[u8], tweak: default!(&[u8], "''")) -> i64 {
    revealed(concealed, key, tweak)
}

/// Returns the concealed ID for an ID in text form, which has 13 characters.
#[pg_extern(
    requires = ["text"],
    sql = "CREATE FUNCTION snowflake_conceal_text(id bigint, key bytea, tweak bytea DEFAULT '') RETURNS snowflake_text \
           IMMUTABLE STRICT PARALLEL SAFE COST 100 LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_conceal_text(id: i64, key: &[u8], tweak: &[u8]) -> String {
    text::of(concealed(id, key, tweak))
}

/// Returns the ID for a concealed ID in text form.
#[pg_extern(immutable, strict, parallel_safe, cost = 100)]
fn snowflake_reveal_text(concealed: Text<'_>, key: &[u8], tweak: default!(&[u8], "''")) -> i64 {
    revealed(text::id_of(concealed, "snowflake_conceal_text"), key, tweak)
}

fn concealed(id: i64, key: &[u8], tweak: &[u8]) -> i64 {
    let concealed = concealer(key, tweak).conceal(id, faults::tweak_used(tweak));
    concealed.unwrap_or_else(|| IdProblem::Negative { id }.raise())
}

fn revealed(concealed: i64, key: &[u8], tweak: &[u8]) -> i64 {
    let id = concealer(key, tweak).reveal(concealed, faults::tweak_used(tweak));
    id.unwrap_or_else(|| ConcealProblem::Negative { concealed }.raise())
}

/// Returns the permutation that the key selects. Raises an error if the key is invalid or the tweak is too long.
fn concealer(key: &[u8], tweak: &[u8]) -> Concealer {
    if tweak.len() > MAX_TWEAK {
        ConcealProblem::TweakLength { bytes: tweak.len(), max: MAX_TWEAK }.raise();
    }
    Concealer::new(key).unwrap_or_else(|invalid| ConcealProblem::Key(invalid).raise())
}
