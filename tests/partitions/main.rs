//! Tables that are partitioned by the time of their IDs.

mod bounds;
mod care;
mod create;
mod job;
mod partman;
