//! The ways of docs/portable.md from a server without the library to one with it, and back. No table is rewritten.

use cluster::{Answer, Client, Cluster, Host, Recipe, Scratch, ensure, typed};

use crate::server::{install, plain, script};

const PAGE: &str = "docs/portable.md";

fn shell(block: &str, files: &Scratch, managed: &Cluster, own: &Cluster) {
    let mut shell = Host::get().shell(&format!("set -e\n{block}"));
    let connection = |server: &Cluster| format!("host={} dbname=shop user=postgres", server.socket().display());
    shell.current_dir(&files.0).env("MANAGED", connection(managed)).env("OWN", connection(own));
    typed(shell, "").unwrap();
}

fn psql(server: &Cluster, block: &str) -> Result<String, String> {
    let mut psql = server.psql();
    psql.args(["-d", "shop", "-v", "ON_ERROR_STOP=1"]);
    typed(psql, block)
}

/// The rows, and where the table stores them.
fn rows(session: &mut Client) -> Vec<i64> {
    session.all("SELECT id FROM orders ORDER BY id")
}

fn check_next(session: &mut Client, worker: i64, last: i64) -> Result<(), String> {
    let id: i64 = session.one("INSERT INTO orders DEFAULT VALUES RETURNING id");
    ensure!(id > last && (id >> 12) & 1023 == worker, "{id} after {last}");
    let line: i64 = session.one("INSERT INTO lines (order_id) VALUES (1) RETURNING id");
    ensure!(line > last && (line >> 12) & 1023 == worker, "{line} after {last}");
    Ok(())
}

#[test]
fn a_database_moves_to_the_library_and_back_without_a_rewrite() {
    let managed = plain("managed");
    let mut own = Cluster::builder("portable_own").set("snowflake_pg.worker_id", "9").create_anew();
    own.start();
    for server in [&managed, &own] {
        server.connect().batch_execute("CREATE DATABASE shop").expect("a database");
    }
    let mut session = managed.connect_to("shop");
    session.batch_execute("CREATE SCHEMA snowflake; SET search_path = snowflake, public").expect("a schema");
    install(&mut session, &script("to_library"), &[]).expect("the script runs");
    // IDs an hour ahead of the clock, which the library has to respect.
    session
        .batch_execute(
            "SELECT snowflake_configure(7);
             SELECT snowflake_set_mark(snowflake_max_id(now() + interval '1 hour'));
             CREATE TABLE public.orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
             CREATE TABLE public.lines (id bigint DEFAULT snowflake_nextval(), order_id bigint) PARTITION BY RANGE (order_id);
             CREATE TABLE public.lines_1 PARTITION OF public.lines FOR VALUES FROM (0) TO (1000);
             INSERT INTO orders SELECT FROM generate_series(1, 1000)",
        )
        .expect("tables");
    let before = rows(&mut session);
    let last = before[before.len() - 1];
    drop(session);

    let files = Scratch::new("portable_library.files");
    let mut recipe = Recipe::of(PAGE, "To the library");
    shell(&recipe.block("sh library"), &files, &managed, &own);
    let mut session = own.connect_to("shop");
    let stored = "SELECT pg_relation_filenode('orders')::bigint";
    let filenode: i64 = session.one(stored);
    assert_eq!(session.refusal("INSERT INTO orders DEFAULT VALUES").0, "55000");
    psql(&own, &recipe.block("sql library")).unwrap();
    assert!(recipe.is_empty());
    let mut session = own.connect_to("shop");
    assert_eq!((rows(&mut session), session.one::<i64>(stored)), (before, filenode));
    check_next(&mut session, 9, last).unwrap();
    let left = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake_portable%'";
    assert_eq!(session.one::<i64>(left), 0);

    // And back, into an empty database of a server without the library.
    let before = rows(&mut session);
    let last: i64 = session.one("SELECT snowflake_nextval()");
    drop(session);
    for statement in ["DROP DATABASE shop WITH (FORCE)", "CREATE DATABASE shop"] {
        managed.connect().batch_execute(statement).expect("a database");
    }
    Host::get().write(&files.0.join("snowflake_portable.sql"), &script("from_library"));
    let mut recipe = Recipe::of(PAGE, "Back from the library");
    shell(&recipe.block("sh back"), &files, &managed, &own);
    assert!(recipe.is_empty());
    let mut session = managed.connect_to("shop");
    let filenode: i64 = session.one(stored);
    assert_eq!(rows(&mut session), before);
    check_next(&mut session, 7, last).unwrap();
    assert_eq!(session.one::<i64>(stored), filenode);
}
