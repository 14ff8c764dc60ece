//! Which worker ID a claim gets.

use crate::bounds::{FAILOVERS, HOSTS, MESSAGES, NUMBERS, ROWS, SPARES};
use crate::directed::SPARE_MARGIN;
use crate::faults::FleetFault;
use crate::rules::{By, Rule, unique};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::ClaimMargin,
        text: "A worker ID does not become free until one margin after the end of its last grant.",
        fails: "ahead of a clock",
        by: By::Search(&MESSAGES),
    },
    Rule {
        fault: FleetFault::ClaimClock,
        text: "A grant must begin in the past according to both the server's clock and the registry's clock.",
        fails: "ahead of a clock",
        by: By::Search(&HOSTS),
    },
    unique(
        FleetFault::RingFloor,
        &FAILOVERS,
        "After a quarantine, the grants of worker IDs in the ring begin above the end of that quarantine.",
    ),
    unique(
        FleetFault::SparesFloor,
        &ROWS,
        "During a quarantine, the grants of spare worker IDs contain only IDs above the end of the previous \
         quarantine.",
    ),
    unique(
        FleetFault::SpareSeen,
        &SPARES,
        "While the spare worker IDs are in quarantine, the registry does not assign a spare worker ID if a renewal of \
         its grant may have been lost.",
    ),
    Rule {
        fault: FleetFault::SpareMargin,
        text: "A holder may have renewed its grant up to two margins after the end of the grant. The latest time in \
               the rows decides whether this period is over.",
        fails: "duplicate",
        by: By::Directed(&FAILOVERS, SPARE_MARGIN),
    },
    Rule {
        fault: FleetFault::FirstLease,
        text: "The grant that answers a claim lasts for one margin, not for one lease.",
        fails: "a server has no worker ID",
        by: By::Search(&NUMBERS),
    },
    Rule {
        fault: FleetFault::ClaimRepeated,
        text: "If a server repeats a claim, it gets the same answer again.",
        fails: "a server has no worker ID",
        by: By::Search(&NUMBERS),
    },
];
