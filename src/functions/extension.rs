//! The schema that contains the extension's objects.

use pgrx::prelude::*;

use crate::pg::relation::{self, ANSWERED};

/// Returns the schema of the extension, or `None` if the extension is not installed in the database.
pub fn find() -> Option<pg_sys::Oid> {
    let query =
        "SELECT (SELECT extnamespace FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'snowflake_pg')";
    Spi::get_one(query).expect(ANSWERED)
}

/// Returns the quoted name of the extension's schema.
pub fn schema() -> String {
    find().and_then(relation::schema_name).expect("the extension exists, because this is its function")
}
