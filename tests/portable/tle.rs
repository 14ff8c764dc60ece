//! The script for pg_tle. pg_tle itself is not tested: its function is replaced by one that keeps its arguments, and the functions are then
//! created as an extension would create them.

use std::fs;

use cluster::{Answer, Client, Scratch, assert_caught, command, ensure, output, repository};

use crate::compare::{check_sql, vectors};
use crate::server::{plain, script, tle_script};

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
    let server = plain("tle");
    let mut session = server.connect();
    session.run(STAND_IN);
    session.run("SET snowflake_pg.layout = '41:4:8'; SET snowflake_pg.epoch = '2024-01-01Z'");
    session.run(&tle_script("tle"));
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
}

#[test]
fn an_extension_of_pg_tle_issues_ids() {
    let server = plain("tle_issues");
    let mut session = server.connect();
    session.run(STAND_IN);
    session.run(&tle_script("tle_issues"));
    create(&mut session).unwrap();
    session.run("SELECT snowflake_configure(7)");
    assert_eq!(session.one::<i32>("SELECT worker_id FROM snowflake_decode(snowflake_nextval())"), 7);
}

/// The form of the directory that dbdev reads: a control file, and a script with its version that does not control the transaction.
#[test]
fn the_directory_for_dbdev_has_the_form_of_an_extension() {
    let scratch = Scratch::new("portable_dbdev.scripts");
    output(command(repository().join("scripts/portable")).arg(&scratch.0).arg("dbdev"));
    let mut names: Vec<String> = fs::read_dir(&scratch.0)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into())
        .collect();
    names.sort();
    let version = env!("CARGO_PKG_VERSION");
    let file = format!("snowflake_portable--{version}.sql");
    assert_eq!(names, [file.clone(), "snowflake_portable.control".into()]);
    let control = fs::read_to_string(scratch.0.join("snowflake_portable.control")).expect("a text");
    assert!(control.lines().all(|line| line.split_once(" = ").is_some()), "{control}");
    assert!(control.contains(&format!("default_version = '{version}'\n")), "{control}");
    let server = plain("dbdev");
    let mut session = server.connect();
    let sql = fs::read_to_string(scratch.0.join(file)).expect("a text");
    session.run(STAND_IN);
    session.execute("INSERT INTO pgtle.extension (script) VALUES ($1)", &[&sql]).expect("a script");
    create(&mut session).unwrap();
    session.run("SELECT snowflake_configure(7); SELECT snowflake_nextval()");
}

#[test]
fn a_script_with_a_transaction_of_its_own_is_caught() {
    let server = plain("tle_transaction");
    let mut session = server.connect();
    session.run(STAND_IN);
    let script = script("tle_transaction");
    session.execute("INSERT INTO pgtle.extension (script) VALUES ($1)", &[&script]).expect("a script");
    assert_caught(create(&mut session), "the script controls the transaction");
}
