//! The differences between the versions of PostgreSQL that matter to tests. For the library, these differences are in
//! `src/pg/versions.rs`.

use crate::page;

/// Returns the major version of PostgreSQL that is tested: the value of the environment variable `PG`, or 15 if this variable is
/// not set.
pub fn major() -> String {
    std::env::var("PG").unwrap_or_else(|_| "15".into())
}

/// Returns the major versions of PostgreSQL that are supported, which are the value of `VERSIONS` in `scripts/common.sh`.
pub fn supported() -> Vec<String> {
    let script = page("scripts/common.sh");
    let versions = script.lines().find_map(|line| line.strip_prefix("VERSIONS=\"")?.strip_suffix('"'));
    versions.expect("the supported versions").split(' ').map(String::from).collect()
}

/// Returns the tested major version as a number.
fn number() -> u32 {
    major().parse().unwrap_or_else(|_| panic!("PG={} is not a major version", major()))
}

/// Returns the name of the setting that limits how many replication origins can have progress. Before version 18, this is the
/// setting that limits the number of replication slots.
pub fn origins_setting() -> &'static str {
    if number() >= 18 { "max_active_replication_origins" } else { "max_replication_slots" }
}

/// Returns the wait event of a session that waits in this extension. From version 17 on, extensions define their own wait events.
/// Before version 17, all extensions share one wait event.
pub fn wait_event(name: &'static str) -> &'static str {
    if number() >= 17 { name } else { "Extension" }
}

/// Returns true if a subscription can leave out rows that were replicated to its publisher. This is possible from version 16 on.
pub fn both_ways() -> bool {
    number() >= 16
}

/// Returns what a subscriber logs if it receives a row whose key already exists. PostgreSQL 18 and later report this error as a
/// named conflict.
pub fn key_conflict() -> &'static str {
    if number() >= 18 { "conflict=insert_exists" } else { "duplicate key value violates unique constraint" }
}

/// Returns true if `ALTER SYSTEM` accepts settings of a library that is not loaded. This is the case from version 17 on.
pub fn alter_system_takes_unknown_names() -> bool {
    number() >= 17
}
