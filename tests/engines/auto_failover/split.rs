//! Two primaries: the secondary is promoted while nobody stops the former primary. Only the worker ID keeps their IDs apart.

use cluster::{Answer, SPARSE_BELOW_TIME, SPARSE_LAYOUT, assert_caught, check_unique, draw_beside, ensure, within};

use crate::auto_failover::formation::{Formation, PATIENCE, section};
use crate::auto_failover::story::{host_files, set_up};

/// Where the worker ID is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkerSource {
    /// The registry assigns it.
    Registry,
    /// In a file of each host, as the page says.
    Included,
    /// In `postgresql.conf` of the data directory, which is corrected on the second node before its first start.
    DataDirectory,
}

/// What was observed.
struct SplitObserved {
    /// The worker IDs of both nodes, before and after each act.
    workers: Vec<[String; 2]>,
    /// The IDs of both nodes in each act.
    acts: Vec<Vec<i64>>,
}

/// Kills `pg_autoctl` on the primary, performs a failover, lets both primaries issue IDs, and brings the former primary back.
fn act(formation: &mut Formation, primary: usize, seen: &mut SplitObserved) {
    let failover = section("A planned failover").block("sh failover");
    let run = section("After a crash").block("sh run");
    formation.kill_keeper(primary);
    // The command waits for the former primary, and fails.
    let _ = formation.shell(2, &failover.replace("perform failover", "perform failover --wait 1"));
    let mut session = formation.session(1 - primary);
    let issues = || {
        session.query("SELECT snowflake_nextval() WHERE NOT pg_is_in_recovery()", &[]).is_ok_and(|rows| rows.len() == 1)
    };
    assert!(within(PATIENCE, issues), "{:?}\n{}", formation.states(), formation.log(1 - primary));
    let [mut first, mut second] = [0, 1].map(|node| formation.session(node));
    seen.acts.push(draw_beside(&mut first, &mut second));
    formation.run(primary, &run);
    formation.wait_for(if primary == 0 { ["secondary", "primary"] } else { ["primary", "secondary"] });
    seen.workers.push([0, 1].map(|node| formation.worker(node)));
}

fn play(test: &str, kept: WorkerSource) -> SplitObserved {
    let sparse = format!("snowflake_pg.layout = '{SPARSE_LAYOUT}'\nsnowflake_pg.max_ahead = '10s'\n");
    let mut formation = Formation::new(test, &format!("{sparse}snowflake_pg.lease = '10min'\n"));
    formation.layout = SPARSE_LAYOUT;
    match kept {
        WorkerSource::Registry => drop(set_up(&mut formation, None)),
        WorkerSource::Included => {
            let configuration = host_files(&formation);
            set_up(&mut formation, Some(&configuration));
        }
        WorkerSource::DataDirectory => {
            let library = "shared_preload_libraries = 'pg_stat_statements, snowflake_pg'";
            formation.corrected = Some(("snowflake_pg.worker_id = 1", "snowflake_pg.worker_id = 2"));
            set_up(&mut formation, Some(&format!("{library}\nsnowflake_pg.worker_id = 1\n")));
        }
    }
    // Replication is asynchronous, so that a primary without its secondary continues.
    for node in [0, 1] {
        let set = "pg_autoctl set node replication-quorum false --pgdata /srv/pg/data";
        // The monitor sometimes reports a deadlock between this command and a report of the node.
        assert!(within(PATIENCE, || formation.shell(node, set).is_ok()));
    }
    let mut session = formation.session(0);
    assert!(within(PATIENCE, || session.one::<String>("SHOW synchronous_standby_names").is_empty()));
    drop(session);
    formation.wait_for(["primary", "secondary"]);
    let mut seen = SplitObserved { workers: vec![[0, 1].map(|node| formation.worker(node))], acts: Vec::new() };
    act(&mut formation, 0, &mut seen);
    if kept == WorkerSource::DataDirectory {
        let [query, shown] = section("The worker ID in the data directory").rest(["sql where", "text"]);
        let printed = formation.psql(0, "postgres", &query).unwrap();
        formation.compare(&printed, &shown);
    }
    act(&mut formation, 1, &mut seen);
    seen
}

/// Checks that the nodes keep their worker IDs, and that no ID repeats.
fn check(test: &str, kept: WorkerSource) -> Result<(), String> {
    let seen = play(test, kept);
    let mut ids = seen.acts.concat();
    let mut others: Vec<i64> = ids.iter().map(|id| id >> SPARSE_BELOW_TIME << 4 | id & 15).collect();
    ensure!(check_unique(&mut others).is_err(), "the nodes issued at different times, which shows nothing");
    check_unique(&mut ids)?;
    let first = &seen.workers[0];
    ensure!(first[0] != first[1] && seen.workers.iter().all(|pair| pair == first), "worker IDs: {:?}", seen.workers);
    Ok(())
}

#[test]
fn two_primaries_with_files_of_their_own_repeat_nothing() {
    check("split_files", WorkerSource::Included).unwrap();
}

#[test]
fn two_primaries_with_worker_ids_of_the_registry_repeat_nothing() {
    check("split_registry", WorkerSource::Registry).unwrap();
}

#[test]
fn a_worker_id_in_the_data_directory_is_caught() {
    let seen = play("split_copied", WorkerSource::DataDirectory);
    let pair = |first: &str, second: &str| [first.to_string(), second.to_string()];
    // In the first act, the worker IDs still differ. Then `pg_rewind` copies the worker ID of the promoted node.
    assert_eq!(seen.workers, [pair("1", "2"), pair("2", "2"), pair("2", "2")]);
    check_unique(&mut seen.acts[0].clone()).unwrap();
    assert_caught(check_unique(&mut seen.acts[1].clone()), "IDs came twice");
}
