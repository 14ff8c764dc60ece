//! One server whose registry is in its own database, as docs/orders.md says.

use cluster::{Answer, Builder, Client, Cluster, Recipe, Stop, assert_caught, ensure, settings, typed};

use crate::servers::{check_ledger, create, draw};

const PAGE: &str = "docs/orders.md";

fn psql(server: &Cluster, block: &str) -> String {
    let mut psql = server.psql();
    psql.args(["-d", "shop"]);
    typed(psql, block).unwrap_or_else(|said| panic!("{said}\n{block}\n{}", server.log()))
}

#[test]
fn the_page_leads_from_an_empty_database_to_a_working_table() {
    let (mut recipe, mut steps) =
        (Recipe::of(PAGE, "Short numbers for orders"), Recipe::of(PAGE, "How long is a block?"));
    let conf = recipe.block("conf orders");
    let mut builder = Cluster::builder("seg_page").unset("snowflake_pg.worker_id");
    for (name, value) in settings(&conf) {
        builder = builder.set(name, value);
    }
    let mut server = builder.create();
    // The server of this test listens in a directory of its own.
    let string = format!("dbname=shop host={} user=postgres", server.socket().display());
    assert!(conf.contains("snowflake_pg.registry = 'dbname=shop'"), "{conf}");
    server.set("snowflake_pg.registry", &string);
    server.start();
    server.connect().run("CREATE DATABASE shop");
    let block = recipe.block("sql orders");
    assert_eq!(block.trim().lines().count(), 5, "the page promises five lines");
    psql(&server, &block);
    let printed = psql(&server, &recipe.block("sql rows"));
    assert_eq!(printed, recipe.block("text"));
    assert!(recipe.is_empty());
    let mut days = Recipe::of(PAGE, "Numbers that restart each day");
    let printed = psql(&server, &days.block("sql days"));
    assert_eq!(printed, days.block("text"));
    assert!(days.is_empty());
    let mut client = server.connect_to("shop");
    let mut roles = Recipe::of(PAGE, "Which roles can draw?");
    let insert = "SET ROLE shop_app; INSERT INTO orders (item) VALUES ('tea')";
    for (block, drawn) in [("sql roles", true), ("sql one", false)] {
        client.run("RESET ROLE");
        psql(&server, &roles.block(block));
        assert_eq!(client.code(insert), None, "{block}");
        assert_eq!(client.code("SELECT snowflake_segment_nextval('orders')").is_none(), drawn, "{block}");
    }
    client.run("RESET ROLE; CREATE ROLE stranger; GRANT SELECT, INSERT ON orders TO stranger");
    assert_eq!(client.code(&insert.replace("shop_app", "stranger")).as_deref(), Some("42501"));
    client.run("RESET ROLE");
    assert!(roles.is_empty());
    psql(&server, &steps.block("sql steps"));
    assert_eq!(client.one::<i64>("SELECT snowflake_segment_nextval('parcels')"), 20_260_001);
}

/// Starts a server whose registry is in its database `postgres`.
fn own_registry(builder: Builder) -> Cluster {
    let mut server = builder.unset("snowflake_pg.worker_id").create();
    let string = format!("host={} user=postgres dbname=postgres", server.socket().display());
    server.set("snowflake_pg.registry", &string);
    server.start();
    server.create_fleet("41:10:12");
    server
}

#[test]
fn a_server_can_be_its_own_registry() {
    let mut server = own_registry(Cluster::builder("seg_own"));
    create(&server, "orders", 10);
    let mut ledger = vec![draw(&mut server.session(), 100)];
    assert_eq!(ledger[0], (1..=100).collect::<Vec<_>>());
    for how in [Stop::Fast, Stop::Immediate] {
        server.restart(how);
        ledger.push(draw(&mut server.connect(), 100));
    }
    // COPY evaluates another function for each row, in batches.
    let mut session = server.connect();
    let create = "CREATE TABLE copied (id bigint PRIMARY KEY DEFAULT snowflake_segment_nextval('orders'), n int)";
    session.run(&format!("{create}; COPY copied (n) FROM PROGRAM 'seq 300'"));
    ledger.push(session.all("SELECT id FROM copied ORDER BY id"));
    assert_eq!(ledger.last().map(Vec::len), Some(300));
    check_ledger(&ledger).unwrap();
}

/// Creates a segment of which one block suffices, and a function like that of the segment which remains VOLATILE in a COPY.
const LOADED: &str = "
    SELECT snowflake_registry.create_segment('loaded', step => 1000000, max_step => 1000000);
    CREATE FUNCTION volatile_number() RETURNS bigint VOLATILE LANGUAGE plpgsql AS $$
    BEGIN RETURN snowflake_segment_nextval('loaded'); END $$";

/// Starts a server with the segment, and draws its first number, which fetches a block.
fn loaded(builder: Builder) -> (Cluster, Client) {
    let server = own_registry(builder);
    let mut session = server.session();
    session.run(LOADED);
    assert_eq!(session.one::<i64>("SELECT snowflake_segment_nextval('loaded')"), 1);
    (server, session)
}

/// Checks that COPY writes at most as much WAL with this default as with a sequence.
fn check_copy(session: &mut Client, default: &str) -> Result<(), String> {
    let mut bytes = |key: &str| {
        session.run(&format!("CREATE TABLE copied (id {key} PRIMARY KEY, n int)"));
        let before: String = session.one("SELECT pg_current_wal_insert_lsn()::text");
        session.run("COPY copied (n) FROM PROGRAM 'seq 10000'");
        let bytes: i64 =
            session.one(&format!("SELECT (pg_current_wal_insert_lsn() - '{before}'::pg_lsn)::bigint / 10000"));
        session.run("DROP TABLE copied");
        bytes
    };
    let (sequence, ours) = (bytes("bigserial"), bytes(&format!("bigint DEFAULT {default}")));
    ensure!(ours <= sequence, "{default}: {ours} bytes a row, with a sequence {sequence}");
    Ok(())
}

/// Checks that a new column has a different number in each row.
fn check_new_column(session: &mut Client) -> Result<(), String> {
    session.run(
        "BEGIN; CREATE TABLE filled AS SELECT generate_series(1, 100) AS n;
         ALTER TABLE filled ADD COLUMN id bigint DEFAULT snowflake_segment_nextval('loaded')",
    );
    let numbers: i64 = session.one("SELECT count(DISTINCT id) FROM filled");
    session.run("ROLLBACK");
    ensure!(numbers == 100, "100 rows have {numbers} numbers");
    Ok(())
}

#[test]
fn copy_inserts_numbers_in_batches_and_a_new_column_has_different_ones() {
    let (_server, mut session) = loaded(Cluster::builder("seg_copy"));
    check_copy(&mut session, "snowflake_segment_nextval('loaded')").unwrap();
    assert_caught(check_copy(&mut session, "volatile_number()"), "bytes a row, with a sequence");
    check_new_column(&mut session).unwrap();
}

#[test]
fn a_number_that_is_stable_everywhere_is_caught() {
    let (_server, mut session) = loaded(Cluster::builder("seg_copy_everywhere").fault("CopyEverywhere"));
    assert_caught(check_new_column(&mut session), "100 rows have 1 numbers");
}
