//! Which renewals are granted.

use crate::bounds::{CLOCKS, CUT, FAILOVERS, FORGERIES, HOSTS, LOST_FORGERIES, MESSAGES, SERVERS, SPARES};
use crate::faults::FleetFault;
use crate::rules::{By, Rule, unique};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::Repeated,
        text: "A renewal that is repeated with the same nonce succeeds, because the first answer may have been lost.",
        fails: "fenced without a copy",
        by: By::Search(&MESSAGES),
    },
    unique(FleetFault::Expired, &SPARES, "A grant can be renewed until one margin after its end, but not later."),
    unique(
        FleetFault::ExpiredByBoth,
        &CLOCKS,
        "Only the registry's clock decides whether one margin has passed since the end of a grant.",
    ),
    unique(FleetFault::GivenAway, &FAILOVERS, "A grant is not renewed if its worker ID has a new holder."),
    Rule {
        fault: FleetFault::Copied,
        text: "A renewal with an old nonce comes from a copy, so the grant is not renewed.",
        fails: "two servers hold one worker ID",
        by: By::Search(&SERVERS),
    },
    unique(
        FleetFault::FirstMargin,
        &HOSTS,
        "After the registry has begun a new life, the first renewal of a grant must arrive before the grant ends. \
         There is no margin.",
    ),
    unique(
        FleetFault::Wanted,
        &CUT,
        "A bound is at most one lease and one margin above the registry's clock, whatever the server's clock shows.",
    ),
    Rule {
        fault: FleetFault::AdoptLower,
        text: "If the count in the holder's row is lower than the count in the renewal, the registry has lost \
               renewals, so it renews the grant.",
        fails: "fenced without a copy",
        by: By::Search(&MESSAGES),
    },
    Rule {
        fault: FleetFault::AdoptAbsent,
        text: "If the registry has no row for the worker ID in a renewal, it has lost the claim, so it renews the \
               grant.",
        fails: "displaced",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::AdoptLater,
        text: "If the row contains an earlier holder from an earlier life, the registry has lost the claim of the \
               server that sends the renewal. It renews the grant of this server.",
        fails: "displaced",
        by: By::Search(&FAILOVERS),
    },
    unique(
        FleetFault::AdoptAny,
        &FAILOVERS,
        "A renewal replaces the row of a different holder only if the renewed grant begins at least one margin above \
         the bound in the row.",
    ),
    Rule {
        fault: FleetFault::ForgedStart,
        text: "A renewal is refused if it does not contain the nonce in the row and its grant begins more than one \
               margin in the future. No registry can have made such a grant.",
        fails: "displaced",
        by: By::Search(&FORGERIES),
    },
    Rule {
        fault: FleetFault::ForgedBound,
        text: "A bound that no registry can have granted is lowered or refused.",
        fails: "a server has no worker ID",
        by: By::Search(&FORGERIES),
    },
    Rule {
        fault: FleetFault::ForgedCount,
        text: "A count that no worker ID can have reached is refused, and no answer contains such a count.",
        fails: "refused",
        by: By::Search(&LOST_FORGERIES),
    },
];
