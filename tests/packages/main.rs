//! What is shipped: packages, metadata, and what the library is made of.

mod archive;
mod build;
mod check;
mod debian;
mod packages;
mod page;
mod supply_chain;
mod tree;
