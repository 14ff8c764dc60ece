//! Sessions that insert rows into a cluster whose primary changes, and a record of every ID that they received. The benchmark
//! itself is in `failovers.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use postgres::{Config, NoTls};

/// The number of sessions of each kind.
const SESSIONS: usize = 4;
/// The pause before a session connects again.
const PAUSE: Duration = Duration::from_millis(10);
/// The pause between two rows of a session, as an application with other work makes it.
const WORK: Duration = Duration::from_millis(1);

/// An ID that a session received with its row.
pub struct ReceivedId {
    /// The ID.
    pub id: i64,
    /// When the session received it.
    pub at: Instant,
    /// True if the session writes through HAProxy.
    pub through_proxy: bool,
}

/// Running sessions.
pub struct Writers {
    stop: Arc<AtomicBool>,
    sessions: Vec<JoinHandle<Vec<ReceivedId>>>,
}

impl Writers {
    /// Starts sessions that write through HAProxy, and as many that connect to the members themselves.
    pub fn start(proxy: &Config, members: &Config) -> Writers {
        let stop = Arc::new(AtomicBool::new(false));
        let session = |number: usize| {
            let (stop, through_proxy) = (stop.clone(), number.is_multiple_of(2));
            let config = if through_proxy { proxy.clone() } else { members.clone() };
            thread::spawn(move || write(&config, through_proxy, &stop))
        };
        Writers { sessions: (0..2 * SESSIONS).map(session).collect(), stop }
    }

    /// Ends the sessions, and returns what they received in the order of time.
    pub fn finish(self) -> Vec<ReceivedId> {
        self.stop.store(true, Ordering::Relaxed);
        let sessions = self.sessions.into_iter();
        let mut drawn: Vec<ReceivedId> = sessions.flat_map(|one| one.join().expect("a session ends")).collect();
        drawn.sort_by_key(|one| one.at);
        drawn
    }
}

fn write(config: &Config, through_proxy: bool, stop: &AtomicBool) -> Vec<ReceivedId> {
    let mut drawn = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut client) = config.connect(NoTls) else {
            thread::sleep(PAUSE);
            continue;
        };
        // A row that is refused ends the session. The next session finds another server, which may accept it.
        while !stop.load(Ordering::Relaxed) {
            let insert = "INSERT INTO orders (number) VALUES (1) RETURNING id";
            let Ok(rows) = client.query_typed(insert, &[]) else { break };
            drawn.push(ReceivedId { id: rows[0].get(0), at: Instant::now(), through_proxy });
            thread::sleep(WORK);
        }
    }
    drawn
}
