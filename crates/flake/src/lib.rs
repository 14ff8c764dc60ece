//! Snowflake IDs without PostgreSQL: what the bits of an ID mean, what time it carries, and which ID comes next.
//!
//! Nothing here reads a clock, does I/O or knows of a server: the caller brings the time, and every decision is a
//! function of its arguments. Words used throughout:
//!
//! - *tick*: one unit of an ID's timestamp ([`Tick`]), 1 ms unless the layout says otherwise.
//! - *word*: `tick << sequence_bits | sequence`, the ID without its node bits. Words are consecutive integers, so
//!   `word + n` runs over the end of a tick correctly by itself; only [`Stamp`] knows where the node bits go.
//! - *last issued*: the highest word handed out so far; *lead*: how far its tick is ahead of the clock.

mod epoch;
mod error;
mod generator;
mod layout;
mod scheme;
mod state;
mod sync;
mod tick;

pub use epoch::Epoch;
pub use error::{LayoutError, Part, PartError, SchemeError};
pub use generator::{Limits, Pace, Request, Run, Step, step};
pub use layout::{Layout, Node, Parts, Preset, Stamp};
pub use scheme::Scheme;
pub use state::{NO_CEILING, NOT_LOADED, State};
pub use tick::{Nanos, Tick};
