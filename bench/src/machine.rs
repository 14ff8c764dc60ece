//! The machine and the server on which figures were measured. The host name and the paths are not recorded, because they can be
//! private.

use std::fs;

use cluster::{Answer, Client, command, repository};
use serde::{Deserialize, Serialize};

use crate::effort::RESULTS;

/// The settings on which a figure depends, in the order in which they are listed.
const SETTINGS: [&str; 15] = [
    "shared_buffers",
    "max_connections",
    "fsync",
    "synchronous_commit",
    "wal_level",
    "full_page_writes",
    "wal_compression",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "jit",
    "snowflake_pg.layout",
    "snowflake_pg.max_ahead",
    "snowflake_pg.on_clock_regression",
    "snowflake_pg.sequence_start",
];

/// The end of a revision whose files were changed.
pub const DIRTY: &str = ", dirty";

/// A machine and its server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model.
    pub processor: String,
    /// The number of the system's processors.
    pub cores: usize,
    /// The memory in GiB.
    pub memory_gib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The revision of the sources, with [`DIRTY`] at the end if files were changed. Empty if it is not known.
    #[serde(default)]
    pub revision: String,
    /// The programs that were run, with their versions.
    pub versions: Vec<String>,
    /// The server's settings, each as `name = value`.
    pub settings: Vec<String>,
}

impl Machine {
    /// Returns this machine, and the server of this connection.
    pub fn of(client: &mut Client) -> Machine {
        let extension: Option<String> = client.one(
            "SELECT string_agg(concat_ws(' ', extname, extversion), ', ' ORDER BY extname) FROM pg_extension
             WHERE extname IN ('snowflake_pg', 'snowflake_registry')",
        );
        let server: String = client.one("SELECT 'PostgreSQL ' || current_setting('server_version')");
        let settings = SETTINGS.iter().filter_map(|name| {
            let sql = format!("SELECT coalesce(current_setting('{name}', true), '')");
            let value: String = client.one(&sql);
            (!value.is_empty()).then(|| format!("{name} = {value}"))
        });
        Machine {
            settings: settings.collect(),
            ..Machine::alone([Some(server), extension].into_iter().flatten().collect())
        }
    }

    /// Returns this machine without a server, and the versions of the programs that were run.
    pub fn alone(versions: Vec<String>) -> Machine {
        Machine {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            // The memory is rounded, because the kernel reserves a part of each GiB.
            memory_gib: field("/proc/meminfo", "MemTotal")
                .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
                .map_or(0, |kib| (kib / 1024.0 / 1024.0).round() as u64),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            revision: revision(),
            settings: Vec::new(),
            versions,
        }
    }

    /// Returns the description of the machine in one line.
    pub fn hardware(&self) -> String {
        format!("{}, {} cores, {} GiB, Linux {}", self.processor, self.cores, self.memory_gib, self.kernel)
    }
}

/// Returns the revision of the repository. Results do not count as changes, because each part writes its own.
fn revision() -> String {
    let git = |arguments: &[&str]| {
        let output = command("git").args(arguments).current_dir(repository()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let changed = git(&["status", "--porcelain", "--", ".", &format!(":!{RESULTS}")]);
    match (git(&["rev-parse", "HEAD"]), changed) {
        (Some(revision), Some(changed)) if changed.is_empty() => revision,
        (Some(revision), _) => revision + DIRTY,
        (None, _) => String::new(),
    }
}

/// Returns the value that a file under `/proc` shows after a name and a colon.
fn field(path: &str, name: &str) -> Option<String> {
    let text = read(path);
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().into())
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
