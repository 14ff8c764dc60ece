//! docs/faq.md: the claims of its answers beyond the output of their blocks. `pages.rs` compares the output of the blocks.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster::{Answer, Cluster, Host, Stop, blocks, output, page, supported, within};
use serde_json::Value;

const LATER_EPOCH: &str = "2020-01-01Z";

/// Returns the answer to the question that contains this text.
fn answer(part: &str) -> String {
    let page = page("docs/faq.md");
    let mut answers: Vec<&str> = page.split("\n## ").skip(1).collect();
    answers.retain(|answer| answer.lines().next().expect("a question").contains(part));
    assert_eq!(answers.len(), 1, "questions with {part:?}");
    answers[0].to_string()
}

#[test]
fn the_contents_name_every_question() {
    let page = page("docs/faq.md");
    let (contents, _) = page.split_once("\n## ").expect("a question");
    let questions = page.lines().filter(|line| line.starts_with("## ")).count();
    // Users look for the name of their service.
    for service in ["RDS", "Aurora", "Cloud SQL", "Azure", "Supabase", "Neon"] {
        assert!(answer("Does it run on RDS").lines().next().expect("a question").contains(service), "{service}");
    }
    let links: BTreeSet<&str> = contents.split("](#").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert_eq!(links.len(), questions, "{links:?}");
}

#[test]
fn the_versions_are_those_that_are_tested() {
    let mut named = supported();
    let (all, first) = (named.clone(), named[0].clone());
    let last = named.pop().expect("a version");
    let list = format!("PostgreSQL {} and {last}", named.join(", "));
    assert!(answer("Which versions").contains(&format!("{list} on Linux")), "{list}");
    for (file, text) in [
        ("README.md", format!("PostgreSQL {} or {last} on Linux", named.join(", "))),
        ("SECURITY.md", format!("| {} |", all.join(", "))),
        ("docs/installing.md", list.clone()),
        ("docs/portable.md", list),
        ("docs/choosing.md", format!("PostgreSQL {first} to {last}")),
        ("debian/pgversions", all.join("\n")),
    ] {
        assert!(page(file).contains(&text), "{file} does not contain {text:?}");
    }
}

#[test]
fn the_figures_are_those_that_were_measured() {
    let (answer, result) = (answer("How fast"), page("bench/results/15/cost.json"));
    let result: Value = serde_json::from_str(&result).expect("JSON");
    let figures = result["figures"].as_array().expect("figures");
    let figure = figures.iter().find(|figure| figure["name"] == "cost of an ID, ten calls a row").expect("a figure");
    for (rival, pages) in [
        ("snowflake_nextval()", &["README.md", "docs/choosing.md"][..]),
        ("nextval, CACHE 1", &["README.md", "docs/choosing.md"]),
        ("gen_random_uuid()", &["docs/choosing.md"]),
    ] {
        let values = figure["values"].as_array().expect("values");
        let value = values.iter().find(|value| value["rival"] == rival).expect("a rival");
        let nanos = value["median"].as_f64().expect("a number").round() as u64;
        let stated = |text: &str| text.replace(',', "").replace('\n', " ").contains(&format!(" {nanos} ns"));
        assert!(stated(&answer), "{rival}: {nanos} ns in {answer}");
        pages.iter().for_each(|name| assert!(stated(&page(name)), "{rival}: {nanos} ns in {name}"));
    }
    let server = Cluster::builder("faq_figures").start();
    let most: i64 = server.session().one("SELECT ids_per_second FROM snowflake_layouts WHERE name = 'twitter'");
    assert_eq!(most, 4_096_000);
    assert!(answer.contains("4,096,000"));
}

#[test]
fn a_subscriber_needs_no_extension() {
    let publisher = Cluster::builder("faq_publisher").set("wal_level", "logical").start();
    let without =
        Cluster::builder("faq_without").unset("shared_preload_libraries").unset("snowflake_pg.worker_id").start();
    let mut session = publisher.session();
    let table = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
         CREATE PUBLICATION everything FOR TABLE orders;
         INSERT INTO orders DEFAULT VALUES";
    session.batch_execute(table).expect("a published table");
    let mut subscriber = without.connect();
    let socket = publisher.socket().display();
    let subscribe = format!(
        "CREATE SUBSCRIPTION orders CONNECTION 'host={socket} dbname=postgres user=postgres' PUBLICATION everything"
    );
    for sql in ["CREATE TABLE orders (id bigint PRIMARY KEY)", &subscribe] {
        subscriber.batch_execute(sql).expect("a table and a subscription");
    }
    session.batch_execute("INSERT INTO orders DEFAULT VALUES").expect("a row");
    let sent: Vec<i64> = session.all("SELECT id FROM orders ORDER BY id");
    let arrived =
        within(Duration::from_secs(30), || subscriber.all::<i64>("SELECT id FROM orders ORDER BY id") == sent);
    assert!(arrived, "the rows do not arrive");
}

#[test]
fn the_primary_key_refuses_a_duplicate() {
    let answer = answer("same worker ID");
    let server = Cluster::builder("faq_duplicate").start();
    let mut session = server.session();
    session.batch_execute("CREATE TABLE orders (id bigint PRIMARY KEY)").expect("a table");
    let insert = "INSERT INTO orders VALUES (1541815603606036480)";
    session.batch_execute(insert).expect("the ID of one server");
    let (_, message) = session.refusal(insert);
    assert!(answer.contains(&format!("ERROR:  {message}")), "{message}");
}

#[test]
fn a_later_epoch_begins_with_a_new_worker_id() {
    let answer = answer("2080");
    let mut server = Cluster::builder("faq_epoch").start();
    let old: Vec<i64> = server.session().all("SELECT snowflake_nextval_batch(10000)");
    server.set("snowflake_pg.epoch", LATER_EPOCH);
    server.set("snowflake_pg.worker_id", "8");
    server.restart(Stop::Fast);
    let mut session = server.connect();
    assert_eq!(session.code("SELECT snowflake_nextval()").as_deref(), Some("55000"));
    let statement = answer.split('`').find(|part| part.starts_with("SELECT snowflake_set_mark"));
    session.batch_execute(statement.expect("the page's statement")).expect("a superuser may");
    let new: Vec<i64> = session.all("SELECT snowflake_nextval_batch(10000)");
    assert!(new.iter().max() < old.iter().min(), "new IDs are smaller than old ones");
    let now: bool = session.one(
        "SELECT abs(extract(epoch FROM created_at - clock_timestamp())) < 60 AND worker_id = 8 FROM snowflake_decode(snowflake_nextval())",
    );
    assert!(now, "the time and the worker ID of a new ID");
    // The page warns of this: with the old worker ID, an ID in the later epoch is an ID that the server issued some years ago.
    let repeated: bool = session.one(&format!(
        "SELECT snowflake_encode(now(), 7, 0, layout => '41:10:12', epoch => '{LATER_EPOCH}')
              = snowflake_encode(now() - ('{LATER_EPOCH}'::timestamptz - '2010-11-04 01:42:54.657Z'), 7, 0, layout => '41:10:12')"
    ));
    assert!(repeated, "the IDs of both epochs");
}

/// Returns the only block of the page with these words after its fence.
fn block(words: &str) -> String {
    blocks(&page("docs/faq.md"), words).concat()
}

/// The extension is dumped, restored, dropped and created again with the commands of the page.
#[test]
fn a_dump_is_restored_and_the_extension_is_dropped() {
    let server = Cluster::builder("faq_dump").start();
    server.connect().batch_execute("CREATE DATABASE shop").expect("a new database");
    let mut session = server.connect_to("shop");
    let table = "CREATE EXTENSION snowflake_pg;
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text);
         INSERT INTO orders (customer) VALUES ('Ada')";
    session.batch_execute(table).expect("the table of the README");
    let old: i64 = session.one("SELECT id FROM orders");
    let scratch = cluster::Scratch::new("faq_dump.files");
    let mut shell = server.client(Host::get().shell(&format!("set -e\n{}", block("sh dump"))));
    output(shell.current_dir(&scratch.0));
    let mut copy = server.connect_to("shop_copy");
    assert_eq!(copy.all::<i64>("SELECT id FROM orders"), [old]);
    let new: i64 = copy.one("INSERT INTO orders (customer) VALUES ('Grace') RETURNING id");
    assert!(new > old);

    assert_eq!(copy.code("DROP EXTENSION snowflake_pg").as_deref(), Some("2BP01"));
    copy.batch_execute(&block("sql drop")).expect("the page's statements");
    assert_eq!(copy.all::<i64>("SELECT id FROM orders ORDER BY id"), [old, new]);
    copy.batch_execute("CREATE EXTENSION snowflake_pg").expect("the extension again");
    assert!(copy.one::<i64>("SELECT snowflake_nextval()") > new);
}
