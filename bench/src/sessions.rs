//! Many sessions that work at the same time, and the server's counts during this time.

use std::sync::Barrier;
use std::time::Instant;

use cluster::{Answer, Client, Cluster};

use crate::{cpu, server};

/// The name of the axis that shows numbers of sessions.
pub const AXIS: &str = "sessions";

/// Sessions on one server that stay open between runs.
pub struct Sessions {
    clients: Vec<(Client, i32)>,
    control: Client,
    counted: bool,
}

/// The server's counts since its start.
#[derive(Clone, Copy, Default)]
pub struct Counted {
    /// The number of IDs that were issued.
    pub issued: i64,
    /// The number of attempts to take an ID that another session took first.
    pub retries: i64,
    /// The number of extensions of the high-water mark.
    pub extensions: i64,
}

/// The duration of a run of statements.
pub struct RunCost {
    /// The number of seconds from the start of the first session to the end of the last session.
    pub seconds: f64,
    /// The CPU time of the sessions' server processes, on all processors.
    pub cpu_nanos: f64,
}

impl Sessions {
    /// Opens sessions.
    pub fn open(server: &Cluster, count: usize) -> Sessions {
        let mut control = server::session(server);
        let open = |_| {
            let mut client = server::session(server);
            let pid = client.one("SELECT pg_backend_pid()");
            (client, pid)
        };
        let counted: bool = control.one("SELECT to_regclass('snowflake_status') IS NOT NULL");
        if !counted {
            eprintln!("note: there is no view snowflake_status; retries and extensions are left out");
        }
        Sessions { clients: (0..count).map(open).collect(), control, counted }
    }

    /// Returns the session that only prepares runs and reads counts.
    pub fn control(&mut self) -> &mut Client {
        &mut self.control
    }

    /// Returns true if the server counts, so that [`Sessions::counted`] returns counts.
    pub fn counts(&self) -> bool {
        self.counted
    }

    /// Returns the server's current counts. All counts are zero if the server does not count.
    pub fn counted(&mut self) -> Counted {
        if !self.counted {
            return Counted::default();
        }
        let sql = "SELECT ids_issued, retries, extensions FROM snowflake_status";
        let row = self.control.query_one(sql, &[]).expect("the status can be read");
        Counted { issued: row.get(0), retries: row.get(1), extensions: row.get(2) }
    }

    /// Runs `warm` in the first `count` sessions. When all these sessions have finished, runs `work` in all of them at the same
    /// time. Returns the result of each session.
    pub fn at_once<T: Send>(
        &mut self,
        count: usize,
        warm: impl Fn(&mut Client) + Sync,
        work: impl Fn(&mut Client) -> T + Sync,
    ) -> (RunCost, Vec<T>) {
        let barrier = Barrier::new(count);
        let session = |(client, pid): &mut (Client, i32)| {
            warm(client);
            barrier.wait();
            let (begin, cpu) = (Instant::now(), cpu::nanos(*pid));
            let found = work(client);
            (begin, Instant::now(), cpu::nanos(*pid) - cpu, found)
        };
        let sessions = &mut self.clients[..count];
        let ended: Vec<_> = std::thread::scope(|scope| {
            let running: Vec<_> = sessions.iter_mut().map(|one| scope.spawn(|| session(one))).collect();
            running.into_iter().map(|one| one.join().expect("a session that lasts")).collect()
        });
        let begin = ended.iter().map(|(begin, ..)| *begin).min().expect("a session");
        let end = ended.iter().map(|(_, end, ..)| *end).max().expect("a session");
        let cpu_nanos = ended.iter().map(|(_, _, cpu, _)| *cpu as f64).sum();
        (
            RunCost { seconds: (end - begin).as_secs_f64(), cpu_nanos },
            ended.into_iter().map(|(.., found)| found).collect(),
        )
    }
}
