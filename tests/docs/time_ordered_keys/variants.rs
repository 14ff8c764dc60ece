//! Keys that cannot be used as they are, columns with an order of their own, and layouts with longer ticks, by following what the
//! page says in words.

use cluster::{Answer, Client, Cluster, assert_caught, ensure, not_tested, typed};
use fastrand::Rng;

use super::kind::{Format, KeyKind};
use super::{CHECK, MILLISECONDS, ROWS, SECONDS, block_of, blocks, tables, told};
use crate::migration::page::{Edit, builder, section};

/// The columns that step 2 of From UUIDs adds.
const STEP_2: &str = "ALTER TABLE documents ADD COLUMN new_id bigint";

fn assign(kind: KeyKind) -> String {
    block_of(if kind.unit() == 1 { MILLISECONDS } else { SECONDS }, "CREATE TABLE documents_new_ids")
}

/// Starts a server with the page's function, and with these documents and the columns of step 2.
fn documents(kind: KeyKind, columns: &str, rows: &str) -> (Cluster, Client) {
    let server = builder().start();
    let mut session = server.session();
    session
        .batch_execute(&format!(
            "CREATE TABLE documents ({columns}); {STEP_2}; {}; INSERT INTO documents VALUES {rows}",
            kind.function()
        ))
        .unwrap();
    (server, session)
}

/// Assigns IDs to documents with a key of each problem, and to a usual one, and checks the times of these IDs.
fn check_problems(kind: KeyKind, time: &str) -> Result<(), String> {
    let mut random = Rng::with_seed(4);
    let (early, usual, late) = (1_200_000_000_000, 1_700_000_000_000, 2_208_988_800_000);
    let [early, usual, late] = [early, usual, late].map(|ms| kind.random(ms, &mut random));
    let rows = format!("('{usual}'), ('{early}'), ('{late}'), ('malformed')");
    let (server, mut session) = documents(kind, "id text PRIMARY KEY", &rows);
    typed(server.psql(), &assign(kind).replace("key_time(id)", time))?;
    let near = |session: &mut Client, key: &str, at: &str| -> Option<bool> {
        session.one(&format!(
            "SELECT abs(extract(epoch FROM snowflake_timestamp(new_id) - {at})) < 60 FROM documents_new_ids WHERE id = '{key}'"
        ))
    };
    for (key, at) in [
        (&usual[..], "to_timestamp(1700000000)"),
        (&early, "snowflake_timestamp(0)"),
        ("malformed", "now()"),
        (&late, "now()"),
    ] {
        let near = near(&mut session, key, at);
        ensure!(near.is_some(), "{key} has no ID");
        ensure!(near == Some(true), "the ID of {key} does not have the time {at}");
    }
    let after: i64 = session.one("SELECT count(*) FROM documents_new_ids WHERE new_id > snowflake_nextval()");
    ensure!(after == 0, "{after} IDs sort after new ones");
    Ok(())
}

#[test]
fn times_that_cannot_be_used_are_replaced() {
    for kind in [KeyKind::of(Format::Ulid, "text"), KeyKind::of(Format::ObjectId, "text")] {
        let all =
            told("greatest(least(coalesce(key_time(id), now()), now() - interval '1 s'), snowflake_timestamp(0))");
        check_problems(kind, all).unwrap();
        for (time, reason) in [
            ("key_time(id)", "is outside the range of layout"),
            (told("greatest(coalesce(key_time(id), now()), snowflake_timestamp(0))"), "does not have the time now()"),
            (told("least(coalesce(key_time(id), now()), now() - interval '1 s')"), "is outside the range"),
            ("greatest(key_time(id), snowflake_timestamp(0))", "the ID of malformed does not have the time now()"),
        ] {
            assert_caught(check_problems(kind, time), reason);
        }
    }
}

/// A malformed key without a time gets no ID, and the others do.
#[test]
fn a_malformed_key_gets_the_other_time_of_its_row_or_no_id() {
    for kind in [KeyKind::of(Format::Ulid, "text"), KeyKind::of(Format::Ksuid, "text")] {
        let rows = format!("('{}', NULL), ('malformed', '2020-02-02 00:00+00')", kind.key(1_700_000_000_000, 7));
        let (server, mut session) = documents(kind, "id text PRIMARY KEY, created_at timestamptz", &rows);
        let ids = "SELECT count(new_id) FROM documents_new_ids";
        typed(server.psql(), &assign(kind)).unwrap();
        assert_eq!(session.one::<i64>(ids), 1);
        session.batch_execute("DROP TABLE documents_new_ids").unwrap();
        let replaced = assign(kind).replace("key_time(id)", told("coalesce(key_time(id), created_at)"));
        typed(server.psql(), &replaced).unwrap();
        assert_eq!(session.one::<i64>(ids), 2);
        let time: String = session.one(
            "SELECT (snowflake_timestamp(new_id) AT TIME ZONE 'UTC')::text FROM documents_new_ids WHERE id = 'malformed'",
        );
        assert_eq!(time, "2020-02-02 00:00:00");
    }
}

/// Assigns IDs, with edits, and checks that they sort like the texts that a query returns for the keys.
fn check_order(kind: KeyKind, prepare: &str, edits: &[Edit], order: &str) -> Result<(), String> {
    let server = builder().start();
    let mut session = server.session();
    session.batch_execute(&format!("{}; {STEP_2}; {}; {prepare}", tables(kind, 150), kind.function())).unwrap();
    let block = edits.iter().fold(assign(kind), |text, (from, to)| {
        assert!(text.contains(from), "the block has no {from:?}");
        text.replace(from, to)
    });
    typed(server.psql(), &block)?;
    let ids: i64 = session.one("SELECT count(new_id) FROM documents_new_ids");
    ensure!(ids.cast_unsigned() == ROWS, "{ids} of {ROWS} rows have an ID");
    let disordered: i64 = session.one(&format!(
        "SELECT count(*) FROM (SELECT at, lag(at) OVER (ORDER BY new_id) AS before
             FROM (SELECT given.new_id, {order} AS at FROM documents_new_ids AS given JOIN documents USING (id)) AS keys) AS ids
         WHERE before > at"
    ));
    ensure!(disordered == 0, "{disordered} IDs do not sort like their keys");
    Ok(())
}

#[test]
fn keys_in_a_column_with_another_collation_sort_as_bytes() {
    let kind = KeyKind::of(Format::Ksuid, "text");
    let icu: bool =
        builder().start().connect().one("SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'en-x-icu')");
    if !icu {
        return not_tested("PostgreSQL is built without ICU, whose collations sort letters in another order");
    }
    let prepare = "DROP TABLE revisions; ALTER TABLE documents ALTER COLUMN id TYPE text COLLATE \"en-x-icu\"";
    let order = "id COLLATE \"C\"";
    check_order(kind, prepare, &[], order).unwrap();
    assert_caught(check_order(kind, prepare, &[(" COLLATE \"C\"", "")], order), "do not sort");
}

#[test]
fn ulids_of_both_cases_sort_together() {
    let kind = KeyKind::of(Format::Ulid, "text");
    let prepare = "DROP TABLE revisions; UPDATE documents SET id = lower(id) WHERE n % 2 = 0";
    let order = "upper(id) COLLATE \"C\"";
    check_order(kind, prepare, &[("id COLLATE \"C\"", told(order))], order).unwrap();
    assert_caught(check_order(kind, prepare, &[], order), "do not sort");
}

#[test]
fn a_more_precise_time_orders_the_rows_of_a_second() {
    // KSUIDs of one second are in random order, so only `created_at` has the order in which the rows were inserted.
    let prepare = "ALTER TABLE documents ADD COLUMN created_at timestamptz;
        UPDATE documents SET created_at = key_time(id) + n * interval '50 us'";
    let precise = [
        (told("SELECT id, key_time(id) AS second"), "SELECT id, key_time(id) AS second, created_at"),
        ("ORDER BY id COLLATE \"C\"", told("ORDER BY created_at, id COLLATE \"C\"")),
    ];
    let kind = KeyKind::of(Format::Ksuid, "text");
    check_order(kind, prepare, &precise, "created_at").unwrap();
    assert_caught(check_order(kind, prepare, &[], "created_at"), "do not sort");
}

/// A tick of 10 ms has room for 256 rows, so a second has room for 25,600.
#[test]
fn rows_are_spread_over_the_ticks_of_the_layout() {
    let kind = KeyKind::of(Format::Ksuid, "bytea");
    let server = builder().set("snowflake_pg.layout", "sonyflake").start();
    let mut session = server.session();
    session.batch_execute(&format!("{}; {STEP_2}; {}", tables(kind, 150), kind.function())).unwrap();
    typed(server.psql(), &assign(kind).replace(" COLLATE \"C\"", "")).unwrap();
    let wrong: i64 = session.one(
        "SELECT count(*) FROM documents_new_ids WHERE date_trunc('second', snowflake_timestamp(new_id)) <> key_time(id)",
    );
    assert_eq!(wrong, 0);
    assert_eq!(session.one::<i64>("SELECT count(DISTINCT new_id) FROM documents_new_ids").cast_unsigned(), ROWS);
}

/// The block of From UUIDs that undoes a migration, and what this page adds to it, leave nothing of the migration.
#[test]
fn what_was_begun_can_be_undone() {
    let kind = KeyKind::of(Format::Ulid, "text");
    let server = builder().start();
    let mut session = server.session();
    session.batch_execute(&tables(kind, 150)).unwrap();
    let left = "SELECT array_agg(attrelid::regclass || ' ' || attname || atthasdef ORDER BY attrelid, attnum)::text FROM pg_attribute
        WHERE attrelid IN ('documents'::regclass, 'revisions'::regclass) AND attnum > 0 AND NOT attisdropped";
    let before: String = session.one(left);
    let (first, rest) = blocks(kind);
    let swap = rest.iter().position(|(_, text)| text.contains("RENAME COLUMN")).expect("a swap");
    for (_, text) in first.iter().chain(&rest[..swap]) {
        typed(server.psql(), text).unwrap();
    }
    let undo = section("From UUIDs").blocks.pop().expect("the block that undoes a migration").1;
    typed(server.psql(), &undo).unwrap();
    assert_ne!(session.one::<String>(left), before, "the key still has its default");
    session.batch_execute(told("ALTER TABLE documents ALTER COLUMN id DROP DEFAULT")).unwrap();
    assert_eq!(session.one::<String>(left), before);
    assert_eq!(session.one::<i64>("SELECT count(*) FROM documents").cast_unsigned(), ROWS);
}

#[test]
fn uuids_in_text_are_read_as_uuids() {
    let kind = KeyKind::of(Format::Uuidv7, "uuid");
    let [early, late] = [1_600_000_000_000, 1_700_000_000_000].map(|ms| kind.key(ms, 1 << 70));
    let rows = format!("('{}'), ('{early}')", late.to_uppercase());
    let (server, mut session) = documents(kind, "id text PRIMARY KEY", &rows);
    let block = assign(kind).replace("key_time(id)", told("key_time(id::uuid)"));
    typed(server.psql(), &block).unwrap();
    let times: Vec<i64> = session.all(
        "SELECT (extract(epoch FROM snowflake_timestamp(new_id)) * 1000)::bigint FROM documents_new_ids ORDER BY new_id",
    );
    assert_eq!(times, [1_600_000_000_000, 1_700_000_000_000]);
    session.batch_execute("DROP TABLE documents_new_ids; INSERT INTO documents VALUES ('no UUID')").unwrap();
    assert_caught(typed(server.psql(), &block).map(drop), "invalid input syntax for type uuid");
}

#[test]
fn rows_without_a_key_get_their_ids_first() {
    let kind = KeyKind::of(Format::Ulid, "text");
    let rows = format!("('{}'), (NULL), (NULL)", kind.key(1_700_000_000_000, 1));
    let (server, mut session) = documents(kind, "id text UNIQUE", &rows);
    let check = block_of(CHECK, "AS problem");
    let found: String = session.one(check.trim().trim_end_matches(';'));
    assert_eq!(found, "malformed");
    assert_caught(typed(server.psql(), &assign(kind)).map(drop), "contains null values");
    session.batch_execute("DROP TABLE documents_new_ids").unwrap();
    session.batch_execute(told("UPDATE documents SET new_id = snowflake_nextval() WHERE id IS NULL")).unwrap();
    typed(server.psql(), &assign(kind)).unwrap();
    let ids: i64 = session.one(
        "SELECT count(DISTINCT coalesce(documents.new_id, given.new_id))
         FROM documents LEFT JOIN documents_new_ids AS given USING (id)",
    );
    assert_eq!(ids, 3);
}
