//! Keep the UUIDs: programs see UUIDs while the table has IDs, or the column itself remains a UUID.

use cluster::{Answer, Cluster, assert_caught, ensure, sqlstate, typed};
use fastrand::Rng;

use super::block_of;
use super::kind::{Format, Kind};
use crate::migration::filenode;
use crate::migration::page::{Edit, builder};

pub const TITLE: &str = "Keep the UUIDs";

/// How many blocks the section has. The tests below type each of them.
pub const BLOCKS: usize = 3;

const UUIDV7: Kind = Kind { format: Format::Uuidv7, column: "uuid" };

#[test]
fn programs_see_uuids_and_find_rows_by_them() {
    let server = builder().start();
    let mut session = server.session();
    session
        .batch_execute(
            "CREATE TABLE documents (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), title text);
             INSERT INTO documents (title) SELECT 'title ' || n FROM generate_series(1, 10000) AS n; ANALYZE documents",
        )
        .unwrap();
    session.batch_execute(&block_of(TITLE, "CREATE VIEW")).unwrap();
    let uuid: String = session.one("SELECT id::text FROM public_documents WHERE title = 'title 7'");
    assert_eq!(session.one::<String>(&format!("EXECUTE find ('{uuid}')")), "title 7");
    let plan = session.plan(&format!("EXECUTE find ('{uuid}')"));
    assert!(plan.contains("Index Scan using documents_pkey"), "{plan}");
    let ordered = "SELECT array_agg(title ORDER BY id) = (SELECT array_agg(title ORDER BY id) FROM documents) FROM public_documents";
    assert!(session.one::<bool>(ordered));
    // A UUID of another kind is refused, and finds no other row.
    let refused = session.refusal("EXECUTE find ('017f22e2-79b0-7cc3-98c4-dc0c0c07398f')");
    assert_eq!(refused.0, "22023", "{refused:?}");
}

/// Checks that a column of UUIDs keeps its rows, and that new rows sort after them and show their time.
fn check_default(edit: Edit) -> Result<(), String> {
    let server: Cluster = builder().start();
    let mut session = server.session();
    let mut random = Rng::with_seed(3);
    // The last key is of 2039-09-07 15:47:35 UTC, the last second in which the first byte of a UUIDv7 is 1.
    let times = (0..1_000).map(|n| 1_500_000_000_000 + n * 200_000_000).chain([(1 << 41) - 1]);
    let keys: Vec<String> = times.map(|ms| format!("('{}')", UUIDV7.random(ms, &mut random))).collect();
    session
        .batch_execute(&format!(
            "CREATE TABLE sessions (id uuid PRIMARY KEY, n serial);
             CREATE TABLE visits (session uuid REFERENCES sessions);
             INSERT INTO sessions (id) VALUES {}; INSERT INTO visits SELECT id FROM sessions",
            keys.join(", ")
        ))
        .unwrap();
    let before = filenode(&mut session, "sessions");
    typed(server.psql(), &block_of(TITLE, "ALTER TABLE sessions").replace(edit.0, edit.1))?;
    for _ in 0..100 {
        session.batch_execute("INSERT INTO sessions DEFAULT VALUES").map_err(|error| sqlstate(&error).1)?;
    }
    ensure!(filenode(&mut session, "sessions") == before, "the table was rewritten");
    let disordered: i64 = session.one(
        "SELECT count(*) FROM (SELECT n < lag(n) OVER (ORDER BY id) AS later FROM sessions) AS ordered WHERE later",
    );
    ensure!(disordered == 0, "{disordered} new keys sort before others");
    session.batch_execute(&UUIDV7.function()).unwrap();
    let query = block_of(TITLE, "key_time(id)");
    let wrong: i64 = session.one(&format!(
        "SELECT count(*) FROM ({}) AS times JOIN sessions USING (id) WHERE created_at IS NULL
         OR n > 1001 AND created_at NOT BETWEEN now() - interval '1 min' AND now() + interval '1 min'
         OR n <= 1000 AND created_at <> to_timestamp(1500000000 + (n - 1) * 200000)",
        query.trim().trim_end_matches(';')
    ));
    ensure!(wrong == 0, "{wrong} keys have a wrong time");
    Ok(())
}

#[test]
fn a_column_of_uuids_keeps_its_keys() {
    check_default(("", "")).unwrap();
}

#[test]
fn a_default_of_random_uuids_is_caught() {
    assert_caught(check_default(("snowflake_to_uuid(snowflake_nextval())", "gen_random_uuid()")), "sort before others");
}
