//! From UUIDs, by adding new columns.

use cluster::{Answer, Client, Cluster, assert_caught, block_with, ensure, sqlstate, typed};

use crate::migration::page::{AS_WRITTEN, Edit, SectionRun, builder, page, section};
use crate::migration::{assert_caught_edit, catalog, filenode, write};

mod variants;

const TITLE: &str = "From UUIDs";

/// Returns the statements that create the section's tables, a trigger that can change the reference, and a role that may only
/// insert revisions.
pub fn tables(created_at: &str) -> String {
    format!(
        "CREATE TABLE documents (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), n serial, created_at {created_at});
         CREATE TABLE revisions (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
             document_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE, version int NOT NULL DEFAULT 1, n int,
             UNIQUE (document_id, version));
         CREATE FUNCTION redirect() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN IF NEW.version = 99 THEN SELECT id INTO NEW.document_id FROM documents WHERE n = NEW.n; END IF; RETURN NEW; END';
         CREATE TRIGGER redirect BEFORE INSERT OR UPDATE ON revisions FOR EACH ROW EXECUTE FUNCTION redirect();
         DROP ROLE IF EXISTS writer; CREATE ROLE writer; GRANT INSERT ON revisions TO writer"
    )
}

/// Returns the statements that insert documents, beginning a day ago, with an interval of `spread` between them. Each document
/// except one has a revision.
pub fn rows(spread: &str) -> String {
    format!(
        "INSERT INTO documents (created_at) SELECT now() - interval '1 day' + n * interval '{spread}'
         FROM generate_series(1, 12000) AS n;
         INSERT INTO revisions (document_id, n) SELECT id, n FROM documents;
         INSERT INTO documents (id) VALUES ('00000000-0000-0000-0000-000000000001');
         CREATE TABLE known AS SELECT id, n FROM documents"
    )
}

/// Changes references after the batches: while most triggers are off, through a trigger, and as a role that cannot read
/// documents.
const LATE: &str = "SET session_replication_role = replica;
    UPDATE revisions SET document_id = (SELECT id FROM documents WHERE n = 2), version = 2, n = 2 WHERE n = 1;
    RESET session_replication_role;
    UPDATE revisions SET version = 99, n = 4 WHERE n = 3;
    SET ROLE writer;
    INSERT INTO revisions (document_id, n) VALUES ('00000000-0000-0000-0000-000000000001', 12001)";

/// Makes changes that no trigger sees.
const UNSEEN: &str = "ALTER TABLE revisions DISABLE TRIGGER zz_new_document;
    UPDATE revisions SET document_id = (SELECT id FROM documents WHERE n = 2), version = 2, n = 2 WHERE n = 1;
    ALTER TABLE revisions ENABLE ALWAYS TRIGGER zz_new_document;
    INSERT INTO revisions (document_id, n) VALUES ('00000000-0000-0000-0000-000000000001', 12001)";

/// Changes a reference past the trigger.
const PAST: &str = "ALTER TABLE revisions DISABLE TRIGGER zz_new_document;
    UPDATE revisions SET document_id = (SELECT id FROM documents WHERE n = 6), version = 3 WHERE n = 5;
    ALTER TABLE revisions ENABLE ALWAYS TRIGGER zz_new_document";

/// Inserts a copy of a row's reference and version, which must be unique.
const DUPLICATE: &str =
    "INSERT INTO revisions (document_id, version) SELECT document_id, version FROM revisions LIMIT 1";

/// Checks that the tables stay in their files, that IDs carry the times of their rows and sort by these times, that references
/// and constraints hold, and that UUIDs find their rows until the end.
pub fn check_uuid(spread: &str, edit: Edit) -> Result<usize, String> {
    let mut run = SectionRun::of(builder().start(), edit);
    check_on(&mut run, spread, LATE)
}

fn check_on(run: &mut SectionRun, spread: &str, late: &str) -> Result<usize, String> {
    let mut session = run.server.session();
    session.batch_execute(&format!("{}; {}", tables("timestamptz DEFAULT now()"), rows(spread))).expect("tables");
    let files = ["documents", "revisions"].map(|table| filenode(&mut session, table));
    let insert = "WITH new AS (INSERT INTO documents DEFAULT VALUES RETURNING id, n),
        revision AS (INSERT INTO revisions (document_id, n) SELECT id, n FROM new) SELECT n::bigint FROM new";
    run.busy(&section(TITLE).blocks, insert, |session, next| {
        write(session, &mut Vec::new(), insert)?;
        if next.contains("new_document_id_filled CHECK") {
            session.batch_execute(late).map_err(|error| format!("a late writer: {}", sqlstate(&error).1))?;
        }
        if next.contains("RENAME COLUMN") {
            let unseen = session.code(PAST);
            ensure!(unseen.as_deref() == Some("23503"), "a reference to another document is accepted: {unseen:?}");
        }
        if next.contains("COLUMN old_id") {
            let lost = "SELECT count(*) FROM known LEFT JOIN documents ON old_id = known.id
                WHERE known.n IS DISTINCT FROM documents.n";
            ensure!(session.one::<i64>(lost) == 0, "a UUID finds no row");
            ensure!(session.code(DUPLICATE).as_deref() == Some("23505"), "a version comes twice");
        }
        Ok(())
    })?;
    ensure!(["documents", "revisions"].map(|table| filenode(&mut session, table)) == files, "a table was rewritten");
    check_rows(&mut session)?;
    Ok(run.blocks)
}

/// Checks the tables at the end. This check changes the tables.
fn check_rows(session: &mut Client) -> Result<(), String> {
    let wrong: i64 = session.one(
        "SELECT count(*) FROM (SELECT *, created_at < lag(created_at) OVER (ORDER BY id) AS later FROM documents) AS ordered
         WHERE later AND n <= 12000 OR snowflake_timestamp(id)
             NOT BETWEEN snowflake_timestamp(snowflake_min_id(created_at)) AND created_at + interval '60 s'",
    );
    ensure!(wrong == 0, "{wrong} IDs do not carry the time of their row");
    let joined: i64 =
        session.one("SELECT count(*) FROM documents AS d JOIN revisions AS r ON document_id = d.id AND d.n = r.n");
    let rows: i64 = session.one("SELECT count(*) FROM documents");
    ensure!(joined == rows && rows > 12_000, "{joined} of {rows} references hold");
    ensure!(
        session.code("INSERT INTO revisions (document_id) VALUES (0)").as_deref() == Some("23503"),
        "no foreign key"
    );
    ensure!(session.code(DUPLICATE).as_deref() == Some("23505"), "a version comes twice");
    let delete = "DELETE FROM documents WHERE id = (SELECT max(document_id) FROM revisions)";
    ensure!(session.code(delete).is_none(), "a document cannot be deleted with its revisions");
    Ok(())
}

/// Returns the blocks of the section.
fn blocks() -> Vec<String> {
    section(TITLE).blocks.into_iter().map(|(_, text)| text).collect()
}

/// Returns the only block that contains this text.
fn block(part: &str) -> String {
    block_with(blocks(), part)
}

/// Starts a server with the section's tables and rows, and with what `more` creates.
fn filled(tables: &str, more: &str) -> Cluster {
    let server = builder().start();
    server.session().batch_execute(&format!("{tables}; {}; {more}", rows("0.3 ms"))).unwrap();
    server
}

/// Types blocks with several edits. Each edit must find its text in a block.
fn type_blocks(server: &Cluster, blocks: &[String], edits: &[Edit]) -> Result<(), String> {
    for (from, _) in edits {
        assert!(blocks.iter().any(|text| text.contains(from)), "no block has {from:?}");
    }
    for text in blocks {
        typed(server.psql(), &edits.iter().fold(text.clone(), |text, (from, to)| text.replace(from, to)))?;
    }
    Ok(())
}

/// Returns a text, and asserts that the page tells the reader to write this text.
fn told(text: &str) -> &str {
    let page = page().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&format!("`{text}`")), "the page does not say {text}");
    text
}

/// The error with which step 7 stops if it finds a reference that the trigger did not see.
const FOUND: &str =
    "ERROR:  insert or update on table \"revisions\" violates foreign key constraint \"revisions_same_document\"";

#[test]
fn a_migration_of_uuids_without_a_step_is_caught() {
    let caught = |edit: Edit, reason: &str| assert_caught_edit(|edit| check_uuid("0.3 ms", edit), edit, reason);
    let column = "ADD COLUMN new_id bigint;";
    caught((column, "ADD COLUMN new_id bigint DEFAULT snowflake_nextval();"), "a table was rewritten");
    let nulls = ", ALTER COLUMN old_document_id DROP NOT NULL";
    caught((nulls, ""), "null value in column \"old_document_id\"");
    // The trigger is off for a replica, is not the last one, or runs as the writer.
    caught(("ALTER TABLE revisions ENABLE ALWAYS TRIGGER zz_new_document;", ""), FOUND);
    caught(("zz_new_document", "new_document"), FOUND);
    caught((" SECURITY DEFINER", ""), "a late writer: permission denied for table documents");
    let index = "ON revisions (new_document_id, version)";
    caught((index, "ON revisions (new_document_id, version, id)"), "a version comes twice");
    caught((" ON DELETE CASCADE", ""), "a document cannot be deleted");
}

#[test]
fn what_is_found_before_the_swap_is_mended_by_the_batches() {
    let mut run = SectionRun::of(builder().start(), AS_WRITTEN);
    assert_caught(check_on(&mut run, "0.3 ms", UNSEEN).map(drop), FOUND);
    let again = "ALTER TABLE revisions VALIDATE CONSTRAINT revisions_same_document".into();
    let batches = block("UPDATE revisions SET new_document_id");
    let rest = [batches, again, block("RENAME COLUMN"), block("COLUMN old_id")];
    type_blocks(&run.server, &rest, &[]).unwrap();
    check_rows(&mut run.server.connect()).unwrap();
}

#[test]
fn references_that_are_not_compared_before_the_swap_are_caught() {
    let edit = ("ALTER TABLE revisions VALIDATE CONSTRAINT revisions_same_document;", "");
    let mut run = SectionRun::of(builder().start(), edit);
    assert_caught(check_on(&mut run, "0.3 ms", UNSEEN).map(drop), "references hold");
}

#[test]
fn a_table_that_was_forgotten_stops_the_swap() {
    let server = builder().start();
    server.session().batch_execute(&tables("timestamptz")).unwrap();
    server.session().batch_execute("CREATE TABLE likes (document_id uuid REFERENCES documents)").unwrap();
    assert_caught(type_blocks(&server, &blocks(), &[]), "constraint likes_document_id_fkey on table likes depends on");
}

/// Checks that nothing is left after the migration is given up, whichever step before the swap was the last, and that the
/// migration can be started again.
fn check_give_up(edit: Edit) -> Result<(), String> {
    let server = filled(&tables("timestamptz DEFAULT now()"), "");
    let mut session = server.connect();
    let before = catalog(&mut session);
    let blocks = blocks();
    let swap = blocks.iter().position(|text| text.contains("RENAME COLUMN")).expect("a swap");
    for done in 0..=swap {
        type_blocks(&server, &blocks[..done], &[])?;
        type_blocks(&server, &[block("DROP FUNCTION IF EXISTS")], &[edit])?;
        let after = catalog(&mut session);
        let left: Vec<&String> = after.iter().filter(|object| !before.contains(object)).collect();
        ensure!(after == before, "after {done} blocks this is left: {left:?}");
    }
    type_blocks(&server, &blocks, &[])
}

#[test]
fn what_was_begun_can_be_given_up() {
    check_give_up(AS_WRITTEN).unwrap();
    assert_caught(
        check_give_up(("DROP INDEX IF EXISTS documents_old_id;", "")),
        "CREATE UNIQUE INDEX documents_old_id",
    );
}

/// Checks that nothing is lost if the old columns cannot be dropped yet, even if psql continues after an error.
fn check_late_drop(edit: Edit) -> Result<(), String> {
    let server = builder().start();
    server.session().batch_execute(&tables("timestamptz")).unwrap();
    let blocks = blocks();
    let last = blocks.iter().position(|text| text.contains("COLUMN old_id")).expect("a last step");
    type_blocks(&server, &blocks[..last], &[])?;
    let mut reader = server.connect();
    reader.batch_execute("BEGIN; SELECT FROM documents").unwrap();
    let mut psql = server.psql();
    psql.arg("--set=ON_ERROR_STOP=0");
    typed(psql, &blocks[last].replace(edit.0, edit.1))?;
    ensure!(reader.one::<bool>("SELECT to_regclass('documents_new_ids') IS NOT NULL"), "the table of IDs is lost");
    reader.batch_execute("COMMIT").unwrap();
    type_blocks(&server, &blocks[last..], &[])
}

#[test]
fn old_columns_that_are_in_use_are_dropped_later() {
    check_late_drop(AS_WRITTEN).unwrap();
    let edit = ("DROP TABLE documents_new_ids;\nCOMMIT;", "COMMIT;\nDROP TABLE documents_new_ids;");
    assert_caught(check_late_drop(edit), "the table of IDs is lost");
}
