//! The numbers of one tag on one server. Sessions draw from the current block, and the next block is fetched in
//! advance.
//!
//! A block is a range of numbers that the registry has assigned to this server. Only the *registrar* opens a segment,
//! adds blocks to it, and returns the remaining numbers to the registry. Any number of sessions can draw from it.
//!
//! # Locking contract
//!
//! None of these functions waits. The `word` contains the current block's number in the sequence of blocks, and how
//! many numbers of that block have been drawn. A session draws a number by replacing the word with the next word. The
//! number at the position in the replaced word then belongs to this session. Block `n` is stored in cell `n % 2`. The
//! registrar fills the cell of block `n + 1` only while block `n` is the current block, so it never overwrites the cell
//! of the current block.
//!
//! The word never returns to an earlier value, because the block number keeps increasing even if the segment is closed
//! and reopened. (The block number restarts at 0 after 2^31 blocks.) If a session is suspended between reading the word
//! and replacing it, it draws a number only if the word has not changed in the meantime.
//!
//! A segment can serve several tags, one after another. Its *version* identifies the current tag. The version changes
//! only while the segment is closed. A session passes the version that it expects, and draws nothing if the segment has
//! a different version.
//!
//! # Why a drawn number belongs to the block that the word names
//!
//! - *The cell is not older than the word.* A session reads the word with `Acquire`. There are two ways in which the
//!   word can have started to name this block. Either the registrar opened the segment and stored the word with
//!   `Release`, or a session read `ready` with `Acquire`, found that the block was ready, and moved the word to this
//!   block with `Release`. In both cases, the registrar had already filled the cell. The draws in between are swaps,
//!   which continue the release sequence.
//! - *The cell is not newer than the word.* The registrar refills the cell of block `n` only after it has read a word
//!   that names a later block. It stores the new contents with `Release`. A session that reads them with `Acquire` also
//!   sees this later word, so its swap of the earlier word fails.

use core::error::Error;
use core::fmt;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Ordering};

/// The flag in the word that marks the segment as closed. While it is set, sessions cannot draw.
const CLOSED: u64 = 1 << 63;

/// The bits of the word that count the numbers drawn from the block.
const POSITION: u64 = (1 << 32) - 1;

/// The highest block number. The next block has number 0.
const LAST_BLOCK: u64 = (1 << 31) - 1;

/// The maximum length of a block.
pub const MAX_BLOCK: u64 = POSITION;

/// Numbers that the registry has assigned to this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first number.
    pub first: i64,
    /// How many numbers the block contains, from 1 to [`MAX_BLOCK`].
    pub length: u64,
    /// The number of remaining numbers at which the next block should be fetched, from 1 to `length`.
    pub fetch_below: u64,
}

/// A number that a session has drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// The number.
    pub number: i64,
    /// True if the next block should be fetched now. This is true for exactly one number in each block.
    pub fetch: bool,
}

/// The reason why no number was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undrawn {
    /// All numbers have been drawn, and the next block has not arrived yet.
    Dry,
    /// The segment is closed, or serves a different tag.
    Closed,
}

impl fmt::Display for Undrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Undrawn::Dry => "all numbers have been drawn, and the next block has not arrived yet",
            Undrawn::Closed => "the segment is closed, or now serves a different tag",
        })
    }
}

impl Error for Undrawn {}

/// Consecutive numbers that have not been drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first number.
    pub first: i64,
    /// How many numbers there are, which can be 0.
    pub count: u64,
}

/// The remaining numbers of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// The remaining numbers of the current block.
    pub current: Span,
    /// The numbers of the next block.
    pub next: Span,
}

impl Left {
    /// Returns how many numbers remain.
    pub fn count(&self) -> u64 {
        self.current.count + self.next.count
    }
}

/// A step whose memory ordering matters. In a build for loom, a test can make the ordering of one step `Relaxed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedStep {
    /// The registrar opens the segment.
    Open,
    /// The registrar announces the next block.
    Put,
    /// A session checks whether the next block is ready.
    Look,
    /// A session reads the word.
    Read,
    /// A session gets the current word from a failed swap.
    Fail,
    /// A session moves the word to the next block.
    Move,
}

#[derive(Default)]
struct Cell {
    first: AtomicU64,
    length: AtomicU64,
    /// The position at which a session should request the next block.
    fetch_at: AtomicU64,
}

impl Cell {
    /// Fills the cell. The beginning of this file explains why this needs `Release`. No loom model shows that this
    /// ordering or the one in [`Cell::read`] is necessary. loom executes a session's steps in program order, so a
    /// session never reads a cell that is filled after the session's swap.
    fn fill(&self, block: Block) {
        assert!((1..=MAX_BLOCK).contains(&block.length), "the length of a block is from 1 to {MAX_BLOCK}");
        self.first.store(block.first as u64, Ordering::Release);
        self.length.store(block.length, Ordering::Release);
        self.fetch_at.store(block.length - block.fetch_below.clamp(1, block.length), Ordering::Release);
    }

    /// Returns the first number, the length, and the position at which the next block should be fetched.
    #[inline(always)]
    fn read(&self) -> (u64, u64, u64) {
        (self.first.load(Ordering::Acquire), self.length.load(Ordering::Acquire), self.fetch_at.load(Ordering::Acquire))
    }

    /// Returns the numbers starting at this position.
    fn rest(&self, position: u64) -> Span {
        let (first, length, _) = self.read();
        Span { first: first.wrapping_add(position) as i64, count: length.saturating_sub(position) }
    }
}

/// The values that a session reads each time it draws a number. Only the registrar writes them.
#[derive(Default)]
struct Blocks {
    version: AtomicU64,
    /// The number of the last block that was put into a cell.
    ready: AtomicU64,
    cells: [Cell; 2],
    #[cfg(loom)]
    weak: Option<OrderedStep>,
}

/// The numbers of one tag.
pub struct Segment {
    word: CachePadded<AtomicU64>,
    blocks: CachePadded<Blocks>,
}

impl Default for Segment {
    /// Returns a closed segment with version 0 and without numbers.
    fn default() -> Segment {
        Segment { word: CachePadded::new(AtomicU64::new(CLOSED)), blocks: CachePadded::default() }
    }
}

/// Returns the word for a block from which no numbers have been drawn yet.
const fn beginning(block: u64) -> u64 {
    block << 32
}

/// Returns the number of the block that a word names.
const fn block(word: u64) -> u64 {
    (word & !CLOSED) >> 32
}

/// Returns the number of the next block.
const fn following(block: u64) -> u64 {
    if block == LAST_BLOCK { 0 } else { block + 1 }
}

impl Segment {
    /// Returns a closed segment in which this step uses `Relaxed` ordering.
    #[cfg(loom)]
    pub fn weakened(step: OrderedStep) -> Segment {
        let blocks = CachePadded::new(Blocks { weak: Some(step), ..Blocks::default() });
        Segment { blocks, ..Segment::default() }
    }

    #[cfg(loom)]
    fn order(&self, step: OrderedStep, ordering: Ordering) -> Ordering {
        if self.blocks.weak == Some(step) { Ordering::Relaxed } else { ordering }
    }

    #[cfg(not(loom))]
    #[inline(always)]
    const fn order(&self, _: OrderedStep, ordering: Ordering) -> Ordering {
        ordering
    }

    fn cell(&self, block: u64) -> &Cell {
        &self.blocks.cells[(block % 2) as usize]
    }

    /// Draws a number if the segment is open and has this version.
    #[inline]
    pub fn draw(&self, version: u64) -> Result<Number, Undrawn> {
        // Acquire: this session must see the version and the block's cell that belong to the word.
        let mut word = self.word.load(self.order(OrderedStep::Read, Ordering::Acquire));
        loop {
            // Relaxed: the version was stored before the word that opened the segment. If the version changes after
            // this load, the swap fails.
            if word & CLOSED != 0 || self.blocks.version.load(Ordering::Relaxed) != version {
                return Err(Undrawn::Closed);
            }
            let (block, position) = (block(word), word & POSITION);
            let (first, length, fetch_at) = self.cell(block).read();
            // Acquire: for the same reason as in the first load.
            let failure = self.order(OrderedStep::Fail, Ordering::Acquire);
            if position < length {
                // Relaxed: this swap continues the release sequence of the word. The number depends only on the word
                // and the cell.
                match self.word.compare_exchange_weak(word, word + 1, Ordering::Relaxed, failure) {
                    Ok(_) => {
                        return Ok(Number { number: first.wrapping_add(position) as i64, fetch: position == fetch_at });
                    }
                    Err(found) => word = found,
                }
            } else {
                // Acquire: this session must see the cell of the next block.
                if self.blocks.ready.load(self.order(OrderedStep::Look, Ordering::Acquire)) == block {
                    return Err(Undrawn::Dry);
                }
                let next = beginning(following(block));
                // Release: sessions that read the word must see the cell of the next block.
                let success = self.order(OrderedStep::Move, Ordering::Release);
                match self.word.compare_exchange_weak(word, next, success, failure) {
                    Ok(_) => word = next,
                    Err(found) => word = found,
                }
            }
        }
    }

    /// Opens the segment with its first block. The segment must be closed. Only the registrar calls this function.
    pub fn open(&self, version: u64, block: Block) {
        // Relaxed, here and in the registrar's other functions: the registrar itself has stored the number of the last
        // block.
        let number = following(self.blocks.ready.load(Ordering::Relaxed));
        self.cell(number).fill(block);
        // Relaxed: the word is stored after these values, with Release. If a session sees one of these values earlier,
        // its swap of the word fails.
        self.blocks.version.store(version, Ordering::Relaxed);
        self.blocks.ready.store(number, Ordering::Relaxed);
        // Release: sessions must see the cell and the version. A plain store suffices, because no session swaps the
        // word of a closed segment.
        self.word.store(beginning(number), self.order(OrderedStep::Open, Ordering::Release));
    }

    /// Returns true if the segment is open and has room for the next block.
    pub fn has_room(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word & CLOSED == 0 && block(word) == self.blocks.ready.load(Ordering::Relaxed)
    }

    /// Adds the next block to the segment. Returns false if the segment is closed or has no room. Only the registrar
    /// calls this function.
    pub fn put(&self, block: Block) -> bool {
        // The result cannot become outdated, because only the registrar changes the number of the last block.
        if !self.has_room() {
            return false;
        }
        let number = following(self.blocks.ready.load(Ordering::Relaxed));
        self.cell(number).fill(block);
        // Release: the session that moves the word must see the cell.
        self.blocks.ready.store(number, self.order(OrderedStep::Put, Ordering::Release));
        true
    }

    /// Closes the segment. After this call, sessions cannot draw until the segment is opened again, and the result of
    /// [`Segment::left`] does not change.
    pub fn close(&self) {
        // Relaxed: the sessions' swaps fail because they expect a word without the flag. The sessions do not need to
        // see anything else.
        self.word.fetch_or(CLOSED, Ordering::Relaxed);
    }

    /// Returns true if sessions cannot draw.
    pub fn is_closed(&self) -> bool {
        self.word.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Returns the remaining numbers. The result is exact if the caller is the registrar and the segment is closed.
    /// Otherwise, sessions can draw numbers in the meantime. The result is empty if the blocks change too fast to be
    /// read.
    pub fn left(&self) -> Left {
        for _ in 0..8 {
            // Acquire: for the same reason as in `draw`.
            let word = self.word.load(Ordering::Acquire);
            let number = block(word);
            let next = match self.blocks.ready.load(Ordering::Acquire) {
                ready if ready == number => Span::default(),
                ready => self.cell(ready).rest(0),
            };
            let left = Left { current: self.cell(number).rest(word & POSITION), next };
            // The cells belong to the word if the word still names the same block.
            if block(self.word.load(Ordering::Acquire)) == number {
                return left;
            }
        }
        Left::default()
    }
}
