//! The scripts that install the clients and the Python programs leave nothing behind, and notice what no longer works.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cluster::{SOON, Scratch, assert_caught, command, ensure, output, repository, within};

use crate::end::processes;

/// The programs that `scripts/clients` runs, one in each of its jobs. On machines without a wheel, `node` takes the place of
/// `scripts/wheel`.
const STUBS: [&str; 5] = [
    "scripts/python-environment",
    "scripts/wheel",
    "target/tools/bin/cargo",
    "target/tools/bin/go",
    "target/tools/bin/node",
];

/// A copy of scripts in a directory of its own.
pub struct Scripts(pub Scratch);

impl Scripts {
    /// Copies these scripts, and the files that they read. `edit` changes their text.
    pub fn new(name: &str, scripts: &[&str], edit: impl Fn(String) -> String) -> Scripts {
        let scratch = Scratch::new(name);
        for dir in ["scripts", "target/tools/bin"] {
            fs::create_dir_all(scratch.0.join(dir)).expect("a new directory can be written");
        }
        let copies = Scripts(scratch);
        for file in scripts.iter().chain(&["scripts/common.sh", "scripts/wheels.txt", "Cargo.toml"]) {
            let text = fs::read_to_string(repository().join(file)).expect("a file of the repository");
            copies.write(file, &edit(text));
        }
        copies
    }

    /// Returns a shell that runs this line with the functions of `scripts/common.sh`.
    fn shell(&self, line: &str) -> Command {
        let mut shell = command("bash");
        shell.args(["-c", &format!(". scripts/common.sh; {line}"), "scripts/step"]).current_dir(&self.0.0);
        shell
    }

    /// Writes a program.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.write(name, text);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("the mode of a new file can be set");
        path
    }
}

impl Drop for Scripts {
    fn drop(&mut self) {
        for process in processes(&self.0.0) {
            let _ = command("sh").args(["-c", "kill -KILL \"$0\"", &process]).status();
        }
    }
}

/// Interrupts `scripts/clients` while all of its jobs are busy. `edit` changes the script.
fn check_interrupt(name: &str, edit: impl Fn(String) -> String) -> Result<(), String> {
    let scripts = Scripts::new(name, &["scripts/clients"], edit);
    let dir = &scripts.0.0;
    let begun = dir.join("begun");
    fs::create_dir(&begun).expect("a new directory can be written");
    for stub in STUBS {
        scripts.write(stub, &format!("#!/bin/sh\n: >'{}'/$$\nsleep 600\n", begun.display()));
    }
    // A caller can ignore the signal, and a script cannot change that.
    let mut script = command("env");
    script.arg("--default-signal=INT").arg(dir.join("scripts/clients"));
    let temporary = dir.join("temporary");
    fs::create_dir(&temporary).expect("a new directory can be written");
    script.env("TMPDIR", &temporary);
    let mut script = script.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("bash is installed");
    // Each of the four jobs runs a stub, so the script waits for them.
    let busy = within(SOON, || fs::read_dir(&begun).expect("a directory").count() == 4);
    let sent = command("sh").args(["-c", "kill -INT \"$0\"", &script.id().to_string()]).status();
    let status = script.wait().expect("a process that ends");
    assert!(busy && sent.is_ok_and(|sent| sent.success()), "the script has not begun its jobs");
    assert_eq!(status.code(), Some(130));
    let ended = within(SOON, || processes(dir).is_empty());
    ensure!(ended, "{} processes go on", processes(dir).len());
    let left = fs::read_dir(&temporary).expect("a directory").count();
    ensure!(left == 0, "{left} files are left behind");
    Ok(())
}

#[test]
fn an_interrupt_ends_the_installation_of_all_clients() {
    check_interrupt("installers_interrupt", |text| text).unwrap();
}

#[test]
fn a_job_that_ignores_the_interrupt_is_caught() {
    let without_groups = |text: String| text.replace("\nset -m\n", "\n");
    assert_caught(check_interrupt("installers_interrupt_caught", without_groups), "processes go on");
}

#[test]
fn a_log_that_an_interrupted_job_leaves_behind_is_caught() {
    let named = |text: String| text.replace("    rm -f \"$log\"\n", "");
    assert_caught(check_interrupt("installers_log_caught", named), "files are left behind");
}

/// Whether a step that fails prints its output and ends the script, also if it exits by itself.
#[test]
fn a_step_that_fails_prints_its_output() {
    let scripts = Scripts::new("installers_quietly", &[], |text| text);
    let steps = "step() { echo one; echo two >&2; return \"$1\"; }\nleave() { echo three; exit 4; }\nquietly step 0\n";
    for (name, end, expected) in [
        ("returns", "quietly step 3", "one\ntwo\nerror: failed: step 3\n"),
        ("exits", "quietly leave", "three\nerror: failed: leave\n"),
        ("succeeds", "exit 1", ""),
    ] {
        let text = format!("#!/usr/bin/env bash\n. \"$(dirname \"$0\")/common.sh\"\n{steps}{end}\necho four\n");
        let ran = command(scripts.write(&format!("scripts/{name}"), &text)).output().expect("bash is installed");
        assert_eq!(ran.status.code(), Some(1), "{name}");
        let [printed, said] = [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert_eq!((printed.as_ref(), said.as_ref()), ("", expected));
    }
}

#[test]
fn an_environment_of_another_python_is_made_again() {
    let scripts = Scripts::new("installers_python", &["scripts/python-environment"], |text| text);
    let dir = &scripts.0.0;
    let (environment, requirements) = (dir.join("environment"), scripts.0.write("requirements.txt", "# none\n"));
    let script = || command(dir.join("scripts/python-environment"));
    let install = || output(script().arg(&environment).arg(&requirements));
    let packages = || {
        let versions = fs::read_dir(environment.join("lib")).expect("an environment").flatten();
        versions.map(|version| version.path().join("site-packages")).find(|path| path.exists()).expect("packages")
    };
    let mark = |present: bool| {
        let mark = packages().join("mark");
        assert_eq!(mark.exists(), present, "{}", mark.display());
        fs::write(mark, "").expect("an environment can be written");
    };
    // An environment without pip is made in less time.
    let python = output(script().arg("--find"));
    output(command(python).args(["-I", "-m", "venv", "--without-pip"]).arg(&environment));
    fs::copy(&requirements, environment.join("installed.txt")).expect("an environment can be written");
    mark(false);
    install();
    mark(true);
    // What a later version of Python finds: the packages are in the directory of the earlier one.
    let lib = packages().parent().expect("a directory").to_path_buf();
    fs::rename(&lib, lib.with_file_name("python3.10")).expect("a directory can be renamed");
    install();
    mark(false);
}

/// Runs a step that starts a process in the background, and checks that the step has ended before that process.
fn check_background(name: &str, edit: impl Fn(String) -> String) -> Result<(), String> {
    let scripts = Scripts::new(name, &[], edit);
    scripts.write("scripts/step", "#!/bin/bash\n(sleep 10; echo >ended) &\n");
    let ended = scripts.shell("quietly scripts/step; [ ! -e ended ]").output().expect("bash can be started");
    ensure!(ended.status.success(), "the step has waited: {}", String::from_utf8_lossy(&ended.stderr));
    Ok(())
}

#[test]
fn a_quiet_step_does_not_wait_for_a_server_that_it_starts() {
    check_background("installers_background", |text| text).unwrap();
}

#[test]
fn a_quiet_step_with_a_pipe_is_caught() {
    let piped = |text: String| text.replace("(\"$@\") >&\"$writing\" 2>&1", "output=$(\"$@\" 2>&1)");
    assert_caught(check_background("installers_background_caught", piped), "the step has waited");
}

/// Names PostgreSQL 15 to pgrx, then a further version, then a different PostgreSQL 15, and checks when cargo builds again.
fn check_versions(name: &str, edit: impl Fn(String) -> String) -> Result<(), String> {
    let scripts = Scripts::new(name, &[], edit);
    let dir = &scripts.0.0;
    let known = dir.join("pgrx/config.toml");
    for place in ["one", "two", "three"] {
        fs::create_dir(dir.join(place)).expect("a new directory can be written");
    }
    let tell = |place: &str, version: &str| {
        let pg_config = format!("{place}/pg_config");
        let pg_config = scripts.write(&pg_config, &format!("#!/bin/sh\necho 'PostgreSQL {version}.1'\n"));
        let mut shell = scripts.shell("tell_pgrx");
        shell.env("PG", version).env("PG_CONFIG", &pg_config).env("PGRX_HOME", dir.join("pgrx"));
        output(&mut shell);
        let text = fs::read_to_string(&known).expect("a configuration");
        assert!(text.contains(&format!("pg{version} = \"{}\"\n", pg_config.display())), "{text}");
        fs::metadata(&known).and_then(|file| file.modified()).expect("the time of a file")
    };
    let first = tell("one", "15");
    ensure!(tell("one", "15") == first && tell("two", "16") == first, "cargo builds PostgreSQL 15 again");
    assert_eq!(fs::read_to_string(&known).expect("a configuration").matches("pg15 = ").count(), 1);
    ensure!(tell("three", "15") > first, "cargo does not build again after PostgreSQL has moved");
    Ok(())
}

#[test]
fn a_build_for_a_further_version_keeps_the_other_builds() {
    check_versions("installers_versions", |text| text).unwrap();
}

#[test]
fn a_further_version_for_which_all_is_built_again_is_caught() {
    let newer = |text: String| text.replace("    touch --date=\"$time\" \"$configuration\"\n", "");
    assert_caught(check_versions("installers_versions_caught", newer), "cargo builds PostgreSQL 15 again");
}
