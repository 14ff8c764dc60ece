//! What a role that the servers use can do, and what it cannot do.

use cluster::Answer as _;
use flake::fleet::ReportAnswer;

use crate::blocks::{Taker, last};
use crate::calls::{LAYOUT, claim, hello, registry};

#[test]
fn a_role_of_the_servers_can_call_seven_functions_and_nothing_else() {
    let server = registry("registry_roles", LAYOUT);
    let mut owner = server.connect();
    owner.batch_execute("CREATE ROLE fleet LOGIN; CREATE ROLE other LOGIN").expect("a superuser may");
    owner.batch_execute("SELECT snowflake_registry.grant_server('fleet')").expect("the role exists");
    let mut role = server.connect_as("fleet");
    assert_eq!(claim(&mut role, LAYOUT), Ok(0));
    let mut other = server.connect_as("other");
    assert_eq!(other.code(&hello(LAYOUT)).as_deref(), Some("42501"));
    owner.batch_execute("SELECT snowflake_registry.create_segment('orders')").expect("the owner may");
    let mut taker = Taker {
        fleet: owner.one("SELECT fleet_id::text FROM snowflake_registry.fleet"),
        client: role,
        tag: "orders".into(),
    };
    let block = taker.take(5);
    assert_eq!(taker.report(block.generation, last(&block)), ReportAnswer::Current);
    assert_eq!(taker.give_back(&block, block.first, last(&block)), Ok(()));
    let fleet = taker.fleet;
    let begin = format!(
        "SELECT answer FROM snowflake_registry.begin_segment('{fleet}', 'series invoices 2026', '2026-01-01 00:00Z', 1, 10, 100)"
    );
    assert_eq!(taker.client.one::<String>(&begin), "created");
    let mut role = taker.client;
    for (table, column) in [
        ("fleet", "life"),
        ("ring", "next_worker"),
        ("node", "bound"),
        ("history", "bound"),
        ("segment", "next_value"),
        ("skip", "windows"),
        ("hole", "last"),
    ] {
        for sql in [
            format!("SELECT * FROM snowflake_registry.{table}"),
            format!("UPDATE snowflake_registry.{table} SET {column} = 1"),
            format!("DELETE FROM snowflake_registry.{table}"),
            format!("TRUNCATE snowflake_registry.{table}"),
            format!("DO $$ BEGIN LOCK TABLE snowflake_registry.{table} IN ACCESS SHARE MODE; END $$"),
        ] {
            assert_eq!(role.code(&sql).as_deref(), Some("42501"), "{sql}");
        }
    }
    // Every other function is refused, whatever its arguments are.
    let allowed: Vec<String> = owner.all(
        "SELECT p.oid::regprocedure::text FROM pg_proc p
         WHERE pronamespace = 'snowflake_registry'::regnamespace AND has_function_privilege('fleet', p.oid, 'EXECUTE')",
    );
    let mut names: Vec<&str> = allowed.iter().filter_map(|name| name.split('(').next()).collect();
    names.sort_unstable();
    let names: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix("snowflake_registry.")).collect();
    assert_eq!(names, ["begin_segment", "claim", "give_back", "hello", "renew", "report", "take"]);
    for call in [
        "open()",
        "close()",
        "change_layout('41:9:13')",
        "create_fleet('41:9:13')",
        "grant_server('other')",
        "reserve(5)",
        "release(5)",
        "create_segment('mine')",
        "drop_segment('orders')",
    ] {
        assert_eq!(role.code(&format!("SELECT snowflake_registry.{call}")).as_deref(), Some("42501"), "{call}");
    }
    assert_eq!(role.code("CREATE TABLE snowflake_registry.mine (id bigint)").as_deref(), Some("42501"));
    // The views are for those who monitor the server.
    assert_eq!(role.code("SELECT * FROM snowflake_registry.servers").as_deref(), Some("42501"));
    owner.batch_execute("GRANT pg_monitor TO other").expect("a superuser may");
    let live = "SELECT count(*) FROM snowflake_registry.servers WHERE state = 'live' AND host = 'db1'";
    assert_eq!(other.one::<i64>(live), 1);
    for view in ["status", "handovers", "datacenters", "segments", "holes"] {
        assert_eq!(other.code(&format!("TABLE snowflake_registry.{view}")), None, "{view}");
    }
}

/// The functions run as their owner, so a caller must not be able to put other functions in the place of those that they call.
#[test]
fn a_hostile_search_path_changes_nothing() {
    let server = registry("registry_hostile", LAYOUT);
    let mut owner = server.connect();
    let sql = "CREATE ROLE fleet LOGIN; SELECT snowflake_registry.grant_server('fleet');
             CREATE SCHEMA hostile AUTHORIZATION fleet; GRANT TEMPORARY ON DATABASE postgres TO fleet";
    owner.batch_execute(sql).expect("a superuser may");
    let mut role = server.connect_as("fleet");
    for schema in ["hostile", "pg_temp"] {
        let hostile = format!(
            "CREATE FUNCTION {schema}.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT timestamptz '2099-01-01' $$;
             CREATE FUNCTION {schema}.gen_random_uuid() RETURNS uuid LANGUAGE sql AS $$ SELECT md5('1')::uuid $$;
             CREATE FUNCTION {schema}.more(bigint, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
             CREATE OPERATOR {schema}.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = {schema}.more);
             CREATE OPERATOR {schema}.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = {schema}.more)"
        );
        role.batch_execute(&hostile).unwrap_or_else(|error| panic!("{schema}: {error:?}"));
    }
    role.batch_execute(
        "CREATE TEMPORARY TABLE fleet (fleet_id uuid); CREATE TEMPORARY TABLE node (holder uuid);
         SET search_path = hostile, pg_temp, pg_catalog",
    )
    .expect("a role may");
    assert_eq!(role.one::<String>("SELECT clock_timestamp()::text").get(..4), Some("2099"), "the path is hostile");
    role.batch_execute(
        "SET search_path = hostile, pg_temp, pg_catalog; SET quote_all_identifiers = on; SET DateStyle = 'German'",
    )
    .expect("a role may");
    for worker in 0..3 {
        let statement = hello(LAYOUT);
        let nonces: Vec<String> =
            (0..2).map(|_| role.query_one(&statement, &[]).expect("an answer").get("nonce")).collect();
        assert_ne!(nonces[0], nonces[1]);
        role.batch_execute("SET search_path = pg_catalog, hostile, pg_temp").expect("a role may");
        assert_eq!(claim(&mut role, LAYOUT), Ok(worker));
        role.batch_execute("SET search_path = hostile, pg_temp, pg_catalog").expect("a role may");
    }
    let ahead = "SELECT bool_and(granted_until < now() + interval '11 min') FROM snowflake_registry.servers";
    assert!(owner.one::<bool>(ahead), "a bound follows the caller's clock");
}
