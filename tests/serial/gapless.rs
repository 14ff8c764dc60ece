//! Sixteen sessions number rows, a third of their transactions is rolled back, sessions are killed, and the server crashes: no number
//! is missing, and none comes twice.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use cluster::{Answer, Chance, Cluster, Stop, assert_caught_by_chance, ensure, within};

use crate::accountant::{Accountants, Numbering, audit, no_gaps, prepare};

/// How many crashes each run has.
const CRASHES: usize = 2;

/// Checks a run with sessions that are killed, and with crashes of the server.
fn check(name: &str, how: Numbering) -> Result<(), String> {
    // A crash must not lose what was committed.
    let mut server = Cluster::builder(name).set("fsync", "on").start();
    prepare(&server, how);
    let mut chance = Chance::of(name);
    let accountants = Accountants::start(&server, how, &mut chance);
    let mut killed = 0;
    for crash in 0..=CRASHES {
        let before = accountants.count();
        let mut watch = server.connect();
        let enough = within(Duration::from_secs(60), || {
            thread::sleep(chance.millis(100));
            let kill = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
                        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1) AS one";
            killed += watch.one::<i64>(kill);
            accountants.count() >= before + 200 && killed > 2 * (crash as i64 + 1)
        });
        ensure!(enough, "only {} rows: nothing was shown", accountants.count());
        drop(watch);
        if crash < CRASHES {
            server.restart(Stop::Immediate);
        }
    }
    let committed = accountants.finish();
    let rows = audit(&server, &committed)?;
    ensure!(killed > 5, "only {killed} sessions were killed");
    println!("{rows} rows, {killed} sessions killed");
    if [Numbering::Default, Numbering::AtCommit].contains(&how) { no_gaps(&server) } else { Ok(()) }
}

#[test]
fn no_number_is_missing_after_rollbacks_kills_and_crashes() {
    check("gapless_default", Numbering::Default).unwrap();
}

#[test]
fn no_number_is_missing_if_rows_are_numbered_at_commit() {
    check("gapless_commit", Numbering::AtCommit).unwrap();
}

#[test]
fn a_sequence_is_caught() {
    assert_caught_by_chance(|| check("gapless_sequence", Numbering::Sequence), "has a hole");
}

#[test]
fn a_number_that_is_taken_outside_of_the_transaction_is_caught() {
    assert_caught_by_chance(|| check("gapless_outside", Numbering::Outside), "has a hole");
}

#[test]
fn the_largest_number_plus_one_is_caught() {
    assert_caught_by_chance(|| check("gapless_largest", Numbering::Largest), "came twice");
}

/// The function finds what the audit finds.
#[test]
fn a_removed_row_is_a_gap() {
    let server = Cluster::builder("gapless_removed").start();
    prepare(&server, Numbering::AtCommit);
    let mut session = server.connect();
    session.run("INSERT INTO invoices (year, booked) SELECT 2024, '2024-05-05' FROM generate_series(1, 50)");
    audit(&server, &BTreeSet::default()).unwrap();
    no_gaps(&server).unwrap();
    session.run("DELETE FROM invoices WHERE number IN ('INV-2024-000007', 'INV-2024-000050')");
    cluster::assert_caught(no_gaps(&server), "gaps: [\"(2024,7,7)\", \"(2024,50,50)\"]");
    cluster::assert_caught(audit(&server, &BTreeSet::default()).map(drop), "2024 has a hole");
}
