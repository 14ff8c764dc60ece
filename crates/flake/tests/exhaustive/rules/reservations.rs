//! Worker IDs that the owner of the registry reserves.

use crate::bounds::RESERVATIONS;
use crate::faults::FleetFault;
use crate::rules::{By, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::Reserved,
        text: "A reservation has no end, so no server is granted a reserved worker ID.",
        fails: "duplicate",
        by: By::Search(&RESERVATIONS),
    },
    Rule {
        fault: FleetFault::ReservedOnce,
        text: "If a failover has lost a reservation, the owner must reserve the worker ID again during the quarantine.",
        fails: "duplicate",
        by: By::Search(&RESERVATIONS),
    },
];
