//! The script for pg_tle. pg_tle itself is not tested: its function is replaced by one that keeps its arguments, and the functions are then
//! created as an extension would create them.

use cluster::{Answer, Client, assert_caught, ensure};

use crate::compare::{check_sql, vectors};
use crate::server::{generated, plain, script};

/// Stands in for pg_tle.
const STAND_IN: &str = "
    CREATE SCHEMA pgtle;
    CREATE TABLE pgtle.extension (name text, version text, description text, script text);
    CREATE FUNCTION pgtle.install_extension(name text, version text, description text, ext text, requires text[] DEFAULT NULL)
        RETURNS boolean LANGUAGE sql AS 'INSERT INTO pgtle.extension VALUES (name, version, description, ext); SELECT true'";

/// Creates the functions as CREATE EXTENSION does: the whole script, in a transaction that it does not control.
fn create(session: &mut Client) -> Result<(), String> {
    let script: String = session.one("SELECT script FROM pgtle.extension");
    let begins = |line: &&str| ["BEGIN;", "COMMIT;"].contains(line);
    ensure!(!script.lines().any(|line| begins(&line)), "the script controls the transaction");
    session.run("RESET ALL");
    let mut transaction = session.transaction().expect("a transaction");
    transaction.batch_execute(&script).map_err(|error| format!("{error:?}"))?;
    transaction.commit().map_err(|error| error.to_string())
}

#[test]
fn an_extension_of_pg_tle_has_the_functions_and_keeps_the_layout() {
    let (server, mut session) = plain("tle");
    session.run(STAND_IN);
    session.run("SET snowflake_pg.layout = '41:4:8'; SET snowflake_pg.epoch = '2024-01-01Z'");
    session.run(&generated("snowflake_portable_tle.sql", "tle"));
    let registered: String = session.one("SELECT name || ' ' || version FROM pgtle.extension");
    assert_eq!(registered, format!("snowflake_portable {}", env!("CARGO_PKG_VERSION")));
    create(&mut session).unwrap();
    check_sql(&mut session, &vectors()).unwrap();
    // In a restored database, CREATE EXTENSION runs the script in a session without the parameters.
    assert_eq!(
        session.one::<String>("SELECT snowflake_describe(0) - 'text' #>> '{}'").replace("41:4:8", "LAYOUT"),
        "{\"id\": \"0\", \"tick\": 0, \"epoch\": \"2024-01-01T00:00:00+00:00\", \"layout\": \"LAYOUT\", \"unix_ms\": 1704067200000, \
         \"sequence\": 0, \"worker_id\": 0, \"created_at\": \"2024-01-01T00:00:00+00:00\", \"datacenter_id\": 0}"
    );
    let mut session = server.connect();
    session.run("SELECT snowflake_configure(7)");
    assert_eq!(session.one::<i32>("SELECT worker_id FROM snowflake_decode(snowflake_nextval())"), 7);
}

#[test]
fn a_script_with_a_transaction_of_its_own_is_caught() {
    let (_server, mut session) = plain("tle_transaction");
    session.run(STAND_IN);
    let script = script("tle_transaction");
    session.execute("INSERT INTO pgtle.extension (script) VALUES ($1)", &[&script]).expect("a script");
    assert_caught(create(&mut session), "the script controls the transaction");
}
