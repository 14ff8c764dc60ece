//! Sessions that draw IDs without end, and the ledger of every ID that a client received.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use postgres::error::DbError;
use postgres::{CancelToken, Client, Config, NoTls};

use crate::server::PATIENCE;
use crate::{Cluster, check_increasing, check_ledger, ensure, within};

/// A way to get IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// One.
    Nextval,
    /// Twenty in a batch.
    Batch,
    /// A block of ten.
    Reserve,
    /// The key of a row.
    Insert,
    /// The key of a row that is rolled back.
    Rollback,
    /// Forty from a sequence of PostgreSQL's, in a transaction that is rolled back.
    Sequence,
}

impl Ask {
    /// Every way to get IDs of ours.
    pub const ALL: &'static [Ask] = &[Ask::Nextval, Ask::Batch, Ask::Reserve, Ask::Insert, Ask::Rollback];

    /// Those that write nothing, so that no COMMIT flushes what the mark should have flushed.
    pub const READING: &'static [Ask] = &[Ask::Nextval, Ask::Batch, Ask::Reserve];

    fn draw(self, client: &mut Client) -> Result<Vec<i64>, postgres::Error> {
        let mut ids = |sql: &str| -> Result<Vec<i64>, postgres::Error> {
            Ok(client.query(sql, &[])?.iter().map(|row| row.get(0)).collect())
        };
        match self {
            Ask::Nextval => ids("SELECT snowflake_nextval()"),
            Ask::Batch => ids("SELECT snowflake_nextval_batch(20)"),
            Ask::Reserve => {
                Ok(ids("SELECT snowflake_reserve(10)")?.iter().flat_map(|first| *first..first + 10).collect())
            }
            Ask::Insert => ids("INSERT INTO ledger_rows DEFAULT VALUES RETURNING id"),
            Ask::Rollback => {
                let mut transaction = client.transaction()?;
                let row = transaction.query_one("INSERT INTO ledger_rows DEFAULT VALUES RETURNING id", &[])?;
                transaction.rollback()?;
                Ok(vec![row.get(0)])
            }
            Ask::Sequence => {
                let mut transaction = client.transaction()?;
                let draw = |_| Ok(transaction.query_one("SELECT nextval('ledger_sequence')", &[])?.get(0));
                let ids: Result<Vec<i64>, postgres::Error> = (0..40).map(draw).collect();
                transaction.rollback()?;
                ids
            }
        }
    }
}

/// What clients received.
#[derive(Default)]
pub struct Ledger {
    /// The IDs of one connection each, in the order in which they came.
    pub stretches: Vec<Vec<i64>>,
    /// How often a statement ended in which SQLSTATE and message; empty for a connection that broke.
    pub errors: BTreeMap<String, u64>,
    /// The longest time that a statement took which brought IDs.
    pub slowest: Duration,
    /// How many sessions had to be cancelled at the end, for they waited longer than [`LONGEST`].
    pub stalled: usize,
}

impl Ledger {
    /// How many IDs.
    pub fn len(&self) -> usize {
        self.stretches.iter().map(Vec::len).sum()
    }

    /// True where nobody received any.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All IDs.
    pub fn ids(&self) -> Vec<i64> {
        self.stretches.concat()
    }

    /// Adds another's.
    pub fn merge(&mut self, other: Ledger) {
        self.stretches.extend(other.stretches);
        for (code, times) in other.errors {
            *self.errors.entry(code).or_default() += times;
        }
        self.slowest = self.slowest.max(other.slowest);
        self.stalled += other.stalled;
    }

    /// No ID twice, all positive, increasing in each connection; and not so few that nothing is shown.
    pub fn check(&self, at_least: usize) -> Result<(), String> {
        ensure!(self.stalled == 0, "{} sessions stalled", self.stalled);
        self.stretches.iter().try_for_each(|ids| check_increasing(ids))?;
        check_ledger(&mut self.ids())?;
        ensure!(self.len() >= at_least, "only {} IDs: nothing was shown; errors: {:?}", self.len(), self.errors);
        Ok(())
    }
}

/// Sessions that draw until they are told to end, and connect anew when their server has gone.
pub struct Load {
    stop: Arc<AtomicBool>,
    sessions: Vec<(JoinHandle<Ledger>, Cancel)>,
}

/// How to cancel what a session is doing: `statement_timeout` goes by the wall clock, which the tests set back.
type Cancel = Arc<Mutex<Option<CancelToken>>>;

/// Longest time that a session may take to end its last statement.
const LONGEST: Duration = Duration::from_secs(5);

impl Load {
    /// Makes what the statements of [`Ask`] need.
    pub fn prepare(server: &Cluster) {
        let sql = "CREATE TABLE IF NOT EXISTS ledger_rows (id bigint DEFAULT snowflake_nextval());
                   CREATE SEQUENCE IF NOT EXISTS ledger_sequence";
        server.session().batch_execute(sql).expect("a superuser may create a table");
    }

    /// Starts this many sessions, each asking in these ways in turn, after the statements of `setup`.
    pub fn start(server: &Cluster, sessions: usize, asks: &'static [Ask], setup: &'static str) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let one = |number: usize| {
            let (config, stop) = (server.config("postgres"), stop.clone());
            let cancel = Cancel::default();
            let token = cancel.clone();
            (thread::spawn(move || session(&config, &stop, number, asks, setup, &token)), cancel)
        };
        Load { sessions: (0..sessions).map(one).collect(), stop }
    }

    /// Ends the sessions, and returns what they received.
    pub fn finish(self) -> Ledger {
        self.stop.store(true, Ordering::Relaxed);
        let mut ledger = Ledger::default();
        let deadline = Instant::now() + LONGEST;
        for (session, cancel) in self.sessions {
            if !within(deadline.saturating_duration_since(Instant::now()), || session.is_finished()) {
                ledger.stalled += 1;
                let cancelled = || {
                    if let Some(token) = &*cancel.lock().expect("nobody panics with it") {
                        let _ = token.cancel_query(NoTls);
                    }
                    session.is_finished()
                };
                assert!(within(PATIENCE, cancelled), "a session can neither go on nor be cancelled");
            }
            ledger.merge(session.join().expect("a session's thread ends"));
        }
        ledger
    }
}

fn session(config: &Config, stop: &AtomicBool, number: usize, asks: &[Ask], setup: &str, cancel: &Cancel) -> Ledger {
    let mut ledger = Ledger::default();
    while !stop.load(Ordering::Relaxed) {
        let connected = config.clone().connect_timeout(Duration::from_secs(2)).connect(NoTls);
        let Ok(mut client) = connected.and_then(|mut client| client.batch_execute(setup).map(|()| client)) else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        *cancel.lock().expect("nobody panics with it") = Some(client.cancel_token());
        let mut ids = Vec::new();
        for ask in asks.iter().cycle().skip(number) {
            if stop.load(Ordering::Relaxed) || client.is_closed() {
                break;
            }
            let begun = Instant::now();
            match ask.draw(&mut client) {
                Ok(drawn) => {
                    ids.extend(drawn);
                    ledger.slowest = ledger.slowest.max(begun.elapsed());
                }
                Err(error) => {
                    let text = |error: &DbError| format!("{} {}", error.code().code(), error.message());
                    *ledger.errors.entry(error.as_db_error().map_or(String::new(), text)).or_default() += 1;
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        ledger.stretches.push(ids);
    }
    ledger
}
