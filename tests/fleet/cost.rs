//! What a registry costs: nothing on a server without one, and nothing between two heartbeats on the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use cluster::{Cluster, assert_caught, ensure, processes_in, within};

use crate::fleet::{SOON, registrar, renewed_above, seen, server, string};

/// How long a test watches a server that does nothing.
const WATCHED: Duration = Duration::from_secs(3);

/// Returns the processes of a server by their titles, and how many sockets each has. No session is connected.
fn processes(server: &Cluster) -> BTreeMap<String, usize> {
    let titled = processes_in(server.dir()).into_iter().filter_map(|pid| {
        let title = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let title = title.trim_end_matches([' ', '\0']).strip_prefix("postgres: ").unwrap_or("postmaster").to_string();
        let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
        let opened = files.filter_map(|file| fs::read_link(file.path()).ok());
        Some((title, opened.filter(|file| file.to_string_lossy().starts_with("socket:")).count()))
    });
    titled.collect()
}

/// Checks that the processes of both servers have the same titles and the same number of sockets.
fn check_processes(server: &Cluster, other: &Cluster) -> Result<(), String> {
    let (found, wanted) = (processes(server), processes(other));
    ensure!(found == wanted, "the processes are {found:?}, and those of the other server {wanted:?}");
    Ok(())
}

/// Checks that nobody connects. If somebody does, the connection stays open in `accepted`.
fn check_connections(listener: &TcpListener, accepted: &mut Option<TcpStream>) -> Result<(), String> {
    let connected = within(WATCHED, || {
        *accepted = listener.accept().ok().map(|(stream, _)| stream);
        accepted.is_some()
    });
    ensure!(!connected, "somebody has connected");
    Ok(())
}

/// Listens on a free port without an answer. A connection by libpq in the environment of [`Builder::env`] would arrive here.
fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a new socket");
    let port = listener.local_addr().expect("a bound socket").port().to_string();
    (listener, port)
}

#[test]
fn a_server_without_a_registry_starts_no_process_and_opens_no_connection() {
    let (listener, port) = listen();
    let quiet = |name: &str| {
        let builder = Cluster::builder(name).set("autovacuum", "off");
        builder.env("PGHOST", "127.0.0.1").env("PGPORT", &port).env("PGCONNECT_TIMEOUT", "5")
    };
    let plain = quiet("cost_plain").unset("shared_preload_libraries").unset("snowflake_pg.worker_id").start();
    let without = quiet("cost_without").start();
    // The mark worker ends when it has created the replication origin.
    assert!(within(SOON, || check_processes(&without, &plain).is_ok()), "{:?}", check_processes(&without, &plain));
    assert!(processes(&plain).len() > 3, "{:?}", processes(&plain));
    let mut accepted = None;
    check_connections(&listener, &mut accepted).unwrap();
    check_processes(&without, &plain).unwrap();

    // A server with a registry has a registrar, which waits for an answer to its first connection.
    let with =
        quiet("cost_with").unset("snowflake_pg.worker_id").set("snowflake_pg.registry", "dbname=postgres").start();
    assert_caught(check_connections(&listener, &mut accepted), "somebody has connected");
    assert_caught(check_processes(&with, &plain), "\"snowflake_pg registrar\": 1");
}

/// The CPU time of a process in nanoseconds, and how often it has waited.
fn work(pid: u32) -> (u64, u64) {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).expect("the process runs");
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse().ok()).expect("a number");
    let status = read("status");
    let waits = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    (number(read("schedstat").split(' ').next()), number(waits))
}

/// Checks that the registrar of a server does not run at all for some seconds.
fn check_sleep(server: &Cluster) -> Result<(), String> {
    let pid = registrar(server).expect("a registrar");
    let before = work(pid);
    std::thread::sleep(WATCHED);
    let after = work(pid);
    ensure!(after == before, "the registrar has worked: {before:?} became {after:?}");
    Ok(())
}

#[test]
fn the_registrar_sleeps_between_heartbeats() {
    let registry = Cluster::builder("cost_sleep").start_registry(crate::fleet::LAYOUT);
    // Heartbeats are at least 54 s apart.
    let idle = server("cost_sleep_1", &string(&registry)).set("snowflake_pg.lease", "12h").start();
    assert!(within(SOON, || !seen(&registry, &idle).is_empty()), "{}", idle.log());
    // The first heartbeat ends some time after the registry has answered.
    assert!(within(SOON, || check_sleep(&idle).is_ok()), "{:?}", check_sleep(&idle));
    // Here they are a second apart.
    let busy = server("cost_sleep_2", &string(&registry)).start();
    assert!(within(SOON, || !seen(&registry, &busy).is_empty()), "{}", busy.log());
    assert_caught(check_sleep(&busy), "the registrar has worked");
}

/// Returns the statements of each session of the fleet that has ended, in the log of a registry.
fn sessions(log: &str) -> Vec<Vec<String>> {
    let mut open: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut ended = Vec::new();
    for line in log.lines() {
        let Some(pid) = line.split(['[', ']']).nth(1) else { continue };
        if line.contains("snowflake_pg LOG:  disconnection") {
            ended.push(open.remove(pid).unwrap_or_default());
        } else if let Some((_, statement)) = line.split_once("snowflake_pg LOG:  ")
            && (statement.starts_with("execute") || statement.starts_with("statement"))
        {
            let function = statement.split("snowflake_registry.").nth(1).and_then(|rest| rest.split('(').next());
            open.entry(pid).or_default().push(function.unwrap_or(statement).to_string());
        }
    }
    ended
}

/// Checks that each session says hello and sends one request.
fn check_sessions(log: &str) -> Result<(), String> {
    let kinds: BTreeSet<String> = sessions(log).iter().map(|statements| statements.join(", ")).collect();
    ensure!(kinds.iter().map(String::as_str).eq(["hello, claim", "hello, renew"]), "there are sessions of {kinds:?}");
    Ok(())
}

#[test]
fn a_heartbeat_is_one_connection_with_two_statements() {
    let logging = Cluster::builder("cost_statements").set("log_statement", "all").set("log_disconnections", "on");
    let registry = logging.start_registry(crate::fleet::LAYOUT);
    let server = server("cost_statements_1", &string(&registry)).start();
    renewed_above(&registry, &server, 5);
    check_sessions(&registry.log()).unwrap();
    // A session that also asks for something else.
    let config = &mut registry.config("postgres");
    let mut other = config.application_name("snowflake_pg").connect(postgres::NoTls).expect("another client");
    other.batch_execute("SELECT 1").expect("a session may");
    drop(other);
    assert!(within(SOON, || check_sessions(&registry.log()).is_err()), "{}", registry.log());
    assert_caught(check_sessions(&registry.log()), "statement: SELECT 1");
}
