//! Snowflake IDs without PostgreSQL: what the bits of an ID mean, which time an ID contains, and which ID comes next.
//!
//! This crate is the part of snowflake_pg that does not depend on PostgreSQL. Other programs can use it to decode IDs
//! and to issue IDs of the same fleet. The crate does not read clocks and does no I/O. The caller passes the time, and
//! every decision depends only on the arguments.
//!
//! # Decode an ID
//!
//! An [`IdFormat`] consists of a [`Layout`] and an [`Epoch`]. All IDs in one table have the same format:
//!
//! ```
//! use flake::IdFormat;
//!
//! let format = IdFormat::parse("41:10:12")?;
//! let parts = format.split(1_541_815_603_606_036_480)?;
//! assert_eq!((parts.node.worker, parts.sequence), (378, 0));
//! // Microseconds since the Unix epoch: 2022-06-28 16:07:40.105 UTC.
//! assert_eq!(format.instant(parts.tick), 1_656_432_460_105_000);
//!
//! // The range of IDs for a range of times, for example for a query.
//! let (first, past) = (format.first_id_from(1_656_432_460_000_000), format.first_id_from(1_656_432_461_000_000));
//! assert_eq!((first, past), (Some(1_541_815_603_164_086_272), Some(1_541_815_607_358_390_272)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Issue IDs
//!
//! An [`Issuer`] issues the IDs of one [`Node`] in one process. It never issues an ID at or above its limit. The limit
//! comes either from a registry or from a [`Mark`]. The caller must store the mark durably before IDs below it are
//! issued:
//!
//! ```
//! use flake::{IdFormat, Issuer, Mark, Node, Obstacle, Reading};
//!
//! let format = IdFormat::parse("41:10:12")?;
//! let node = Node { datacenter: 0, worker: 7 };
//! // The example has a clock of its own. Read the clocks of the system instead.
//! let clocks = Reading { monotonic: 0, boot: 0, wall: 1_656_432_460_105_000_000, apart: 0 };
//! let issuer = Issuer::start(&format, node, Mark::NOTHING_ISSUED, clocks)?;
//!
//! let id = loop {
//!     match issuer.next_id(|| clocks.monotonic) {
//!         Ok(id) => break id,
//!         Err(Obstacle::NotReserved(needed)) => {
//!             let planned = issuer.reserve(clocks.monotonic, needed)?;
//!             // Store `planned.mark()` durably before the next line. Pass it to `Issuer::start` after a restart.
//!             planned.publish(clocks.monotonic);
//!         }
//!         Err(Obstacle::Throttled(pause)) => std::thread::sleep(pause),
//!         Err(obstacle) => return Err(obstacle.into()),
//!     }
//! };
//! assert_eq!(id, 1_541_815_603_604_516_864);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Two complete programs are in the directory `examples`: `mark_file` stores the mark in a file, and `registry` gets
//! its worker ID from the registry of a fleet.
//!
//! # Terms
//!
//! - *tick*: the unit of an ID's timestamp ([`Tick`]). It is 1 ms unless the layout specifies a different length.
//! - *word*: `tick << sequence_bits | sequence`, which is the ID without its node bits. Words are consecutive integers,
//!   so `word + n` continues correctly into the next tick. Only [`Stamp`] contains the position of the node bits.
//! - *generator time*: the time on which the timestamps in IDs are based. It advances with the monotonic clock
//!   ([`GeneratorClock`]).
//! - *mark*: a number at or above which no ID has ever been issued ([`Mark`]). *Reservation*: the words below the mark
//!   that may be issued.
//! - *last issued*: the highest word issued so far. *Lead*: how far the tick of this word is ahead of the clock.
//!
//! A *segment* ([`Segment`]) does not issue IDs. It issues short, dense numbers from blocks that belong to a tag. The
//! module [`segment_refill`] determines how a server gets these blocks.
//!
//! The module [`fleet`] determines which server of a fleet has which worker ID. The module [`serial`] formats short
//! numbers for people. A [`Concealer`] encrypts IDs, so that the resulting numbers reveal neither a time nor a server.

mod assignment;
mod bulk;
mod clock;
#[cfg(feature = "conceal")]
mod conceal;
#[cfg(feature = "conceal")]
mod conceal_key;
mod current_tick;
mod epoch;
mod error;
#[cfg(feature = "conceal")]
mod ff1;
pub mod fleet;
mod id_format;
mod incidents;
mod issuer;
mod layout;
mod limits;
mod mark;
mod next_word;
mod pending;
mod preset;
mod reservation;
mod scatter;
mod segment;
mod segment_block_size;
pub mod segment_refill;
pub mod serial;
mod state;
mod sync;
mod text;
mod throttle;
mod tick;
mod turn;
mod uuid;

pub use assignment::Assignment;
pub use bulk::Bulk;
pub use clock::{ClockEvent, ClockRules, Disciplined, GeneratorClock, OnRegression, Reading};
#[cfg(feature = "conceal")]
pub use conceal::Concealer;
#[cfg(feature = "conceal")]
pub use conceal_key::{InvalidKey, KEY_LENGTHS};
pub use current_tick::CurrentTick;
pub use epoch::Epoch;
pub use error::{FormatError, LayoutError, Part, PartError};
#[cfg(feature = "conceal")]
pub use ff1::Ff1;
pub use id_format::IdFormat;
pub use incidents::Incidents;
pub use issuer::{IdBatch, Issuer, NoPlan, Planned, StartError};
pub use layout::{Layout, Node, Parts, Stamp};
pub use limits::Limits;
pub use mark::{MAX_LEAD, Mark};
pub use next_word::{Obstacle, Request, Run, step};
pub use pending::{Generation, Pending, pause};
pub use preset::Preset;
pub use reservation::{MAX_WINDOW, MIN_WINDOW, Reservation, next_window};
#[cfg(loom)]
pub use segment::OrderedStep;
pub use segment::{Block, Left, MAX_BLOCK, Number, Segment, Span, Undrawn};
pub use segment_block_size::period_lengths;
pub use state::{Claim, Drawn, NOT_LOADED, State, Undecided};
pub use text::{TEXT_LENGTH, TextError, from_text, to_text};
pub use throttle::Pace;
pub use tick::{Nanos, Tick};
pub use turn::Turn;
pub use uuid::{UuidBytes, UuidError, from_uuid, to_uuid};
