//! The log messages of a server that has started, has been promoted or issues its first ID.

use flake::{IdFormat, Nanos};

use crate::message::pages;
use crate::message::report::{log, warn_of};
use crate::pg::timestamp;

/// The text that messages contain instead of the worker ID if the server has not contacted the registry yet.
pub const UNASSIGNED: &str = "a worker ID that the registry assigns";

/// How a server became a primary.
pub enum PrimaryStart {
    Started,
    Promoted,
    /// A different server, with this worker ID and datacenter ID, issued the last ID.
    PromotedAfter(String),
    /// This server issued the last ID.
    Continuing,
    /// A different server with the same worker ID issued the last ID.
    TakingOver,
}

/// Logs the identity of a server that has started or has been promoted. `mark` includes the time of the first ID above
/// it. It is `None` if no ID has been issued yet.
pub fn identity(begun: &PrimaryStart, name: &str, format: &IdFormat, mark: Option<(u64, i128)>) {
    let begun = match begun {
        PrimaryStart::Started => format!("started with {name}"),
        PrimaryStart::Promoted => format!("promoted with {name}"),
        PrimaryStart::PromotedAfter(issuer) => format!("promoted with {name}, last ID issued with {issuer}"),
        PrimaryStart::Continuing => format!("promoted, continuing with {name}"),
        PrimaryStart::TakingOver => format!("promoted, taking over {name}"),
    };
    let at = match mark {
        None => "no ID issued yet".into(),
        Some((mark, time)) => format!("high-water mark {mark} ({})", timestamp::utc(time)),
    };
    let epoch = timestamp::utc(format.instant(0));
    log(format!("{begun}, layout \"{}\", epoch {epoch}, {at}", format.layout), "");
}

/// Warns that a promoted server may have been a primary before. IDs that it issued at that time can be above the mark.
pub fn former_primary(name: &str, lead: Nanos) {
    warn_of(
        format!(
            "the server was promoted with {name}, but the high-water mark is {:.3} s ahead of the clock",
            lead as f64 / 1e9
        ),
        "IDs with timestamps ahead of the clock have been issued. If this server was previously a primary, the mark might \
         be lower than IDs that the server issued then, because running pg_rewind or restoring a base backup replaces the \
         mark.",
        format!(
            "If this server was previously a primary, either set the mark above all IDs that the server issued as a primary, \
             or give the server a worker ID that no server has used. See {}.",
            pages::WORKER_IDS.section("Streaming replication")
        ),
    );
}

/// Warns that the server was restored from a backup or an archive.
pub fn restored(mark: i128, clock: i128) {
    warn_of(
        "restored from a backup or an archive, so the high-water mark might be below existing IDs",
        format!(
            "This server does not know which IDs were issued after the point to which it was restored. The mark is at {}, and the \
             clock shows {}.",
            timestamp::utc(mark),
            timestamp::utc(clock),
        ),
        format!(
            "Before clients connect, set the mark above all IDs that this server has issued, or give this server a worker ID \
             that no server has used. See {}.",
            pages::BAD_DAY.section("After a restore")
        ),
    );
}

/// A lower limit for the first ID that is above the high-water mark. The value is the time of this limit.
pub enum Floor {
    Witness(i128),
    Grant(i128),
}

/// Logs the time of the first ID after a start or a promotion.
pub fn new_ids_begin(first: i128, clock: i128, mark: i128, floor: Option<Floor>) {
    let (clock, mark) = (timestamp::utc(clock), timestamp::utc(mark));
    let detail = match floor {
        Some(Floor::Grant(start)) => format!(
            "The clock shows {clock}, the high-water mark is at {mark}, and the unused part of the grant begins at {}.",
            timestamp::utc(start)
        ),
        Some(Floor::Witness(witness)) => format!(
            "The clock shows {clock}, the high-water mark is at {mark}, and the mark in the witness is at {}.",
            timestamp::utc(witness)
        ),
        None => format!("The clock shows {clock}, and the high-water mark is at {mark}."),
    };
    log(format!("new IDs begin at {}", timestamp::utc(first)), detail);
}
