//! Issues the IDs of one node inside one process, without PostgreSQL.

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

/// The generator of a process that is not a PostgreSQL server, for example of an application. All threads of the process use one issuer
/// by reference.
///
/// An issuer issues IDs only below a limit, which the caller raises in one of two ways:
///
/// - *With a registry*: [`Issuer::of_grant`] begins at the start of a [`Grant`], and [`Issuer::raise`] raises the limit to the bound of
///   the grant after each renewal. The registry never grants the same IDs to another holder, so the process stores nothing.
/// - *With a mark that the process stores*: [`Issuer::start`] begins at the stored mark. [`Issuer::reserve`] plans a reservation, the
///   caller stores its mark durably, and [`Planned::publish`] raises the limit. The caller must make sure that no other process and no
///   server ever has the same node.
///
/// An issuer never waits. If it cannot issue an ID, the [`Obstacle`] says why:
///
/// - [`Obstacle::NotReserved`]: the limit is reached. Raise it, and retry.
/// - [`Obstacle::Throttled`]: the IDs are [`Issuer::MAX_AHEAD`] ahead of the clock, or half of it if the call is for more than one ID.
///   Retry after the duration. If the threads of a process use up all IDs that the layout allows, some threads can wait
///   longer than others, and calls for one ID take precedence over calls for several.
/// - [`Obstacle::NotLoaded`]: the issuer was stopped.
/// - [`Obstacle::Exhausted`], [`Obstacle::BeforeEpoch`]: the layout has no ID for this time.
///
/// Two processes must not have copies of one issuer. After `fork()`, only one of the two processes may use it.
pub struct Issuer {
    state: State,
    limits: Limits,
    stamp: Stamp,
    pace: Pace,
    limit: Limit,
}

/// What raises the limit.
enum Limit {
    /// The grant of this node with this start.
    Grant(Node, Point),
    /// The marks that the caller stores.
    Marks {
        /// True while a thread stores the mark of a reservation.
        planning: AtomicBool,
        /// The highest ceiling that was planned. The mark above it can be stored, even if the reservation was not published.
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

/// A reservation whose mark is not stored yet. While it exists, no other thread can plan one.
pub struct Planned<'issuer> {
    issuer: &'issuer Issuer,
    planning: &'issuer AtomicBool,
    reservation: Reservation,
    begun: Nanos,
}

impl Planned<'_> {
    /// Returns the mark that must be stored durably, in the place of the previous mark, before the reservation is published. It is
    /// never lower than the mark of an earlier reservation of this issuer.
    pub fn mark(&self) -> Mark {
        Mark::above(&self.issuer.stamp, self.reservation.ceiling)
    }

    /// Raises the limit of the issuer to the end of the reservation. `monotonic` is the time at which the mark became durable.
    ///
    /// If the mark could not be stored, drop the reservation instead. The limit then stays as it is.
    pub fn publish(self, monotonic: Nanos) {
        let state = &self.issuer.state;
        state.publish(state.generation(), self.reservation, monotonic.saturating_sub(self.begun));
    }
}

impl Drop for Planned<'_> {
    fn drop(&mut self) {
        // Release: the thread that plans next sees what this thread has planned.
        self.planning.store(false, Ordering::Release);
    }
}

/// The reason why no reservation can be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlan {
    /// Another thread is storing the mark of a reservation. Retry after a short pause.
    Busy,
    /// The issuer has a grant, whose bound is the limit. Renew the grant.
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
    /// The first ID would be this far ahead of the wall clock, which is more than [`MAX_LEAD`]. Either the clock is wrong, or the mark
    /// was stored while the clock was wrong.
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
    /// How far IDs may be ahead of the clock, in nanoseconds: 100 ms, the default of the setting `snowflake_pg.max_ahead`. If a burst
    /// uses up the IDs of a tick, the next IDs carry the times of the following ticks, up to this limit.
    pub const MAX_AHEAD: Nanos = 100_000_000;

    /// Creates the issuer of a node, which begins at the mark `begin`, with the clocks of this moment. The issuer issues nothing until a
    /// reservation is published.
    ///
    /// If the wall clock is behind the time of `begin`, the IDs begin at that time, and continue at the speed of the monotonic clock.
    pub fn start(format: &IdFormat, node: Node, begin: Mark, reading: Reading) -> Result<Issuer, StartError> {
        let (limits, stamp) = (Limits::of(format), format.layout.stamp(node)?);
        let first = begin.first_word(&stamp, limits.last_word());
        let ahead = limits.time(first).saturating_sub(reading.wall);
        if ahead > MAX_LEAD {
            return Err(StartError::Ahead(Duration::from_nanos(ahead)));
        }
        let state = State::new();
        // No other caller has this state, so it is loaded. A state that is not loaded issues nothing.
        let _ = state.load(state.generation(), first, GeneratorClock::start(reading, limits.time(first)));
        let pace = Pace { max_ahead: Issuer::MAX_AHEAD, ..Pace::default() };
        let limit = Limit::Marks { planning: AtomicBool::new(false), planned: AtomicU64::new(0) };
        Ok(Issuer { state, limits, stamp, pace, limit })
    }

    /// Creates the issuer of a grant that a member with this identity has, with the clocks of this moment. Create only one issuer for a
    /// grant: a second one would begin at the same ID.
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

    /// Lets each tick begin at a random sequence number. By default, it begins at 0. In an application that issues less
    /// than one ID per tick, all sequence numbers would then be 0, and a hash of the lowest bits would distribute the
    /// IDs unevenly.
    #[must_use]
    pub fn with_random_start(mut self) -> Issuer {
        self.pace.random_start = true;
        self
    }

    /// Issues one ID. `monotonic` reads the monotonic clock, the same one as in the readings that the issuer got, in nanoseconds. It is
    /// called again if another thread was faster.
    #[inline]
    pub fn next_id(&self, monotonic: impl FnMut() -> Nanos) -> Result<i64, Obstacle> {
        self.draw(1, monotonic).map(|run| self.stamp.id(run.first))
    }

    /// Issues up to `count` IDs, and at least one. The IDs are consecutive, ascending, and follow one another without a gap in the
    /// sequence of this node. One call issues at most the IDs of one tick, so the caller calls this function again for the rest.
    pub fn next_ids(&self, count: u64, monotonic: impl FnMut() -> Nanos) -> Result<IdBatch, Obstacle> {
        self.draw(count, monotonic).map(|run| IdBatch { stamp: self.stamp, words: run.first..=run.last() })
    }

    #[inline(always)]
    fn draw(&self, count: u64, mut monotonic: impl FnMut() -> Nanos) -> Result<Run, Obstacle> {
        let clock = |offset: u64| monotonic().wrapping_add(offset);
        self.state.draw(&self.limits, self.pace, Request::UpTo(count), clock).map(|drawn| drawn.run)
    }

    /// Raises the limit to the bound of a renewed grant. Returns false, and does nothing, if the grant is not the one with which this
    /// issuer was created: if a worker ID was lost and claimed again, another holder can have issued the IDs between the two grants.
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

    /// Plans the next reservation at the time `monotonic`. It covers the IDs of the next one to ten seconds. It is
    /// longer if storing a mark takes long, or if the previous reservation was extended late. `needed` is the number in
    /// [`Obstacle::NotReserved`], or 0 if the reservation is extended in advance.
    pub fn reserve(&self, monotonic: Nanos, needed: u64) -> Result<Planned<'_>, NoPlan> {
        let Limit::Marks { planning, planned } = &self.limit else { return Err(NoPlan::Granted) };
        // Acquire: see the release in `drop`.
        if planning.swap(true, Ordering::Acquire) {
            return Err(NoPlan::Busy);
        }
        let now = self.state.clock().time(monotonic);
        let mut reservation = self.state.next_reservation(&self.limits, now, needed);
        // A lower mark in the place of a stored one would let the next process begin below IDs that this one has issued.
        reservation.ceiling = planned.load(Ordering::Relaxed).max(reservation.ceiling);
        planned.store(reservation.ceiling, Ordering::Relaxed);
        Ok(Planned { issuer: self, planning, reservation, begun: monotonic })
    }

    /// Returns true if half of the reservation is used. A caller that extends the reservation at this point stores
    /// about two marks per second while it issues IDs without a pause, and never has to wait for a mark when it needs
    /// an ID.
    pub fn is_due(&self) -> bool {
        matches!(self.limit, Limit::Marks { .. }) && self.state.is_due()
    }

    /// Follows the wall clock by the same rules as a server: small differences slowly, forward steps up to `rules.max_jump` at once, and
    /// backward steps not at all, so that IDs never repeat and keep increasing. `read` reads the clocks. Call this function regularly,
    /// for example once a second. Without it, the IDs follow the monotonic clock only, and drift away from the wall clock.
    ///
    /// `rules.slack` must be at most the limit that [`Issuer::with_max_ahead`] sets. With
    /// [`crate::OnRegression::Hold`], an issuer with marks is held only if the caller does not extend the reservation
    /// while [`Disciplined::behind`] is not `None`. An issuer of a grant continues up to the bound.
    pub fn discipline(&self, read: impl FnOnce() -> Reading, rules: &ClockRules) -> Disciplined {
        let issued = self.state.last().map_or(0, |last| self.limits.time(last));
        self.state.discipline(read, issued, rules)
    }

    /// Accepts the wall clock as correct after a forward step of more than `rules.max_jump`, which [`Issuer::discipline`] does not follow,
    /// and returns by how much the time of the next ID moves. Returns `None` if another thread is comparing the clocks. Retry then.
    pub fn accept_clock(&self, read: impl FnOnce() -> Reading) -> Option<Nanos> {
        self.state.accept_clock(read)
    }

    /// Stops the issuer permanently. A call that began earlier in a different thread can still return an ID.
    pub fn stop(&self) {
        self.state.unload();
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issuer").field("stamp", &self.stamp).field("last", &self.state.last()).finish_non_exhaustive()
    }
}
