//! IDs as UUIDs, for programs that require UUIDs.

use pgrx::prelude::*;

use crate::message::id::IdProblem;

/// Returns an ID as a version 8 UUID. These UUIDs sort in the same order as the IDs.
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_to_uuid(id: i64) -> pgrx::Uuid {
    match flake::to_uuid(id) {
        Some(uuid) => pgrx::Uuid::from_bytes(uuid),
        None => IdProblem::Negative { id }.raise(),
    }
}

/// Returns the ID that a UUID represents. Raises an error if the UUID does not represent an ID.
#[pg_extern(immutable, strict, parallel_safe)]
fn snowflake_from_uuid(uuid: pgrx::Uuid) -> i64 {
    flake::from_uuid(*uuid.as_bytes()).unwrap_or_else(|error| IdProblem::Uuid { uuid: uuid.to_string(), error }.raise())
}
