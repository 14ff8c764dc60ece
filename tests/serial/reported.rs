//! An error inside a statement of the extension is reported as PostgreSQL reports it, without anything of the implementation.

use cluster::{Cluster, typed};

/// What must not be in a report, nor in the server log.
const HIDDEN: [&str; 5] = [".rs", "backtrace", "panicked", "pgrx", "src/"];

const STATEMENTS: &str = "\\set ON_ERROR_STOP off
\\set VERBOSITY verbose
SELECT snowflake_create_series('inv', 'INV-{n:5}') \\g /dev/null
CREATE TABLE checked (id integer, number text CHECK (number <> 'INV-00001'));
SELECT snowflake_number_at_commit('checked', 'number', 'inv') \\g /dev/null
INSERT INTO checked VALUES (1);
CREATE TABLE raising (id integer, number text);
CREATE FUNCTION raise() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING DETAIL = 'because', HINT = 'wait'; END $$;
CREATE TRIGGER raising BEFORE UPDATE ON raising FOR EACH ROW EXECUTE FUNCTION raise();
SELECT snowflake_number_at_commit('raising', 'number', 'inv') \\g /dev/null
INSERT INTO raising VALUES (1);
SET default_transaction_read_only = on;
SELECT snowflake_serial('inv');
SELECT snowflake_create_series('other', 'OTHER-{n:5}');
SELECT snowflake_create_series('absent.other', 'OTHER-{n:5}');
RESET default_transaction_read_only;
SELECT snowflake_check('inv', 'period');
SELECT snowflake_create_series('absent.other', 'OTHER-{n:5}');
SELECT snowflake_serial('none');
\\set ON_ERROR_STOP on
SELECT 1 / 0;
";

#[test]
fn errors_inside_statements_show_nothing_of_the_implementation() {
    let server = Cluster::builder("serial_reported")
        .env("RUST_LIB_BACKTRACE", "1")
        .set("log_error_verbosity", "verbose")
        .start();
    drop(server.session());
    // psql writes errors to stderr, which is returned because the last statement fails.
    let shown = typed(server.psql(), STATEMENTS).expect_err("the last statement fails");
    let log = server.log();
    for (text, what) in [(&shown, "psql"), (&log, "the log")] {
        assert!(text.contains("because") && text.contains("23514"), "{what} lacks an error:\n{text}");
        // The location is a file and a line, as for PostgreSQL's own errors.
        let lines = text.lines().filter(|line| !line.contains("LOCATION:  "));
        let found: Vec<_> = lines.filter(|line| HIDDEN.iter().any(|hidden| line.contains(hidden))).collect();
        assert!(found.is_empty(), "{what} shows {found:#?}\nin {text}");
    }
}
