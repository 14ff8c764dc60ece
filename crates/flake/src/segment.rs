//! The numbers of one tag on one server: the block that sessions draw from, and the next block, which lies ready beside it.
//!
//! A block is a span of numbers that the registry has given to this server. The *registrar* is the only caller that opens a segment,
//! puts blocks into it, and gives back what is left. Any number of sessions draw.
//!
//! # Locking contract
//!
//! No function waits. The `word` contains the number of the current block and how many of its numbers are drawn. A session draws by
//! replacing the word with the next one, and owns the number between the two. Block `n` lies in cell `n % 2`. The registrar fills the
//! cell of block `n + 1` only while block `n` is current, so it never overwrites the cell of a current block.
//!
//! The word never returns to an earlier value, because the blocks of a segment are counted on when it is opened again. (The count begins
//! again after 2^31 blocks.) A session that was stopped between reading the word and replacing it therefore draws only if nothing has
//! changed in between.
//!
//! A segment can serve one tag after another. The *version* says which one it serves. It changes only while the segment is closed. A
//! session passes the version that it knows, and draws nothing if the segment has another one.
//!
//! # Why a number that is drawn is of the block that the word names
//!
//! - *The cell is not older than the word.* A session reads the word with `Acquire`. The word has named this block since the caller that
//!   opened the segment stored it with `Release`, or since a session moved it on with `Release` after it had read in `ready` with `Acquire`
//!   that the block is there. The registrar filled the cell before either of them. The draws in between are swaps, which
//!   continue the release sequence.
//! - *The cell is not newer than the word.* The registrar fills the cell of block `n` again after it has read that the word names a later
//!   block. A session that reads the new contents with `Acquire` sees what the registrar saw when it stored them with `Release`, so its
//!   swap of the earlier word fails.

use core::error::Error;
use core::fmt;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Ordering};

/// The flag in the word of a segment from which no session can draw.
const CLOSED: u64 = 1 << 63;

/// The bits of the word that count the drawn numbers.
const POSITION: u64 = (1 << 32) - 1;

/// The greatest number of a block. The next one is 0.
const LAST_BLOCK: u64 = (1 << 31) - 1;

/// The length of the longest block.
pub const MAX_BLOCK: u64 = POSITION;

/// Numbers that the registry has given to this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first number.
    pub first: i64,
    /// How many numbers there are, from 1 to [`MAX_BLOCK`].
    pub length: u64,
    /// How many numbers are left when the next block should be fetched, from 1 to `length`.
    pub fetch_below: u64,
}

/// A number that a session has drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// The number.
    pub number: i64,
    /// True for one number of each block: the one after whose drawing the next block should be fetched.
    pub fetch: bool,
}

/// Why a session has drawn nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undrawn {
    /// All numbers are drawn, and the next block is not there yet.
    Dry,
    /// The segment is closed, or serves another tag.
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

/// Consecutive numbers that are not drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The first number.
    pub first: i64,
    /// How many numbers there are, or 0 if there are none.
    pub count: u64,
}

/// What is left of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// The numbers of the current block.
    pub current: Span,
    /// The numbers of the next block.
    pub next: Span,
}

impl Left {
    /// Returns how many numbers are left.
    pub fn count(&self) -> u64 {
        self.current.count + self.next.count
    }
}

/// A step whose memory ordering matters. A build for loom can make the ordering of one step `Relaxed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderedStep {
    /// The segment is opened.
    Open,
    /// The next block is said to be there.
    Put,
    /// A session reads whether the next block is there.
    Look,
    /// A session reads the word.
    Read,
    /// A session learns from a swap that failed what the word is.
    Fail,
    /// A session moves the word to the next block.
    Move,
}

#[derive(Default)]
struct Cell {
    first: AtomicU64,
    length: AtomicU64,
    /// The number of drawn numbers before the one whose session should ask for the next block.
    fetch_at: AtomicU64,
}

impl Cell {
    /// Fills the cell. `Release`: see the head of this file. loom executes the steps of a session in their order, in which no session
    /// reads a cell that is filled after its swap, so no model shows this ordering or the one in [`Cell::read`].
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

    /// Returns the numbers from a position on.
    fn rest(&self, position: u64) -> Span {
        let (first, length, _) = self.read();
        Span { first: first.wrapping_add(position) as i64, count: length.saturating_sub(position) }
    }
}

/// What sessions read for each number and only the registrar writes.
#[derive(Default)]
struct Blocks {
    version: AtomicU64,
    /// The number of the last block that was put into its cell.
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
    /// Returns a closed segment without numbers, with version 0.
    fn default() -> Segment {
        Segment { word: CachePadded::new(AtomicU64::new(CLOSED)), blocks: CachePadded::default() }
    }
}

/// Returns the word that names a block of which nothing is drawn.
const fn beginning(block: u64) -> u64 {
    block << 32
}

/// Returns the number of the block that a word names.
const fn block(word: u64) -> u64 {
    (word & !CLOSED) >> 32
}

/// Returns the number of the block that follows a block.
const fn following(block: u64) -> u64 {
    if block == LAST_BLOCK { 0 } else { block + 1 }
}

impl Segment {
    /// Returns a closed segment in which the ordering of one step is `Relaxed`.
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

    /// Draws a number, if the segment is open and has this version.
    #[inline]
    pub fn draw(&self, version: u64) -> Result<Number, Undrawn> {
        // Acquire: the cell of the block and the version that belong to the word.
        let mut word = self.word.load(self.order(OrderedStep::Read, Ordering::Acquire));
        loop {
            // Relaxed: the version was stored before the word with which the segment was opened. If it changes after this, the swap fails.
            if word & CLOSED != 0 || self.blocks.version.load(Ordering::Relaxed) != version {
                return Err(Undrawn::Closed);
            }
            let (block, position) = (block(word), word & POSITION);
            let (first, length, fetch_at) = self.cell(block).read();
            // Acquire: as for the first reading.
            let failure = self.order(OrderedStep::Fail, Ordering::Acquire);
            if position < length {
                // Relaxed: this continues the release sequence of the word, and the number follows from the word and the cell.
                match self.word.compare_exchange_weak(word, word + 1, Ordering::Relaxed, failure) {
                    Ok(_) => {
                        return Ok(Number { number: first.wrapping_add(position) as i64, fetch: position == fetch_at });
                    }
                    Err(found) => word = found,
                }
            } else {
                // Acquire: the cell of the next block, for this session.
                if self.blocks.ready.load(self.order(OrderedStep::Look, Ordering::Acquire)) == block {
                    return Err(Undrawn::Dry);
                }
                let next = beginning(following(block));
                // Release: the cell of the next block, for the sessions that read the word.
                let success = self.order(OrderedStep::Move, Ordering::Release);
                match self.word.compare_exchange_weak(word, next, success, failure) {
                    Ok(_) => word = next,
                    Err(found) => word = found,
                }
            }
        }
    }

    /// Opens the segment, which is closed, with its first block. Only the registrar calls this function.
    pub fn open(&self, version: u64, block: Block) {
        // Relaxed, here and in the other functions of the registrar: it has stored the number of the last block itself.
        let number = following(self.blocks.ready.load(Ordering::Relaxed));
        self.cell(number).fill(block);
        // Relaxed: the word is stored after them, with Release. A session that learns of one of them before fails to swap the word.
        self.blocks.version.store(version, Ordering::Relaxed);
        self.blocks.ready.store(number, Ordering::Relaxed);
        // Release: the cell and the version. No swap of a session replaces the word of a closed segment.
        self.word.store(beginning(number), self.order(OrderedStep::Open, Ordering::Release));
    }

    /// Returns true if the segment is open and has room for the next block.
    pub fn has_room(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word & CLOSED == 0 && block(word) == self.blocks.ready.load(Ordering::Relaxed)
    }

    /// Puts the next block beside the current one. Returns false if the segment is closed or has no room. Only the registrar calls this
    /// function.
    pub fn put(&self, block: Block) -> bool {
        // The word that it has read stays true: only the registrar makes the number of the last block a later one.
        if !self.has_room() {
            return false;
        }
        let number = following(self.blocks.ready.load(Ordering::Relaxed));
        self.cell(number).fill(block);
        // Release: the cell, for the session that moves the word.
        self.blocks.ready.store(number, self.order(OrderedStep::Put, Ordering::Release));
        true
    }

    /// Ends drawing. After this call, no session draws a number until the segment is opened again, and [`Segment::left`] does not change.
    pub fn close(&self) {
        // Relaxed: the swaps of the sessions expect a word without the flag. There is nothing else that they would have to see.
        self.word.fetch_or(CLOSED, Ordering::Relaxed);
    }

    /// Returns true if no session can draw.
    pub fn is_closed(&self) -> bool {
        self.word.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Returns what is left: exactly, if the caller is the registrar and the segment is closed. Otherwise, sessions draw meanwhile. Returns
    /// nothing if the blocks change too fast to read them.
    pub fn left(&self) -> Left {
        for _ in 0..8 {
            // Acquire: as in `draw`.
            let word = self.word.load(Ordering::Acquire);
            let number = block(word);
            let next = match self.blocks.ready.load(Ordering::Acquire) {
                ready if ready == number => Span::default(),
                ready => self.cell(ready).rest(0),
            };
            let left = Left { current: self.cell(number).rest(word & POSITION), next };
            // The cells belong to the word if it still names the same block.
            if block(self.word.load(Ordering::Acquire)) == number {
                return left;
            }
        }
        Left::default()
    }
}
