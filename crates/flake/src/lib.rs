//! Snowflake IDs without PostgreSQL: what the bits of an ID mean, what time it carries, and which ID comes next.
//!
//! This crate reads no clock, does no I/O and does not use PostgreSQL. The caller passes the time, and every decision is a function
//! of its arguments. Terms:
//!
//! - *tick*: one unit of an ID's timestamp ([`Tick`]), 1 ms unless the layout says otherwise.
//! - *word*: `tick << sequence_bits | sequence`, the ID without its node bits. Words are consecutive integers, so
//!   `word + n` runs over the end of a tick correctly by itself; only [`Stamp`] knows where the node bits go.
//! - *generator time*: the time IDs are issued by, which runs on the monotonic clock ([`Hybrid`]).
//! - *mark*: no ID at or above it was ever issued ([`Mark`]); *reservation*: the words below it that may be.
//! - *last issued*: the highest word handed out so far; *lead*: how far its tick is ahead of the clock.

mod bulk;
mod epoch;
mod error;
mod generator;
mod hybrid;
mod id_format;
mod incidents;
mod layout;
mod mark;
mod pending;
mod preset;
mod reservation;
mod state;
mod sync;
mod text;
mod tick;

pub use bulk::Bulk;
pub use epoch::Epoch;
pub use error::{FormatError, LayoutError, Part, PartError};
pub use generator::{Limits, Obstacle, Pace, Request, Run, step};
pub use hybrid::{ClockEvent, ClockRules, Disciplined, Hybrid, OnRegression, Reading};
pub use id_format::IdFormat;
pub use incidents::Incidents;
pub use layout::{Layout, Node, Parts, Stamp};
pub use mark::Mark;
pub use pending::{Generation, Pending, pause};
pub use preset::Preset;
pub use reservation::{MAX_LEAD, MAX_WINDOW, MIN_WINDOW, Reservation, next_window};
pub use state::{Claim, Drawn, NOT_LOADED, State};
pub use text::{TEXT_LENGTH, TextError, from_text, to_text};
pub use tick::{Nanos, Tick};
