//! A Patroni cluster under load through ten failovers: the IDs that the clients received, the duplicates among them, and how long
//! nothing could be written.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cluster::{HaProxy, Host, Patroni, not_tested, within};

use crate::effort::{lasting, rounds, scaled};
use crate::failover_load::{ReceivedId, Writers};
use crate::machine::Machine;
use crate::report::{BenchReport, Figure};
use crate::stats::Sample;

/// The programs without which this part is left out.
const PROGRAMS: [&str; 3] = ["patroni", "etcd", "haproxy"];

/// The ways to get a worker ID. The members of the second cluster have one worker ID, because it is in the configuration that they
/// share. Each member of the third one has its own worker ID in its own configuration.
const RIVALS: [&str; 3] = [
    "worker IDs from the registry in the cluster",
    "one worker ID in the common configuration",
    "each member its own worker ID, without a registry",
];

/// How long the sessions write before the first failover, and after each one.
const CALM: Duration = Duration::from_secs(3);
/// How long a former primary without Patroni runs beside the new primary before Patroni is started again, and how long Patroni is
/// stopped at most.
const BESIDE: Duration = Duration::from_secs(5);
/// The longest wait for anything that Patroni does.
const PATIENCE: Duration = Duration::from_secs(90);

/// What happens to the cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disruption {
    Reinit,
    Switchover,
    KillPostgres,
    KillPatroni,
    FreezePatroni,
    KillBoth,
    StopEtcd,
}

/// The failovers, in order. A member that is reinitialized asks the registry for a worker ID. It comes first, because the registry
/// assigns few worker IDs in the quarantine after a failover.
const FAILOVERS: [Disruption; 10] = [
    Disruption::Reinit,
    Disruption::KillPatroni,
    Disruption::Switchover,
    Disruption::KillPostgres,
    Disruption::FreezePatroni,
    Disruption::KillBoth,
    Disruption::StopEtcd,
    Disruption::Switchover,
    Disruption::KillPatroni,
    Disruption::KillBoth,
];

/// The failovers of a short run.
const SHORT: [Disruption; 1] = [Disruption::Switchover];

impl Disruption {
    fn name(self) -> &'static str {
        match self {
            Disruption::Reinit => "switchover to a member after reinit",
            Disruption::Switchover => "switchover",
            Disruption::KillPostgres => "kill -9 of PostgreSQL",
            Disruption::KillPatroni => "kill -9 of Patroni",
            Disruption::FreezePatroni => "Patroni frozen",
            Disruption::KillBoth => "kill -9 of both",
            Disruption::StopEtcd => "etcd frozen",
        }
    }

    /// Does this to the leader, and returns as soon as all members follow a leader.
    fn happen(self, patroni: &mut Patroni) {
        let leader = patroni.wait_for_members();
        let other = (leader + 1) % patroni.members.len();
        match self {
            Disruption::Reinit => {
                reinitialize(patroni, leader, other);
                patroni.wait_for_members();
                patroni.wait_for_workers();
                patroni.switchover(other);
            }
            Disruption::Switchover => patroni.switchover(other),
            Disruption::KillPostgres => {
                let killed = patroni.members[leader].postmaster();
                patroni.members[leader].kill_postgres();
                let again = || patroni.members[leader].postmaster().is_some_and(|now| Some(now) != killed);
                assert!(within(PATIENCE, again), "PostgreSQL is not started again:\n{}", patroni.log());
            }
            Disruption::KillPatroni => {
                patroni.members[leader].kill_patroni();
                wait_for_other(patroni, leader);
                thread::sleep(lasting(BESIDE));
                patroni.members[leader].start();
            }
            Disruption::FreezePatroni => {
                patroni.members[leader].signal_patroni("STOP");
                wait_for_other(patroni, leader);
                thread::sleep(lasting(BESIDE));
                patroni.members[leader].signal_patroni("CONT");
            }
            Disruption::KillBoth => {
                patroni.members[leader].kill_patroni();
                patroni.members[leader].kill_postgres();
                wait_for_other(patroni, leader);
                patroni.members[leader].start();
            }
            Disruption::StopEtcd => {
                patroni.freeze_etcd();
                // The leader becomes read-only, because it cannot renew its lock.
                assert!(within(PATIENCE, || patroni.leader_now().is_none()), "the leader stays:\n{}", patroni.log());
                patroni.thaw_etcd();
            }
        }
        patroni.wait_for_members();
    }
}

/// Waits until a member other than this one is the leader. A frozen member is not asked, because it accepts connections and does not
/// answer.
fn wait_for_other(patroni: &Patroni, leader: usize) {
    let others = || patroni.members.iter().enumerate().any(|(number, member)| number != leader && member.is_leader());
    assert!(within(PATIENCE, others), "nobody takes over:\n{}", patroni.log());
}

/// Replaces the data directory of a member. The base backup begins with a checkpoint of the leader, which lasts for minutes unless
/// another one is requested.
fn reinitialize(patroni: &Patroni, leader: usize, member: usize) {
    let (mut client, copied) = (patroni.members[leader].connect(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !copied.load(Ordering::Relaxed) {
                client.batch_execute("CHECKPOINT").expect("a superuser may");
                thread::sleep(Duration::from_millis(500));
            }
        });
        patroni.members[member].reinitialize();
        copied.store(true, Ordering::Relaxed);
    });
}

/// What was observed during all failovers of a cluster.
struct FailoverTotals {
    ids: usize,
    duplicates: usize,
    /// The number of IDs that were received for the second time, and the longest time without a write, for each failover.
    failovers: Vec<(usize, f64)>,
}

/// Measures ten failovers of each cluster. Returns `None` if a program is missing.
pub fn run() -> Option<BenchReport> {
    let host = Host::get();
    if let Some(missing) = PROGRAMS.iter().find(|name| host.debian_program(name).is_none()) {
        eprintln!("note: there is no {missing} (scripts/setup engines); the benchmark of failovers is left out");
        not_tested(&format!("the benchmark of failovers, because {missing} is missing"));
        return None;
    }
    let kinds = if scaled(FAILOVERS.len() as u64) < FAILOVERS.len() as u64 { &SHORT[..] } else { &FAILOVERS[..] };
    let rounds = rounds(1);
    let mut machine = None;
    let mut seen = RIVALS.map(|_| Vec::new());
    for _ in 0..rounds {
        for (rival, seen) in seen.iter_mut().enumerate() {
            let (mut patroni, name) = (start(rival), RIVALS[rival]);
            if rival == 0 {
                machine = Some(Machine::of(&mut patroni.connect()));
            }
            println!("==> {} failovers, {name}", kinds.len());
            seen.push(fail_over(&mut patroni, kinds));
        }
    }
    let notes = [
        "three members, each of them like a machine of its own, and one etcd; clients and members share the processors; Patroni with \
         ttl 8 s, loop_wait 1 s, retry_timeout 3 s; replication is asynchronous",
        "clients: four sessions insert rows through HAProxy, which checks the members every 0.3 s and ends the connections to a former \
         primary; four sessions connect to the primary themselves, and keep their connection as long as the server accepts their rows",
        "duplicates: how often a client received an ID that a client had received before",
        "longest gap: the longest time in which no row was inserted through HAProxy, until all members follow the leader again",
        "kill -9 of Patroni, and Patroni frozen: the former primary accepts rows for 5 s beside the new one",
    ];
    Some(BenchReport {
        part: "failovers".into(),
        machine: machine.expect("a round"),
        notes: notes.map(String::from).to_vec(),
        figures: figures(kinds, &seen),
    })
}

/// Starts a cluster with the worker IDs of this rival.
fn start(rival: usize) -> Patroni {
    let name = format!("bench-failovers-pg{}", cluster::major());
    let settings = [("fsync", "on"), ("max_connections", "100")];
    let patroni = match rival {
        0 => Patroni::with_registry(&name, &settings),
        1 => with_common_worker(&name, &settings),
        _ => Patroni::with_worker_ids(&name, |member| member, &settings),
    };
    let table = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), number bigint NOT NULL)";
    patroni.connect().batch_execute(table).expect("a superuser may");
    patroni
}

/// Starts a cluster whose common configuration has a worker ID in the place of the registry.
fn with_common_worker(name: &str, settings: &[(&'static str, &str)]) -> Patroni {
    let registry = "snowflake_pg.registry: ";
    let line = |line: &str| match line.find(registry) {
        Some(at) => format!("{}snowflake_pg.worker_id: 1\n", &line[..at]),
        None => format!("{line}\n"),
    };
    let settings = |_| settings.iter().map(|(name, value)| (*name, (*value).into())).collect();
    let mut patroni = Patroni::prepare(name, |common| common.lines().map(line).collect(), settings);
    patroni.start();
    patroni.connect().batch_execute("CREATE EXTENSION snowflake_pg").expect("the extension is installed");
    patroni
}

/// Lets sessions write through all failovers.
fn fail_over(patroni: &mut Patroni, kinds: &[Disruption]) -> FailoverTotals {
    let haproxy = HaProxy::start(&format!("bench-failovers-pg{}", cluster::major()), patroni, |text| text);
    drop(haproxy.connect(patroni, patroni.leader()));
    let writers = Writers::start(&haproxy.config(5000), &patroni.config());
    let calm = lasting(CALM);
    thread::sleep(calm);
    let mut times = Vec::new();
    for (number, kind) in kinds.iter().enumerate() {
        println!("    {}: {}", number + 1, kind.name());
        let begun = Instant::now();
        kind.happen(patroni);
        // The gap ends when clients write again.
        let leader = patroni.leader();
        drop(haproxy.connect(patroni, leader));
        thread::sleep(calm);
        times.push((begun, Instant::now()));
    }
    count(&writers.finish(), &times)
}

/// Counts the duplicates, and finds the longest gap in each of these spans of time.
fn count(drawn: &[ReceivedId], times: &[(Instant, Instant)]) -> FailoverTotals {
    let mut first: HashMap<i64, Instant> = HashMap::with_capacity(drawn.len());
    let mut failovers = vec![(0, 0.0); times.len()];
    let mut duplicates = 0;
    for one in drawn {
        if first.insert(one.id, one.at).is_some() {
            duplicates += 1;
            if let Some(number) = times.iter().position(|(_, end)| one.at < *end) {
                failovers[number].0 += 1;
            }
        }
    }
    for ((begun, end), (_, gap)) in times.iter().zip(&mut failovers) {
        let within = drawn.iter().filter(|one| one.through_proxy && (*begun..*end).contains(&one.at)).map(|one| one.at);
        let all: Vec<Instant> = [*begun].into_iter().chain(within).chain([*end]).collect();
        *gap = all.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).fold(0.0, f64::max);
    }
    FailoverTotals { ids: drawn.len(), duplicates, failovers }
}

fn figures(kinds: &[Disruption], seen: &[Vec<FailoverTotals>; RIVALS.len()]) -> Vec<Figure> {
    let turn = format!("{} failovers", kinds.len());
    let figure = |name: &str, unit: &str, turn: &str, value: &dyn Fn(&FailoverTotals) -> Vec<f64>| {
        let samples = seen.each_ref().map(|rounds| rounds.iter().flat_map(value).collect::<Sample>());
        Figure::new(name, unit, turn, &RIVALS, &samples)
    };
    let mut figures = vec![
        figure("IDs received", "IDs", &turn, &|seen| vec![seen.ids as f64]),
        figure("duplicates", "IDs", &turn, &|seen| vec![seen.duplicates as f64]),
        figure("longest gap in writes of a failover", "s", "one failover", &|seen| {
            seen.failovers.iter().map(|(_, gap)| *gap).collect()
        }),
    ];
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, kind) in kinds.iter().enumerate() {
        let time = times.entry(kind.name()).or_default();
        *time += 1;
        let name = if *time == 1 { kind.name().to_string() } else { format!("{}, again", kind.name()) };
        figures.push(figure(&format!("duplicates: {name}"), "IDs", "one failover", &|seen| {
            vec![seen.failovers[number].0 as f64]
        }));
        figures.push(figure(&format!("longest gap in writes: {name}"), "s", "one failover", &|seen| {
            vec![seen.failovers[number].1]
        }));
    }
    figures
}
