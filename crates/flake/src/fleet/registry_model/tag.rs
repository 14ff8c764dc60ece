//! Segments, which assign blocks of a tag's numbers to servers.

use std::collections::BTreeMap;

use crate::fleet::{BLOCKS_IN_WINDOW, Uuid, WINDOW, lost_windows};

/// The highest number of a tag. The next number must still fit into a `bigint`.
pub const LAST_NUMBER: i64 = i64::MAX - 1;

/// The number of lives that are assumed to be lost if the actual number cannot be determined.
pub const UNKNOWN_STEPS: u32 = 8;

/// The bits of a nonce that are part of a generation.
const RANDOM_BITS: u32 = 0xf_ffff;

/// A block of numbers of one tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagBlock {
    /// Distinguishes the tag from earlier tags with the same name.
    pub generation: u64,
    /// The nonce in the request for the block.
    pub nonce: Uuid,
    /// The first number.
    pub first: i64,
    /// How many numbers the block contains, at least 1.
    pub count: i64,
}

/// The beginning of a block, and the nonce of the caller that can give the block back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Top {
    /// The nonce in the request for the block, or a nonce that no caller has.
    pub nonce: Uuid,
    /// The first number. The block ends below the next higher block, or below [`TagRecord::next`].
    pub first: i64,
}

/// The registry's record about one tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagRecord {
    /// The generation of the tag, which is higher than the generations of all earlier tags.
    pub generation: u64,
    /// The lowest number that is not in any block, before the skips of later lives are applied. [`LAST_NUMBER`] + 1 if
    /// there is no such number.
    pub next: i64,
    /// The minimum size of a block, at least 1.
    pub step: i64,
    /// The maximum size of a block.
    pub max_step: i64,
    /// The highest block.
    pub top: Top,
    /// The block directly below the highest one, if the highest one can still be given back as a whole.
    pub below: Option<Top>,
    /// The life in which the last block was taken, or the last life in which the tag cannot have been lost. The next
    /// block begins above the skips of all later lives.
    pub life: u64,
    /// The time at which the current window began, in microseconds of the registry's clock.
    pub window: i64,
    /// How many numbers have been taken in the current window.
    pub used: i64,
}

/// The effect of a new life on all tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip {
    /// The quarantine in which the life began, identified by the first life that began in it.
    pub quarantine: u64,
    /// The time at which the life began, in microseconds of the registry's clock.
    pub since: i64,
    /// How many windows may have been lost.
    pub lost: i64,
    /// How many windows are skipped. This is the number that may have been lost, or 0 after [`Tags::open`].
    pub windows: i64,
}

/// The answer to a server that needs the tag for a period of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The tag was created with this generation.
    Created(u64),
    /// The tag already exists.
    Current,
    /// The period has not begun.
    Early,
    /// The period began before the fleet was created to replace one that was lost.
    Unknown,
}

/// The reason why a server does not get a block of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBlock {
    /// The tag does not exist.
    UnknownTag,
    /// The numbers of this window have been used up.
    Wait {
        /// The time at which the next window begins, in microseconds of the registry's clock.
        until: i64,
    },
    /// The tag has no more numbers.
    Exhausted,
}

/// The reason why numbers are not taken back. Such numbers leave a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The tag does not exist.
    UnknownTag,
    /// The tag was dropped and created again.
    Generation,
    /// The numbers are not the end of the tag's highest block.
    NotTop,
}

/// The answer to a server that reports its highest block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportAnswer {
    /// The registry has a record of the block.
    Current,
    /// The registry had lost the record of the block. The tag continues above the block.
    Raised,
    /// The tag does not exist, so the block is void.
    UnknownTag,
    /// The tag was dropped and created again, so the block is void.
    Generation,
    /// The block is above everything that may have been lost. The registry changes nothing.
    Ahead,
}

/// The segments of a registry: its records, and the decisions that depend only on the records, the call and the clock.
/// Times are in microseconds of the registry's clock. `fresh` is a nonce that no caller has.
///
/// # Discontinuities
///
/// If a registry's state is older than its answers, the registry has lost the records of blocks that servers use. In a
/// new life, every tag continues above all numbers that lost blocks may have contained. This skip is limited, because a
/// tag assigns at most [`BLOCKS_IN_WINDOW`] blocks of its largest size in a window, and a window lasts one
/// [`MARGIN`](crate::fleet::MARGIN). The skip is applied to a tag when its next block is taken. Until then,
/// [`Tags::open`] can cancel it.
///
/// The tag itself may also have been lost. An administrator who creates the tag again chooses its first number.
/// However, a server that creates the tag for a period ([`Tags::begin`]) cannot know whether the tag existed. Such a
/// tag is never created before its period, and the skips of all lives that began later apply to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// The life of the registry, at least 1, or 0 before the fleet is created.
    pub life: u64,
    /// The highest generation of all tags that have ever existed.
    pub generation: u64,
    /// The time before which a different registry of the fleet may have assigned numbers, in microseconds of the
    /// registry's clock, or 0.
    pub floor: i64,
    /// The records of the tags.
    pub segments: BTreeMap<String, TagRecord>,
    /// The skips of the lives, by life.
    pub skips: BTreeMap<u64, Skip>,
}

impl Tags {
    /// Creates a tag whose first number is `start`. Returns its generation, or `None` if the tag already exists.
    ///
    /// The generation is derived from the clock and from random bits. These distinguish a tag whose creation was lost
    /// from the tag that replaces it.
    pub fn create(&mut self, now: i64, tag: &str, start: i64, sizes: (i64, i64), fresh: Uuid) -> Option<u64> {
        self.insert(now, tag, start, sizes, self.life, fresh)
    }

    /// Creates the tag for the period that begins at `begins`, unless the tag already exists. All servers must call
    /// this function with the same arguments.
    ///
    /// A tag that was lost had been created at most one margin before its period, according to the clock of the
    /// registry that created it. The clock of a later life can be one margin behind that clock.
    pub fn begin(&mut self, now: i64, tag: &str, begins: i64, start: i64, sizes: (i64, i64), fresh: Uuid) -> Begun {
        if self.segments.contains_key(tag) {
            return Begun::Current;
        }
        if now.saturating_add(WINDOW) < begins {
            return Begun::Early;
        }
        if self.floor > 0 && begins.saturating_sub(2 * WINDOW) < self.floor {
            return Begun::Unknown;
        }
        let later = self.skips.iter().find(|(_, skip)| skip.since >= begins.saturating_sub(2 * WINDOW));
        let life = later.map_or(self.life, |(life, _)| life - 1);
        self.insert(now, tag, start, sizes, life, fresh).map_or(Begun::Current, Begun::Created)
    }

    fn insert(&mut self, now: i64, tag: &str, start: i64, sizes: (i64, i64), life: u64, fresh: Uuid) -> Option<u64> {
        if self.segments.contains_key(tag) {
            return None;
        }
        let random = (fresh.0 & u128::from(RANDOM_BITS)) as u64;
        self.generation = self.generation.max(now.max(0).unsigned_abs()) + 1 + random;
        let segment = TagRecord {
            generation: self.generation,
            next: start,
            step: sizes.0,
            max_step: sizes.1,
            top: Top { nonce: fresh, first: start },
            below: None,
            life,
            window: now,
            used: 0,
        };
        self.segments.insert(tag.into(), segment);
        Some(self.generation)
    }

    /// Drops a tag. Returns false if the tag does not exist. Servers continue to use their blocks of the tag until they
    /// are told that it was dropped.
    pub fn drop(&mut self, tag: &str) -> bool {
        self.segments.remove(tag).is_some()
    }

    /// Takes a block of about `want` numbers. The length is from `step` to `max_step`, or less if the window or the tag
    /// has fewer numbers left. A repeated call with the same nonce returns the same block as long as it is the highest
    /// block.
    pub fn take(&mut self, now: i64, tag: &str, nonce: Uuid, want: i64) -> Result<TagBlock, NoBlock> {
        let mut segment = *self.segments.get(tag).ok_or(NoBlock::UnknownTag)?;
        let generation = segment.generation;
        if segment.top.nonce == nonce {
            let first = segment.top.first;
            return Ok(TagBlock { generation, nonce, first, count: segment.next - first });
        }
        let skipped = self.skip(&mut segment);
        if segment.next > LAST_NUMBER {
            return Err(NoBlock::Exhausted);
        }
        // If the clock was far ahead when the window began, the tag must not wait until the clock shows that time
        // again.
        if now >= segment.window.saturating_add(WINDOW) || now.saturating_add(WINDOW) < segment.window {
            (segment.window, segment.used) = (now, 0);
        }
        let left = segment.max_step * BLOCKS_IN_WINDOW - segment.used;
        if left <= 0 {
            return Err(NoBlock::Wait { until: segment.window + WINDOW });
        }
        let count = want.clamp(segment.step, segment.max_step).min(left).min(LAST_NUMBER - segment.next + 1);
        let first = segment.next;
        // If numbers are skipped, the previous block does not end directly below the new one.
        segment.below = (!skipped).then_some(segment.top);
        segment.top = Top { nonce, first };
        segment.next += count;
        segment.used += count;
        self.segments.insert(tag.into(), segment);
        Ok(TagBlock { generation, nonce, first, count })
    }

    /// Takes back the numbers from `first` to `last`, which must be the end of the highest block. The caller has not
    /// used any of them and never will. They do not count as numbers of the window any more, because the highest number
    /// of a window is limited, and not how often a server takes a block.
    ///
    /// The nonce is then replaced. Otherwise, if a different server has taken the same numbers in the meantime, a
    /// second copy of this call could take them away from that server. If the whole block was given back, the block
    /// below it becomes the highest block again. A registry that may have lost blocks takes nothing back, because its
    /// skip begins at [`TagRecord::next`].
    pub fn give_back(
        &mut self,
        tag: &str,
        generation: u64,
        nonce: Uuid,
        numbers: (i64, i64),
        fresh: Uuid,
    ) -> Result<(), Kept> {
        let segment = self.segments.get(tag).ok_or(Kept::UnknownTag)?;
        if segment.generation != generation {
            return Err(Kept::Generation);
        }
        let ((first, last), top) = (numbers, segment.top);
        if self.pending(segment) > 0
            || top.nonce != nonce
            || last != segment.next - 1
            || first < top.first
            || first > last
        {
            return Err(Kept::NotTop);
        }
        let rest = Top { nonce: fresh, first };
        let top = if first == top.first { segment.below.unwrap_or(rest) } else { rest };
        let used = (segment.used - (last - first + 1)).max(0);
        self.segments.insert(tag.into(), TagRecord { next: first, top, below: None, used, ..*segment });
        Ok(())
    }

    /// Processes a server's report of the last number of its highest block. If the block may be one of those that were
    /// lost, the skip is applied to the tag at once, so that [`Tags::open`] cannot cancel it. If an administrator has
    /// canceled the skip although blocks were lost, the tag continues above the block.
    pub fn report(&mut self, tag: &str, generation: u64, last: i64, fresh: Uuid) -> ReportAnswer {
        let Some(segment) = self.segments.get(tag) else { return ReportAnswer::UnknownTag };
        let mut segment = *segment;
        if segment.generation != generation {
            return ReportAnswer::Generation;
        }
        if last < segment.next {
            return ReportAnswer::Current;
        }
        self.skip(&mut segment);
        let lost: i128 = self.skips.values().map(|skip| i128::from(skip.lost)).sum();
        let lost = lost * i128::from(segment.max_step * BLOCKS_IN_WINDOW);
        if last > LAST_NUMBER || i128::from(last) >= i128::from(segment.next) + lost {
            return ReportAnswer::Ahead;
        }
        segment.next = segment.next.max(last + 1);
        segment.top = Top { nonce: fresh, first: segment.next };
        segment.below = None;
        self.segments.insert(tag.into(), segment);
        ReportAnswer::Raised
    }

    /// Begins the life that is `lives` above the current one. It counts as one loss. `newest` is the latest time in the
    /// state. `steps` is the number of timelines between the state and the registry, or one more than the number of
    /// lives that only a renewal has shown, or [`UNKNOWN_STEPS`]. `within` is true if the quarantine of an earlier life
    /// has not ended.
    pub fn begin_life(&mut self, now: i64, newest: i64, lives: u64, steps: u32, within: bool) {
        self.life += lives;
        let earlier = self.skips.values().next_back().filter(|_| within);
        let quarantine = earlier.map_or(self.life, |skip| skip.quarantine);
        let windows = lost_windows(now.saturating_sub(newest), steps);
        self.skips.insert(self.life, Skip { quarantine, since: now, lost: windows, windows });
    }

    /// Cancels the skips of the last quarantine. The administrator guarantees that nothing has been lost since it
    /// began. If a block of a tag has been taken since then, the skip of this tag remains.
    pub fn open(&mut self) {
        let Some(last) = self.skips.values().next_back().copied() else { return };
        for skip in self.skips.values_mut().filter(|skip| skip.quarantine == last.quarantine) {
            skip.windows = 0;
        }
    }

    /// Returns how many numbers the tag skips before its next block.
    pub fn pending(&self, segment: &TagRecord) -> i128 {
        let windows: i128 = self.skips.range(segment.life + 1..).map(|(_, skip)| i128::from(skip.windows)).sum();
        windows * i128::from(segment.max_step * BLOCKS_IN_WINDOW)
    }

    /// Applies the skips to a record. Returns true if there were any.
    fn skip(&self, segment: &mut TagRecord) -> bool {
        let pending = self.pending(segment);
        segment.next = (i128::from(segment.next) + pending).min(i128::from(LAST_NUMBER) + 1) as i64;
        segment.life = self.life;
        pending > 0
    }
}
