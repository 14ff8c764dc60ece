//! The shipped files: packages, metadata, and the parts of the library.

mod archive;
mod build;
mod check;
mod compose;
mod debian;
mod debian_root;
mod image;
mod oldest;
mod packages;
mod page;
mod release;
mod rpm;
mod source;
mod supply_chain;
