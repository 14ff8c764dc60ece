//! Programs from outside, and where they work.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use crate::{Host, ensure, repository};

/// A program that `scripts/setup test` provides.
pub fn tool(name: &str) -> Command {
    let taken = repository().join("target/tools/bin").join(name);
    let program = if taken.exists() { taken } else { name.into() };
    let found = Command::new(&program).arg("--version").output();
    assert!(found.is_ok(), "{name} is missing: `make setup-test` provides it; elsewhere put it into PATH");
    Command::new(program)
}

/// What a command that must succeed prints, without the ends.
pub fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("cannot run {command:?}: {e}"));
    let (printed, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} failed:\n{printed}\n{complaints}");
    printed.trim().to_string()
}

/// What a program prints that reads this; an error is what it complains of.
pub fn typed(mut command: Command, input: &str) -> Result<String, String> {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("a program that can be run");
    let mut pipe = child.stdin.take().expect("a pipe");
    let output = thread::scope(|scope| {
        // Beside reading, for it may print more than a pipe holds before it has read all. One that ends without reading says why.
        scope.spawn(move || pipe.write_all(input.as_bytes()));
        child.wait_with_output().expect("a program that ends")
    });
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A directory that no other test uses, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// An empty one of this name.
    pub fn new(name: &str) -> Scratch {
        Scratch(Host::get().fresh_dir(name))
    }

    /// A file in it.
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
