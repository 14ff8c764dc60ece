//! Runs of pgbench, and the latencies in its logs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use cluster::{Cluster, Host};

use crate::stats::Histogram;

/// A pgbench with a directory for its scripts and logs.
pub struct Pgbench<'a> {
    server: &'a Cluster,
    directory: PathBuf,
    /// The options that select where to connect and how to send statements.
    options: Vec<String>,
}

/// The result of one run.
pub struct PgbenchResult {
    /// The transactions per second, without the time to connect.
    pub tps: f64,
    /// The number of transactions for each duration in microseconds.
    pub latencies: Histogram,
}

impl<'a> Pgbench<'a> {
    /// Creates a pgbench for a server.
    pub fn new(server: &'a Cluster) -> Pgbench<'a> {
        let options = vec!["--protocol=prepared".into()];
        Pgbench { server, directory: Host::get().fresh_dir("bench-pgbench"), options }
    }

    /// Connects over TCP to this address instead of the server's Unix socket, and sends simple queries, because PgBouncer before
    /// 1.21 does not pass on prepared statements.
    pub fn at(self, host: &str, port: u16) -> Pgbench<'a> {
        self.over(host, port, "simple")
    }

    /// Connects over TCP to this address instead of the server's Unix socket, with one of pgbench's protocols.
    pub fn over(mut self, host: &str, port: u16, protocol: &str) -> Pgbench<'a> {
        self.options = vec![format!("--protocol={protocol}"), format!("--host={host}"), format!("--port={port}")];
        self
    }

    /// Repeats a statement from this many clients. The fraction `logged` of the transactions is logged individually.
    pub fn run(&self, statement: &str, clients: usize, seconds: u64, logged: f64) -> PgbenchResult {
        self.repeat(statement, clients, seconds, &[format!("--sampling-rate={logged}")], 0)
    }

    /// Sends a statement at random times, on average this many times a second, over whichever of the connections is free. The duration of
    /// a transaction begins when it is due. The latencies are those after [`WARM`], because each new server process first fills its
    /// caches, and at a low rate, these transactions would be more than one in a thousand.
    pub fn at_rate(&self, statement: &str, clients: usize, seconds: u64, rate: u64) -> PgbenchResult {
        self.repeat(statement, clients, seconds, &[format!("--rate={rate}")], WARM)
    }

    fn repeat(&self, statement: &str, clients: usize, seconds: u64, options: &[String], warm: i64) -> PgbenchResult {
        let script = self.directory.join("script.sql");
        Host::get().write(&script, &format!("{statement};\n"));
        let mut pgbench = self.server.program("pgbench");
        pgbench
            .args(["--no-vacuum", "--log"])
            .args(&self.options)
            .args(options)
            .arg(format!("--log-prefix={}", self.directory.join("log").display()))
            .arg(format!("--client={clients}"))
            .arg(format!("--jobs={}", clients.min(2)))
            .arg(format!("--time={seconds}"))
            .arg("--file")
            .arg(&script);
        let tps = finished(pgbench);
        PgbenchResult { tps, latencies: self.take_logs(warm) }
    }

    /// Repeats a statement from this many clients, each time over a new connection. Returns the transactions per second, with the
    /// time to connect.
    pub fn reconnect(&self, statement: &str, clients: usize, transactions: usize) -> f64 {
        let script = self.directory.join("script.sql");
        Host::get().write(&script, &format!("{statement};\n"));
        let mut pgbench = self.server.program("pgbench");
        pgbench
            .args(["--no-vacuum", "--connect"])
            .arg(format!("--client={clients}"))
            .arg(format!("--jobs={}", clients.min(2)))
            .arg(format!("--transactions={transactions}"))
            .arg("--file")
            .arg(&script);
        finished(pgbench)
    }

    /// Reads the latencies from the logs, which are one file for each thread, and removes the files. Leaves out the transactions of the
    /// first microseconds `warm`.
    fn take_logs(&self, warm: i64) -> Histogram {
        let mut finished: Vec<(i64, i64)> = Vec::new();
        for entry in fs::read_dir(&self.directory).expect("the directory of the logs can be read") {
            let path = entry.expect("a directory's entry").path();
            if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log.")) {
                continue;
            }
            let text = fs::read_to_string(&path).expect("a log can be read");
            // A line contains the client, the transaction, its duration in microseconds, the script, when it was finished in seconds and
            // microseconds, and other fields.
            finished.extend(text.lines().filter_map(|line| {
                let mut fields = line.split_whitespace().skip(2).map(str::parse::<i64>);
                let mut field = || fields.next()?.ok();
                let (micros, _, seconds, rest) = (field()?, field()?, field()?, field()?);
                Some((seconds * 1_000_000 + rest, micros))
            }));
            fs::remove_file(&path).expect("a log can be removed");
        }
        let begin = finished.iter().map(|(at, _)| *at).min().unwrap_or_default();
        let mut latencies = Histogram::default();
        let counted = finished.iter().filter(|(at, _)| at - begin >= warm);
        counted.for_each(|(_, micros)| latencies.add(*micros, 1));
        latencies
    }
}

/// How long a run at a rate is not counted, in microseconds.
const WARM: i64 = 500_000;

/// How often a run is repeated that has finished no transaction, because the machine was busy while the clients connected.
const ATTEMPTS: usize = 5;

/// Runs pgbench, and returns the transactions per second.
fn finished(mut pgbench: Command) -> f64 {
    (0..ATTEMPTS).find_map(|_| tps(&mut pgbench)).unwrap_or_else(|| panic!("no transaction was finished: {pgbench:?}"))
}

/// Runs pgbench. Returns `None` if no transaction was finished.
fn tps(pgbench: &mut Command) -> Option<f64> {
    let done = pgbench.output().expect("pgbench can be run");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "pgbench failed:\n{text}\n{}", String::from_utf8_lossy(&done.stderr));
    if text.contains("transactions actually processed: 0\n") {
        return None;
    }
    let tps = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split_whitespace().next()?.parse().ok());
    Some(tps.unwrap_or_else(|| panic!("pgbench says no tps:\n{text}")))
}

impl Drop for Pgbench<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
