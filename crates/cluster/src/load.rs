//! Sessions that draw IDs until they are stopped, and the history of every ID that a client received.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use postgres::error::DbError;
use postgres::{CancelToken, Client, Config, NoTls};

use crate::patience::PATIENCE;
use crate::{Cluster, check_increasing, check_unique, ensure, thorough, within};

/// A way to get IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// One ID.
    Nextval,
    /// Twenty IDs in a batch.
    Batch,
    /// Two thousand IDs in a batch.
    Many,
    /// A block of ten IDs.
    Reserve,
    /// The key of a row that is inserted.
    Insert,
    /// The key of a row that is inserted and rolled back.
    Rollback,
    /// Forty values of a PostgreSQL sequence, in a transaction that is rolled back.
    Sequence,
}

impl Ask {
    /// Every way to get IDs from this extension.
    pub const ALL: &'static [Ask] = &[Ask::Nextval, Ask::Batch, Ask::Reserve, Ask::Insert, Ask::Rollback];

    /// The ways that write nothing. They run no COMMIT that would flush WAL that the extension should have flushed.
    pub const READING: &'static [Ask] = &[Ask::Nextval, Ask::Batch, Ask::Reserve];

    fn draw(self, client: &mut Client) -> Result<Vec<i64>, postgres::Error> {
        let mut ids = |sql: &str| -> Result<Vec<i64>, postgres::Error> {
            Ok(client.query(sql, &[])?.iter().map(|row| row.get(0)).collect())
        };
        match self {
            Ask::Nextval => ids("SELECT snowflake_nextval()"),
            Ask::Batch => ids("SELECT snowflake_nextval_batch(20)"),
            Ask::Many => ids("SELECT snowflake_nextval_batch(2000)"),
            Ask::Reserve => {
                Ok(ids("SELECT snowflake_reserve(10)")?.iter().flat_map(|first| *first..first + 10).collect())
            }
            Ask::Insert => ids("INSERT INTO load_rows DEFAULT VALUES RETURNING id"),
            Ask::Rollback => {
                let mut transaction = client.transaction()?;
                let row = transaction.query_one("INSERT INTO load_rows DEFAULT VALUES RETURNING id", &[])?;
                transaction.rollback()?;
                Ok(vec![row.get(0)])
            }
            Ask::Sequence => {
                let mut transaction = client.transaction()?;
                let draw = |_| Ok(transaction.query_one("SELECT nextval('load_sequence')", &[])?.get(0));
                let ids: Result<Vec<i64>, postgres::Error> = (0..40).map(draw).collect();
                transaction.rollback()?;
                ids
            }
        }
    }
}

/// The IDs and errors that clients received.
#[derive(Default)]
pub struct History {
    /// The IDs that each connection received, in the order in which it received them.
    pub stretches: Vec<Vec<i64>>,
    /// The number of statements that ended in each error. The key is the SQLSTATE and the message, or an empty string if the
    /// connection broke.
    pub errors: BTreeMap<String, u64>,
    /// The longest duration of a statement that returned IDs.
    pub slowest: Duration,
    /// The number of sessions that had to be cancelled at the end because they waited for longer than [`LONGEST`].
    pub stalled: usize,
}

impl History {
    /// Lets two sessions of each of these servers draw IDs at the same time. Each server must issue IDs.
    pub fn together(servers: &[&Cluster], asks: &'static [Ask], time: Duration) -> Result<History, String> {
        let loads: Vec<Load> = servers.iter().map(|server| Load::start(server, 2, asks, "")).collect();
        thread::sleep(time);
        let mut all = History::default();
        for load in loads {
            let history = load.finish();
            ensure!(!history.is_empty(), "a server has issued nothing: {:?}", history.errors);
            all.merge(history);
        }
        Ok(all)
    }

    /// Returns the number of IDs.
    pub fn len(&self) -> usize {
        self.stretches.iter().map(Vec::len).sum()
    }

    /// Returns true if no session received an ID.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all IDs.
    pub fn ids(&self) -> Vec<i64> {
        self.stretches.concat()
    }

    /// Adds another history.
    pub fn merge(&mut self, other: History) {
        self.stretches.extend(other.stretches);
        for (code, times) in other.errors {
            *self.errors.entry(code).or_default() += times;
        }
        self.slowest = self.slowest.max(other.slowest);
        self.stalled += other.stalled;
    }

    /// Checks that no ID occurs twice, that all IDs are positive and increase in each connection, that no session stalled, and that
    /// there are at least `at_least` IDs.
    pub fn check(&self, at_least: usize) -> Result<(), String> {
        self.stretches.iter().try_for_each(|ids| check_increasing(ids))?;
        check_unique(&mut self.ids())?;
        ensure!(self.stalled == 0, "{} sessions stalled", self.stalled);
        ensure!(self.len() >= at_least, "only {} IDs: nothing was shown; errors: {:?}", self.len(), self.errors);
        Ok(())
    }
}

/// Sessions that draw IDs until they are told to end. A session connects again after its server has gone.
pub struct Load {
    stop: Arc<AtomicBool>,
    sessions: Vec<(JoinHandle<History>, Cancel)>,
}

/// The means to cancel the statement of a session. `statement_timeout` does not help, because it uses the wall clock, which tests
/// set back.
type Cancel = Arc<Mutex<Option<CancelToken>>>;

/// The longest time that a session may take to end its last statement.
const LONGEST: Duration = Duration::from_secs(10);

/// How long a session rests after each statement, unless the run is thorough. Without a rest, the sessions of a few tests would use all
/// processors, and all tests would take longer.
const REST: Duration = Duration::from_millis(4);

impl Load {
    /// Creates the objects that the statements of [`Ask`] need.
    pub fn prepare(server: &Cluster) {
        let sql = "CREATE TABLE IF NOT EXISTS load_rows (id bigint DEFAULT snowflake_nextval());
                   CREATE SEQUENCE IF NOT EXISTS load_sequence";
        server.session().batch_execute(sql).expect("a superuser may create a table");
    }

    /// Starts this many sessions. Each session runs the statements of `setup` and then gets IDs in these ways in turn.
    pub fn start(server: &Cluster, sessions: usize, asks: &'static [Ask], setup: &'static str) -> Load {
        Load::at(&server.config("postgres"), sessions, asks, setup)
    }

    /// Does what [`Load::start`] does, with sessions that connect with these parameters.
    pub fn at(config: &Config, sessions: usize, asks: &'static [Ask], setup: &'static str) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let one = |number: usize| {
            let (config, stop) = (config.clone(), stop.clone());
            let cancel = Cancel::default();
            let token = cancel.clone();
            (thread::spawn(move || session(&config, &stop, number, asks, setup, &token)), cancel)
        };
        Load { sessions: (0..sessions).map(one).collect(), stop }
    }

    /// Ends the sessions, and returns what they received.
    pub fn finish(self) -> History {
        self.stop.store(true, Ordering::Relaxed);
        let mut history = History::default();
        let deadline = Instant::now() + LONGEST;
        for (session, cancel) in self.sessions {
            if !within(deadline.saturating_duration_since(Instant::now()), || session.is_finished()) {
                history.stalled += 1;
                let cancelled = || {
                    if let Some(token) = &*cancel.lock().expect("nobody panics with it") {
                        let _ = token.cancel_query(NoTls);
                    }
                    session.is_finished()
                };
                assert!(within(PATIENCE, cancelled), "a session can neither go on nor be cancelled");
            }
            history.merge(session.join().expect("a session's thread ends"));
        }
        history
    }
}

fn session(config: &Config, stop: &AtomicBool, number: usize, asks: &[Ask], setup: &str, cancel: &Cancel) -> History {
    let mut history = History::default();
    let rest = (!thorough()).then_some(REST);
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
                    history.slowest = history.slowest.max(begun.elapsed());
                }
                Err(error) => {
                    let text = |error: &DbError| format!("{} {}", error.code().code(), error.message());
                    *history.errors.entry(error.as_db_error().map_or(String::new(), text)).or_default() += 1;
                    thread::sleep(Duration::from_millis(1));
                }
            }
            rest.into_iter().for_each(thread::sleep);
        }
        history.stretches.push(ids);
    }
    history
}
