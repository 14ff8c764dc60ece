//! What a server does.

use crate::bounds::{MESSAGES, SERVERS};
use crate::faults::FleetFault;
use crate::rules::{By, Rule, unique};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::PendingChanged,
        text: "A server repeats a renewal with the same nonce until it gets an answer.",
        fails: "fenced without a copy",
        by: By::Search(&MESSAGES),
    },
    Rule {
        fault: FleetFault::PendingNotStored,
        text: "A server stores the nonce of a renewal in its witness before it sends the renewal.",
        fails: "fenced without a copy",
        by: By::Search(&MESSAGES),
    },
    unique(FleetFault::Bound, &SERVERS, "A server issues no ID above the bound of its grant."),
    unique(FleetFault::Start, &SERVERS, "A server issues no ID below the start of its grant."),
    unique(FleetFault::Used, &SERVERS, "The witness contains a mark that is above all issued IDs."),
    Rule {
        fault: FleetFault::WitnessOnDisk,
        text: "The witness is kept in memory, not on disk, because a copy of the disk must not contain it.",
        fails: "fenced without a copy",
        by: By::Search(&SERVERS),
    },
];
