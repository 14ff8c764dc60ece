//! Creating, dropping and dumping the registry, as an extension and by the script alone.

use std::fs;

use cluster::{Answer as _, Cluster, Host, assert_caught, ensure, output, typed};

use crate::calls::{LAYOUT, check_quarantine, claim, registry, restore};
use crate::reserved::reserved;

/// Every object of the schema, with its definition and its privileges.
pub const OBJECTS: &str = "
    SELECT concat_ws(' ', 'function', p.oid::regprocedure, p.proacl, md5(pg_get_functiondef(p.oid)), obj_description(p.oid, 'pg_proc'))
        FROM pg_proc p WHERE pronamespace = 'snowflake_registry'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'relation', c.relname, c.relkind, c.relacl, c.reloptions, obj_description(c.oid, 'pg_class'),
            CASE WHEN relkind = 'v' THEN md5(pg_get_viewdef(c.oid)) END)
        FROM pg_class c WHERE relnamespace = 'snowflake_registry'::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'column', a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'snowflake_registry'::regnamespace AND a.attnum > 0
    ORDER BY 1";

/// Returns the script of this version, or of an upgrade from one version to another, as it is installed.
pub fn script(version: &str) -> String {
    let file = Host::get().installation().extensions.join(format!("snowflake_registry--{version}.sql"));
    fs::read_to_string(file).expect("the script is installed")
}

/// Runs a script in a database in one transaction.
pub fn run(server: &Cluster, database: &str, script: &str) -> Result<String, String> {
    let mut psql = server.psql();
    psql.args(["-1", "-d", database]);
    typed(psql, script)
}

#[test]
fn the_script_alone_creates_what_the_extension_has() {
    let server = registry("registry_script", LAYOUT);
    server.connect().batch_execute("CREATE DATABASE managed").expect("a superuser may");
    let script = script(env!("CARGO_PKG_VERSION"));
    run(&server, "managed", &script).expect("the script runs");
    let by_extension: Vec<String> = server.connect().all(OBJECTS);
    let by_script: Vec<String> = server.connect_to("managed").all(OBJECTS);
    assert!(by_extension.len() > 50, "{by_extension:?}");
    assert_eq!(by_script, by_extension);
    // A second run changes nothing.
    let again = run(&server, "managed", &script).expect_err("the registry is there");
    assert!(again.contains("the registry is already installed in this database"), "{again}");
    let mut client = server.connect_to("managed");
    client.one::<String>(&format!("SELECT snowflake_registry.create_fleet('{LAYOUT}')::text"));
    assert_eq!(claim(&mut client, LAYOUT), Ok(0));
}

#[test]
fn an_ordinary_owner_can_create_and_drop_the_registry() {
    let server = Cluster::builder("registry_owner").unset("shared_preload_libraries").start();
    let sql = "CREATE ROLE owner LOGIN; GRANT CREATE ON DATABASE postgres TO owner";
    server.connect().batch_execute(sql).expect("a superuser may");
    let mut owner = server.connect_as("owner");
    for _ in 0..2 {
        owner.batch_execute("CREATE EXTENSION snowflake_registry").expect("no superuser is needed");
        let create = format!("SELECT snowflake_registry.create_fleet('{LAYOUT}')::text");
        let fleet: String = owner.one(&create);
        assert_eq!(owner.one::<String>(&create), fleet, "the same layout again is no change");
        let other = owner.refusal("SELECT snowflake_registry.create_fleet('41:9:13')");
        assert_eq!(other, ("55000".into(), "the fleet already exists with a different layout or epoch".into()));
        assert_eq!(claim(&mut owner, LAYOUT), Ok(0));
        owner.batch_execute("DROP EXTENSION snowflake_registry").expect("the owner may");
    }
}

const SCHEMA: &str = "the schema snowflake_registry already contains objects, or other roles can create objects in it";

/// Runs the script in databases in which another role has created the schema and an object in it.
fn check_schema(name: &str, script: &str) -> Result<(), String> {
    let server = Cluster::builder(name).unset("shared_preload_libraries").start();
    let mut session = server.session();
    session.run("CREATE ROLE hostile; GRANT CREATE ON DATABASE postgres TO hostile");
    for statement in [
        "CREATE FUNCTION snowflake_registry.at(timestamptz) RETURNS bigint LANGUAGE sql AS 'SELECT 1'",
        "CREATE OPERATOR snowflake_registry.= (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.starts_with)",
        "CREATE TYPE snowflake_registry.at AS ENUM ('now')",
        "CREATE TABLE snowflake_registry.at (n int)",
        "CREATE COLLATION snowflake_registry.at FROM \"C\"",
        "GRANT CREATE ON SCHEMA snowflake_registry TO PUBLIC",
    ] {
        session.run(&format!("SET ROLE hostile; CREATE SCHEMA snowflake_registry; {statement}; RESET ROLE"));
        let refused = run(&server, "postgres", script);
        ensure!(refused.as_ref().is_err_and(|said| said.contains(SCHEMA)), "{statement}: {refused:?}");
        assert_eq!(session.refusal("CREATE EXTENSION snowflake_registry"), ("55000".into(), SCHEMA.into()));
        // The hint.
        session.run("DROP SCHEMA snowflake_registry CASCADE");
    }
    Ok(())
}

#[test]
fn a_schema_with_objects_of_another_role_is_refused() {
    check_schema("registry_schema", &script(env!("CARGO_PKG_VERSION"))).unwrap();
}

#[test]
fn a_script_that_trusts_the_schema_is_caught() {
    let script = script(env!("CARGO_PKG_VERSION"));
    let trusting = script.replacen("    IF EXISTS (\n", "    IF false AND EXISTS (\n", 1);
    assert_ne!(trusting, script);
    assert_caught(check_schema("registry_schema_trusted", &trusting), "Ok(");
}

#[test]
fn an_empty_schema_of_another_role_becomes_that_of_the_owner_of_the_registry() {
    let server = Cluster::builder("registry_schema_empty").unset("shared_preload_libraries").start();
    let mut session = server.session();
    session.run(
        "CREATE ROLE owner LOGIN; GRANT CREATE ON DATABASE postgres TO owner;
         CREATE ROLE hostile; CREATE SCHEMA snowflake_registry AUTHORIZATION hostile",
    );
    let create = "CREATE EXTENSION snowflake_registry";
    let refused = server.connect_as("owner").refusal(create);
    assert_eq!(refused, ("42501".into(), "must be owner of schema snowflake_registry".into()));
    session.run(create);
    let owner = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'snowflake_registry'";
    assert_eq!(session.one::<String>(owner), "postgres");
}

/// Dumps the database of a registry and restores it on another server, which must notice that it might have lost something.
#[test]
fn a_dump_contains_the_rows_and_a_restored_registry_begins_a_new_life() {
    let server = registry("registry_dumped", LAYOUT);
    let mut client = server.connect();
    assert_eq!(claim(&mut client, LAYOUT), Ok(0));
    assert_eq!(claim(&mut client, LAYOUT), Ok(1));
    client.batch_execute("SELECT snowflake_registry.reserve(2)").expect("the owner reserves");
    let rows = "SELECT concat_ws(' ', worker_id, holder, nonce, count, life, start, bound, seen) FROM snowflake_registry.node ORDER BY 1";
    let known: Vec<String> = client.all(rows);
    let dump = output(&mut server.program("pg_dump"));

    let other = Cluster::builder("registry_restored").unset("shared_preload_libraries").start();
    // All servers of a test run have the system identifier of one template. The database has another OID.
    other.connect().batch_execute("CREATE DATABASE fleet").expect("a superuser may");
    restore(&other, "fleet", &dump);
    let mut restored = other.connect_to("fleet");
    assert_eq!(restored.all::<String>(rows), known);
    assert_eq!(reserved(&mut restored), [2]);
    check_quarantine(&mut restored, LAYOUT).unwrap();
    let status = "SELECT concat_ws(' ', life, life_reason) FROM snowflake_registry.status";
    assert_eq!(restored.one::<String>(status), "2 the registry is in a different cluster or database than before");
    // The administrator knows that nothing was lost.
    assert!(restored.one::<bool>("SELECT snowflake_registry.open()"));
    assert_eq!(claim(&mut restored, LAYOUT), Ok(3));
    // The original has noticed nothing.
    assert_eq!(claim(&mut client, LAYOUT), Ok(3));
    assert_eq!(client.one::<i64>("SELECT life FROM snowflake_registry.status"), 1);
}
