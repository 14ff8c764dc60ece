//! The registrar: the background worker that requests a worker ID from the registry and renews the grant.
//! [`flake::fleet::Member`] decides what to send and interprets the answers. Sessions read what the registrar publishes
//! ([`crate::fleet::grant`]) and never communicate with the registry.
//!
//! The connection is closed after each heartbeat. As a result, a fleet of a thousand servers needs only a few
//! connections to the registry at a time, the first heartbeat after a failover finds the new primary, and no firewall
//! can silently drop an idle connection. The cost is one login per minute, or one per second with the shortest lease.

use std::time::{Duration, Instant};

use flake::IdFormat;
use flake::fleet::{Effect, Member, MemberStanding, Point, RegistryRefusal, Scale};
use pgrx::bgworkers::{BackgroundWorkerBuilder, BgWorkerStartTime};
use pgrx::{debug1, pg_guard, pg_sys};

use crate::config::{guc, identity};
use crate::faults::{self, Fault};
use crate::fleet::call::{Clocks, Reply};
use crate::fleet::grant::{self, Snapshot, Standing, now};
use crate::fleet::{about, call, heartbeat, record, refusal};
use crate::message::fleet::LeaseLeft;
use crate::message::registry::{RefusalFacts, Trouble};
use crate::message::{self, witness};
use crate::pg::conninfo::ConnectionString;
use crate::pg::libpq::{Connection, QueryFailure, Unconnected};
use crate::pg::{background_worker, latch};
use crate::segments::connections::RequestContext;
use crate::segments::fetch::Fetcher;
use crate::segments::report::Reports;
use crate::server::{clock, log_limit, shmem};

/// The time between an error of the background worker itself and its restart.
const RETRY: Duration = Duration::from_secs(3);

/// The maximum number of requests in one heartbeat. A heartbeat needs the most requests if the worker ID was lost, a
/// new life has begun, and a new claim is sent.
const REQUESTS: usize = 8;

/// How long after its start the registrar does not log failed connections. A registry in the registrar's own cluster
/// does not accept connections until the server has started.
const GRACE: Duration = Duration::from_secs(10);

/// The time that requests about segments may take if no heartbeat is scheduled.
const IDLE: Duration = Duration::from_secs(10);

/// Registers the background worker if the server uses a registry. The postmaster calls this function while it preloads
/// libraries. The background worker does not need a database, so it starts before recovery, and a standby has its
/// worker ID before it is promoted.
pub fn register() {
    if !identity::get().registry_set || !background_worker::in_normal_server() {
        return;
    }
    let worker = BackgroundWorkerBuilder::new("snowflake_pg registrar")
        .set_library("snowflake_pg")
        .set_function("snowflake_pg_keep_grant")
        .enable_shmem_access(None)
        .set_start_time(BgWorkerStartTime::PostmasterStart)
        .set_restart_time(Some(RETRY));
    if !background_worker::register(worker) {
        grant::note_no_registrar();
        message::fleet::no_registrar();
    }
}

/// Runs the background worker. If an error ends it, PostgreSQL restarts it after [`RETRY`].
#[allow(unsafe_code)]
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn snowflake_pg_keep_grant(_argument: pg_sys::Datum) {
    background_worker::heed_signals();
    let mut registrar = Registrar::new();
    registrar.run();
    registrar.part();
    background_worker::end();
}

struct Registrar {
    member: Member,
    format: IdFormat,
    scale: Scale,
    /// The data that sessions see. Every change to it is published.
    snapshot: Snapshot,
    begun: Instant,
    /// The connection string of the last heartbeat.
    string: String,
    /// True if the grant has been renewed. The first grant is short.
    renewed: bool,
    /// The last failure that was logged since the last success.
    logged: Option<Trouble>,
    left: LeaseLeft,
    /// When a warning about the clock was last logged.
    skew_logged: Option<Instant>,
    /// True if the server has logged that the witness file was removed.
    removal_logged: bool,
    segments: Fetcher,
    reports: Reports,
}

impl Registrar {
    fn new() -> Registrar {
        let identity = grant::member_identity();
        let scale = Scale::new(identity.format);
        let snapshot = grant::published().unwrap_or_default();
        let member = match snapshot.standing {
            Standing::Fenced => Member::fenced(identity, snapshot.fenced_seen),
            _ => Member::start(identity, record::load(), scale.point(now())),
        };
        let mut registrar = Registrar {
            member,
            format: identity.format,
            scale,
            snapshot,
            begun: Instant::now(),
            string: String::new(),
            renewed: true,
            logged: None,
            left: LeaseLeft::Enough,
            skew_logged: None,
            removal_logged: false,
            segments: Fetcher::start(),
            reports: Reports::default(),
        };
        registrar.resume();
        registrar
    }

    /// Publishes the contents of the witness. Otherwise, if the witness has become void since the postmaster read it,
    /// the server would show a worker ID whose grant is not renewed.
    fn resume(&mut self) {
        let before = self.snapshot.generation;
        match (self.member.standing(), self.snapshot.standing) {
            (MemberStanding::Holding(grant), standing) => {
                if standing != Standing::Holding || self.snapshot.node != grant.node {
                    self.snapshot.generation += 1;
                    self.snapshot.since = now();
                }
                self.snapshot = std::mem::take(&mut self.snapshot).with(&grant, &self.scale);
                message::fleet::holding(&self.snapshot.name(), &self.snapshot.until(), true);
            }
            (MemberStanding::Seeking, Standing::Holding) => {
                self.snapshot.standing = Standing::Seeking;
                self.snapshot.generation += 1;
            }
            // The previous registrar may have exited before it made the witness void.
            (MemberStanding::Fenced { .. }, _) => self.store(),
            _ => {}
        }
        match self.snapshot.generation == before {
            true => grant::publish(&self.snapshot),
            false => self.publish_change(),
        }
    }

    fn run(&mut self) {
        let mut due = Some(Instant::now());
        while !background_worker::ending() {
            // A new connection string may be meant to resolve a failure, so it is used immediately.
            if background_worker::reload() && guc::registry() != self.string {
                due = due.map(|_| Instant::now());
            }
            match due {
                Some(at) if at <= Instant::now() => due = self.heartbeat().map(|pause| Instant::now() + pause),
                _ => {
                    due = self.hasten(due);
                    let pause = due.map(|at| at.saturating_duration_since(Instant::now()));
                    let again = self.serve_segments(pause.unwrap_or(IDLE));
                    if again != Some(Duration::ZERO) {
                        latch::sleep_until_set(pause.into_iter().chain(again).min());
                    }
                }
            }
        }
    }

    /// Brings the next heartbeat forward if a session is waiting for the first one.
    fn hasten(&self, due: Option<Instant>) -> Option<Instant> {
        if self.member.fleet().is_some() || !self.segments.is_wanted() {
            return due;
        }
        let since = Duration::from_nanos(clock::monotonic().saturating_sub(self.snapshot.attempted));
        due.map(|at| at.min(Instant::now() + heartbeat::SHORTEST.saturating_sub(since)))
    }

    /// Performs one task that a session has requested, if there is any. Returns the time after which this function must
    /// be called again. `time` is the time until the next heartbeat.
    fn serve_segments(&mut self, time: Duration) -> Option<Duration> {
        if self.snapshot.standing == Standing::Fenced {
            return None;
        }
        // No block is fetched before the first heartbeat.
        let fleet = self.member.fleet()?;
        let string = guc::registry();
        self.segments.work(&RequestContext { string: &string, fleet, format: self.format, time })
    }

    /// Returns the numbers of the segments to the registry, because the server is shutting down.
    fn part(&mut self) {
        let (string, format) = (guc::registry(), self.format);
        let context = self.member.fleet().map(|fleet| RequestContext { string: &string, fleet, format, time: IDLE });
        self.segments.part(context.as_ref());
    }

    /// Sends a heartbeat. Returns the time until the next heartbeat, or `None` if the server is fenced and sends no
    /// more heartbeats.
    fn heartbeat(&mut self) -> Option<Duration> {
        self.string = guc::registry();
        if !self.removal_logged && !record::exists() {
            witness::removed_in_fleet();
            self.removal_logged = true;
        }
        self.snapshot.attempted = clock::monotonic();
        let pause = match self.exchange() {
            Ok(()) => {
                self.succeeded();
                heartbeat::after_success()
            }
            // The caller checks the reason for the interruption.
            Err(Trouble::NoAnswer(QueryFailure::Interrupted)) => Duration::ZERO,
            Err(trouble) => {
                self.failed(trouble);
                heartbeat::after_failures(self.snapshot.failures)
            }
        };
        grant::publish(&self.snapshot);
        (self.snapshot.standing != Standing::Fenced).then_some(pause)
    }

    /// Sends requests over a new connection until the protocol needs no more requests.
    fn exchange(&mut self) -> Result<(), Trouble> {
        if self.string.is_empty() {
            return Err(Trouble::NotSet);
        }
        let string = ConnectionString::parse(&self.string).ok_or(Trouble::Malformed)?;
        // If several hosts do not respond, the attempts take a long time, during which the registrar must not appear to
        // have stopped.
        let alive = || {
            self.snapshot.attempted = clock::monotonic();
            grant::publish(&self.snapshot);
        };
        let connection = Connection::open(&string, alive).map_err(Trouble::NoAnswer)?;
        let mut clocks: Option<Clocks> = None;
        faults::forget_nonce(&mut self.member, grant::member_identity());
        for _ in 0..REQUESTS {
            self.member.use_below(record::used());
            let Some(call) = self.member.request(self.scale.point(now()), guc::lease()) else { return Ok(()) };
            // The nonce must be in the witness before the request is sent.
            if !faults::on(Fault::NonceForgotten) {
                self.store();
            }
            let reply = call::send(&connection, &call, &about::about(clocks))?;
            // The shortest request provides the most accurate measurement.
            clocks = clocks.into_iter().chain([reply.clocks]).min_by_key(|clocks| clocks.round_trip);
            self.measured(clocks);
            let effect = self.member.answer(&call, &reply.answer);
            debug1!("snowflake_pg: the registry answered {:?}: {effect:?}", reply.answer);
            match effect {
                Effect::Continue | Effect::Refused(RegistryRefusal::Life) => self.store(),
                Effect::Assigned => {
                    // If the server is giving up a spare worker ID, sessions must stop issuing IDs with it before the
                    // new worker ID is published.
                    if self.snapshot.standing == Standing::Holding && !faults::on(Fault::SpareKept) {
                        self.leave(Standing::Seeking);
                    }
                    self.renewed = false;
                    record::begin();
                    self.store();
                    self.snapshot.generation += 1;
                    self.snapshot.since = now();
                    self.take_grant();
                    message::fleet::holding(&self.snapshot.name(), &self.snapshot.until(), false);
                    return Ok(());
                }
                Effect::Renewed => {
                    self.renewed = true;
                    self.store();
                    self.take_grant();
                    if let Some(fleet) = self.member.fleet() {
                        let context = RequestContext { string: &self.string, fleet, format: self.format, time: IDLE };
                        self.reports.report(&connection, &context);
                    }
                    return Ok(());
                }
                Effect::Lost(loss) => {
                    message::fleet::lost(&self.snapshot.name(), loss, self.snapshot.granted_until.into());
                    self.leave(Standing::Seeking);
                }
                Effect::Fenced => {
                    self.fence(reply);
                    return Ok(());
                }
                Effect::Refused(refusal) => {
                    let witness = record::path().unwrap_or_default();
                    let (facts, format) = (Box::new(RefusalFacts { witness, ..reply.facts }), self.format);
                    return Err(Trouble::Refused { refusal, facts, format });
                }
                Effect::Ignored => break,
            }
        }
        Err(Trouble::Strange { answer: "not an answer to the request".into() })
    }

    /// Stores the record of the grant in the witness.
    fn store(&self) {
        match self.member.record() {
            Some(record) => record::store(record),
            None => record::clear(),
        }
    }

    /// Publishes the grant, which has already been stored.
    fn take_grant(&mut self) {
        if let MemberStanding::Holding(grant) = self.member.standing() {
            self.snapshot = std::mem::take(&mut self.snapshot).with(&grant, &self.scale);
            grant::publish(&self.snapshot);
        }
    }

    /// Makes the witness void, and publishes that the server has no worker ID. Because of this order, a server that is
    /// killed between the two steps does not use the worker ID after a restart.
    fn leave(&mut self, standing: Standing) {
        self.store();
        self.snapshot.standing = standing;
        self.snapshot.generation += 1;
        self.snapshot.bound = Point::ZERO;
        self.publish_change();
    }

    /// Publishes a different worker ID, or that there is none, and then ends the assignment for which the state is
    /// loaded. Because of this order, a session that has read the previous snapshot can no longer load the state for
    /// it.
    fn publish_change(&self) {
        grant::publish(&self.snapshot);
        shmem::state().assignment().revoke(self.snapshot.generation);
        shmem::extended().wake_all();
    }

    fn fence(&mut self, reply: Reply) {
        if let MemberStanding::Fenced { seen } = self.member.standing() {
            self.snapshot.fenced_seen = seen;
            self.snapshot.fenced_by = reply.holder;
            self.leave(Standing::Fenced);
            self.segments.discard();
            if let Some(error) = refusal::seen_in(identity::get(), &self.snapshot) {
                error.report().warn("");
            }
        }
    }

    fn succeeded(&mut self) {
        self.segments.retry_now();
        let failures = std::mem::take(&mut self.snapshot.failures);
        self.snapshot.cause.clear();
        self.snapshot.detail.clear();
        self.snapshot.hint.clear();
        self.snapshot.last_heartbeat = now();
        self.watch_grant();
        if self.logged.take().is_some() {
            message::fleet::recovered(failures, &self.snapshot.until());
        }
    }

    fn failed(&mut self, trouble: Trouble) {
        if self.member.fleet().is_none() && self.begun.elapsed() > GRACE {
            self.segments.fail_all(&trouble);
        }
        self.snapshot.failures += 1;
        let report = trouble.report();
        self.snapshot.cause = report.message;
        self.snapshot.detail = report.detail;
        self.snapshot.hint = report.hint;
        let unreachable =
            matches!(trouble, Trouble::NoAnswer(QueryFailure::NotConnected { cause: Unconnected::Unreachable, .. }));
        let starting = unreachable && self.begun.elapsed() < GRACE;
        if !starting && !self.logged.as_ref().is_some_and(|logged| logged.is_like(&trouble)) {
            message::fleet::failed(&trouble, &self.snapshot.until());
            self.logged = Some(trouble);
        }
        self.watch_grant();
    }

    /// Warns if the lease is running out, regardless of whether heartbeats fail.
    fn watch_grant(&mut self) {
        if self.snapshot.standing != Standing::Holding || !self.renewed {
            return;
        }
        let left = self.snapshot.left(now());
        if left > self.left {
            let Snapshot { offset_us, .. } = self.snapshot;
            message::fleet::running_out(left, &self.snapshot.until(), &self.snapshot.outage(), now(), offset_us);
        }
        self.left = left;
    }

    fn measured(&mut self, clocks: Option<Clocks>) {
        let Some(clocks) = clocks else { return };
        self.snapshot.offset_us = clocks.offset;
        self.snapshot.round_trip_us = clocks.round_trip;
        let Some(limit) = guc::max_clock_skew() else { return };
        // This is the part of the offset that cannot be a measurement error.
        let certain = clocks.offset.saturating_abs().saturating_sub(clocks.round_trip / 2);
        if i128::from(certain) > limit.as_micros() as i128
            && self.skew_logged.is_none_or(|logged| logged.elapsed() >= log_limit::SKEW_EVERY)
        {
            message::fleet::skewed(now(), clocks.offset, clocks.round_trip, limit);
            self.skew_logged = Some(Instant::now());
        }
    }
}
