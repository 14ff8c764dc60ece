//! Serials after the promotion of a standby.

use std::time::Duration;

use cluster::{Answer, Chance, Cluster, Stop, assert_caught, ensure, within};

use crate::accountant::{Accountants, Numbering, audit, no_gaps, prepare};

/// Numbers rows on a primary until it ends, promotes its standby, and continues there.
fn check(name: &str, how: Numbering, synchronous: bool) -> Result<(), String> {
    let mut primary = Cluster::builder(&format!("{name}_primary")).start();
    prepare(&primary, how);
    let mut standby = primary.standby(Cluster::builder(&format!("{name}_standby")));
    if synchronous {
        primary.rely_on_standby();
    }
    let mut chance = Chance::of(name);
    let accountants = Accountants::start(&primary, how, &mut chance);
    let enough = |accountants: &Accountants, more| within(Duration::from_secs(60), || accountants.count() >= more);
    ensure!(enough(&accountants, 300), "too few rows");
    if !synchronous {
        // What is committed from now on does not reach the standby.
        let _frozen = primary.leave_behind(&standby);
        let more = accountants.count() + 100;
        ensure!(enough(&accountants, more), "too few rows");
        // The standby is frozen while the primary ends, so that it receives nothing more.
        primary.stop(Stop::Immediate);
    } else {
        primary.stop(Stop::Immediate);
    }
    let mut committed = accountants.finish();
    standby.promote();
    standby.unset("synchronous_standby_names");
    standby.reload();
    let accountants = Accountants::start(&standby, how, &mut chance);
    ensure!(enough(&accountants, 300), "too few rows after the promotion");
    committed.extend(accountants.finish());
    audit(&standby, &committed)?;
    no_gaps(&standby)
}

#[test]
fn a_promoted_synchronous_standby_continues_without_a_gap() {
    check("failover_default", Numbering::Default, true).unwrap();
}

#[test]
fn a_promoted_synchronous_standby_continues_at_commit() {
    check("failover_commit", Numbering::AtCommit, true).unwrap();
}

/// An asynchronous standby has neither the rows nor their numbers, which then come again with other rows.
#[test]
fn an_asynchronous_standby_that_is_behind_is_caught() {
    assert_caught(check("failover_behind", Numbering::AtCommit, false), "committed rows are lost");
}

#[test]
fn a_standby_issues_no_serial_and_reads_them() {
    let primary = Cluster::builder("serial_standby_primary").start();
    prepare(&primary, Numbering::AtCommit);
    primary.connect().run("INSERT INTO invoices (year, booked) VALUES (2024, '2024-05-05')");
    let standby = primary.standby(Cluster::builder("serial_standby"));
    let mut session = standby.connect();
    for call in ["snowflake_serial('invoice')", "snowflake_serial('invoice', date '2024-05-05')"] {
        let (code, message) = session.refusal(&format!("SELECT {call}"));
        assert_eq!([code, message], ["25006", "cannot issue a serial during recovery"]);
    }
    let read = "SELECT number FROM snowflake_serial_parse('invoice', 'INV-2024-000042')";
    assert_eq!(session.one::<i64>(read), 42);
    no_gaps(&standby).unwrap();
    assert_eq!(session.one::<String>("SELECT template FROM snowflake_series"), "INV-{YYYY}-{n:6}");
    assert_eq!(session.one::<i64>("SELECT last_number FROM invoice"), 1);
}
