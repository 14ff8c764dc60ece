//! Types the blocks of docs/pgbackrest.md: servers that are restored from a pgBackRest repository repeat no ID.

mod elsewhere;
mod hosts;
mod in_place;
mod registry;
mod settings;
mod standby;
