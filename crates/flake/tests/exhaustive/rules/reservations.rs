//! Worker IDs that the owner of the registry reserves.

use crate::bounds::RESERVATIONS;
use crate::faults::FleetFault;
use crate::rules::{Rule, unique};

pub const RULES: &[Rule] = &[
    unique(
        FleetFault::Reserved,
        &RESERVATIONS,
        "A reservation has no end, so no server is granted a reserved worker ID.",
    ),
    unique(
        FleetFault::ReservedOnce,
        &RESERVATIONS,
        "If a failover has lost a reservation, the owner must reserve the worker ID again during the quarantine.",
    ),
];
