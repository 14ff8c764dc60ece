//! What the registrar publishes to this server's sessions: the worker ID, the grant, and the results of the last
//! heartbeats. The generator stops at the end of the grant in `generator/grant_end.rs`, and `fleet/refusal.rs` makes the
//! error.
//!
//! # Locking contract
//!
//! There is only one writer: the postmaster before it starts other processes, and then the registrar, of which there is
//! at most one. There can be any number of readers. Readers and the writer do not wait for each other.
//!
//! The memory consists of a counter and two copies of the snapshot. Snapshot `n` is in copy `n % 2`. The writer fills
//! the other copy and then stores the counter. A reader reads the counter, reads the copy that it selects, and reads
//! the counter again. If both values are `n`, the reader has read exactly snapshot `n`, for two reasons:
//!
//! - The reader sees all of snapshot `n`, because the writer stores the counter with `Release` after it has filled the
//!   copy, and the reader first loads the counter with `Acquire`.
//! - The reader sees nothing of snapshot `n + 2`, which replaces snapshot `n`. Before the writer starts to write that
//!   snapshot, it executes a `Release` fence, which follows the store of `n + 1`. If a word came from snapshot `n + 2`,
//!   the reader's `Acquire` fence would synchronize with that fence, and the reader's second load of the counter would
//!   return `n + 1` or more.
//!
//! The words are atomics, so reading a copy that is then discarded is not undefined behavior. A reader retries only if
//! the writer has stored a new snapshot in the meantime. Reading a copy takes nanoseconds, and the registrar usually
//! stores at most one snapshot per second. A writer that is stopped in the middle of a snapshot does not block readers,
//! because they use the other copy. There is no loom model, because the memory has one writer and the proof depends
//! only on the two fences, not on scheduling.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

use flake::fleet::{Grant, Point, Ring, SPARE_LEASE, Scale};
use flake::{Mark, Node};
use pgrx::{PGRXSharedMemory, PgAtomic, pg_shmem_init, prelude::*};

use crate::config::guc;
use crate::config::identity::{self, Identity};
use crate::faults::{self, Fault};
use crate::fleet::{heartbeat, record};
use crate::message::fleet::{LeaseLeft, Outage, Until};
use crate::pg::background_worker;
use crate::pg::text_arg::ascii;
use crate::server::clock;

/// The number of words for each text. Longer texts are truncated.
const TEXT: usize = 48;

/// The number of words before the texts.
const NUMBERS: usize = 16;

const TEXTS: usize = 4;

const WORDS: usize = NUMBERS + TEXTS * TEXT;

/// Whether this server has a worker ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// The server does not have a worker ID yet, or has lost it.
    #[default]
    Seeking,
    /// The server has a worker ID and may issue its IDs up to the bound.
    Holding,
    /// A copy of this server has renewed the grant. This server does not issue IDs until it is restarted.
    Fenced,
}

/// What the registrar has published. Times are in microseconds since the Unix epoch, or 0 if the event has not
/// occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub standing: Standing,
    /// How many times this server has gained or lost a worker ID since it started. A reservation from an earlier
    /// generation must not be used.
    pub generation: u64,
    /// The worker ID and the datacenter ID. If the server does not hold a worker ID, these are the last ones that it
    /// held.
    pub node: Node,
    /// The lowest and the highest ID that this server may issue.
    pub start: Point,
    pub bound: Point,
    /// When this server received the worker ID, or when it started with the worker ID from its witness.
    pub since: i64,
    /// The time of the bound, after which the server issues no IDs.
    pub granted_until: i64,
    /// When a heartbeat last succeeded.
    pub last_heartbeat: i64,
    /// When the registrar last started to wait for a host. Before the first heartbeat, this is when the postmaster
    /// published the first snapshot. This is a monotonic-clock time, in nanoseconds.
    pub attempted: u64,
    /// How many heartbeats have failed since the last successful one.
    pub failures: u64,
    /// How far this server's wall clock is ahead of the registry's, and the duration of the request that measured this.
    /// The true offset differs from this value by at most half of the round trip. If the round trip is 0, the offset
    /// has not been measured.
    pub offset_us: i64,
    pub round_trip_us: i64,
    /// The point on the registry's clock at which the copy of this server last renewed the grant.
    pub fenced_seen: Point,
    /// Why the last heartbeat failed, or an empty string. Every user can read this text, so it does not contain
    /// connection parameters.
    pub cause: String,
    /// Additional information about the cause, or an empty string.
    pub detail: String,
    /// How to resolve the cause, or an empty string.
    pub hint: String,
    /// The host, port and data directory of the copy that caused this server to be fenced.
    pub fenced_by: String,
}

impl Snapshot {
    /// Returns a snapshot that contains the given grant.
    pub fn with(self, grant: &Grant, scale: &Scale) -> Snapshot {
        let granted_until = i64::try_from(scale.time(grant.bound)).unwrap_or(i64::MAX);
        let (node, start, bound) = (grant.node, grant.start, grant.bound);
        Snapshot { standing: Standing::Holding, node, start, bound, granted_until, ..self }
    }

    /// Returns this server's identity, with the worker ID in this snapshot if it contains one.
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

    /// Returns the first word above the bound. It is the first word of a tick, because every reservation ends at the
    /// end of a tick.
    pub fn ceiling(&self, identity: &Identity) -> u64 {
        let grant = Grant { node: self.node, start: self.start, bound: self.bound, used: Mark::NOTHING_ISSUED };
        let ceiling = grant.ceiling(&identity.stamp, identity.limits.last_word());
        ceiling - ceiling % identity.limits.capacity()
    }

    /// Returns true if there is no registrar or if its next heartbeat is long overdue.
    pub fn overdue(&self) -> bool {
        let since = Duration::from_nanos(clock::monotonic().saturating_sub(self.attempted));
        let late = since > 3 * heartbeat::period() + LONGEST && self.standing != Standing::Fenced;
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

    /// Returns how long this server can issue IDs.
    pub fn until(&self) -> Until {
        match self.standing {
            Standing::Holding => Until::Time(self.granted_until.into(), self.name()),
            Standing::Seeking => Until::NoWorkerId,
            Standing::Fenced => Until::Fenced,
        }
    }

    /// Returns how much of the lease remains at `now`, which is in microseconds since the Unix epoch.
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

/// Stores a text. A text from another server can contain any characters, but the stored text must be valid in the
/// encoding of every database.
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

/// True if no background worker slot was available for the registrar. The postmaster sets this flag, and its children
/// inherit it.
static NO_REGISTRAR: AtomicBool = AtomicBool::new(false);

/// Records that no registrar is running. The postmaster calls this function while it preloads libraries.
pub fn note_no_registrar() {
    NO_REGISTRAR.store(true, Ordering::Relaxed);
}

/// The shared memory for the snapshots.
struct PublishedSnapshot {
    counter: AtomicU64,
    copies: [[AtomicU64; WORDS]; 2],
}

impl PublishedSnapshot {
    /// Returns memory that contains snapshot 0.
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
        // Orders the previous store of the counter before the stores below.
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

/// Requests shared memory if the server uses a registry. The postmaster calls this function while it preloads
/// libraries, after [`record::open`].
#[allow(clippy::undocumented_unsafe_blocks)] // The unsafe blocks are in the macro.
pub fn request(identity: &Identity) {
    if identity.registry_set && background_worker::in_normal_server() {
        pg_shmem_init!(PUBLISHED = PublishedSnapshot::new(&first()));
    }
}

/// Returns the snapshot that is published before the registrar runs. A server whose witness contains a valid record
/// uses it immediately. The same applies when the postmaster sets up shared memory again after a crash.
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

/// Returns the identity of this server that the protocol uses.
pub fn member_identity() -> flake::fleet::MemberIdentity {
    let identity = identity::get();
    flake::fleet::MemberIdentity { fleet: None, format: identity.format, datacenter: identity.node.datacenter }
}

/// Returns the scale of points in this server's layout and epoch.
pub const fn scale(identity: &Identity) -> Scale {
    Scale::new(identity.format)
}

/// Returns this server's identity with the worker ID that the registry assigned most recently, or `None` if the library
/// is not preloaded.
pub fn identity() -> Option<Identity> {
    let own = identity::find()?;
    Some(published().map_or_else(|| own.clone(), |snapshot| snapshot.identity(own)))
}

/// Returns true if a grant limits the IDs of this identity. There is no grant without a registry.
pub fn limits(identity: &Identity) -> bool {
    identity.registry_set && !faults::on(Fault::BoundIgnored)
}

/// Returns the worker ID that the registry has assigned, or `None` if there is none.
pub fn worker() -> Option<u32> {
    published().filter(|snapshot| snapshot.standing == Standing::Holding).map(|snapshot| snapshot.node.worker)
}

/// The approximate maximum time that the registrar waits for one host or for the answers to its requests.
const LONGEST: Duration = Duration::from_mins(2);

/// Returns the time of this server's wall clock, in microseconds since the Unix epoch.
pub fn now() -> i64 {
    (clock::wall() / 1_000) as i64
}

/// Returns true if this server uses a registry. Its mark is then in the fleet's witness ([`record`]).
pub fn uses_registry() -> bool {
    identity::find().is_some_and(|identity| identity.registry_set) && background_worker::in_normal_server()
}

/// Returns the published snapshot, or `None` if the server does not use a registry.
pub fn published() -> Option<Snapshot> {
    uses_registry().then(|| PUBLISHED.get().read())
}

/// Publishes a snapshot. Only the registrar calls this function.
pub fn publish(snapshot: &Snapshot) {
    PUBLISHED.get().write(snapshot);
}
