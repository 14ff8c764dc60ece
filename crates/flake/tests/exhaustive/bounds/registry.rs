//! What happens to the registry.

use super::{Bounds, FAILOVER, HOUR, MINUTE, PLAIN, RENEWALS, STARTS};
use crate::step::Step;

pub const FAILOVERS: Bounds = Bounds {
    name: "failovers",
    what: "The registry fails over up to three times, with and without losing changes. Machines restart and lose their \
           witnesses. Hours and days pass",
    depth: 6,
    thorough: 9,
    steps: &[
        STARTS,
        RENEWALS,
        &[Step::Off(0), Step::Off(1)],
        FAILOVER,
        &[Step::Pass(95 * MINUTE), Step::Pass(25 * HOUR)],
    ],
    ..PLAIN
};

pub const SPARES: Bounds = Bounds {
    name: "spare worker IDs",
    what: "The registry fails over while the ring is full, so that servers keep their spare worker IDs",
    depth: 7,
    thorough: 8,
    worker_bits: 3,
    free: &[6, 7],
    steps: &[STARTS, RENEWALS, &[Step::Keep(0, 25)], FAILOVER, &[Step::Pass(55 * MINUTE), Step::Pass(95 * MINUTE)]],
    ..PLAIN
};

pub const SLICES: Bounds = Bounds {
    name: "slices",
    what: "The registry fails over up to four times in a layout with two slices",
    depth: 7,
    thorough: 10,
    worker_bits: 4,
    free: &[14, 15],
    steps: &[STARTS, &[Step::Hello(0)], FAILOVER, &[Step::Pass(55 * MINUTE)]],
    failovers: 4,
    ..PLAIN
};

pub const ENDS: Bounds = Bounds {
    name: "ends of quarantines",
    what: "The registry fails over shortly before and shortly after a quarantine ends",
    depth: 7,
    thorough: 9,
    steps: &[STARTS, &[Step::Hello(0)], FAILOVER, &[Step::Pass(55 * MINUTE), Step::Pass(24 * HOUR)]],
    failovers: 2,
    ..PLAIN
};

pub const ROWS: Bounds = Bounds {
    name: "quarantines in a row",
    what: "Several quarantines follow one another",
    depth: 8,
    thorough: 10,
    steps: &[STARTS, &[Step::Off(0)], FAILOVER, &[Step::Pass(25 * HOUR)]],
    hours: 100,
    ..PLAIN
};

pub const LATER: Bounds = Bounds {
    name: "the second part of a quarantine",
    what: "The registry fails over in the second part of a quarantine, while other servers hold all common spare \
           worker IDs",
    depth: 7,
    thorough: 9,
    free: &[0, 7],
    steps: &[STARTS, &[Step::Keep(0, 3), Step::Off(0)], FAILOVER],
    ..PLAIN
};

/// A registry that goes back without a new timeline.
pub const SNAPSHOTS: Bounds = Bounds {
    name: "snapshots of the registry",
    what: "The registry's volume is reverted, and the first renewal comes from a server with a newer grant",
    depth: 7,
    thorough: 9,
    steps: &[
        STARTS,
        &[Step::Hello(0), Step::Off(1), Step::Behind, Step::FailOver, Step::SetBack(0), Step::Pass(95 * MINUTE)],
    ],
    failovers: 2,
    ..PLAIN
};

pub const BACKUPS: Bounds = Bounds {
    name: "backups",
    what: "The registry is restored from a backup, a dump or a snapshot",
    depth: 6,
    thorough: 8,
    steps: &[
        STARTS,
        RENEWALS,
        &[
            Step::Off(0),
            Step::Behind,
            Step::FailOver,
            Step::SetBack(0),
            Step::SetBack(1),
            Step::Rebuild,
            Step::RestoreTables,
            Step::Pass(25 * HOUR),
        ],
    ],
    failovers: 13,
    ..PLAIN
};

pub const OPENS: Bounds = Bounds {
    name: "an administrator",
    what: "An administrator who knows that nothing was lost ends quarantines",
    depth: 7,
    thorough: 9,
    steps: &[STARTS, RENEWALS, &[Step::Off(0)], FAILOVER, &[Step::Open, Step::Pass(25 * HOUR)]],
    ..PLAIN
};

pub const RESERVATIONS: Bounds = Bounds {
    name: "reservations",
    what: "The owner of the registry reserves and releases a worker ID, and failovers lose the reservation",
    depth: 7,
    thorough: 8,
    free: &[0, 6],
    steps: &[
        STARTS,
        &[Step::Off(0), Step::Reserve, Step::Release],
        FAILOVER,
        &[Step::Pass(25 * MINUTE), Step::Pass(25 * HOUR)],
    ],
    hours: 80,
    ..PLAIN
};

/// The registry is upgraded from the version before the spare quarantine and the slices.
pub const UPGRADES: Bounds = Bounds {
    name: "upgrades",
    what: "The registry is upgraded, and a failover loses the upgrade",
    depth: 7,
    thorough: 9,
    free: &[6, 7],
    steps: &[STARTS, &[Step::Renew(0), Step::Off(0)], FAILOVER, &[Step::Upgrade, Step::Pass(95 * MINUTE)]],
    old: true,
    ..PLAIN
};
