//! A test that is killed, by a signal or because it takes too long, leaves no server behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use cluster::{Answer, Cluster, Host, command, ensure, within};

/// The longest time until a server has ended.
const SOON: Duration = Duration::from_secs(30);

/// The variable that makes the test below the victim. Its value is the name of the server.
const VICTIM: &str = "SNOWFLAKE_VICTIM";

/// Hangs like a test whose server is busy and has a session, or whose server is frozen.
fn hang(name: &str) -> ! {
    let server = Cluster::builder(name).start();
    let mut session = server.connect();
    let _frozen = name.contains("frozen").then(|| server.frozen());
    fs::write(ready(name), "").expect("the base directory can be written");
    if !name.contains("frozen") {
        session.one::<i64>("SELECT count(*) FROM generate_series(1, 1000000000000)");
    }
    thread::sleep(Duration::from_secs(600));
    panic!("nobody has ended this");
}

/// The file that shows that the victim hangs.
fn ready(name: &str) -> PathBuf {
    Host::get().dir(&format!("{name}.ready"))
}

/// The number of processes whose working directory is a data directory.
fn processes(dir: &Path) -> usize {
    let all = fs::read_dir("/proc").expect("a Linux system").flatten();
    all.filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == dir)).count()
}

/// Runs this test in its own process and ends it by a signal.
fn check_end(name: &str, signal: &str) -> Result<(), String> {
    let this = std::env::current_exe().expect("this program");
    let _ = fs::remove_file(ready(name));
    let mut victim = command(this)
        .args(["--exact", "end::a_test_that_is_killed_leaves_no_server"])
        .env(VICTIM, name)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program can be run");
    let hangs = within(SOON, || ready(name).exists());
    let dir = Host::get().dir(name);
    let before = processes(&dir);
    let killed = command("sh").args(["-c", "kill -s \"$0\" \"$1\"", signal]).arg(victim.id().to_string()).status();
    let _ = victim.wait();
    assert!(killed.is_ok_and(|status| status.success()) && hangs && before > 3, "{name} did not hang: {before}");
    let ended = within(SOON, || processes(&dir) == 0);
    let _ = fs::remove_file(ready(name));
    let _ = fs::remove_dir_all(&dir);
    let _ = fs::remove_dir_all(Host::get().socket_dir(name));
    ensure!(ended, "{name}: {} of {before} processes go on", processes(&dir));
    Ok(())
}

#[test]
fn a_test_that_is_killed_leaves_no_server() {
    if let Ok(name) = std::env::var(VICTIM) {
        hang(&name);
    }
    check_end("victim_killed", "KILL").unwrap();
    check_end("victim_terminated", "TERM").unwrap();
    check_end("victim_frozen", "KILL").unwrap();
}
