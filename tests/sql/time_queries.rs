//! Rows found by time are those whose ID has that time: at every kind of boundary, through the index, and page by page, with
//! accurate estimates.

use cluster::{Answer, Client, Cluster, assert_caught, check_increasing, ensure};

/// A million rows, four to a tick, over six weeks, with fewer each day. Each tick has its first and its last possible ID, so that
/// a bound that is off by one is noticed.
const EVENTS: &str = "
    CREATE TABLE events (id bigint PRIMARY KEY, n int);
    INSERT INTO events
        SELECT snowflake_encode(timestamptz '2024-01-01 00:00:00+00' + ms * interval '1 ms',
                                (ARRAY[0, 7, 500, 1023])[n % 4 + 1], (ARRAY[0, 9, 17, 4095])[n % 4 + 1]), n
        FROM generate_series(0, 999999) AS n,
             LATERAL (SELECT n / 4 AS tick) AS ticks,
             LATERAL (SELECT tick * 4000 + tick::bigint * tick / 25 + tick * 79::bigint % 2000 AS ms) AS instants;
    ANALYZE events";

/// The IDs of the first and last ticks of the layout, and of ticks in between.
const CORNERS: &str = "
    CREATE TABLE corners (id bigint PRIMARY KEY);
    INSERT INTO corners
        SELECT tick * 4194304 + low
        FROM unnest(ARRAY[0, 1, 2, 415257025343, 415257025344, 2199023255549, 2199023255550, 2199023255551]) AS tick,
             unnest(ARRAY[0, 1, 4095, 4096, 4194303]) AS low";

/// The ends of a range on the table `corners`: a description, and the SQL.
const ENDS: [(&str, &str); 15] = [
    ("inside a tick", "epoch + interval '1.5 ms'"),
    ("a microsecond after a tick begins", "epoch + interval '1.001 ms'"),
    ("a microsecond before a tick begins", "epoch + interval '0.999 ms'"),
    ("at a tick", "epoch + interval '1 ms'"),
    ("at the epoch", "epoch"),
    ("a microsecond after the epoch", "epoch + interval '1 us'"),
    ("a microsecond before the epoch", "epoch - interval '1 us'"),
    ("long before the epoch", "'1999-01-01 00:00:00+00'"),
    ("minus infinity", "'-infinity'"),
    ("in the last tick", "epoch + 2199023255551 * interval '1 ms' + interval '1 us'"),
    ("at the last tick", "epoch + 2199023255551 * interval '1 ms'"),
    ("a microsecond before the end", "epoch + 2199023255552 * interval '1 ms' - interval '1 us'"),
    ("at the end", "epoch + 2199023255552 * interval '1 ms'"),
    ("long after the end", "'2200-01-01 00:00:00+00'"),
    ("infinity", "'infinity'"),
];

const EPOCH: &str = "timestamptz '2010-11-04 01:42:54.657+00'";

/// The number of rows, and a sum that changes with any of them.
fn rows(session: &mut Client, table: &str, condition: &str) -> Result<String, String> {
    let query =
        format!("SELECT format('%s rows, sum %s', count(*), sum(hashint8(id)::bigint)) FROM {table} WHERE {condition}");
    let row = session.query_one(&query, &[]).map_err(|e| format!("{condition}: {e:?}"))?;
    Ok(row.get(0))
}

/// `between` finds the same rows as a comparison with the time of each row.
fn check_range(
    session: &mut Client,
    table: &str,
    between: &str,
    from: (&str, &str),
    until: (&str, &str),
) -> Result<(), String> {
    let by_id = rows(session, table, &format!("{between}(id, {}, {})", from.1, until.1))?;
    let by_time = format!("snowflake_timestamp(id) >= {} AND snowflake_timestamp(id) < {}", from.1, until.1);
    let by_time = rows(session, table, &by_time)?;
    ensure!(by_id == by_time, "from {} until {}: {by_id}, not {by_time}", from.0, until.0);
    Ok(())
}

fn check_ranges(session: &mut Client, between: &str) -> Result<(), String> {
    // The time of a tick with rows. Offsets lead to a tick a day later, and to ticks without rows.
    let tick: String =
        session.one("SELECT snowflake_timestamp(id)::text FROM events ORDER BY id OFFSET 500002 LIMIT 1");
    let at = |offset: &str| format!("(timestamptz '{tick}' + interval '{offset}')");
    let offsets = [
        ("inside a tick", "1 us", "1 day 999 us"),
        ("in the middle of ticks", "500 us", "1 day 500 us"),
        ("at the ends of ticks", "999 us", "1 ms"),
        ("at ticks", "0", "1 day"),
        ("of one tick", "0", "1 ms"),
        ("of a part of a tick", "1 us", "500 us"),
        ("a microsecond before ticks", "-1 us", "1 ms -1 us"),
        ("with equal bounds", "0", "0"),
        ("with equal bounds inside a tick", "500 us", "500 us"),
        ("reversed", "1 day", "0"),
        ("of an hour", "1 s", "1 hour 1 s"),
    ];
    for (label, from, until) in offsets {
        check_range(session, "events", between, (label, &at(from)), (label, &at(until)))?;
    }
    let ends =
        [("'-infinity'", "'infinity'"), ("'-infinity'", "TICK"), ("TICK", "'infinity'"), ("'2200-01-01'", "TICK")];
    for (from, until) in ends {
        let [from, until] = [from, until].map(|end| if end == "TICK" { at("1 us") } else { end.into() });
        check_range(session, "events", between, (&from, &from), (&until, &until))?;
    }
    for (from, from_sql) in ENDS {
        for (until, until_sql) in ENDS {
            let [from_sql, until_sql] = [from_sql, until_sql].map(|sql| sql.replace("epoch", EPOCH));
            check_range(session, "corners", between, (from, &from_sql), (until, &until_sql))?;
        }
    }
    Ok(())
}

#[test]
fn a_range_of_time_has_the_rows_of_that_time() {
    let (_server, mut session) = Cluster::builder("time_queries").start_session();
    session.run(&format!("{EVENTS}; {CORNERS}"));
    check_ranges(&mut session, "snowflake_between").unwrap();

    // The negative controls: rounded down, rounded up by a whole tick, and with an inclusive end.
    for (name, condition, reason) in [
        ("down", "id >= snowflake_min_id($2) AND id < snowflake_min_id($3)", "from inside a tick"),
        ("up", "id > snowflake_max_id($2) AND id <= snowflake_max_id($3)", "from at ticks"),
        ("closed", "id >= snowflake_first_id_from($2) AND id <= snowflake_first_id_from($3)", "with equal bounds"),
    ] {
        let function = format!(
            "CREATE FUNCTION {name}(bigint, timestamptz, timestamptz) RETURNS boolean LANGUAGE sql STABLE
             RETURN {}",
            condition.replace("id ", "$1 ")
        );
        session.run(&function);
        assert_caught(check_ranges(&mut session, name), reason);
    }
}

/// An hour, a day, a tenth of `events`, all rows before a time, and all rows after one.
const SIZES: [&str; 5] = [
    "'2024-01-20 10:00:00+00', '2024-01-20 11:00:00+00'",
    "'2024-01-25 00:00:00+00', '2024-01-26 00:00:00+00'",
    "'2024-01-03 00:00:00+00', '2024-01-04 12:00:00+00'",
    "'-infinity', '2024-01-06 00:00:00+00'",
    "'2024-02-05 00:00:00+00', 'infinity'",
];

fn check_plan(session: &mut Client, condition: &str) -> Result<(), String> {
    let query = format!("SELECT * FROM {condition}");
    let plan = session.plan(&query);
    let key = condition.split(' ').next().expect("a table");
    ensure!(plan.contains("Index Cond: (") && plan.contains(&format!("{key}_pkey")), "no index condition:\n{plan}");
    ensure!(!plan.contains("Filter"), "a filter is left:\n{plan}");
    let estimate: f64 = plan.split("rows=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    let truth = session.one::<i64>(&format!("SELECT count(*) FROM {condition}")) as f64;
    ensure!(truth > 0.0, "no rows where {condition}");
    ensure!(
        (truth / 2.0..=truth * 2.0).contains(&estimate),
        "{truth} rows are estimated as {estimate}, {condition}:\n{plan}"
    );
    Ok(())
}

fn check_plans(session: &mut Client) -> Result<(), String> {
    for range in SIZES {
        check_plan(session, &format!("events WHERE snowflake_between(id, {range})"))?;
    }
    let (from, until) = ("'2024-01-20 10:00:00+00'", "'2024-01-21 10:00:00+00'");
    for layout in ["", ", '41:10:12'"] {
        let first = |at: &str| format!("snowflake_min_id({at}{layout})");
        check_plan(session, &format!("events WHERE id >= {} AND id < {}", first(from), first(until)))?;
    }
    for age in ["1 hour", "1 day", "2 days 12 hours"] {
        check_plan(session, &format!("recent WHERE snowflake_between(id, now() - interval '{age}', 'infinity')"))?;
        check_plan(session, &format!("recent WHERE id >= snowflake_min_id(now() - interval '{age}')"))?;
    }
    Ok(())
}

#[test]
fn a_range_of_time_is_an_index_range_of_about_the_size_that_the_planner_expects() {
    let (_server, mut session) = Cluster::builder("time_plans").start_session();
    // One row every 8.64 s of the last 10 days, so that a day is a tenth.
    let recent = "CREATE TABLE recent (id bigint PRIMARY KEY);
        INSERT INTO recent
            SELECT snowflake_encode(now() - n * interval '8.64 s', 1, 0) FROM generate_series(0, 99999) AS n;
        ANALYZE recent";
    session.run(&format!("{EVENTS}; {recent}"));
    check_plans(&mut session).unwrap();

    // The negative controls, on the same data: by the time of each row, with a bound that the planner cannot use, and without
    // statistics.
    let hour = SIZES[0].replace(", ", " AND snowflake_timestamp(id) < ");
    let by_time = format!("events WHERE snowflake_timestamp(id) >= {hour}");
    assert_caught(check_plan(&mut session, &by_time), "no index condition");
    for (function, wrong, right) in [
        ("snowflake_first_id_from", "VOLATILE", "STABLE"),
        ("snowflake_last_id_before", "VOLATILE", "STABLE"),
        ("snowflake_between", "STRICT", "CALLED ON NULL INPUT"),
    ] {
        session.run(&format!("ALTER FUNCTION {function} {wrong}"));
        assert_caught(check_plans(&mut session), "no index condition");
        session.run(&format!("ALTER FUNCTION {function} {right}"));
    }
    check_plans(&mut session).unwrap();
    session.run("DELETE FROM pg_statistic WHERE starelid IN ('events'::regclass, 'recent'::regclass)");
    assert_caught(check_plans(&mut session), "rows are estimated as");
}

/// The IDs that a query returns, in order. They come as one array, because a million rows would be a million messages.
fn ids(session: &mut Client, query: &str) -> Vec<i64> {
    session.one(&format!("SELECT coalesce(array_agg(id), '{{}}') FROM ({query}) AS page"))
}

/// Reads all rows in pages. Each page begins after the last ID of the page before.
fn pages(session: &mut Client, first: &str, next: &str) -> Result<Vec<i64>, String> {
    // Not a multiple of the rows of a tick, so that pages end inside ticks.
    const PAGE: usize = 9_999;
    let mut found: Vec<i64> = Vec::new();
    let mut condition = first.to_string();
    loop {
        let page = ids(session, &format!("SELECT id FROM events WHERE {condition} LIMIT {PAGE}"));
        let Some(last) = page.last() else { return Ok(found) };
        // A condition that includes the last ID would return it forever.
        ensure!(page.first() != found.last(), "a row came twice: {last}");
        condition = next.replace("$1", &last.to_string());
        found.extend(page);
    }
}

fn check_paging(session: &mut Client, backwards: &str, forwards: &str) -> Result<(), String> {
    let all = ids(session, "SELECT id FROM events ORDER BY id");
    let mut found = pages(session, "true ORDER BY id DESC", backwards)?;
    found.reverse();
    check_increasing(&found).map_err(|reason| format!("backwards: {reason}"))?;
    ensure!(found == all, "backwards: {} rows, not {}", found.len(), all.len());

    // From a time that is in the middle of the table.
    let begin = "snowflake_first_id_from('2024-01-15 00:00:00+00')";
    let rest = ids(session, &format!("SELECT id FROM events WHERE id >= {begin} ORDER BY id"));
    ensure!(!rest.is_empty() && rest.len() < all.len(), "the time is not in the middle");
    let found = pages(session, &format!("id >= {begin} ORDER BY id"), forwards)?;
    check_increasing(&found).map_err(|reason| format!("forwards: {reason}"))?;
    ensure!(found == rest, "forwards: {} rows, not {}", found.len(), rest.len());

    let last = all[all.len() / 2];
    for page in [backwards, forwards] {
        let query = format!("SELECT id FROM events WHERE {page} LIMIT 100");
        for mode in ["force_custom_plan", "force_generic_plan"] {
            session
                .batch_execute(&format!("SET plan_cache_mode = {mode}; PREPARE page(bigint) AS {query}"))
                .map_err(|e| format!("{query}: {e:?}"))?;
            let plan = session.plan(&format!("EXECUTE page({last})"));
            session.run("DEALLOCATE page; RESET plan_cache_mode");
            ensure!(!plan.contains("Sort"), "the page is sorted:\n{plan}");
            ensure!(plan.contains("events_pkey on events") && plan.contains("Index Cond"), "no index scan:\n{plan}");
        }
    }
    Ok(())
}

#[test]
fn pages_that_follow_the_last_id_have_every_row_once_and_in_order() {
    let (_server, mut session) = Cluster::builder("time_paging").start_session();
    session.run(EVENTS);
    let (back, forth) = ("id < $1 ORDER BY id DESC", "id > $1 ORDER BY id");
    check_paging(&mut session, back, forth).unwrap();

    // The negative controls: the last row again, by the time of the last row, which other rows share, and in an order other than
    // the key's.
    assert_caught(check_paging(&mut session, "id <= $1 ORDER BY id DESC", forth), "a row came twice");
    assert_caught(check_paging(&mut session, back, "id >= $1 ORDER BY id"), "a row came twice");
    let by_time = "id > snowflake_max_id(snowflake_timestamp($1)) ORDER BY id";
    assert_caught(check_paging(&mut session, back, by_time), "forwards: ");
    assert_caught(check_paging(&mut session, back, "id > $1 ORDER BY id + 0"), "the page is sorted");
}
