//! The spare worker IDs.

use crate::bounds::{BACKUPS, FAILOVERS, LATER, NUMBERS, SLICES, SNAPSHOTS, UPGRADES};
use crate::directed::{CALM_MARGIN, SLICE_SEEN};
use crate::faults::FleetFault;
use crate::rules::{By, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::SpareLease,
        text: "A grant of a spare worker ID ends after one hour, whatever lease the server requests.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Near,
        text: "The quarantine of the spare worker IDs lasts longer than one hour.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::NearFloor,
        text: "After the quarantine of the spare worker IDs, the grants of these worker IDs begin above the end of \
               that quarantine.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::SliceFixed,
        text: "Each timeline has its own slice.",
        fails: "duplicate",
        by: By::Search(&SLICES),
    },
    Rule {
        fault: FleetFault::SliceWindow,
        text: "A slice is open only if no earlier timeline since the settled one has used the same slice.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Calm,
        text: "A timeline is settled only if the quarantine of the spare worker IDs has ended.",
        fails: "duplicate",
        by: By::Search(&SLICES),
    },
    Rule {
        fault: FleetFault::CalmMargin,
        text: "The quarantine of the spare worker IDs is treated as over only if a holder was seen more than two \
               margins after the end of the quarantine.",
        fails: "duplicate",
        by: By::Directed(&LATER, CALM_MARGIN),
    },
    Rule {
        fault: FleetFault::SliceSeen,
        text: "The times in the rows at the end of the settled timeline determine whether the holder of a worker ID in a \
               slice could have renewed its grant. Later times are ignored.",
        fails: "duplicate",
        by: By::Directed(&SLICES, SLICE_SEEN),
    },
    Rule {
        fault: FleetFault::SliceLater,
        text: "The slices are used only during the quarantine of the spare worker IDs.",
        fails: "duplicate",
        by: By::Search(&LATER),
    },
    Rule {
        fault: FleetFault::ToldSettled,
        text: "No timeline is settled after a renewal has shown that changes were lost.",
        fails: "duplicate",
        by: By::Search(&SNAPSHOTS),
    },
    Rule {
        fault: FleetFault::SystemSettled,
        text: "No timeline is settled after the system identifier has changed.",
        fails: "duplicate",
        by: By::Search(&BACKUPS),
    },
    Rule {
        fault: FleetFault::TablesSettled,
        text: "No timeline is settled after the tables were restored.",
        fails: "duplicate",
        by: By::Search(&BACKUPS),
    },
    Rule {
        fault: FleetFault::UpgradeNear,
        text: "After an upgrade from the version without slices, the spare worker IDs are in quarantine for longer \
               than any lease.",
        fails: "duplicate",
        by: By::Search(&UPGRADES),
    },
    Rule {
        fault: FleetFault::UpgradeSettled,
        text: "An upgrade from the version without slices does not settle any timeline.",
        fails: "duplicate",
        by: By::Search(&UPGRADES),
    },
    Rule {
        fault: FleetFault::UpgradeOpen,
        text: "An upgrade from the version without slices closes the common spare worker IDs, because in that version \
               they belonged to the ring.",
        fails: "duplicate",
        by: By::Search(&UPGRADES),
    },
    Rule {
        fault: FleetFault::UpgradeUnnoticed,
        text: "If the registry has failed over, an upgrade from the version without slices first begins a new life. A \
               life that began after the upgrade would open the common spare worker IDs.",
        fails: "duplicate",
        by: By::Search(&UPGRADES),
    },
    Rule {
        fault: FleetFault::Stay,
        text: "The holder of a spare worker ID gives the worker ID back after the quarantine.",
        fails: "a server has no worker ID",
        by: By::Search(&NUMBERS),
    },
];
