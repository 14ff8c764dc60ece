//! The real postgres_exporter and promtool, which scripts/setup extracts from Debian's packages.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cluster::{Cluster, Scratch, Service, ensure, tool, within};

use crate::monitoring::page::{connection, metrics};

/// Creates a directory that no other check uses.
pub fn scratch() -> Scratch {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Scratch::new(&format!("monitoring-{}-{number}", std::process::id()))
}

/// A running exporter. It is ended when this value goes out of scope.
pub struct Exporter {
    service: Service,
    address: String,
    /// The directory of the queries and the log. It is removed last.
    _scratch: Scratch,
}

impl Exporter {
    /// Starts the exporter on a free port. It queries the server as the page says: with the page's role, over the Unix socket.
    pub fn start(server: &Cluster, queries: &str, arguments: &[&str]) -> Exporter {
        Exporter::start_with(&connection(server.socket()), queries, arguments)
    }

    /// Starts the exporter with this connection string.
    pub fn start_with(connection: &str, queries: &str, arguments: &[&str]) -> Exporter {
        let scratch = scratch();
        let file = scratch.write("queries.yaml", queries);
        let mut command = tool("prometheus-postgres-exporter");
        command
            .env("DATA_SOURCE_NAME", connection)
            .arg(format!("--extend.query-path={}", file.display()))
            // The exporter's default metrics are disabled, because they differ between versions of PostgreSQL and are not on the
            // page.
            .args(["--web.listen-address=127.0.0.1:0", "--disable-default-metrics", "--disable-settings-metrics"])
            .args(["--no-collector.database", "--no-collector.bgwriter"])
            .args(arguments);
        let service = Service::start(command, &scratch.0.join("log"));
        let mut exporter = Exporter { service, address: String::new(), _scratch: scratch };
        let listening = within(Duration::from_secs(60), || {
            let log = exporter.service.log();
            // Only whole lines are read, because the exporter may be writing the last line.
            let line = log.split_inclusive('\n').find(|line| line.contains("\"Listening on\"") && line.ends_with('\n'));
            exporter.address = line.and_then(|line| line.trim().split("address=").nth(1)).unwrap_or_default().into();
            !exporter.address.is_empty() || !exporter.service.is_running()
        });
        assert!(listening && !exporter.address.is_empty(), "the exporter did not start:\n{}", exporter.service.log());
        exporter
    }

    /// Returns the metrics that the exporter shows now.
    pub fn scrape(&self) -> Scrape {
        let mut stream = TcpStream::connect(&self.address).expect("the exporter listens");
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("the exporter reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the exporter answers in UTF-8");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.contains(" 200 OK"), "{answer}\n{}", self.service.log());
        Scrape(body.into())
    }

    /// Checks that the exporter itself reports no error about its file and its queries, and that it shows each metric of a file of the
    /// page with its type.
    pub fn check(&self, scrape: &Scrape, queries: &str) -> Result<(), String> {
        let log = self.service.log();
        ensure!(scrape.only("pg_up")? == 1.0, "no connection:\n{log}");
        ensure!(scrape.only("pg_exporter_user_queries_load_error")? == 0.0, "the file was not read:\n{log}");
        ensure!(scrape.only("pg_exporter_last_scrape_error")? == 0.0, "a query failed:\n{log}");
        for (name, usage) in metrics(queries) {
            let (shown, declared) = (scrape.kind(&name), usage.to_lowercase());
            ensure!(shown == declared, "{name} is {shown:?}, not {declared:?}");
        }
        Ok(())
    }
}

/// Metrics in Prometheus' text format.
pub struct Scrape(String);

impl Scrape {
    /// Returns the type with which a metric is declared, or an empty text if there is no such metric.
    fn kind(&self, name: &str) -> String {
        let prefix = format!("# TYPE {name} ");
        self.0.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap_or_default().into()
    }

    /// Returns the value of a metric that has only one value.
    pub fn only(&self, name: &str) -> Result<f64, String> {
        self.with(name, &[])
    }

    /// Returns the value of a metric that has only one value with these labels. In Prometheus, an empty label is the same as a
    /// missing label.
    pub fn with(&self, name: &str, labels: &[(&str, &str)]) -> Result<f64, String> {
        let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let samples = self.0.lines().filter_map(|line| {
            let (key, value) = line.rsplit_once(' ')?;
            let (found, rest) = key.split_once('{').unwrap_or((key, ""));
            (found == name && labels.iter().all(|label| rest.contains(label))).then_some(value)
        });
        let values: Vec<&str> = samples.collect();
        ensure!(values.len() == 1, "{} figures {name} with labels {labels:?}", values.len());
        values[0].parse().map_err(|e| format!("{name} is {}: {e}", values[0]))
    }
}
