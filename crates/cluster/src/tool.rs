//! External programs, and their directories.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use crate::{Host, ensure, repository};

/// Environment variables that tests must control: the prefixes of the first group of names, and the names of the second group.
const TELLING: [&str; 3] = ["PG", "PSQL", "LC_"];
const TELLING_ALONE: [&str; 3] = ["LANG", "LANGUAGE", "TZ"];

/// The exceptions, which select the PostgreSQL installation to test. `scripts/common.sh` contains the same lists.
const OURS: [&str; 3] = ["PG", "PG_CONFIG", "PGRX_HOME"];

/// Returns a command for any program. The program inherits no environment variable with which the caller could change what
/// programs do or print.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let telling = |name: &str| {
        let begins = TELLING.iter().any(|begin| name.starts_with(begin));
        (begins || TELLING_ALONE.contains(&name)) && !OURS.contains(&name)
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(telling)) {
        command.env_remove(name);
    }
    command
}

/// Returns a command for a program that `scripts/setup test` provides.
pub fn tool(name: &str) -> Command {
    let taken = repository().join("target/tools/bin").join(name);
    let program = if taken.exists() { taken } else { name.into() };
    let found = command(&program).arg("--version").output();
    assert!(found.is_ok(), "{name} is missing: `make setup-test` provides it; elsewhere put it into PATH");
    command(program)
}

/// Returns the output of a command that must succeed, without the white space at both ends.
pub fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    let (printed, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} failed:\n{printed}\n{complaints}");
    printed.trim().to_string()
}

/// Runs a program that reads this input, and returns its output. If the program fails, the error is what the program wrote to
/// stderr.
pub fn typed(mut command: Command, input: &str) -> Result<String, String> {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("a program that can be run");
    let mut pipe = child.stdin.take().expect("a pipe");
    let output = thread::scope(|scope| {
        // Another thread writes the input, because the program may print more than a pipe holds before it has read all of its
        // input. If the program ends without reading its input, stderr contains the reason.
        scope.spawn(move || pipe.write_all(input.as_bytes()));
        child.wait_with_output().expect("a program that ends")
    });
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A directory that no other test uses. It is removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Creates an empty directory with this name.
    pub fn new(name: &str) -> Scratch {
        Scratch(Host::get().fresh_dir(name))
    }

    /// Writes a file in this directory.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a new directory can be written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
