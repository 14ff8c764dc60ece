//! A new layout.

use crate::bounds::LAYOUTS;
use crate::faults::FleetFault;
use crate::rules::{By, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::LayoutFloor,
        text: "The grants of a new layout begin above all bounds of the old one.",
        fails: "duplicate",
        by: By::Search(&LAYOUTS),
    },
    Rule {
        fault: FleetFault::LayoutQuarantine,
        text: "The grants of a new layout begin above the end of the quarantine, too, because the bounds that were \
               lost are below it.",
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
