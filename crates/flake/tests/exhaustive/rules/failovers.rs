//! What the registry does after a failover or a restore.

use crate::bounds::{BACKUPS, ENDS, FAILOVERS, HOSTS, LOST_FORGERIES, NUMBERS, OPENS, SNAPSHOTS};
use crate::directed::STALE_MARGIN;
use crate::faults::FleetFault;
use crate::rules::{By, Rule};

pub const RULES: &[Rule] = &[
    Rule {
        fault: FleetFault::Source,
        text: "A new timeline or system identifier begins a new life.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Tables,
        text: "Tables that were restored begin a new life.",
        fails: "duplicate",
        by: By::Search(&BACKUPS),
    },
    Rule {
        fault: FleetFault::Told,
        text: "A renewal that knows more than the registry begins a new life.",
        fails: "duplicate",
        by: By::Search(&BACKUPS),
    },
    Rule {
        fault: FleetFault::OneLife,
        text: "A failover that skips timelines begins as many lives as timelines. Otherwise, a renewal of the lost \
               timeline looks as if the registry had lost something again.",
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
        text: "The quarantine lasts longer than every lease.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Earlier,
        text: "A quarantine never ends earlier than the one before.",
        fails: "a quarantine ends earlier",
        by: By::Search(&HOSTS),
    },
    Rule {
        fault: FleetFault::Raised,
        text: "A new life changes no row. A higher bound would revive a grant that has ended.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Jump,
        text: "The common spare worker IDs are closed if a timeline is missing, because they can have been assigned \
               on it.",
        fails: "duplicate",
        by: By::Search(&FAILOVERS),
    },
    Rule {
        fault: FleetFault::Stale,
        text: "The common spare worker IDs are closed if the state can come from within a quarantine, because they \
               can have been assigned in the rest of it.",
        fails: "duplicate",
        by: By::Search(&ENDS),
    },
    Rule {
        fault: FleetFault::StaleMargin,
        text: "A state is from after a quarantine only if a holder was seen two margins after the end of the \
               quarantine.",
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
        text: "The common spare worker IDs are closed if a renewal told the registry of a loss.",
        fails: "duplicate",
        by: By::Search(&SNAPSHOTS),
    },
    Rule {
        fault: FleetFault::Late,
        text: "The common spare worker IDs are closed if the latest time in the rows is more than 70 minutes ago. In \
               what was lost, a renewal can have begun a life, in which they were assigned.",
        fails: "duplicate",
        by: By::Search(&LOST_FORGERIES),
    },
    Rule {
        fault: FleetFault::OpenAll,
        text: "`open()` ends only the current quarantine. The end of the previous one remains the floor of the \
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
