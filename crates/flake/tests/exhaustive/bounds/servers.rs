//! What happens to servers, messages and clocks.

use super::{Bounds, FAILOVER, HOUR, MARGIN, MINUTE, PLAIN, RENEWALS, STARTS};
use crate::server::IdChoice;
use crate::step::{Forgery, Step};

pub const HOSTS: Bounds = Bounds {
    name: "clocks of the registry's hosts",
    what: "The clocks of the registry's hosts differ by one margin",
    depth: 7,
    thorough: 9,
    free: &[0, 6],
    steps: &[
        STARTS,
        &[Step::Renew(0), Step::Clock(1, MARGIN), Step::RegistryClock(0), Step::RegistryClock(MARGIN)],
        FAILOVER,
        &[Step::Pass(12 * HOUR + 2)],
    ],
    failovers: 2,
    hours: 13,
    ..PLAIN
};

/// Every server that has a worker ID with all rules has one.
pub const NUMBERS: Bounds = Bounds {
    name: "numbers",
    what: "The registry fails over, answers are lost, and machines restart, with only one worker ID in the ring",
    depth: 5,
    thorough: 6,
    free: &[0, 6],
    steps: &[
        STARTS,
        &[Step::Claim(0), Step::Claim(1), Step::Renew(0), Step::Lose(0), Step::Off(0), Step::Keep(0, 25)],
        FAILOVER,
        &[Step::Pass(25 * MINUTE), Step::Pass(95 * MINUTE)],
    ],
    failovers: 2,
    compare: true,
    ..PLAIN
};

pub const FORGERIES: Bounds = Bounds {
    name: "forged calls",
    what: "A role that can call the registry's functions forges renewals",
    depth: 7,
    thorough: 9,
    free: &[0],
    steps: &[&[
        Step::Up(0),
        Step::Renew(0),
        Step::Forge(Forgery::Grant),
        Step::Forge(Forgery::Bound),
        Step::Forge(Forgery::Life),
        Step::Forge(Forgery::Start),
        Step::Pass(50 * HOUR),
    ]],
    hours: 200,
    compare: true,
    ..PLAIN
};

pub const LOST_FORGERIES: Bounds = Bounds {
    name: "forged calls and failovers",
    what: "A role that can call the registry's functions forges renewals, and failovers lose them",
    depth: 6,
    thorough: 8,
    steps: &[
        STARTS,
        RENEWALS,
        &[Step::Forge(Forgery::Life), Step::Forge(Forgery::Count)],
        FAILOVER,
        &[Step::Pass(95 * MINUTE), Step::Pass(25 * HOUR)],
    ],
    ..PLAIN
};

pub const MESSAGES: Bounds = Bounds {
    name: "messages",
    what: "Answers are lost, calls are delayed, PostgreSQL and machines restart, and the registry fails over",
    depth: 6,
    thorough: 7,
    free: &[0, 6, 7],
    steps: &[
        &[Step::Claim(0), Step::Claim(1)],
        RENEWALS,
        &[
            Step::Lose(0),
            Step::Double(0),
            Step::Arrive,
            Step::Restart(0),
            Step::Off(0),
            Step::Behind,
            Step::FailOverBehind,
            Step::Pass(21 * MINUTE),
            Step::Pass(13 * HOUR),
        ],
    ],
    ..PLAIN
};

pub const CLOCKS: Bounds = Bounds {
    name: "clocks",
    what: "The clocks of the servers and of the registry are wrong",
    depth: 6,
    thorough: 7,
    free: &[0, 6, 7],
    steps: &[
        STARTS,
        &[
            Step::Renew(0),
            Step::Clock(0, -13 * 3_600_000_000),
            Step::Clock(0, 30 * 3_600_000_000),
            Step::Clock(1, -3_600_000_000),
            Step::RegistryClock(0),
            Step::RegistryClock(MARGIN),
            Step::Off(0),
        ],
        FAILOVER,
        &[Step::Pass(11 * MINUTE), Step::Pass(12 * HOUR + 2)],
    ],
    ..PLAIN
};

pub const CUT: Bounds = Bounds {
    name: "servers that are cut off",
    what: "The clocks of the servers are wrong, and each server is cut off from the registry after its first renewal",
    depth: 7,
    thorough: 9,
    free: &[0, 6],
    steps: &[
        STARTS,
        &[Step::Clock(0, -13 * 3_600_000_000), Step::Clock(0, 30 * 3_600_000_000)],
        FAILOVER,
        &[Step::Pass(13 * HOUR), Step::Pass(25 * HOUR)],
    ],
    ..PLAIN
};

pub const SERVERS: Bounds = Bounds {
    name: "servers",
    what: "Disks and memory are copied, data directories are restored, and servers issue IDs",
    depth: 6,
    thorough: 8,
    free: &[0],
    places: 3,
    steps: &[
        STARTS,
        &[Step::Up(2)],
        RENEWALS,
        &[
            Step::Renew(2),
            Step::Restart(0),
            Step::CloneDisk(0),
            Step::CloneMemory(0),
            Step::Backup(0),
            Step::Restore(0),
            Step::Issue(0, IdChoice::Lowest),
            Step::Issue(0, IdChoice::Highest),
            Step::Issue(1, IdChoice::Lowest),
            Step::Issue(1, IdChoice::Highest),
            Step::Pass(13 * HOUR),
        ],
    ],
    ..PLAIN
};

pub const LAYOUTS: Bounds = Bounds {
    name: "layouts",
    what: "The layout is changed and changed back",
    depth: 7,
    thorough: 9,
    worker_bits: 1,
    free: &[0, 1],
    steps: &[
        STARTS,
        &[
            Step::Renew(0),
            Step::Off(0),
            Step::FailOverBehind,
            Step::ChangeLayout,
            Step::Configure(0),
            Step::Configure(1),
            Step::Pass(7 * HOUR),
            Step::Pass(50 * HOUR),
        ],
    ],
    hours: 200,
    ..PLAIN
};
