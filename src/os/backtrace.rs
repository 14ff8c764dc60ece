//! Backtraces of Rust code.
#![allow(unsafe_code)]

use std::backtrace::Backtrace;
use std::env;

/// The variable of the environment that the standard library reads first to decide whether it records backtraces.
const VARIABLE: &str = "RUST_LIB_BACKTRACE";

/// Prevents this library from recording backtraces, whatever the environment of the server contains. Otherwise, pgrx
/// appends one to the detail of each error that PostgreSQL raises in a statement of the extension. The standard library
/// reads the environment once, and each library has its own copy of the standard library.
pub fn disable() {
    let former = env::var_os(VARIABLE);
    // SAFETY: the process has one thread while PostgreSQL loads a library.
    unsafe { env::set_var(VARIABLE, "0") };
    drop(Backtrace::capture());
    // SAFETY: as above.
    unsafe {
        match former {
            Some(former) => env::set_var(VARIABLE, former),
            None => env::remove_var(VARIABLE),
        }
    }
}
