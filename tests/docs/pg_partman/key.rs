//! Partitioned by the key: old numbers stay in pg_partman's partitions, and new IDs get partitions of days.

use cluster::{Answer, Client, assert_caught, ensure, printed, sqlstate, typed};

use super::{block, blocks, installed, maintain, run};
use crate::migration::page::{AS_WRITTEN, Edit, SectionRun};

/// The sections with blocks, and how many blocks each has.
pub const SECTIONS: &[(&str, usize)] = &[(KEY, 8), (INDEXES, 5)];

pub const KEY: &str = "Partitioned by the key";
pub const INDEXES: &str = "Indexes of the template";
pub const BACK: &str = "Go back to the sequence";

/// 25,000 readings, one every seven minutes, so that they begin 121 days ago.
pub const TABLES: &str = "CREATE TABLE readings (id bigserial PRIMARY KEY, value float8, created_at timestamptz NOT NULL DEFAULT now())
        PARTITION BY RANGE (id);
    SELECT partman.create_parent('public.readings', 'id', 'native', '10000');
    CREATE INDEX readings_value ON partman.template_public_readings (value);
    CREATE TABLE alerts (reading_id bigint NOT NULL REFERENCES readings ON UPDATE CASCADE);
    INSERT INTO readings (value, created_at) SELECT n, now() - (25000 - n) * interval '7 min' FROM generate_series(1, 25000) AS n;
    INSERT INTO alerts SELECT id FROM readings WHERE id % 100 = 0;
    SELECT partman.run_maintenance()";

/// A client that inserts a reading with an alert.
pub const WRITE: &str =
    "WITH new AS (INSERT INTO readings (value) VALUES (0) RETURNING id) INSERT INTO alerts SELECT id FROM new";

/// Returns where the old rows are.
fn places(session: &mut Client) -> String {
    session
        .one("SELECT md5(string_agg(concat(tableoid, ctid, r), ',' ORDER BY id)) FROM readings AS r WHERE id <= 25000")
}

/// Returns the steps, with the blocks that create the index of the template on the table in their place.
pub fn steps() -> Vec<(String, String)> {
    let mut steps = blocks(KEY);
    let listed = steps.iter().position(|(_, text)| text.contains("pg_get_indexdef")).expect("the list of indexes");
    steps.splice(listed + 1..listed + 1, blocks(INDEXES).into_iter().take(3));
    steps
}

/// Returns how many partitions have another number of valid indexes than two.
fn without_indexes(session: &mut Client) -> i64 {
    session.one(
        "SELECT count(*) FROM pg_inherits WHERE inhparent = 'readings'::regclass
         AND (SELECT count(*) FROM pg_index WHERE indrelid = inhrelid AND indisvalid) <> 2",
    )
}

/// Runs the steps while a client writes and maintenance runs. Returns the server.
pub fn migrate(edit: Edit) -> Result<SectionRun, String> {
    let mut run = run(edit, TABLES);
    let mut session = run.server.connect();
    let before = places(&mut session);
    let written = run.busy(&steps(), WRITE, |session, next| {
        maintain(session)?;
        if next.contains("distinct_numbers") {
            ensure!(printed(session, next).expect("a check") == ["t"], "the numbers are not distinct");
        }
        if next.contains("pg_get_indexdef(indexrelid) FROM partman") {
            let template = printed(session, next).map_err(|error| sqlstate(&error).1)?;
            ensure!(
                template.len() == 1 && template[0].contains("(value)"),
                "the template has the indexes {template:?}"
            );
            ensure!(without_indexes(session) > 0, "all partitions already have the index");
        }
        if next.contains("snowflake_create_partitions") {
            let valid: bool =
                session.one("SELECT indisvalid FROM pg_index WHERE indexrelid = 'readings_value'::regclass");
            ensure!(valid, "the index of the table is not complete");
        }
        Ok(())
    })?;
    ensure!(written > 0, "nothing was written");
    check_rows(&mut session, &before)?;
    Ok(run)
}

fn check_rows(session: &mut Client, before: &str) -> Result<(), String> {
    ensure!(places(session) == before, "old rows were changed or moved");
    let stray: i64 = session.one("SELECT count(*) FROM readings_default");
    ensure!(stray == 0, "{stray} rows are in the default partition");
    let wrong: i64 = session.one(
        "SELECT count(*) FROM readings WHERE (id >= 1::bigint << 60) <> (tableoid::regclass::text ~ '^readings_\\d{8}$')",
    );
    ensure!(wrong == 0, "{wrong} rows are in the wrong partition");
    let new: i64 = session.one("SELECT count(*) FROM readings WHERE id >= 1::bigint << 60");
    ensure!(new > 0, "no row has a snowflake");
    let listed = printed(session, &block(KEY, "GROUP BY tableoid")).map_err(|error| sqlstate(&error).1)?;
    ensure!(listed.iter().all(|row| row.starts_with("readings_2")), "new rows are in {listed:?}");
    let without = without_indexes(session);
    ensure!(without == 0, "{without} partitions do not have two indexes");
    let late: i64 = session.one(
        "SELECT count(*) FROM readings WHERE id >= 1::bigint << 60 AND snowflake_timestamp(id) < created_at - interval '1 s'",
    );
    ensure!(late == 0, "{late} IDs do not have the time of their row");
    Ok(())
}

#[test]
fn a_table_by_ranges_of_its_key_gets_partitions_of_days_while_clients_write() {
    let Some(()) = installed() else { return };
    migrate(AS_WRITTEN).unwrap();
}

/// Partitions that do not get the index of the template, maintenance that was not stopped, and new IDs without partitions.
#[test]
fn a_table_by_ranges_of_its_key_that_is_changed_without_a_step_is_caught() {
    let Some(()) = installed() else { return };
    for (edit, reason) in [
        (("CREATE INDEX CONCURRENTLY ON %s (value)", "ANALYZE %s"), "the index of the table is not complete"),
        (
            ("automatic_maintenance = 'off'", "automatic_maintenance = 'on'"),
            "maintenance: invalid input syntax for type bigint",
        ),
        (("SELECT snowflake_create_partitions('readings', '1 day', 7);", ""), "rows are in the default partition"),
    ] {
        assert_caught(migrate(edit).map(drop), reason);
    }
}

/// Checks that going back gives new rows numbers in the order of their IDs, and that pg_partman maintains the table again.
fn check_back(edit: Edit) -> Result<(), String> {
    let run = migrate(AS_WRITTEN)?;
    let mut session = run.server.connect();
    session.batch_execute("CREATE TABLE kept AS SELECT id, created_at FROM readings").expect("a copy");
    let alerts: i64 = session.one("SELECT count(*) FROM alerts");
    typed(run.server.psql(), &block(BACK, "LOCK TABLE").replace(edit.0, edit.1))?;
    typed(run.server.psql(), &block(BACK, "UPDATE partman."))?;
    let maintained: bool = session
        .one("SELECT automatic_maintenance = 'on' FROM partman.part_config WHERE parent_table = 'public.readings'");
    ensure!(maintained, "pg_partman does not maintain the table");
    session
        .batch_execute(
            "CALL partman.partition_data_proc('public.readings'); SELECT partman.run_maintenance('public.readings')",
        )
        .map_err(|error| format!("maintenance: {}", sqlstate(&error).1))?;
    maintain(&mut session)?;
    session.batch_execute(WRITE).expect("a client");
    let left: i64 = session.one("SELECT count(*) FROM readings WHERE id >= 1::bigint << 60");
    ensure!(left == 0, "{left} rows still have snowflakes");
    let stray: i64 = session.one("SELECT count(*) FROM readings_default");
    ensure!(stray == 0, "{stray} rows are in the default partition");
    let lost: i64 = session.one("SELECT (SELECT count(*) FROM kept) + 1 - (SELECT count(*) FROM readings)");
    ensure!(lost == 0, "{lost} rows are lost");
    let order = |table: &str| format!("SELECT md5(string_agg(created_at::text, ',' ORDER BY id)) FROM {table}");
    let restored = order("(SELECT * FROM readings ORDER BY id LIMIT (SELECT count(*) FROM kept)) AS restored");
    ensure!(session.one::<String>(&restored) == session.one::<String>(&order("kept")), "rows are in another order");
    let referring: i64 = session.one("SELECT count(*) - 1 FROM alerts JOIN readings ON reading_id = id");
    ensure!(referring == alerts, "{referring} of {alerts} references hold");
    Ok(())
}

#[test]
fn until_the_sequence_is_dropped_the_way_back_is_open() {
    let Some(()) = installed() else { return };
    check_back(AS_WRITTEN).unwrap();
}

#[test]
fn numbers_in_another_order_are_caught() {
    let Some(()) = installed() else { return };
    let edit = ("ORDER BY id) AS ordered", "ORDER BY id DESC) AS ordered");
    assert_caught(check_back(edit), "rows are in another order");
}

#[test]
fn rows_to_which_others_refer_or_that_a_trigger_keeps_do_not_go_back() {
    let Some(()) = installed() else { return };
    for (prepare, reason) in [
        (
            "ALTER TABLE alerts DROP CONSTRAINT alerts_reading_id_fkey;
             ALTER TABLE alerts ADD FOREIGN KEY (reading_id) REFERENCES readings",
            "violates foreign key constraint",
        ),
        (
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
             CREATE TRIGGER keep BEFORE UPDATE ON readings FOR EACH ROW EXECUTE FUNCTION keep()",
            "still contains rows",
        ),
    ] {
        let run = migrate(AS_WRITTEN).unwrap();
        let mut session = run.server.connect();
        session.batch_execute(prepare).unwrap();
        let rows = "SELECT md5(string_agg(r::text, ',' ORDER BY id)) FROM readings AS r";
        let before: String = session.one(rows);
        assert_caught(typed(run.server.psql(), &block(BACK, "LOCK TABLE")).map(drop), reason);
        assert_eq!(session.one::<String>(rows), before);
    }
}
