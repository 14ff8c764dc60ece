//! Standbys: slow ones, promoted ones, and those that have the worker ID of their primary. Guards of tables that are replicated.

mod guard;
mod promotion;
mod same_number;
mod slow_standby;
mod standby;
