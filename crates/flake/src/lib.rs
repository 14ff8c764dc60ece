//! Snowflake IDs without PostgreSQL: what the bits of an ID mean, what time it carries, and which ID comes next.
//!
//! This crate reads no clock, does no I/O and does not use PostgreSQL. The caller passes the time, and every decision depends
//! only on the arguments. The comments use these terms:
//!
//! - *tick*: one unit of an ID's timestamp ([`Tick`]). It is 1 ms unless the layout specifies a different length.
//! - *word*: `tick << sequence_bits | sequence`, the ID without its node bits. Words are consecutive integers, so `word + n`
//!   continues correctly in the next tick. Only [`Stamp`] knows where the node bits are.
//! - *generator time*: the time by which IDs are issued. It runs on the monotonic clock ([`Hybrid`]).
//! - *mark*: a number at or above which no ID was ever issued ([`Mark`]); *reservation*: the words below the mark that may be
//!   issued.
//! - *last issued*: the highest word issued so far; *lead*: how far the tick of this word is ahead of the clock.
//!
//! A *segment* ([`Segment`]) is not an ID: it gives out short, dense numbers from blocks of a tag.
//!
//! The module [`fleet`] decides which server of a fleet has which worker ID. The module [`serial`] makes short numbers for people.
//! A [`Concealer`] makes numbers that stand for IDs and reveal neither a time nor a server.

mod assignment;
mod block_size;
mod bulk;
#[cfg(feature = "conceal")]
mod conceal;
mod epoch;
mod error;
#[cfg(feature = "conceal")]
mod ff1;
pub mod fleet;
mod generator;
mod hybrid;
mod id_format;
mod incidents;
mod layout;
mod mark;
mod pending;
mod preset;
mod reservation;
mod segment;
pub mod serial;
mod state;
mod sync;
mod text;
mod tick;
mod uuid;

pub use assignment::Assignment;
pub use block_size::{fetch_below, next_length, period_lengths};
pub use bulk::Bulk;
#[cfg(feature = "conceal")]
pub use conceal::Concealer;
pub use epoch::Epoch;
pub use error::{FormatError, LayoutError, Part, PartError};
#[cfg(feature = "conceal")]
pub use ff1::{Ff1, InvalidKey, KEY_LENGTHS};
pub use generator::{Limits, Obstacle, Pace, Request, Run, step};
pub use hybrid::{ClockEvent, ClockRules, Disciplined, Hybrid, OnRegression, Reading};
pub use id_format::IdFormat;
pub use incidents::Incidents;
pub use layout::{Layout, Node, Parts, Stamp};
pub use mark::Mark;
pub use pending::{Generation, Pending, pause};
pub use preset::Preset;
pub use reservation::{MAX_LEAD, MAX_WINDOW, MIN_WINDOW, Reservation, next_window};
#[cfg(loom)]
pub use segment::Step;
pub use segment::{Block, Left, MAX_BLOCK, Number, Segment, Span, Undrawn};
pub use state::{Claim, Drawn, NOT_LOADED, State};
pub use text::{TEXT_LENGTH, TextError, from_text, to_text};
pub use tick::{Nanos, Tick};
pub use uuid::{UuidBytes, UuidError, from_uuid, to_uuid};
