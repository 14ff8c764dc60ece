//! A new layout.

use crate::bounds::LAYOUTS;
use crate::faults::FleetFault;
use crate::rules::{Rule, unique};

pub const RULES: &[Rule] = &[
    unique(FleetFault::LayoutFloor, &LAYOUTS, "The grants in a new layout begin above all bounds in the old layout."),
    unique(
        FleetFault::LayoutQuarantine,
        &LAYOUTS,
        "The grants in a new layout also begin above the end of the quarantine, because any lost bounds are below \
         that point.",
    ),
    unique(
        FleetFault::LayoutBack,
        &LAYOUTS,
        "A grant that begins below the floor is not renewed, even if the layout was changed back.",
    ),
];
