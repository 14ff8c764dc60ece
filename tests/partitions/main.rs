//! Tables that are partitioned by the time of their IDs.

mod bounds;
mod create;
mod job;
mod maintenance;
mod partman;
