//! Sessions draw IDs while the members of a cluster are switched, killed, rewound and reinitialized. Every ID that a session receives
//! counts, also those of an old primary that goes on beside the new one.

use std::time::Duration;

use cluster::{Answer, Ask, Client, History, Load, Patroni, assert_caught, check_unique, ensure, last_to_draw, within};

const PATIENCE: Duration = Duration::from_secs(120);

/// The servers issue 400 IDs a second without gaps, up to ten seconds ahead of their clocks. If two of them have the same worker ID,
/// they issue the same IDs for certain. Ticks are shorter than those of other sparse servers, so that no session waits for long.
pub const SPARSE: [(&str, &str); 2] = [("snowflake_pg.layout", "37:24:2@10ms"), ("snowflake_pg.max_ahead", "10s")];

/// The ways in which the sessions draw IDs.
pub const ASKS: &[Ask] = &[Ask::Nextval, Ask::Insert];

/// How the members get their worker IDs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AssignedBy {
    Registry,
    /// Each member has a worker ID in its own file.
    Member,
    /// All members have the same worker ID, in the common configuration.
    Common,
}

struct FailoverStory {
    patroni: Patroni,
    load: Load,
    ledger: History,
}

impl FailoverStory {
    /// Starts a cluster, and four sessions that draw IDs on the current primary.
    fn begin(test: &str, way: AssignedBy) -> FailoverStory {
        let patroni = match way {
            AssignedBy::Registry => Patroni::with_registry(test, &SPARSE),
            AssignedBy::Member => Patroni::with_worker_ids(test, |member| member, &SPARSE),
            AssignedBy::Common => Patroni::with_worker_ids(test, |_| 1, &SPARSE),
        };
        let sql = "CREATE TABLE load_rows (id bigint DEFAULT snowflake_nextval())";
        patroni.connect().batch_execute(sql).expect("a superuser may");
        let load = Load::at(&patroni.config(), 4, ASKS, "");
        FailoverStory { patroni, load, ledger: History::default() }
    }

    fn workers(&self) -> Vec<String> {
        self.patroni.members.iter().map(cluster::PatroniMember::worker).collect()
    }

    /// Ends the sessions, and checks what all of them have received.
    fn end(mut self) -> Result<(), String> {
        self.ledger.merge(self.load.finish());
        println!("{} IDs, {:?}", self.ledger.len(), self.ledger.errors);
        self.ledger.check(5_000)
    }

    /// Kills Patroni on the leader. Its server goes on beside the new primary, until both have issued IDs for the same seconds.
    fn split(&mut self) -> Result<usize, String> {
        let old = self.patroni.wait_for_members();
        let on_old = Load::at(&self.patroni.members[old].config(), 1, ASKS, "");
        self.patroni.members[old].kill_patroni();
        let new = self.patroni.leader_after(old);
        let mut on_old_too = self.patroni.members[old].connect();
        ensure!(!on_old_too.one::<bool>("SELECT pg_is_in_recovery()"), "the old primary has not gone on");
        let ids: Vec<i64> = on_old_too.all("SELECT snowflake_nextval()");
        let until = last_to_draw(&mut on_old_too, ids[0]);
        let mut on_new = self.patroni.members[new].connect();
        // Both servers draw until the second half of the time for which the other one has issued IDs.
        for session in [&mut on_new, &mut on_old_too] {
            let ids = draw_until(session, until);
            self.ledger.stretches.push(ids);
        }
        self.ledger.stretches.push(ids);
        drop(on_old_too);
        self.patroni.members[old].start();
        self.patroni.wait_for_members();
        let log = self.patroni.members[old].log();
        ensure!(log.contains("running pg_rewind"), "the old primary was not rewound:\n{log}");
        self.ledger.merge(on_old.finish());
        Ok(new)
    }
}

/// Draws until this ID.
pub fn draw_until(session: &mut Client, until: i64) -> Vec<i64> {
    let mut ids = Vec::new();
    while ids.last() <= Some(&until) {
        ids.push(session.one("SELECT snowflake_nextval()"));
    }
    ids
}

/// Everything that happens to a cluster.
fn play(test: &str, way: AssignedBy) -> Result<(), String> {
    let mut story = FailoverStory::begin(test, way);
    let workers = story.workers();
    check_unique(&mut workers.iter().map(|worker| worker.parse::<i64>().expect("a number") + 1).collect::<Vec<_>>())?;
    let leader = story.patroni.leader();
    story.patroni.switchover((leader + 1) % 3);
    story.patroni.wait_for_members();
    let leader = story.patroni.leader();
    let killed = story.patroni.members[leader].postmaster();
    story.patroni.members[leader].kill_postgres();
    let others = || story.patroni.members[leader].postmaster().is_some_and(|now| Some(now) != killed);
    ensure!(within(PATIENCE, others), "PostgreSQL was not started again");
    story.patroni.wait_for_members();
    ensure!(story.patroni.leader() == leader, "another member has taken over");
    story.split()?;
    ensure!(story.workers() == workers, "{workers:?} became {:?}", story.workers());
    let leader = story.patroni.leader();
    let standby = (leader + 1) % 3;
    story.patroni.members[standby].reinitialize();
    story.patroni.wait_for_members();
    story.patroni.wait_for_workers();
    let now = story.workers();
    let same = now[standby] == workers[standby];
    ensure!(same == (way == AssignedBy::Member), "{workers:?} became {now:?} when a member was reinitialized");
    story.patroni.switchover(standby);
    story.patroni.wait_for_members();
    story.synchronous()?;
    story.end()
}

impl FailoverStory {
    /// Kills Patroni on the leader of a synchronous cluster. Its server stops issuing IDs, because nothing acknowledges its mark.
    fn synchronous(&mut self) -> Result<(), String> {
        self.patroni.change("{\"synchronous_mode\": true}");
        let old = self.patroni.leader();
        let sql = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')";
        let synchronous =
            || self.patroni.members[old].try_connect().is_some_and(|mut session| session.one::<bool>(sql));
        ensure!(within(PATIENCE, synchronous), "no standby is synchronous:\n{}", self.patroni.log());
        let mut session = self.patroni.members[old].connect();
        session.batch_execute("SET statement_timeout = '3s'").expect("anybody may");
        self.patroni.members[old].kill_patroni();
        let new = self.patroni.leader_after(old);
        let mut ids = Vec::new();
        let stops = within(PATIENCE, || match session.query_one("SELECT snowflake_nextval()", &[]) {
            Ok(row) => {
                ids.push(row.get(0));
                false
            }
            Err(error) => error.code().is_some_and(|code| code.code() == "57014"),
        });
        ensure!(stops, "the old primary goes on");
        self.ledger.stretches.push(ids);
        self.ledger.stretches.push(self.patroni.members[new].connect().batch(2_000));
        self.patroni.members[old].start();
        self.patroni.wait_for_members();
        Ok(())
    }
}

#[test]
fn members_with_the_registry_of_their_own_cluster_repeat_no_id() {
    play("patroni_registry", AssignedBy::Registry).unwrap();
}

#[test]
fn members_with_a_worker_id_each_repeat_no_id() {
    play("patroni_each", AssignedBy::Member).unwrap();
}

/// Kills Patroni on the leader once.
fn check_old_primary(test: &str, way: AssignedBy) -> Result<(), String> {
    let mut story = FailoverStory::begin(test, way);
    story.split()?;
    story.end()
}

#[test]
fn the_same_worker_id_in_the_common_configuration_is_caught() {
    assert_caught(check_old_primary("patroni_common", AssignedBy::Common), "IDs came twice");
}
