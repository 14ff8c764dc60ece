//! The planner inlines the portable functions: a time range is a range of the primary key.

use cluster::{Answer, Client, assert_caught, ensure};

use crate::server::{script, twin};

/// Ten days of orders, one a minute, in a plain table and in a table with a partition for each day.
const ORDERS: &str = "
    CREATE TABLE orders (id bigint PRIMARY KEY, n int);
    CREATE TABLE orders_by_day (id bigint PRIMARY KEY, n int) PARTITION BY RANGE (id);
    DO $$
    BEGIN
        FOR day IN 0..9 LOOP
            EXECUTE format('CREATE TABLE orders_day_%s PARTITION OF orders_by_day FOR VALUES FROM (%s) TO (%s)', day,
                snowflake_min_id(timestamptz '2024-01-01Z' + day * interval '1 day'),
                snowflake_min_id(timestamptz '2024-01-02Z' + day * interval '1 day'));
        END LOOP;
    END $$;
    INSERT INTO orders SELECT snowflake_encode(timestamptz '2024-01-01Z' + n * interval '1 minute', 1, 0), n
        FROM generate_series(0, 14399) AS n;
    INSERT INTO orders_by_day SELECT * FROM orders;
    ANALYZE orders, orders_by_day";

/// Checks the plans of queries with constant bounds, with bounds that are known at execution, and of a prepared statement.
fn check(session: &mut Client) -> Result<(), String> {
    let hours = "'2024-01-05 06:00Z', '2024-01-05 08:00Z'";
    let plan = session.plan(&format!("SELECT * FROM orders WHERE snowflake_between(id, {hours})"));
    ensure!(plan.contains("orders_pkey"), "no index:\n{plan}");
    // The bounds are constants in the plan.
    ensure!(
        plan.contains("Index Cond: ((id >= '1743") && !plan.contains("snowflake_") && !plan.contains("Filter"),
        "not two constants:\n{plan}"
    );
    let estimate: f64 = plan.split("rows=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    ensure!((60.0..=240.0).contains(&estimate), "120 rows are estimated as {estimate}:\n{plan}");

    let query = format!("SELECT count(*) FROM orders_by_day WHERE snowflake_between(id, {hours})");
    let plan = session.plan(&query);
    ensure!(plan.contains("orders_day_4") && !plan.contains("orders_day_3"), "partitions are not pruned:\n{plan}");
    ensure!(session.one::<i64>(&query) == 120, "wrong rows");

    let relative =
        "timestamptz '2024-01-05 06:00Z' + (now() - now()), timestamptz '2024-01-05 08:00Z' + (now() - now())";
    let query = format!("SELECT count(*) FROM orders_by_day WHERE snowflake_between(id, {relative})");
    let plan = session.plan(&query);
    ensure!(plan.contains("Subplans Removed: 9") && !plan.contains("Filter"), "not pruned at execution:\n{plan}");
    ensure!(session.one::<i64>(&query) == 120, "wrong rows");

    session
        .run(
            "SET plan_cache_mode = force_generic_plan;
         PREPARE hours (timestamptz, timestamptz) AS SELECT count(*) FROM orders_by_day WHERE snowflake_between(id, $1, $2)",
        );
    let plan = session.plan(&format!("EXECUTE hours ({hours})"));
    ensure!(plan.contains("Subplans Removed: 9"), "a prepared statement is not pruned:\n{plan}");
    session.run("DEALLOCATE hours; RESET plan_cache_mode");
    Ok(())
}

#[test]
fn a_time_range_is_an_index_range_without_the_library() {
    let (_server, mut session) = twin("plans", &script("plans"));
    session.run(ORDERS);
    check(&mut session).unwrap();
    // Also a decoded column consists of operators only.
    for call in ["snowflake_timestamp(id)", "snowflake_timestamp(id, 'discord')", "snowflake_to_text(id)"] {
        let plan = session.plan(&format!("(VERBOSE) SELECT {call} FROM orders"));
        assert!(!plan.contains(call.split('(').next().unwrap()), "{plan}");
    }
    // The control: a function that is not inlined. STRICT alone does not prevent it, because the operators are strict, too.
    session.run("ALTER FUNCTION snowflake_between STRICT VOLATILE");
    assert_caught(check(&mut session), "no index");
}

#[test]
fn an_index_on_the_time_of_an_id_is_used() {
    let (_server, mut session) = twin("plans_index", &script("plans_index"));
    session.run(ORDERS);
    // The functions with a layout are IMMUTABLE.
    session.run(
        "CREATE INDEX ON orders (snowflake_timestamp(id, '41:10:12'));
         ALTER TABLE orders ADD created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, '41:10:12')) STORED;
         ANALYZE orders",
    );
    let plan = session.plan("SELECT * FROM orders WHERE snowflake_timestamp(id, '41:10:12') < '2024-01-01 01:00Z'");
    assert!(plan.contains("Index Cond"), "{plan}");
    assert_eq!(session.one::<i64>("SELECT count(*) FROM orders WHERE created_at < '2024-01-01 01:00Z'"), 60);
}
