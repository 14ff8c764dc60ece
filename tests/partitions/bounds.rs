//! Partitions by time: their bounds meet, each row is in the partition of its time, creating them again is no error, and queries
//! by time read only the partitions that can have rows.

use std::thread;

use cluster::{Answer, Client, Cluster, assert_caught, ensure, sqlstate, waiting};

/// The bounds of a table's partitions, in order.
const BOUNDS: &str = "
    CREATE FUNCTION bounds(parent regclass) RETURNS TABLE (partition regclass, from_id bigint, until_id bigint) LANGUAGE sql AS $$
        SELECT inhrelid, bound[1]::bigint, bound[2]::bigint
        FROM pg_inherits JOIN pg_class ON oid = inhrelid,
             regexp_match(pg_get_expr(relpartbound, oid), '^FOR VALUES FROM \\(''?(\\d+)''?\\) TO \\(''?(\\d+)''?\\)$') AS bound
        WHERE inhparent = parent ORDER BY 2 $$";

/// Ways to create a partition for each of eleven days from 2024-03-05 on. On one of them, America/New_York loses an hour.
const WAYS: [(&str, &str); 3] = [
    (
        "by hand",
        "DO $$ BEGIN
             FOR n IN 0..10 LOOP
                 EXECUTE format('CREATE TABLE day_%s PARTITION OF days FOR VALUES FROM (%s) TO (%s)', n,
                     snowflake_min_id((timestamp '2024-03-05' + n * interval '1 day') AT TIME ZONE 'UTC'),
                     snowflake_min_id((timestamp '2024-03-06' + n * interval '1 day') AT TIME ZONE 'UTC'));
             END LOOP;
         END $$",
    ),
    (
        "by their bounds",
        "DO $$ DECLARE part record; BEGIN
             FOR part IN SELECT * FROM snowflake_partition_bounds('2024-03-05 00:00+00', '2024-03-16 00:00+00', '1 day') LOOP
                 EXECUTE format('CREATE TABLE %I PARTITION OF days FOR VALUES FROM (%s) TO (%s)',
                     'day_' || part.from_id, part.from_id, part.until_id);
             END LOOP;
         END $$",
    ),
    ("by one call", "SELECT snowflake_create_partitions('days', '1 day', 11, '2024-03-05 17:00+00')"),
];

fn check_days(session: &mut Client, make: &str) -> Result<(), String> {
    session.run("DROP TABLE IF EXISTS days; CREATE TABLE days (id bigint PRIMARY KEY) PARTITION BY RANGE (id)");
    session.run(make);
    let days: i64 = session.one("SELECT count(*) FROM bounds('days')");
    ensure!(days == 11, "{days} partitions, not 11");
    let apart: i64 = session.one(
        "SELECT count(*) FROM (SELECT from_id, lag(until_id) OVER (ORDER BY from_id) AS before FROM bounds('days')) AS pairs
         WHERE from_id <> before",
    );
    ensure!(apart == 0, "{apart} bounds do not meet");
    // The first and the last ID of each day, and a row every 37 minutes between them.
    let inserted = session.batch_execute(
        "INSERT INTO days
             SELECT snowflake_encode(at, 5, 9) FROM generate_series('2024-03-05 00:00:01+00',
                 timestamptz '2024-03-15 23:59:59+00', interval '37 minutes') AS at
             UNION SELECT snowflake_min_id(at) FROM generate_series(timestamp '2024-03-05', '2024-03-15', '1 day') AS day,
                 LATERAL (SELECT day AT TIME ZONE 'UTC' AS at) AS ats
             UNION SELECT snowflake_max_id(at - interval '1 us') FROM generate_series(timestamp '2024-03-06', '2024-03-16',
                 '1 day') AS day, LATERAL (SELECT day AT TIME ZONE 'UTC' AS at) AS ats",
    );
    ensure!(inserted.is_ok(), "a row has no partition: {:?}", inserted.err());
    let astray: i64 = session.one(
        "SELECT count(*) FROM days JOIN bounds('days') ON tableoid = partition
         WHERE date_trunc('day', snowflake_timestamp(id), 'UTC') <> date_trunc('day', snowflake_timestamp(from_id), 'UTC')",
    );
    ensure!(astray == 0, "{astray} rows lie in the partition of another day");
    Ok(())
}

#[test]
fn every_row_lies_in_the_partition_of_its_day() {
    let (_server, mut session) = Cluster::builder("partitions").start_session();
    session.run(BOUNDS);
    for zone in ["UTC", "America/New_York", "Pacific/Auckland"] {
        session.run(&format!("SET timezone = '{zone}'"));
        for (way, make) in WAYS {
            check_days(&mut session, make).unwrap_or_else(|reason| panic!("{way}, {zone}: {reason}"));
        }
    }
    // The negative controls: bounds that do not meet, the session's days, and the last ID of a tick instead of its first. In the
    // last two, the first partition begins a day earlier, so that each row has a partition.
    session.run("SET timezone = 'America/New_York'");
    let by_hand = WAYS[0].1;
    let gap = by_hand.replace("'2024-03-06'", "'2024-03-05 23:59:59.999'");
    assert_caught(check_days(&mut session, &gap), "bounds do not meet");
    let wide = by_hand.replace("'2024-03-05' + n", "'2024-03-05' + (CASE n WHEN 0 THEN -1 ELSE n END)");
    let local = wide.replace(" AT TIME ZONE 'UTC'", "::timestamptz");
    assert_caught(check_days(&mut session, &local), "lie in the partition of another day");
    let late = wide.replace("snowflake_min_id", "snowflake_max_id");
    assert_caught(check_days(&mut session, &late), "lie in the partition of another day");
}

#[test]
fn hours_weeks_and_months_begin_where_they_do_in_utc() {
    let (_server, mut session) = Cluster::builder("partitions_calendar").start_session();
    session.run(BOUNDS);
    for zone in ["UTC", "America/New_York"] {
        session.run(&format!("SET timezone = '{zone}'"));
        // The first partition begins with the interval that contains the given time, and each name is the beginning of its
        // partition.
        for (step, names) in [
            ("1 hour", ["20240310_0500", "20240310_0600", "20240310_0700"]),
            ("15 minutes", ["20240310_0545", "20240310_0600", "20240310_0615"]),
            ("1 day", ["20240310", "20240311", "20240312"]),
            ("1 week", ["20240304", "20240311", "20240318"]),
            ("1 month", ["20240301", "20240401", "20240501"]),
            ("3 months", ["20240101", "20240401", "20240701"]),
        ] {
            session.run("CREATE TABLE p (id bigint) PARTITION BY RANGE (id)");
            let made: Vec<String> = session
                .all(&format!("SELECT snowflake_create_partitions('p', '{step}', 3, '2024-03-10 05:47+00')::text"));
            assert_eq!(made, names.map(|name| format!("p_{name}")), "{step}");
            // The first partition begins at the time in its name.
            let begin: String = session.one(
                "SELECT to_char(min(snowflake_timestamp(from_id)) AT TIME ZONE 'UTC', 'YYYYMMDD_HH24MI') FROM bounds('p')",
            );
            assert!(begin.starts_with(names[0]), "{step} begins at {begin}");
            session.run("DROP TABLE p");
        }
    }
}

/// Arguments that snowflake_create_partitions() refuses, with SQLSTATE, message, detail and hint. A `%` stands for any text.
const REFUSED: &str = r#"
'p', '1 day', 0 | 22023 | count 0 is out of range | The count must be from 1 to 1000. | Pass a count in that range.
'p', '1 day', -1 | 22023 | count -1 is out of range | The count must be from 1 to 1000. | Pass a count in that range.
'p', '1 day', 1001 | 22023 | count 1001 is out of range | The count must be from 1 to 1000. | For more partitions, %
'p', '0', 1 | 22023 | interval cannot be used as the length of a partition | The interval must be greater than zero. | Pass %
'p', '-1 day', 1 | 22023 | interval cannot be used as the length of a partition | The interval must be greater than zero. | Pass %
'p', '1 month 1 day', 1 | 22023 | interval cannot be used as the length of a partition | Months cannot be combined with % | Pass %
'p', '1 month -1 day', 1 | 22023 | interval cannot be used as the length of a partition | Months cannot be combined with % | Pass %
'p', '30 seconds', 1 | 22023 | interval cannot be used as the length of a partition | The interval must be a whole % | Pass %
'p', '1 us', 1 | 22023 | interval cannot be used as the length of a partition | The interval is shorter than a tick of % | Pass %
'p', '1 day', 1, '2010-11-04 01:00+00' | 22023 | time 2010-11-04T01:00:00+00:00 is outside the % | IDs with this layout and epoch % | Pass %
'p', '1 month', 1, '2080-07-11 00:00+00' | 22023 | time 2080-07-11T00:00:00+00:00 is outside % | IDs with this layout and % | Pass %
'p', '1 day', 1, 'infinity' | 22023 | time infinity is outside the range of % | IDs with this layout % | Pass a time in that %
4294967290::oid, '1 day', 1 | 42P01 | relation with OID 4294967290 does not exist | | Pass the name of an existing table.
repeat('n', 55)::regclass, '1 day', 1 | 42622 | name "nnn% | A name can be at most 63 bytes long. | Give the partitioned table a %
'plain', '1 day', 1 | 42809 | "public.plain" is not partitioned by ranges of IDs | The table must be % | Pass a table that %
'p', '12 hours', 3, '2024-02-28 12:00+00' | 42P17 | partition "p_20240229_0000" would overlap partition "there" | |
"#;

#[test]
fn what_cannot_be_made_is_refused_and_nothing_is() {
    let (_server, mut session) = Cluster::builder("partitions_refused").start_session();
    session.run(BOUNDS);
    session.run(&format!(
        "CREATE TABLE p (id bigint) PARTITION BY RANGE (id); CREATE TABLE plain (id bigint);
         CREATE TABLE {} (id bigint) PARTITION BY RANGE (id);
         SELECT snowflake_create_partitions('p', '1 day', 1, '2024-02-29 00:00+00');
         ALTER TABLE p_20240229 RENAME TO there;
         CREATE ROLE guest; CREATE ROLE writer; GRANT SELECT ON p TO guest; GRANT SELECT, UPDATE ON p TO writer;
         GRANT CREATE ON SCHEMA public TO guest, writer",
        "n".repeat(55)
    ));
    for line in REFUSED.trim().lines() {
        let mut parts = line.split('|').map(str::trim);
        let sql = format!("SELECT snowflake_create_partitions({})", parts.next().expect("arguments"));
        let [code, message, detail, hint] = session.error(&sql);
        for (found, expected) in [code, message, detail, hint].iter().zip(parts) {
            let so = expected.split_once('%').map_or(found == expected, |(begin, _)| found.starts_with(begin));
            assert!(so, "{sql}: {found:?}, not {expected:?}");
        }
        assert_eq!(session.one::<i64>("SELECT count(*) FROM pg_inherits"), 1, "{sql} has made something");
    }
    for (role, message) in [("guest", "permission denied for table p"), ("writer", "must be owner of table p")] {
        session.run(&format!("SET ROLE {role}"));
        let refusal = session.refusal("SELECT snowflake_create_partitions('p', '1 day', 1)");
        assert_eq!(refusal, ("42501".into(), message.into()));
        session.run("RESET ROLE");
    }
}

/// The first interval can begin before the epoch, and the last can end after the layout. The range of bounds cannot.
#[test]
fn partitions_begin_and_end_with_the_layout() {
    let mut upper = String::new();
    for (layout, end, last_id) in [
        ("41:10:12", "2080-07-10 17:30:30.209", i64::MAX),
        ("40:10:12", "2045-09-06 21:36:42.433", (1 << 62) - 1),
        ("30:10:12@1s", "2044-11-12 15:19:58.657", (1 << 52) - 1),
    ] {
        let (_server, mut session) =
            Cluster::builder("partitions_end").set("snowflake_pg.layout", layout).start_session();
        let bounds = |from: &str, until: &str| {
            format!("SELECT from_id, until_id FROM snowflake_partition_bounds({from}, {until}, '1 month') ORDER BY 1")
        };
        let (epoch, last) = ("timestamptz '2010-11-04 01:42:54.657+00'", format!("timestamptz '{end}+00'"));
        for (from, until) in [
            (format!("{epoch} - interval '1 us'"), format!("{epoch} + interval '1 day'")),
            (format!("{last} - interval '1 day'"), format!("{last} + interval '1 us'")),
            (epoch.into(), "'infinity'".into()),
            ("'-infinity'".into(), last.clone()),
        ] {
            assert_eq!(session.code(&bounds(&from, &until)).as_deref(), Some("22023"), "{layout}: {from} .. {until}");
        }
        let rows = session.query(&bounds(epoch, &last), &[]).expect("the range of the layout");
        assert_eq!(rows[0].get::<_, i64>(0), 0);
        assert_eq!(rows[rows.len() - 1].get::<_, Option<i64>>(1), last_id.checked_add(1), "{layout}");

        session.run("CREATE TABLE p (id bigint) PARTITION BY RANGE (id)");
        for (interval, count, from) in [("1 year", 60, epoch), ("1 year", 10, &format!("{last} - interval '8 years'"))]
        {
            let make = format!("SELECT snowflake_create_partitions('p', '{interval}', {count}, {from})");
            session.batch_execute(&make).unwrap_or_else(|e| panic!("{layout}: {make}: {e:?}"));
            assert_eq!(session.all::<String>(&format!("{make}::text")), [""; 0], "{layout}: made again");
        }
        // Both ends have a partition.
        session.run(&format!("INSERT INTO p VALUES (0), ({last_id})"));
        upper += &session.one::<String>(
            "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relispartition ORDER BY relname DESC LIMIT 1",
        );
    }
    assert_eq!(upper.matches("TO (MAXVALUE)").count(), 1, "{upper}");
}

/// Two sessions create the same partitions at the same time. The second waits for the first and finds its partitions. `make`
/// creates the partitions of p for COUNT days from 2024-02-01 on.
fn check_two_at_once(server: &Cluster, make: &str) -> Result<(), String> {
    let (mut first, mut second, mut watch) = (server.session(), server.session(), server.session());
    first.run("DROP TABLE IF EXISTS p; CREATE TABLE p (id bigint) PARTITION BY RANGE (id)");
    first.run(&format!("BEGIN; {}", make.replace("COUNT", "5")));
    let later = make.replace("COUNT", "7");
    let second = thread::spawn(move || second.batch_execute(&later).map_err(|error| sqlstate(&error)));
    ensure!(waiting(&mut watch, || second.is_finished()), "the second never asks");
    first.run("COMMIT");
    second.join().expect("a thread ends").map_err(|error| format!("the second session failed: {error:?}"))?;
    let made: i64 = watch.one("SELECT count(*) FROM pg_inherits WHERE inhparent = 'p'::regclass");
    ensure!(made == 7, "{made} partitions, not 7");
    Ok(())
}

#[test]
fn partitions_that_are_there_are_no_error() {
    let (server, mut session) = Cluster::builder("partitions_again").start_session();
    let create = "SELECT snowflake_create_partitions('p', '1 day', COUNT, '2024-02-01 00:00+00')";
    // With wal_level minimal, a transaction that only locks has no transaction ID. Its snapshot could be mistaken for a current
    // one.
    let minimal =
        Cluster::builder("partitions_minimal").set("wal_level", "minimal").set("max_wal_senders", "0").start();
    for server in [&server, &minimal] {
        check_two_at_once(server, create).unwrap();
    }
    // The negative control: check first, then create.
    let looks = "DO $$ DECLARE part record; BEGIN
        FOR part IN SELECT *, 'p_' || from_id AS name FROM snowflake_partition_bounds('2024-02-01 00:00+00',
                timestamptz '2024-02-01 00:00+00' + COUNT * interval '1 day', '1 day') LOOP
            IF to_regclass(part.name) IS NULL THEN
                EXECUTE format('CREATE TABLE %I PARTITION OF p FOR VALUES FROM (%s) TO (%s)', part.name, part.from_id,
                    part.until_id);
            END IF;
        END LOOP;
    END $$";
    assert_caught(check_two_at_once(&server, looks), "the second session failed");

    // Again, with a larger count, and with a partition that was created under another name.
    session.run("DROP TABLE p; CREATE TABLE p (id bigint) PARTITION BY RANGE (id)");
    let bounds = "SELECT format('CREATE TABLE mine PARTITION OF p FOR VALUES FROM (%s) TO (%s)', from_id, until_id)
        FROM snowflake_partition_bounds('2024-02-02 00:00+00', '2024-02-03 00:00+00', '1 day')";
    let mine: String = session.one(bounds);
    session.run(&mine);
    let mut made = |count: &str| {
        session.all::<String>(&format!("SELECT made::text FROM ({create}) AS p(made)").replace("COUNT", count))
    };
    assert_eq!(made("3"), ["p_20240201", "p_20240203"]);
    assert_eq!(made("3"), [""; 0]);
    assert_eq!(made("2"), [""; 0]);
    assert_eq!(made("5"), ["p_20240204", "p_20240205"]);
}

/// The plan reads `kept` of the 30 partitions. `when` says whether the planner or the executor prunes the others.
fn check_pruned(session: &mut Client, query: &str, kept: usize, when: &str) -> Result<(), String> {
    let plan = session.plan(query);
    let read = plan.matches("Seq Scan on p_").count();
    ensure!(read == kept, "{read} partitions are read, not {kept}: {query}\n{plan}");
    let so = match when {
        "planner" => !plan.contains("Subplans Removed"),
        _ => plan.contains(&format!("Subplans Removed: {}", 30 - kept)),
    };
    ensure!(so, "not by the {when}: {query}\n{plan}");
    Ok(())
}

fn check_pruning(session: &mut Client) -> Result<(), String> {
    let mut midnight = |ago: u32| {
        session.one::<String>(&format!("SELECT quote_literal(date_trunc('day', now(), 'UTC') - interval '{ago} days')"))
    };
    let [a, b, today] = [3, 1, 0].map(&mut midnight);
    for (condition, kept, when) in [
        (format!("id >= snowflake_min_id({a}, '41:10:12') AND id < snowflake_min_id({b}, '41:10:12')"), 2, "planner"),
        (format!("id BETWEEN snowflake_min_id({a}, 'twitter') AND snowflake_max_id({a}, 'twitter')"), 1, "planner"),
        (format!("id >= snowflake_min_id({a}) AND id < snowflake_min_id({b})"), 2, "executor"),
        (format!("snowflake_between(id, {a}, {b})"), 2, "executor"),
        (format!("snowflake_between(id, {today}, 'infinity')"), 4, "executor"),
        ("id >= snowflake_min_id(now() - interval '1 day')".into(), 5, "executor"),
        ("id >= snowflake_min_id(now() - interval '1 day', '41:10:12')".into(), 5, "executor"),
    ] {
        check_pruned(session, &format!("SELECT * FROM p WHERE {condition}"), kept, when)?;
    }
    for (mode, when) in [("force_custom_plan", "planner"), ("force_generic_plan", "executor")] {
        let prepare = "PREPARE since(timestamptz) AS SELECT * FROM p WHERE id >= snowflake_min_id($1, '41:10:12');
             PREPARE range(timestamptz) AS SELECT * FROM p WHERE snowflake_between(id, $1, 'infinity')";
        session.run(&format!("SET plan_cache_mode = {mode}; {prepare}"));
        check_pruned(session, &format!("EXECUTE since({today})"), 4, when)?;
        check_pruned(session, &format!("EXECUTE range({today})"), 4, "executor")?;
        session.run("DEALLOCATE ALL; RESET plan_cache_mode");
    }
    Ok(())
}

#[test]
fn partitions_of_other_times_are_left_out() {
    let (_server, mut session) = Cluster::builder("partitions_pruning").start_session();
    // 26 days before today, today, and three more days.
    session.run(
        "CREATE TABLE p (id bigint DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
         SELECT snowflake_create_partitions('p', '1 day', 30, now() - interval '26 days');
         INSERT INTO p VALUES (DEFAULT)",
    );
    check_pruning(&mut session).unwrap();
    // The negative controls: functions that the planner, or even the executor at its start, cannot evaluate.
    for (function, volatility, reason) in [
        ("min_id(timestamptz, text)", "VOLATILE", "30 partitions are read"),
        ("min_id(timestamptz, text)", "STABLE", "not by the planner"),
        ("min_id(timestamptz)", "VOLATILE", "30 partitions are read"),
        ("first_id_from(timestamptz)", "VOLATILE", "partitions are read, not 2"),
    ] {
        let is = if function.contains("text") { "IMMUTABLE" } else { "STABLE" };
        session.run(&format!("ALTER FUNCTION snowflake_{function} {volatility}"));
        assert_caught(check_pruning(&mut session), reason);
        session.run(&format!("ALTER FUNCTION snowflake_{function} {is}"));
    }
    check_pruning(&mut session).unwrap();
}
