//! This server's segments in shared memory: one slot for each tag from which sessions draw, and the registrar's reports
//! about the registry.
//!
//! # Locking contract
//!
//! A lightweight lock protects the tag, the phase and the version of a slot. They are read with the lock in shared mode
//! and changed with the lock in exclusive mode. No process waits, calls a function that can raise an error, or
//! communicates with the registry while it holds the lock. The numbers need no lock ([`flake::Segment`]): a session
//! that knows the slot and its version draws without one. All other items in a slot are single atomics, most of which
//! only the registrar writes.
//!
//! A slot goes through these phases:
//!
//! - `Free`: The slot has no tag.
//! - `Asked`: A session has assigned a tag to the slot. The registrar will fetch the first block or look the tag up.
//! - `Open`: Sessions draw numbers. The registrar fetches a block whenever one is needed.
//! - `Refused`: The registry does not issue blocks of the tag. Another session can request the tag again or assign a
//!   different tag to the slot.
//! - `Leaving`: Sessions can no longer draw numbers. The registrar returns the remaining numbers to the registry and
//!   then frees the slot.
//!
//! The last [`ENTRANCE`] slots are the entrance. They are assigned to tags whose existence is unknown to this server.
//! When the registrar has found such a tag, it frees the slot, and the session takes one of the other slots. As a
//! result, requests for tags that do not exist never cause a segment to be closed. The roles that are logged in share
//! the entrance. If it is full, a role takes a slot from the role that has the most slots. The slot can then be
//! assigned to a different tag while the registrar is looking up the previous one, so the registrar specifies the
//! version with each answer.
#![allow(unsafe_code)]

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use flake::segment_refill::Reason;
use flake::{Block, Nanos, Number, Segment, Undrawn};
use pgrx::{PGRXSharedMemory, PgAtomic, PgLwLock, pg_shmem_init, prelude::*};

use crate::config::guc;
use crate::config::identity::Identity;
use crate::faults::{self, Fault};
use crate::pg::backend_slots::{SHARED_ALIGNMENT, SharedArray};
use crate::pg::background_worker;
use crate::pg::condition_variable::Condition;
use crate::pg::latch::SharedLatch;
use crate::segments::facts::{Failing, OfPeriod, PeriodTag, Refusal, SharedTag, TagFacts};
use crate::segments::known;
use crate::server::clock;

/// A segment from which no session has drawn for this long can be closed for any role, even if the other role has fewer
/// slots.
const IDLE: Nanos = 60_000_000_000;

/// How long a slot with an open segment keeps its tag for the session that requested it, even if no number has been
/// drawn.
const COURTESY: Nanos = 1_000_000_000;

/// The number of slots in the entrance.
const ENTRANCE: usize = 32;

/// The phase of a slot. The beginning of this file describes the phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    Free,
    Asked,
    Open,
    Refused,
    Leaving,
}

/// A slot for one tag. The default value has no tag, because [`Phase::Free`] is 0.
#[derive(Default)]
pub struct Slot {
    pub segment: Segment,
    /// The last [`SharedWaits::era`] in which a session has drawn a number. If the slot is in the entrance, the time at
    /// which it was assigned to its tag.
    used: AtomicU64,
    wanted: AtomicBool,
    phase: AtomicU32,
    version: AtomicU64,
    tag: SharedTag,
    period: OfPeriod,
    /// The login role of the session that assigned the tag to the slot.
    role: AtomicU32,
    /// The condition on which sessions wait for the registry's answer.
    pub changed: Condition,
    /// The number of requests for this tag that were not answered with a block.
    unanswered: AtomicU64,
    pub refusal: Refusal,
    opened: AtomicU64,
    pub facts: TagFacts,
}

/// The data that all slots share.
struct SharedWaits {
    registrar: SharedLatch,
    /// The number of times that a slot has been assigned to a tag. Slots that were last used in the same era are
    /// considered equally idle.
    era: AtomicU64,
    /// The condition on which sessions wait for a free slot.
    freed: Condition,
    /// The era that began at `sampled_at`.
    sampled: AtomicU64,
    sampled_at: AtomicU64,
    /// An era that began at least [`IDLE`] ago.
    idle_before: AtomicU64,
}

const _: () = assert!(align_of::<Slot>() <= SHARED_ALIGNMENT);

// SAFETY: the type consists of atomics, a latch that is in shared memory, and a condition variable that protects
// itself.
unsafe impl PGRXSharedMemory for SharedWaits {}

// SAFETY: the names are the extension's own, and each is used once. A slot consists of atomics and a condition variable
// that protects itself, and contains no pointers.
static SLOTS: SharedArray<Slot> =
    unsafe { SharedArray::new(c"snowflake_pg segments", || guc::max_segments() + ENTRANCE) };
// SAFETY: as above.
static SHARED: PgAtomic<SharedWaits> = unsafe { PgAtomic::new(c"snowflake_pg segment waits") };
// SAFETY: as above.
static LOCK: PgLwLock<Failing> = unsafe { PgLwLock::new(c"SnowflakeSegments") };

/// Requests shared memory if the server uses a registry. The postmaster calls this function while it preloads
/// libraries.
#[allow(clippy::undocumented_unsafe_blocks)] // The unsafe blocks are in the macro.
pub fn request(identity: &Identity) {
    if identity.registry_set && background_worker::in_normal_server() {
        pg_shmem_init!(SLOTS = ());
        known::request();
        pg_shmem_init!(
            SHARED = SharedWaits {
                registrar: SharedLatch::default(),
                era: AtomicU64::new(1),
                freed: Condition::default(),
                sampled: AtomicU64::new(0),
                sampled_at: AtomicU64::new(0),
                idle_before: AtomicU64::new(0)
            }
        );
        pg_shmem_init!(LOCK = Failing::default());
    }
}

/// Returns all slots. The slice is empty if the server does not use a registry.
pub fn all() -> &'static [Slot] {
    SLOTS.all()
}

/// Returns the slots of segments, and the slots of the entrance.
pub fn parts() -> (&'static [Slot], &'static [Slot]) {
    all().split_at(all().len().saturating_sub(ENTRANCE))
}

/// Makes this process, the registrar, the one that sessions wake.
pub fn own_latch() {
    SHARED.get().registrar.own();
}

/// Returns the condition on which sessions wait for a free slot.
pub fn freed() -> &'static Condition {
    &SHARED.get().freed
}

/// Returns the current problem with the registry, or `None` if there is none.
pub fn failing() -> Option<Failing> {
    let failing = *LOCK.share();
    (failing.failures > 0).then_some(failing)
}

/// Stores the current problem with the registry, or the fact that there is none. Only the registrar calls this
/// function.
pub fn set_failing(failing: &Failing) {
    *LOCK.exclusive() = *failing;
}

/// The result of [`find_or_take`].
pub enum FoundSlot {
    /// A slot that has the tag, and the slot's version.
    Slot(&'static Slot, u64),
    /// All slots are in use. One of them will become free.
    Full,
    /// All slots of the entrance are in use.
    Crowded,
}

impl FoundSlot {
    /// Returns true if the session may create the tag but the slot does not contain the tag's period.
    fn lacks(&self, period: Option<&PeriodTag>) -> bool {
        matches!(self, FoundSlot::Slot(slot, _) if period.is_some() && slot.period.get().is_none())
    }
}

/// Finds the slot of a tag. If there is none, assigns a free slot to the tag, or asks the registrar to free a slot.
/// `period` is specified for a tag of a series. `role` is the login role of this session.
pub fn find_or_take(tag: &str, period: Option<&PeriodTag>, role: u32) -> FoundSlot {
    if let Some(found) = {
        let _lock = LOCK.share();
        find(tag)
    } && !found.lacks(period)
    {
        return found;
    }
    let failing = LOCK.exclusive();
    if let Some(found) = find(tag) {
        if let FoundSlot::Slot(slot, _) = found
            && found.lacks(period)
        {
            slot.period.set(period);
        }
        return found;
    }
    let is_known = known::contains(tag) || faults::on(Fault::NewTagsInTurn);
    let (segments, entrance) = parts();
    let slots = if is_known { segments } else { entrance };
    let in_phase = |phase| slots.iter().filter(move |slot| slot.phase() == phase && slot.is_open_to(role));
    let refused = || in_phase(Phase::Refused).min_by_key(|slot| slot.used());
    let shared = || if is_known { None } else { share(entrance, role) };
    let Some(slot) = in_phase(Phase::Free).next().or_else(refused).or_else(shared) else {
        // While the registry cannot be reached, there would be no numbers for the slot.
        let evicts = is_known && failing.failures == 0;
        drop(failing);
        if evicts {
            evict(role);
        }
        return if is_known { FoundSlot::Full } else { FoundSlot::Crowded };
    };
    match is_known {
        true => _ = SHARED.get().era.fetch_add(1, Ordering::Relaxed),
        false => slot.used.store(clock::monotonic(), Ordering::Relaxed),
    }
    slot.tag.set(tag);
    slot.period.set(period);
    slot.role.store(role, Ordering::Relaxed);
    slot.facts.reset();
    slot.refusal.clear();
    slot.set_phase(Phase::Asked);
    let version = slot.next_version();
    drop(failing);
    // This makes the sessions that are waiting for the previous tag notice that they no longer have a slot.
    slot.changed.wake_all();
    FoundSlot::Slot(slot, version)
}

/// Returns the slot that a role takes from the role with the most slots, unless the latter would then have fewer slots.
/// Among these slots, the one that was taken last is returned.
fn share(entrance: &'static [Slot], role: u32) -> Option<&'static Slot> {
    let count = |role| entrance.iter().filter(|slot| slot.role() == role).count();
    let takeable = entrance.iter().filter(|slot| slot.is_open_to(role));
    let last = takeable.max_by_key(|slot| (count(slot.role()), slot.used()))?;
    (count(role) + 1 < count(last.role())).then_some(last)
}

fn find(tag: &str) -> Option<FoundSlot> {
    let there = |slot: &&Slot| !matches!(slot.phase(), Phase::Free) && slot.tag.is(tag);
    let slot = all().iter().find(there)?;
    Some(match slot.phase() {
        Phase::Leaving => FoundSlot::Full,
        _ => FoundSlot::Slot(slot, slot.version()),
    })
}

/// Closes a slot for a role, so that the registrar returns its numbers and frees it. Does nothing if a slot is free
/// or being freed.
///
/// The least recently used slot is closed if it has been idle. Otherwise, the role with the most slots gives up its
/// least recently used one, or the role itself if no other role has more. As a result, a role that uses many tags does
/// not close the segments from which other roles draw.
fn evict(role: u32) {
    let segments = parts().0;
    // Memory is allocated before the lock is taken.
    let mut counts: HashMap<u32, usize> = HashMap::new();
    segments.iter().for_each(|slot| *counts.entry(slot.role()).or_default() += 1);
    let count = |role| counts.get(&role).copied().unwrap_or_default();
    let _lock = LOCK.exclusive();
    // Another session or the registrar may have freed a slot before this session got the lock.
    if segments.iter().any(|slot| matches!(slot.phase(), Phase::Leaving | Phase::Free)) {
        return;
    }
    let now = clock::monotonic();
    let (idle_before, own) = (SHARED.get().idle_before(now), count(role));
    let open = || segments.iter().filter(|slot| slot.phase() == Phase::Open && slot.may_leave(now));
    let idle = open().min_by_key(|slot| slot.used()).filter(|slot| slot.used() < idle_before);
    let shared = || {
        let given_up = open().filter(|slot| slot.role() == role || count(slot.role()) > own);
        given_up.min_by_key(|slot| (Reverse(count(slot.role())), slot.used()))
    };
    if let Some(slot) = idle.or_else(shared) {
        slot.segment.close();
        slot.set_phase(Phase::Leaving);
        slot.want();
    }
}

impl SharedWaits {
    /// Returns an era that began at least [`IDLE`] ago. The caller holds the lock in exclusive mode.
    fn idle_before(&self, now: Nanos) -> u64 {
        let idle = if faults::on(Fault::ShortPatience) { 1_000_000_000 } else { IDLE };
        if faults::on(Fault::SlotsInTurn) {
            return u64::MAX;
        }
        if now.saturating_sub(self.sampled_at.load(Ordering::Relaxed)) >= idle {
            self.idle_before.store(self.sampled.load(Ordering::Relaxed), Ordering::Relaxed);
            self.sampled.store(self.era.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            self.sampled_at.store(now, Ordering::Relaxed);
        }
        self.idle_before.load(Ordering::Relaxed)
    }
}

impl Slot {
    /// Draws a number. Requests the next block from the registrar if it is time to do so.
    #[inline(always)]
    pub fn draw(&self, version: u64) -> Result<i64, Undrawn> {
        let Number { number, fetch } = self.segment.draw(version)?;
        let era = SHARED.get().era.load(Ordering::Relaxed);
        if self.used.load(Ordering::Relaxed) != era {
            self.used.store(era, Ordering::Relaxed);
        }
        if fetch {
            self.want();
        }
        Ok(number)
    }

    /// Asks the registrar to do what this slot needs.
    #[cold]
    pub fn want(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        SHARED.get().registrar.set();
    }

    /// Returns true if a session has made a request and clears the request.
    pub fn take_wish(&self) -> bool {
        self.wanted.swap(false, Ordering::SeqCst)
    }

    /// Returns true if a session has made a request.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }

    /// Restores a session's request, because it was not fulfilled.
    pub fn still_wanted(&self) {
        self.wanted.store(true, Ordering::SeqCst);
    }

    /// Returns true if the slot is in the entrance.
    pub fn is_entrance(&self) -> bool {
        parts().1.as_ptr_range().contains(&std::ptr::from_ref(self))
    }

    /// Returns the phase. It can change at any time unless the caller holds the lock.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            1 => Phase::Asked,
            2 => Phase::Open,
            3 => Phase::Refused,
            4 => Phase::Leaving,
            _ => Phase::Free,
        }
    }

    fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u32, Ordering::Release);
    }

    /// Returns the version, which changes whenever the slot is assigned to a different tag or to a different generation
    /// of its tag.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn next_version(&self) -> u64 {
        self.version.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn role(&self) -> u32 {
        self.role.load(Ordering::Relaxed)
    }

    /// Returns true if a role can take this slot.
    fn is_open_to(&self, role: u32) -> bool {
        !faults::on(Fault::EntranceOfFirst) || !self.is_entrance() || [0, role].contains(&self.role())
    }

    fn may_leave(&self, now: Nanos) -> bool {
        self.drawn() > 0 || now.saturating_sub(self.opened.load(Ordering::Relaxed)) > COURTESY
    }

    /// Returns how many numbers sessions have drawn since the slot was assigned to its tag.
    pub fn drawn(&self) -> u64 {
        self.facts.given.load(Ordering::Relaxed).saturating_sub(self.segment.left().count())
    }

    /// Counts a session that waits for a block.
    pub fn note_wait(&self) {
        self.facts.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many requests were not answered with a block.
    pub fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::SeqCst)
    }

    /// Notifies the sessions that wait for this tag that a request was not answered with a block.
    pub fn note_unanswered(&self) {
        self.unanswered.fetch_add(1, Ordering::SeqCst);
        self.changed.wake_all();
    }

    /// Returns the tag, the phase, the version, and the period if the tag belongs to a series.
    pub fn read(&self) -> (String, Phase, u64, Option<PeriodTag>) {
        let _lock = LOCK.share();
        (self.tag.get(), self.phase(), self.version(), self.period.get())
    }

    /// Adds a block to the segment, or opens the segment with it. If `replace` is true, the segment is closed first,
    /// because the block belongs to a different generation of the tag. Returns the version, or `None` if the slot has a
    /// different version or no room. Only the registrar calls this function and the following ones.
    pub fn give(&self, version: u64, block: Block, replace: bool) -> Option<u64> {
        let given = {
            let _lock = LOCK.exclusive();
            if self.version() != version {
                return None;
            }
            match self.phase() {
                Phase::Open if replace => {
                    self.segment.close();
                    self.facts.reset();
                    let version = self.next_version();
                    self.segment.open(version, block);
                    version
                }
                Phase::Open if self.segment.put(block) => version,
                Phase::Asked | Phase::Refused => {
                    self.segment.open(version, block);
                    self.set_phase(Phase::Open);
                    self.opened.store(clock::monotonic(), Ordering::Relaxed);
                    version
                }
                _ => return None,
            }
        };
        self.used.fetch_max(SHARED.get().era.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(given)
    }

    /// Closes the segment without returning any numbers to the registry, because the registry does not issue blocks of
    /// the tag for the given reason. A session can request the tag again after `until`, which is in microseconds since
    /// the Unix epoch.
    pub fn refuse(&self, version: u64, reason: Reason, until: i64) {
        let _lock = LOCK.exclusive();
        if self.version() == version {
            self.refusal.set(reason, until);
            if matches!(self.phase(), Phase::Open | Phase::Asked) {
                self.segment.close();
                self.set_phase(Phase::Refused);
            }
        }
    }

    /// Requests a refused tag from the registry again.
    pub fn ask_again(&self, version: u64) {
        let _lock = LOCK.exclusive();
        if self.version() == version && self.phase() == Phase::Refused {
            self.refusal.clear();
            self.set_phase(Phase::Asked);
        }
    }

    /// Closes the segment, so that the remaining numbers can be returned to the registry.
    pub fn leave(&self) {
        let _lock = LOCK.exclusive();
        self.segment.close();
        if self.phase() == Phase::Open {
            self.set_phase(Phase::Leaving);
        }
    }

    /// Frees the slot if it still has this version.
    pub fn free(&self, version: u64) {
        {
            let _lock = LOCK.exclusive();
            if self.version() != version {
                return;
            }
            self.segment.close();
            self.set_phase(Phase::Free);
        }
        self.changed.wake_all();
        freed().wake_all();
    }
}
