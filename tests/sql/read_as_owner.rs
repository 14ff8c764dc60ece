//! `snowflake_check`, `snowflake_serial_gaps` and `snowflake_set_mark` read a table with the privileges of its owner if a superuser calls
//! them.

use cluster::{Answer, Cluster, assert_caught, ensure};

/// A superuser reads two tables. Their owner, the role `low`, has used a function in the predicate of an index, which the planner calls.
/// Returns an error if the function has run with other privileges than those of its owner.
fn check_owner(name: &str, fault: Option<&str>) -> Result<(), String> {
    let server = Cluster::builder(name).fault_if(fault).start();
    let mut session = server.session();
    session.run(
        "CREATE ROLE low LOGIN; CREATE SCHEMA low AUTHORIZATION low; CREATE TABLE ran (who name); GRANT INSERT ON ran TO PUBLIC;
         SET ROLE low; CREATE TABLE low.orders (id bigint, number text); INSERT INTO low.orders VALUES (1, 'N-0002');
         SET search_path = public, low; SELECT snowflake_create_series('low.invoice', 'N-{n:4}'); RESET search_path;
         INSERT INTO low.invoice VALUES ('', 2);
         CREATE FUNCTION low.note() RETURNS void LANGUAGE sql AS 'INSERT INTO public.ran VALUES (current_user)';
         CREATE FUNCTION low.yes(integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
             'BEGIN PERFORM low.note(); RETURN true; END';
         CREATE INDEX ON low.orders (id) WHERE low.yes(1); CREATE INDEX ON low.invoice (period) WHERE low.yes(1);
         RESET ROLE; TRUNCATE ran",
    );
    let gaps = "SELECT gaps::text FROM snowflake_serial_gaps('low.orders', 'number', 'low.invoice') AS gaps";
    for call in ["SELECT snowflake_check('low.orders')", "SELECT snowflake_set_mark(2, 'low.orders')", gaps] {
        let code = session.code(call);
        let ran: Vec<String> = session.all("SELECT who::text FROM ran WHERE who <> 'low'");
        ensure!(ran.is_empty(), "{call} runs code of the owner as {ran:?}");
        assert_eq!(code, None, "{call}");
    }
    for policy in ["", "ALTER TABLE low.orders ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"] {
        session.run(policy);
        let found: Vec<String> = session.all("SELECT problem FROM snowflake_check('low.orders')");
        assert_eq!(found, ["unexpected worker"]);
        assert_eq!(session.one::<String>(gaps), "(\"\",1,1)");
    }
    Ok(())
}

#[test]
fn a_superuser_runs_code_of_the_owner_only_as_the_owner() {
    check_owner("check_owner", None).unwrap();
}

#[test]
fn a_superuser_who_reads_as_itself_is_caught() {
    assert_caught(check_owner("check_caller", Some("ReadAsCaller")), "runs code of the owner as");
}
