//! What the registry does after a failover or a restore.

use crate::bounds::{BACKUPS, ENDS, FAILOVERS, HOSTS, LOST_FORGERIES, NUMBERS, OPENS, SNAPSHOTS};
use crate::directed::STALE_MARGIN;
use crate::faults::FleetFault;
use crate::rules::{By, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::Source,
        text: "A new life begins if the timeline or the system identifier has changed.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Tables,
        text: "A new life begins if the tables were restored.",
        fails: "duplicate",
        by: By::Search(&BACKUPS),
    },
    Rule {
        fault: FleetFault::Told,
        text: "A new life begins if a renewal shows that the registry has lost changes.",
        fails: "duplicate",
        by: By::Search(&BACKUPS),
    },
    Rule {
        fault: FleetFault::OneLife,
        text: "If a failover skips timelines, the life number increases by one for each timeline. Otherwise, a renewal \
               from a lost timeline would look like evidence of another loss.",
        fails: "a server has no worker ID",
        by: By::Search(&NUMBERS),
    },
    Rule {
        fault: FleetFault::Quarantine,
        text: "A new life begins with a quarantine.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Far,
        text: "The quarantine lasts longer than any lease.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Earlier,
        text: "A quarantine never ends earlier than the previous one.",
        fails: "a quarantine ends earlier",
        by: By::Search(&HOSTS),
    },
    Rule {
        fault: FleetFault::Raised,
        text: "A new life does not change any row, because a higher bound would revive a grant that has ended.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Jump,
        text: "The common spare worker IDs are closed if a timeline is missing, because they may have been assigned on \
               that timeline.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Stale,
        text: "The common spare worker IDs are closed if the registry's state may date from the middle of a \
               quarantine. They may have been assigned during the rest of that quarantine.",
        fails: "duplicate",
        by: By::Search(&ENDS),
    },
    Rule {
        fault: FleetFault::StaleMargin,
        text: "A state is treated as later than a quarantine only if a holder was seen more than two margins after the \
               end of the quarantine.",
        fails: "duplicate",
        by: By::Directed(&FAILOVERS, STALE_MARGIN),
    },
    Rule {
        fault: FleetFault::TablesOpen,
        text: "The common spare worker IDs are closed if the tables were restored.",
        fails: "duplicate",
        by: By::Search(&BACKUPS),
    },
    Rule {
        fault: FleetFault::ToldOpen,
        text: "The common spare worker IDs are closed if a renewal has shown that changes were lost.",
        fails: "duplicate",
        by: By::Search(&SNAPSHOTS),
    },
    Rule {
        fault: FleetFault::Late,
        text: "The common spare worker IDs are closed if the latest time in the rows is more than 70 minutes old. A \
               lost renewal may have begun a life in which these worker IDs were assigned.",
        fails: "duplicate",
        by: By::Search(&LOST_FORGERIES),
    },
    Rule {
        fault: FleetFault::OpenAll,
        text: "`open()` ends only the current quarantine. The end of the previous quarantine remains the floor of the \
               ring.",
        fails: "duplicate",
        by: By::Search(&OPENS),
    },
    Rule {
        fault: FleetFault::Before,
        text: "The end of a quarantine remains the floor after the next failover, even if no server was seen in \
               between.",
        fails: "duplicate",
        by: By::Search(&OPENS),
    },
];
