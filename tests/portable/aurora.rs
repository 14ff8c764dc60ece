//! The functions of PostgreSQL that read the write-ahead log and the control file raise an error, as Amazon Aurora's do with its default
//! parameters. Aurora itself is not tested.

use cluster::{Answer, Client, Cluster, assert_caught, ensure, sqlstate};

use crate::server::{install, plain, script, spoilt};

/// What Aurora answers.
const ANSWER: &str = "wal_level must be set to ''logical''";

/// Puts a function that raises the error in the place of a function of PostgreSQL.
fn replace(server: &Cluster, name: &str, result: &str) {
    let sql = format!(
        "ALTER FUNCTION pg_catalog.{name}() RENAME TO {name}_of_postgresql;
         CREATE FUNCTION pg_catalog.{name}({result}) LANGUAGE plpgsql AS $$
         BEGIN RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = '{ANSWER}'; END $$"
    );
    server.connect().run(&sql);
}

fn put_back(server: &Cluster, name: &str) {
    let sql =
        format!("DROP FUNCTION pg_catalog.{name}(); ALTER FUNCTION pg_catalog.{name}_of_postgresql() RENAME TO {name}");
    server.connect().run(&sql);
}

fn refusal(session: &mut Client, call: &str) -> Result<(String, String, String, String), String> {
    match session.batch_execute(&format!("SELECT {call}")) {
        Ok(()) => Err(format!("{call} succeeds although the mark cannot be flushed")),
        Err(error) => Ok(sqlstate(&error)),
    }
}

/// Whether the functions issue no ID above the mark that was flushed last.
fn check(test: &str, script: &str) -> Result<(), String> {
    let (server, mut session) = plain(test);
    replace(&server, "pg_control_system", "OUT system_identifier bigint");
    install(&mut session, script, &[]).map_err(|error| error.1)?;
    session.batch_execute("SELECT snowflake_configure(7)").map_err(|error| format!("{:?}", sqlstate(&error)))?;
    let first: i64 = session.one("SELECT snowflake_nextval()");
    // The database is known by its OID alone.
    let identity: String = session.one("SELECT database FROM public_state.snowflake_portable_configuration");
    ensure!(identity == session.one::<i64>(OID).to_string(), "the database is {identity}");

    for name in ["pg_current_wal_insert_lsn", "pg_current_wal_flush_lsn"] {
        replace(&server, name, "OUT lsn pg_lsn");
    }
    let mut session = server.connect();
    let mark = "snowflake_set_mark(snowflake_max_id(now() + interval '1 hour'))";
    if session.one::<bool>("SELECT current_setting('server_version_num')::int >= 170000") {
        // A function of PostgreSQL flushes WAL.
        session.run(&format!("SELECT {mark}"));
    } else {
        for call in [mark, "snowflake_configure(8)"] {
            let (code, message, detail, hint) = refusal(&mut session, call)?;
            ensure!((code.as_str(), message.as_str()) == ("55000", "cannot flush the mark"), "{code}: {message}");
            ensure!(detail == "The server responded: wal_level must be set to 'logical'.", "{detail}");
            ensure!(hint.contains("\"rds.logical_replication\" to 1"), "{hint}");
        }
        for name in ["pg_current_wal_insert_lsn", "pg_current_wal_flush_lsn"] {
            put_back(&server, name);
        }
        session = server.connect();
        // The hint works.
        session.run(&format!("SELECT {mark}"));
    }
    let next: i64 = session.one("SELECT snowflake_nextval()");
    ensure!(next > first && (next >> 12) & 1023 == 7, "{next} after {first}");
    Ok(())
}

const OID: &str = "SELECT oid::bigint FROM pg_database WHERE datname = current_database()";

#[test]
fn where_the_mark_cannot_be_flushed_no_ids_are_issued() {
    check("aurora", &script("aurora")).unwrap();
}

#[test]
fn a_database_that_needs_the_system_identifier_is_caught() {
    let mistake =
        ("OR feature_not_supported OR object_not_in_prerequisite_state THEN\n        NULL;", "THEN\n        NULL;");
    assert_caught(check("aurora_identity", &spoilt("aurora_identity", mistake)), "wal_level must be set");
}
