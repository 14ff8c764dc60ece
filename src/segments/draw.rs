//! The path from an SQL call to a number from a segment. Each session remembers the slots that it has used, and waits
//! if no number is available.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use flake::segment_refill::Reason;
use flake::{Nanos, Undrawn};
use pgrx::check_for_interrupts;

use crate::config::identity;
use crate::faults::{self, Fault};
use crate::fleet::grant::{self, Standing};
use crate::fleet::refusal;
use crate::message::segment::SegmentProblem;
use crate::pg::text_arg::Text;
use crate::pg::wait_event::WaitEvent;
use crate::pg::{background_worker, recovery, relation, role};
use crate::segments::facts::{Asked, MAX_ENCODED, MAX_TAG};
use crate::segments::slots::{self as slots, FoundSlot, Phase, Slot};
use crate::server::{clock, wait};

/// How long a session sleeps before it repeats its request to the registrar.
const SLEEP: Duration = Duration::from_secs(1);

/// How long a session waits for the registrar.
const PATIENCE: Nanos = 60_000_000_000;

/// How long a session waits for its tag to be looked up. The wait is longer if the sessions of the same role request
/// many tags that do not exist.
const LOOK_UP_PATIENCE: Nanos = 300_000_000_000;

/// The number of tags that a session remembers. If a session uses more tags, it has to look them up again.
const REMEMBERED: usize = 1_000;

/// A slot and its version.
type SlotVersion = (&'static Slot, u64);

/// The slots that this session remembers, indexed by the tag in the database's encoding. The last slot is found without
/// a search.
struct Known {
    last: Option<(Box<[u8]>, SlotVersion)>,
    all: BTreeMap<Box<[u8]>, SlotVersion>,
}

thread_local! {
    static KNOWN: RefCell<Known> = const { RefCell::new(Known { last: None, all: BTreeMap::new() }) };
}

impl Known {
    #[inline(always)]
    fn find(&mut self, tag: &[u8]) -> Option<SlotVersion> {
        if let Some((last, place)) = &self.last
            && **last == *tag
        {
            return Some(*place);
        }
        let place = *self.all.get(tag)?;
        self.last = Some((tag.into(), place));
        Some(place)
    }

    fn note(&mut self, tag: &[u8], place: SlotVersion) {
        if self.all.len() >= REMEMBERED {
            self.all.clear();
        }
        self.all.insert(tag.into(), place);
        self.last = Some((tag.into(), place));
    }
}

/// Draws a number. The session waits only if this server has no numbers left. If the registry has no such tag, and
/// `period` returns a period that the session may create, the tag is created.
#[inline]
pub fn draw(tag: Text<'_>, period: impl FnOnce() -> Option<Asked>) -> i64 {
    let known = KNOWN.with_borrow_mut(|known| known.find(tag.0));
    match known {
        Some((slot, version)) if let Ok(number) = slot.draw(version) => {
            faults::drawn_privately(&slot.segment).unwrap_or(number)
        }
        _ => find(tag, period().as_ref()),
    }
}

/// Finds a tag's slot and draws a number from it.
#[cold]
fn find(tag: Text<'_>, period: Option<&Asked>) -> i64 {
    let raise = |problem: SegmentProblem| -> ! { problem.report(&tag.shown()).raise() };
    // Raises an error if the library is not preloaded.
    let own = identity::get();
    if !own.registry_set {
        raise(SegmentProblem::NoRegistry);
    }
    if !background_worker::in_normal_server() {
        raise(SegmentProblem::NoRegistrar);
    }
    if recovery::in_recovery() {
        raise(SegmentProblem::Standby);
    }
    if tag.0.len() > MAX_ENCODED {
        raise(SegmentProblem::Length { bytes: tag.0.len() });
    }
    let name = relation::utf8(tag.0);
    if name.is_empty() || name.len() > MAX_TAG {
        raise(SegmentProblem::Length { bytes: name.len() });
    }
    let begun = clock::monotonic();
    let role = role::of_session();
    loop {
        check_for_interrupts!();
        if grant::published().is_some_and(|snapshot| snapshot.standing == Standing::Fenced)
            && let Some(error) = refusal::current(own)
        {
            error.raise();
        }
        let drawn = match slots::find_or_take(&name, Asked::created(period), role) {
            FoundSlot::Slot(slot, version) => {
                KNOWN.with_borrow_mut(|known| known.note(tag.0, (slot, version)));
                await_number(slot, version, begun, period)
            }
            FoundSlot::Full => await_slot(begun, false, Duration::from_millis(20)),
            // The registrar looks up only a few tags per second.
            FoundSlot::Crowded => await_slot(begun, true, Duration::from_millis(100)),
        };
        match drawn {
            Ok(Some(number)) => return number,
            Ok(None) => {}
            Err(problem) => raise(problem),
        }
    }
}

/// Waits until a slot may be free.
fn await_slot(begun: Nanos, looked_up: bool, most: Duration) -> Result<Option<i64>, SegmentProblem> {
    let waiting = slots::freed().join();
    unreachable()?;
    late(begun, looked_up)?;
    // If a slot was freed before this session joined, the session finds it after the timeout.
    wait::until_woken(&waiting, WaitEvent::Segment, most);
    Ok(None)
}

/// Draws from a slot as soon as it has a number. Returns `None` if the slot has been assigned to a different tag.
fn await_number(
    slot: &Slot,
    version: u64,
    begun: Nanos,
    period: Option<&Asked>,
) -> Result<Option<i64>, SegmentProblem> {
    let mut unanswered = slot.unanswered();
    let mut creates = period.is_some_and(|period| period.creates);
    let waiting = slot.changed.join();
    let mut waited = false;
    loop {
        match slot.draw(version) {
            Ok(number) => return Ok(Some(number)),
            Err(Undrawn::Dry) => {}
            Err(Undrawn::Closed) => match slot.phase() {
                _ if slot.version() != version => return Ok(None),
                Phase::Asked | Phase::Refused => {}
                Phase::Free | Phase::Open | Phase::Leaving => return Ok(None),
            },
        }
        if let Some((reason, until)) = slot.refusal.get() {
            // The refusal can belong to a different tag, to which the slot has been assigned.
            if slot.version() != version {
                return Ok(None);
            }
            // The refusal can be the answer to a session that was not allowed to create the tag.
            if reason == Reason::Unknown && std::mem::take(&mut creates) {
                unanswered = slot.unanswered();
            }
            if slot.unanswered() != unanswered || until > grant::now() {
                return Err(refused(reason, until, period));
            }
            slot.ask_again(version);
        }
        slot.want();
        unreachable()?;
        late(begun, slot.is_entrance())?;
        if !waited {
            slot.note_wait();
            waited = true;
        }
        wait::until_woken(&waiting, WaitEvent::Segment, SLEEP);
    }
}

/// Returns the error for a refusal.
fn refused(reason: Reason, until: i64, asked: Option<&Asked>) -> SegmentProblem {
    match reason {
        Reason::Unknown => match asked.filter(|asked| !asked.creates) {
            Some(asked) => SegmentProblem::LongAgo { begins: asked.period.begins.into() },
            None => SegmentProblem::Unknown,
        },
        Reason::Wait => SegmentProblem::Wait { until: until.into() },
        Reason::Exhausted => SegmentProblem::Exhausted,
        Reason::NotBegun => {
            let begins = |asked: &Asked| SegmentProblem::NotBegun { begins: asked.period.begins.into() };
            asked.map_or(SegmentProblem::Unknown, begins)
        }
        Reason::Locked => SegmentProblem::Locked,
        Reason::NotCreated => SegmentProblem::NotCreated,
        Reason::Encoding => SegmentProblem::Encoding,
    }
}

/// Returns an error if the registry cannot be reached. In this case, the registrar keeps retrying.
fn unreachable() -> Result<(), SegmentProblem> {
    let Some(failing) = slots::failing() else { return Ok(()) };
    let (cause, hint) = (failing.cause(), failing.hint());
    Err(SegmentProblem::Unreachable { since: failing.since.into(), failures: failing.failures, cause, hint })
}

/// Returns an error if the registrar is not running, or if this session has waited for it for too long. `looked_up` is
/// true if the session waits for its tag to be looked up.
fn late(begun: Nanos, looked_up: bool) -> Result<(), SegmentProblem> {
    let waited = clock::monotonic().saturating_sub(begun);
    let patience = match looked_up {
        true if faults::on(Fault::ShortPatience) => 2_000_000_000,
        true => LOOK_UP_PATIENCE,
        false => PATIENCE,
    };
    if grant::published().is_none_or(|snapshot| snapshot.overdue()) || waited > patience && !looked_up {
        return Err(SegmentProblem::NoRegistrar);
    }
    if waited > patience { Err(SegmentProblem::Crowded) } else { Ok(()) }
}
