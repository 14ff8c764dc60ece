//! What an administrator sees: settings, views, the log, dumps and updates.

mod dump_restore;
mod log;
mod pg_upgrade;
mod preload;
mod settings;
mod status;
mod upgrade;
