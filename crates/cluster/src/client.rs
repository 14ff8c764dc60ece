//! Queries and their results, as a client receives them.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use postgres::types::{FromSqlOwned, ToSql, Type};
use postgres::{Client, SimpleQueryMessage};

use crate::{Cluster, Host, within};

/// Returns the SQLSTATE, the message, the detail and the hint of an error as the server reported it. A part that the server did
/// not send is empty.
pub fn sqlstate(error: &postgres::Error) -> (String, String, String, String) {
    let error = error.as_db_error().unwrap_or_else(|| panic!("not an error of the server: {error}"));
    let text = |part: Option<&str>| part.unwrap_or_default().to_string();
    (error.code().code().into(), error.message().into(), text(error.detail()), text(error.hint()))
}

/// Returns the SQLSTATE that ended what a session was doing. If a client can read both the reason and the end of the connection,
/// it may report only that the connection was closed. In this case, the reason is taken from the log.
pub fn end_of(error: &postgres::Error, pid: i32, server: &Cluster) -> String {
    let told = format!("[{pid}] [unknown] FATAL:  terminating connection due to administrator command");
    match error.as_db_error() {
        Some(error) => error.code().code().into(),
        None if server.log().contains(&told) => "57P01".into(),
        None => error.to_string(),
    }
}

/// Returns, in order, the IDs that a query with one `bigint` column returns. The IDs are fetched at the speed of a binary COPY.
pub fn copy_ids(client: &mut Client, query: &str) -> Vec<i64> {
    let mut bytes = Vec::new();
    client
        .copy_out(&format!("COPY ({query}) TO STDOUT (FORMAT binary)"))
        .map_or_else(|e| panic!("{query}: {e:?}"), |mut reader| reader.read_to_end(&mut bytes))
        .expect("the server sends all rows");
    // The "Binary Format" of COPY consists of a header of 19 bytes, the rows, and a trailer of two bytes. Each row consists of a
    // field count, a field length and the field.
    bytes[19..bytes.len() - 2]
        .chunks_exact(2 + 4 + 8)
        .map(|row| i64::from_be_bytes(row[6..].try_into().expect("eight bytes")))
        .collect()
}

/// Runs statements, and returns each row of their results as one text.
pub fn printed(client: &mut Client, sql: &str) -> Result<Vec<String>, postgres::Error> {
    let row = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|n| row.get(n).unwrap_or("NULL")).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    };
    Ok(client.simple_query(sql)?.iter().filter_map(row).collect())
}

/// Waits until a session is waiting for a lock or `ended` returns true. Returns false if neither happens in time.
pub fn waiting(watch: &mut Client, mut ended: impl FnMut() -> bool) -> bool {
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)";
    within(Duration::from_secs(20), || watch.one(waits) || ended())
}

/// Limits the memory of a session's server process to its current size plus `more` bytes. Returns the ID of the process.
pub fn limit_memory(session: &mut Client, more: u64) -> i32 {
    let process: i32 = session.one("SELECT pg_backend_pid()");
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the session's process");
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("its size");
    let kb: u64 = size.trim().trim_end_matches(" kB").parse().expect("a number");
    let limit = format!("--as={}", kb * 1_024 + more);
    let prlimit = Path::new("prlimit");
    let limited = Host::get().command(prlimit).args(["--pid", &process.to_string(), &limit]).status();
    assert!(limited.expect("prlimit is installed (Debian: util-linux)").success());
    process
}

/// Returns the parameters of a statement whose parameters are all of type `text`, for `query_typed`.
pub fn texts(values: &[Option<String>]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (value as &(dyn ToSql + Sync), Type::TEXT)).collect()
}

/// Returns bytes as hexadecimal digits in lower case, as PostgreSQL shows them after the `\x` of a `bytea`.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Short forms of frequent queries.
pub trait Answer {
    /// Returns the first column of the only row.
    fn one<T: FromSqlOwned>(&mut self, sql: &str) -> T;

    /// Returns the first column of every row.
    fn all<T: FromSqlOwned>(&mut self, sql: &str) -> Vec<T>;

    /// Runs statements, which must succeed.
    fn run(&mut self, sql: &str);

    /// Returns the SQLSTATE of the error that the statements raise, or `None` if they succeed.
    fn code(&mut self, sql: &str) -> Option<String>;

    /// Returns the SQLSTATE, the message, the detail and the hint of the error that the statements must raise.
    fn error(&mut self, sql: &str) -> [String; 4];

    /// Returns the SQLSTATE and the message of the error that the statements must raise.
    fn refusal(&mut self, sql: &str) -> (String, String) {
        let [code, message, ..] = self.error(sql);
        (code, message)
    }

    /// Draws a batch of IDs, and returns them in order.
    fn batch(&mut self, count: u32) -> Vec<i64> {
        self.all(&format!("SELECT snowflake_nextval_batch({count})"))
    }

    /// Returns how far the time of the next ID is ahead of the server's clock, in seconds.
    fn lead(&mut self) -> f64 {
        self.one("SELECT extract(epoch FROM snowflake_timestamp(snowflake_nextval()) - clock_timestamp())::float8")
    }

    /// Makes the planner use this many parallel workers. The leader does not take part in the work.
    fn prefer_parallel(&mut self, workers: u32) {
        let settings = format!(
            "SET max_parallel_workers_per_gather = {workers}; SET parallel_leader_participation = off;
             SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0"
        );
        self.run(&settings);
    }

    /// Returns the rows of a plan, as EXPLAIN prints them.
    fn plan(&mut self, sql: &str) -> String {
        self.all::<String>(&format!("EXPLAIN {sql}")).join("\n")
    }
}

impl Answer for Client {
    fn one<T: FromSqlOwned>(&mut self, sql: &str) -> T {
        self.query_one(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e:?}")).get(0)
    }

    fn all<T: FromSqlOwned>(&mut self, sql: &str) -> Vec<T> {
        self.query(sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e:?}")).iter().map(|row| row.get(0)).collect()
    }

    fn run(&mut self, sql: &str) {
        self.batch_execute(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    }

    fn code(&mut self, sql: &str) -> Option<String> {
        self.batch_execute(sql).err().map(|error| sqlstate(&error).0)
    }

    fn error(&mut self, sql: &str) -> [String; 4] {
        match self.batch_execute(sql) {
            Ok(()) => panic!("not refused: {sql}"),
            Err(error) => sqlstate(&error).into(),
        }
    }
}
