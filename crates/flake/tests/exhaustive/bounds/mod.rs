//! What a search looks at.

mod registry;
mod servers;

use crate::step::Step;

pub use registry::{BACKUPS, ENDS, FAILOVERS, LATER, OPENS, RESERVATIONS, ROWS, SLICES, SNAPSHOTS, SPARES, UPGRADES};
pub use servers::{CLOCKS, CUT, FORGERIES, HOSTS, LAYOUTS, LOST_FORGERIES, MESSAGES, NUMBERS, SERVERS};

/// The beginning, the steps and the limits of a search.
pub struct Bounds {
    pub name: &'static str,
    /// What happens, in words.
    pub what: &'static str,
    pub worker_bits: u32,
    /// The worker IDs that other servers do not hold all the time.
    pub free: &'static [u32],
    pub servers: usize,
    /// The number of servers with copies.
    pub places: usize,
    pub steps: &'static [&'static [Step]],
    /// The number of steps at most, in an everyday run and in a run with `THOROUGH=1`.
    pub depth: usize,
    pub thorough: usize,
    /// The number of failovers at most.
    pub failovers: u32,
    /// Nothing happens after this many hours.
    pub hours: i64,
    /// True if a server fails that has no worker ID without a rule, and has one with all rules.
    pub compare: bool,
    /// True if the registry begins with an earlier version.
    pub old: bool,
}

impl Bounds {
    /// Returns true if both servers can do the same.
    pub fn alike(&self) -> bool {
        self.steps().all(|step| self.steps().any(|other| other == step.exchanged()))
    }

    pub fn steps(&self) -> impl Iterator<Item = Step> {
        self.steps.iter().copied().flatten().copied()
    }
}

const STARTS: &[Step] = &[Step::Up(0), Step::Up(1)];
const RENEWALS: &[Step] = &[Step::Renew(0), Step::Renew(1)];
/// Failovers with and without a loss.
const FAILOVER: &[Step] = &[Step::Behind, Step::FailOver, Step::FailOverBehind];

const PLAIN: Bounds = Bounds {
    name: "",
    what: "",
    worker_bits: 3,
    free: &[0, 6, 7],
    servers: 2,
    places: 2,
    steps: &[],
    depth: 0,
    thorough: 0,
    failovers: 3,
    hours: 60,
    compare: false,
    old: false,
};

pub const MINUTE: i64 = 60;
pub const HOUR: i64 = 60 * MINUTE;
pub const MARGIN: i64 = 600_000_000;

pub const ALL: &[&Bounds] = &[
    &FAILOVERS,
    &ENDS,
    &ROWS,
    &SPARES,
    &LATER,
    &SLICES,
    &MESSAGES,
    &CLOCKS,
    &CUT,
    &HOSTS,
    &SERVERS,
    &SNAPSHOTS,
    &BACKUPS,
    &OPENS,
    &LAYOUTS,
    &UPGRADES,
    &NUMBERS,
    &FORGERIES,
    &LOST_FORGERIES,
    &RESERVATIONS,
];
