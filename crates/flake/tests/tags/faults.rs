//! Rules taken away, one at a time. The code under test has no switch: a fault changes what goes into it or what comes out of it.

use flake::fleet::{Begun, Kept, NoBlock, ReportAnswer, TagBlock, Tags, Uuid, WINDOW};
use flake::segment_refill::Rest;

use crate::world::{TagSetup, TagSlot};

/// The rule that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagFault {
    None,
    /// A new life skips nothing.
    Skip,
    /// A skip takes no notice of how long ago the state is from.
    Since,
    /// A skip takes no notice of lives that were lost.
    Steps,
    /// A skip is one window shorter.
    WindowFewer,
    /// A tag gives any number of numbers in a window.
    Window,
    /// A new window begins whenever the clock is set back.
    WindowClock,
    /// Numbers are taken back whatever the nonce is.
    Nonce,
    /// Numbers are taken back wherever they are.
    Span,
    /// Numbers are taken back before the skip is applied.
    Pending,
    /// The generation is counted for each tag, and starts again.
    Generation,
    /// The generation contains neither the clock nor random bits.
    GenerationClock,
    /// The tag of a period skips nothing.
    BeginSkip,
    /// The tag of a period skips nothing for lives that began one margin before the earliest time at which it is created.
    BeginMargin,
    /// The tag of a period is created at any time.
    BeginEarly,
    /// An administrator's word takes back the skips of all quarantines.
    OpenAll,
    /// A report of a block above what is skipped changes nothing.
    Reach,
    /// A server takes the same answer twice.
    AnyAnswer,
    /// A server takes two blocks with one nonce.
    OneNonce,
    /// A server puts a block beside those of another generation.
    AnyGeneration,
    /// A server goes on in a block that it gives back.
    UsedAfter,
}

pub fn begin_life(fault: TagFault, tags: &mut Tags, times: (i64, i64), lives: u64, steps: u32, within: bool) {
    let (now, newest) = times;
    let newest = if fault == TagFault::Since { now } else { newest };
    let counted = if fault == TagFault::Steps { 1 } else { steps };
    tags.begin_life(now, newest, lives, counted, within);
    if let Some(skip) = tags.skips.get_mut(&tags.life) {
        match fault {
            TagFault::Skip => skip.windows = 0,
            TagFault::WindowFewer => skip.windows -= 2 * i64::from(steps) - 1,
            _ => {}
        }
    }
}

pub fn create(setup: &TagSetup, tags: &mut Tags, now: i64, tag: &str, fresh: Uuid) {
    let (counter, start, sizes) = (tags.generation, setup.start, (setup.step, setup.max_step));
    match setup.fault {
        TagFault::Generation => {
            tags.generation = 0;
            tags.create(0, tag, start, sizes, Uuid(0));
            tags.generation = counter;
        }
        TagFault::GenerationClock => {
            tags.create(0, tag, start, sizes, Uuid(0));
        }
        _ => {
            tags.create(now, tag, start, sizes, fresh);
        }
    }
}

pub fn begin(setup: &TagSetup, tags: &mut Tags, now: i64, tag: &str, begins: i64, fresh: Uuid) -> Begun {
    let at = if setup.fault == TagFault::BeginEarly { now.max(begins) } else { now };
    let begun = tags.begin(at, tag, begins, setup.start, (setup.step, setup.max_step), fresh);
    let Some(segment) = tags.segments.get_mut(tag).filter(|_| matches!(begun, Begun::Created(_))) else {
        return begun;
    };
    match setup.fault {
        TagFault::BeginSkip => segment.life = tags.life,
        TagFault::BeginMargin => {
            let later = tags.skips.iter().find(|(_, skip)| skip.since >= begins - WINDOW);
            segment.life = later.map_or(tags.life, |(life, _)| life - 1);
        }
        _ => {}
    }
    begun
}

pub fn take(
    fault: TagFault,
    tags: &mut Tags,
    now: i64,
    tag: &str,
    nonce: Uuid,
    want: i64,
) -> Result<TagBlock, NoBlock> {
    if let Some(segment) = tags.segments.get_mut(tag) {
        match fault {
            TagFault::Window => segment.used = 0,
            TagFault::WindowClock if now < segment.window => (segment.window, segment.used) = (now, 0),
            _ => {}
        }
    }
    tags.take(now, tag, nonce, want)
}

pub fn nonce(fault: TagFault, slot: &TagSlot, fresh: Uuid) -> Uuid {
    let held = slot.refill.rests(slot.segment.left()).next().filter(|_| fault == TagFault::OneNonce);
    held.map_or(fresh, |rest| rest.nonce)
}

pub fn give_back(fault: TagFault, tags: &mut Tags, tag: &str, rest: &Rest, fresh: Uuid) -> Result<(), Kept> {
    let Rest { generation, mut nonce, mut first, mut last } = *rest;
    let life = tags.segments.get(tag).map(|segment| segment.life);
    if let Some(segment) = tags.segments.get_mut(tag) {
        match fault {
            TagFault::Nonce => nonce = segment.top.nonce,
            TagFault::Span => {
                segment.top.first = segment.top.first.min(first);
                last = segment.next - 1;
                first = first.min(last);
            }
            TagFault::Pending => segment.life = tags.life,
            _ => {}
        }
    }
    let kept = tags.give_back(tag, generation, nonce, (first, last), fresh);
    if let (TagFault::Pending, Some(segment), Some(life)) = (fault, tags.segments.get_mut(tag), life) {
        segment.life = life;
    }
    kept
}

pub fn report(fault: TagFault, tags: &mut Tags, tag: &str, generation: u64, last: i64, fresh: Uuid) -> ReportAnswer {
    let lost: Vec<i64> = tags.skips.values().map(|skip| skip.lost).collect();
    if fault == TagFault::Reach {
        tags.skips.values_mut().for_each(|skip| skip.lost = 0);
    }
    let report = tags.report(tag, generation, last, fresh);
    tags.skips.values_mut().zip(lost).for_each(|(skip, lost)| skip.lost = lost);
    report
}

pub fn open(fault: TagFault, tags: &mut Tags) {
    tags.open();
    if fault == TagFault::OpenAll {
        tags.skips.values_mut().for_each(|skip| skip.windows = 0);
    }
}
