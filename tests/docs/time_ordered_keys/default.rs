//! The defaults that generate old keys during a migration, and the list of what these keys must fit.

use cluster::{Answer, Client, assert_caught, ensure, sqlstate};

use super::kind::{Format, KINDS, KeyKind};
use super::{ASSIGN, block_of, default, told};
use crate::migration::page::{Edit, builder};

/// Creates a table of documents whose keys must have the form of this kind, and gives the keys their default.
fn create(session: &mut Client, kind: KeyKind, edit: Edit) {
    let length = kind.key(1_700_000_000_000, 1).len();
    let (column, check) = match kind.column {
        "text" => (format!("char({length})"), format!("length(id) = {length} AND octet_length(id) = {length}")),
        // Two hexadecimal digits for each byte, after the prefix.
        "bytea" => ("bytea".into(), format!("octet_length(id) = {}", length / 2 - 1)),
        _ => ("uuid".into(), "true".into()),
    };
    let block = default(kind);
    assert!(block.contains(edit.0), "{kind:?} has no {edit:?}");
    session
        .batch_execute(&format!(
            "DROP TABLE IF EXISTS documents; DROP FUNCTION IF EXISTS key_time; {};
             CREATE TABLE documents (id {column} PRIMARY KEY CHECK ({check}), n serial); {}",
            kind.function(),
            block.replace(edit.0, edit.1)
        ))
        .unwrap();
}

/// Checks that the default of a kind generates keys of this kind, which contain the present time and sort after an earlier key.
fn check(kind: KeyKind, edit: Edit) -> Result<(), String> {
    let server = builder().start();
    let mut session = server.session();
    create(&mut session, kind, edit);
    let now = session.one::<i64>("SELECT extract(epoch FROM now())::bigint * 1000 - 5000").cast_unsigned();
    session.batch_execute(&format!("INSERT INTO documents VALUES ('{}')", kind.key(now, u128::MAX / 3))).unwrap();
    for _ in 0..500 {
        session.batch_execute("INSERT INTO documents DEFAULT VALUES").map_err(|error| sqlstate(&error).1)?;
    }
    // A KSUID in text cannot be computed without a function, so its time is the last one.
    let last = "timestamptz '2150-06-19 23:21:35+00'";
    let (from, to) = match (kind.format, kind.column) {
        (Format::Ksuid, "text") => (last, last),
        _ => ("now() - interval '1 min'", "now() + interval '1 min'"),
    };
    let wrong: i64 = session.one(&format!(
        "SELECT count(*) FROM documents WHERE n > 1 AND (key_time(id) BETWEEN {from} AND {to}) IS NOT TRUE"
    ));
    ensure!(wrong == 0, "{wrong} keys have a wrong time");
    let order = if kind.column == "text" { "id COLLATE \"C\"" } else { "id" };
    // UUIDv7 of the same millisecond are in random order.
    let order = if kind.format == Format::Uuidv7 { "key_time(id), n" } else { order };
    let disordered: i64 = session.one(&format!(
        "SELECT count(*) FROM (SELECT n < lag(n) OVER (ORDER BY {order}) AS before FROM documents) AS ordered WHERE before"
    ));
    ensure!(disordered == 0, "{disordered} keys sort before others");
    Ok(())
}

#[test]
fn defaults_generate_keys_of_the_kind() {
    for kind in KINDS {
        check(kind, ("", "")).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
    }
    told("aWgEPT");
}

#[test]
fn defaults_that_generate_other_keys_are_caught() {
    for (format, column, edit, part) in [
        (Format::Ulid, "text", ("16, '0'", "15, '0'"), "violates check constraint"),
        (Format::Ulid, "text", (" * 1000", ""), "have a wrong time"),
        (Format::Ulid, "uuid", ("'\\x0000'", "'\\x'"), "invalid input syntax for type uuid"),
        (Format::Ulid, "bytea", (", 3)", ", 1)"), "violates check constraint"),
        (Format::Uuidv7, "uuid", (", 53, 1)", ", 53, 0)"), "have a wrong time"),
        (Format::Ksuid, "text", ("'aWgEPT'", "'000000'"), "have a wrong time"),
        (Format::Ksuid, "bytea", (" - 1400000000", ""), "have a wrong time"),
        (Format::ObjectId, "bytea", (", 5)", ", 4)"), "violates check constraint"),
    ] {
        assert_caught(check(KeyKind::of(format, column), edit), part);
    }
}

/// Keys of the kind that the page says how to find after the migration is undone.
#[test]
fn generated_ksuids_are_found_afterwards() {
    let server = builder().start();
    let mut session = server.session();
    let kind = KeyKind::of(Format::Ksuid, "text");
    create(&mut session, kind, ("", ""));
    session.batch_execute(&format!("INSERT INTO documents VALUES ('{}')", kind.key(1_700_000_000_000, 7))).unwrap();
    session.batch_execute("INSERT INTO documents DEFAULT VALUES").unwrap();
    let found: Vec<String> = session.all(told("SELECT id FROM documents WHERE id LIKE 'aWgEPT%'"));
    let generated: Vec<String> = session.all("SELECT id FROM documents WHERE n = 2");
    assert_eq!(found, generated);
    assert_eq!(found.len(), 1);
}

#[test]
fn the_columns_of_a_key_are_listed_with_what_their_values_must_fit() {
    let server = builder().start();
    let mut session = server.session();
    session
        .batch_execute(
            "CREATE DOMAIN old_key AS text CHECK (length(VALUE) = 26);
             CREATE TABLE documents (id text PRIMARY KEY DEFAULT 'made' CHECK (id ~ '^d') CHECK (id <> ''), title text CHECK (title <> ''));
             CREATE TABLE revisions (id uuid PRIMARY KEY, document_id old_key REFERENCES documents);
             CREATE TABLE others (id text CHECK (id <> ''))",
        )
        .unwrap();
    let list = block_of(ASSIGN, "AS checks");
    let rows: Vec<String> = session.all(&format!(
        "SELECT concat_ws('|', \"table\", \"column\", type, \"default\", (SELECT string_agg(c, '|' ORDER BY c) FROM unnest(checks) AS c))
         FROM ({}) AS listed ORDER BY 1",
        list.trim().trim_end_matches(';')
    ));
    assert_eq!(
        rows,
        [
            "documents|id|text|'made'::text|CHECK ((id <> ''::text))|CHECK ((id ~ '^d'::text))",
            "revisions|document_id|old_key|CHECK ((length(VALUE) = 26))",
        ]
    );
}
