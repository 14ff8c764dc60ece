//! Backtraces of Rust code.
#![allow(unsafe_code)]

use std::backtrace::Backtrace;
use std::env;

/// The first environment variable that the standard library checks to determine whether to record backtraces.
const VARIABLE: &str = "RUST_LIB_BACKTRACE";

/// Prevents this library from recording backtraces, regardless of the server's environment. Otherwise, pgrx would
/// append a backtrace to the detail of each error that PostgreSQL raises while it executes a function of the extension.
/// The standard library reads the environment only once, and each library contains its own copy of the standard
/// library.
pub fn disable() {
    let former = env::var_os(VARIABLE);
    // SAFETY: PostgreSQL starts no threads, and this extension starts none before its library is loaded.
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
