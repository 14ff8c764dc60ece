//! A copy of a database issues nothing until its owner says which worker ID it has, and what follows a failover or a restore begins above
//! all IDs that it contains.

use cluster::{Answer, Client, Cluster, assert_caught, ensure, output, typed, within};

use crate::server::{install, issuing, plain, plain_builder, script, spoilt};

const REFUSED: &str = "the worker ID was configured for a different database";

/// Draws IDs that are an hour ahead of the clock, into a table, and returns the last one.
fn ahead(session: &mut Client) -> i64 {
    session.run(
        "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
         SELECT snowflake_set_mark(snowflake_max_id(now() + interval '1 hour'));
         INSERT INTO orders SELECT FROM generate_series(1, 5)",
    );
    session.one("SELECT max(id) FROM orders")
}

/// Whether a copied database issues no ID, and then IDs above all others.
fn check_copy(copy: &mut Client, last: i64) -> Result<(), String> {
    for call in ["nextval()", "nextval_batch(2)", "reserve(2)"] {
        let query = format!("SELECT snowflake_{call}");
        let Err(error) = copy.query(&query, &[]) else { return Err(format!("the copy issues with {call}")) };
        let error = error.as_db_error().expect("an error of the server");
        ensure!((error.code().code(), error.message()) == ("55000", REFUSED), "{call}: {error}");
    }
    let shown: String = copy.one("SELECT concat_ws(' ', state, problem) FROM snowflake_status");
    ensure!(shown == format!("refused {REFUSED}"), "{shown}");
    // The hint works.
    copy.run("SELECT snowflake_configure(8)");
    let (first, reserved): (i64, i64) =
        (copy.one("INSERT INTO orders DEFAULT VALUES RETURNING id"), copy.one("SELECT snowflake_reserve(3)"));
    ensure!(first > last && reserved > first && (first >> 12) & 1023 == 8, "{first} after {last}");
    Ok(())
}

fn check_template(test: &str, script: &str) -> Result<(), String> {
    let (server, mut session) = plain(test);
    session.run("CREATE DATABASE shop");
    let mut shop = server.connect_to("shop");
    install(&mut shop, script, &[]).expect("the script runs");
    shop.run("SELECT snowflake_configure(7)");
    let last = ahead(&mut shop);
    drop(shop);
    let connected = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = 'shop')";
    assert!(within(std::time::Duration::from_secs(20), || !session.one::<bool>(connected)));
    session.run("CREATE DATABASE copy TEMPLATE shop");
    check_copy(&mut server.connect_to("copy"), last)?;
    // The original goes on.
    let next: i64 = server.connect_to("shop").one("SELECT snowflake_nextval()");
    ensure!(next > last && (next >> 12) & 1023 == 7, "{next} after {last}");
    Ok(())
}

#[test]
fn a_database_copied_from_a_template_is_refused() {
    check_template("template", &script("template")).unwrap();
}

#[test]
fn a_copy_that_issues_is_caught() {
    let mistake = ("RETURN configured = snowflake_portable_identity();", "RETURN true;");
    assert_caught(check_template("template_open", &spoilt("template_open", mistake)), "the copy issues");
}

#[test]
fn a_restored_dump_is_refused_and_then_begins_above_its_ids() {
    let (server, mut session) = issuing("dumped", &[]);
    let last = ahead(&mut session);
    let dump = output(server.program("pg_dump").arg("postgres"));
    // Databases "postgres" have the same OID, so only the system identifier differs.
    let mut target = plain_builder("restored").create_anew();
    target.start();
    typed(target.psql(), &dump).expect("the dump can be restored");
    let mut restored = target.connect();
    check_copy(&mut restored, last).unwrap();
    // The same worker ID, if the restored database replaces the other one.
    restored.run("SELECT snowflake_configure(7)");
    let next: i64 = restored.one("SELECT snowflake_nextval()");
    assert!(next > last && (next >> 12) & 1023 == 7);
}

#[test]
fn a_promoted_standby_begins_above_the_ids_that_it_has_replayed() {
    let (primary, mut session) = issuing("failover", &[]);
    let last = ahead(&mut session);
    let standby: Cluster = primary.standby(plain_builder("failover_standby"));
    let mut reader = standby.connect();
    assert!(within(std::time::Duration::from_secs(20), || {
        reader.one::<Option<i64>>("SELECT max(id) FROM orders") == Some(last)
    }));
    assert_eq!(reader.code("SELECT snowflake_nextval()").as_deref(), Some("25006"));
    assert_eq!(reader.code("SELECT snowflake_reserve(2)").as_deref(), Some("25006"));
    assert_eq!(reader.one::<String>("SELECT state FROM snowflake_status"), "standby");
    standby.promote();
    let mut promoted = standby.connect();
    let first: i64 = promoted.one("INSERT INTO orders DEFAULT VALUES RETURNING id");
    assert!(first > last, "{first} after {last}");
}

/// The script and its first ID in one transaction that is rolled back leave nothing behind.
#[test]
fn a_rolled_back_installation_can_be_repeated() {
    let (_server, mut session) = plain("rolled_back");
    let script = script("rolled_back").replace("\nBEGIN;\n", "\n").replace("\nCOMMIT;\n", "\n");
    let mut before = 0;
    for _ in 0..3 {
        session.run("BEGIN");
        install(&mut session, &script, &[]).expect("the script runs");
        session.run("SELECT snowflake_configure(7)");
        let id: i64 = session.one("SELECT snowflake_nextval()");
        assert!(id > before, "the clock has passed {before}");
        before = id;
        session.run("ROLLBACK");
    }
    assert_eq!(session.one::<i64>("SELECT count(*) FROM pg_class WHERE relname LIKE 'snowflake%'"), 0);
}
