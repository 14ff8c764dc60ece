//! What the registry does after a failover or a restore.

use crate::bounds::{BACKUPS, ENDS, FAILOVERS, HOSTS, LOST_FORGERIES, NUMBERS, OPENS, SNAPSHOTS};
use crate::directed::STALE_MARGIN;
use crate::faults::FleetFault;
use crate::rules::{By, Rule, unique};

pub const RULES: &[Rule] = &[
    unique(FleetFault::Source, &FAILOVERS, "A new life begins if the timeline or the system identifier has changed."),
    unique(FleetFault::Tables, &BACKUPS, "A new life begins if the tables were restored."),
    unique(FleetFault::Told, &BACKUPS, "A new life begins if a renewal shows that the registry has lost changes."),
    Rule {
        fault: FleetFault::OneLife,
        text: "If a failover skips timelines, the life number increases by one for each timeline. Otherwise, a renewal \
               from a lost timeline would look like evidence of another loss.",
        fails: "a server has no worker ID",
        by: By::Search(&NUMBERS),
    },
    unique(FleetFault::Quarantine, &FAILOVERS, "A new life begins with a quarantine."),
    unique(FleetFault::Far, &FAILOVERS, "The quarantine lasts longer than any lease."),
    Rule {
        fault: FleetFault::Earlier,
        text: "A quarantine never ends earlier than the previous one.",
        fails: "a quarantine ends earlier",
        by: By::Search(&HOSTS),
    },
    unique(
        FleetFault::Raised,
        &FAILOVERS,
        "A new life does not change any row, because a higher bound would revive a grant that has ended.",
    ),
    unique(
        FleetFault::Jump,
        &FAILOVERS,
        "The common spare worker IDs are closed if a timeline is missing, because they may have been assigned on that \
         timeline.",
    ),
    unique(
        FleetFault::Stale,
        &ENDS,
        "The common spare worker IDs are closed if the registry's state may date from the middle of a quarantine. \
         They may have been assigned during the rest of that quarantine.",
    ),
    Rule {
        fault: FleetFault::StaleMargin,
        text: "A state is treated as later than a quarantine only if a holder was seen more than two margins after the \
               end of the quarantine.",
        fails: "duplicate",
        by: By::Directed(&FAILOVERS, STALE_MARGIN),
    },
    unique(FleetFault::TablesOpen, &BACKUPS, "The common spare worker IDs are closed if the tables were restored."),
    unique(
        FleetFault::ToldOpen,
        &SNAPSHOTS,
        "The common spare worker IDs are closed if a renewal has shown that changes were lost.",
    ),
    unique(
        FleetFault::Late,
        &LOST_FORGERIES,
        "The common spare worker IDs are closed if the latest time in the rows is more than 70 minutes old. A lost \
         renewal may have begun a life in which these worker IDs were assigned.",
    ),
    unique(
        FleetFault::OpenAll,
        &OPENS,
        "`open()` ends only the current quarantine. The end of the previous quarantine remains the floor of the ring.",
    ),
    unique(
        FleetFault::Before,
        &OPENS,
        "The end of a quarantine remains the floor after the next failover, even if no server was seen in between.",
    ),
];
