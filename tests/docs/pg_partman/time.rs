//! Partitioned by a time: pg_partman goes on, or new rows get partitions by their IDs, with the old table below the new one.

use cluster::{Answer, Client, assert_caught, ensure, sqlstate, typed};

use super::{block, blocks, maintain, run};
use crate::migration::page::{AS_WRITTEN, Edit, Run};

/// The sections with blocks.
pub const TITLES: &[&str] = &[TIME, BY_IDS, BACK];

const TIME: &str = "Partitioned by a time";
const BY_IDS: &str = "Partition new rows by their IDs";
const BACK: &str = "Go back to partitions by time";

/// 240 visits, one an hour, in the last ten days.
const TABLES: &str = "CREATE TABLE visits (id bigserial, page text NOT NULL CHECK (page <> ''),
        created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (id, created_at)) PARTITION BY RANGE (created_at);
    CREATE INDEX ON visits (page);
    SELECT partman.create_parent('public.visits', 'created_at', 'native', 'daily',
        p_start_partition := (now() - interval '11 days')::text);
    INSERT INTO visits (page, created_at) SELECT 'page ' || n, now() - (240 - n) * interval '1 hour'
    FROM generate_series(1, 240) AS n";

const WRITE: &str = "INSERT INTO visits (page) VALUES ('live')";

/// Sets a retention of five days, so that maintenance drops five partitions with old rows.
const RETENTION: &str = "UPDATE partman.part_config SET retention = '5 days', retention_keep_table = false
    WHERE parent_table LIKE 'public.visits%'";

fn files(session: &mut Client) -> String {
    session.one("SELECT string_agg(DISTINCT pg_relation_filenode(tableoid)::text, ',') FROM visits WHERE id <= 240")
}

#[test]
fn a_table_by_time_needs_only_another_default() {
    let Some(mut run) = run(AS_WRITTEN, TABLES) else { return };
    let before = files(&mut run.server.connect());
    run.busy(&blocks(TIME), WRITE, |session, _| maintain(session)).unwrap();
    let mut session = run.server.connect();
    session.batch_execute(WRITE).unwrap();
    assert_eq!(files(&mut session), before);
    let new = "SELECT count(*) FROM visits WHERE id >= 1::bigint << 60";
    assert!(session.one::<i64>(new) > 0);
    // pg_partman's retention also counts days for the table with both kinds of keys.
    session.batch_execute(RETENTION).unwrap();
    maintain(&mut session).unwrap();
    let oldest: bool = session.one("SELECT min(created_at) > now() - interval '6 days' FROM visits");
    assert!(oldest, "retention has ended");
    assert_eq!(session.one::<i64>("SELECT count(*) FROM visits_default"), 0);
}

/// Types the first steps while a client writes and maintenance runs, and checks the rows and their partitions.
fn migrate(edit: Edit) -> Option<Result<Run, String>> {
    let mut run = run(edit, TABLES)?;
    let mut session = run.server.connect();
    let before = files(&mut session);
    let steps: Vec<(String, String)> =
        blocks(BY_IDS).into_iter().take_while(|(_, text)| !text.contains("DROP TABLE")).collect();
    let typed = run.busy(&steps, WRITE, |session, _| maintain(session));
    Some(typed.and_then(|written| {
        ensure!(written > 0, "nothing was written");
        ensure!(files(&mut session) == before, "old rows were moved");
        let wrong: i64 = session.one(
            "SELECT count(*) FROM visits WHERE (id >= 1::bigint << 60) <> (tableoid::regclass::text ~ '^visits_\\d{8}$')",
        );
        ensure!(wrong == 0, "{wrong} rows are in the wrong partition");
        let rows: i64 = session.one("SELECT count(*) FROM visits WHERE page <> 'live'");
        ensure!(rows == 240, "{rows} of 240 old rows");
        ensure!(session.code("INSERT INTO visits (page) VALUES ('')").as_deref() == Some("23514"), "a check is lost");
        let indexes: i64 = session.one("SELECT count(*) FROM pg_index WHERE indrelid = 'visits'::regclass AND indisvalid");
        ensure!(indexes == 2, "the new table has {indexes} valid indexes");
        let day: i64 = session.one(block(BY_IDS, "snowflake_between").trim().trim_end_matches(';'));
        let expected: i64 = session.one("SELECT count(*) FROM visits WHERE created_at >= now() - interval '1 day'");
        ensure!(day == expected, "the query finds {day} of {expected} rows of a day");
        Ok(run)
    }))
}

#[test]
fn new_rows_get_partitions_by_their_ids_while_clients_write() {
    let Some(migrated) = migrate(AS_WRITTEN) else { return };
    let run = migrated.unwrap();
    let mut session = run.server.connect();
    session.batch_execute(RETENTION).unwrap();
    maintain(&mut session).unwrap();
    let oldest: bool = session.one("SELECT min(created_at) > now() - interval '6 days' FROM visits");
    assert!(oldest, "the old rows do not expire");
    let new: i64 = session.one("SELECT count(*) FROM visits WHERE id >= 1::bigint << 60");
    typed(run.server.psql(), &block(BY_IDS, "DROP TABLE")).unwrap();
    assert_eq!(session.one::<i64>("SELECT count(*) FROM visits"), new);
    session.batch_execute(WRITE).unwrap();
    maintain(&mut session).unwrap();
}

#[test]
fn a_table_whose_new_name_pg_partman_does_not_know_is_caught() {
    let edit = (
        "UPDATE partman.part_config SET parent_table = 'public.visits_by_time' WHERE parent_table = 'public.visits';",
        "",
    );
    let Some(migrated) = migrate(edit) else { return };
    assert_caught(migrated.map(drop), "maintenance: ");
}

#[test]
fn new_rows_without_partitions_are_caught() {
    let edit = ("SELECT snowflake_create_partitions('visits', '1 day', 7);", "");
    let Some(migrated) = migrate(edit) else { return };
    assert_caught(migrated.map(drop), "a writer: no partition of relation \"visits\" found for row");
}

/// Returns what the step that locks the table reports about the constraint, with `edit`.
fn attach(edit: Edit) -> Option<String> {
    let run = run(AS_WRITTEN, TABLES)?;
    typed(run.server.psql(), &block(BY_IDS, "NOT VALID").replace(edit.0, edit.1)).unwrap();
    let mut psql = run.server.psql();
    psql.env("PGOPTIONS", "-c client_min_messages=debug1").args(["-c", &block(BY_IDS, "ATTACH PARTITION")]);
    let done = psql.output().expect("psql can be run");
    assert!(done.status.success(), "{done:?}");
    Some(String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn rows_are_not_read_while_sessions_wait() {
    let implied = "is implied by existing constraints";
    let Some(reported) = attach(AS_WRITTEN) else { return };
    assert!(reported.contains(implied), "{reported}");
    let reported = attach(("id < 1152921504606846976", "id < 1152921504606846977")).expect("pg_partman");
    assert!(!reported.contains(implied), "{reported}");
}

#[test]
fn a_table_that_already_has_snowflakes_is_refused_by_the_first_step() {
    let Some(run) = run(AS_WRITTEN, TABLES) else { return };
    typed(run.server.psql(), &blocks(TIME)[0].1).unwrap();
    run.server.connect().batch_execute(WRITE).unwrap();
    let refused = typed(run.server.psql(), &block(BY_IDS, "NOT VALID")).unwrap_err();
    assert!(refused.contains("\"old_number\" of relation \"visits_"), "{refused}");
}

/// Checks that going back loses no row, and that pg_partman maintains the table again.
fn check_back(edit: Edit) -> Option<Result<(), String>> {
    let run = match migrate(AS_WRITTEN)? {
        Ok(run) => run,
        Err(error) => return Some(Err(error)),
    };
    let mut session = run.server.connect();
    let rows = "SELECT md5(string_agg(v::text, ',' ORDER BY id)) FROM visits AS v";
    let before: String = session.one(rows);
    let mut check = || {
        typed(run.server.psql(), &block(BACK, "DETACH PARTITION").replace(edit.0, edit.1))?;
        ensure!(session.one::<String>(rows) == before, "rows are lost");
        session.batch_execute(WRITE).map_err(|error| format!("a writer: {}", sqlstate(&error).1))?;
        maintain(&mut session)?;
        let stray: i64 = session.one("SELECT count(*) FROM visits_default");
        ensure!(stray == 0, "{stray} rows are in the default partition");
        Ok(())
    };
    Some(check())
}

#[test]
fn new_rows_can_go_back_to_partitions_by_time() {
    let Some(checked) = check_back(AS_WRITTEN) else { return };
    checked.unwrap();
    let checked = check_back(("ALTER TABLE visits DROP CONSTRAINT old_number;\n", "")).expect("pg_partman");
    assert_caught(checked, "violates check constraint \"old_number\"");
}
