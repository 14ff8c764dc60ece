//! The programs with which people run PostgreSQL, from Debian's packages: cluster managers, replication, backup, sharding and pools.
//! A file for each program types the blocks of its page, and checks that no ID repeats while the program does what it is for. Each
//! program listens on a loopback address of its own.

mod auto_failover;
mod kubernetes;
mod patroni;
mod pgbackrest;
mod pglogical;
mod sharding;
