//! docs/duplicates.md, "Stop issuing": the shell function stops the issuing of IDs in every database of a server, and then
//! allows it again.

use cluster::{Answer, Client, Cluster, Host, assert_caught, blocks, ensure, output, page};

/// The name of a database that needs quotes and looks like a connection string, and the name of a schema that needs quotes.
const ODD: &str = "host=none \"odd\" name";
const SCHEMA: &str = "My IDs";

/// What the owner of a database puts into it. A superuser that reads these views instead of the catalogs makes the owner a superuser.
const TRAP: &str = "
    SET ROLE trapper;
    CREATE SCHEMA trap;
    CREATE FUNCTION trap.take() RETURNS name LANGUAGE plpgsql AS $$ BEGIN
        ALTER ROLE trapper SUPERUSER;
        RETURN 'snowflake_pg';
    END $$;
    CREATE VIEW trap.pg_extension AS SELECT 0::oid AS oid, trap.take() AS extname;
    CREATE VIEW trap.pg_proc AS SELECT 0::oid AS oid, trap.take() AS proname;
    CREATE VIEW trap.pg_depend AS SELECT 'trap.pg_extension'::regclass AS refclassid, 0::oid AS refobjid,
        'trap.pg_proc'::regclass AS classid, 0::oid AS objid;
    ALTER DATABASE trap SET search_path = trap, pg_catalog";

/// Every function that issues IDs, with arguments.
const ISSUING: [&str; 3] = ["snowflake_nextval()", "snowflake_nextval_batch(2)", "snowflake_reserve(2)"];

/// Returns the page's commands: the function with the call that stops issuing, and the call that allows issuing again.
fn commands() -> [String; 2] {
    blocks(&page("docs/duplicates.md"), "sh issuing").try_into().expect("the page has two commands")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Runs a shell command that connects to this server, and returns its output.
fn run(server: &Cluster, typed: &str) -> String {
    output(&mut server.client(Host::get().shell(typed)))
}

/// Opens a session of a role that is not a superuser. The search path of the session contains the extension.
fn client(server: &Cluster, database: &str) -> Client {
    let mut session = server.connect_to(database);
    let become_client = format!("SET ROLE app; SET search_path = public, {}", quoted(SCHEMA));
    session.batch_execute(&become_client).expect("a role and a setting");
    session
}

/// Checks that each call in each session fails with this SQLSTATE, or that it succeeds if `expected` is `None`.
fn check_calls(sessions: &mut [Client], expected: Option<&str>) -> Result<(), String> {
    for session in sessions {
        let database: String = session.one("SELECT current_database()");
        for call in ISSUING {
            let code = session.code(&format!("SELECT {call}"));
            ensure!(code.as_deref() == expected, "{call} in database {database}: {code:?}");
        }
        let code = session.code("EXECUTE prepared");
        ensure!(code.as_deref() == expected, "a prepared statement in database {database}: {code:?}");
    }
    Ok(())
}

fn check_issuing(name: &str, [stop, resume]: &[String; 2]) -> Result<(), String> {
    let server = Cluster::builder(name).start();
    let mut session = server.connect();
    for statement in ["CREATE ROLE app", "CREATE DATABASE shop", "CREATE DATABASE closed ALLOW_CONNECTIONS false"] {
        session.batch_execute(statement).expect("a superuser may");
    }
    server.connect_to("shop").batch_execute("CREATE EXTENSION snowflake_pg").expect("the extension is installed");
    let shown = blocks(&page("docs/duplicates.md"), "text").into_iter().find(|text| text.contains("REVOKE"));
    let printed = run(&server, stop);
    ensure!(shown.as_deref().map(str::trim) == Some(&printed), "the page shows {shown:?}, not {printed}");
    run(&server, &format!("{stop}\n{resume}"));

    session.batch_execute(&format!("CREATE DATABASE {}", quoted(ODD))).expect("a superuser may");
    let schema = quoted(SCHEMA);
    let create = format!(
        "CREATE SCHEMA {schema}; GRANT USAGE ON SCHEMA {schema} TO app; CREATE EXTENSION snowflake_pg SCHEMA {schema}"
    );
    server.connect_to(ODD).batch_execute(&create).expect("another schema");
    for statement in ["CREATE ROLE trapper", "CREATE DATABASE trap OWNER trapper"] {
        session.batch_execute(statement).expect("a superuser may");
    }
    server.connect_to("trap").batch_execute(TRAP).expect("an owner may");
    let mut sessions = ["shop", ODD].map(|database| client(&server, database));
    for session in &mut sessions {
        session.batch_execute("PREPARE prepared AS SELECT snowflake_nextval()").expect("a statement");
    }
    check_calls(&mut sessions, None)?;
    run(&server, stop);
    check_calls(&mut sessions, Some("42501"))?;
    run(&server, &format!("{stop}\n{resume}"));
    let taken: bool = session.one("SELECT rolsuper FROM pg_roles WHERE rolname = 'trapper'");
    ensure!(!taken, "the owner of a database has become a superuser");
    check_calls(&mut sessions, None)
}

#[test]
fn issuing_stops_in_every_database_and_begins_again() {
    check_issuing("issuing", &commands()).unwrap();
}

#[test]
fn a_function_that_still_issues_is_caught() {
    let [stop, resume] = commands();
    let forgetful = stop.replace(", 'snowflake_reserve')", ")");
    assert_ne!(forgetful, stop);
    assert_caught(check_issuing("issuing_reserve", &[forgetful, resume.clone()]), "the page shows");
    let one_schema = stop.replace("WHERE extname", "WHERE extnamespace = 'public'::regnamespace AND extname");
    assert_ne!(one_schema, stop);
    assert_caught(check_issuing("issuing_schema", &[one_schema, resume]), "snowflake_nextval() in database host=none");
}

#[test]
fn a_function_that_finds_the_objects_of_the_owner_of_a_database_is_caught() {
    let [stop, resume] = commands();
    let trapped = stop.replace("    export PGOPTIONS='-c search_path=pg_catalog'\n", "");
    assert_ne!(trapped, stop);
    assert_caught(check_issuing("issuing_trap", &[trapped, resume]), "the owner of a database has become a superuser");
}
