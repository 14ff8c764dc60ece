//! Functions that a view calls while `snowflake_serial_gaps` reads it: their errors reach the caller, and the server continues.

use cluster::{Answer, Cluster};

/// A view whose only row is computed by the function `f`, with a series that has a counter.
fn view(body: &str) -> String {
    format!(
        "DROP TABLE IF EXISTS t CASCADE; CREATE TABLE t (x int); INSERT INTO t VALUES (0);
         CREATE OR REPLACE FUNCTION f() RETURNS text LANGUAGE plpgsql AS $$BEGIN {body} RETURN 'A00001'; END$$;
         CREATE OR REPLACE VIEW v AS SELECT f() AS number"
    )
}

#[test]
fn an_error_in_a_view_is_an_error_of_the_call() {
    let (server, mut session) = Cluster::builder("gaps_error").start_session();
    session
        .run("SELECT snowflake_create_series('s', 'A{n:5}'); SELECT snowflake_serial('s') FROM generate_series(1, 3)");
    session.run("CREATE TABLE found (number bigint); SET max_parallel_workers_per_gather = 2");
    // An INSERT is not run in parallel, and therefore the query in the function can be.
    let gaps = "INSERT INTO found SELECT first_number FROM snowflake_serial_gaps('v', 'number', 's')";
    session.run(&view(""));
    session.run(gaps);
    assert_eq!(session.all::<i64>("SELECT number FROM found"), [2]);
    for (body, code) in [("PERFORM 1 / x FROM t;", "22012"), ("EXECUTE 'CLOSE ALL';", "24000")] {
        for parallel in ["off", "on"] {
            // The setting has another name since PostgreSQL 16.
            session.run(&format!(
                "SELECT set_config(name, '{parallel}', false) FROM pg_settings
                 WHERE name IN ('force_parallel_mode', 'debug_parallel_query')"
            ));
            // The plan of the query in the old function is not used again.
            session.run(&view(body));
            let [found, message, ..] = session.error(gaps);
            assert_eq!(found, code, "{body} {message}");
            // A subtransaction that catches the error ends the query, too.
            session.run(&format!("DO $$BEGIN {gaps}; EXCEPTION WHEN SQLSTATE '{code}' THEN NULL; END$$"));
        }
    }
    assert_eq!(session.one::<i64>("SELECT count(*) FROM found"), 1);
    assert!(!server.log().contains("was terminated by signal"), "{}", server.log());
}
