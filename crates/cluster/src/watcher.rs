//! Stops the servers and other programs of a process that was killed and could not stop them itself. A separate process, the watcher,
//! waits until the process that started the servers has ended.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Mutex, OnceLock};

use crate::command;

/// Reads process groups and the names of data directories until the writer has ended. Then ends the groups whose first process is
/// still the same, and stops the servers that still run in these directories. A directory of witnesses that belongs to a test is
/// removed last.
const WATCH: &str = r#"
lines=$(cat)
IFS='
'
started() { sed 's/.*) //' "/proc/$1/stat" | cut -d ' ' -f 20; }
same() { [ "$(started "${1%% *}")" = "${1#* }" ]; }
dirs=
groups=
for line in $lines; do
    case $line in
        group\ *) ! same "${line#group }" || groups="$groups${line#group }
" ;;
        *) dirs="$dirs$line
" ;;
    esac
done
for group in $groups; do
    kill -s TERM -- "-${group%% *}"
    kill -s CONT -- "-${group%% *}"
done
for group in $groups; do
    tries=0
    while [ $tries -lt 100 ] && same "$group"; do sleep 0.1; tries=$((tries + 1)); done
    kill -s KILL -- "-${group%% *}"
done
for dir in $dirs; do
    pid=$(head -n 1 "$dir/postmaster.pid") || continue
    # The number may be another process's by now.
    [ "$(readlink "/proc/$pid/cwd")" = "$dir" ] || continue
    # It may have been frozen.
    kill -s CONT "$pid"
    kill -s QUIT "$pid"
    # What is in memory takes room from others.
    case $dir in /dev/shm/*)
        while [ -d "/proc/$pid" ]; do sleep 0.1; done
        rm -rf "$dir" "$dir.socket" ;;
    esac
done
for dir in $dirs; do
    case $dir in /dev/shm/snowflake_pg-*.boot) rm -rf "$dir" ;; esac
done"#;

/// Ensures that the server of this data directory is stopped when this process ends, even if it is killed. A directory of a
/// [`Boot`](crate::Boot) is removed.
pub fn watch(dir: &Path) {
    send(&dir.display().to_string());
}

/// Ensures that the processes of this process group are ended when this process ends, even if it is killed.
pub(crate) fn watch_group(leader: u32) {
    let stat = fs::read_to_string(format!("/proc/{leader}/stat")).unwrap_or_default();
    // The 22nd field is the time at which the process started. The second field, the name, can contain spaces.
    let started = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19)).unwrap_or("gone");
    send(&format!("group {leader} {started}"));
}

fn send(line: &str) {
    static WATCHER: OnceLock<Mutex<Child>> = OnceLock::new();
    let start = || {
        let mut watcher = command("sh");
        watcher.args(["-c", WATCH]).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // The watcher has its own process group, because a signal that ends a test is sent to the test's whole process group.
        Mutex::new(watcher.process_group(0).spawn().expect("sh is installed"))
    };
    let mut watcher = WATCHER.get_or_init(start).lock().expect("nobody panics with the lock");
    let pipe = watcher.stdin.as_mut().expect("a pipe");
    writeln!(pipe, "{line}").expect("the watcher reads until this process ends");
}
