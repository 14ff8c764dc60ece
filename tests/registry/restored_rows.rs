//! Rows of the registry that are restored from a dump into the tables that exist.

use cluster::{Answer as _, Client, Stop, assert_caught, ensure, output};
use flake::fleet::{Effect, Member};

use crate::calls::{LAYOUT, check_quarantine, claim, registry, restore};
use crate::lost::{heartbeat, number, server};

/// Restores an old dump of the rows after `empty` has removed the present ones, and asks for a worker ID.
fn check(name: &str, empty: &str, spoil: &str) -> Result<(), String> {
    let server = registry(name, LAYOUT);
    let mut client = server.connect();
    claim(&mut client, LAYOUT).expect("a worker ID");
    let mut dump = server.program("pg_dump");
    let dump = output(dump.args(["--data-only", "--schema=snowflake_registry", "--extension=snowflake_registry"]));
    let lost = claim(&mut client, LAYOUT).expect("a worker ID");
    client.batch_execute(spoil).expect("a superuser may");
    let tables: Vec<String> = client.all(
        "SELECT oid::regclass::text FROM pg_class
         WHERE relnamespace = 'snowflake_registry'::regnamespace AND relkind = 'r'",
    );
    for table in tables {
        client.batch_execute(&empty.replace("TABLE", &table)).expect("a superuser may");
    }
    restore(&server, "postgres", &dump);
    check_quarantine(&mut client, LAYOUT).map_err(|reason| format!("{reason}, and {lost} was lost"))?;
    let why: String = client.one("SELECT life_reason FROM snowflake_registry.status");
    ensure!(why == "the rows of the registry were restored", "the reason is: {why}");
    Ok(())
}

#[test]
fn rows_that_are_restored_after_delete_or_truncate_begin_a_quarantine() {
    check("rows_deleted", "DELETE FROM TABLE", "").unwrap();
    check("rows_truncated", "TRUNCATE TABLE", "").unwrap();
}

#[test]
fn a_registry_that_does_not_see_that_its_rows_were_restored_is_caught() {
    let spoil = "CREATE OR REPLACE FUNCTION snowflake_registry.as_written(f snowflake_registry.fleet, written xid)
        RETURNS snowflake_registry.fleet LANGUAGE sql IMMUTABLE AS 'SELECT f'";
    assert_caught(check("rows_unseen", "DELETE FROM TABLE", spoil), "worker ID 1 was assigned, and 1 was lost");
}

/// What PostgreSQL does to the files of a table, and calls of the owner in any transaction, look like no restore.
#[test]
fn maintenance_of_the_tables_begins_no_quarantine() {
    let mut server = registry("rows_kept", LAYOUT);
    let mut client = server.connect();
    claim(&mut client, LAYOUT).expect("a worker ID");
    for maintenance in [
        "VACUUM (FULL) snowflake_registry.fleet",
        "VACUUM (FREEZE) snowflake_registry.fleet",
        "CLUSTER snowflake_registry.fleet USING fleet_pkey",
        "VACUUM (FULL) snowflake_registry.node",
        "CLUSTER snowflake_registry.ring USING ring_pkey",
        "ALTER TABLE snowflake_registry.fleet ADD COLUMN note text",
        "ALTER TABLE snowflake_registry.fleet DROP COLUMN note",
    ] {
        client.batch_execute(maintenance).expect("a superuser may");
    }
    server.restart(Stop::Immediate);
    let mut client = server.connect();
    claim(&mut client, LAYOUT).expect("a worker ID");
    let sql = "BEGIN; SAVEPOINT s; SELECT snowflake_registry.close(); RELEASE s; SAVEPOINT t;
             SELECT snowflake_registry.open(), snowflake_registry.create_segment('orders'); COMMIT";
    client.batch_execute(sql).expect("a superuser may");
    claim(&mut client, LAYOUT).expect("a worker ID");
    assert_eq!(client.one::<i64>("SELECT life FROM snowflake_registry.status"), 2, "close() has begun one");
}

/// Writes the rows of a table again, as a restore of a dump of this table does, and as `pg_repack` does.
fn rewrite(client: &mut Client, table: &str) {
    let sql = format!(
        "BEGIN; CREATE TEMP TABLE aside ON COMMIT DROP AS TABLE snowflake_registry.{table}; DELETE FROM snowflake_registry.{table};
         INSERT INTO snowflake_registry.{table} TABLE aside; COMMIT"
    );
    client.batch_execute(&sql).expect("a superuser may");
}

/// Nothing is lost, and the servers lose nothing. The owner ends the quarantine.
#[test]
fn rows_that_are_rewritten_without_a_loss_cost_only_a_quarantine() {
    let registry = registry("rows_rewritten", LAYOUT);
    let mut client = registry.connect();
    let mut member = server();
    assert_eq!(heartbeat(&mut client, &mut member), Effect::Assigned);
    assert_eq!(heartbeat(&mut client, &mut member), Effect::Renewed);
    rewrite(&mut client, "fleet");
    check_quarantine(&mut client, LAYOUT).unwrap();
    let why: String = client.one("SELECT life_reason FROM snowflake_registry.status");
    assert_eq!(why, "the rows of the registry were restored");
    for _ in 0..2 {
        assert_eq!(heartbeat(&mut client, &mut member), Effect::Renewed);
        assert_eq!(number(&member), 0);
    }
    assert!(client.one::<bool>("SELECT snowflake_registry.open()"));
    assert_eq!(claim(&mut client, LAYOUT), Ok(1));
    assert_eq!(heartbeat(&mut client, &mut member), Effect::Renewed);
    // The same rows are not seen as restored again.
    assert_eq!(client.one::<i64>("SELECT life FROM snowflake_registry.status"), 2);
}

/// Some tables are restored, and the row of the fleet stays. `notice` lets the registry know before a new server asks for a worker ID.
fn check_partial(name: &str, notice: impl FnOnce(&mut Client, &mut Member)) -> Result<(), String> {
    let registry = registry(name, LAYOUT);
    let mut client = registry.connect();
    assert_eq!(heartbeat(&mut client, &mut server()), Effect::Assigned);
    for table in ["node", "ring"] {
        let aside = format!("CREATE TABLE aside_{table} AS TABLE snowflake_registry.{table}");
        client.batch_execute(&aside).expect("a superuser may");
    }
    let mut lost = server();
    assert_eq!(heartbeat(&mut client, &mut lost), Effect::Assigned);
    for table in ["node", "ring"] {
        let restore = format!(
            "BEGIN; DELETE FROM snowflake_registry.{table}; INSERT INTO snowflake_registry.{table} TABLE aside_{table}; COMMIT"
        );
        client.batch_execute(&restore).expect("a superuser may");
    }
    notice(&mut client, &mut lost);
    check_quarantine(&mut client, LAYOUT).map_err(|reason| format!("{reason}, and {} was lost", number(&lost)))
}

#[test]
fn a_partial_restore_is_noticed_by_a_renewal_or_said_by_the_owner() {
    check_partial("rows_partial_told", |client, lost| assert_eq!(heartbeat(client, lost), Effect::Renewed)).unwrap();
    let close = |client: &mut Client, _: &mut Member| drop(client.query("SELECT snowflake_registry.close()", &[]));
    check_partial("rows_partial_closed", close).unwrap();
}

#[test]
fn a_partial_restore_that_nobody_notices_is_caught() {
    assert_caught(check_partial("rows_partial", |_, _| ()), "worker ID 1 was assigned, and 1 was lost");
}
