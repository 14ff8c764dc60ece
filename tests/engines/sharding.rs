//! Types the blocks of docs/sharding.md on shards behind PL/Proxy, behind PgBouncer, behind pgpool-II, on a Patroni cluster behind
//! HAProxy, and on Citus.

mod citus;
mod haproxy;
mod page;
mod pgbouncer;
mod pgpool;
mod plproxy;
