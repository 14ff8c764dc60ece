//! Types the blocks of docs/sharding.md on shards behind PL/Proxy, behind PgBouncer, on a Patroni cluster behind HAProxy,
//! and on Citus.

mod citus;
mod haproxy;
mod page;
mod pgbouncer;
mod plproxy;

use cluster::Recipe;

/// The tests of a section type all of its blocks.
#[test]
fn every_section_with_blocks_is_tested() {
    let tested = [
        "Worker IDs of shards",
        "PL/Proxy: the proxy draws the ID",
        "PL/Proxy: the shard draws the ID",
        "Move rows to another shard",
        "PgBouncer in transaction mode",
        "HAProxy in front of Patroni",
        "Citus",
        "Which node draws the ID?",
        "Query, check and partition distributed tables",
    ];
    assert_eq!(Recipe::titles(page::PAGE), tested);
}
