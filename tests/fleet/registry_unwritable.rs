//! A registry that answers but cannot store anything: its disk is full, it is read-only, or it is a standby.

use std::path::Path;
use std::time::Duration;

use cluster::{
    Answer, Ask, Builder, Client, Cluster, History, Host, Stop, assert_caught, ensure, postmaster_pid, within,
};

use crate::fleet::{SOON, logged, move_to, number, refused, registry, seen, server, string, wait_for_log};

/// Why the registry cannot store anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteFailure {
    DiskFull,
    ReadOnly,
    Standby,
}

impl WriteFailure {
    /// The message and the hint in the log of a server.
    fn report(self) -> (&'static str, &'static str) {
        match self {
            WriteFailure::DiskFull => ("the registry raised an error: could not extend file", "Check free disk space."),
            WriteFailure::ReadOnly | WriteFailure::Standby => {
                ("cannot connect to the registry", "The registry's server is read-only: either it is a standby, or")
            }
        }
    }
}

/// The size of a WAL segment. The limit of the size of files cannot be lower.
const SEGMENT: &str = "16777216";

/// Limits the size of the files that new sessions of a server write. Beyond the limit, a write fails, as on a disk that is full.
fn limit_files(server: &Cluster, bytes: &str) {
    let pid = postmaster_pid(server.dir()).expect("the server runs").to_string();
    let limited =
        Host::get().command(Path::new("prlimit")).args(["--pid", &pid, &format!("--fsize={bytes}:")]).status();
    assert!(limited.is_ok_and(|status| status.success()), "prlimit cannot limit process {pid}");
}

/// Fills the table of the registry up to the limit of its file. Returns a transaction that keeps all versions of the rows.
fn fill(registry: &Cluster) -> Client {
    limit_files(registry, SEGMENT);
    let mut kept = registry.connect();
    kept.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM snowflake_registry.fleet")
        .expect("a session may");
    // Long rows fill most pages, and short ones the rest.
    for change in ["about = about || jsonb_build_object('filler', repeat('x', 1000))", "about = about - 'filler'"] {
        let fill = format!(
            "DO $$ BEGIN LOOP UPDATE snowflake_registry.node SET {change}; COMMIT; END LOOP; END $$ LANGUAGE plpgsql"
        );
        let (_, message) = registry.connect().refusal(&fill);
        assert!(message.starts_with("could not extend file"), "{message}");
    }
    kept
}

/// Lets these servers issue IDs for two seconds, and adds the IDs to the ledger.
fn issue(servers: &[&Cluster], ledger: &mut History) -> Result<(), String> {
    ledger.merge(History::together(servers, Ask::READING, Duration::from_secs(2))?);
    ensure!(ledger.errors.is_empty(), "a server does not go on: {:?}", ledger.errors);
    ledger.check(100)
}

fn check(name: &str, outage: WriteFailure, like: impl Fn(&str, &Cluster) -> Builder) -> Result<(), String> {
    let mut registry = registry(&format!("{name}_a"));
    let mut servers = [1, 2].map(|n| like(&format!("{name}_{n}"), &registry).start());
    servers.iter().for_each(Cluster::wait_for_ids);
    let standby = (outage == WriteFailure::Standby).then(|| {
        let standby = registry.standby(Cluster::builder(&format!("{name}_b")).unset("shared_preload_libraries"));
        assert!(within(SOON, || servers.iter().all(|server| !seen(&standby, server).is_empty())), "it does not follow");
        standby
    });
    let mut kept = None;
    match (outage, &standby) {
        (WriteFailure::DiskFull, _) => kept = Some(fill(&registry)),
        (WriteFailure::ReadOnly, _) => {
            registry.set("default_transaction_read_only", "on");
            registry.reload();
        }
        (WriteFailure::Standby, standby) => {
            let standby = standby.as_ref().expect("it was started");
            servers.iter_mut().for_each(|server| move_to(server, standby));
            registry.stop(Stop::Immediate);
        }
    }
    let mut ledger = History::default();
    issue(&[&servers[0], &servers[1]], &mut ledger)?;

    let (message, hint) = outage.report();
    let new = like(&format!("{name}_3"), standby.as_ref().unwrap_or(&registry)).start();
    let mut client = new.session();
    for server in servers.iter().chain([&new]) {
        wait_for_log(server, &format!("WARNING:  snowflake_pg: heartbeat failed: {message}"));
        ensure!(server.log().contains(&format!("HINT:  {hint}")), "{}", server.log());
    }
    let (code, _, detail, _) = refused(&mut client).ok_or("the new server issues IDs")?;
    ensure!(code == "55000" && detail.contains(&format!("The last error was: {message}")), "{code}: {detail}");

    // The registry can store again.
    match (outage, &standby) {
        (WriteFailure::DiskFull, _) => limit_files(&registry, "unlimited"),
        (WriteFailure::ReadOnly, _) => {
            registry.unset("default_transaction_read_only");
            registry.reload();
        }
        (WriteFailure::Standby, standby) => standby.as_ref().expect("it was started").promote(),
    }
    for server in servers.iter().chain([&new]) {
        wait_for_log(server, "a heartbeat succeeded after");
    }
    drop(kept);
    for (server, worker) in servers.iter().zip(["0", "1"]) {
        ensure!(logged(server, "the registry assigned worker ID") == 1, "{}", server.log());
        ensure!(number(server) == worker, "{}", server.log());
    }
    issue(&[&servers[0], &servers[1], &new], &mut ledger)
}

fn fleet(name: &str, registry: &Cluster) -> Builder {
    server(name, &string(registry))
}

#[test]
fn servers_go_on_while_the_disk_of_the_registry_is_full() {
    check("unwritable_disk", WriteFailure::DiskFull, fleet).unwrap();
}

#[test]
fn servers_go_on_while_the_registry_is_read_only() {
    check("unwritable_read_only", WriteFailure::ReadOnly, fleet).unwrap();
}

#[test]
fn servers_go_on_while_the_registry_is_a_standby() {
    check("unwritable_standby", WriteFailure::Standby, fleet).unwrap();
}

#[test]
fn servers_with_one_worker_id_beside_a_read_only_registry_are_caught() {
    let by_hand = |name: &str, _: &Cluster| Cluster::builder(name);
    assert_caught(check("unwritable_by_hand", WriteFailure::ReadOnly, by_hand), "IDs came twice");
}
