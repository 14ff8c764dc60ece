//! Keep the UUIDs: programs see UUIDs while the table has IDs, or the column itself remains a UUID.

use cluster::{Answer, assert_caught, ensure, printed, sqlstate, typed};
use fastrand::Rng;

use super::block_of;
use super::kind::{Format, KeyKind};
use crate::migration::filenode;
use crate::migration::page::{Edit, builder};

pub const TITLE: &str = "Keep the UUIDs";

/// How many blocks the section has. The tests below type each of them.
pub const BLOCKS: usize = 5;

const UUIDV7: KeyKind = KeyKind { format: Format::Uuidv7, column: "uuid" };

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
    session.batch_execute(&block_of(TITLE, "SELECT snowflake_to_uuid(id) AS id")).unwrap();
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

/// Prepares the page's query for documents that keep their old keys, and checks that each row is found by the UUID that programs see.
fn check_old_keys(format: Format, edit: Edit) -> Result<(), String> {
    let server = builder().start();
    let mut session = server.session();
    let kind = KeyKind::of(format, "uuid");
    let mut random = Rng::with_seed(5);
    let keys: Vec<String> =
        (0..5_000).map(|n| format!("('{}')", kind.random(1_700_000_000_000 + n, &mut random))).collect();
    // The table as step 8 leaves it.
    session
        .batch_execute(&format!(
            "CREATE TABLE documents (old_id uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
                 id bigint PRIMARY KEY DEFAULT snowflake_nextval(), title text GENERATED ALWAYS AS ('title ' || id) STORED);
             INSERT INTO documents (old_id) VALUES {}; ANALYZE documents",
            keys.join(", ")
        ))
        .unwrap();
    let block = block_of(TITLE, "coalesce(old_id");
    assert!(block.contains(edit.0), "the block has no {edit:?}");
    session.batch_execute(&block.replace(edit.0, edit.1)).unwrap();
    session.batch_execute("INSERT INTO documents SELECT FROM generate_series(1, 1000)").unwrap();
    let kept: i64 = session.one("SELECT count(*) FROM public_documents JOIN documents ON public_documents.id = old_id");
    ensure!(kept == 5_000, "{kept} rows show their old key");
    let rows: Vec<String> =
        session.all("SELECT id || '|' || title FROM public_documents WHERE right(title, 1) = '7' OR random() < 0.1");
    for row in rows {
        let (uuid, title) = row.split_once('|').expect("a UUID and a title");
        let find = format!("EXECUTE find ('{uuid}')");
        let found = printed(&mut session, &find).map_err(|error| sqlstate(&error).1)?;
        ensure!(found == [title], "{uuid} finds {found:?}");
    }
    for setting in ["force_custom_plan", "force_generic_plan"] {
        session.batch_execute(&format!("SET plan_cache_mode = {setting}")).unwrap();
        let plan = session.plan("EXECUTE find ('017f22e2-79b0-7cc3-98c4-dc0c0c07398f')");
        ensure!(!plan.contains("Seq Scan"), "reads the whole table:\n{plan}");
    }
    Ok(())
}

#[test]
fn rows_are_found_by_their_old_keys_and_new_uuids() {
    for format in [Format::Uuidv7, Format::Ulid] {
        check_old_keys(format, ("", "")).unwrap_or_else(|e| panic!("{format:?}: {e}"));
    }
}

#[test]
fn old_keys_that_are_not_found_are_caught() {
    let case = "CASE WHEN $1::text ~ '^.{14}8.{3}-[89ab][08]00-0{12}$' THEN snowflake_from_uuid($1) END";
    let all = (case, "snowflake_from_uuid($1)");
    assert_caught(check_old_keys(Format::Uuidv7, all), "is not an ID in UUID form");
    assert_caught(check_old_keys(Format::Uuidv7, (" OR old_id = $1", "")), "finds []");
    let new = ("coalesce(old_id, snowflake_to_uuid(id))", "snowflake_to_uuid(id)");
    assert_caught(check_old_keys(Format::Uuidv7, new), "0 rows show their old key");
    // A ULID can have any digit in the place of the version.
    let version = ("8.{3}-[89ab][08]00-0{12}$", "8");
    assert_caught(check_old_keys(Format::Ulid, version), "is not an ID in UUID form");
}

/// Checks that a column of UUIDs keeps its rows, and that new rows sort after them and show their time.
fn check_default(edit: Edit) -> Result<(), String> {
    let server = builder().start();
    let mut session = server.session();
    let mut random = Rng::with_seed(3);
    // The last key is of the last millisecond of the year 2999.
    let times = (0..1_000).map(|n| 1_500_000_000_000 + n * 200_000_000).chain([32_503_680_000_000 - 1]);
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
    let later = block_of(TITLE, "AS later");
    ensure!(session.one::<bool>(&later), "the query returns that new keys sort before others");
    typed(server.psql(), &block_of(TITLE, "ALTER TABLE sessions").replace(edit.0, edit.1))?;
    for _ in 0..100 {
        session.batch_execute("INSERT INTO sessions DEFAULT VALUES").map_err(|error| sqlstate(&error).1)?;
    }
    ensure!(filenode(&mut session, "sessions") == before, "the table was rewritten");
    let disordered: i64 = session.one(
        "SELECT count(*) FROM (SELECT n < lag(n) OVER (ORDER BY id) AS later FROM sessions) AS ordered WHERE later",
    );
    ensure!(disordered == 0, "{disordered} new keys sort before others");
    session.batch_execute("INSERT INTO sessions (id, n) VALUES ('ffffffff-ffff-4fff-bfff-ffffffffffff', 0)").unwrap();
    ensure!(!session.one::<bool>(&later), "the query returns that new keys sort after a larger one");
    session.batch_execute("DELETE FROM sessions WHERE n = 0").unwrap();
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
