//! Which worker ID a claim gets.

use crate::bounds::{FAILOVERS, HOSTS, MESSAGES, NUMBERS, ROWS, SPARES};
use crate::directed::SPARE_MARGIN;
use crate::faults::FleetFault;
use crate::rules::{By, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::ClaimMargin,
        text: "A worker ID is free only after the bound of its last grant and one margin have passed.",
        fails: "ahead of a clock",
        by: By::Search(&MESSAGES),
    },
    Rule {
        fault: FleetFault::ClaimClock,
        text: "The start of a grant must have passed by the clock of the server, too.",
        fails: "ahead of a clock",
        by: By::Search(&HOSTS),
    },
    Rule {
        fault: FleetFault::RingFloor,
        text: "After a quarantine, the grants of the ring begin above the end of this quarantine.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::SparesFloor,
        text: "In a quarantine, the grants of spare worker IDs begin above the end of the previous quarantine.",
        fails: "duplicate",
        by: By::Search(&ROWS),
    },
    Rule {
        fault: FleetFault::SpareSeen,
        text: "While the spare worker IDs are in quarantine, the registry does not assign one whose holder can have \
               renewed its grant in what was lost.",
        fails: "duplicate",
        by: By::Search(&SPARES),
    },
    Rule {
        fault: FleetFault::SpareMargin,
        text: "A holder can have renewed its grant until two margins after its bound, measured by the latest time \
               in the rows.",
        fails: "duplicate",
        by: By::Directed(&FAILOVERS, SPARE_MARGIN),
    },
    Rule {
        fault: FleetFault::FirstLease,
        text: "The first grant of a claim is one margin long, and not one lease.",
        fails: "a server has no worker ID",
        by: By::Search(&NUMBERS),
    },
    Rule {
        fault: FleetFault::ClaimRepeated,
        text: "A claim that is repeated gets the same answer.",
        fails: "a server has no worker ID",
        by: By::Search(&NUMBERS),
    },
];
