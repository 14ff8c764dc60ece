//! From UUIDs, by new columns.

use cluster::{Answer, assert_caught, ensure};

use crate::page::{AS_WRITTEN, Edit, Run};
use crate::{filenode, write};

/// The tables stay in their files; rows are ordered by their time, which their IDs carry; UUIDs find them to the last.
pub fn check_uuid(spread: &str, edit: Edit) -> Result<usize, String> {
    let tables = format!(
        "CREATE TABLE documents (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), n serial,
             created_at timestamptz NOT NULL DEFAULT now());
         CREATE TABLE revisions (id bigserial PRIMARY KEY, document_id uuid NOT NULL REFERENCES documents, n int);
         INSERT INTO documents (created_at) SELECT now() - interval '1 day' + n * interval '{spread}'
         FROM generate_series(1, 12000) AS n;
         INSERT INTO revisions (document_id, n) SELECT id, n FROM documents;
         CREATE TABLE known AS SELECT id, n FROM documents"
    );
    let mut run = Run::on(edit, &tables);
    let mut session = run.server.connect();
    let files = ["documents", "revisions"].map(|table| filenode(&mut session, table));
    let insert = "WITH new AS (INSERT INTO documents DEFAULT VALUES RETURNING id, n),
        revision AS (INSERT INTO revisions (document_id, n) SELECT id, n FROM new) SELECT n::bigint FROM new";
    run.busy_section("From UUIDs", insert, |session, next| {
        write(session, &mut Vec::new(), insert)?;
        let lost = "SELECT count(*) FROM known LEFT JOIN documents ON old_id = known.id WHERE known.n IS DISTINCT FROM documents.n";
        ensure!(!next.contains("COLUMN old_id") || session.one::<i64>(lost) == 0, "a UUID finds no row");
        Ok(())
    })?;
    ensure!(["documents", "revisions"].map(|table| filenode(&mut session, table)) == files, "a table was rewritten");
    let wrong: i64 = session.one(
        "SELECT count(*) FROM (SELECT *, created_at < lag(created_at) OVER (ORDER BY id) AS later FROM documents) AS ordered WHERE later AND n <= 12000
             OR snowflake_timestamp(id) NOT BETWEEN date_trunc('milliseconds', created_at) AND created_at + interval '10 s'",
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
    Ok(run.blocks)
}

#[test]
fn a_default_that_rewrites_is_caught() {
    let edit = ("ADD COLUMN new_id bigint;", "ADD COLUMN new_id bigint DEFAULT snowflake_nextval();");
    assert_caught(check_uuid("0.3 ms", edit).map(drop), "a table was rewritten");
}

#[test]
fn a_writer_who_is_refused_after_the_swap_is_caught() {
    let edit = (", ALTER COLUMN old_document_id DROP NOT NULL", "");
    assert_caught(check_uuid("0.3 ms", edit).map(drop), "null value in column \"old_document_id\"");
}

#[test]
fn ids_with_the_time_of_the_migration_are_caught() {
    let edit = ("snowflake_encode(ms, 1023, n)", "snowflake_nextval()");
    assert_caught(check_uuid("0.3 ms", edit).map(drop), "do not carry the time");
}

#[test]
fn more_rows_of_a_millisecond_than_it_holds_take_more_workers() {
    assert_caught(check_uuid("0 ms", AS_WRITTEN).map(drop), "sequence number 4096 is out of range");
    let edit = ("1023, n)", "1020 + n / 4096, n % 4096)");
    check_uuid("0 ms", edit).unwrap();
}
