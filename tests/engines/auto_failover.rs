//! Formations of pg_auto_failover: a monitor and two nodes, which are set up as docs/pg_auto_failover.md says.

mod added;
mod formation;
mod split;
mod story;
