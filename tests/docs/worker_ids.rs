//! Types the blocks of docs/worker-ids.md. Every server has its own worker ID, and keeps it when a standby takes over, when a
//! server is rewound, and when servers replicate to each other.

mod alter_system;
mod command_line;
mod former_primary;
mod logical;
mod page;
mod single;
mod streaming;
