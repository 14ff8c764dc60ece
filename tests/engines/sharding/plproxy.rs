//! Two shards behind PL/Proxy, with distinct worker IDs and with the same one.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use cluster::{
    Answer, Builder, Client, Cluster, SPARSE_LAYOUT, SPARSE_PER_SECOND, assert_caught, check_unique, ensure,
};

use crate::sharding::page::{ShardHosts, Workers, compare, section, shop};

/// How many orders are inserted to see how they are distributed.
const ORDERS: i64 = 400;

/// How many customers have an invoice while a shard is added.
const CUSTOMERS: i64 = 100;

/// How far the number of orders of a shard may be from the half: six standard deviations.
const TOLERANCE: i64 = 60;

const LAYOUT: &str = "41:10:12";

/// A proxy and its shards, with the statements of the page's first section.
struct Shards {
    hosts: ShardHosts,
    proxy: Cluster,
    shards: Vec<Cluster>,
}

impl Shards {
    fn start(test: &'static str, workers: Workers, layout: &str) -> Shards {
        let hosts = ShardHosts::new(test, workers, layout);
        let like = |builder: Builder| {
            builder
                .set("snowflake_pg.layout", layout)
                .set("snowflake_pg.max_ahead", "10s")
                .set("snowflake_pg.lease", "10min")
        };
        let shards = ["shard1", "shard2"].map(|host| hosts.start(host, like)).into();
        let shards = Shards { proxy: hosts.start("proxy", like), hosts, shards };
        let mut recipe = section("PL/Proxy: the proxy draws the ID");
        let (shard, proxy) = (recipe.block("sql shard"), recipe.block("sql proxy"));
        for server in &shards.shards {
            shards.hosts.psql(server, &shard).unwrap();
        }
        shards.hosts.psql(&shards.proxy, &proxy).unwrap();
        shards.shards.iter().chain([&shards.proxy]).for_each(Cluster::wait_for_ids);
        shards
    }

    /// Types the page's second section.
    fn set_up_invoices(&self) {
        let [shard, proxy] = section("PL/Proxy: the shard draws the ID").rest(["sql shard", "sql proxy"]);
        self.shards.iter().for_each(|server| drop(self.hosts.psql(server, &shard).unwrap()));
        self.hosts.psql(&self.proxy, &proxy).unwrap();
    }

    /// Returns the number of orders on each shard.
    fn counts(&self) -> Vec<i64> {
        self.shards.iter().map(|shard| shop(shard).one("SELECT count(*) FROM orders")).collect()
    }
}

/// Inserts orders with a pause between them, and returns their IDs.
fn insert(session: &mut Client, orders: i64) -> Vec<i64> {
    let order = |n: i64| {
        thread::sleep(Duration::from_millis(2));
        session.query_one("SELECT new_order($1)", &[&format!("customer {n}")]).expect("an order").get(0)
    };
    (0..orders).map(order).collect()
}

fn check_spread(counts: &[i64]) -> Result<(), String> {
    let half = counts.iter().sum::<i64>() / 2;
    ensure!(counts.iter().all(|count| (count - half).abs() <= TOLERANCE), "the shards have {counts:?} rows");
    Ok(())
}

/// Checks that each order is found on a shard by its ID, and that all are found by their time, in the order of their IDs.
fn check_found(session: &mut Client, ids: &[i64]) -> Result<(), String> {
    for (n, id) in ids.iter().enumerate() {
        let found: Vec<String> = session.all(&format!("SELECT customer FROM find_order({id})"));
        ensure!(found == [format!("customer {n}")], "{id} is found as {found:?}");
    }
    let range = "SELECT id FROM find_orders(now() - interval '1 hour', now() + interval '1 minute')
                 WHERE customer LIKE 'customer %' ORDER BY id";
    let found: Vec<i64> = session.all(range);
    ensure!(found == ids, "{} of {} orders are found by their time", found.len(), ids.len());
    Ok(())
}

/// The worker IDs of these IDs.
fn workers_of(ids: &[i64]) -> BTreeMap<i64, usize> {
    let mut workers = BTreeMap::new();
    ids.iter().for_each(|id| *workers.entry(id >> 12 & 1023).or_default() += 1);
    workers
}

#[test]
fn the_proxy_draws_ids_and_a_hash_spreads_them_over_the_shards() {
    let mut shards = Shards::start("proxy", Workers::Registry, LAYOUT);
    let infos = ["sql shard", "sql proxy", "sql use", "text", "sql repeat", "text"];
    let [_, proxy, first, shown, repeat, repeated] = section("PL/Proxy: the proxy draws the ID").rest(infos);
    shards.hosts.check(&shards.proxy, &first, &shown);
    shards.hosts.check(&shards.proxy, &repeat, &repeated);

    let mut session = shop(&shards.proxy);
    let ids = insert(&mut session, ORDERS);
    check_unique(&mut ids.clone()).unwrap();
    assert_eq!(workers_of(&ids).len(), 1, "another server than the proxy drew IDs");
    check_spread(&shards.counts()).unwrap();
    check_found(&mut session, &ids).unwrap();

    // An ID that was drawn first tells whether its order exists.
    let repeated = format!("SELECT insert_order({}, 'again')", ids[0]);
    let (_, message) = session.refusal(&repeated);
    assert!(message.contains("duplicate key value"), "{message}");
    // The shard has committed what the proxy rolls back.
    let before: i64 = shards.counts().iter().sum();
    session.batch_execute("BEGIN; SELECT new_order('rolled back'); ROLLBACK").expect("an order");
    assert_eq!(shards.counts().iter().sum::<i64>(), before + 1);

    // What PL/Proxy accepts: a function call, and a number of partitions that is a power of two.
    let expression = proxy.replace("FUNCTION insert_order", "FUNCTION by_expression");
    let expression = &expression[expression.find("CREATE FUNCTION").expect("a function")..];
    let end = expression.find("CREATE FUNCTION new_order").expect("the next function");
    let by = |new: &str| expression[..end].replace("hashint8(new_id)", new);
    for (routed, reason) in
        [("new_id >> 22", "syntax error"), ("hashint8(new_id) & 1", "syntax error at or near \"&\"")]
    {
        session.batch_execute("DROP FUNCTION IF EXISTS by_expression").expect("a superuser may");
        let created = session.batch_execute(&by(routed));
        let refused = created.and_then(|()| session.batch_execute("SELECT by_expression(1, '')"));
        assert!(cluster::sqlstate(&refused.expect_err(routed)).1.contains(reason), "{routed}");
    }
    let (_, message) = session.refusal("ALTER SERVER shards OPTIONS (ADD p2 'host=/nowhere dbname=shop')");
    assert_eq!(message, "Pl/Proxy: invalid number of partitions");

    shards.set_up_invoices();
    let sql = format!("SELECT new_invoice('customer ' || n) FROM generate_series(1, {CUSTOMERS}) AS n");
    session.batch_execute(&sql).expect("invoices");
    split(&mut shards, &ids);
}

/// Adds a shard as the page says, and finds all orders again.
fn split(shards: &mut Shards, ids: &[i64]) {
    let [orders, invoices, count, proxy, shard1] =
        section("Move rows to another shard").rest(["sh shard3", "sh shard3", "sql count", "sql proxy", "sql shard1"]);
    let third = shards.hosts.start("shard3", |builder| builder.set("snowflake_pg.lease", "10min"));
    for title in ["PL/Proxy: the proxy draws the ID", "PL/Proxy: the shard draws the ID"] {
        shards.hosts.psql(&third, &section(title).block("sql shard")).unwrap();
    }
    let before: i64 = shards.counts().iter().sum();
    shards.hosts.shell(&orders).unwrap();
    let counted = [&shards.shards[0], &third].map(|shard| shards.hosts.psql(shard, &count).unwrap());
    assert_ne!(counted[0], counted[1], "the counts do not show that the invoices were not copied");
    shards.hosts.shell(&invoices).unwrap();
    let counted = [&shards.shards[0], &third].map(|shard| shards.hosts.psql(shard, &count).unwrap());
    assert_eq!(counted[0], counted[1], "not all rows were copied");
    shards.hosts.psql(&shards.proxy, &proxy).unwrap();
    shards.hosts.psql(&shards.shards[0], &shard1).unwrap();
    shards.shards.push(third);
    let counts = shards.counts();
    assert_eq!(counts.iter().sum::<i64>(), before, "{counts:?}");
    assert!(counts[0] > 0 && counts[2] > 0 && counts[1] > counts[2], "{counts:?}");

    // Also in a session that was connected before.
    let mut session = shop(&shards.proxy);
    check_found(&mut session, ids).unwrap();
    let invoices =
        format!("SELECT count(id) FROM generate_series(1, {CUSTOMERS}) AS n, find_invoices('customer ' || n) AS id");
    assert_eq!(session.one::<i64>(&invoices), CUSTOMERS, "invoices are not found");
    let stored = |shard: &Cluster| shop(shard).one::<i64>("SELECT count(*) FROM invoices");
    assert_eq!(shards.shards.iter().map(stored).sum::<i64>(), CUSTOMERS, "invoices are on several shards");
    let more = insert(&mut session, 40);
    check_unique(&mut [ids, &more].concat()).unwrap();
    // The control of the connection strings: another string for the same database.
    let other = "ALTER SERVER shards OPTIONS (SET p3 'host=shard2 dbname=shop user=shop connect_timeout=60')";
    shards.hosts.psql(&shards.proxy, other).unwrap();
    assert_caught(check_found(&mut shop(&shards.proxy), ids), "orders are found by their time");
}

/// Without the hash, the lowest bits of the ID select the shard.
#[test]
fn the_lowest_bits_of_an_id_as_the_shard_are_caught() {
    let shards = Shards::start("bits", Workers::Configured, LAYOUT);
    let mut recipe = section("PL/Proxy: the proxy draws the ID");
    let (_, proxy) = (recipe.block("sql shard"), recipe.block("sql proxy"));
    let mut session = shop(&shards.proxy);
    let start = proxy.find("CREATE FUNCTION insert_order").expect("the function");
    let end = proxy.find("CREATE FUNCTION new_order").expect("the next function");
    let route =
        |routed: &str| proxy[start..end].replace("CREATE", "CREATE OR REPLACE").replace("hashint8(new_id)", routed);
    session.batch_execute(&route("new_id")).expect("PL/Proxy accepts an argument");
    insert(&mut session, ORDERS / 2);
    let counts = shards.counts();
    assert_caught(check_spread(&counts), "the shards have ");
    assert!(counts[0] > 9 * counts[1], "{counts:?}");

    // The hash spreads IDs of the same server, drawn in the same way.
    session.batch_execute(&route("hashint8(new_id)")).expect("a function");
    insert(&mut session, ORDERS);
    let added: Vec<i64> = shards.counts().iter().zip(&counts).map(|(after, before)| after - before).collect();
    check_spread(&added).unwrap();
}

/// Lets the shards draw the IDs of invoices at the same time, and merges the shards.
fn check_invoices(test: &'static str, workers: Workers) -> Result<(), String> {
    // Few IDs a second, without gaps: servers with the same worker ID issue the same IDs for certain.
    let shards = Shards::start(test, workers, SPARSE_LAYOUT);
    shards.set_up_invoices();
    let mut session = shop(&shards.proxy);
    let invoice = |session: &mut Client, customer: &str| -> i64 {
        session.query_one("SELECT new_invoice($1)", &[&customer]).expect("an invoice").get(0)
    };
    // Two customers whose invoices are on different shards.
    let shard_of =
        |session: &mut Client, customer: &str| session.one::<i32>(&format!("SELECT hashtext('{customer}') & 1"));
    let customers: Vec<String> = (0..).map(|n| format!("customer {n}")).take(64).collect();
    let on = |session: &mut Client, shard| {
        let found = customers.iter().find(|customer| shard_of(session, customer) == shard);
        found.expect("one of 64 hashes is even, and another is odd").clone()
    };
    let customers = [on(&mut session, 0), on(&mut session, 1)];
    let mut ledger = [Vec::new(), Vec::new()];
    for _ in 0..5 * SPARSE_PER_SECOND {
        for (customer, ids) in customers.iter().zip(&mut ledger) {
            ids.push(invoice(&mut session, customer));
        }
    }
    for ((customer, ids), shard) in customers.iter().zip(&ledger).zip(&shards.shards) {
        let found: Vec<i64> = session.all(&format!("SELECT find_invoices('{customer}')"));
        ensure!(found == *ids, "{customer} has other invoices");
        let stored: Vec<i64> = shop(shard).all("SELECT id FROM invoices ORDER BY id");
        ensure!(stored == *ids, "{customer} is on another shard");
    }
    let unique = check_unique(&mut ledger.concat());
    let merge = "psql -X -v ON_ERROR_STOP=1 \"host=shard2 dbname=shop user=postgres\" -c \"COPY invoices TO STDOUT\" |
        psql -X -v ON_ERROR_STOP=1 \"host=shard1 dbname=shop user=postgres\" -c \"COPY invoices FROM STDIN\"";
    let merged = shards.hosts.shell(merge);
    let conflict = merged.as_ref().is_err_and(|said| said.contains("duplicate key value"));
    assert_eq!(unique.is_err(), conflict, "{unique:?}, but the shards were merged: {merged:?}");
    unique?;
    let count: usize = ledger.iter().map(Vec::len).sum();
    ensure!(shop(&shards.shards[0]).one::<i64>("SELECT count(*) FROM invoices") == count as i64, "rows are missing");
    Ok(())
}

#[test]
fn shards_with_a_registry_draw_ids_of_their_own_and_are_merged() {
    check_invoices("registered", Workers::Registry).unwrap();
}

#[test]
fn shards_with_configured_worker_ids_draw_ids_of_their_own_and_are_merged() {
    check_invoices("configured", Workers::Configured).unwrap();
}

#[test]
fn shards_with_one_worker_id_are_caught() {
    assert_caught(check_invoices("same", Workers::Same), "IDs came twice");
}

#[test]
fn an_output_that_differs_from_the_page_is_caught() {
    let shown = " inserted\n----------\n t\n(1 row)\n";
    compare("  inserted \n------------\n t\n(1 row)\n\n", shown).unwrap();
    assert_caught(compare(&shown.replace('t', "f"), shown), "but the page shows");
}
