//! Logical replication between servers that both insert into a table. The IDs that the servers issue at the same time differ only
//! in the worker ID.

use std::thread;

use cluster::{Answer, Builder, assert_caught, both_ways, ensure, key_conflict, origins_setting, within};

use crate::worker_ids::page::{PATIENCE, PageHost, section};

/// Lets a server issue only a few IDs a second, up to ten seconds ahead of the clock. Therefore, two servers that begin within
/// seconds of each other issue IDs for the same seconds.
fn like(builder: Builder, worker: u32) -> Builder {
    builder
        .set("shared_preload_libraries", "snowflake_pg")
        .set("snowflake_pg.worker_id", &worker.to_string())
        .set("snowflake_pg.layout", "31:22:10@1s")
        .set("snowflake_pg.max_ahead", "10s")
        .set("wal_retrieve_retry_interval", "100ms")
}

/// The number of rows that exist at the beginning, and the number of rows that each server inserts afterwards. Each server needs
/// four seconds' worth of IDs for its rows.
const BEFORE: usize = 100;
const ROWS: usize = 4 * 1024;

/// The publisher and the subscriber.
struct Servers {
    db1: PageHost,
    db2: PageHost,
}

impl Servers {
    /// Starts both servers with the table and the subscription, and waits until the subscription has copied the first rows.
    fn one_way(test: &str, workers: [u32; 2], subscriber: impl FnOnce(Builder) -> Builder) -> Result<Servers, String> {
        let mut recipe = section("Logical replication");
        let mut db1 = PageHost::new(test, "db1", |builder| like(builder, workers[0]));
        let mut db2 = PageHost::new(test, "db2", |builder| subscriber(like(builder, workers[1])));
        db1.configure(&recipe.block("conf db1"));
        db1.server.start();
        db2.server.start();
        let table = recipe.block("sql both");
        db1.psql(&table)?;
        db2.psql(&table)?;
        db1.insert(BEFORE)?;
        db1.psql(&recipe.block("sql db1"))?;
        db2.psql(&recipe.block("sql db2"))?;
        let servers = Servers { db1, db2 };
        servers.wait(&servers.db2, BEFORE)?;
        Ok(servers)
    }

    /// Adds replication in the other direction.
    fn both_ways(&self) -> Result<(), String> {
        let mut recipe = section("In both directions");
        self.db2.psql(&recipe.block("sql db2"))?;
        self.db1.psql(&recipe.block("sql db1"))?;
        assert!(recipe.is_empty());
        Ok(())
    }

    /// Lets both servers insert rows at the same time.
    fn insert(&self) -> Result<(), String> {
        thread::scope(|scope| {
            let inserting = [&self.db1, &self.db2]
                .map(|machine| scope.spawn(|| (0..32).try_for_each(|_| machine.insert(ROWS / 32).map(drop))));
            inserting.into_iter().try_for_each(|inserting| inserting.join().expect("a thread that ends"))
        })
    }

    /// Waits until a server has this many rows. Returns an error if the server's subscription reports one.
    fn wait(&self, machine: &PageHost, rows: usize) -> Result<(), String> {
        let mut session = machine.server.connect();
        let errors =
            "SELECT coalesce(sum(apply_error_count + sync_error_count), 0)::bigint FROM pg_stat_subscription_stats";
        let mut failed = false;
        let arrived = within(PATIENCE, || {
            failed = session.one::<i64>(errors) > 0;
            failed || session.one::<i64>("SELECT count(*) FROM orders") == rows as i64
        });
        let log = machine.server.log();
        let complaint = log.lines().find(|line| line.contains("ERROR")).unwrap_or_default();
        ensure!(!failed, "the subscription ends in an error: {complaint}");
        ensure!(arrived, "the rows do not arrive: {complaint}");
        Ok(())
    }
}

/// Checks that each row on a server was inserted by the server whose worker ID is in the row's ID, and that no row is missing.
fn check_rows(machine: &PageHost, sources: &[(&str, i32, usize)]) -> Result<(), String> {
    let rows = machine.server.connect().query(
        "SELECT substring(customer FROM 'db[12]$'), worker_id, count(*) FROM orders, snowflake_decode(id) GROUP BY 1, 2 ORDER BY 1, 2",
        &[],
    );
    let rows = rows.map_err(|error| cluster::sqlstate(&error).1)?;
    let found: Vec<(String, i32, i64)> = rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let expected: Vec<_> =
        sources.iter().map(|(host, worker, rows)| (host.to_string(), *worker, *rows as i64)).collect();
    ensure!(found == expected, "rows by host and worker ID: {found:?}");
    Ok(())
}

/// Checks that the subscriber has its own rows and all rows of the publisher.
fn check_one_way(test: &str, states: &str) -> Result<(), String> {
    let servers = Servers::one_way(test, [1, 2], |builder| builder.set(origins_setting(), states))?;
    servers.insert()?;
    servers.wait(&servers.db2, BEFORE + 2 * ROWS)?;
    check_rows(&servers.db2, &[("db1", 1, BEFORE + ROWS), ("db2", 2, ROWS)])?;
    check_rows(&servers.db1, &[("db1", 1, BEFORE + ROWS)])?;

    let mut session = servers.db2.server.connect();
    let query = "SELECT count(DISTINCT (id >> 32, id & 1023)) < count(*) FROM orders";
    ensure!(session.one::<bool>(query), "the servers issued at different times, which shows nothing");
    let mut recipe = section("Logical replication");
    for info in ["conf db1", "sql both", "sql db1", "sql db2"] {
        recipe.block(info);
    }
    let shown = servers.db2.psql(&recipe.block("sql db2"))?;
    assert!(recipe.is_empty());
    ensure!(shown == format!("1|{}\n2|{ROWS}\n", BEFORE + ROWS), "the page's query shows {shown}");
    check_origins(&servers)
}

/// Checks that the mark's origin exists beside the subscription's origin, and that it still exists after the subscription is
/// dropped.
fn check_origins(servers: &Servers) -> Result<(), String> {
    let mut session = servers.db2.server.connect();
    let names = "SELECT roname FROM pg_replication_origin ORDER BY roname";
    let number: u32 = session.one("SELECT oid FROM pg_subscription");
    let found: Vec<String> = session.all(names);
    ensure!(found == [format!("pg_{number}"), "snowflake_pg".into()], "origins {found:?}");
    session.batch_execute("DROP SUBSCRIPTION orders_from_db1").map_err(|error| cluster::sqlstate(&error).1)?;
    ensure!(session.all::<String>(names) == ["snowflake_pg"], "the subscription's origin is left, or the mark is gone");
    drop(session);
    // The server inserts rows for longer than a window, so that the mark has to be raised.
    let mut ids = servers.db2.insert(12 * 1024)?;
    cluster::check_unique(&mut ids)
}

#[test]
fn both_servers_insert_and_the_rows_of_one_arrive_at_the_other() {
    // The mark, the subscription and the table that is copied each need one replication state.
    check_one_way("one_way", "3").unwrap();
}

#[test]
fn with_one_worker_id_for_both_servers_replication_ends() {
    let servers = Servers::one_way("one_worker_ends", [1, 1], |builder| builder).unwrap();
    // The subscriber draws IDs until they belong to a later second than the rows that were copied.
    servers.db2.psql("SELECT count(*) FROM snowflake_nextval_batch(1024)").unwrap();
    servers.db2.insert(ROWS).unwrap();
    servers.db1.insert(ROWS).unwrap();
    let outcome = servers.wait(&servers.db2, BEFORE + 2 * ROWS);
    assert!(outcome.as_ref().is_err_and(|found| found.contains(key_conflict())), "{outcome:?}");
    assert_caught(outcome, "the subscription ends in an error: ");
}

#[test]
fn a_replication_state_too_few_is_caught() {
    assert_caught(check_one_way("few_states", "2"), "could not find free replication state");
}

/// Checks that both servers have all rows.
fn check_both_ways(test: &str, workers: [u32; 2]) -> Result<(), String> {
    let servers = Servers::one_way(test, workers, |builder| builder.set("wal_level", "logical"))?;
    servers.both_ways()?;
    servers.insert()?;
    for machine in [&servers.db1, &servers.db2] {
        servers.wait(machine, BEFORE + 2 * ROWS)?;
        check_rows(machine, &[("db1", 1, BEFORE + ROWS), ("db2", 2, ROWS)])?;
    }
    // A row that is inserted later is replicated once in each direction, and does not return to its origin.
    servers.db1.insert(1)?;
    servers.wait(&servers.db2, BEFORE + 2 * ROWS + 1)?;
    servers.db2.insert(1)?;
    servers.wait(&servers.db1, BEFORE + 2 * ROWS + 2)?;
    servers.wait(&servers.db2, BEFORE + 2 * ROWS + 2)
}

#[test]
fn from_16_on_rows_go_both_ways() {
    if !both_ways() {
        let servers = Servers::one_way("no_way_back", [1, 2], |builder| builder).unwrap();
        return assert_caught(servers.both_ways(), "unrecognized subscription parameter: \"origin\"");
    }
    check_both_ways("both_ways", [1, 2]).unwrap();
}

#[test]
fn from_16_on_one_worker_id_for_both_ways_is_caught() {
    // The control of this section: with different worker IDs, the rows of both servers arrive.
    if !both_ways() {
        return;
    }
    // Either an INSERT conflicts with a row that was replicated, or a replicated row conflicts with a row that was inserted.
    let outcome = check_both_ways("both_one_worker", [1, 1]);
    let caught = |found: &String| found.contains("duplicate key value") || found.contains(key_conflict());
    assert!(outcome.as_ref().is_err_and(caught), "{outcome:?}");
}

/// Checks that guards let all rows of the publisher through.
fn check_guard(test: &str, workers: [u32; 2]) -> Result<(), String> {
    let servers = Servers::one_way(test, workers, |builder| builder)?;
    let mut recipe = section("Guard the tables");
    let guard = recipe.block("sql both");
    servers.db1.psql(&guard)?;
    servers.db2.psql(&guard)?;
    // The statement can be run again.
    servers.db2.psql(&guard)?;
    servers.db1.insert(ROWS)?;
    servers.wait(&servers.db2, BEFORE + ROWS)?;
    let shown = servers.db2.psql(&recipe.block("sql db2"))?;
    ensure!(recipe.block("text db2").contains(" 0 | "), "the page shows another output than {shown}");
    assert!(recipe.is_empty());
    ensure!(shown == "0|\n", "the page's query shows {shown}");
    Ok(())
}

#[test]
fn guards_let_the_rows_of_a_server_with_another_worker_id_through() {
    check_guard("guards", [1, 2]).unwrap();
}

#[test]
fn a_guard_stops_the_rows_of_a_server_with_one_worker_id_caught() {
    assert_caught(check_guard("guards_one_worker", [1, 1]), "replicated row has the worker ID of this server");
}
