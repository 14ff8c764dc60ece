//! Tells the linker where the library finds libpq, and to keep the SQL that the library contains.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // PostgreSQL can have its own libpq, beside its extensions or in the directory above. It must come before the system's libpq:
    // a process loads libpq.so.5 once, and later extensions of PostgreSQL, such as dblink, may need functions that an older libpq
    // does not have. Debian's PostgreSQL has no libpq there and uses the system's.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-link-arg-cdylib=-Wl,-rpath,$ORIGIN:$ORIGIN/..");
        // No code uses the section that crates/schema reads, and some linkers remove it although the macros of pgrx mark it.
        println!("cargo:rustc-link-arg-cdylib=-Wl,--no-gc-sections");
    }
}
