//! The administrator's view of a server: settings, views, the log, dumps and updates.

mod dump_restore;
mod log;
mod pg_upgrade;
mod preload;
mod released;
mod settings;
mod status;
mod upgrade;
