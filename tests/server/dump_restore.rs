//! A dump is restored into an empty server with another worker ID. The contents are the same, and new IDs continue above them.

use std::path::PathBuf;
use std::process::Command;

use cluster::{Answer, Client, Cluster, assert_caught, ensure};

/// How a dump is taken and restored.
#[derive(Clone, Copy, PartialEq)]
enum DumpMethod {
    /// A script of one database, for psql.
    Plain,
    /// An archive of one database, by two jobs of pg_restore.
    Custom,
    /// A script of the whole server.
    All,
}

/// The search path of a session of the test. It has the schema of the extension only if that is `public`.
const SESSION: &str = "SET search_path = public; SET timezone = 'UTC'; SET datestyle = 'ISO'";

/// A session in the database that is dumped and restored.
fn session(server: &Cluster) -> Client {
    let mut session = server.connect_to("shop");
    session.run(SESSION);
    session
}

/// A server with database `shop`, whose tables, indexes and views use the functions of the extension, which is in `schema`.
fn shop(name: &str, schema: &str) -> Cluster {
    let server = Cluster::builder(&format!("{name}_from")).start();
    server.connect().run("CREATE DATABASE shop");
    let mut session = session(&server);
    let sql = format!(
        "CREATE SCHEMA IF NOT EXISTS {schema};
         CREATE EXTENSION snowflake_pg SCHEMA {schema};
         CREATE TABLE orders (
             id bigint PRIMARY KEY DEFAULT {schema}.snowflake_nextval(),
             n integer NOT NULL,
             created_at timestamptz GENERATED ALWAYS AS ({schema}.snowflake_timestamp(id, 'twitter')) STORED,
             code text COLLATE \"C\" GENERATED ALWAYS AS ({schema}.snowflake_to_text(id)) STORED,
             link {schema}.snowflake_text GENERATED ALWAYS AS ({schema}.snowflake_to_text(id)) STORED UNIQUE,
             CHECK ({schema}.snowflake_timestamp(id, '41:10:12') >= '2010-11-04 01:42:54.657+00'),
             CHECK ({schema}.snowflake_from_text(code) = id)
         );
         CREATE INDEX orders_time ON orders ({schema}.snowflake_timestamp(id, '41:10:12', timestamptz '2015-01-01 00:00:00+00'));
         INSERT INTO orders (n) SELECT n FROM generate_series(1, 1000) AS n;
         INSERT INTO orders (id, n)
             SELECT {schema}.snowflake_encode(timestamptz '2015-06-01 00:00:00+00' + n * interval '3 h', n % 1024, n), n
             FROM generate_series(1, 1000) AS n;
         CREATE VIEW recent AS
             SELECT o.id, o.n, part.created_at, part.worker_id, part.sequence
             FROM orders AS o, {schema}.snowflake_decode(o.id) AS part
             WHERE {schema}.snowflake_between(o.id, '2015-07-01 00:00:00+00', 'infinity');
         CREATE TABLE events (id bigint PRIMARY KEY DEFAULT {schema}.snowflake_nextval(), n integer NOT NULL)
             PARTITION BY RANGE (id);
         SELECT {schema}.snowflake_create_partitions('events', '1 day', 3);
         INSERT INTO events (n) SELECT n FROM generate_series(1, 1000) AS n"
    );
    session.run(&sql);
    server
}

/// The contents of the shop, and the definitions of its objects.
fn contents(server: &Cluster) -> Vec<String> {
    let mut session = session(server);
    let queries = [
        "SELECT o::text FROM orders AS o ORDER BY id",
        "SELECT tableoid::regclass || e::text FROM events AS e ORDER BY id",
        "SELECT r::text FROM recent AS r ORDER BY id",
        "SELECT indrelid::regclass || pg_get_indexdef(indexrelid) || indisvalid FROM pg_index
         WHERE indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace) ORDER BY 1",
        "SELECT conrelid::regclass || pg_get_constraintdef(oid) || convalidated FROM pg_constraint
         WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 ORDER BY 1",
        "SELECT extnamespace::regnamespace || extversion FROM pg_extension WHERE extname = 'snowflake_pg'",
    ];
    queries.iter().flat_map(|query| session.all::<String>(query)).collect()
}

/// The output of a client program. On failure, its error output.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().expect("a client program can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?} failed: {said}", command.get_program());
    Ok(format!("{}{said}", String::from_utf8_lossy(&output.stdout)))
}

/// Writes a dump into the server's directory, which is removed with the server.
fn dump(server: &Cluster, how: DumpMethod) -> Result<PathBuf, String> {
    let file = server.dir().join("shop.dump");
    let mut command = server.program(if how == DumpMethod::All { "pg_dumpall" } else { "pg_dump" });
    match how {
        DumpMethod::Plain => command.arg("shop"),
        DumpMethod::Custom => command.args(["--format=custom", "shop"]),
        DumpMethod::All => &mut command,
    };
    // Times in the dump are written in the time zone of the client.
    run(command.env("PGTZ", "UTC").arg("--file").arg(&file))?;
    Ok(file)
}

/// Restores a dump into a server that has no such database. Returns an error if a statement of the dump failed.
fn restore(server: &Cluster, file: &PathBuf, how: DumpMethod) -> Result<(), String> {
    if how != DumpMethod::All {
        server.connect().run("CREATE DATABASE shop TEMPLATE template0");
    }
    let mut command = server.program(if how == DumpMethod::Custom { "pg_restore" } else { "psql" });
    match how {
        DumpMethod::Custom => command.args(["--exit-on-error", "--jobs=2", "--dbname=shop"]),
        DumpMethod::Plain => {
            command.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname=shop", "--file"])
        }
        DumpMethod::All => command.args(["--no-psqlrc", "--quiet", "--file"]),
    };
    let said = run(command.arg(file))?;
    // The dump of a whole server also creates the role that restores it.
    let errors: Vec<&str> =
        said.lines().filter(|line| line.contains("ERROR") && !line.contains("role \"postgres\" already")).collect();
    ensure!(errors.is_empty(), "restored with errors: {errors:#?}");
    Ok(())
}

/// The script of a database, without the lines that differ each time.
fn script(server: &Cluster) -> Result<String, String> {
    let dump = run(server.program("pg_dump").env("PGTZ", "UTC").arg("shop"))?;
    let changing = ["\\restrict ", "\\unrestrict ", "-- Dumped "];
    Ok(dump.lines().filter(|line| !changing.iter().any(|begin| line.starts_with(begin))).collect::<Vec<_>>().join("\n"))
}

/// Restores a dump of `source` on `target`. The contents are the same, and a table's key continues.
fn check_restore(source: &Cluster, target: &Cluster, schema: &str, how: DumpMethod) -> Result<(), String> {
    restore(target, &dump(source, how)?, how)?;
    let (before, after) = (contents(source), contents(target));
    ensure!(before.len() > 4_000, "only {} rows", before.len());
    let other = before.iter().zip(&after).find(|(before, after)| before != after);
    ensure!(before.len() == after.len() && other.is_none(), "{} rows, not {}: {other:?}", after.len(), before.len());
    ensure!(script(source)? == script(target)?, "the dump of the restored database is another");

    let mut session = session(target);
    session.run("SET enable_seqscan = off; SET enable_bitmapscan = off");
    let indexed = format!(
        "SELECT count(*) FROM orders
         WHERE {schema}.snowflake_timestamp(id, '41:10:12', timestamptz '2015-01-01 00:00:00+00') > '-infinity'"
    );
    let plan = session.plan(&indexed);
    ensure!(plan.contains("orders_time"), "the index on an expression is not used:\n{plan}");
    ensure!(session.one::<i64>(&indexed) == 2_000, "the index on an expression lacks rows");

    let highest: i64 = session.one("SELECT max(id) FROM (TABLE events UNION ALL SELECT id, n FROM orders) AS ids");
    let new = session.all::<i64>(
        "WITH o AS (INSERT INTO orders (n) VALUES (1001) RETURNING id), e AS (INSERT INTO events (n) VALUES (1001) RETURNING id)
         TABLE o UNION ALL TABLE e",
    );
    ensure!(new.iter().all(|id| *id > highest), "{new:?} after {highest}");
    let worker: i32 = session.one(&format!("SELECT worker_id FROM {schema}.snowflake_decode({})", new[0]));
    ensure!(worker == 2, "worker ID {worker}");
    Ok(())
}

/// An empty server with another worker ID, which displays times differently.
fn target(name: &str) -> cluster::Builder {
    Cluster::builder(&format!("{name}_to"))
        .set("snowflake_pg.worker_id", "2")
        .set("timezone", "Asia/Kathmandu")
        .set("datestyle", "German")
}

#[test]
fn a_dump_goes_into_another_server_and_ids_go_on() {
    for (name, schema) in [("restore", "public"), ("restore_schema", "ids")] {
        let source = shop(name, schema);
        for how in [DumpMethod::Plain, DumpMethod::Custom, DumpMethod::All] {
            check_restore(&source, &target(name).start(), schema, how).unwrap();
        }
    }
}

#[test]
fn a_function_that_finds_the_extension_by_search_path_is_caught() {
    let name = "restore_path";
    let source = shop(name, "ids");
    // All is found by search path.
    session(&source).run(
        "SET search_path = public, ids;
         CREATE FUNCTION time_of(id bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT
             AS $$ SELECT snowflake_timestamp(id, 'twitter') $$;
         CREATE TABLE payments (
             id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
             paid_at timestamptz GENERATED ALWAYS AS (time_of(id)) STORED
         );
         INSERT INTO payments DEFAULT VALUES",
    );
    for how in [DumpMethod::Plain, DumpMethod::Custom, DumpMethod::All] {
        let outcome = check_restore(&source, &target(name).start(), "ids", how);
        assert_caught(outcome, "function snowflake_timestamp(bigint, unknown) does not exist");
    }
}

#[test]
fn without_preload_the_dump_is_restored_and_only_new_ids_are_refused() {
    let name = "restore_no_preload";
    let source = shop(name, "ids");
    let target = target(name).unset("shared_preload_libraries").unset("snowflake_pg.worker_id").start();
    restore(&target, &dump(&source, DumpMethod::Plain).unwrap(), DumpMethod::Plain).unwrap();
    let mut session = session(&target);
    let rows = "SELECT o::text FROM orders AS o ORDER BY id";
    assert_eq!(session.all::<String>(rows), self::session(&source).all::<String>(rows));
    assert_eq!(script(&source), script(&target));
    for sql in ["INSERT INTO orders (n) VALUES (1001)", "INSERT INTO events (n) VALUES (1001)", "TABLE recent"] {
        let [code, message, detail, hint] = session.error(sql);
        assert_eq!([code, message], ["55000", "library \"snowflake_pg\" is not preloaded"], "{sql}");
        assert_eq!(detail, "", "{sql}");
        assert_eq!(hint, "Add snowflake_pg to \"shared_preload_libraries\" in postgresql.conf and restart the server.");
    }
    // A row that is inserted with its ID does not use the generator.
    session.run("INSERT INTO orders (id, n) VALUES (ids.snowflake_from_text('1ASD13XH1F800'), 1001)");
    let at: String = session.one("SELECT created_at::text FROM orders WHERE id = 1541815603606036480");
    assert_eq!(at, "2022-06-28 16:07:40.105+00");
}

/// A dump of objects that read the settings, each with another one that names the layout.
fn objects_that_read_settings(name: &str) -> (Cluster, PathBuf) {
    let server = Cluster::builder(&format!("{name}_from")).start();
    server.connect().run("CREATE DATABASE shop");
    session(&server).run(
        "CREATE EXTENSION snowflake_pg;
         CREATE TABLE settings (id bigint PRIMARY KEY, CHECK (snowflake_between(id, '2020-01-01Z', '2070-01-01Z')));
         CREATE TABLE layout (id bigint PRIMARY KEY, CHECK (id >= snowflake_min_id('2020-01-01Z', '41:10:12')));
         INSERT INTO settings SELECT snowflake_nextval_batch(1000);
         INSERT INTO layout TABLE settings;
         CREATE MATERIALIZED VIEW settings_times AS SELECT id, snowflake_timestamp(id) AS at FROM layout;
         CREATE MATERIALIZED VIEW layout_times AS SELECT id, snowflake_timestamp(id, '41:10:12') AS at FROM layout",
    );
    let file = dump(&server, DumpMethod::Custom).expect("a dump");
    (server, file)
}

/// The rows of an object on a server, or the SQLSTATE if they cannot be read.
fn restored(server: &Cluster, object: &str) -> Result<Vec<String>, String> {
    let mut session = session(server);
    match session.code(&format!("TABLE {object}")) {
        Some(code) => Err(code),
        None => Ok(session.all(&format!("SELECT o::text FROM {object} AS o ORDER BY id"))),
    }
}

#[test]
fn without_preload_what_reads_the_settings_is_lost_and_what_names_a_layout_is_not() {
    let name = "restore_settings";
    let (source, file) = objects_that_read_settings(name);
    let objects = ["settings", "settings_times", "layout", "layout_times"];
    let before = objects.map(|object| restored(&source, object));
    assert!(before.iter().all(|rows| rows.as_ref().is_ok_and(|rows| rows.len() == 1000)));

    let without = target(name).unset("shared_preload_libraries").unset("snowflake_pg.worker_id").start();
    without.connect().run("CREATE DATABASE shop TEMPLATE template0");
    let said = run(without.program("pg_restore").arg("--dbname=shop").arg(&file));
    assert_caught(said.map(drop), "library \"snowflake_pg\" is not preloaded");
    let after = objects.map(|object| restored(&without, object));
    assert_eq!(after[..2], [Ok(Vec::new()), Err("55000".into())]);
    assert!(after[2..] == before[2..], "what names a layout is lost as well");

    // With the library, everything is restored.
    drop(without);
    let with = target(name).start();
    restore(&with, &file, DumpMethod::Custom).unwrap();
    assert!(objects.map(|object| restored(&with, object)) == before);
}

/// How many times in a view differ after a dump was restored on a server with this epoch.
fn other_times(source: &Cluster, file: &PathBuf, view: &str, name: &str, epoch: &str) -> usize {
    let target = target(name).set("snowflake_pg.epoch", epoch).start();
    restore(&target, file, DumpMethod::Custom).expect("no error");
    let [before, after] = [source, &target].map(|server| restored(server, view).expect("rows"));
    assert_eq!(before.len(), after.len());
    before.iter().zip(&after).filter(|(before, after)| before != after).count()
}

#[test]
fn with_another_epoch_the_dump_is_restored_without_an_error_and_means_other_times() {
    let name = "restore_epoch";
    let (source, file) = objects_that_read_settings(name);
    let other_times = |view, epoch| other_times(&source, &file, view, name, epoch);
    assert_eq!(other_times("settings_times", "2015-01-01T00:00:00Z"), 1000);
    assert_eq!(other_times("layout_times", "2015-01-01T00:00:00Z"), 0);
    assert_eq!(other_times("settings_times", "2010-11-04T01:42:54.657Z"), 0);
}
