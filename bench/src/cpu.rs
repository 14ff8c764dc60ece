//! CPU time of a server process.

/// Returns the nanoseconds that a process has spent on a CPU, which is the first field of `/proc/PID/schedstat`. Panics if there
/// is no such file.
pub fn nanos(pid: i32) -> u64 {
    let path = format!("/proc/{pid}/schedstat");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {path}: {e}"));
    text.split_whitespace().next().and_then(|first| first.parse().ok()).expect("schedstat begins with a number")
}
