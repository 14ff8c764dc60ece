//! The files that each part of the benchmark measures. A change of their code makes its figures obsolete: the test `figures` compares them
//! with the revision that the results record.

/// The library's code that issues an ID.
const ID: &[&str] = &[
    "crates/flake/src/assignment.rs",
    "crates/flake/src/clock.rs",
    "crates/flake/src/current_tick.rs",
    "crates/flake/src/layout.rs",
    "crates/flake/src/limits.rs",
    "crates/flake/src/next_word.rs",
    "crates/flake/src/pending.rs",
    "crates/flake/src/reservation.rs",
    "crates/flake/src/state.rs",
    "crates/flake/src/state",
    "crates/flake/src/throttle.rs",
    "crates/flake/src/tick.rs",
    "src/functions/issue.rs",
    "src/generator/current.rs",
    "src/generator/draw.rs",
    "src/generator/assigned.rs",
    "src/generator/grant_end.rs",
    "src/generator/clock_behind.rs",
    "src/generator/extend.rs",
    "src/server/clock.rs",
    "src/server/shmem.rs",
    "src/server/stats.rs",
];
/// The library's code that keeps COPY in batches.
const COPY: &[&str] = &["src/functions/copy.rs", "src/pg/replace_call.rs", "src/pg/utility.rs"];
/// The library's code that draws a number of a segment.
const NUMBER: &[&str] = &[
    "crates/flake/src/segment.rs",
    "crates/flake/src/segment_block_size.rs",
    "src/functions/segment.rs",
    "src/segments",
];
/// The registry's functions for a heartbeat.
const HEARTBEAT: &[&str] = &[
    "registry/hello.sql",
    "registry/renew.sql",
    "registry/claim.sql",
    "registry/forged.sql",
    "registry/tables.sql",
    "src/workers/registrar.rs",
];

/// Returns the files and folders that a part measures, and the program of the part itself. Panics if there is no such part.
pub fn of(part: &str) -> Vec<&'static str> {
    let measured: &[&[&'static str]] = match part {
        "cost" => &[ID, &["bench/src/cost.rs", "bench/src/rivals.rs"]],
        "conceal" => &[&[
            "crates/flake/src/conceal.rs",
            "crates/flake/src/conceal_key.rs",
            "crates/flake/src/ff1.rs",
            "src/functions/conceal.rs",
            "bench/src/conceal.rs",
        ]],
        "crates" => &[&[
            "crates/flake/src/issuer.rs",
            "crates/flake/src/next_word.rs",
            "crates/flake/src/clock.rs",
            "bench/src/crates.rs",
        ]],
        "storage" => &[ID, &["bench/src/storage.rs", "bench/src/lookups.rs"]],
        "copy" => &[ID, COPY, &["bench/src/copy.rs"]],
        "oltp" => &[ID, &["bench/src/oltp.rs", "bench/src/pgbench.rs"]],
        "contention" => &[ID, &["bench/src/contention.rs", "bench/src/latency.rs", "bench/src/sessions.rs"]],
        "wire" => &[ID, &["bench/src/wire.rs"]],
        "service" => &[ID, NUMBER, &["bench/src/service_level.rs", "bench/src/pgbench.rs"]],
        "segments" => &[NUMBER, &["bench/src/segments.rs", "bench/src/segments_wire.rs"]],
        "serials" => &[&[
            "src/functions/serial.rs",
            "src/functions/serial_at_commit.rs",
            "src/functions/series.rs",
            "src/functions/series_next.rs",
            "sql/series.sql",
            "bench/src/serials.rs",
        ]],
        "fleet" => &[HEARTBEAT, &["bench/src/fleet.rs", "bench/src/registry_client.rs"]],
        "portable" => &[&[
            "portable/advance.sql",
            "portable/draw.sql",
            "portable/issue.sql",
            "portable/refuse.sql",
            "portable/state.sql",
            "bench/src/portable.rs",
        ]],
        "failovers" => &[HEARTBEAT, &["bench/src/failovers.rs", "bench/src/failover_load.rs"]],
        _ => panic!("there is no part {part}"),
    };
    measured.concat()
}
