//! The locks that the steps of the long migrations hold, compared with the table on the page: no statement reads rows while it blocks
//! writers.

use std::thread;
use std::time::Duration;

use cluster::{Answer, Client, Cluster, assert_caught, ensure, sqlstate, within};

use crate::migration::large::{LARGE, TABLES as EVENTS};
use crate::migration::page::{AS_WRITTEN, Edit, builder, page, section};
use crate::migration::reference::{REFERENCE, TABLES as ORDERS};
use crate::migration::uuid::{rows, tables as documents};

/// The modes of table locks that a writer's lock, ROW EXCLUSIVE, does not conflict with.
const HARMLESS: [&str; 4] = ["AccessShareLock", "RowShareLock", "RowExclusiveLock", "ShareUpdateExclusiveLock"];

/// The locks of a process on the tables that clients use, as `table mode`.
fn locks(session: &mut Client, process: i32) -> Vec<String> {
    session.all(&format!(
        "SELECT DISTINCT concat(relname, ' ', mode) FROM pg_locks JOIN pg_class ON pg_class.oid = relation
         WHERE pid = {process} AND granted AND locktype = 'relation' AND relkind = 'r' AND relname NOT LIKE '%new_ids'
             AND relnamespace = 'public'::regnamespace ORDER BY 1"
    ))
}

fn block_writers(locks: &[String]) -> bool {
    locks.iter().any(|lock| !HARMLESS.iter().any(|mode| lock.ends_with(&format!(" {mode}"))))
}

/// Runs statements in one transaction. Returns their locks, and an error if they have read rows although they block writers.
fn transaction(session: &mut Client, statements: &str) -> Result<Vec<String>, String> {
    let told = |error: postgres::Error| format!("{}\n{statements}", sqlstate(&error).1);
    // Scans of the tables, and rows that were fetched through their indexes. The counts include those of earlier transactions that
    // the session has not reported yet.
    let scans = |session: &mut Client| -> i64 {
        session.one(
            "SELECT sum(pg_stat_get_xact_numscans(oid) + pg_stat_get_xact_tuples_fetched(oid))::bigint FROM pg_class
             WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
        )
    };
    session.batch_execute("BEGIN").map_err(told)?;
    let before = scans(session);
    session.batch_execute(statements).map_err(told)?;
    let process = session.one("SELECT pg_backend_pid()");
    let (held, read) = (locks(session, process), scans(session) - before);
    session.batch_execute("COMMIT").map_err(told)?;
    ensure!(read == 0 || !block_writers(&held), "rows are read while writers are blocked ({held:?}):\n{statements}");
    Ok(held)
}

/// Runs a statement that has transactions of its own. Sessions that hold `obstacle` make it wait, so that its locks can be read.
fn alone(server: &Cluster, statement: &str, obstacle: &str) -> Result<Vec<String>, String> {
    let [mut session, mut other, mut watch] = [0; 3].map(|_| server.connect());
    let process: i32 = session.one("SELECT pg_backend_pid()");
    other.batch_execute(&format!("BEGIN; {obstacle}")).expect("an obstacle");
    let text = statement.to_string();
    let running = thread::spawn(move || session.batch_execute(&text).map_err(|error| sqlstate(&error).1));
    let waits = format!("SELECT EXISTS (SELECT FROM pg_locks WHERE pid = {process} AND NOT granted)");
    let waited = within(Duration::from_secs(20), || watch.one(&waits) || running.is_finished());
    let held = locks(&mut watch, process);
    other.batch_execute("COMMIT").expect("an obstacle");
    running.join().expect("a thread that ends").map_err(|error| format!("{error}\n{statement}"))?;
    ensure!(waited && !held.is_empty(), "the locks of this statement were not seen:\n{statement}");
    ensure!(!block_writers(&held), "writers are blocked ({held:?}):\n{statement}");
    Ok(held)
}

/// Runs the blocks of a section up to the one that replaces the columns, and checks the locks of each statement or transaction.
fn check_locks(title: &str, tables: &str, names: [&str; 2], edit: Edit) -> Result<(), String> {
    let server = builder().start();
    let mut session = server.session();
    session.batch_execute(tables).expect("tables can be made");
    let blocks: Vec<String> = section(title).blocks.into_iter().map(|(_, text)| text).collect();
    assert!(edit == AS_WRITTEN || blocks.iter().any(|text| text.contains(edit.0)), "no block has {}", edit.0);
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    // A small table is changed in place.
    for block in blocks.iter().filter(|text| !text.contains("TYPE bigint")) {
        let block = block.replace(if edit == AS_WRITTEN { "\0" } else { edit.0 }, edit.1);
        let mut rest = block.as_str();
        if let Some(begun) = rest.strip_prefix("BEGIN;") {
            let (statements, after) = begun.split_once("COMMIT;").expect("a whole transaction");
            found.push((statements.into(), transaction(&mut session, statements)?));
            rest = after;
        }
        let statements: Vec<&str> = match rest.contains("DO $$") {
            true => vec![rest],
            false => rest.split_inclusive(";\n").filter(|text| !text.trim().is_empty()).collect(),
        };
        for statement in statements {
            let held = if statement.contains("DO $$") {
                let rows = names.map(|table| format!("SELECT FROM {table} FOR UPDATE"));
                alone(&server, statement, &rows.join("; "))?
            } else if statement.contains("CONCURRENTLY") {
                let locked = names.map(|table| format!("LOCK TABLE {table} IN ROW EXCLUSIVE MODE"));
                alone(&server, statement, &locked.join("; "))?
            } else {
                transaction(&mut session, statement)?
            };
            found.push((statement.trim().into(), held));
        }
        if block.contains("RENAME COLUMN") {
            break;
        }
    }
    check_stated(&found)
}

/// Returns the mode of the page, such as `SHARE UPDATE EXCLUSIVE`, as `pg_locks` shows it.
fn mode(words: &str) -> String {
    let words = words.split(' ').map(|word| format!("{}{}", &word[..1], word[1..].to_lowercase()));
    words.collect::<String>() + "Lock"
}

/// The mode that the row of the page's table which names `statement` states first.
fn stated(statement: &str) -> String {
    let page = page();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|') && line.contains(statement)).collect();
    assert_eq!(rows.len(), 1, "rows with {statement}: {rows:?}");
    let lock = rows[0].split('|').nth(2).expect("a second column");
    mode(lock.split('`').nth(1).expect("a mode"))
}

/// The statements in the page's table, and what the blocks write for each.
const STATED: [(&str, &str); 6] = [
    ("`ADD COLUMN`", "ADD COLUMN"),
    ("`FOREIGN KEY .. NOT VALID`", "FOREIGN KEY"),
    ("the batches", "DO $$"),
    ("`CREATE INDEX CONCURRENTLY`", "CONCURRENTLY"),
    ("`VALIDATE CONSTRAINT`", "VALIDATE CONSTRAINT"),
    ("the transaction that replaces the columns", "RENAME COLUMN"),
];

/// Checks that each kind of statement holds the lock that the page states, and none that is stronger.
fn check_stated(found: &[(String, Vec<String>)]) -> Result<(), String> {
    let order =
        [&HARMLESS[..], &["ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock"]].concat();
    for (row, written) in STATED {
        let mode = stated(row);
        let of_kind: Vec<_> = found.iter().filter(|(statement, _)| statement.contains(written)).collect();
        ensure!(!of_kind.is_empty(), "no statement has {written}");
        for (statement, held) in of_kind {
            let rank = |lock: &String| order.iter().position(|known| lock.ends_with(&format!(" {known}")));
            let strongest = held.iter().filter_map(rank).max().map(|rank| order[rank]);
            ensure!(strongest == Some(&mode[..]), "{row} holds {held:?}, not {mode}:\n{statement}");
        }
    }
    Ok(())
}

#[test]
fn no_step_for_uuids_reads_rows_while_it_blocks_writers() {
    let tables = format!("{}; {}", documents("timestamptz DEFAULT now()"), rows("0.3 ms"));
    let check_uuids = |edit: Edit| check_locks("From UUIDs", &tables, ["documents", "revisions"], edit);
    check_uuids(AS_WRITTEN).unwrap();
    // The negative control: a check of all references in the transaction that replaces the columns.
    let check =
        "DROP TRIGGER zz_new_document ON revisions;\nPREPARE same AS SELECT count(*) FROM revisions LEFT JOIN documents
        ON documents.id = document_id WHERE new_document_id IS DISTINCT FROM new_id; EXECUTE same;";
    let edit = ("DROP TRIGGER zz_new_document ON revisions;", check);
    assert_caught(check_uuids(edit), "rows are read while writers are blocked");
}

#[test]
fn no_step_for_large_integer_references_reads_rows_while_it_blocks_writers() {
    let check_references = |edit: Edit| check_locks(REFERENCE, ORDERS, ["orders", "shipments"], edit);
    check_references(AS_WRITTEN).unwrap();
    // The negative control: the way for small tables.
    let edit = (
        "ALTER TABLE shipments ADD COLUMN new_order_id bigint;",
        "ALTER TABLE shipments ADD COLUMN new_order_id bigint,
        ALTER COLUMN parcel TYPE bigint;",
    );
    assert_caught(check_references(edit), "rows are read while writers are blocked");
}

#[test]
fn no_step_for_large_integer_keys_reads_rows_while_it_blocks_writers() {
    let check_integers = |edit: Edit| check_locks(LARGE, EVENTS, ["events", "clicks"], edit);
    check_integers(AS_WRITTEN).unwrap();
    // The negative controls: a foreign key that is validated at once, an index that blocks writers, and a check that is not
    // sufficient for `SET NOT NULL`.
    assert_caught(check_integers(("ON DELETE CASCADE NOT VALID", "")), "rows are read while writers are blocked");
    assert_caught(check_integers(("CREATE INDEX CONCURRENTLY", "CREATE INDEX")), "rows are read while writers are");
    let edit = ("new_id IS NOT NULL AND new_id = id", "new_id = id");
    assert_caught(check_integers(edit), "rows are read while writers are blocked");
}
