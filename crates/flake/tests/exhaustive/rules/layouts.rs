//! A new layout.

use crate::bounds::LAYOUTS;
use crate::faults::FleetFault;
use crate::rules::{By, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::LayoutFloor,
        text: "The grants in a new layout begin above all bounds in the old layout.",
        fails: "duplicate",
        by: By::Search(&LAYOUTS),
    },
    Rule {
        fault: FleetFault::LayoutQuarantine,
        text: "The grants in a new layout also begin above the end of the quarantine, because any lost bounds are \
               below that point.",
        fails: "duplicate",
        by: By::Search(&LAYOUTS),
    },
    Rule {
        fault: FleetFault::LayoutBack,
        text: "A grant that begins below the floor is not renewed, even if the layout was changed back.",
        fails: "duplicate",
        by: By::Search(&LAYOUTS),
    },
];
