//! Issues the IDs of one node inside one process, without PostgreSQL.

use core::fmt;
use core::time::Duration;

use crate::fleet::{Grant, Point};
use crate::{
    ClockRules, Disciplined, Hybrid, IdFormat, Limits, MAX_LEAD, Mark, Nanos, Node, Obstacle, Pace, PartError, Reading,
    Request, Reservation, Run, Stamp, State,
};

/// A generator for a process that is not a PostgreSQL server, for example an application. The threads of the process share one issuer
/// by reference.
///
/// An issuer issues IDs only below a limit, which the caller raises in one of two ways:
///
/// - *With a registry*: [`Issuer::of_grant`] begins at the start of a [`Grant`], and [`Issuer::raise`] raises the limit to the bound of
///   the grant after each renewal. The registry never grants the same IDs to another holder, so the process stores nothing.
/// - *With a mark that the process stores*: [`Issuer::start`] begins at the stored mark. [`Issuer::reserve`] plans a reservation, the
///   caller stores its mark durably, and [`Issuer::publish`] raises the limit. The caller must make sure that no other process and no
///   server ever has the same node.
///
/// An issuer never waits. If it cannot issue an ID, the [`Obstacle`] says why:
///
/// - [`Obstacle::NotReserved`]: the limit is reached. Raise it, and try again.
/// - [`Obstacle::Throttled`]: the IDs are [`Issuer::MAX_AHEAD`] ahead of the clock. Try again after the duration.
/// - [`Obstacle::NotLoaded`]: the issuer was stopped.
/// - [`Obstacle::Exhausted`], [`Obstacle::BeforeEpoch`]: the layout has no ID for this time.
///
/// Two processes must not have copies of one issuer. After `fork()`, only one of the two processes may use it.
pub struct Issuer {
    state: State,
    limits: Limits,
    stamp: Stamp,
    pace: Pace,
    /// The node and the start of the grant, if the issuer is the one of a grant.
    granted: Option<(Node, Point)>,
}

/// Consecutive IDs of one issuer, in ascending order.
#[derive(Clone, Debug)]
pub struct Ids {
    stamp: Stamp,
    words: core::ops::RangeInclusive<u64>,
}

impl Iterator for Ids {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        self.words.next().map(|word| self.stamp.id(word))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.words.size_hint()
    }
}

/// A reservation that is not published yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The mark that must be stored durably before the reservation is published.
    pub mark: Mark,
    reservation: Reservation,
    begun: Nanos,
}

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
            StartError::Ahead(by) => write!(f, "the first ID would be {by:?} ahead of the clock"),
        }
    }
}

impl core::error::Error for StartError {}

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
        let loaded = state.load(state.generation(), first, Hybrid::start(reading, limits.time(first)));
        debug_assert!(loaded, "no other caller has this state");
        let pace = Pace { max_ahead: Issuer::MAX_AHEAD, random_start: false, overdue: false, waited: 0 };
        Ok(Issuer { state, limits, stamp, pace, granted: None })
    }

    /// Creates the issuer of a grant, with the clocks of this moment. `format` is the format of the [`crate::fleet::Identity`] with which
    /// the grant was claimed.
    pub fn of_grant(format: &IdFormat, grant: &Grant, reading: Reading) -> Result<Issuer, StartError> {
        let mut issuer = Issuer::start(format, grant.node, grant.begin(Mark::NOTHING_ISSUED), reading)?;
        issuer.granted = Some((grant.node, grant.start));
        issuer.raise(grant);
        Ok(issuer)
    }

    /// Sets how far IDs may be ahead of the clock. The default is [`Issuer::MAX_AHEAD`].
    #[must_use]
    pub fn with_max_ahead(mut self, max_ahead: Nanos) -> Issuer {
        self.pace.max_ahead = max_ahead;
        self
    }

    /// Lets each tick begin at a random sequence number. By default, it begins at 0. In an application that issues less than one ID in
    /// a tick, all sequence numbers would then be 0, and a hash of the lowest bits would spread the IDs badly.
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
    pub fn next_ids(&self, count: u64, monotonic: impl FnMut() -> Nanos) -> Result<Ids, Obstacle> {
        self.draw(count, monotonic).map(|run| Ids { stamp: self.stamp, words: run.first..=run.last() })
    }

    #[inline(always)]
    fn draw(&self, count: u64, mut monotonic: impl FnMut() -> Nanos) -> Result<Run, Obstacle> {
        let clock = |offset: u64| monotonic().wrapping_add(offset);
        self.state.draw(&self.limits, self.pace, Request::UpTo(count), clock).map(|drawn| drawn.run)
    }

    /// Raises the limit to the bound of a renewed grant. Returns false, and does nothing, if the grant is not the one with which this
    /// issuer was created: if a worker ID was lost and claimed again, another holder can have issued the IDs between the two grants.
    pub fn raise(&self, grant: &Grant) -> bool {
        let same = self.granted == Some((grant.node, grant.start));
        if same {
            let ceiling = grant.ceiling(&self.stamp, self.limits.last_word());
            self.state.publish(self.state.generation(), Reservation { ceiling, renew: ceiling }, 0);
        }
        same
    }

    /// Plans the next reservation at the time `monotonic`. It covers the IDs of the next one to ten seconds: the slower the marks are
    /// stored, and the fewer IDs are issued, the longer it is. `needed` is the number in [`Obstacle::NotReserved`], or 0.
    pub fn reserve(&self, monotonic: Nanos, needed: u64) -> Planned {
        let now = self.state.clock().time(monotonic);
        let reservation = self.state.next_reservation(&self.limits, now, needed);
        Planned { mark: Mark::above(&self.stamp, reservation.ceiling), reservation, begun: monotonic }
    }

    /// Raises the limit to the end of a reservation whose mark is durable. `monotonic` is the time at which it became durable.
    pub fn publish(&self, planned: &Planned, monotonic: Nanos) {
        let took = monotonic.saturating_sub(planned.begun);
        self.state.publish(self.state.generation(), planned.reservation, took);
    }

    /// Follows the wall clock by the same rules as a server: small differences slowly, forward steps up to `rules.max_jump` at once, and
    /// backward steps not at all, so that IDs never repeat and keep increasing. `read` reads the clocks. Call this function regularly,
    /// for example once a second. Without it, the IDs follow the monotonic clock only, and drift away from the wall clock.
    ///
    /// With [`crate::OnRegression::Hold`], the caller stops extending the reservation while [`Disciplined::behind`] is not `None`.
    pub fn discipline(&self, read: impl FnOnce() -> Reading, rules: &ClockRules) -> Disciplined {
        let issued = self.state.last().map_or(0, |last| self.limits.time(last));
        self.state.discipline(read, issued, rules)
    }

    /// Stops the issuer for ever. A call of another thread that has begun before can still return an ID.
    pub fn stop(&self) {
        self.state.unload();
    }
}
