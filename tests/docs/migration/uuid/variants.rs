//! From UUIDs, with tables that differ from the page's tables, by following what the page says in words.

use cluster::{Answer, Builder, assert_caught, ensure, typed};

use super::{LATE, block, blocks, check_on, check_uuid, filled, tables, told, type_blocks};
use crate::migration::page::{AS_WRITTEN, Edit, SectionRun, builder};

#[test]
fn more_rows_of_a_millisecond_than_it_holds_take_more_worker_ids() {
    assert_caught(check_uuid("0 ms", AS_WRITTEN).map(drop), "sequence number 4096 is out of range");
    told("1020 + n / 4096, n % 4096");
    let edit = ("1023, n)", "1020 + n / 4096, n % 4096)");
    check_uuid("0 ms", edit).unwrap();
}

/// Runs the section on a layout whose ticks last 10 ms and have room for 256 rows each.
fn check_tick(edit: Edit) -> Result<usize, String> {
    let server: Builder = builder().set("snowflake_pg.layout", "sonyflake");
    check_on(&mut SectionRun::of(server.start(), edit), "0.3 ms", LATE)
}

#[test]
fn rows_are_numbered_in_each_tick_of_the_layout() {
    check_tick(AS_WRITTEN).unwrap();
    let edit = ("snowflake_min_id(at)", "date_trunc('milliseconds', at)");
    assert_caught(check_tick(edit).map(drop), "could not create unique index \"documents_new_id\"");
}

#[test]
fn a_table_without_times_gets_ids_of_now() {
    let query = block("CREATE TABLE documents_new_ids");
    let (_, query) = query.split_once("AS\n").expect("a query");
    let (query, _) = query.split_once(';').expect("a query");
    let edit = (query, told("SELECT id, snowflake_nextval() AS new_id FROM documents WHERE new_id IS NULL"));
    assert_caught(check_uuid("0.3 ms", edit).map(drop), "IDs do not carry the time");
}

/// Checks that the ID of each row with one of these times has a time near the time that is wanted.
fn check_times(column: &str, times: &[(&str, &str)], at: &str) -> Result<(), String> {
    let server = builder().set("timezone", "Asia/Kathmandu").start();
    server.session().batch_execute(&tables(column)).unwrap();
    for (time, _) in times {
        server.connect().batch_execute(&format!("INSERT INTO documents (created_at) VALUES ({time})")).unwrap();
    }
    type_blocks(&server, &blocks(), &[("created_at AS at", at)])?;
    for (n, (time, wanted)) in (1..).zip(times) {
        let near: bool = server.connect().one(&format!(
            "SELECT abs(extract(epoch FROM snowflake_timestamp(id) - timestamptz {wanted})) < 60 FROM documents WHERE n = {n}"
        ));
        ensure!(near, "the ID of {time} is not of {wanted}");
    }
    Ok(())
}

#[test]
fn times_that_are_missing_or_before_the_epoch_are_replaced() {
    let missing = ("NULL", "'now'");
    let early = ("'2009-01-01 00:00+00'", "'2010-11-05 00:00+00'");
    let usual = ("'2024-05-06 07:08:09+00'", "'2024-05-06 07:08:09+00'");
    let check = |times: &[(&str, &str)], at| check_times("timestamptz", times, at);
    check(&[missing, early, usual], told("greatest(coalesce(created_at, now()), '2010-11-05 00:00+00') AS at"))
        .unwrap();
    assert_caught(check(&[missing], "created_at AS at"), "\"new_id_filled\" of relation \"documents\" is violated");
    assert_caught(check(&[early], "created_at AS at"), "is outside the range of layout");
    let edit = "greatest(created_at, '2010-11-05 00:00+00') AS at";
    assert_caught(check(&[missing], edit), "the ID of NULL is not of 'now'");
}

/// Checks that a row without a time stops the block that looks for such rows, and that the migration can continue after `update`
/// and the batches are run.
fn check_mended(update: &str) -> Result<(), String> {
    let without_time = "UPDATE documents SET created_at = NULL WHERE n = 5";
    let server = filled(&tables("timestamptz DEFAULT now()"), without_time);
    let blocks = blocks();
    let stopped = blocks.iter().position(|text| text.contains("VALIDATE CONSTRAINT new_id_filled")).expect("a check");
    let violated = "\"new_id_filled\" of relation \"documents\" is violated";
    assert_caught(type_blocks(&server, &blocks[..=stopped], &[]), violated);
    typed(server.psql(), update)?;
    let (_, left) = blocks[stopped].split_once("COMMIT;").expect("a transaction");
    type_blocks(&server, &[block("UPDATE revisions SET new_document_id"), left.into()], &[])?;
    type_blocks(&server, &blocks[stopped + 1..], &[])?;
    let kept: i64 = server
        .connect()
        .one("SELECT count(*) FROM revisions AS r JOIN documents AS d ON d.id = document_id AND d.n = r.n");
    ensure!(kept == 12_000, "{kept} of 12000 references hold");
    Ok(())
}

#[test]
fn rows_that_are_found_without_a_time_are_mended() {
    check_mended(told("UPDATE documents SET new_id = snowflake_nextval() WHERE new_id IS NULL")).unwrap();
    assert_caught(check_mended("SELECT 1"), "\"new_id_filled\" of relation \"documents\" is violated");
}

#[test]
fn times_without_a_zone_are_given_theirs() {
    let check = |at| check_times("timestamp", &[("'2024-05-06 07:08:09'", "'2024-05-06 07:08:09+00'")], at);
    check(told("created_at AT TIME ZONE 'UTC' AS at")).unwrap();
    assert_caught(check("created_at AS at"), "the ID of '2024-05-06 07:08:09' is not of");
}

/// Checks that revisions without a document keep their empty reference, and that other revisions are accepted as before.
fn check_nullable(edits: &[Edit]) -> Result<(), String> {
    let tables = tables("timestamptz DEFAULT now()").replace("uuid NOT NULL", "uuid");
    let server = filled(&tables, "INSERT INTO revisions (document_id, n) VALUES (NULL, 0)");
    type_blocks(&server, &blocks(), edits)?;
    let mut session = server.connect();
    let others: i64 = session.one("SELECT count(*) FROM revisions WHERE (document_id IS NULL) <> (n = 0)");
    ensure!(others == 0, "{others} references became others");
    ensure!(session.code("INSERT INTO revisions (n) VALUES (0)").is_none(), "a revision needs a document");
    Ok(())
}

#[test]
fn references_that_can_be_null_stay_so() {
    let check = ("CHECK (new_document_id IS NOT NULL)", "CHECK (new_document_id IS NOT NULL OR document_id IS NULL)");
    told("new_document_id IS NOT NULL OR document_id IS NULL");
    let swap = block("RENAME COLUMN");
    let line = swap.lines().find(|line| line.contains("document_id SET NOT NULL")).expect("a line of the swap");
    let line = (line, "");
    check_nullable(&[check, line]).unwrap();
    assert_caught(check_nullable(&[line]), "\"new_document_id_filled\" of relation \"revisions\" is violated");
    assert_caught(check_nullable(&[check]), "contains null values");
}

/// Returns true if the batches fire one of the user's triggers.
fn fires(before: &str) -> bool {
    let touch = "ALTER TABLE documents ADD COLUMN updated_at timestamptz;
        CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.updated_at := now(); RETURN NEW; END';
        CREATE TRIGGER touch BEFORE UPDATE ON documents FOR EACH ROW EXECUTE FUNCTION touch()";
    let server = filled(&tables("timestamptz DEFAULT now()"), touch);
    // The statement is typed before each of the two batches, as if a reader entered it before the first batch and forgot to undo
    // it.
    let begun = format!("{before};\nDO $$\n#variable");
    type_blocks(&server, &blocks(), &[("DO $$\n#variable", &begun)]).unwrap();
    let broken: i64 = server
        .connect()
        .one("SELECT count(*) FROM revisions AS r JOIN documents AS d ON d.id = document_id WHERE d.n <> r.n");
    assert_eq!(broken, 0);
    server.connect().one("SELECT count(updated_at) > 0 FROM documents")
}

#[test]
fn batches_fire_triggers_unless_told_not_to() {
    assert!(fires("SELECT 1"));
    assert!(!fires(told("SET session_replication_role = replica")));
}
