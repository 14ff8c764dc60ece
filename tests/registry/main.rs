//! The registry of a fleet: its functions and tables, in a database of a server without the extension's library.

mod calls;
mod compare;
mod concurrency;
mod install;
mod lost;
mod roles;
