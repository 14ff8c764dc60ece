//! Issues the IDs of one node within one process, without PostgreSQL.

use core::error::Error;
use core::fmt;
use core::iter::FusedIterator;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use crate::fleet::{Grant, MemberIdentity, Point};
use crate::{
    ClockRules, Disciplined, GeneratorClock, IdFormat, Limits, MAX_LEAD, Mark, Nanos, Node, Obstacle, Pace, PartError,
    Reading, Request, Reservation, Run, Stamp, State,
};

/// The ID generator of a process that is not a PostgreSQL server, for example an application. All threads of the
/// process share one issuer by reference.
///
/// An issuer issues IDs only below a limit. The caller raises the limit in one of two ways:
///
/// - *With a registry*: [`Issuer::of_grant`] begins at the start of a [`Grant`]. After each renewal, [`Issuer::raise`]
///   raises the limit to the bound of the grant. The process does not have to store anything, because the registry
///   never grants the same IDs to a different holder.
/// - *With a mark that the process stores*: [`Issuer::start`] begins at the stored mark. [`Issuer::reserve`] plans a
///   reservation, the caller stores its mark durably, and [`Planned::publish`] raises the limit. The caller must ensure
///   that no other process and no server ever has the same node.
///
/// An issuer never waits. If it cannot issue an ID, it returns an [`Obstacle`]:
///
/// - [`Obstacle::NotReserved`]: the limit has been reached. Raise it, and retry.
/// - [`Obstacle::Throttled`]: the IDs are ahead of the clock by [`Issuer::MAX_AHEAD`] or, if the call is for more than
///   one ID, by half of it. Retry after the duration. If the threads of a process use up all IDs that the layout
///   allows, some threads can wait longer than others, and calls for one ID take precedence over calls for several IDs.
/// - [`Obstacle::NotLoaded`]: the issuer has been stopped.
/// - [`Obstacle::Exhausted`], [`Obstacle::BeforeEpoch`]: the layout has no ID for this time.
///
/// Two processes must never use copies of one issuer. After `fork()`, only one of the two processes may use the issuer.
pub struct Issuer {
    state: State,
    limits: Limits,
    stamp: Stamp,
    pace: Pace,
    limit: Limit,
}

/// The source of the limit.
enum Limit {
    /// The grant that belongs to this node and has this start.
    Grant(Node, Point),
    /// Marks that the caller stores.
    Marks {
        /// True while a thread is storing the mark of a reservation.
        planning: AtomicBool,
        /// The highest ceiling that has been planned. Its mark may have been stored even if the reservation was not
        /// published.
        planned: AtomicU64,
    },
}

/// Consecutive IDs of one issuer, in ascending order.
#[derive(Clone, Debug)]
pub struct IdBatch {
    stamp: Stamp,
    words: core::ops::RangeInclusive<u64>,
}

impl Iterator for IdBatch {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        self.words.next().map(|word| self.stamp.id(word))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.words.size_hint()
    }
}

impl FusedIterator for IdBatch {}

/// A reservation whose mark has not been stored yet. While this value exists, no other thread can plan a reservation.
pub struct Planned<'issuer> {
    issuer: &'issuer Issuer,
    planning: &'issuer AtomicBool,
    reservation: Reservation,
    begun: Nanos,
}

impl Planned<'_> {
    /// Returns the mark that replaces the previous mark. The caller must store it durably before it publishes the
    /// reservation. The mark is never lower than the marks of earlier reservations of this issuer.
    pub fn mark(&self) -> Mark {
        Mark::above(&self.issuer.stamp, self.reservation.ceiling)
    }

    /// Raises the issuer's limit to the end of the reservation. `monotonic` is the monotonic time at which the mark
    /// became durable.
    ///
    /// If the mark could not be stored, drop the reservation instead. The limit then stays unchanged.
    pub fn publish(self, monotonic: Nanos) {
        let state = &self.issuer.state;
        state.publish(state.generation(), self.reservation, monotonic.saturating_sub(self.begun));
    }
}

impl Drop for Planned<'_> {
    fn drop(&mut self) {
        // Release: the thread that plans the next reservation sees what this thread has planned.
        self.planning.store(false, Ordering::Release);
    }
}

/// The reason why a reservation cannot be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlan {
    /// Another thread is storing the mark of a reservation. Retry after a short pause.
    Busy,
    /// The limit is the bound of a grant. Renew the grant.
    Granted,
}

impl fmt::Display for NoPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoPlan::Busy => "another thread is storing a mark",
            NoPlan::Granted => "the bound of the grant has been reached, and only a renewal can raise it",
        })
    }
}

impl Error for NoPlan {}

/// The reason why an issuer cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartError {
    /// The node does not fit into the layout.
    Node(PartError),
    /// The first ID would be this far ahead of the wall clock, which is more than [`MAX_LEAD`]. Either the clock is
    /// wrong now, or it was wrong when the mark was stored.
    Ahead(Duration),
}

impl From<PartError> for StartError {
    fn from(error: PartError) -> StartError {
        StartError::Node(error)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Node(error) => error.fmt(f),
            StartError::Ahead(by) => {
                write!(f, "the first ID would be {} s ahead of the clock: check the clock and the mark", by.as_secs())
            }
        }
    }
}

impl Error for StartError {}

impl Issuer {
    /// The default limit on how far ahead of the clock IDs may be, in nanoseconds. It is 100 ms, like the default of
    /// the setting `snowflake_pg.max_ahead`. If a burst uses up the IDs of a tick, the next IDs contain the times of
    /// the following ticks, up to this limit.
    pub const MAX_AHEAD: Nanos = 100_000_000;

    /// Creates the issuer of a node. The issuer begins at the mark `begin` and issues no IDs until a reservation is
    /// published. `reading` contains the current times of the clocks.
    ///
    /// If the wall clock is behind the time of `begin`, the IDs begin at that time, and continue at the speed of the
    /// monotonic clock.
    pub fn start(format: &IdFormat, node: Node, begin: Mark, reading: Reading) -> Result<Issuer, StartError> {
        let (limits, stamp) = (Limits::of(format), format.layout.stamp(node)?);
        let first = begin.first_word(&stamp, limits.last_word());
        let ahead = limits.time(first).saturating_sub(reading.wall);
        if ahead > MAX_LEAD {
            return Err(StartError::Ahead(Duration::from_nanos(ahead)));
        }
        let state = State::new();
        // This cannot fail, because no other caller has the state. Even if it did, a state that is not loaded issues
        // nothing.
        let _ = state.load(state.generation(), first, GeneratorClock::start(reading, limits.time(first)));
        let pace = Pace { max_ahead: Issuer::MAX_AHEAD, ..Pace::default() };
        let limit = Limit::Marks { planning: AtomicBool::new(false), planned: AtomicU64::new(0) };
        Ok(Issuer { state, limits, stamp, pace, limit })
    }

    /// Creates the issuer for a grant of a member with this identity. `reading` contains the current times of the
    /// clocks. Create only one issuer for each grant, because a second one would begin at the same ID.
    pub fn of_grant(identity: &MemberIdentity, grant: &Grant, reading: Reading) -> Result<Issuer, StartError> {
        let begin = grant.begin(Mark::NOTHING_ISSUED);
        let mut issuer = Issuer::start(&identity.format, grant.node, begin, reading)?;
        issuer.limit = Limit::Grant(grant.node, grant.start);
        let _ = issuer.raise(grant);
        Ok(issuer)
    }

    /// Sets how far IDs may be ahead of the clock. The default is [`Issuer::MAX_AHEAD`].
    #[must_use]
    pub fn with_max_ahead(mut self, max_ahead: Nanos) -> Issuer {
        self.pace.max_ahead = max_ahead;
        self
    }

    /// Makes each tick begin at a random sequence number. By default, each tick begins at 0. If an application issues
    /// fewer than one ID per tick, all sequence numbers are then 0, and a hash of the lowest bits distributes the IDs
    /// unevenly.
    #[must_use]
    pub fn with_random_start(mut self) -> Issuer {
        self.pace.random_start = true;
        self
    }

    /// Issues one ID. `monotonic` reads the monotonic clock, in nanoseconds. It must be the same clock as in the
    /// readings that were passed to the issuer. It is called again if another thread drew the word first.
    #[inline]
    pub fn next_id(&self, monotonic: impl FnMut() -> Nanos) -> Result<i64, Obstacle> {
        self.draw(1, monotonic).map(|run| self.stamp.id(run.first))
    }

    /// Issues at least one ID, and at most `count` IDs. The IDs are ascending, and follow each other without a gap in
    /// the sequence of this node. One call issues at most the IDs of one tick, so the caller may need further calls to
    /// get the rest.
    pub fn next_ids(&self, count: u64, monotonic: impl FnMut() -> Nanos) -> Result<IdBatch, Obstacle> {
        self.draw(count, monotonic).map(|run| IdBatch { stamp: self.stamp, words: run.first..=run.last() })
    }

    #[inline(always)]
    fn draw(&self, count: u64, mut monotonic: impl FnMut() -> Nanos) -> Result<Run, Obstacle> {
        let clock = |offset: u64| monotonic().wrapping_add(offset);
        self.state.draw(&self.limits, self.pace, Request::UpTo(count), clock).map(|drawn| drawn.run)
    }

    /// Raises the limit to the bound of a renewed grant. Does nothing and returns false if this is not the grant with
    /// which the issuer was created. If a worker ID was lost and claimed again, a different holder can have issued the
    /// IDs between the two grants.
    #[must_use = "if the grant is another one, this issuer ends at its bound, and the other grant needs an issuer of its own"]
    pub fn raise(&self, grant: &Grant) -> bool {
        let Limit::Grant(node, start) = self.limit else { return false };
        let same = (node, start) == (grant.node, grant.start);
        if same {
            let ceiling = grant.ceiling(&self.stamp, self.limits.last_word());
            self.state.publish(self.state.generation(), Reservation { ceiling, renew: ceiling }, 0);
        }
        same
    }

    /// Plans the next reservation at the monotonic time `monotonic`. It covers the IDs of the next one to ten seconds.
    /// It is longer if storing a mark takes a long time, or if the previous reservation was extended late. `needed` is
    /// the number in [`Obstacle::NotReserved`], or 0 if the reservation is extended in advance.
    pub fn reserve(&self, monotonic: Nanos, needed: u64) -> Result<Planned<'_>, NoPlan> {
        let Limit::Marks { planning, planned } = &self.limit else { return Err(NoPlan::Granted) };
        // Acquire: see the Release in `drop`.
        if planning.swap(true, Ordering::Acquire) {
            return Err(NoPlan::Busy);
        }
        let now = self.state.clock().time(monotonic);
        let mut reservation = self.state.next_reservation(&self.limits, now, needed);
        // If a lower mark replaced a stored one, the next process would begin below IDs that this process has issued.
        reservation.ceiling = planned.load(Ordering::Relaxed).max(reservation.ceiling);
        planned.store(reservation.ceiling, Ordering::Relaxed);
        Ok(Planned { issuer: self, planning, reservation, begun: monotonic })
    }

    /// Returns true if half of the reservation has been used. If the caller extends the reservation at this point, it
    /// stores about two marks per second while it issues IDs without a pause, and never has to wait for a mark when it
    /// needs an ID.
    pub fn is_due(&self) -> bool {
        matches!(self.limit, Limit::Marks { .. }) && self.state.is_due()
    }

    /// Follows the wall clock according to the same rules as a server. Small differences are followed slowly, and
    /// forward steps up to `rules.max_jump` are followed immediately. Backward steps are not followed, so IDs never
    /// repeat and always increase. `read` reads the clocks. Call this function regularly, for example once per second.
    /// Otherwise, the IDs follow only the monotonic clock, and drift away from the wall clock.
    ///
    /// `rules.slack` must not exceed the limit that [`Issuer::with_max_ahead`] sets. With
    /// [`crate::OnRegression::Hold`], an issuer with marks stops only if the caller does not extend the reservation
    /// while [`Disciplined::behind`] is not `None`. An issuer with a grant continues up to the bound.
    pub fn discipline(&self, read: impl FnOnce() -> Reading, rules: &ClockRules) -> Disciplined {
        let issued = self.state.last().map_or(0, |last| self.limits.time(last));
        self.state.discipline(read, issued, rules)
    }

    /// Accepts the wall clock as correct after a forward step of more than `rules.max_jump`, which
    /// [`Issuer::discipline`] does not follow. Returns by how much the time of the next ID moves, or `None` if another
    /// thread is comparing the clocks. In this case, retry.
    pub fn accept_clock(&self, read: impl FnOnce() -> Reading) -> Option<Nanos> {
        self.state.accept_clock(read)
    }

    /// Stops the issuer permanently. A call that began earlier in another thread can still return an ID.
    pub fn stop(&self) {
        self.state.unload();
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("stamp", &self.stamp).field("last", &self.state.last()).finish_non_exhaustive()
    }
}
