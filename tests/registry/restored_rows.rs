//! Rows of the registry that are restored from a dump into the tables that exist.

use cluster::{Answer as _, Stop, assert_caught, ensure, output, typed};
use flake::fleet::{RegistryAnswer, RegistryRefusal};

use crate::calls::{claim, registry};

const LAYOUT: &str = "41:10:12";

/// Restores an old dump of the rows after `empty` has removed the present ones, and asks for a worker ID.
fn check(name: &str, empty: &str, spoil: &str) -> Result<(), String> {
    let server = registry(name, LAYOUT);
    let mut client = server.connect();
    claim(&mut client, LAYOUT).expect("a worker ID");
    let mut dump = server.program("pg_dump");
    let dump = output(dump.args(["--data-only", "--schema=snowflake_registry", "--extension=snowflake_registry"]));
    let lost = claim(&mut client, LAYOUT).expect("a worker ID").worker;
    client.batch_execute(spoil).expect("a superuser may");
    let tables: Vec<String> = client.all(
        "SELECT oid::regclass::text FROM pg_class
         WHERE relnamespace = 'snowflake_registry'::regnamespace AND relkind = 'r'",
    );
    for table in tables {
        client.batch_execute(&empty.replace("TABLE", &table)).expect("a superuser may");
    }
    let mut psql = server.psql();
    psql.args(["-X", "-v", "ON_ERROR_STOP=1"]);
    typed(psql, &dump).expect("the dump is restored");
    match claim(&mut client, LAYOUT) {
        Ok(node) => Err(format!("worker ID {} was assigned, and {lost} was lost", node.worker)),
        Err(RegistryAnswer::Refused(RegistryRefusal::Quarantine { .. })) => {
            let why: String = client.one("SELECT life_reason FROM snowflake_registry.status");
            ensure!(why == "the rows of the registry were restored", "the reason is: {why}");
            Ok(())
        }
        Err(other) => Err(format!("{other:?}")),
    }
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
        "ALTER TABLE snowflake_registry.fleet ADD COLUMN note text",
        "ALTER TABLE snowflake_registry.fleet DROP COLUMN note",
    ] {
        client.batch_execute(maintenance).expect("a superuser may");
    }
    server.restart(Stop::Immediate);
    let mut client = server.connect();
    claim(&mut client, LAYOUT).expect("a worker ID");
    client
        .batch_execute(
            "BEGIN; SAVEPOINT s; SELECT snowflake_registry.close(); RELEASE s; SAVEPOINT t;
             SELECT snowflake_registry.open(), snowflake_registry.create_segment('orders'); COMMIT",
        )
        .expect("a superuser may");
    claim(&mut client, LAYOUT).expect("a worker ID");
    assert_eq!(client.one::<i64>("SELECT life FROM snowflake_registry.status"), 2, "close() has begun one");
}
