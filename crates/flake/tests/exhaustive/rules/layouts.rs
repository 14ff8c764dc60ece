//! A new layout.

use crate::bounds::LAYOUTS;
use crate::faults::Fault;
use crate::rules::{By, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        fault: Fault::LayoutFloor,
        text: "The grants of a new layout begin above all bounds of the old one.",
        fails: "duplicate",
        by: By::Search(&LAYOUTS),
    },
    Rule {
        fault: Fault::LayoutQuarantine,
        text: "The grants of a new layout begin above the end of the quarantine, too, because the bounds that were \
               lost are below it.",
        fails: "duplicate",
        by: By::Search(&LAYOUTS),
    },
    Rule {
        fault: Fault::LayoutBack,
        text: "A grant that begins below the floor is not renewed, even if the layout was changed back.",
        fails: "duplicate",
        by: By::Search(&LAYOUTS),
    },
];
