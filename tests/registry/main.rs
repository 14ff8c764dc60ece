//! The registry of a fleet: its functions and tables, in a database of a server without the extension's library.

mod blocks;
mod calls;
mod compare;
mod concurrency;
mod forged;
mod granted;
mod hundred;
mod install;
mod lost;
mod remaining_worker_ids;
mod reserved;
mod restored_rows;
mod roles;
mod segments;
mod segments_compare;
mod segments_lost;
mod upgraded;
mod upgraded_mixed;
