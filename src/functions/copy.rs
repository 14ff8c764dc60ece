//! Functions with which COPY issues IDs and draws numbers.
//!
//! `COPY .. FROM` inserts rows in batches unless a column default calls a VOLATILE function. The only VOLATILE function
//! that PostgreSQL exempts from this rule is its own `nextval`. The functions in this module do the same as the
//! functions that users call, but are declared STABLE. The planner support function substitutes them in the column
//! defaults of COPY, which PostgreSQL evaluates for each row.
//!
//! Other statements must not use these functions. For example, `ALTER TABLE .. ADD COLUMN` evaluates a STABLE default
//! once for all rows.

use std::ffi::CStr;

use flake::Request;
use pgrx::datum::Internal;
use pgrx::prelude::*;

use crate::faults::{self, Fault};
use crate::functions::segment;
use crate::generator::draw;
use crate::pg::function::{self, Called};
use crate::pg::text_arg::Text;
use crate::pg::{privilege, replace_call, utility};

/// Answers the planner's request for a simpler form of a call to `snowflake_nextval` or `snowflake_segment_nextval`.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_copy_support(internal) RETURNS internal IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c \
                   AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_copy_support(request: Internal) -> Internal {
    let copies = utility::copies() || faults::on(Fault::CopyEverywhere);
    replace_call::replace_call(request, |name| match name {
        b"snowflake_nextval" if copies => Some(c"snowflake_copy_nextval"),
        b"snowflake_segment_nextval" if copies => Some(c"snowflake_copy_segment"),
        _ => None,
    })
}

/// Issues one ID.
#[pg_extern(sql = "CREATE FUNCTION snowflake_copy_nextval() RETURNS bigint STABLE STRICT PARALLEL SAFE LANGUAGE c \
                   AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';")]
fn snowflake_copy_nextval(called: Called) -> i64 {
    check(&called, c"snowflake_nextval", &[]);
    draw::draw(Request::UpTo(1)).take().expect("a granted run is not empty")
}

/// Draws the next number from a segment.
#[pg_extern(
    sql = "CREATE FUNCTION snowflake_copy_segment(tag text) RETURNS bigint STABLE STRICT PARALLEL SAFE LANGUAGE c \
                   AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn snowflake_copy_segment(called: Called, tag: Text<'_>) -> i64 {
    check(&called, c"snowflake_segment_nextval", &[pg_sys::TEXTOID]);
    segment::next(tag)
}

/// Raises an error unless the current role may execute the VOLATILE function that was replaced.
fn check(called: &Called, name: &'static CStr, types: &[pg_sys::Oid]) {
    if faults::on(Fault::CopyUnchecked) {
        return;
    }
    privilege::check(name, |role| {
        function::of(called.schema(), name, types).is_some_and(|function| function::may_call(function, role))
    });
}
