//! CPU time of processes and threads.

use std::fs;

use cluster::Cluster;

/// The unit of the times in `/proc/PID/stat`: ticks in a second, on every system.
const TICKS: f64 = 100.0;

/// Returns the nanoseconds that a process has spent on a CPU, which is the first field of `/proc/PID/schedstat`. Panics if there
/// is no such file.
pub fn nanos(pid: i32) -> u64 {
    schedstat(&format!("/proc/{pid}/schedstat"))
}

/// Returns the nanoseconds that the calling thread has spent on a CPU.
pub fn of_this_thread() -> u64 {
    schedstat("/proc/thread-self/schedstat")
}

fn schedstat(path: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("cannot read {path}: {e}"));
    text.split_whitespace().next().and_then(|first| first.parse().ok()).expect("schedstat begins with a number")
}

/// Returns the seconds that all processes of a server have spent on CPUs since the server started, including processes that have
/// ended.
pub fn of_server(server: &Cluster) -> f64 {
    let postmaster = postmaster(server);
    let own: u64 = times(postmaster).iter().sum();
    // A child that ends meanwhile is counted by its parent from then on.
    let children: u64 = children(postmaster).into_iter().map(|pid| times(pid)[..2].iter().sum::<u64>()).sum();
    (own + children) as f64 / TICKS
}

/// Returns the process of a server with this title. Panics if there is none.
pub fn process(server: &Cluster, title: &str) -> u32 {
    let titled = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(&format!("postgres: {title}"))
    };
    children(postmaster(server)).into_iter().find(titled).unwrap_or_else(|| panic!("there is no {title}"))
}

/// Returns how often a process has waited.
pub fn waits(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).expect("Linux counts them")
}

fn postmaster(server: &Cluster) -> u32 {
    let file = fs::read_to_string(server.dir().join("postmaster.pid")).expect("the server runs");
    file.lines().next().and_then(|line| line.trim().parse().ok()).expect("the file begins with a process ID")
}

fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {path}: {e}"));
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Returns four CPU times of a process: its own in user mode and in the kernel, and the sums of both for its children that have
/// ended. All are 0 if the process has ended.
fn times(pid: u32) -> [u64; 4] {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in parentheses, can contain spaces.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    [11, 12, 13, 14].map(|n| fields.get(n).and_then(|field| field.parse().ok()).unwrap_or(0))
}
