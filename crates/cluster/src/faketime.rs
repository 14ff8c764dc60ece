//! libfaketime, which fakes the clock of a server.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use crate::patience::{PATIENCE, within};
use crate::{Host, command, output};

/// Returns the environment in which a program loads Debian's libfaketime.
///
/// `FAKETIME_SHARED` names a semaphore and shared memory that exist until this process ends. Without it, the first process of a
/// server creates them, and each process that the server forks removes them when it ends. A program that the server starts at
/// that moment, for example the command of `restore_command`, ends with SIGBUS.
pub fn faketime() -> [(&'static str, String); 2] {
    [("LD_PRELOAD", library()), ("FAKETIME_SHARED", shared())]
}

fn library() -> String {
    let listed = output(command("sh").args(["-c", "ls /usr/lib/*/faketime/libfaketime.so.1"]));
    listed.lines().next().expect("the package faketime is installed").to_string()
}

/// Returns the names of the semaphore and the shared memory, which the program `faketime` creates.
fn shared() -> String {
    static CREATOR: OnceLock<(Child, String)> = OnceLock::new();
    let create = || {
        let mut faketime = Host::get().command(Path::new("faketime"));
        faketime.args(["-f", "+0", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // cat ends with this process.
        let process = faketime.spawn().expect("Debian's package faketime is installed");
        let names = ["sem", "shm"].map(|kind| format!("/faketime_{kind}_{}", process.id()));
        let semaphore = Path::new("/dev/shm").join(format!("sem.{}", &names[0][1..]));
        assert!(within(PATIENCE, || semaphore.exists()), "faketime has not created {}", semaphore.display());
        (process, names.join(" "))
    };
    CREATOR.get_or_init(create).1.clone()
}
