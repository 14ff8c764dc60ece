//! A test that is killed, by a signal or because it takes too long, leaves no server, no other program and no witness behind.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use cluster::{Answer, Boot, Cluster, Host, SOON, Service, command, ensure, within};

/// The variable that makes the test below the victim. Its value is the name of the server.
const VICTIM: &str = "SNOWFLAKE_VICTIM";

/// Hangs like a test whose server is busy and has a session, or whose server is frozen.
fn hang(name: &str) -> ! {
    let machine = Boot::new(name);
    let server = Cluster::builder(name).on(&machine).start();
    let mut session = server.connect();
    // Only the process group of the service contains its child.
    let mut service = command("sh");
    service.args(["-c", "sleep 600 & wait"]).current_dir(server.dir());
    let _service = Service::start(service, &Host::get().dir(&format!("{name}.log")));
    let _frozen = name.contains("frozen").then(|| server.frozen());
    fs::write(ready(name), machine.dir().as_os_str().as_bytes()).expect("the base directory can be written");
    if !name.contains("frozen") {
        session.one::<i64>("SELECT count(*) FROM generate_series(1, 1000000000000)");
    }
    thread::sleep(Duration::from_secs(600));
    panic!("nobody has ended this");
}

/// The file that shows that the victim hangs. It contains the path of the victim's witnesses.
fn ready(name: &str) -> PathBuf {
    Host::get().dir(&format!("{name}.ready"))
}

/// The IDs of the processes whose working directory is this directory, which may have been removed.
pub fn processes(dir: &Path) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("a Linux system").flatten();
    let removed = PathBuf::from(format!("{} (deleted)", dir.display()));
    let works_here = |cwd: PathBuf| cwd == dir || cwd == removed;
    let here = all.filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(works_here));
    here.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

/// Runs this test in its own process and ends it by a signal.
fn check_end(name: &str, signal: &str) -> Result<(), String> {
    let this = std::env::current_exe().expect("this program");
    let _ = fs::remove_file(ready(name));
    let mut victim = command(this)
        .args(["--exact", "end::a_test_that_is_killed_leaves_no_process"])
        .env(VICTIM, name)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program can be run");
    let mut machine = String::new();
    let hangs = within(SOON, || {
        machine = fs::read_to_string(ready(name)).unwrap_or_default();
        !machine.is_empty()
    });
    let dir = Host::get().dir(name);
    let before = processes(&dir).len();
    let killed = command("sh").args(["-c", "kill -s \"$0\" \"$1\"", signal]).arg(victim.id().to_string()).status();
    let _ = victim.wait();
    assert!(killed.is_ok_and(|status| status.success()) && hangs && before > 3, "{name} did not hang: {before}");
    let ended = within(SOON, || processes(&dir).is_empty());
    let removed = within(SOON, || !Path::new(&machine).exists());
    let _ = fs::remove_file(ready(name));
    let _ = fs::remove_file(Host::get().dir(&format!("{name}.log")));
    let _ = fs::remove_dir_all(&dir);
    let _ = fs::remove_dir_all(Host::get().socket_dir(name));
    ensure!(ended, "{name}: {} of {before} processes go on", processes(&dir).len());
    ensure!(removed, "{name}: {machine} remains");
    Ok(())
}

#[test]
fn a_test_that_is_killed_leaves_no_process() {
    if let Ok(name) = std::env::var(VICTIM) {
        hang(&name);
    }
    check_end("victim_killed", "KILL").unwrap();
    check_end("victim_terminated", "TERM").unwrap();
    check_end("victim_frozen", "KILL").unwrap();
}
