//! The guard of a table on real subscriptions: it stops replication before a row of another server with the same worker ID arrives,
//! and lets all other rows through.

use cluster::{Answer, Builder, Cluster, PATIENCE, Recipe, assert_caught, both_ways, ensure, key_conflict, within};

const TABLE: &str = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text)";
const REFUSAL: &str = "23000 ERROR:  replicated row has the worker ID of this server";
const GUARD: &str = "SELECT snowflake_guard('orders')";

/// A server that publishes and subscribes, with SQLSTATEs in its log, and with the table.
fn server(name: &str, like: impl FnOnce(Builder) -> Builder) -> Cluster {
    let plain = Cluster::builder(name)
        .set("wal_level", "logical")
        .set("wal_retrieve_retry_interval", "200ms")
        .set("log_line_prefix", "%m [%p] %e ");
    let server = like(plain).start();
    run(
        &server,
        &format!("CREATE EXTENSION IF NOT EXISTS snowflake_pg; {TABLE}; CREATE PUBLICATION rows FOR TABLE orders"),
    );
    server
}

fn with_worker(name: &str, worker: u32) -> Cluster {
    server(name, |builder| builder.set("snowflake_pg.worker_id", &worker.to_string()))
}

fn run(server: &Cluster, sql: &str) {
    server.connect().run(sql);
}

/// Subscribes one server to the rows of another.
fn subscribe(to: &Cluster, from: &Cluster, options: &str) {
    let socket = from.socket().display();
    // One statement, because CREATE SUBSCRIPTION cannot run in a block.
    run(
        to,
        &format!(
            "CREATE SUBSCRIPTION sub CONNECTION 'host={socket} port=5432 user=postgres dbname=postgres' PUBLICATION rows {options}"
        ),
    );
}

fn count(server: &Cluster, rows: &str) -> i64 {
    server.connect().one(&format!("SELECT count(*) FROM orders WHERE {rows}"))
}

fn refusals(server: &Cluster) -> i64 {
    server.connect().one("SELECT guard_refusals FROM snowflake_status")
}

/// Returns the steps of the manual for a refused row.
fn steps() -> Recipe {
    Recipe::of("docs/errors.md", "\"replicated row has the worker ID of this server\" (23000)")
}

fn wait(what: &str, server: &Cluster, happened: impl FnMut() -> bool) -> Result<(), String> {
    ensure!(within(PATIENCE, happened), "{what} does not happen:\n{}", server.log());
    Ok(())
}

/// Two servers with one worker ID. The publisher inserts a row with the same ID as a row of the subscriber, changes its own row, and
/// inserts rows that the subscriber does not have.
fn check_twins(name: &str, guarded: bool) -> Result<(), String> {
    let (one, two) = (with_worker(&format!("{name}_1"), 1), with_worker(&format!("{name}_2"), 1));
    if guarded {
        run(&two, GUARD);
    }
    subscribe(&two, &one, "WITH (copy_data = false)");
    run(&two, "INSERT INTO orders (customer) SELECT 'two' FROM generate_series(1, 100)");
    // Nothing has arrived before, so that the first row decides.
    run(&one, "INSERT INTO orders (customer) SELECT 'one' FROM generate_series(1, 100)");
    wait("the end of the replication of a row", &two, || {
        count(&two, "customer = 'one'") > 0 || two.log().contains("ERROR")
    })?;
    let came = count(&two, "customer = 'one'");
    ensure!(came == 0, "{came} rows of another server with worker ID 1 arrived");
    // The retries change nothing.
    wait("a second refusal", &two, || refusals(&two) >= 2)?;
    ensure!(count(&two, "customer = 'two'") == 100, "a row of the subscriber is lost");
    let log = two.log();
    let (lines, errors) = (log.lines().filter(|line| line.contains("ERROR")).count(), log.matches(REFUSAL).count());
    ensure!(lines == errors && log.matches("snowflake_pg: ").count() <= 4, "other lines in the log:\n{log}");
    let session = &mut two.connect();
    let last: i64 = session.one("SELECT last_guard_refusal_id FROM snowflake_status");
    ensure!(one.connect().one::<bool>(&format!("SELECT {last} = min(id) FROM orders")), "not the first row: {last}");
    ensure!(
        session.one::<bool>("SELECT last_guard_refusal_at > now() - interval '1 minute' FROM snowflake_status"),
        "when?"
    );
    // The hint is followed: the subscriber gets a worker ID of its own. All rows of both servers are there.
    let (mut two, mut steps) = (two, steps());
    run(&two, &steps.block("sql on the server"));
    let conf = steps.block("conf");
    cluster::settings(&conf).for_each(|(name, value)| two.set(name, value));
    two.restart(cluster::Stop::Fast);
    ensure!(count(&two, "true") == 100, "the subscription is not disabled");
    run(&two, &steps.block("sql on the server"));
    wait("replication", &two, || count(&two, "true") == 200)?;
    ensure!(refusals(&two) == 0, "a row is refused after the change");
    Ok(())
}

#[test]
fn no_row_of_a_server_with_the_same_worker_id_arrives() {
    check_twins("guard_twins", true).unwrap();
}

#[test]
fn a_table_without_a_guard_takes_rows_of_a_server_with_the_same_worker_id_caught() {
    assert_caught(check_twins("guard_none", false), "rows of another server with worker ID 1 arrived");
}

/// A row of the publisher has the ID of a row of the subscriber, and is changed and deleted later.
fn check_same_id(name: &str, guarded: bool) -> Result<(), String> {
    let (one, two) = (with_worker(&format!("{name}_1"), 1), with_worker(&format!("{name}_2"), 1));
    if guarded {
        run(&two, GUARD);
    }
    subscribe(&two, &one, "WITH (copy_data = false)");
    run(&two, "INSERT INTO orders (customer) VALUES ('two')");
    let id: i64 = two.connect().one("SELECT id FROM orders");
    run(
        &one,
        &format!(
            "INSERT INTO orders VALUES ({id}, 'one'); UPDATE orders SET customer = 'one again'; DELETE FROM orders"
        ),
    );
    wait("an error", &two, || two.log().contains("ERROR"))?;
    ensure!(count(&two, &format!("id = {id} AND customer = 'two'")) == 1, "the row is lost");
    ensure!(!two.log().contains(key_conflict()), "only the unique index noticed");
    Ok(())
}

#[test]
fn a_row_with_the_id_of_another_row_is_refused_by_the_guard() {
    check_same_id("guard_same", true).unwrap();
}

#[test]
fn without_a_guard_only_a_unique_index_notices_a_row_with_the_id_of_another_row_caught() {
    assert_caught(check_same_id("guard_same_none", false), "only the unique index noticed");
}

/// Two servers that both insert, each with a guard, and with rows from before. From PostgreSQL 16 on, in both directions.
fn check_two(name: &str, workers: [u32; 2]) -> Result<(), String> {
    let servers = [with_worker(&format!("{name}_1"), workers[0]), with_worker(&format!("{name}_2"), workers[1])];
    let [one, two] = &servers;
    run(one, "INSERT INTO orders (customer) SELECT 'before' FROM generate_series(1, 100)");
    servers.iter().for_each(|server| run(server, GUARD));
    subscribe(two, one, if both_ways() { "WITH (origin = none)" } else { "" });
    wait("the first copy", two, || count(two, "true") == 100)?;
    if both_ways() {
        subscribe(one, two, "WITH (origin = none, copy_data = false)");
    }
    let insert = "INSERT INTO orders (customer) SELECT 'after' FROM generate_series(1, 500)";
    std::thread::scope(|scope| servers.iter().for_each(|server| drop(scope.spawn(|| run(server, insert)))));
    let receivers = if both_ways() { &servers[..] } else { &servers[1..] };
    for server in receivers {
        let done = || count(server, "customer = 'after'") == 1_000 || refusals(server) > 0;
        wait("replication", server, done)?;
        ensure!(refusals(server) == 0, "a row is refused");
        ensure!(count(server, "customer = 'before'") == 100, "rows from before are missing");
    }
    Ok(())
}

#[test]
fn no_row_of_a_server_with_another_worker_id_is_refused() {
    check_two("guard_two", [1, 2]).unwrap();
}

#[test]
fn rows_of_two_servers_with_one_worker_id_are_refused_caught() {
    assert_caught(check_two("guard_two_twins", [1, 1]), "a row is refused");
}

/// Rows that were issued before the guard was created pass, whether they are copied or replicated. Rows that were issued afterwards
/// are refused also while they are copied. The publisher has been given the rows of the subscriber, for example by a copy.
fn check_older(name: &str, fault: Option<&str>) -> Result<(), String> {
    let (one, two) =
        (with_worker(&format!("{name}_1"), 1), server(&format!("{name}_2"), |builder| builder.fault_if(fault)));
    run(&one, "INSERT INTO orders (customer) SELECT 'old' FROM generate_series(1, 50)");
    let late: i64 = one.connect().one("SELECT snowflake_nextval()");
    run(&two, GUARD);
    subscribe(&two, &one, "");
    let done = || count(&two, "customer = 'old'") == 50 || refusals(&two) > 0;
    wait("the first copy", &two, done)?;
    ensure!(refusals(&two) == 0, "an older row is refused");
    run(&one, &format!("INSERT INTO orders VALUES ({late}, 'late')"));
    wait("replication", &two, || count(&two, "customer = 'late'") == 1)?;

    // The table is copied again, after rows of the subscriber itself have got to the publisher.
    run(&two, "DROP SUBSCRIPTION sub");
    run(&two, "INSERT INTO orders (customer) SELECT 'own' FROM generate_series(1, 10)");
    let own: Vec<i64> = two.connect().all("SELECT id FROM orders WHERE customer = 'own'");
    own.iter().for_each(|id| run(&one, &format!("INSERT INTO orders VALUES ({id}, 'own')")));
    run(&two, "TRUNCATE orders");
    subscribe(&two, &one, "");
    wait("a refusal", &two, || refusals(&two) > 0)?;
    ensure!(count(&two, "true") == 0, "a part of the copy arrived");
    let mut steps = steps();
    for info in ["sql on the server", "conf", "sql on the server"] {
        steps.block(info);
    }
    run(&two, &steps.block("sql on the server"));
    wait("the copy", &two, || count(&two, "true") == 61)?;
    let ready = "SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate <> 'r'";
    wait("the end of the copy", &two, || two.connect().one(ready))?;
    run(&two, &steps.block("sql on the server"));
    assert!(steps.is_empty());
    run(&one, "INSERT INTO orders (customer) VALUES ('new')");
    let before = refusals(&two);
    wait("a refusal after the copy", &two, || refusals(&two) > before)
}

#[test]
fn older_rows_pass_and_newer_ones_are_refused_also_in_a_copy() {
    check_older("guard_older", None).unwrap();
}

#[test]
fn a_guard_without_a_first_id_refuses_older_rows_caught() {
    assert_caught(check_older("guard_from_zero", Some("GuardFromZero")), "an older row is refused");
}

/// Without `origin = none`, a row of a server comes back to it. It is refused, and stays as it is.
#[test]
fn a_row_that_comes_home_is_refused_and_not_changed() {
    let (one, two) = (with_worker("guard_home_1", 1), with_worker("guard_home_2", 2));
    [&one, &two].into_iter().for_each(|server| run(server, GUARD));
    subscribe(&two, &one, "WITH (copy_data = false)");
    subscribe(&one, &two, "WITH (copy_data = false)");
    run(&one, "INSERT INTO orders (customer) VALUES ('one')");
    wait("a refusal", &one, || refusals(&one) > 0).unwrap();
    assert!(one.log().contains(REFUSAL) && !one.log().contains(key_conflict()), "{}", one.log());
    assert_eq!((count(&one, "customer = 'one'"), count(&two, "customer = 'one'")), (1, 1));
    assert_eq!(refusals(&two), 0);
    if both_ways() {
        // As docs/errors.md says.
        run(&one, "ALTER SUBSCRIPTION sub SET (origin = none)");
        run(&two, "INSERT INTO orders (customer) VALUES ('two')");
        wait("replication", &one, || count(&one, "customer = 'two'") == 1).unwrap();
    }
}

/// A trigger on the subscriber inserts rows with new IDs of the subscriber into a table with a guard.
fn check_audit(name: &str, fault: Option<&str>) -> Result<(), String> {
    let (one, two) =
        (with_worker(&format!("{name}_1"), 2), server(&format!("{name}_2"), |builder| builder.fault_if(fault)));
    run(
        &two,
        "CREATE TABLE audit (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), order_id bigint);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql
             AS $$ BEGIN INSERT INTO public.audit (order_id) VALUES (NEW.id); RETURN NULL; END $$;
         CREATE TRIGGER note AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION note();
         ALTER TABLE orders ENABLE REPLICA TRIGGER note;
         SELECT snowflake_guard('orders'), snowflake_guard('audit')",
    );
    subscribe(&two, &one, "WITH (copy_data = false)");
    run(&one, "INSERT INTO orders (customer) SELECT 'one' FROM generate_series(1, 20)");
    let done = || two.connect().one::<i64>("SELECT count(*) FROM audit") == 20 || refusals(&two) > 0;
    wait("the rows of the trigger", &two, done)?;
    ensure!(refusals(&two) == 0, "a row of the subscriber is refused");
    Ok(())
}

#[test]
fn rows_that_a_trigger_on_the_subscriber_inserts_pass() {
    check_audit("guard_audit", None).unwrap();
}

#[test]
fn a_guard_that_refuses_the_rows_of_a_trigger_is_caught() {
    assert_caught(check_audit("guard_mistaken", Some("GuardMistakesOwn")), "a row of the subscriber is refused");
}

/// A server without a worker ID issues no IDs, so no other server can have issued one of its IDs.
#[test]
fn a_server_that_issues_no_ids_refuses_nothing() {
    let one = with_worker("guard_idle_1", 0);
    let mut two = with_worker("guard_idle_2", 0);
    run(&two, GUARD);
    two.unset("snowflake_pg.worker_id");
    two.restart(cluster::Stop::Fast);
    subscribe(&two, &one, "");
    run(&one, "INSERT INTO orders (customer) VALUES ('one')");
    wait("a row", &two, || count(&two, "true") == 1).unwrap();
    two.unset("shared_preload_libraries");
    two.restart(cluster::Stop::Fast);
    run(&one, "INSERT INTO orders (customer) VALUES ('one')");
    wait("a row", &two, || count(&two, "true") == 2).unwrap();
}

/// `pg_dump` dumps the guard with its first ID, and a restored table has the same guard.
#[test]
fn a_guard_is_dumped_and_restored() {
    let server = with_worker("guard_dump", 1);
    run(
        &server,
        "CREATE TABLE parts (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
         CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (MAXVALUE);
         SELECT snowflake_guard('orders'), snowflake_guard('parts'); INSERT INTO orders DEFAULT VALUES;
         INSERT INTO parts DEFAULT VALUES",
    );
    server.restore_dump("postgres", "restored");
    let guards = "SELECT concat_ws(' ', tgrelid::regclass, tgenabled, encode(tgargs, 'escape'), tgparentid <> 0)
                  FROM pg_trigger WHERE tgname = 'snowflake_guard' ORDER BY 1";
    let before: Vec<String> = server.connect().all(guards);
    assert_eq!(before.len(), 3, "{before:?}");
    assert_eq!(server.connect_to("restored").all::<String>(guards), before);
}
