//! libfaketime, with which tests set the clocks of a server.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use crate::{Builder, Cluster, Host, Stop, command, output};

/// Returns the environment in which a program loads Debian's libfaketime.
///
/// `FAKETIME_SHARED` names a semaphore and shared memory that exist until this process ends. Without it, the first process of a
/// server creates them, and each process that the server forks removes them when it ends. A program that the server starts at
/// that moment, for example the command of `restore_command`, ends with SIGBUS.
pub fn faketime() -> [(&'static str, String); 2] {
    [("LD_PRELOAD", library()), ("FAKETIME_SHARED", shared())]
}

impl Builder {
    /// Lets a test step the server's wall clock. At each clock read, libfaketime reads the offset that [`Cluster::set_clock`]
    /// writes.
    pub fn clock(mut self, offset: &str) -> Builder {
        let host = Host::get();
        let file = host.dir(&format!("{}.clock", self.name));
        host.write(&file, &format!("{offset}\n"));
        let file = file.to_string_lossy().into_owned();
        self.env.extend(faketime().map(|(name, value)| (name.to_string(), value)));
        self.env("FAKETIME_TIMESTAMP_FILE", &file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
    }

    /// Steps all of the server's clocks, including the monotonic clock.
    pub fn clocks(self, offset: &str) -> Builder {
        let mut builder = self.clock(offset);
        builder.env.retain(|(name, _)| name != "FAKETIME_DONT_FAKE_MONOTONIC");
        builder
    }
}

impl Cluster {
    /// Steps the wall clock of a server built with [`Builder::clock`]. With the offset `+3600`, the clock is 3600 seconds ahead
    /// of the true time. With `@2010-11-04 01:42:54`, it begins at this time. With `2010-11-04 01:42:54`, it stands still at this
    /// time.
    pub fn set_clock(&self, offset: &str) {
        let (_, file) =
            self.like.env.iter().find(|(name, _)| name == "FAKETIME_TIMESTAMP_FILE").expect("a faked clock");
        // The file is replaced at once, so that nobody reads an empty one.
        let fresh = Path::new(file).with_extension("step");
        Host::get().write(&fresh, &format!("{offset}\n"));
        fs::rename(&fresh, file).expect("a file can be renamed in place");
    }

    /// Stops the server, steps its clock like [`Cluster::set_clock`], and starts it.
    pub fn restart_at(&mut self, how: Stop, offset: &str) {
        self.stop(how);
        self.set_clock(offset);
        self.start();
    }
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
