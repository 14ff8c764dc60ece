//! Determines when the server logs its identity, clock events and the end of its layout. The module [`crate::message`]
//! contains the texts.

use std::sync::atomic::Ordering;

use flake::{ClockEvent, Disciplined, MAX_LEAD, Mark, Nanos};

use crate::config::guc;
use crate::config::identity::{self, Identity, YEAR_DAYS};
use crate::message::clock::Occasion;
use crate::message::start::{self, PrimaryStart};
use crate::message::{self, fleet, layout};
use crate::pg::startup::Startup;
use crate::pg::{recovery, server, timestamp};
use crate::server::{log_limit, shmem};

/// How many years before the end of the layout the warnings start. They start so early because moving to a different
/// layout requires planning.
const NOTICE_YEARS: f64 = 2.0;

/// Logs the identity of a server that has started or has been promoted. Also logs a warning if the mark may not cover
/// all existing IDs.
pub fn server(identity: &Identity, mark: Mark, startup: Startup, now: Nanos) {
    let name = match identity.worker_set {
        true => identity.name(identity.node),
        false => start::UNASSIGNED.into(),
    };
    let issuer = identity.issuer(mark);
    // `alone` is true if this server issued the last ID, was restarted as a standby, and was promoted, as happens with
    // Patroni after a crash.
    let copied = startup == Startup::Standby { copied: true };
    let alone = issuer == Some(identity.node) && !copied && !recovery::followed();
    let begun = match (startup, issuer) {
        // The worker ID that the registry assigns does not depend on which server issued the last ID.
        (Startup::Standby { .. }, _) if identity.registry_set => PrimaryStart::Promoted,
        (Startup::Standby { .. }, Some(issuer)) if issuer != identity.node => {
            PrimaryStart::PromotedAfter(identity.name(issuer))
        }
        (Startup::Standby { .. }, Some(_)) if alone => PrimaryStart::Continuing,
        (Startup::Standby { .. }, Some(_)) => PrimaryStart::TakingOver,
        (Startup::Standby { .. }, None) => PrimaryStart::Promoted,
        (Startup::Primary | Startup::Restored, _) => PrimaryStart::Started,
    };
    let first = identity.first_word(mark);
    let at = identity.instant(first);
    start::identity(&begun, &name, &identity.format, (mark != Mark::NOTHING_ISSUED).then(|| (mark.value(), at)));
    let lead = identity.limits.time(first).saturating_sub(now);
    match startup {
        _ if identity.registry_set => {}
        Startup::Standby { .. } if lead > guc::FARTHEST_AHEAD && !alone => start::former_primary(&name, lead),
        Startup::Restored if mark > Mark::NOTHING_ISSUED => start::restored(at, timestamp::of(now)),
        _ => {}
    }
}

/// Warns, in the postmaster, that a registry was added to the configuration of a server that was started without one.
pub fn registry_given() {
    if server::is_postmaster() && identity::find().is_some_and(|identity| !identity.registry_set) {
        fleet::registry_given();
    }
}

/// Logs a warning if the layout ends soon.
pub fn end_of_layout(identity: &Identity, now: Nanos) {
    let years = identity.years_left(now);
    if years < NOTICE_YEARS && shmem::limiters().end.pass(log_limit::END_EVERY, 0).is_some() {
        layout::ends_soon(&identity.format, years, years * YEAR_DAYS);
    }
}

/// Logs one clock event.
pub fn clock(disciplined: &Disciplined) {
    let Some(event) = disciplined.event else { return };
    let (state, limiters) = (shmem::state(), shmem::limiters());
    let far = disciplined.lead > MAX_LEAD;
    let (limiter, by) = match event {
        // Large backward steps have their own limiter, so that a smaller event does not suppress a larger one.
        ClockEvent::Regression(by) if far => (&limiters.far, by),
        ClockEvent::Regression(by) => (&limiters.regression, by),
        ClockEvent::Jump(by) => (&limiters.jump, by),
        ClockEvent::Step(by) => (&limiters.step, by),
        ClockEvent::Returned => (&limiters.returned, 0),
        ClockEvent::Restored(by) => (&limiters.restored, by),
    };
    let Some(withheld) = limiter.pass(log_limit::CLOCK_EVERY, by) else { return };
    let incidents = match event {
        ClockEvent::Regression(_) => state.clock_regressions(),
        _ => state.clock_jumps(),
    };
    let since = timestamp::of(shmem::counting_since().load(Ordering::Relaxed));
    let on_regression = guc::clock_rules().on_regression;
    message::clock::event(event, &Occasion { count: incidents.count, since, far, on_regression, withheld });
}
