//! A role with EXECUTE draws IDs, and no role other than the owner can change the state or read it.

use cluster::{Answer, assert_caught, ensure};

use crate::server::{as_role, install, mistaken, owned, script, spoilt, without_ids};

/// What no role other than the owner may do.
const ATTACKS: [&str; 16] = [
    "SELECT snowflake.snowflake_nextval()",
    "SELECT snowflake.snowflake_reserve(1)",
    "SELECT snowflake.snowflake_nextval_batch(1)",
    "SELECT snowflake.snowflake_currval()",
    "SELECT snowflake.snowflake_configure(8)",
    "SELECT snowflake.snowflake_set_mark(1)",
    "SELECT snowflake.snowflake_status()",
    "SELECT snowflake.snowflake_portable_push(true, NULL)",
    "SELECT snowflake.snowflake_portable_draw(NULL, true)",
    "SELECT snowflake.snowflake_portable_flush()",
    "SELECT nextval('snowflake_state.snowflake_portable_state')",
    "SELECT setval('snowflake_state.snowflake_portable_mark', 1)",
    "SELECT last_value FROM snowflake_state.snowflake_portable_state",
    "UPDATE snowflake_state.snowflake_portable_configuration SET worker_id = 8",
    "DO $$ BEGIN LOCK TABLE snowflake_state.snowflake_portable_lock IN ACCESS SHARE MODE; END $$",
    "DO $$ BEGIN LOCK TABLE snowflake_state.snowflake_portable_configuration IN ACCESS SHARE MODE; END $$",
];

fn check_closed(test: &str, script: &str) -> Result<(), String> {
    let (server, mut owner) = owned(test, script);
    for role in ["app", "web"] {
        let mut session = as_role(&server, role);
        for attack in ATTACKS {
            let code = session.code(attack);
            ensure!(code.as_deref() == Some("42501"), "{role} may {attack}: {code:?}");
        }
    }
    // Nobody but the owner has a right on an object of the state or on a function that runs with the owner's rights.
    let open: Vec<String> = owner.all(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE prosecdef AND pronamespace = 'snowflake'::regnamespace
             AND (SELECT count(*) FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee <> proowner) > 0
         UNION ALL SELECT oid::regclass::text FROM pg_class, aclexplode(relacl)
             WHERE relname ~ '^snowflake_portable' AND grantee <> relowner
         UNION ALL SELECT nspname::text FROM pg_namespace, aclexplode(nspacl) WHERE nspname = 'snowflake_state' AND grantee <> nspowner",
    );
    ensure!(open.is_empty(), "{open:?} are open");
    // Such a function finds its objects whatever the search path of the caller is.
    let unsafe_names: Vec<String> = owner.all(
        "SELECT proname::text FROM pg_proc WHERE prosecdef AND pronamespace = 'snowflake'::regnamespace
             AND proconfig IS DISTINCT FROM ARRAY['search_path=snowflake, snowflake_state, pg_temp'] ORDER BY 1",
    );
    ensure!(unsafe_names == ["snowflake_nextval"], "{unsafe_names:?} have no search path");
    Ok(())
}

#[test]
fn only_roles_that_the_owner_names_issue_ids() {
    check_closed("rights", &script("rights")).unwrap();
}

#[test]
fn a_state_that_is_open_is_caught() {
    let mistake = ("WHERE privilege.grantee <> owner", "WHERE false");
    assert_caught(check_closed("rights_open", &spoilt("rights_open", mistake)), "web may");
    let mistake = ("AND privilege.grantee <> proowner", "AND false");
    assert_caught(check_closed("rights_functions", &spoilt("rights_functions", mistake)), "app may");
}

/// Whether a newer script that adds a function with the rights of the owner closes it, and keeps the privileges of the others.
fn check_newer(test: &str, newer: &str) -> Result<(), String> {
    let (server, mut owner) = owned(test, &script(test));
    owner.run("GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app");
    install(&mut owner, newer, &[]).map_err(|error| error.1)?;
    for role in ["app", "web"] {
        let mut session = as_role(&server, role);
        let code = session.code("SELECT snowflake.snowflake_added()");
        ensure!(code.as_deref() == Some("42501"), "{role} may call the added function: {code:?}");
        let code = session.code("SELECT snowflake.snowflake_nextval()");
        ensure!(code.is_none() == (role == "app"), "{role} draws: {code:?}");
    }
    // The owner opens it, and the same script does not close it again.
    owner.run("GRANT EXECUTE ON FUNCTION snowflake_added() TO web");
    install(&mut owner, newer, &[]).map_err(|error| error.1)?;
    let code = as_role(&server, "web").code("SELECT snowflake.snowflake_added()");
    ensure!(code.is_none(), "the grant is lost: {code:?}");
    Ok(())
}

/// A script that adds a function, with other mistakes.
fn adding(test: &str, mistakes: &[(&str, &str)]) -> String {
    let end = "-- Any role can decode IDs.";
    let added = "CREATE OR REPLACE FUNCTION snowflake_added() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
        AS $$ BEGIN RETURN snowflake_nextval(); END $$;\n\n-- Any role can decode IDs.";
    mistaken(test, &[&[(end, added)], mistakes].concat())
}

#[test]
fn a_function_that_a_newer_script_adds_is_closed() {
    check_newer("rights_added", &adding("rights_added", &[])).unwrap();
}

#[test]
fn an_added_function_that_is_open_is_caught() {
    let mistake = ("pg_proc.oid <> ALL (known)", "false");
    let newer = adding("rights_added_open", &[mistake]);
    assert_caught(check_newer("rights_added_open", &newer), "may call the added function");
    let mistake = ("AND pg_proc.oid <> ALL (known)", "");
    let newer = adding("rights_added_closed", &[mistake]);
    assert_caught(check_newer("rights_added_closed", &newer), "app draws");
}

/// Objects of the caller that stand in for those of PostgreSQL, if their names are found first.
const TRAPS: &str = "
    CREATE SCHEMA trap;
    CREATE FUNCTION trap.caught() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE 'caught as %', current_user; END $$;
    CREATE FUNCTION trap.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT trap.caught()';
    CREATE FUNCTION trap.pg_sequence_last_value(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT trap.caught()';
    CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT trap.caught()::text::timestamptz';
    CREATE FUNCTION trap.date_part(text, timestamptz) RETURNS float8 LANGUAGE sql AS 'SELECT trap.caught()::float8';
    CREATE FUNCTION trap.op(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT trap.caught()';
    CREATE FUNCTION trap.op(bigint, integer) RETURNS bigint LANGUAGE sql AS 'SELECT trap.caught()';
    CREATE FUNCTION trap.truth(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT trap.caught() > 0';
    CREATE FUNCTION trap.truth(bigint, integer) RETURNS boolean LANGUAGE sql AS 'SELECT trap.caught() > 0';
    CREATE FUNCTION trap.truth(float8, float8) RETURNS boolean LANGUAGE sql AS 'SELECT trap.caught() > 0';
    CREATE FUNCTION trap.op(float8, float8) RETURNS float8 LANGUAGE sql AS 'SELECT trap.caught()::float8';
    DO $$
    DECLARE
        name text;
    BEGIN
        FOREACH name IN ARRAY ARRAY['&', '|', '<<', '>>', '+', '-', '*', '/'] LOOP
            EXECUTE format('CREATE OPERATOR trap.%s (FUNCTION = trap.op, LEFTARG = bigint, RIGHTARG = bigint)', name);
            EXECUTE format('CREATE OPERATOR trap.%s (FUNCTION = trap.op, LEFTARG = bigint, RIGHTARG = integer)', name);
        END LOOP;
        FOREACH name IN ARRAY ARRAY['*', '-', '/', '+'] LOOP
            EXECUTE format('CREATE OPERATOR trap.%s (FUNCTION = trap.op, LEFTARG = float8, RIGHTARG = float8)', name);
        END LOOP;
        FOREACH name IN ARRAY ARRAY['<', '<=', '>', '>=', '='] LOOP
            EXECUTE format('CREATE OPERATOR trap.%s (FUNCTION = trap.truth, LEFTARG = bigint, RIGHTARG = bigint)', name);
            EXECUTE format('CREATE OPERATOR trap.%s (FUNCTION = trap.truth, LEFTARG = bigint, RIGHTARG = integer)', name);
            EXECUTE format('CREATE OPERATOR trap.%s (FUNCTION = trap.truth, LEFTARG = float8, RIGHTARG = float8)', name);
        END LOOP;
    END $$;
    CREATE DOMAIN trap.regclass AS text; CREATE DOMAIN trap.text AS pg_catalog.text CHECK (trap.caught() > 0);
    GRANT USAGE ON SCHEMA trap TO PUBLIC";

fn check_trap(test: &str, script: &str) -> Result<(), String> {
    let (server, mut owner) = owned(test, script);
    owner.run(
        "GRANT EXECUTE ON FUNCTION snowflake_nextval(), snowflake_nextval_batch(integer), snowflake_reserve(integer),
             snowflake_currval(), snowflake_status() TO app",
    );
    server.connect_to("shop").run(TRAPS);
    // The path comes before the first call of the session, which makes the plans.
    let mut session = as_role(&server, "app");
    session.run("SET search_path = trap, pg_catalog, pg_temp");
    for call in
        ["nextval() FROM generate_series(1, 5000)", "nextval_batch(5000)", "reserve(3)", "currval()", "status()"]
    {
        let query = format!("SELECT snowflake.snowflake_{call}");
        session
            .batch_execute(&query)
            .map_err(|error| format!("{call}: {:?}", error.as_db_error().map(postgres::error::DbError::message)))?;
    }
    Ok(())
}

#[test]
fn no_object_of_the_caller_replaces_what_the_functions_name() {
    check_trap("trap", &script("trap")).unwrap();
}

#[test]
fn an_operator_without_a_schema_is_caught() {
    let mistake = ("THEN ((drawn OPERATOR(pg_catalog.>>) %4$s)", "THEN ((drawn >> %4$s)");
    assert_caught(check_trap("trap_operator", &spoilt("trap_operator", mistake)), "caught as shop");
    let mistake = ("THEN pg_catalog.nextval(", "THEN nextval(");
    assert_caught(check_trap("trap_function", &spoilt("trap_function", mistake)), "caught as shop");
}

/// A role cancels its draws while the first mark is flushed, which takes long. Nobody else draws.
fn check_cancelled(test: &str, mistakes: &[(&str, &str)]) -> Result<(), String> {
    let slow = ("PERFORM snowflake_portable_flush();", "PERFORM snowflake_portable_flush(); PERFORM pg_sleep(20);");
    let (server, mut owner) = without_ids(test, &mistaken(test, &[&[slow], mistakes].concat()));
    owner.run("GRANT EXECUTE ON FUNCTION snowflake_nextval(), snowflake_currval() TO app");
    let mut session = as_role(&server, "app");
    session.run("SET statement_timeout = '50ms'");
    for _ in 0..20 {
        let code = session.code("SELECT snowflake.snowflake_nextval()");
        ensure!(code.as_deref() == Some("57014"), "the draw is not cancelled: {code:?}");
    }
    let lead: f64 = owner.one("SELECT extract(epoch FROM mark_lead)::float8 FROM snowflake_status");
    ensure!(lead < 10.0, "the mark is {lead} s ahead of the clock");
    // No ID was received, so none is known.
    let code = session.code("SELECT snowflake.snowflake_currval()");
    ensure!(code.as_deref() == Some("55000"), "a cancelled draw leaves an ID: {code:?}");
    Ok(())
}

#[test]
fn draws_that_are_cancelled_before_the_first_id_raise_the_mark_by_one_window() {
    check_cancelled("cancelled", &[]).unwrap();
}

#[test]
fn a_mark_that_each_cancelled_draw_raises_is_caught() {
    let mistake = ("PERFORM setval('snowflake_portable_state', (tick - 1)", "PERFORM ((tick - 1)");
    assert_caught(check_cancelled("cancelled_raises", &[mistake]), "s ahead of the clock");
}
