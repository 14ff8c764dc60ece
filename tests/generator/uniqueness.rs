//! No duplicates: not in two sessions, two tables, two databases or two workers of one parallel query.

use std::thread;

use cluster::{Answer, Builder, Cluster, assert_caught, check_increasing, check_unique, copy_ids, ensure, rounds};

const SESSIONS: usize = 64;
const DATABASES: [&str; 2] = ["first", "second"];
const TABLES: [&str; 2] = ["orders", "invoices"];

/// Sessions fill two tables in each of two databases. At the same time, parallel queries draw IDs in their workers. All IDs that
/// any client received go into one history.
fn check_sessions(builder: Builder, sessions: usize, ids_per_session: usize, rounds: usize) -> Result<(), String> {
    let server = builder.set("max_parallel_workers", "8").set("max_worker_processes", "16").start();
    for database in DATABASES {
        server.connect().run(&format!("CREATE DATABASE {database}"));
        let mut client = server.connect_to(database);
        client.run("CREATE EXTENSION snowflake_pg; CREATE TABLE seeds AS SELECT FROM generate_series(1, 50000)");
        for table in TABLES {
            // No primary key, because a duplicate must reach the history.
            let sql = format!("CREATE TABLE {table} (id bigint DEFAULT snowflake_nextval(), n int)");
            client.run(&sql);
        }
    }
    let inserting: Vec<_> = (0..sessions)
        .map(|n| {
            let mut client = server.connect_to(DATABASES[n % 2]);
            let table = TABLES[n / 2 % 2];
            let rows = ids_per_session / rounds;
            thread::spawn(move || {
                let insert =
                    format!("INSERT INTO {table} (n) SELECT g FROM generate_series(1, {rows}) AS g RETURNING id");
                let ids: Vec<i64> = (0..rounds).flat_map(|_| copy_ids(&mut client, &insert)).collect();
                let outcome = check_increasing(&ids);
                (ids, outcome)
            })
        })
        .collect();
    let parallel: Vec<_> = DATABASES
        .map(|database| {
            let mut client = server.connect_to(database);
            thread::spawn(move || {
                client.prefer_parallel(4);
                client.run("ALTER TABLE seeds SET (parallel_workers = 4)");
                let query = "SELECT snowflake_nextval() FROM seeds";
                let plan = client.plan(&format!("(ANALYZE, VERBOSE) {query}"));
                let ids: Vec<i64> = (0..rounds).flat_map(|_| copy_ids(&mut client, query)).collect();
                (ids, plan)
            })
        })
        .into();

    let mut history = Vec::new();
    for session in inserting {
        let (ids, outcome) = session.join().expect("a session that lasts");
        outcome?;
        history.extend(ids);
    }
    for query in parallel {
        let (ids, plan) = query.join().expect("a session that lasts");
        ensure!(plan.contains("Workers Launched: 4"), "no parallel plan:\n{plan}");
        let below_gather = plan.split("Parallel Seq Scan").nth(1).unwrap_or_default();
        ensure!(below_gather.contains("snowflake_nextval()"), "the IDs are not drawn in the workers:\n{plan}");
        history.extend(ids);
    }
    let expected = sessions * ids_per_session + 2 * rounds * 50_000;
    ensure!(history.len() == expected, "{} IDs, not {expected}", history.len());
    check_unique(&mut history)
}

#[test]
fn no_id_comes_twice_in_sessions_tables_databases_and_parallel_workers() {
    // 64 x 75,000 inserted rows and 2 x 5 x 50,000 from parallel workers, or a quarter of that.
    let rows = rounds(75_000, 20_000) as usize;
    check_sessions(Cluster::builder("uniqueness"), SESSIONS, rows, rounds(5, 2) as usize).unwrap();
}

#[test]
fn a_state_per_backend_is_caught() {
    let server = Cluster::builder("uniqueness_fault").fault("StatePerBackend");
    assert_caught(check_sessions(server, SESSIONS, 5_000, 5), "came twice");
}

#[test]
fn a_state_per_parallel_worker_is_caught() {
    // Only the parallel queries, without other sessions to repeat their IDs.
    let server = Cluster::builder("parallel_fault").fault("StatePerBackend");
    assert_caught(check_sessions(server, 0, 0, 2), "came twice");
}
