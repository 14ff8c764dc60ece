//! Removes old partitions, and at last the table from pg_partman.

use std::thread;

use cluster::{
    Answer, Client, Cluster, assert_caught, block_with, blocks as blocks_of, ensure, page, printed, typed, waiting,
};

use super::key::{BACK, TABLES, migrate, steps};
use super::{block, installed, maintain, run};
use crate::migration::page::{AS_WRITTEN, Edit};

/// The sections with blocks, and how many blocks each has.
pub const SECTIONS: &[(&str, usize)] = &[(REMOVE, 3), (END, 3), (BACK, 2)];

pub const REMOVE: &str = "Remove old partitions";
pub const END: &str = "Remove the table from pg_partman";

/// Types the statement of the page that contains this text, with `edit`. Returns what psql prints on stderr.
fn remove(server: &Cluster, part: &str, edit: Edit) -> Result<String, String> {
    let statement = block(REMOVE, part).replace(edit.0, edit.1);
    let (settings, body) = statement.split_once("DO $$").expect("a DO statement");
    let mut psql = server.psql();
    psql.args(["-c", settings, "-c", &format!("DO $${body}")]);
    let done = psql.output().expect("psql can be run");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    ensure!(done.status.success(), "{said}");
    Ok(said)
}

/// Returns the first numbers of the partitions with old numbers, without the default partition.
fn old_partitions(session: &mut Client) -> Vec<i64> {
    session.all(
        "SELECT bound FROM pg_inherits JOIN pg_class ON oid = inhrelid,
             CAST(substring(pg_get_expr(relpartbound, oid) FROM 'FROM \\(''(-?\\d+)''\\)') AS bigint) AS bound
         WHERE inhparent = 'readings'::regclass AND bound < 1::bigint << 60 ORDER BY bound",
    )
}

/// Checks that the statements remove the partitions that they are said to remove, and no others.
fn check_removal(server: &Cluster, days: Edit) -> Result<(), String> {
    let session = &mut server.connect();
    // Partitions of days that ended 91 and 89 days ago, and one of negative numbers.
    session
        .batch_execute(
            "SELECT snowflake_create_partitions('readings', '1 day', 1, now() - interval '92 days');
             SELECT snowflake_create_partitions('readings', '1 day', 1, now() - interval '89 days');
             CREATE TABLE readings_negative PARTITION OF readings FOR VALUES FROM (-10000) TO (0);
             INSERT INTO readings (id, created_at) VALUES (-5, now() - interval '91 days')",
        )
        .expect("partitions");
    let all = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'readings'::regclass";
    let (old, before): (Vec<i64>, i64) = (old_partitions(session), session.one(all));
    ensure!(old == [-10_000, 0, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000], "old partitions: {old:?}");
    if days == AS_WRITTEN {
        remove(server, "snowflake_min_id", AS_WRITTEN)?;
    } else {
        typed(server.psql(), days.1)?;
    }
    ensure!(old_partitions(session) == old, "partitions with old numbers are lost");
    let after: i64 = session.one(all);
    ensure!(after == before - 1, "{after} of {before} partitions are left");
    // Some rows of the first partition are older than 90 days, but not the newest one.
    remove(server, "max(created_at)", AS_WRITTEN)?;
    ensure!(old_partitions(session) == old[1..], "left: {:?}", old_partitions(session));
    session
        .batch_execute(
            "UPDATE readings SET created_at = created_at - interval '70 days' WHERE id < 20000;
             DELETE FROM alerts WHERE reading_id >= 10000",
        )
        .expect("older rows");
    // Alerts refer to rows of the first partition. The second one is dropped nevertheless.
    let said = remove(server, "max(created_at)", AS_WRITTEN)?;
    ensure!(said.contains("partition readings_p0 is kept") && said.contains("foreign key"), "{said}");
    ensure!(old_partitions(session) == [0, 20_000, 30_000, 40_000, 50_000, 60_000], "{:?}", old_partitions(session));
    session.batch_execute("DELETE FROM alerts WHERE reading_id < 10000").expect("alerts");
    let said = remove(server, "max(created_at)", AS_WRITTEN)?;
    ensure!(said.is_empty(), "{said}");
    let first: i64 = session.one("SELECT min(id) FROM readings");
    ensure!(first == 20_000, "the first row is {first}");
    // The default partition.
    session
        .batch_execute(
            "INSERT INTO readings (id, created_at) VALUES (200000, now() - interval '91 days'), (200001, now())",
        )
        .expect("rows of the default partition");
    typed(server.psql(), &block(REMOVE, "DELETE FROM"))?;
    let kept: Vec<i64> = session.all("SELECT id FROM readings_default");
    ensure!(kept == [200_001], "the default partition has the rows {kept:?}");
    Ok(())
}

#[test]
fn old_partitions_are_removed_one_by_one() {
    let Some(()) = installed() else { return };
    check_removal(&migrate(AS_WRITTEN).unwrap().server, AS_WRITTEN).unwrap();
}

#[test]
fn a_removal_that_takes_the_old_numbers_for_old_days_is_caught() {
    let Some(()) = installed() else { return };
    let run = migrate(AS_WRITTEN).unwrap();
    run.server.connect().batch_execute("ALTER TABLE alerts DROP CONSTRAINT alerts_reading_id_fkey").unwrap();
    // The statement of docs/partitions.md without its lower limit, of which the page warns.
    let usual =
        block_with(blocks_of(&page("docs/partitions.md"), "sql"), "interval '90 days'").replace("events", "readings");
    let unlimited = usual.replace(">= snowflake_min_id('2024-01-01 00:00+00')", "IS NOT NULL");
    assert_ne!(unlimited, usual);
    assert_caught(check_removal(&run.server, ("", &unlimited)), "partitions with old numbers are lost");
}

/// Removes old partitions while a transaction that is open at first makes a row of one of them newer.
fn check_late_row(edit: Edit) -> Result<(), String> {
    let run = migrate(AS_WRITTEN)?;
    let [mut writer, mut watch] = [0; 2].map(|_| run.server.connect());
    writer
        .batch_execute(
            "DELETE FROM alerts; UPDATE readings SET created_at = created_at - interval '100 days' WHERE id < 10000",
        )
        .expect("old rows");
    writer.batch_execute("BEGIN; UPDATE readings SET created_at = now() WHERE id = 1").expect("a writer");
    thread::scope(|scope| {
        let removing = scope.spawn(|| remove(&run.server, "max(created_at)", edit));
        let waits = waiting(&mut watch, || removing.is_finished()) && !removing.is_finished();
        ensure!(waits, "the statement does not wait");
        writer.batch_execute("COMMIT").expect("a writer");
        removing.join().expect("a thread that ends").map(drop)
    })?;
    let kept: i64 = watch.one("SELECT count(*) FROM readings WHERE id = 1");
    ensure!(kept == 1, "a new row is lost");
    Ok(())
}

#[test]
fn a_partition_that_gets_a_newer_row_meanwhile_is_kept() {
    let Some(()) = installed() else { return };
    check_late_row(AS_WRITTEN).unwrap();
}

#[test]
fn a_newest_row_that_is_looked_for_only_once_is_caught() {
    let Some(()) = installed() else { return };
    let again = "                EXECUTE format('SELECT max(created_at) FROM %s', part) INTO newest;\n";
    assert!(block(REMOVE, "max(created_at)").contains(again));
    assert_caught(check_late_row((again, "")), "a new row is lost");
}

/// Removes two old partitions, and checks that the locks for the first one end before the second one is read.
fn check_transactions(edit: Edit) -> Result<(), String> {
    let run = migrate(AS_WRITTEN)?;
    let mut session = run.server.connect();
    session
        .batch_execute(
            "DELETE FROM alerts; UPDATE readings SET created_at = created_at - interval '100 days' WHERE id < 20000;
             CREATE TABLE dropped (transaction xid8);
             CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql
                 AS 'BEGIN INSERT INTO dropped VALUES (pg_current_xact_id()); END';
             CREATE EVENT TRIGGER note ON sql_drop WHEN tag IN ('DROP TABLE') EXECUTE FUNCTION note()",
        )
        .expect("old rows");
    remove(&run.server, "max(created_at)", edit)?;
    let left = old_partitions(&mut session);
    ensure!(left[0] == 20_000, "left: {left:?}");
    let transactions: i64 = session.one("SELECT count(DISTINCT transaction::text) FROM dropped");
    ensure!(transactions == 2, "two partitions were removed in {transactions} transactions");
    Ok(())
}

#[test]
fn each_partition_is_removed_in_a_transaction_of_its_own() {
    let Some(()) = installed() else { return };
    check_transactions(AS_WRITTEN).unwrap();
}

#[test]
fn a_removal_in_one_transaction_is_caught() {
    let Some(()) = installed() else { return };
    assert_caught(check_transactions(("        COMMIT;\n", "")), "two partitions were removed in 1 transactions");
}

#[test]
fn the_table_is_removed_from_pg_partman_with_what_only_it_uses() {
    let Some(()) = installed() else { return };
    let mut run = run(AS_WRITTEN, TABLES);
    let mut session = run.server.connect();
    // pg_partman's retention keeps tables unless it is told otherwise.
    session
        .batch_execute(
            "DROP TABLE alerts; UPDATE partman.part_config SET retention = '10000' WHERE parent_table = 'public.readings';
             SELECT partman.run_maintenance()",
        )
        .unwrap();
    assert!(session.one::<bool>("SELECT NOT relispartition FROM pg_class WHERE relname = 'readings_p0'"));
    run.all(&steps(), |_, _| Ok(())).unwrap();
    let drop_all = || typed(run.server.psql(), &block(END, "DELETE FROM"));
    session
        .batch_execute(
            "UPDATE partman.part_config SET template_table = 'partman.template_public_readings' WHERE parent_table = 'public.others'",
        )
        .unwrap();
    assert_eq!(printed(&mut session, &block(END, "UNION")).unwrap(), ["public.others"]);
    session
        .batch_execute(
            "UPDATE partman.part_config SET template_table = 'partman.template_public_others' WHERE parent_table = 'public.others'",
        )
        .unwrap();
    assert!(printed(&mut session, &block(END, "UNION")).unwrap().is_empty());
    let refused = drop_all().unwrap_err();
    assert!(refused.contains("cannot drop sequence public.readings_id_seq"), "{refused}");
    let statements = printed(&mut session, &block(END, "pg_depend")).unwrap();
    assert_eq!(statements, ["ALTER TABLE readings_p0 ALTER COLUMN id DROP DEFAULT;"]);
    session.batch_execute(&statements[0]).unwrap();
    drop_all().unwrap();
    maintain(&mut session).unwrap();
    session.batch_execute("SELECT snowflake_create_partitions('readings', '1 day', 9)").unwrap();
    session.batch_execute("INSERT INTO readings (value) VALUES (0)").unwrap();
    assert_eq!(session.code("SELECT nextval('readings_id_seq')").as_deref(), Some("42P01"));
}
