//! Back to a sequence.

use cluster::{Answer, assert_caught, ensure};

use crate::migration::page::{AS_WRITTEN, Edit, SectionRun};
use crate::migration::{ORDER, SHOP, act, answers, assert_caught_edit, check_order, write};

/// Returns the statements that create tables with snowflakes, objects that call the extension, and a role that writes to the
/// tables but does not own them. `sequence` is what was done with the old sequence.
fn tables(sequence: &str) -> String {
    format!(
        "{SHOP};
         ALTER TABLE orders ALTER COLUMN id SET DEFAULT snowflake_nextval(); {sequence};
         ALTER TABLE invoices ALTER COLUMN id DROP IDENTITY, ALTER COLUMN id SET DEFAULT snowflake_nextval();
         CREATE DOMAIN flake AS bigint DEFAULT snowflake_nextval();
         CREATE FUNCTION number() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN snowflake_nextval(); END';
         CREATE ROLE app; GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO app"
    )
}

pub fn check_back(edit: Edit) -> Result<usize, String> {
    check(edit, "DROP SEQUENCE orders_id_seq")
}

/// Checks that the sequence continues above every ID for all roles that write, and that the extension can be dropped.
fn check(edit: Edit, sequence: &str) -> Result<usize, String> {
    let mut run = SectionRun::on(edit, &tables(sequence));
    let mut ids = Vec::new();
    run.section("Back to a sequence", |session, next| {
        act(session, "SET ROLE app")?;
        write(session, &mut ids, ORDER)?;
        act(session, "RESET ROLE")?;
        if next.contains("CREATE SEQUENCE") {
            // A client holds these IDs, but they are not in any row.
            ids.extend(session.batch(1_000));
        }
        if next.contains("pg_attrdef") {
            let mut left = answers(session, next, edit)?;
            left.sort();
            ensure!(left == ["flake", "number()"], "the page finds {left:?}");
            act(session, "DROP FUNCTION number")?;
            let refused = session.code("DROP EXTENSION snowflake_pg");
            ensure!(
                refused.as_deref() == Some("2BP01"),
                "a default is left, and the extension was dropped: {refused:?}"
            );
            act(session, "ALTER DOMAIN flake DROP DEFAULT")?;
        }
        Ok(())
    })?;
    check_order(&ids)?;
    let left: i64 = run.server.connect().one("SELECT count(*) FROM pg_extension WHERE extname = 'snowflake_pg'");
    ensure!(left == 0, "the extension is left");
    Ok(run.blocks)
}

/// A sequence that begins at 1, or below IDs that only clients know, or that writers cannot use, and callers that are not found.
#[test]
fn a_way_back_that_lacks_a_part_is_caught() {
    let caught = |edit: Edit, reason: &str| assert_caught_edit(check_back, edit, reason);
    let set = "SELECT setval('orders_id_seq', greatest(max(id), snowflake_nextval())) FROM orders;";
    caught((set, ""), "duplicate key value");
    caught(("greatest(max(id), snowflake_nextval())", "max(id)"), "sorts before an old one");
    caught(("GRANT USAGE ON SEQUENCE orders_id_seq TO app;", ""), "permission denied for sequence orders_id_seq");
    let callers = "UNION SELECT oid::regprocedure::text FROM pg_proc WHERE prosrc ~ 'snowflake_' AND probin IS NULL";
    caught((callers, ""), "the page finds [\"flake\"]");
}

/// A sequence that was never dropped prevents the creation of the new sequence and is used instead of it. This also works if the
/// old sequence was created for an `integer`.
#[test]
fn a_sequence_that_is_still_there_is_used_again() {
    for sequence in ["SELECT", "ALTER SEQUENCE orders_id_seq AS integer"] {
        assert_caught(check(AS_WRITTEN, sequence).map(drop), "relation \"orders_id_seq\" already exists");
        let edit = ("CREATE SEQUENCE orders_id_seq OWNED BY orders.id", "ALTER SEQUENCE orders_id_seq AS bigint");
        check(edit, sequence).unwrap();
    }
}
