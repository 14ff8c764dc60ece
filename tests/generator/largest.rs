//! Every function takes the largest values while memory is short, and ends with a result or an error. If Rust runs out of memory, it
//! aborts the process, and PostgreSQL then ends all sessions.

use std::collections::BTreeSet;

use cluster::{Answer, Builder, Client, Cluster, assert_caught, ensure, limit_memory, sqlstate};

/// How much larger a session can get, in megabytes: enough for one text of 100 MB, but not for two.
const ROOM: u64 = 170;

/// A text of 100 MB and a `bytea` of 50 MB, which are computed when the statement runs.
const BIG: &str =
    "(SELECT repeat(repeat('x', 10000), n) AS t, convert_to(repeat(repeat('x', 10000), n / 2), 'UTF8') AS b
    FROM generate_series(10000, 10000) AS n OFFSET 0) AS big";

/// Tables and views that the calls name. Triggers that were made by hand have an argument of 60 MB, and a label has the same length.
const OBJECTS: &str = "
    CREATE TABLE ids (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
    CREATE VIEW nodes AS SELECT n::bigint * 4096 AS id FROM generate_series(0, 300000) AS n;
    CREATE TABLE parts (id bigint) PARTITION BY RANGE (id);
    CREATE TABLE numbered (number text);
    SELECT snowflake_create_series('gapless', 'A{n:5}');
    SELECT snowflake_create_series('hourly', 'INV-{YYYY}{MM}{DD}{HH}{n:5}', time_zone => 'UTC');
    CREATE VIEW periods AS
        SELECT 'INV-' || to_char(timestamp '1000-01-01' + n * interval '1 hour', 'YYYYMMDDHH24') || '00001' AS number
        FROM generate_series(1, 600000) AS n;
    CREATE VIEW wide AS SELECT repeat(repeat('x', 10000), 100) AS number FROM generate_series(1, 100);
    CREATE TABLE guarded (id bigint);
    CREATE TABLE misnumbered (number text);
    CREATE TABLE miskept (number text);
    CREATE TABLE kept (number text);
    SELECT snowflake_number_at_commit('kept', 'number', 'gapless');
    CREATE TABLE misdefined (period text, last_number bigint);
    CREATE TABLE open_series (period text, last_number bigint);
    ALTER TABLE open_series ALTER period SET STORAGE EXTERNAL;
    CREATE TRIGGER series AFTER INSERT ON open_series
        FOR EACH ROW EXECUTE FUNCTION snowflake_series_row('A{n:5}', 'gapless', 'UTC', '1');
    SELECT snowflake_create_series('unbounded', 'A{n:5}');
    ALTER TABLE unbounded DISABLE TRIGGER USER, DROP CONSTRAINT unbounded_pkey, ALTER period SET STORAGE EXTERNAL;
    INSERT INTO unbounded SELECT repeat(repeat('x', 10000), n), 99999 FROM generate_series(10000, 10000) AS n;
    CREATE TABLE labelled (period text, last_number bigint);
    CREATE TRIGGER series AFTER INSERT ON labelled
        FOR EACH ROW EXECUTE FUNCTION snowflake_series_row('A{n:5}', 'dense', 'UTC', '1', 'public.labelled');
    DO $$
    DECLARE
        long constant text := repeat(repeat('x', 10000), 6000);
    BEGIN
        EXECUTE 'CREATE TRIGGER guard BEFORE INSERT ON guarded FOR EACH ROW EXECUTE FUNCTION snowflake_guard_row('''
            || long || ''', ''0'')';
        EXECUTE 'CREATE CONSTRAINT TRIGGER number AFTER INSERT ON misnumbered FROM gapless DEFERRABLE INITIALLY DEFERRED '
            'FOR EACH ROW EXECUTE FUNCTION snowflake_number_row(''' || long || ''')';
        EXECUTE 'CREATE TRIGGER keep AFTER INSERT ON miskept FOR EACH ROW EXECUTE FUNCTION snowflake_number_keep(''' || long || ''')';
        EXECUTE 'CREATE TRIGGER series AFTER INSERT ON misdefined FOR EACH ROW EXECUTE FUNCTION '
            'snowflake_series_row(''A{n:5}'', ''dense'', ''UTC'', ''1'', ''' || long || ''')';
        EXECUTE 'SECURITY LABEL FOR snowflake_pg ON TABLE labelled IS ''' || long || '''';
    END $$;
    ALTER TABLE guarded ENABLE ALWAYS TRIGGER guard";

/// The functions of the extension, with the arguments with which they are called. `$t` is the text and `$b` is the `bytea` of [`BIG`].
/// Instead of the arguments, there can be the room in megabytes and the statements.
const CALLS: &[(&str, &[&str])] = &[
    ("snowflake_accept_clock()", &["()"]),
    (
        "snowflake_alter_series(regclass,text,text,bigint)",
        &[
            "('gapless', $t)",
            "('gapless', NULL, $t)",
            "('gapless', NULL, NULL, 9223372036854775807)",
            "('unbounded', 'A{n:2}')",
        ],
    ),
    (
        "snowflake_between(bigint,timestamp with time zone,timestamp with time zone)",
        &["(9223372036854775807, '-infinity', 'infinity')"],
    ),
    ("snowflake_check(regclass,text,integer[])", &["('ids', $t)", "('nodes')"]),
    ("snowflake_conceal(bigint,bytea,bytea)", &["(1, $b)", "(1, '\\x000102030405060708090a0b0c0d0e0f', $b)"]),
    ("snowflake_conceal_text(bigint,bytea,bytea)", &["(1, $b)", "(1, '\\x000102030405060708090a0b0c0d0e0f', $b)"]),
    ("snowflake_copy_nextval()", &["()"]),
    ("snowflake_copy_segment(text)", &["($t)"]),
    // SQL statements cannot call it.
    ("snowflake_copy_support(internal)", &[]),
    (
        "snowflake_create_partitions(regclass,interval,integer,timestamp with time zone)",
        &["('parts', '1 min', 2147483647)", "('parts', '178000000 years', 1)", "('parts', '1 h', 1, 'infinity')"],
    ),
    (
        "snowflake_create_series(text,text,text,text,bigint)",
        &["($t, 'A{n:5}')", "('new', $t)", "('new', 'A{n:5}', $t)", "('new', 'A{n:5}', 'gapless', $t)"],
    ),
    ("snowflake_currval()", &["()"]),
    ("snowflake_decode(bigint)", &["(9223372036854775807)"]),
    ("snowflake_decode(bigint,text)", &["(1, $t)"]),
    ("snowflake_decode(bigint,text,timestamp with time zone)", &["(1, $t, 'infinity')"]),
    ("snowflake_describe(bigint)", &["(9223372036854775807)"]),
    ("snowflake_describe(bigint,text)", &["(1, $t)"]),
    ("snowflake_describe(bigint,text,timestamp with time zone)", &["(1, $t, 'infinity')"]),
    (
        "snowflake_encode(timestamp with time zone,integer,integer,integer)",
        &["('infinity', 2147483647, 2147483647, 2147483647)"],
    ),
    ("snowflake_encode(timestamp with time zone,integer,integer,integer,text)", &["(now(), 1, 1, 1, $t)"]),
    (
        "snowflake_encode(timestamp with time zone,integer,integer,integer,text,timestamp with time zone)",
        &["(now(), 1, 1, 1, $t, 'infinity')"],
    ),
    ("snowflake_encode(timestamp with time zone,integer,integer,text)", &["(now(), 1, 1, $t)"]),
    (
        "snowflake_encode(timestamp with time zone,integer,integer,text,timestamp with time zone)",
        &["(now(), 1, 1, $t, 'infinity')"],
    ),
    ("snowflake_first_id_from(timestamp with time zone)", &["('infinity')"]),
    ("snowflake_from_text(text)", &["($t)"]),
    ("snowflake_from_uuid(uuid)", &["('ffffffff-ffff-ffff-ffff-ffffffffffff')"]),
    ("snowflake_guard(regclass,text)", &["('ids', $t)", "('ids')"]),
    ("snowflake_guard_row()", &["200 SET session_replication_role = replica; INSERT INTO guarded VALUES (1)", "()"]),
    ("snowflake_guard_status()", &["()"]),
    ("snowflake_last_id_before(timestamp with time zone)", &["('infinity')"]),
    ("snowflake_last_issuer()", &["()"]),
    ("snowflake_layouts()", &["()"]),
    ("snowflake_max_id(timestamp with time zone)", &["('infinity')"]),
    ("snowflake_max_id(timestamp with time zone,text)", &["(now(), $t)"]),
    ("snowflake_max_id(timestamp with time zone,text,timestamp with time zone)", &["(now(), $t, 'infinity')"]),
    ("snowflake_min_id(timestamp with time zone)", &["('infinity')"]),
    ("snowflake_min_id(timestamp with time zone,text)", &["(now(), $t)"]),
    ("snowflake_min_id(timestamp with time zone,text,timestamp with time zone)", &["(now(), $t, 'infinity')"]),
    ("snowflake_nextval()", &["()"]),
    (
        "snowflake_nextval_batch(integer)",
        &["(2147483647)", "20 SELECT count(id) FROM (SELECT snowflake_nextval_batch(500000) AS id) AS ids"],
    ),
    (
        "snowflake_number_at_commit(regclass,text,regclass,text)",
        &["('numbered', $t, 'gapless')", "('numbered', 'number', 'gapless', $t)"],
    ),
    (
        "snowflake_number_keep()",
        &[
            "200 INSERT INTO miskept VALUES (NULL)",
            "150 INSERT INTO kept SELECT repeat(repeat('x', 10000), n) FROM generate_series(5000, 5000) AS n",
            "()",
        ],
    ),
    ("snowflake_number_row()", &["200 INSERT INTO misnumbered VALUES (NULL)", "()"]),
    (
        "snowflake_partition_bounds(timestamp with time zone,timestamp with time zone,interval)",
        &["('-infinity', 'infinity', '178000000 years')"],
    ),
    ("snowflake_registry_status()", &["()"]),
    ("snowflake_reserve(integer)", &["(2147483647)"]),
    ("snowflake_reveal(bigint,bytea,bytea)", &["(1, $b)", "(1, '\\x000102030405060708090a0b0c0d0e0f', $b)"]),
    (
        "snowflake_reveal_text(text,bytea,bytea)",
        &["($t, '\\x000102030405060708090a0b0c0d0e0f')", "('0000000000000', $b)"],
    ),
    ("snowflake_segment_nextval(text)", &["($t)"]),
    ("snowflake_segments()", &["()"]),
    (
        "snowflake_serial(regclass,date)",
        &["('gapless', 'infinity')", "('misdefined', '2026-01-01')", "('labelled', '2026-01-01')"],
    ),
    ("snowflake_serial(regclass,timestamp with time zone)", &["('gapless', 'infinity')", "('misdefined', now())"]),
    (
        "snowflake_serial_gaps(regclass,text,regclass)",
        &[
            "('ids', $t, 'gapless')",
            "48 SELECT * FROM snowflake_serial_gaps('periods', 'number', 'hourly')",
            "160 SELECT * FROM snowflake_serial_gaps('wide', 'number', 'hourly')",
        ],
    ),
    ("snowflake_serial_parse(regclass,text)", &["('gapless', $t)"]),
    ("snowflake_series()", &["()"]),
    (
        "snowflake_series_row()",
        &[
            "200 INSERT INTO misdefined VALUES ('2026', 1)",
            "150 INSERT INTO open_series SELECT repeat(repeat('x', 10000), n), 1 FROM generate_series(5000, 5000) AS n",
            "()",
        ],
    ),
    ("snowflake_set_mark(bigint,regclass,text,boolean)", &["(9223372036854775807)", "(1, 'ids', $t)"]),
    ("snowflake_stat_backends()", &["()"]),
    ("snowflake_stat_reset()", &["()"]),
    ("snowflake_status()", &["()"]),
    ("snowflake_timestamp(bigint)", &["(9223372036854775807)"]),
    ("snowflake_timestamp(bigint,text)", &["(1, $t)"]),
    ("snowflake_timestamp(bigint,text,timestamp with time zone)", &["(1, $t, 'infinity')"]),
    ("snowflake_to_text(bigint)", &["(9223372036854775807)"]),
    ("snowflake_to_uuid(bigint)", &["(9223372036854775807)"]),
    ("snowflake_version()", &["()"]),
];

/// Statements that call no function of the extension, but code of its library, in the form of the calls.
const STATEMENTS: &[(&str, &[&str])] = &[(
    "SECURITY LABEL",
    &["400 DO $$ BEGIN
           EXECUTE 'SECURITY LABEL FOR snowflake_pg ON TABLE labelled IS ''' || repeat(repeat('y', 10000), 6000) || '''';
       END $$"],
)];

/// Runs a call in a session of its own. An error is one that the session does not survive.
fn run(server: &Cluster, function: &str, call: &str) -> Result<(), String> {
    let name = function.split('(').next().unwrap_or(function);
    let (room, statements) = match call.split_once(' ').and_then(|(room, rest)| Some((room.parse().ok()?, rest))) {
        Some((room, statements)) => (room, statements.to_string()),
        None => (ROOM, format!("SELECT {name}{} FROM {BIG}", call.replace("$t", "t").replace("$b", "b"))),
    };
    let mut session = server.connect();
    limit_memory(&mut session, room * 1_000_000);
    let code = match session.batch_execute(&statements) {
        Ok(()) => "00000".into(),
        Err(error) if error.as_db_error().is_some_and(|error| !["57P02", "XX000"].contains(&error.code().code())) => {
            sqlstate(&error).0
        }
        Err(error) => return Err(format!("{function}: the session ended: {error}: {statements}")),
    };
    println!("{code} {function} {call}");
    Ok(())
}

/// Runs the calls of the functions that are wanted, and checks that the server has kept all other sessions.
fn check(builder: Builder, wanted: impl Fn(&str) -> bool) -> Result<(), String> {
    // The code that JIT loads would not fit.
    let server = builder.set("jit", "off").start();
    server.session().run(OBJECTS);
    let mut watch: Client = server.connect();
    let process: i32 = watch.one("SELECT pg_backend_pid()");
    for (function, calls) in CALLS.iter().chain(STATEMENTS).filter(|(function, _)| wanted(function)) {
        calls.iter().try_for_each(|call| run(&server, function, call))?;
    }
    ensure!(watch.one::<i32>("SELECT pg_backend_pid()") == process, "another session");
    // The control of the limit: PostgreSQL itself runs out of memory, with an error.
    let mut session = server.connect();
    limit_memory(&mut session, ROOM * 1_000_000);
    let code = session.code("SELECT length(repeat(repeat('x', 10000), 20000))");
    ensure!(code.as_deref() == Some("53200"), "the limit does not count: {code:?}");
    Ok(())
}

#[test]
fn every_function_takes_the_largest_values_while_memory_is_short() {
    check(Cluster::builder("largest"), |_| true).unwrap();
    // A server with a registry looks for the tag.
    let with_registry = Cluster::builder("largest_registry").unset("snowflake_pg.worker_id");
    let tag = |function: &str| function.starts_with("snowflake_segment_nextval");
    check(with_registry.set("snowflake_pg.registry", "host=/nowhere dbname=postgres"), tag).unwrap();
}

#[test]
fn no_function_is_missing_among_those_that_take_the_largest_values() {
    let server = Cluster::builder("largest_catalog").start();
    let found: Vec<String> = server.session().all(
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
         WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake_pg')",
    );
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    let called: BTreeSet<&str> = CALLS.iter().map(|(function, _)| *function).collect();
    let (missing, other) = (&found - &called, &called - &found);
    assert!(
        missing.is_empty() && other.is_empty(),
        "CALLS in tests/generator/largest.rs lacks {missing:?}, and has {other:?}"
    );
}

#[test]
fn an_argument_that_is_copied_is_caught() {
    let copies = Cluster::builder("largest_copied").fault("ArgumentCopied");
    assert_caught(check(copies, |function| function.starts_with("snowflake_from_text")), "the session ended");
}
