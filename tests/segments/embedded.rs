//! One server whose registry is in its own database, as docs/orders.md says.

use cluster::{Answer, Cluster, Recipe, Stop, settings, typed};

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
    server.connect().batch_execute("CREATE DATABASE shop").unwrap();
    let block = recipe.block("sql orders");
    assert_eq!(block.trim().lines().count(), 5, "the page promises five lines");
    psql(&server, &block);
    let printed = psql(&server, &recipe.block("sql rows"));
    assert_eq!(printed, recipe.block("text"));
    assert!(recipe.is_empty());
    let mut days = Recipe::of(PAGE, "Numbers that begin again each day");
    let printed = psql(&server, &days.block("sql days"));
    assert_eq!(printed, days.block("text"));
    assert!(days.is_empty());
    let mut client = server.connect_to("shop");
    let mut roles = Recipe::of(PAGE, "Which roles can draw?");
    let insert = "SET ROLE shop_app; INSERT INTO orders (item) VALUES ('tea')";
    for (block, drawn) in [("sql roles", true), ("sql one", false)] {
        client.batch_execute("RESET ROLE").unwrap();
        psql(&server, &roles.block(block));
        assert_eq!(client.code(insert), None, "{block}");
        assert_eq!(client.code("SELECT snowflake_segment_nextval('orders')").is_none(), drawn, "{block}");
    }
    client.batch_execute("RESET ROLE; CREATE ROLE stranger; GRANT SELECT, INSERT ON orders TO stranger").unwrap();
    assert_eq!(client.code(&insert.replace("shop_app", "stranger")).as_deref(), Some("42501"));
    client.batch_execute("RESET ROLE").unwrap();
    assert!(roles.is_empty());
    psql(&server, &steps.block("sql steps"));
    assert_eq!(client.one::<i64>("SELECT snowflake_segment_nextval('parcels')"), 20_260_001);
}

#[test]
fn a_server_can_be_its_own_registry() {
    let mut server = Cluster::builder("seg_own").unset("snowflake_pg.worker_id").create();
    let string = format!("host={} user=postgres dbname=postgres", server.socket().display());
    server.set("snowflake_pg.registry", &string);
    server.start();
    server.create_fleet("41:10:12");
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
    session.batch_execute(&format!("{create}; COPY copied (n) FROM PROGRAM 'seq 300'")).unwrap();
    ledger.push(session.all("SELECT id FROM copied ORDER BY id"));
    assert_eq!(ledger.last().map(Vec::len), Some(300));
    check_ledger(&ledger).unwrap();
}
