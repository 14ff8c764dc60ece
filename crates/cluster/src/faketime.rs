//! libfaketime, which fakes the clock of a server.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::OnceLock;

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
        faketime.args(["-f", "+0", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // cat ends with this process, whose end closes the pipe.
        let mut process = faketime.spawn().expect("Debian's package faketime is installed");
        // faketime runs cat after it has filled the shared memory. A program that opens the shared memory before is killed.
        let echoed = process
            .stdin
            .as_mut()
            .zip(process.stdout.as_mut())
            .map(|(stdin, stdout)| stdin.write_all(b"\n").and_then(|()| stdout.read_exact(&mut [0])));
        echoed.expect("both are pipes").expect("faketime runs cat");
        let names = ["sem", "shm"].map(|kind| format!("/faketime_{kind}_{}", process.id()));
        (process, names.join(" "))
    };
    CREATOR.get_or_init(create).1.clone()
}
