//! Worker IDs that the owner of the registry reserves.

use crate::bounds::RESERVATIONS;
use crate::faults::FleetFault;
use crate::rules::{By, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::Reserved,
        text: "A reservation has no end, so that no server is granted a reserved worker ID.",
        fails: "duplicate",
        by: By::Search(&RESERVATIONS),
    },
    Rule {
        fault: FleetFault::ReservedOnce,
        text: "The owner reserves a worker ID again if a failover has lost the reservation. The quarantine is the time \
               to do so.",
        fails: "duplicate",
        by: By::Search(&RESERVATIONS),
    },
];
