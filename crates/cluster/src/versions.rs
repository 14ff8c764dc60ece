//! What differs between the versions of PostgreSQL, for tests. The library has `src/pg/versions.rs` for it.

/// The major version of PostgreSQL that is tested: the environment variable `PG`, or 15.
pub fn major() -> String {
    std::env::var("PG").unwrap_or_else(|_| "15".into())
}

/// The same as a number.
fn number() -> u32 {
    major().parse().unwrap_or_else(|_| panic!("PG={} is not a major version", major()))
}

/// The setting that limits how many replication origins can have progress. Before 18, it is that of replication slots.
pub fn origins_setting() -> &'static str {
    if number() >= 18 { "max_active_replication_origins" } else { "max_replication_slots" }
}

/// The wait event of a session that waits in this extension: from 17 on, extensions define their own. Before 17, all
/// share one.
pub fn wait_event(name: &'static str) -> &'static str {
    if number() >= 17 { name } else { "Extension" }
}

/// True if a subscription can leave out rows that were replicated to its publisher: from 16 on.
pub fn both_ways() -> bool {
    number() >= 16
}

/// What a subscriber logs if it receives a row whose key already exists. PostgreSQL 18 and later report this as a named
/// conflict.
pub fn key_conflict() -> &'static str {
    if number() >= 18 { "conflict=insert_exists" } else { "duplicate key value violates unique constraint" }
}

/// True if `ALTER SYSTEM` accepts settings of a library that is not loaded: from 17 on.
pub fn alter_system_takes_unknown_names() -> bool {
    number() >= 17
}
