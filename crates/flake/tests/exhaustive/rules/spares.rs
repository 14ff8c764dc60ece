//! The spare worker IDs.

use crate::bounds::{BACKUPS, FAILOVERS, LATER, NUMBERS, SLICES, SNAPSHOTS, UPGRADES};
use crate::directed::{CALM_MARGIN, SLICE_SEEN};
use crate::faults::FleetFault;
use crate::rules::{By, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::SpareLease,
        text: "A grant of a spare worker ID ends after an hour, whatever lease the server asks for.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Near,
        text: "The quarantine of the spare worker IDs lasts longer than an hour.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::NearFloor,
        text: "After the quarantine of the spare worker IDs, their grants begin above its end.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::SliceFixed,
        text: "Each timeline has a slice of its own.",
        fails: "duplicate",
        by: By::Search(&SLICES),
    },
    Rule {
        fault: FleetFault::SliceWindow,
        text: "A slice is open only if no earlier timeline since the settled one had the same slice.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Calm,
        text: "A timeline is settled only if the quarantine of the spare worker IDs was over.",
        fails: "duplicate",
        by: By::Search(&SLICES),
    },
    Rule {
        fault: FleetFault::CalmMargin,
        text: "The quarantine of the spare worker IDs was over only if a holder was seen two margins after its end.",
        fails: "duplicate",
        by: By::Directed(&LATER, CALM_MARGIN),
    },
    Rule {
        fault: FleetFault::SliceSeen,
        text: "The rows at the end of the settled timeline decide whether a holder in a slice can have renewed its \
               grant. Later times in the rows do not count.",
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
        text: "No timeline is settled after a renewal told the registry of a loss.",
        fails: "duplicate",
        by: By::Search(&SNAPSHOTS),
    },
    Rule {
        fault: FleetFault::SystemSettled,
        text: "No timeline is settled after the system identifier changed.",
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
        text: "After the upgrade from the version without slices, the spare worker IDs are in quarantine for longer \
               than every lease.",
        fails: "duplicate",
        by: By::Search(&UPGRADES),
    },
    Rule {
        fault: FleetFault::UpgradeSettled,
        text: "The upgrade from the version without slices settles no timeline.",
        fails: "duplicate",
        by: By::Search(&UPGRADES),
    },
    Rule {
        fault: FleetFault::UpgradeOpen,
        text: "The upgrade from the version without slices closes the common spare worker IDs, because they were in the \
               ring before.",
        fails: "duplicate",
        by: By::Search(&UPGRADES),
    },
    Rule {
        fault: FleetFault::UpgradeUnnoticed,
        text: "The upgrade from the version without slices first begins a life if the registry has failed over. A life \
               that begins after the upgrade would open the common spare worker IDs.",
        fails: "duplicate",
        by: By::Search(&UPGRADES),
    },
    Rule {
        fault: FleetFault::Stay,
        text: "The holder of a spare worker ID gives it back after the quarantine.",
        fails: "a server has no worker ID",
        by: By::Search(&NUMBERS),
    },
];
