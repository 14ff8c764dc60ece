//! A server is moved to a later version of PostgreSQL by the exact steps of docs/upgrading.md. Tables and defaults are intact, and
//! new IDs are above all existing ones, even if the clock is behind.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use cluster::{Answer, Client, Host, assert_caught, blocks, command, ensure, faketime, major, not_tested, page, watch};
use postgres::{Config, NoTls};

/// The version from which the servers are upgraded.
const OLD: &str = "15";

/// The two servers of the runbook. A running one is stopped when the test ends.
struct Move {
    /// The directory of the old server's programs.
    old: PathBuf,
    directory: PathBuf,
    socket: PathBuf,
    /// The clock of the new server's programs, in seconds from the true time.
    clock: &'static str,
}

/// Tables with everything that an upgrade could break.
const SHOP: &str = "
    CREATE EXTENSION snowflake_pg VERSION '0.1.0';
    CREATE TABLE orders (
        id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
        n integer NOT NULL,
        created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, '42:9:12')) STORED,
        link snowflake_text GENERATED ALWAYS AS (snowflake_to_text(id)) STORED UNIQUE);
    CREATE TABLE order_lines (
        id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
        n integer NOT NULL,
        order_id bigint NOT NULL REFERENCES orders) PARTITION BY RANGE (id);
    SELECT snowflake_create_partitions('order_lines', '1 day', 3, now() - interval '1 day');
    CREATE INDEX ON order_lines (snowflake_timestamp(id, '42:9:12'));
    CREATE VIEW recent AS SELECT * FROM orders WHERE snowflake_between(id, now() - interval '1 day', 'infinity');
    INSERT INTO orders (n) SELECT generate_series(1, 1000);
    INSERT INTO order_lines (n, order_id) SELECT n, id FROM orders";

impl Move {
    /// Starts the old server. Its layout is set in this file of its data directory.
    fn begin(name: &str, clock: &'static str, layout_in: &str) -> Move {
        let host = Host::get();
        let old = host.installation_of(OLD).bin;
        let moving = Move { old, directory: host.fresh_dir(name), socket: host.socket_dir(name), clock };
        ["old", "new"].iter().for_each(|data| watch(&moving.directory.join(data)));
        // From 18 on, `initdb` enables checksums by default, and both clusters must have the same setting.
        let initdb = format!(
            "\"$OLD/initdb\" --data-checksums -D \"$OLD_DATA\"
             printf '%s\\n' \"shared_preload_libraries = 'snowflake_pg'\" 'snowflake_pg.worker_id = 7' \\
                 >> \"$OLD_DATA/postgresql.conf\"
             echo \"snowflake_pg.layout = '42:9:12'\" >> \"$OLD_DATA/{layout_in}\""
        );
        moving.run(&initdb).expect("a cluster");
        moving.listen("old");
        moving.run("\"$OLD/pg_ctl\" start -D \"$OLD_DATA\" -l \"$OLD_DATA/server.log\" -w").expect("the old server");
        moving.session("postgres").run("CREATE DATABASE shop");
        moving.session("shop").run(SHOP);
        moving
    }

    /// Runs a script in a shell as the servers' user, with the paths of the runbook.
    fn run(&self, script: &str) -> Result<(), String> {
        let host = Host::get();
        let mut command = host.command(Path::new("sh"));
        command.current_dir(&self.directory).args(["-e", "-c", script]);
        command.env("OLD", &self.old).env("NEW", &host.installation().bin);
        command.env("OLD_DATA", self.directory.join("old")).env("NEW_DATA", self.directory.join("new"));
        command.env("PGHOST", &self.socket).env("PGSOCKETDIR", &self.socket).env("PGPORT", "5432");
        command.env("PGUSER", "postgres").env("PGTZ", "UTC").env("LC_ALL", "C").env_remove("RUST_BACKTRACE");
        if script.contains("\"$NEW/pg_ctl\"") {
            command.envs(faketime()).env("FAKETIME", self.clock).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        // The output goes into a file, because a server that the command starts would keep a pipe open.
        let path = self.directory.join("printed");
        let printed = File::create(&path).expect("the directory can be written");
        command.stdout(printed.try_clone().expect("a file handle")).stderr(printed);
        let status = command.status().expect("sh is installed");
        ensure!(status.success(), "{script}:\n{}", fs::read_to_string(&path).unwrap_or_default());
        Ok(())
    }

    /// Limits the connections of a server to this test.
    fn listen(&self, data: &str) {
        let conf = self.directory.join(data).join("postgresql.conf");
        let known = fs::read_to_string(&conf).expect("initdb has made it");
        let socket = self.socket.display();
        Host::get().write(&conf, &format!("{known}\nlisten_addresses = ''\nunix_socket_directories = '{socket}'\n"));
    }

    fn session(&self, database: &str) -> Client {
        let mut config = Config::new();
        config.host_path(&self.socket).port(5432).user("postgres").dbname(database);
        config.connect(NoTls).expect("a server of the move runs")
    }
}

impl Drop for Move {
    fn drop(&mut self) {
        for (program, data) in [("$OLD", "old"), ("$NEW", "new")] {
            if self.directory.join(data).join("postmaster.pid").exists() {
                let stop = format!("\"{program}/pg_ctl\" stop -D {data} -m immediate");
                // No assertion, because this also runs while a failed test unwinds.
                if let Err(said) = self.run(&stop) {
                    eprintln!("{said}");
                }
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
        let _ = fs::remove_dir_all(&self.socket);
    }
}

/// The rows, and the entries of the tables in the catalog.
fn contents(session: &mut Client) -> Vec<String> {
    session.run("SET timezone = 'UTC'");
    let queries = [
        "SELECT o::text FROM orders AS o ORDER BY id",
        "SELECT tableoid::regclass || l::text FROM order_lines AS l ORDER BY id",
        "SELECT adrelid::regclass || pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY 1",
        "SELECT indexrelid::regclass || pg_get_indexdef(indexrelid) || indisvalid FROM pg_index
         WHERE indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace) ORDER BY 1",
        "SELECT r::text FROM recent AS r ORDER BY id",
    ];
    queries.iter().flat_map(|query| session.all::<String>(query)).collect()
}

/// Follows the steps of the runbook, with the clock of the new server this many seconds from the true time.
fn check_move(name: &str, clock: &'static str, layout_in: &str, steps: &[String]) -> Result<(), String> {
    let moving = Move::begin(name, clock, layout_in);
    let mut session = moving.session("shop");
    let before = contents(&mut session);
    ensure!(before.len() > 2_000, "only {} rows", before.len());
    // Releases of PostgreSQL 15 from November 2026 on note this for each column, and only releases from that date on read it.
    session.run("UPDATE pg_attribute SET attoptions = NULL WHERE attoptions::text LIKE '{pg_attver=%'");
    // IDs that a client received and that are in no table.
    let highest: i64 = session.one("SELECT max(id) FROM snowflake_nextval_batch(100000) AS id");
    drop(session);
    for step in steps {
        moving.run(step)?;
        if step.contains("initdb") {
            moving.listen("new");
        }
    }
    let mut session = moving.session("shop");
    let version: i32 = session.one("SELECT current_setting('server_version_num')::integer / 10000");
    ensure!(version.to_string() == major(), "version {version}");
    let after = contents(&mut session);
    let other = before.iter().zip(&after).find(|(before, after)| before != after);
    ensure!(before.len() == after.len() && other.is_none(), "{} rows, not {}: {other:?}", after.len(), before.len());
    let insert = "INSERT INTO orders (n) VALUES (1001) RETURNING id";
    let ids = [session.one::<i64>(insert), session.one::<i64>(insert)];
    ensure!(highest < ids[0] && ids[0] < ids[1], "IDs do not go on: {ids:?} after {highest}");
    let lines = "INSERT INTO order_lines (n, order_id) SELECT n, id FROM orders WHERE n = 1001 RETURNING tableoid::regclass::text";
    ensure!(session.all::<String>(lines).len() == 2, "order lines");
    let worker: i32 = session.one(&format!("SELECT worker_id FROM snowflake_decode({})", ids[0]));
    ensure!(worker == 7, "worker ID {worker}");
    let extension: String = session.one("SELECT extversion FROM pg_extension WHERE extname = 'snowflake_pg'");
    ensure!(extension == env!("CARGO_PKG_VERSION"), "the extension is of version {extension}");
    ensure!(session.one::<i64>("SELECT count(*) FROM snowflake_check('orders')") == 0, "the check complains");
    Ok(())
}

/// The steps of the runbook. Returns `None`, and prints why, if there is no older version to upgrade from, or if a program that
/// `pg_upgrade` needs is of another version.
fn runbook() -> Option<Vec<String>> {
    if major() == OLD {
        not_tested(&format!("{OLD} is the oldest version"));
        return None;
    }
    let host = Host::get();
    for (bin, program, major) in
        [(&host.installation_of(OLD).bin, "postgres", OLD), (&host.installation().bin, "psql", &major())]
    {
        let version = command(bin.join(program)).arg("--version").output();
        let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        if !version.contains(&format!(") {major}.")) {
            let why = format!("there is no {program} of PostgreSQL {major}, but {version:?}");
            assert!(program == "postgres" || major == "17", "{why}");
            not_tested(&why);
            return None;
        }
    }
    let steps = blocks(&page("docs/upgrading.md"), "sh upgrade");
    assert!(steps.len() >= 5, "the runbook has {} steps", steps.len());
    Some(steps)
}

#[test]
fn after_pg_upgrade_all_is_there_and_ids_go_on_above_whatever_the_clock_says() {
    let Some(steps) = runbook() else { return };
    check_move("pg_upgrade", "+0", "postgresql.conf", &steps).unwrap();
    check_move("pg_upgrade_behind", "-3600", "postgresql.conf", &steps).unwrap();
}

#[test]
fn without_step_5_ids_begin_at_the_clock() {
    let Some(mut steps) = runbook() else { return };
    let set = |line: &&str| line.contains("snowflake_set_mark");
    let forgetful: Vec<String> = steps
        .drain(..)
        .map(|step| step.lines().filter(|line| !set(line)).map(|line| format!("{line}\n")).collect())
        .collect();
    assert_caught(check_move("pg_upgrade_forgets", "-3600", "postgresql.conf", &forgetful), "IDs do not go on");
}

/// The runbook with the extension in another schema, and `said` before each step. At the end, the extension is in `public` again.
fn elsewhere(steps: &[String], said: &str) -> Vec<String> {
    let to = |psql: &str, schema: &str| {
        format!(
            "\"{psql}/psql\" -d shop -c 'CREATE SCHEMA IF NOT EXISTS {schema}' -c 'ALTER EXTENSION snowflake_pg SET SCHEMA {schema}'"
        )
    };
    let said = steps.iter().map(|step| format!("{said}\n{step}"));
    [to("$OLD", "ids")].into_iter().chain(said).chain([to("$NEW", "public")]).collect()
}

#[test]
fn a_mark_that_is_not_found_stops_the_move_before_the_server_is_stopped() {
    let Some(steps) = runbook() else { return };
    let path = "export PGOPTIONS='-c search_path=ids'";
    check_move("pg_upgrade_schema", "-3600", "postgresql.conf", &elsewhere(&steps, path)).unwrap();
    // In an interactive shell, each line is run even if the one before has failed.
    let typed = |steps| check_move("pg_upgrade_no_schema", "+0", "postgresql.conf", &elsewhere(steps, "set +e"));
    assert_caught(typed(&steps), "relation \"snowflake_status\" does not exist");
    let unchained: Vec<String> = steps.iter().map(|step| step.replace(" &&\n", "\n")).collect();
    assert_caught(typed(&unchained), "function snowflake_set_mark() does not exist");
}

#[test]
fn a_layout_that_did_not_come_along_stops_the_move() {
    let Some(steps) = runbook() else { return };
    // ALTER SYSTEM sets it in this file.
    let outcome = check_move("pg_upgrade_layout", "+0", "postgresql.auto.conf", &steps);
    assert_caught(outcome, "< snowflake_pg.layout|42:9:12\n---\n> snowflake_pg.layout|41:10:12");
}
