//! When a connection pool discards a session's state between two clients, the next client cannot see the last ID.

use cluster::{Answer, Builder, Cluster, Host, assert_caught, ensure, not_tested};

const CURRENT: &str = "SELECT snowflake_currval()";

fn check_discard(builder: Builder) -> Result<(), String> {
    let (server, mut session) = builder.start_session();
    // As a separate statement, prepared, and in a function.
    session.run(
        "CREATE FUNCTION forget() RETURNS void LANGUAGE plpgsql AS $$ BEGIN DISCARD SEQUENCES; END $$;
         CREATE PROCEDURE forget_and_commit() LANGUAGE plpgsql AS $$ BEGIN DISCARD SEQUENCES; COMMIT; END $$",
    );
    for discard in ["DISCARD ALL", "DISCARD SEQUENCES", "SELECT forget()", "CALL forget_and_commit()"] {
        for prepared in [false, true] {
            let id: i64 = session.one("SELECT snowflake_nextval()");
            ensure!(session.one::<i64>(CURRENT) == id, "another ID before {discard}");
            let done =
                if prepared { session.execute(discard, &[]).map(|_| ()) } else { session.batch_execute(discard) };
            ensure!(done.is_ok(), "{discard}: {done:?}");
            let code = session.code(CURRENT);
            ensure!(code.as_deref() == Some("55000"), "the ID is there after {discard}: {code:?}");
        }
    }
    // Also in a transaction that is rolled back. PostgreSQL does not restore the values of sequences either.
    session.run("SELECT snowflake_nextval(); BEGIN; DISCARD SEQUENCES; ROLLBACK");
    ensure!(session.code(CURRENT).as_deref() == Some("55000"), "the ID is there after ROLLBACK");
    // A statement that does not discard sequences, or that fails, keeps the last ID.
    let id: i64 = session.one("SELECT snowflake_nextval()");
    session.run("DISCARD PLANS; DISCARD TEMP; RESET ALL; DEALLOCATE ALL");
    session.run("BEGIN");
    ensure!(session.code("DISCARD ALL").as_deref() == Some("25001"), "DISCARD ALL in a transaction");
    session.run("ROLLBACK");
    ensure!(session.one::<i64>(CURRENT) == id, "the ID is gone without a DISCARD of sequences");
    // Another session's DISCARD affects only that session.
    let mut other = server.connect();
    other.run("SELECT snowflake_nextval()");
    other.run("DISCARD ALL");
    ensure!(session.one::<i64>(CURRENT) == id, "the ID is gone after another session's DISCARD");
    Ok(())
}

#[test]
fn what_discards_sequences_takes_the_last_id_away() {
    check_discard(Cluster::builder("discard")).unwrap();
}

#[test]
fn an_id_that_outlives_discard_is_caught() {
    let faulty = Cluster::builder("discard_ignored").fault("DiscardIgnored");
    assert_caught(check_discard(faulty), "the ID is there after DISCARD ALL");
}

/// With another library that hooks into the same statements, loaded before or after. Both libraries see every statement.
#[test]
fn another_library_that_looks_at_statements_is_passed_on_to() {
    if !Host::get().installation().libraries.join("pg_stat_statements.so").exists() {
        return not_tested("beside pg_stat_statements, which this PostgreSQL lacks");
    }
    for (name, libraries) in
        [("discard_after", "pg_stat_statements, snowflake_pg"), ("discard_before", "snowflake_pg, pg_stat_statements")]
    {
        check_discard(Cluster::builder(name).set("shared_preload_libraries", libraries)).unwrap();
        let (_server, mut session) = Cluster::builder(name).set("shared_preload_libraries", libraries).start_session();
        session.run("CREATE EXTENSION pg_stat_statements");
        session.run("DISCARD ALL");
        let seen: i64 = session.one("SELECT calls FROM pg_stat_statements WHERE query = 'DISCARD ALL'");
        assert_eq!(seen, 1, "{libraries}");
    }
}
