//! What the registrar publishes to the sessions of this server: the worker ID, the grant, and how the last heartbeats went.
//!
//! # Locking contract
//!
//! There is one writer: the postmaster, before it starts other processes, and then the registrar, of which there is at most one. Any
//! number of processes read. No reader waits for the writer, and the writer waits for no reader.
//!
//! The memory is a counter and two copies of the snapshot. Snapshot `n` is in copy `n % 2`. The writer fills the other copy and then
//! stores the counter. A reader reads the counter, copies the copy that it names, and reads the counter again. If both numbers are
//! `n`, the reader has copied snapshot `n` and nothing else, for two reasons:
//!
//! - The reader sees all of snapshot `n`, because the counter is stored with `Release` after the copy was filled, and is first read
//!   with `Acquire`.
//! - The reader sees nothing of snapshot `n + 2`, which replaces snapshot `n`. The writer begins with it after a `Release` fence that
//!   follows the store of `n + 1`. If a word came from snapshot `n + 2`, the reader's `Acquire` fence would synchronize with that fence,
//!   and the second reading of the counter would find `n + 1` or more.
//!
//! Words are atomics, so discarding a copy is not undefined behaviour. A reader retries only if the writer has stored a
//! new snapshot while the reader was copying. Copying takes nanoseconds, and the registrar usually stores at most one
//! snapshot per second. A writer that is stopped in the middle of a snapshot holds up no reader, because readers use
//! the other copy. The proof needs the two fences and no schedule, and the memory has one writer, so there is no model
//! in loom.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

use flake::fleet::{Grant, Point, Ring, SPARE_LEASE, Scale};
use flake::{Mark, Node};
use pgrx::{PGRXSharedMemory, PgAtomic, pg_shmem_init, prelude::*};

use crate::config::guc;
use crate::config::identity::{self, Identity};
use crate::faults::{self, Fault};
use crate::fleet::record;
use crate::message::fleet::{LeaseLeft, Outage, Until};
use crate::pg::background_worker;
use crate::pg::text_arg::ascii;
use crate::server::clock;

/// The words of a text. A text that does not fit is truncated.
const TEXT: usize = 48;

/// The words before the texts.
const NUMBERS: usize = 16;

/// The number of texts.
const TEXTS: usize = 4;

const WORDS: usize = NUMBERS + TEXTS * TEXT;

/// Whether this server has a worker ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// The server has no worker ID yet, or has lost it.
    #[default]
    Seeking,
    /// The server has a worker ID, and may issue its IDs up to the bound.
    Holding,
    /// A copy of this server has renewed the grant. This server issues no IDs until it is restarted.
    Fenced,
}

/// What the registrar has published. Times are in microseconds since the Unix epoch, and 0 if there was no such event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub standing: Standing,
    /// Counts how many times this server has got or lost a worker ID since it started. A reservation of an earlier
    /// generation must no longer be used.
    pub generation: u64,
    /// The worker ID and the datacenter ID. Unless the server holds a worker ID, the last one that it held.
    pub node: Node,
    /// The lowest and the highest ID that this server may issue.
    pub start: Point,
    pub bound: Point,
    /// When this server got the worker ID, or started with the one in its witness.
    pub since: i64,
    /// The time of the bound. After it, the server issues no IDs.
    pub granted_until: i64,
    /// When a heartbeat last succeeded.
    pub last_heartbeat: i64,
    /// When the registrar last began to wait for a host, or, before the first heartbeat, when the postmaster published the first
    /// snapshot. This is a time on the monotonic clock, in nanoseconds.
    pub attempted: u64,
    /// How many heartbeats have failed since the last one that succeeded.
    pub failures: u64,
    /// How far the wall clock of this server is ahead of the registry's, and the duration of the request that measured
    /// this. The true offset differs by at most half of the round trip. A round trip of 0 means that nothing was
    /// measured.
    pub offset_us: i64,
    pub round_trip_us: i64,
    /// When the copy of this server made its last renewal, by the registry's clock, as a point.
    pub fenced_seen: Point,
    /// Why the last heartbeat failed, or an empty text. Every user can read it, so it contains no connection parameters.
    pub cause: String,
    /// More about the cause, or an empty text.
    pub detail: String,
    /// What to do about the cause, or an empty text.
    pub hint: String,
    /// Who has fenced this server: the host, the port and the data directory of the copy.
    pub fenced_by: String,
}

impl Snapshot {
    /// Returns a snapshot that contains this grant.
    pub fn with(self, grant: &Grant, scale: &Scale) -> Snapshot {
        let granted_until = i64::try_from(scale.time(grant.bound)).unwrap_or(i64::MAX);
        let (node, start, bound) = (grant.node, grant.start, grant.bound);
        Snapshot { standing: Standing::Holding, node, start, bound, granted_until, ..self }
    }

    /// Returns the identity of this server with the worker ID that this snapshot contains, or without a worker ID.
    pub fn identity(&self, own: &Identity) -> Identity {
        match self.standing {
            Standing::Holding => {
                let start = Mark::stored(self.start.id() as u64).unwrap_or(Mark::NOTHING_ISSUED);
                own.assigned(self.generation, self.node, start)
            }
            Standing::Seeking | Standing::Fenced => Identity { worker_set: false, assignment: 0, ..own.clone() },
        }
    }

    /// Returns true if the server may issue IDs with this identity.
    pub fn holds(&self, identity: &Identity) -> bool {
        self.standing == Standing::Holding && self.generation == identity.assignment
    }

    /// Returns the first word that is above the bound. It is the first word of a tick, as the end of every reservation is.
    pub fn ceiling(&self, identity: &Identity) -> u64 {
        let grant = Grant { node: self.node, start: self.start, bound: self.bound, used: Mark::NOTHING_ISSUED };
        let ceiling = grant.ceiling(&identity.stamp, identity.limits.last_word());
        ceiling - ceiling % identity.limits.capacity()
    }

    /// Returns true if there is no registrar, or if it should have begun another heartbeat long ago.
    pub fn overdue(&self) -> bool {
        let since = Duration::from_nanos(clock::monotonic().saturating_sub(self.attempted));
        let late = since > 3 * period() + LONGEST && self.standing != Standing::Fenced;
        late || NO_REGISTRAR.load(Ordering::Relaxed)
    }

    /// Returns the results of the last heartbeats.
    pub fn outage(&self) -> Outage {
        Outage {
            succeeded: (self.last_heartbeat != 0).then_some(self.last_heartbeat.into()),
            failures: self.failures,
            cause: self.cause.clone(),
            hint: self.hint.clone(),
            overdue: self.overdue(),
        }
    }

    /// Returns the worker ID and the datacenter ID as text.
    pub fn name(&self) -> String {
        identity::get().name(self.node)
    }

    /// Returns until when this server can issue IDs.
    pub fn until(&self) -> Until {
        match self.standing {
            Standing::Holding => Until::Time(self.granted_until.into(), self.name()),
            Standing::Seeking => Until::NoWorkerId,
            Standing::Fenced => Until::Fenced,
        }
    }

    /// Returns how much of the lease is left at `now`, in microseconds since the Unix epoch.
    pub fn left(&self, now: i64) -> LeaseLeft {
        let spare = self.node.worker >= Ring::of(&identity::get().format.layout).spare;
        let lease = if spare { guc::lease().min(SPARE_LEASE) } else { guc::lease() };
        let lease = lease.as_micros() as i64;
        match self.granted_until.saturating_sub(now) {
            ..=0 => LeaseLeft::Nothing,
            left if left < lease / 4 => LeaseLeft::Quarter,
            left if left < lease / 2 => LeaseLeft::Half,
            _ => LeaseLeft::Enough,
        }
    }

    fn encode(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        let numbers = [
            self.standing as u64,
            self.generation,
            u64::from(self.node.datacenter),
            u64::from(self.node.worker),
            self.start.id() as u64,
            self.bound.id() as u64,
            self.since as u64,
            self.granted_until as u64,
            self.last_heartbeat as u64,
            self.attempted,
            self.failures,
            self.offset_us as u64,
            self.round_trip_us as u64,
            self.fenced_seen.id() as u64,
        ];
        words[..numbers.len()].copy_from_slice(&numbers);
        let texts = [&self.cause, &self.detail, &self.hint, &self.fenced_by];
        for (words, text) in words[NUMBERS..].chunks_exact_mut(TEXT).zip(texts) {
            put_text(words, text);
        }
        words
    }

    fn decode(words: &[u64; WORDS]) -> Snapshot {
        let point = |word: u64| Point::new(word as i64).unwrap_or_default();
        let mut texts = words[NUMBERS..].chunks_exact(TEXT).map(text_in);
        let mut text = || texts.next().unwrap_or_default();
        Snapshot {
            standing: match words[0] {
                1 => Standing::Holding,
                2 => Standing::Fenced,
                _ => Standing::Seeking,
            },
            generation: words[1],
            node: Node { datacenter: words[2] as u32, worker: words[3] as u32 },
            start: point(words[4]),
            bound: point(words[5]),
            since: words[6] as i64,
            granted_until: words[7] as i64,
            last_heartbeat: words[8] as i64,
            attempted: words[9],
            failures: words[10],
            offset_us: words[11] as i64,
            round_trip_us: words[12] as i64,
            fenced_seen: point(words[13]),
            cause: text(),
            detail: text(),
            hint: text(),
            fenced_by: text(),
        }
    }
}

/// Writes a text. A text of another server can contain any characters, but must be valid in the encoding of every database.
fn put_text(words: &mut [u64], text: &str) {
    let text = ascii(text);
    for (word, bytes) in words.iter_mut().zip(text.as_bytes().chunks(size_of::<u64>())) {
        let mut padded = [0; size_of::<u64>()];
        padded[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(padded);
    }
}

fn text_in(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// True if there was no slot for the registrar. The postmaster sets this flag, and its children inherit it.
static NO_REGISTRAR: AtomicBool = AtomicBool::new(false);

/// Notes that no registrar runs. This function is called in the postmaster while it preloads libraries.
pub fn note_no_registrar() {
    NO_REGISTRAR.store(true, Ordering::Relaxed);
}

/// The memory of the snapshot.
struct PublishedSnapshot {
    counter: AtomicU64,
    copies: [[AtomicU64; WORDS]; 2],
}

impl PublishedSnapshot {
    /// Returns the memory with snapshot 0.
    fn new(first: &Snapshot) -> PublishedSnapshot {
        let zero = || [const { AtomicU64::new(0) }; WORDS];
        PublishedSnapshot { counter: AtomicU64::new(0), copies: [first.encode().map(AtomicU64::new), zero()] }
    }

    fn read(&self) -> Snapshot {
        loop {
            let counter = self.counter.load(Ordering::Acquire);
            let copy = &self.copies[(counter % 2) as usize];
            let words = std::array::from_fn(|n| copy[n].load(Ordering::Relaxed));
            // Orders the loads above before the load below.
            fence(Ordering::Acquire);
            if self.counter.load(Ordering::Relaxed) == counter {
                return Snapshot::decode(&words);
            }
        }
    }

    fn write(&self, snapshot: &Snapshot) {
        let next = self.counter.load(Ordering::Relaxed) + 1;
        // Orders the last store of the counter before the stores below.
        fence(Ordering::Release);
        for (word, value) in self.copies[(next % 2) as usize].iter().zip(snapshot.encode()) {
            word.store(value, Ordering::Relaxed);
        }
        self.counter.store(next, Ordering::Release);
    }
}

// SAFETY: the type consists of atomics and contains no pointer.
unsafe impl PGRXSharedMemory for PublishedSnapshot {}

// SAFETY: the name is the extension's own, so no other library uses it.
static PUBLISHED: PgAtomic<PublishedSnapshot> = unsafe { PgAtomic::new(c"snowflake_pg grant") };

/// Requests the shared memory if the server has a registry. This function is called in the postmaster while it preloads libraries,
/// after [`record::open`].
#[allow(clippy::undocumented_unsafe_blocks)] // The unsafe blocks are in the macro.
pub fn request(identity: &Identity) {
    if identity.registry_set && background_worker::in_normal_server() {
        pg_shmem_init!(PUBLISHED = PublishedSnapshot::new(&first()));
    }
}

/// Returns what the server can say before the registrar runs. A server whose witness has a valid record continues with
/// it immediately, and does the same when the postmaster sets up shared memory again after a crash.
fn first() -> Snapshot {
    use flake::fleet::{Member, MemberStanding};
    let format = identity::get().format;
    let (scale, now) = (Scale::new(format), now());
    let snapshot = Snapshot { attempted: clock::monotonic(), ..Snapshot::default() };
    match Member::start(member_identity(), record::load(), scale.point(now)).standing() {
        MemberStanding::Holding(grant) => Snapshot { generation: 1, since: now, ..snapshot }.with(&grant, &scale),
        _ => snapshot,
    }
}

/// Returns what the protocol needs to know about this server.
pub fn member_identity() -> flake::fleet::MemberIdentity {
    let identity = identity::get();
    flake::fleet::MemberIdentity { fleet: None, format: identity.format, datacenter: identity.node.datacenter }
}

/// Returns the scale of the points of this server's layout and epoch.
pub const fn scale(identity: &Identity) -> Scale {
    Scale::new(identity.format)
}

/// Returns this server's identity with the worker ID that the registry assigned most recently, or `None` if the library
/// is not preloaded.
pub fn identity() -> Option<Identity> {
    let own = identity::find()?;
    Some(published().map_or_else(|| own.clone(), |snapshot| snapshot.identity(own)))
}

/// Returns true if a grant limits the IDs of this identity. Without a registry, there is no grant.
pub fn limits(identity: &Identity) -> bool {
    identity.registry_set && !faults::on(Fault::BoundIgnored)
}

/// Returns the worker ID that the registry has assigned, or `None` if there is none.
pub fn worker() -> Option<u32> {
    published().filter(|snapshot| snapshot.standing == Standing::Holding).map(|snapshot| snapshot.node.worker)
}

/// How many heartbeats there are in one lease.
const HEARTBEATS: u32 = 720;

/// The shortest time between two heartbeats, and before the second attempt after a failure.
pub const SHORTEST: Duration = Duration::from_secs(1);

/// How long the registrar can wait for one host or for the answers to its requests, roughly.
const LONGEST: Duration = Duration::from_mins(2);

/// Returns the time between two heartbeats.
pub fn period() -> Duration {
    (guc::lease() / HEARTBEATS).max(SHORTEST)
}

/// Returns the wall clock of this server in microseconds since the Unix epoch.
pub fn now() -> i64 {
    (clock::wall() / 1_000) as i64
}

/// Returns what the registrar has published, or `None` if the server has no registry.
pub fn published() -> Option<Snapshot> {
    let there = identity::find().is_some_and(|identity| identity.registry_set) && background_worker::in_normal_server();
    there.then(|| PUBLISHED.get().read())
}

/// Publishes a snapshot. Only the registrar calls this function.
pub fn publish(snapshot: &Snapshot) {
    PUBLISHED.get().write(snapshot);
}
