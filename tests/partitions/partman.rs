//! pg_partman partitions a table by its snowflakes, as docs/partitions.md says. Its background worker runs.

use cluster::{Answer, Builder, Client, Cluster, Host, SOON, Stop, assert_caught, ensure, not_tested, within};

/// The statements of the page, in order.
fn page() -> Vec<String> {
    cluster::blocks(&cluster::page("docs/partitions.md"), "sql-partman")
}

/// A server with pg_partman and its background worker, which runs every second. Returns `None`, and prints why, on a PostgreSQL
/// that is not Debian's and has no pg_partman.
fn server(name: &str) -> Option<Builder> {
    let builder = Cluster::builder(name)
        .set("shared_preload_libraries", "snowflake_pg, pg_partman_bgw")
        .set("pg_partman_bgw.interval", "1")
        .set("pg_partman_bgw.dbname", "postgres")
        .set("pg_partman_bgw.role", "postgres");
    let postgresql = Host::get().installation();
    let library = postgresql.libraries.join("pg_partman_bgw.so");
    if !postgresql.is_debians() && !library.exists() {
        not_tested(&format!("there is no {}", library.display()));
        return None;
    }
    Some(builder)
}

fn session(server: &Cluster) -> Client {
    let mut session = server.session();
    session.run("CREATE SCHEMA partman; CREATE EXTENSION pg_partman SCHEMA partman");
    session
}

/// The lower bounds of the partitions except the default one, in order.
const BEGINS: &str = "SELECT substring(pg_get_expr(relpartbound, oid) FROM 'FROM \\(''(\\d+)''')::bigint AS begin
    FROM pg_inherits JOIN pg_class ON oid = inhrelid
    WHERE inhparent = 'measurements'::regclass AND pg_get_expr(relpartbound, oid) <> 'DEFAULT' ORDER BY 1";

/// Logged when pg_partman's background worker stops for ten minutes, because the worker that it starts every second had exited
/// before it looked. This can happen on a busy machine. A restart of the server starts it again.
const GAVE_UP: &str = "Could not start dynamic pg_partman background process";

/// A day of IDs.
const DAY: i64 = 86_400_000 << 22;

/// `time_of_day` is the time at which the days begin.
fn check_partman(builder: Builder, statements: &[String], time_of_day: &str) -> Result<(), String> {
    let mut server = builder.start();
    let mut session = session(&server);
    for statement in statements {
        session.batch_execute(statement).map_err(|e| format!("{statement}: {e:?}"))?;
    }
    let begins: Vec<i64> = session.all(BEGINS);
    ensure!(begins.windows(2).all(|pair| pair[1] - pair[0] == DAY), "the days are not days: {begins:?}");
    ensure!(begins.len() == 5, "{} days, not today and four more", begins.len());
    let begin: String =
        session.one(&format!("SELECT (snowflake_timestamp({}) AT TIME ZONE 'UTC')::time::text", begins[0]));
    ensure!(begin == time_of_day, "days begin at {begin}, not at {time_of_day}");

    session.run("INSERT INTO measurements (value) SELECT n FROM generate_series(1, 1000) AS n");
    let strays = "SELECT count(*) FROM measurements_default";
    let stray: i64 = session.one(strays);
    ensure!(stray == 0, "{stray} of 1000 rows lie in the default partition");
    let partitions: i64 = session.one("SELECT count(DISTINCT tableoid) FROM measurements");
    ensure!(partitions <= 2, "rows of a second lie in {partitions} partitions");

    // Two days later the background worker creates two more partitions. After another two days, a call creates them.
    let later = "INSERT INTO measurements VALUES (snowflake_encode(now() + interval '2 days', 1, 0), 0)";
    session.run(later);
    let mut made = within(SOON, || session.all::<i64>(BEGINS).len() == 7);
    // On a busy machine, the background worker can give up after each start.
    for _ in 0..5 {
        if made || !server.log().contains(GAVE_UP) {
            break;
        }
        server.restart(Stop::Fast);
        session = server.session();
        made = within(SOON, || session.all::<i64>(BEGINS).len() == 7);
    }
    ensure!(made, "the background worker makes no partition:\n{}", server.log());
    session.run(&later.replace("2 days", "4 days"));
    session.run("SELECT partman.run_maintenance('public.measurements')");
    // If the background worker is running maintenance, the call leaves it to the worker.
    let made = within(SOON, || session.all::<i64>(BEGINS).len() == 9);
    ensure!(made, "maintenance makes no partition: {:?}", session.all::<i64>(BEGINS));
    let stray: i64 = session.one(strays);
    ensure!(stray == 0, "{stray} rows lie in the default partition after maintenance");

    // Each row is between the bounds of its time, and a query by time reads only its partition and the default one.
    let query = "SELECT count(*) FROM measurements
        WHERE snowflake_between(id, now() + interval '2 days' - interval '1 minute', now() + interval '2 days')";
    let found: i64 = session.one(query);
    ensure!(found == 1, "{found} rows of the time, not 1");
    let plan = session.plan(query);
    let removed: usize = plan
        .split("Subplans Removed: ")
        .nth(1)
        .and_then(|rest| rest.split('\n').next())
        .map_or(0, |n| n.parse().unwrap());
    // A minute touches two days at most.
    ensure!(removed >= 7, "{removed} of 10 partitions are left out:\n{plan}");
    Ok(())
}

#[test]
fn what_the_page_says_of_pg_partman_works() {
    let statements = page();
    assert!(statements.len() >= 2, "the page has {} blocks", statements.len());
    let Some(builder) = server("partman") else { return };
    check_partman(builder, &statements, "01:42:54.657").unwrap();
}

#[test]
fn an_epoch_at_midnight_makes_days_that_begin_at_midnight() {
    let Some(builder) = server("partman_midnight") else { return };
    check_partman(builder.set("snowflake_pg.epoch", "2020-01-01T00:00:00Z"), &page(), "00:00:00").unwrap();
}

#[test]
fn no_start_partition_is_caught() {
    let start = ",\n    p_start_partition := snowflake_nextval()::text";
    let statements: Vec<String> = page().iter().map(|statement| statement.replace(start, "")).collect();
    assert_ne!(statements, page());
    let Some(builder) = server("partman_no_start") else { return };
    assert_caught(check_partman(builder, &statements, "01:42:54.657"), "rows lie in the default partition");
}

#[test]
fn an_interval_of_milliseconds_is_caught() {
    let statements: Vec<String> = page().iter().map(|statement| statement.replace(" << 22", "")).collect();
    assert_ne!(statements, page());
    let Some(builder) = server("partman_interval") else { return };
    assert_caught(check_partman(builder, &statements, ""), "the days are not days");
}

#[test]
fn a_background_worker_that_does_not_run_is_caught() {
    // The background worker maintains only the tables of its database.
    let Some(builder) = server("partman_elsewhere") else { return };
    let builder = builder.set("pg_partman_bgw.dbname", "template1");
    assert_caught(check_partman(builder, &page(), "01:42:54.657"), "the background worker makes no partition");
}

#[test]
fn maintenance_follows_the_largest_id_and_not_the_clock() {
    let Some(builder) = server("partman_largest") else { return };
    // The worker uses another database, so that maintenance runs only when it is called.
    let server = builder.set("pg_partman_bgw.dbname", "template1").start();
    let mut session = session(&server);
    for statement in page() {
        session.run(&statement);
    }
    let keep_a_day = format!("UPDATE partman.part_config SET retention = '{DAY}', retention_keep_table = false");
    session.run(&keep_a_day);
    session.run("INSERT INTO measurements VALUES (DEFAULT)");
    let maintain = "SELECT partman.run_maintenance('public.measurements')";
    session.run(maintain);
    assert_eq!(session.one::<i64>("SELECT count(*) FROM measurements"), 1);
    // A row from the future causes today's partition to be dropped.
    session.run("INSERT INTO measurements VALUES (snowflake_encode(now() + interval '3 days', 1, 0))");
    session.run(maintain);
    assert_eq!(session.one::<i64>("SELECT count(*) FROM measurements WHERE id < snowflake_max_id(now())"), 0);
    // The next row comes after a pause that is longer than the time for which partitions exist.
    session.run("INSERT INTO measurements VALUES (snowflake_encode(now() + interval '9 days', 1, 0))");
    assert_eq!(session.one::<i64>("SELECT count FROM partman.check_default()"), 1);
}
