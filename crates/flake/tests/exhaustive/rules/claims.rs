//! Which worker ID a claim gets.

use crate::bounds::{FAILOVERS, HOSTS, MESSAGES, NUMBERS, ROWS, SPARES};
use crate::directed::SPARE_MARGIN;
use crate::faults::FleetFault;
use crate::rules::{By, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::ClaimMargin,
        text: "A worker ID is free only after one margin has passed since the bound of its last grant.",
        fails: "ahead of a clock",
        by: By::Search(&MESSAGES),
    },
    Rule {
        fault: FleetFault::ClaimClock,
        text: "The start of a grant must have passed on the server's clock as well as on the registry's.",
        fails: "ahead of a clock",
        by: By::Search(&HOSTS),
    },
    Rule {
        fault: FleetFault::RingFloor,
        text: "After a quarantine, the grants of the ring begin above the end of that quarantine.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::SparesFloor,
        text: "During a quarantine, the grants of spare worker IDs begin above the end of the previous quarantine.",
        fails: "duplicate",
        by: By::Search(&ROWS),
    },
    Rule {
        fault: FleetFault::SpareSeen,
        text: "While the spare worker IDs are in quarantine, the registry does not assign one if a renewal of its \
               grant may have been lost.",
        fails: "duplicate",
        by: By::Search(&SPARES),
    },
    Rule {
        fault: FleetFault::SpareMargin,
        text: "A holder may have renewed its grant up to two margins after the bound. The latest time in the rows \
               decides whether these two margins have passed.",
        fails: "duplicate",
        by: By::Directed(&FAILOVERS, SPARE_MARGIN),
    },
    Rule {
        fault: FleetFault::FirstLease,
        text: "The first grant of a claim lasts for one margin, not for one lease.",
        fails: "a server has no worker ID",
        by: By::Search(&NUMBERS),
    },
    Rule {
        fault: FleetFault::ClaimRepeated,
        text: "A repeated claim gets the same answer.",
        fails: "a server has no worker ID",
        by: By::Search(&NUMBERS),
    },
];
