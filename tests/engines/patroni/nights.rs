//! The machine of the leader fails several times in a row, and nobody looks after the cluster.

use std::thread;
use std::time::Duration;

use cluster::{Answer, Ask, History, Load, Patroni, ensure, rounds};

/// How long a member can be without a worker ID after it has begun to follow the new leader.
const MINUTE: Duration = Duration::from_secs(60);

/// Lets sessions draw IDs on the present leader for a moment. On a busy machine, they may not be connected by then.
fn issue(patroni: &Patroni) -> History {
    patroni.connect().one::<i64>("SELECT snowflake_nextval()");
    let load = Load::at(&patroni.config(), 2, Ask::READING, "");
    thread::sleep(Duration::from_secs(1));
    load.finish()
}

fn check(name: &str, failovers: u64) -> Result<(), String> {
    let mut patroni = Patroni::with_registry(name, &[]);
    patroni.wait_for_members();
    patroni.wait_for_workers();
    let sql = "CREATE TABLE load_rows (id bigint DEFAULT snowflake_nextval())";
    patroni.connect().batch_execute(sql).expect("a superuser may");
    let mut ledger = History::default();
    for failover in 1..=failovers {
        ledger.merge(issue(&patroni));
        let old = patroni.leader();
        patroni.members[old].lose_power();
        let new = patroni.leader_after(old);
        ensure!(patroni.members[new].worker() != "-1", "failover {failover} met a member without a worker ID");
        patroni.members[old].start();
        patroni.wait_for_members();
        // The former leader has lost its witness. Its data directory is replaced, too.
        patroni.members[old].reinitialize();
        patroni.wait_for_members();
        let all = patroni.have_workers(MINUTE);
        ensure!(all, "after failover {failover}, a member has no worker ID for a minute:\n{}", patroni.log());
    }
    // The last leader issues IDs, too.
    ledger.merge(issue(&patroni));
    println!("{failovers} failovers, {} IDs, errors: {:?}", ledger.len(), ledger.errors);
    ledger.check(100)
}

#[test]
fn every_member_has_a_worker_id_after_failovers_in_a_row() {
    check("patroni_nights", rounds(10, 2)).unwrap();
}
