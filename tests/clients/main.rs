//! The clients of docs/clients.md: drivers and object-relational mappers, in the versions that `scripts/setup clients` installs. For each
//! client there is a program next to this file that contains the blocks of its section. The tests run the program on a server, and
//! compare what it prints with the table.

mod client;
mod conceal;
mod go;
mod javascript;
mod jvm;
mod page;
mod python;
mod ruby;
mod rust;

/// The page whose blocks the programs contain.
const PAGE: &str = "docs/clients.md";
