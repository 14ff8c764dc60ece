//! `snowflake_check`, `snowflake_serial_gaps`, `snowflake_alter_series` and `snowflake_set_mark` read a table with the privileges of its
//! owner if a superuser calls them.

use cluster::{Answer, Cluster, assert_caught, ensure};

/// A superuser reads two tables and a materialized view. Their owner, the role `low`, has used a function in the predicate of an index,
/// which the planner calls. The function changes a setting. Returns an error if the function has run with other privileges than those of
/// its owner, or if the setting of the superuser's session has changed.
fn check_owner(name: &str, fault: Option<&str>) -> Result<(), String> {
    let server = Cluster::builder(name).fault_if(fault).start();
    let mut session = server.session();
    session.run(
        "CREATE ROLE low LOGIN; CREATE SCHEMA low AUTHORIZATION low; 
         CREATE SEQUENCE owners; CREATE SEQUENCE others; GRANT USAGE ON owners, others TO PUBLIC;
         SET ROLE low; CREATE TABLE low.orders (id bigint, number text); INSERT INTO low.orders VALUES (1, 'N-0002');
         SET search_path = public, low; SELECT snowflake_create_series('low.invoice', 'N-{n:4}'); RESET search_path;
         INSERT INTO low.invoice VALUES ('', 200);
         CREATE FUNCTION low.yes(integer) RETURNS boolean IMMUTABLE LANGUAGE sql AS $$
             SELECT nextval(CASE current_user WHEN 'low' THEN 'public.owners' ELSE 'public.others' END) > 0
                 AND set_config('search_path', 'low', false) = 'low'
         $$;
         CREATE MATERIALIZED VIEW low.ids AS SELECT id FROM low.orders;
         CREATE INDEX ON low.orders (id) WHERE low.yes(1); CREATE INDEX ON low.invoice (period) WHERE low.yes(1);
         CREATE INDEX ON low.ids (id) WHERE low.yes(1);
         RESET ROLE; DROP SEQUENCE others; CREATE SEQUENCE others; GRANT USAGE ON others TO PUBLIC",
    );
    let gaps =
        "SELECT string_agg(gaps::text, '') FROM snowflake_serial_gaps('low.orders', 'number', 'low.invoice') AS gaps";
    let mut before = session.one::<i64>("SELECT last_value FROM owners");
    for (call, code) in [
        ("SELECT snowflake_check('low.orders')", None),
        ("SELECT snowflake_check('low.ids')", None),
        ("SELECT snowflake_set_mark(2, 'low.orders')", None),
        (gaps, None),
        ("SELECT snowflake_alter_series('low.invoice', start => 5)", Some("55000")),
        ("SELECT snowflake_alter_series('low.invoice', 'N-{n:2}')", Some("2200H")),
    ] {
        // A session calls the function only once for each index.
        let mut superuser = server.connect();
        assert_eq!(superuser.code(call).as_deref(), code, "{call}");
        ensure!(!session.one::<bool>("SELECT is_called FROM others"), "{call} runs code of the owner as the superuser");
        let calls = session.one::<i64>("SELECT last_value FROM owners");
        assert!(calls > before, "{call} runs no code of the owner");
        before = calls;
        let path: String = superuser.one("SHOW search_path");
        ensure!(path == "\"$user\", public", "after {call}, the superuser has the search_path {path}");
    }
    for policy in ["", "ALTER TABLE low.orders ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"] {
        session.run(policy);
        let found: Vec<String> = session.all("SELECT problem FROM snowflake_check('low.orders')");
        assert_eq!(found, ["unexpected worker"]);
        assert_eq!(session.one::<String>(gaps), "(\"\",1,1)(\"\",3,200)");
    }
    Ok(())
}

#[test]
fn a_superuser_runs_code_of_the_owner_only_as_the_owner() {
    check_owner("check_owner", None).unwrap();
}

#[test]
fn a_superuser_who_reads_as_itself_is_caught() {
    assert_caught(check_owner("check_caller", Some("ReadAsCaller")), "runs code of the owner as the superuser");
}

#[test]
fn a_setting_that_code_of_the_owner_leaves_behind_is_caught() {
    assert_caught(check_owner("check_setting", Some("SettingsKept")), "the superuser has the search_path low");
}
