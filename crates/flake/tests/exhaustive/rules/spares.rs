//! The spare worker IDs.

use crate::bounds::{BACKUPS, FAILOVERS, LATER, NUMBERS, SLICES, SNAPSHOTS, UPGRADES};
use crate::directed::{CALM_MARGIN, SLICE_SEEN};
use crate::faults::FleetFault;
use crate::rules::{By, Rule, unique};

pub const RULES: &[Rule] = &[
    unique(
        FleetFault::SpareLease,
        &FAILOVERS,
        "A grant of a spare worker ID ends after one hour, whatever lease the server requests.",
    ),
    unique(FleetFault::Near, &FAILOVERS, "The quarantine of the spare worker IDs lasts longer than one hour."),
    unique(
        FleetFault::NearFloor,
        &FAILOVERS,
        "After the quarantine of the spare worker IDs, the grants of these worker IDs begin above the end of that \
         quarantine.",
    ),
    unique(FleetFault::SliceFixed, &SLICES, "Each timeline has its own slice."),
    unique(
        FleetFault::SliceWindow,
        &FAILOVERS,
        "A slice is open only if no earlier timeline since the settled one has used the same slice.",
    ),
    unique(
        FleetFault::Calm,
        &SLICES,
        "A timeline is settled only if the quarantine of the spare worker IDs has ended.",
    ),
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
    unique(FleetFault::SliceLater, &LATER, "The slices are used only during the quarantine of the spare worker IDs."),
    unique(
        FleetFault::ToldSettled,
        &SNAPSHOTS,
        "No timeline is settled after a renewal has shown that changes were lost.",
    ),
    unique(FleetFault::SystemSettled, &BACKUPS, "No timeline is settled after the system identifier has changed."),
    unique(FleetFault::TablesSettled, &BACKUPS, "No timeline is settled after the tables were restored."),
    unique(
        FleetFault::UpgradeNear,
        &UPGRADES,
        "After an upgrade from the version without slices, the spare worker IDs are in quarantine for longer than any \
         lease.",
    ),
    unique(
        FleetFault::UpgradeSettled,
        &UPGRADES,
        "An upgrade from the version without slices does not settle any timeline.",
    ),
    unique(
        FleetFault::UpgradeOpen,
        &UPGRADES,
        "An upgrade from the version without slices closes the common spare worker IDs, because in that version they \
         belonged to the ring.",
    ),
    unique(
        FleetFault::UpgradeUnnoticed,
        &UPGRADES,
        "If the registry has failed over, an upgrade from the version without slices first begins a new life. A life \
         that began after the upgrade would open the common spare worker IDs.",
    ),
    Rule {
        fault: FleetFault::Stay,
        text: "The holder of a spare worker ID gives the worker ID back after the quarantine.",
        fails: "a server has no worker ID",
        by: By::Search(&NUMBERS),
    },
];
