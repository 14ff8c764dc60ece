//! Types the blocks of docs/time-ordered-keys.md between the blocks of From UUIDs on docs/migration.md, on live tables, and checks
//! what the page promises about times, order and rows.

use cluster::{Answer, Client, assert_caught, block_with, ensure, sections, sqlstate};
use fastrand::Rng;

use crate::migration::page::{AS_WRITTEN, Edit, SectionRun, builder, section};
use kind::{Format, KINDS, KeyKind};

mod default;
mod keep;
mod kind;
mod time;
mod variants;

const ASSIGN: &str = "Assign the new IDs";
const CHECK: &str = "Check the keys";
const MILLISECONDS: &str = "Step 3 for ULIDs and UUIDv7";
const SECONDS: &str = "Step 3 for KSUIDs and ObjectIds";

fn page() -> String {
    cluster::page("docs/time-ordered-keys.md")
}

/// Returns the only block of a section that contains this text.
fn block_of(title: &str, part: &str) -> String {
    let section = sections(&page()).into_iter().find(|section| section.title == title).expect("a section of the page");
    block_with(section.blocks.into_iter().map(|(_, text)| text).collect(), part)
}

/// Returns a text, and asserts that the page tells the reader to write this text.
fn told(text: &str) -> &str {
    assert!(page().replace('\n', " ").contains(&format!("`{text}`")), "the page does not say {text}");
    text
}

/// How many rows the tables have.
const ROWS: u64 = 12_000;

/// When the keys begin, in milliseconds since 1970.
const BEGIN: u64 = 1_700_000_000_000;

/// Returns the statements that create documents with keys, whose times are `spread` µs apart, and a revision of each document.
/// The table `known` contains the key of each document and its time.
fn tables(kind: KeyKind, spread: u64) -> String {
    let column = kind.column;
    let mut random = Rng::with_seed(spread);
    let rows = (0..ROWS).map(|n| BEGIN + n * spread / 1_000).map(|ms| (kind.random(ms, &mut random), ms));
    let values: Vec<String> = rows.map(|(key, ms)| format!("('{key}', {ms})")).collect();
    format!(
        "CREATE TABLE documents (id {column} PRIMARY KEY, n serial);
         CREATE TABLE revisions (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
             document_id {column} NOT NULL REFERENCES documents ON DELETE CASCADE, version int NOT NULL DEFAULT 1, n int,
             UNIQUE (document_id, version));
         CREATE TABLE known (key {column} PRIMARY KEY, ms bigint);
         INSERT INTO known VALUES {};
         INSERT INTO documents (id) SELECT key FROM known ORDER BY random();
         INSERT INTO revisions (document_id, n) SELECT id, n FROM documents",
        values.join(", ")
    )
}

/// Blocks, each with its language.
type TypedBlocks = Vec<(String, String)>;

/// Returns the blocks that a reader with keys of this kind types: first those up to the default of the key, and then the others.
/// The changes that the page describes in words are made.
fn blocks(kind: KeyKind) -> (TypedBlocks, TypedBlocks) {
    let column = kind.column;
    let mut of_uuids = section("From UUIDs").blocks;
    // The last block of the section undoes the migration.
    of_uuids.pop();
    let replaced =
        of_uuids.iter().position(|(_, text)| text.contains("CREATE TABLE documents_new_ids")).expect("step 3");
    let mut rest = of_uuids.split_off(replaced);
    rest[0].1 = block_of(if kind.unit() == 1 { MILLISECONDS } else { SECONDS }, "CREATE TABLE documents_new_ids");
    if column != "text" {
        told("COLLATE \"C\"");
        rest[0].1 = rest[0].1.replace(" COLLATE \"C\"", "");
    }
    told("done text");
    rest[1].1 =
        rest[1].1.replace("done uuid", &format!("done {column}")).replace("batch uuid[]", &format!("batch {column}[]"));
    rest.push(("sql".into(), block_of("Drop the function", "DROP FUNCTION")));

    let sql = |text: String| ("sql".to_string(), text);
    let mut first = vec![sql(kind.function())];
    first.extend(sections(&page()).into_iter().find(|section| section.title == CHECK).expect("a section").blocks);
    first.extend(of_uuids);
    first.push(sql(default(kind)));
    (first, rest)
}

/// Returns the statements that give a key column of this kind its default: the block, or the block with an expression from the list.
fn default(kind: KeyKind) -> String {
    let block = block_of(ASSIGN, "SET DEFAULT");
    let listed = block_of(ASSIGN, "ObjectId, bytea:");
    let label = format!("{:?}, {}:", kind.format, kind.column).to_lowercase();
    let Some(line) = listed.lines().find(|line| line.to_lowercase().starts_with(&label)) else {
        assert!(matches!(kind.format, Format::Ulid) && kind.column == "text", "{kind:?} has no default");
        return block;
    };
    let written = block.split_once("SET DEFAULT").and_then(|(_, rest)| rest.split_once(';')).expect("a default").0;
    block.replace(written, &format!(" {}", line[label.len()..].trim()))
}

/// A client that does not name the key.
const WRITE: &str = "WITH new AS (INSERT INTO documents DEFAULT VALUES RETURNING id, n)
    INSERT INTO revisions (document_id, n) SELECT id, n FROM new";

/// Checks that each new ID has the time of the old key, that the new IDs sort like the old keys, and that no row is lost.
fn check_rows(session: &mut Client, kind: KeyKind) -> Result<(), String> {
    let (unit, order) = (kind.unit(), if kind.column == "text" { "COLLATE \"C\"" } else { "" });
    let wrong: i64 = session.one(&format!(
        "SELECT count(*) FROM known LEFT JOIN documents ON old_id = key
         WHERE floor(extract(epoch FROM snowflake_timestamp(id)) * 1000)::bigint / {unit} IS DISTINCT FROM ms / {unit}"
    ));
    ensure!(wrong == 0, "{wrong} IDs do not have the time of their key");
    let disordered: i64 = session.one(&format!(
        "SELECT count(*) FROM (SELECT key, lag(key) OVER (ORDER BY id) AS before FROM known JOIN documents ON old_id = key) AS ids
         WHERE before > key {order}"
    ));
    ensure!(disordered == 0, "{disordered} IDs do not sort like their keys");
    // One statement, because a client writes at the same time.
    let row = session
        .query_one(
            "SELECT count(*), count(*) FILTER (WHERE d.n = r.n) FROM documents AS d LEFT JOIN revisions AS r ON document_id = d.id",
            &[],
        )
        .expect("both tables");
    let (rows, joined): (i64, i64) = (row.get(0), row.get(1));
    ensure!(joined == rows && rows > ROWS.cast_signed(), "{joined} of {rows} references hold");
    let others: i64 = session.one(
        "SELECT count(*) FROM documents WHERE id < snowflake_min_id(now() - interval '1 hour') AND old_id NOT IN (SELECT key FROM known)",
    );
    ensure!(others == 0, "{others} new rows sort before old rows");
    Ok(())
}

/// Runs a migration of keys whose times are `spread` µs apart. Clients make keys until the key has a default, and then let the
/// server make them, while the rest of the blocks is typed.
fn check(kind: KeyKind, spread: u64, edits: &[Edit]) -> Result<(), String> {
    let (first, rest) = blocks(kind);
    let mut run = SectionRun::of(builder().start(), AS_WRITTEN);
    for edit in edits {
        run = run.also(*edit);
    }
    let mut session = run.server.session();
    session.batch_execute(&tables(kind, spread)).expect("tables");
    let mut random = Rng::with_seed(1);
    run.unfinished(&first, |session, _| {
        let ms = session.one::<i64>("SELECT (extract(epoch FROM now()) * 1000)::bigint").cast_unsigned();
        let key = kind.random(ms, &mut random);
        let insert = WRITE.replace("DEFAULT VALUES", &format!("(id) VALUES ('{key}')"));
        session.batch_execute(&insert).map_err(|error| format!("a client with keys: {}", sqlstate(&error).1))
    })?;
    let before_the_end = |session: &mut Client, next: &str| match next.contains("COLUMN old_id") {
        true => check_rows(session, kind),
        false => Ok(()),
    };
    let written = run.busy(&rest, WRITE, before_the_end)?;
    ensure!(written > 0, "nothing was written");
    let functions: i64 = session.one("SELECT count(*) FROM pg_proc WHERE proname = 'key_time'");
    ensure!(functions == 0, "the function was not dropped");
    Ok(())
}

#[test]
fn every_section_with_blocks_is_tested() {
    let titles: Vec<String> = sections(&page()).into_iter().map(|section| section.title).collect();
    let tested =
        ["ULID", "UUIDv7", "KSUID", "ObjectId", CHECK, ASSIGN, MILLISECONDS, SECONDS, "Drop the function", keep::TITLE];
    assert_eq!(titles, tested);
    let blocks = sections(&page()).iter().map(|section| section.blocks.len()).sum::<usize>();
    // A function for each kind, three checks, the list of columns, the defaults, two assignments, the end, and what `keep` types.
    assert_eq!(blocks, KINDS.len() + 3 + 1 + 2 + 2 + 1 + keep::BLOCKS);
}

/// Checks all kinds of keys in columns of this type.
fn check_column(column: &str) {
    for kind in KINDS.into_iter().filter(|kind| kind.column == column) {
        check(kind, 150, &[]).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
    }
}

#[test]
fn keys_in_text_are_replaced_while_clients_write() {
    check_column("text");
}

#[test]
fn keys_in_uuids_are_replaced_while_clients_write() {
    check_column("uuid");
}

#[test]
fn keys_in_bytes_are_replaced_while_clients_write() {
    check_column("bytea");
}

#[test]
fn ids_with_wrong_times_or_in_no_order_are_caught() {
    let caught = |format, column, edit: Edit, reason: &str| {
        println!("{edit:?}");
        assert_caught(check(KeyKind::of(format, column), 150, &[edit]), reason);
    };
    // The 12,000 rows of two seconds are not spread, or are spread into the next second.
    let spread = "second + place * 1000 / count(*) OVER (PARTITION BY second) * interval '1 ms' AS at";
    caught(Format::Ksuid, "text", (spread, "second AS at"), "sequence number 4096 is out of range");
    let next = ("place * 1000 /", "(place + 1) * 1000 /");
    caught(Format::ObjectId, "text", next, "IDs do not have the time");
    // The rows are numbered in no order, or not in each tick.
    let order = ("ORDER BY id) - 1 AS place", "ORDER BY md5(id)) - 1 AS place");
    caught(Format::Ksuid, "bytea", order, "do not sort");
    let tick = ("PARTITION BY snowflake_min_id(at)", "PARTITION BY id");
    caught(Format::Ulid, "text", tick, "could not create unique index \"documents_new_id\"");
    let now = ("snowflake_encode(at, 1023, n)", "snowflake_nextval()");
    caught(Format::Uuidv7, "uuid", now, "IDs do not have the time");
    let no_default = ("COLUMN id SET DEFAULT", "COLUMN id SET STATISTICS 100; SELECT");
    caught(Format::Ulid, "text", no_default, "null value in column \"id\"");
}

#[test]
fn more_rows_of_a_millisecond_than_it_holds_take_more_worker_ids() {
    let kind = KeyKind::of(Format::Ulid, "text");
    assert_caught(check(kind, 0, &[]), "sequence number 4096 is out of range");
    check(kind, 0, &[(told("1023, n"), told("1020 + n / 4096, n % 4096"))]).unwrap();
}
