//! COPY inserts rows in batches although a column has `DEFAULT snowflake_nextval()`, and every other statement still evaluates the
//! default for each row.

use cluster::{Answer, Client, Cluster, assert_caught, ensure, major};

/// How many rows a COPY inserts.
const ROWS: i64 = 10_000;

/// Creates a table and copies rows into it. Returns how many bytes of WAL are written for each row.
fn wal(session: &mut Client, create: &str, copy: &str) -> Result<i64, String> {
    session.batch_execute(&format!("DROP TABLE IF EXISTS copied; {create}")).map_err(|error| error.to_string())?;
    let before: String = session.one("SELECT pg_current_wal_insert_lsn()::text");
    session.batch_execute(copy).map_err(|error| format!("{copy}: {error}"))?;
    let bytes = session.one(&format!("SELECT (pg_current_wal_insert_lsn() - '{before}'::pg_lsn)::bigint / {ROWS}"));
    let ids: i64 = session.one("SELECT count(DISTINCT id) FROM copied");
    ensure!(ids == ROWS, "{copy}: {ROWS} rows have {ids} IDs");
    Ok(bytes)
}

const SEQ: &str = "COPY copied (n) FROM PROGRAM 'seq 10000'";

/// Statements that create the table with a column of the type and default `{key}`, and that copy the rows.
const TABLES: [(&str, &str); 8] = [
    ("CREATE TABLE copied (id {key} PRIMARY KEY, n int)", SEQ),
    ("CREATE TABLE copied (id {key} PRIMARY KEY, n int)", "COPY copied (n) FROM PROGRAM 'seq 10000' WHERE n > 0"),
    (
        "CREATE TABLE copied (id {key} PRIMARY KEY, n int)",
        "DO $$ BEGIN EXECUTE 'COPY copied (n) FROM PROGRAM ''seq 10000'''; END $$",
    ),
    (
        "CREATE TABLE copied (id {key} PRIMARY KEY, n int, CHECK (n > 0))",
        "BEGIN; TRUNCATE copied; COPY copied (n) FROM PROGRAM 'seq 10000' WITH (FREEZE); COMMIT",
    ),
    (
        "CREATE TABLE copied (id {key}, n int, PRIMARY KEY (id)) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF copied FOR VALUES FROM (0) TO (1000000);
         CREATE TABLE high PARTITION OF copied FOR VALUES FROM (1000000) TO (MAXVALUE)",
        SEQ,
    ),
    (
        "CREATE TABLE copied (id {key} PRIMARY KEY, n int);
         CREATE TRIGGER after AFTER INSERT ON copied FOR EACH ROW WHEN (NEW.n < 0) EXECUTE FUNCTION ignored()",
        SEQ,
    ),
    (
        "CREATE TABLE copied (id {key} PRIMARY KEY, n int)",
        "COPY copied (n) FROM PROGRAM 'seq 10000' WITH (ON_ERROR ignore)",
    ),
    (
        "CREATE TABLE copied (id {key} PRIMARY KEY, n int)",
        "COPY copied FROM PROGRAM 'seq -f \"\\\\D\t%g\" 10000' WITH (DEFAULT '\\D')",
    ),
];

/// Compares the WAL of each table with that of the same table with a sequence.
fn check_batches(session: &mut Client, default: &str) -> Result<(), String> {
    session
        .run("CREATE OR REPLACE FUNCTION ignored() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$");
    let version: u32 = major().parse().expect("a number");
    for (create, copy) in TABLES {
        if (copy.contains("ON_ERROR") && version < 17) || (copy.contains("DEFAULT") && version < 16) {
            continue;
        }
        let sequence = wal(session, &create.replace("{key}", "bigserial"), copy)?;
        let key = format!("bigint DEFAULT {default}");
        let ours = wal(session, &create.replace("{key}", &key), copy)?;
        ensure!(ours <= sequence, "{copy}: {ours} bytes a row, with a sequence {sequence}");
    }
    Ok(())
}

#[test]
fn copy_writes_no_more_wal_than_with_a_sequence() {
    let (_server, mut session) = Cluster::builder("copy").start_session();
    check_batches(&mut session, "snowflake_nextval()").unwrap();
    // A domain whose default is an ID.
    session.run("CREATE DOMAIN key AS bigint DEFAULT snowflake_nextval()");
    let sequence = wal(&mut session, "CREATE TABLE copied (id bigserial PRIMARY KEY, n int)", SEQ).unwrap();
    let domain = wal(&mut session, "CREATE TABLE copied (id key PRIMARY KEY, n int)", SEQ).unwrap();
    assert!(domain <= sequence, "{domain} bytes a row, with a sequence {sequence}");
    // The extension in a schema that the search path does not contain.
    session.run("DROP TABLE copied; CREATE SCHEMA ids; ALTER EXTENSION snowflake_pg SET SCHEMA ids");
    check_batches(&mut session, "ids.snowflake_nextval()").unwrap();
    session.run("DROP EXTENSION snowflake_pg CASCADE; CREATE EXTENSION snowflake_pg");
    check_batches(&mut session, "snowflake_nextval()").unwrap();
}

/// The catalog of 0.1.0 has no planner support, so that the check fails, and the update adds it.
#[test]
fn the_update_from_the_first_release_makes_copy_insert_in_batches() {
    let server = Cluster::builder("copy_volatile").start();
    let mut session = server.connect();
    session.run("CREATE EXTENSION snowflake_pg VERSION '0.1.0'");
    assert_caught(check_batches(&mut session, "snowflake_nextval()"), "bytes a row, with a sequence");
    session.run("ALTER EXTENSION snowflake_pg UPDATE");
    check_batches(&mut session, "snowflake_nextval()").unwrap();
}

/// Statements that need a different ID for each row or each call, and queries that are false if an ID was issued twice. PostgreSQL plans
/// the expressions of the first [`WITHOUT_PLANNER`] statements without the planner of a query.
const STATEMENTS: [(&str, &str); 6] = [
    (
        "ALTER TABLE filled ADD COLUMN id bigint DEFAULT snowflake_nextval()",
        "SELECT count(DISTINCT id) = 100 FROM filled",
    ),
    ("ALTER TABLE filled ADD COLUMN id key", "SELECT count(DISTINCT id) = 100 FROM filled"),
    (
        "ALTER TABLE filled ALTER COLUMN n TYPE bigint USING snowflake_nextval() + n * 0",
        "SELECT count(DISTINCT n) = 100 FROM filled",
    ),
    (
        "PREPARE two(bigint, bigint) AS SELECT $1 <> $2; CREATE TABLE ids AS EXECUTE two(snowflake_nextval(), snowflake_nextval())",
        "SELECT every(\"?column?\") FROM ids",
    ),
    (
        "CREATE TABLE parts (id bigint) PARTITION BY RANGE (id);
         CREATE TABLE part PARTITION OF parts FOR VALUES FROM (snowflake_nextval()) TO (MAXVALUE)",
        "SELECT pg_get_expr(relpartbound, oid) ~ '[0-9]{18}' FROM pg_class WHERE relname = 'part'",
    ),
    (
        "CREATE TABLE ids (id bigint); INSERT INTO ids SELECT snowflake_nextval() FROM filled",
        "SELECT count(DISTINCT id) = 100 FROM ids",
    ),
];
const WITHOUT_PLANNER: usize = 5;

/// Statements that PostgreSQL refuses because the function is not IMMUTABLE.
const REFUSED: [&str; 2] = [
    "CREATE INDEX ON filled ((n + snowflake_nextval()))",
    "ALTER TABLE filled ADD COLUMN id bigint GENERATED ALWAYS AS (n + snowflake_nextval()) STORED",
];

/// Makes the function in the defaults of a COPY return the same number at each call. Every statement that uses it then repeats an ID, also
/// one that evaluates an expression only once.
const CONSTANT: &str =
    "CREATE OR REPLACE FUNCTION snowflake_copy_nextval() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT 1::bigint'";

/// Tables into which rows are copied, and functions that run the statement in the setting `test.statement`: triggers for the second row,
/// and a function that runs it once, wherever it is called.
const PLACES: &str = "
    CREATE DOMAIN key AS bigint DEFAULT snowflake_nextval();
    CREATE TABLE target (id bigint DEFAULT snowflake_nextval(), n int CHECK (n > 0));
    CREATE TABLE other (id bigint DEFAULT snowflake_nextval(), n int);
    CREATE FUNCTION run() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.n = 2 THEN EXECUTE current_setting('test.statement'); END IF;
        RETURN NEW;
    END $$;
    CREATE FUNCTION run_after_copy() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.n = 2 THEN
            COPY other (n) FROM PROGRAM 'seq 3';
            EXECUTE current_setting('test.statement');
        END IF;
        RETURN NEW;
    END $$;
    CREATE FUNCTION run_after_error() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.n = 2 THEN
            BEGIN
                COPY target (n) FROM PROGRAM 'echo -1';
            EXCEPTION WHEN check_violation THEN
                EXECUTE current_setting('test.statement');
            END;
        END IF;
        RETURN NEW;
    END $$;
    CREATE FUNCTION run_once() RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE
        statement text := current_setting('test.statement');
    BEGIN
        IF statement <> '' THEN
            PERFORM set_config('test.statement', '', true);
            EXECUTE statement;
        END IF;
        RETURN true;
    END $$";

/// Returns the statement alone, after a COPY and after a COPY that has failed, and the COPY statements in which it runs.
fn places(statement: &str) -> [String; 9] {
    let copy = "COPY target (n) FROM PROGRAM 'seq 3'";
    let in_trigger = |run: &str| {
        format!("CREATE TRIGGER runs BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION {run}(); {copy}")
    };
    let after_error = "SAVEPOINT before; DO $$ BEGIN COPY target (n) FROM PROGRAM 'echo -1';
                       EXCEPTION WHEN check_violation THEN NULL; END $$; ROLLBACK TO before";
    [
        statement.to_string(),
        format!("{copy}; {statement}"),
        format!("{after_error}; {statement}"),
        in_trigger("run"),
        in_trigger("run_after_copy"),
        in_trigger("run_after_error"),
        format!("{copy} WHERE run_once()"),
        format!("ALTER TABLE target ADD CHECK (run_once()); {copy}"),
        format!("ALTER TABLE target ADD COLUMN ran boolean DEFAULT run_once(); {copy}"),
    ]
}

/// Begins a transaction, creates a table of 100 rows, and runs the statement in a place.
fn run_in(session: &mut Client, statement: &str, place: &str) -> Result<(), postgres::Error> {
    let begin = "BEGIN; CREATE TABLE filled AS SELECT generate_series(1, 100) AS n";
    session.batch_execute(&format!("{begin}; SET LOCAL test.statement = $s${statement}$s$; {place}"))
}

/// Checks that a statement in a place issues a different ID each time. Leaves no trace in the database.
fn check_statement(session: &mut Client, (statement, check): (&str, &str), place: &str) -> Result<(), String> {
    let run = run_in(session, statement, place).map(|()| session.one::<bool>(check));
    session.run("ROLLBACK; DEALLOCATE ALL");
    let different = run.map_err(|error| format!("{place}: {statement}: {error}"))?;
    ensure!(different, "{place}: {statement}: an ID was issued twice");
    Ok(())
}

/// Checks each statement in each place.
fn check_statements(session: &mut Client) -> Result<(), String> {
    for statement in STATEMENTS {
        places(statement.0).iter().try_for_each(|place| check_statement(session, statement, place))?;
    }
    for statement in REFUSED {
        for place in places(statement) {
            let refused = run_in(session, statement, &place).expect_err(&place);
            session.run("ROLLBACK");
            let code = refused.code().map(|code| code.code().to_string());
            ensure!(code.as_deref() == Some("42P17"), "{place}: {statement}: {refused}");
        }
    }
    Ok(())
}

#[test]
fn every_other_statement_issues_an_id_for_each_row() {
    let (_server, mut session) = Cluster::builder("copy_others").start_session();
    session.run(PLACES);
    check_statements(&mut session).unwrap();
    session.run(CONSTANT);
    check_statements(&mut session).unwrap();
}

#[test]
fn a_default_that_is_stable_everywhere_is_caught() {
    let (_server, mut session) = Cluster::builder("copy_everywhere").fault("CopyEverywhere").start_session();
    session.run(PLACES);
    assert_caught(check_statements(&mut session), "an ID was issued twice");
    session.run(CONSTANT);
    for statement in &STATEMENTS[..WITHOUT_PLANNER] {
        for place in places(statement.0) {
            assert_caught(check_statement(&mut session, *statement, &place), "an ID was issued twice");
        }
    }
}

/// Expressions that are evaluated for each row of a COPY, and that show their ID to `see`.
const EXPRESSIONS: [(&str, &str); 4] = [
    ("", "COPY copied (n) FROM PROGRAM 'seq 100' WHERE see(snowflake_nextval())"),
    ("ALTER TABLE copied ADD CHECK (see(snowflake_nextval()))", "COPY copied (n) FROM PROGRAM 'seq 100'"),
    (
        "CREATE TRIGGER before BEFORE INSERT ON copied FOR EACH ROW WHEN (see(snowflake_nextval())) EXECUTE FUNCTION kept()",
        "COPY copied (n) FROM PROGRAM 'seq 100'",
    ),
    (
        "CREATE TRIGGER after AFTER INSERT ON copied FOR EACH ROW WHEN (see(snowflake_nextval())) EXECUTE FUNCTION kept()",
        "COPY copied (n) FROM PROGRAM 'seq 100'",
    ),
];

/// Checks that the IDs in conditions and in the default of a COPY are all different.
fn check_expression(session: &mut Client, (create, copy): (&str, &str)) -> Result<(), String> {
    session
        .batch_execute(&format!(
            "BEGIN; CREATE TABLE seen (id bigint);
             CREATE FUNCTION see(id bigint) RETURNS boolean LANGUAGE plpgsql AS $$
             BEGIN INSERT INTO seen VALUES (id); RETURN true; END $$;
             CREATE FUNCTION kept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
             CREATE TABLE copied (id bigint DEFAULT snowflake_nextval(), n int); {create}; {copy}"
        ))
        .map_err(|error| format!("{create}: {copy}: {error}"))?;
    let seen: i64 = session.one("SELECT count(DISTINCT id) FROM seen");
    let all: i64 =
        session.one("SELECT count(DISTINCT id) FROM (SELECT id FROM seen UNION ALL SELECT id FROM copied) AS ids");
    session.run("ROLLBACK");
    ensure!((seen, all) == (100, 200), "{create}: {copy}: {seen} IDs in the condition of 100 rows, {all} in all");
    Ok(())
}

#[test]
fn conditions_of_a_copy_have_different_ids() {
    let (_server, mut session) = Cluster::builder("copy_conditions").start_session();
    for expression in EXPRESSIONS {
        check_expression(&mut session, expression).unwrap();
    }
    // The check sees a function that returns the same number at each call.
    session.run(CONSTANT);
    for expression in EXPRESSIONS {
        assert_caught(check_expression(&mut session, expression), ": 1 IDs in the condition");
    }
}

/// Checks that an ID remains one ID if it is passed to an SQL function that uses its parameter several times. PostgreSQL can replace a
/// call of such a function by the function's expression.
fn check_repeated(session: &mut Client) -> Result<(), String> {
    session.run(
        "DROP TABLE IF EXISTS repeated;
         CREATE OR REPLACE FUNCTION twice(id bigint) RETURNS bigint[] LANGUAGE sql IMMUTABLE RETURN ARRAY[id, id];
         CREATE OR REPLACE FUNCTION same(id bigint) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN id % 2 = id % 2 AND id = id;
         CREATE TABLE repeated (ids bigint[] DEFAULT twice(snowflake_nextval()), n int CHECK (same(snowflake_nextval())));",
    );
    let copied = session.batch_execute("COPY repeated (n) FROM PROGRAM 'seq 100' WHERE same(snowflake_nextval())");
    copied.map_err(|error| format!("the CHECK fails: {error}"))?;
    let rows: i64 = session.one("SELECT count(*) FROM repeated WHERE ids[1] = ids[2]");
    ensure!(rows == 100, "only {rows} of 100 rows have one ID");
    Ok(())
}

#[test]
fn an_id_that_is_used_several_times_in_a_row_is_one_id() {
    let (_server, mut session) = Cluster::builder("copy_repeated").start_session();
    check_repeated(&mut session).unwrap();
    // The negative control: a call that is cheap enough to be repeated.
    session.run("ALTER FUNCTION snowflake_copy_nextval() COST 1");
    assert_caught(check_repeated(&mut session), "only 0 of 100 rows have one ID");
}

#[test]
fn copy_needs_the_privilege_of_the_function_in_the_default() {
    let (_server, mut session) = Cluster::builder("copy_privilege").start_session();
    session.run(
        "CREATE ROLE app; GRANT pg_execute_server_program TO app;
         CREATE TABLE copied (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int);
         GRANT SELECT, INSERT ON copied TO app;
         SET ROLE app; COPY copied (n) FROM PROGRAM 'seq 3'; RESET ROLE;
         REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC; SET ROLE app",
    );
    for statement in ["COPY copied (n) FROM PROGRAM 'seq 3'", "SELECT snowflake_copy_nextval()"] {
        let refused = session.batch_execute(statement).expect_err(statement);
        let message = refused.as_db_error().map(|error| (error.code().code(), error.message()));
        assert_eq!(message, Some(("42501", "permission denied for function snowflake_nextval")), "{statement}");
    }
    // A role that may execute only this function copies row by row.
    session.run(
        "RESET ROLE; REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC;
         GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app;
         SET ROLE app; COPY copied (n) FROM PROGRAM 'seq 3'",
    );
}

/// A function of the same name that is not the extension's is called for each row, and stays what it is.
#[test]
fn a_function_of_the_same_name_is_not_replaced() {
    let (_server, mut session) = Cluster::builder("copy_same_name").start_session();
    session
        .run(
            "CREATE SCHEMA other; CREATE SEQUENCE other.drawn;
         CREATE FUNCTION other.snowflake_nextval() RETURNS bigint VOLATILE LANGUAGE sql AS $$ SELECT nextval('other.drawn') $$;
         CREATE FUNCTION other.snowflake_copy_nextval() RETURNS bigint STABLE LANGUAGE sql AS $$ SELECT 0::bigint $$;
         CREATE TABLE copied (id bigint PRIMARY KEY DEFAULT other.snowflake_nextval(), n int);
         COPY copied (n) FROM PROGRAM 'seq 3'",
        );
    assert_eq!(session.one::<i64>("SELECT max(id) FROM copied"), 3);
}

/// Rows of a foreign table get their IDs here, and the ID of the last row is the current one.
#[test]
fn a_foreign_table_gets_different_ids() {
    let (_server, mut session) = Cluster::builder("copy_foreign").start_session();
    if !session.one::<bool>("SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw')") {
        return cluster::not_tested("COPY into a foreign table: postgres_fdw is not installed");
    }
    session
        .run(
            "CREATE EXTENSION postgres_fdw;
         DO $$ BEGIN EXECUTE format('CREATE SERVER here FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port %L, dbname %L)',
             split_part(current_setting('unix_socket_directories'), ',', 1), current_setting('port'), current_database()); END $$;
         CREATE USER MAPPING FOR CURRENT_USER SERVER here;
         CREATE TABLE remote (id bigint PRIMARY KEY, n int);",
        );
    session
        .run(
            "CREATE FOREIGN TABLE copied (id bigint DEFAULT snowflake_nextval(), n int) SERVER here OPTIONS (table_name 'remote');
         COPY copied (n) FROM PROGRAM 'seq 100'",
        );
    assert_eq!(session.one::<i64>("SELECT count(DISTINCT id) FROM copied"), 100);
    assert!(session.one::<bool>("SELECT max(id) = snowflake_currval() FROM copied"));
}
