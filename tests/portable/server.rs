//! Servers without the library, and the script that creates the functions.

use std::fs;

use cluster::{Answer, Builder, Client, Cluster, Scratch, command, output, repository, sqlstate};
use postgres::NoTls;

/// Returns the script that `scripts/portable` writes under this name.
pub fn generated(name: &str, test: &str) -> String {
    let scratch = Scratch::new(&format!("portable_{test}.scripts"));
    output(command(repository().join("scripts/portable")).arg(&scratch.0));
    fs::read_to_string(scratch.0.join(name)).expect("the script writes this file")
}

/// Returns the script for psql.
pub fn script(test: &str) -> String {
    generated("snowflake_portable.sql", test)
}

/// Returns the script with a mistake in it.
pub fn spoilt(test: &str, mistake: (&str, &str)) -> String {
    mistaken(test, &[mistake])
}

/// Returns the script with these mistakes in it.
pub fn mistaken(test: &str, mistakes: &[(&str, &str)]) -> String {
    mistakes.iter().fold(script(test), |script, (right, wrong)| {
        assert!(script.contains(right), "{right}");
        script.replace(right, wrong)
    })
}

/// Configures a server without the library.
pub fn plain_builder(test: &str) -> Builder {
    Cluster::builder(&format!("portable_{test}"))
        .unset("shared_preload_libraries")
        .unset("snowflake_pg.worker_id")
        .unset("snowflake_pg.witness_directory")
}

/// Starts a server without the library, and connects to it.
pub fn plain(test: &str) -> (Cluster, Client) {
    let server = plain_builder(test).start();
    let session = server.connect();
    (server, session)
}

/// Starts a server with the library and without a worker ID, and connects to it.
pub fn library(test: &str) -> (Cluster, Client) {
    Cluster::builder(&format!("portable_{test}_library")).unset("snowflake_pg.worker_id").start_session()
}

/// Runs the script in a session with these settings. On failure, returns the SQLSTATE and the texts of the error.
pub fn install(
    session: &mut Client,
    script: &str,
    settings: &[(&str, &str)],
) -> Result<(), (String, String, String, String)> {
    for (name, value) in settings {
        session.execute("SELECT set_config($1, $2, false)", &[name, value]).expect("a parameter of any name");
    }
    let installed = session.batch_execute(script).map_err(|error| sqlstate(&error));
    if installed.is_err() {
        session.run("ROLLBACK");
    }
    installed
}

/// Starts a server without the library, and creates the functions in it.
pub fn twin(test: &str, script: &str) -> (Cluster, Client) {
    let (server, mut session) = plain(test);
    install(&mut session, script, &[]).expect("the script runs");
    (server, session)
}

/// Starts a server without the library, and lets its database issue IDs with worker ID 7.
pub fn issuing(test: &str, settings: &[(&str, &str)]) -> (Cluster, Client) {
    let (server, mut session) = plain(test);
    install(&mut session, &script(test), settings).expect("the script runs");
    session.run("SELECT snowflake_configure(7)");
    (server, session)
}

/// Connects to the database `shop` as a role.
pub fn as_role(server: &Cluster, role: &str) -> Client {
    server.config("shop").user(role).connect(NoTls).expect("the role can connect")
}

/// Starts a server with a database whose owner has no other privileges. Its default privileges give all to a role, as on some services.
pub fn owned(test: &str, script: &str) -> (Cluster, Client) {
    let (server, mut owner) = without_ids(test, script);
    owner.run("SELECT snowflake_nextval()");
    (server, owner)
}

/// Does the same, before the first ID.
pub fn without_ids(test: &str, script: &str) -> (Cluster, Client) {
    let (server, mut session) = plain(test);
    session.run("CREATE ROLE shop LOGIN; CREATE ROLE app LOGIN; CREATE ROLE web LOGIN");
    session.run("CREATE DATABASE shop OWNER shop");
    let mut owner = as_role(&server, "shop");
    owner.run(
        "CREATE SCHEMA snowflake; SET search_path = snowflake, public;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO web; ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO web;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO web; ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO web;
         GRANT USAGE ON SCHEMA snowflake TO web, app",
    );
    install(&mut owner, script, &[]).expect("the script runs");
    owner.run("SELECT snowflake_configure(7)");
    (server, owner)
}
