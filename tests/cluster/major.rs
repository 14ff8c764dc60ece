//! What differs between the versions of PostgreSQL, for tests. For the library it is `src/major.rs`.

/// The major version of PostgreSQL that is tested: `PG` of the environment, else 15.
pub fn major() -> String {
    std::env::var("PG").unwrap_or_else(|_| "15".into())
}

/// The same as a number.
fn number() -> u32 {
    major().parse().unwrap_or_else(|_| panic!("PG={} is not a major version", major()))
}

/// The setting that limits how many replication origins can have progress: from 18 on one of its own, before that of slots.
pub fn origins_setting() -> &'static str {
    if number() >= 18 { "max_active_replication_origins" } else { "max_replication_slots" }
}

/// The wait event of a session that waits in this extension: from 17 on extensions name their own, before all share one.
pub fn wait_event(name: &'static str) -> &'static str {
    if number() >= 17 { name } else { "Extension" }
}

/// True where a subscription can leave out what its publisher has replicated itself: from 16 on.
pub fn both_ways() -> bool {
    number() >= 16
}

/// What a subscriber says of a row whose key it has: from 18 on it is one of the conflicts that PostgreSQL names.
pub fn key_conflict() -> &'static str {
    if number() >= 18 { "conflict=insert_exists" } else { "duplicate key value violates unique constraint" }
}

/// True where `ALTER SYSTEM` takes settings of a library that is not loaded: from 17 on.
pub fn alter_system_takes_unknown_names() -> bool {
    number() >= 17
}
