//! A time range is a range of the primary key: the index is used, partitions are pruned, and estimates are close.

use cluster::{Answer, Client, Cluster, assert_caught, ensure, page};

/// Ten days of orders, one a minute, in a plain table and in a table with a partition for each day.
fn orders(session: &mut Client) {
    session.run(
        "CREATE TABLE orders (id bigint PRIMARY KEY, n int);
         CREATE TABLE orders_by_day (id bigint PRIMARY KEY, n int) PARTITION BY RANGE (id);
         DO $$
         BEGIN
             FOR day IN 0..9 LOOP
                 EXECUTE format('CREATE TABLE orders_day_%s PARTITION OF orders_by_day FOR VALUES FROM (%s) TO (%s)',
                     day,
                     snowflake_min_id(timestamptz '2024-01-01 00:00:00+00' + day * interval '1 day'),
                     snowflake_min_id(timestamptz '2024-01-02 00:00:00+00' + day * interval '1 day'));
             END LOOP;
         END $$;
         INSERT INTO orders
             SELECT snowflake_encode(timestamptz '2024-01-01 00:00:00+00' + n * interval '1 minute', 1, 0), n
             FROM generate_series(0, 14399) AS n;
         INSERT INTO orders_by_day SELECT * FROM orders;
         ANALYZE orders, orders_by_day",
    );
}

fn check_plans(session: &mut Client, between: &str) -> Result<(), String> {
    let hours = "'2024-01-05 06:00:00+00', '2024-01-05 08:00:00+00'";
    let plan = session.plan(&format!("SELECT * FROM orders WHERE {between}(id, {hours})"));
    ensure!(plan.contains("Index Cond: ((id >= ") && plan.contains("orders_pkey"), "no index condition:\n{plan}");
    ensure!(!plan.contains("Filter"), "a filter is left:\n{plan}");
    let estimate: f64 = plan.split("rows=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    ensure!((60.0..=240.0).contains(&estimate), "120 rows are estimated as {estimate}:\n{plan}");
    let found: i64 = session.one(&format!("SELECT count(*) FROM orders WHERE {between}(id, {hours})"));
    ensure!(found == 120, "{found} rows, not 120");

    let query = format!("SELECT count(*) FROM orders_by_day WHERE {between}(id, {hours})");
    let plan = session.plan(&query);
    ensure!(plan.contains("Subplans Removed: 9"), "partitions are not pruned at executor start:\n{plan}");
    let found: i64 = session.one(&query);
    ensure!(found == 120, "{found} rows of the partitioned table, not 120");

    // A whole day is one partition: its neighbours, which only touch the range, are pruned too.
    let plan = session.plan(&format!(
        "SELECT count(*) FROM orders_by_day WHERE {between}(id, '2024-01-05 00:00:00+00', '2024-01-06 00:00:00+00')"
    ));
    ensure!(plan.contains("Subplans Removed: 9"), "a neighbouring partition is not pruned:\n{plan}");

    // A generic plan, whose parameters are known only at execution.
    session.run(&format!(
        "SET plan_cache_mode = force_generic_plan;
         PREPARE hours(timestamptz, timestamptz) AS SELECT count(*) FROM orders_by_day WHERE {between}(id, $1, $2)"
    ));
    let plan = session.plan(&format!("EXECUTE hours({hours})"));
    ensure!(plan.contains("Subplans Removed: 9"), "a prepared statement is not pruned:\n{plan}");
    session.run("DEALLOCATE hours; RESET plan_cache_mode");
    Ok(())
}

#[test]
fn a_time_range_is_an_index_range_and_prunes_partitions() {
    let server = Cluster::builder("planner").start();
    let mut session = server.session();
    orders(&mut session);
    check_plans(&mut session, "snowflake_between").unwrap();
}

#[test]
fn a_volatile_bound_is_caught() {
    let server = Cluster::builder("planner_fault").start();
    let mut session = server.session();
    orders(&mut session);
    session.run("ALTER FUNCTION snowflake_last_id_before VOLATILE");
    assert_caught(check_plans(&mut session, "snowflake_between"), "no index condition");
}

#[test]
fn a_strict_between_is_caught() {
    let server = Cluster::builder("planner_strict").start();
    let mut session = server.session();
    orders(&mut session);
    session.run("ALTER FUNCTION snowflake_between STRICT");
    assert_caught(check_plans(&mut session, "snowflake_between"), "no index condition");
}

/// The partitions that a condition reads.
fn partitions_read(session: &mut Client, condition: &str) -> Vec<String> {
    let plan = session.plan(&format!("SELECT * FROM events WHERE {condition}"));
    let names = plan.lines().filter_map(|line| line.split_once(" on events_").map(|(_, rest)| rest));
    // A bitmap scan also has a line for its index.
    let names = names.map(|rest| rest.split(' ').next().expect("a name")).filter(|name| !name.ends_with("_pkey"));
    names.map(String::from).collect()
}

/// A range up to now reads no partition after tomorrow's. Tomorrow's can be read if the server was prepared before midnight.
fn check_up_to_now(session: &mut Client, condition: &str) -> Result<(), String> {
    let read = partitions_read(session, condition);
    ensure!(!read.is_empty() && read.len() <= 3, "read are {read:?}");
    let last: String = session.one("SELECT to_char(now() + interval '1 day', 'YYYYMMDD')");
    ensure!(read.iter().all(|name| *name <= last), "partitions made in advance are read: {read:?}");
    let (found, all): (i64, i64) = (
        session.one(&format!("SELECT count(*) FROM events WHERE {condition}")),
        session.one("SELECT count(*) FROM events"),
    );
    ensure!(found == all, "{found} of {all} rows");
    Ok(())
}

#[test]
fn a_range_up_to_now_reads_no_partition_that_was_made_in_advance() {
    let server = Cluster::builder("planner_up_to_now").start();
    let mut session = server.session();
    session.run(
        "CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
         SELECT snowflake_create_partitions('events', '1 day', 30, now() - interval '20 days');
         CREATE TABLE events_default PARTITION OF events DEFAULT;
         INSERT INTO events SELECT snowflake_nextval() FROM generate_series(1, 1000)",
    );
    // The form that the pages recommend.
    let bounded = "snowflake_between(id, now() - interval '1 day', now() + interval '1 minute')";
    for path in ["README.md", "docs/partitions.md"] {
        assert!(page(path).contains(bounded), "{path} recommends another");
    }
    assert!(page("docs/queries.md").contains(&bounded.replace("1 day", "1 hour")));
    check_up_to_now(&mut session, bounded).unwrap();
    check_up_to_now(&mut session, &bounded.replace("1 day", "1 hour")).unwrap();
    // The other form behaves as the pages say. It is also the control.
    let open = "snowflake_between(id, now() - interval '1 day', 'infinity')";
    let read = partitions_read(&mut session, open);
    assert!(read.len() >= 10 && read.contains(&"default".to_string()), "{read:?}");
    assert_caught(check_up_to_now(&mut session, open), "read are");
    let read = partitions_read(&mut session, "snowflake_between(id, '-infinity', now())");
    assert!(read.contains(&"default".to_string()), "{read:?}");
}
