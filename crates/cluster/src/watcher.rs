//! Stops the servers of a process that was killed and could not stop them itself. A separate process, the watcher, waits until
//! the process that started the servers has ended.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Mutex, OnceLock};

use crate::command;

/// Reads the names of data directories until the writer has ended, and then stops the servers that still run in these
/// directories.
const WATCH: &str = r#"
dirs=$(cat)
IFS='
'
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
done"#;

/// Ensures that the server of this data directory is stopped when this process ends, even if it is killed.
pub fn watch(dir: &Path) {
    static WATCHER: OnceLock<Mutex<Child>> = OnceLock::new();
    let start = || {
        let mut watcher = command("sh");
        watcher.args(["-c", WATCH]).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // The watcher has its own process group, because a signal that ends a test is sent to the test's whole process group.
        Mutex::new(watcher.process_group(0).spawn().expect("sh can be run"))
    };
    let mut watcher = WATCHER.get_or_init(start).lock().expect("nobody panics with the lock");
    let pipe = watcher.stdin.as_mut().expect("a pipe");
    writeln!(pipe, "{}", dir.display()).expect("the watcher reads until this process ends");
}
