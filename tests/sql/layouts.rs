//! Layouts on a live server: the bounds of partitions for any range, decoders in parallel workers and in indexes, and the change
//! of layout on a test server.

use cluster::{Answer, Chance, Client, Cluster, Stop, assert_caught, blocks, ensure, page};

/// The number of random ranges for each layout.
const RANGES: i64 = 1_000;

/// Layouts with their epoch, the length of their tick in microseconds, and the bits of their timestamp. Some have IDs up to the
/// largest `bigint`, one has the worker as the lowest field, and some have long ticks.
const LAYOUTS: [(&str, &str, i64, u32); 3] = [
    ("41:10:12", "2010-11-04 01:42:54.657Z", 1_000, 41),
    ("39:8s:16@10ms", "2020-02-29 23:59:59.999Z", 10_000, 39),
    ("28:12:13@1s", "2024-01-31 12:00:00.5Z", 1_000_000, 28),
];

/// Creates a table of ranges inside a layout, each with an interval that divides it into a few dozen steps at most.
fn ranges(session: &mut Client, chance: &mut Chance, (layout, epoch, tick, bits): (&str, &str, i64, u32)) {
    let end = tick << bits;
    let (month, day) = (31 * 86_400_000_000, 86_400_000_000);
    let mut rows = Vec::new();
    for n in 0..RANGES {
        let (months, days, micros) = match chance.between(0, 4) {
            0 => (chance.between(1, 30), 0, 0),
            1 => (0, chance.between(1, 400), 0),
            2 => (0, chance.between(0, 3), chance.between(tick, day)),
            3 => (0, 0, chance.between(tick, 5 * tick)),
            _ => (0, 0, tick * chance.between(1, 100_000)),
        };
        let length = months * month + days * day + micros;
        let from = match chance.between(0, 2) {
            0 => 0,
            1 => chance.between(0, end - 1),
            _ => (end - chance.between(1, 20 * length)).max(0),
        };
        let from = if chance.one_in(3) { from / tick * tick } else { from };
        // Also ranges that end before they begin or at their beginning, after a tick or two, and at the end of the layout.
        let until = match chance.between(0, 9) {
            0 => from - chance.between(0, length),
            1 => from + chance.between(0, 2 * tick),
            2 => from + length * chance.between(1, 30),
            3..=5 => end,
            _ => from + chance.between(0, 30) * length + chance.between(1, length),
        };
        let until = until.min(from + 40 * length).clamp(0, end);
        rows.push(format!("({n}, {from}, {until}, {months}, {days}, {micros})"));
    }
    session
        .batch_execute(&format!(
            "DROP TABLE IF EXISTS ranges;
             CREATE TABLE ranges AS
                 SELECT n, timestamptz '{epoch}' + \"from\" * interval '1 us' AS \"from\",
                     timestamptz '{epoch}' + until * interval '1 us' AS until,
                     make_interval(months => months, days => days) + micros * interval '1 us' AS step
                 FROM (VALUES {}) AS rows (n, \"from\", until, months, days, micros);
             -- From the last of a month, which chance may leave out.
             INSERT INTO ranges VALUES (-1, '2025-01-31Z', '2025-09-15Z', '1 month')",
            rows.join(", ")
        ))
        .unwrap_or_else(|e| panic!("{layout}: {e:?}"));
}

/// The parts into which `function` divides each range meet, cover the range, and have the IDs of their times.
fn check_bounds(session: &mut Client, function: &str) -> Result<(), String> {
    session
        .batch_execute(&format!(
            "DROP TABLE IF EXISTS parts;
             CREATE TABLE parts AS
                 SELECT n, \"from\", until, step, part.*, row_number() OVER one AS number,
                     lag(until_time) OVER one AS time_before, lag(until_id) OVER one AS id_before,
                     row_number() OVER one = count(*) OVER (PARTITION BY n) AS last
                 FROM ranges, LATERAL {function}(\"from\", until, step) AS part
                 WINDOW one AS (PARTITION BY n ORDER BY from_time)"
        ))
        .map_err(|error| format!("refused: {error:?}"))?;
    let parts: i64 = session.one("SELECT count(*) FROM parts");
    ensure!(parts > 5 * RANGES, "only {parts} parts");
    for (what, wrong) in [
        ("do not meet", "number > 1 AND (from_time <> time_before OR from_id IS DISTINCT FROM id_before)"),
        ("begin elsewhere", "number = 1 AND (from_time <> \"from\" OR from_id <> snowflake_first_id_from(\"from\"))"),
        ("end elsewhere", "last AND until_id IS DISTINCT FROM snowflake_first_id_from(until)"),
        (
            "are not those of their times",
            "from_id <> snowflake_first_id_from(from_time) OR until_id IS DISTINCT FROM snowflake_first_id_from(until_time)",
        ),
        ("are empty", "from_id >= until_id"),
        (
            "are no steps",
            "from_time <> (\"from\" AT TIME ZONE 'UTC' + (number - 1) * step) AT TIME ZONE 'UTC'
             OR until_time <> least(until, (\"from\" AT TIME ZONE 'UTC' + number * step) AT TIME ZONE 'UTC')",
        ),
    ] {
        let found: i64 = session.one(&format!("SELECT count(*) FROM parts WHERE {wrong}"));
        if found > 0 {
            let one = format!("SELECT parts::text FROM parts WHERE {wrong} LIMIT 1");
            return Err(format!("{found} parts {what}: {}", session.one::<String>(&one)));
        }
    }
    // A range without parts contains no ID.
    let missed: i64 = session.one(
        "SELECT count(*) FROM ranges WHERE n NOT IN (SELECT n FROM parts)
         AND \"from\" < until AND snowflake_first_id_from(\"from\") IS DISTINCT FROM snowflake_first_id_from(until)",
    );
    ensure!(missed == 0, "{missed} ranges have no parts");
    Ok(())
}

/// Functions that divide a range from `f` to `u` incorrectly, and the error that the check must report for each.
const WRONG: [(&str, &str, &str); 5] = [
    ("down", "SELECT from_time, until_time, snowflake_min_id(from_time), until_id FROM bounds", "parts do not meet"),
    ("closed", "SELECT from_time, until_time, from_id, until_id - 1 FROM bounds", "parts do not meet"),
    ("late", "SELECT * FROM bounds WHERE from_time > f", "parts begin elsewhere"),
    ("whole", "SELECT * FROM bounds WHERE until_time < u", "parts end elsewhere"),
    // Each part is computed from the one before, so that after the 31st all begin on the 28th.
    (
        "chained",
        "SELECT at, least(u, next), snowflake_first_id_from(at), snowflake_first_id_from(least(u, next)) FROM chain
         WHERE snowflake_first_id_from(at) IS DISTINCT FROM snowflake_first_id_from(least(u, next))",
        "parts are no steps",
    ),
];

#[test]
fn bounds_of_any_range_meet_and_cover_it() {
    let mut chance = Chance::of("bounds_of_any_range_meet_and_cover_it");
    for (n, like) in LAYOUTS.into_iter().enumerate() {
        let (layout, epoch, ..) = like;
        let (_server, mut session) = Cluster::builder(&format!("layouts_bounds_{n}"))
            .set("snowflake_pg.layout", layout)
            .set("snowflake_pg.epoch", epoch)
            .start_session();
        session.run("SET timezone = 'America/New_York'");
        ranges(&mut session, &mut chance, like);
        check_bounds(&mut session, "snowflake_partition_bounds").unwrap_or_else(|wrong| panic!("{layout}: {wrong}"));
        if n > 0 {
            continue;
        }
        // The negative controls.
        for (name, query, reason) in WRONG {
            session
                .batch_execute(&format!(
                    "CREATE FUNCTION {name}(f timestamptz, u timestamptz, step interval)
                         RETURNS TABLE (from_time timestamptz, until_time timestamptz, from_id bigint, until_id bigint)
                         LANGUAGE sql STABLE AS $$
                             WITH RECURSIVE bounds AS (SELECT * FROM snowflake_partition_bounds(f, u, step)), chain AS (
                                 SELECT f AS at, (f AT TIME ZONE 'UTC' + step) AT TIME ZONE 'UTC' AS next WHERE f < u
                                 UNION ALL
                                 SELECT next, (next AT TIME ZONE 'UTC' + step) AT TIME ZONE 'UTC' FROM chain WHERE next < u
                             ) {query} $$"
                ))
                .unwrap_or_else(|e| panic!("{name}: {e:?}"));
            assert_caught(check_bounds(&mut session, name), reason);
        }
    }
}

/// Expressions on an ID: some read the server's layout, the others are passed one.
const OWN: [&str; 4] = [
    "snowflake_decode(id)",
    "snowflake_timestamp(id)",
    "snowflake_min_id(timestamptz '2024-01-01Z' + n * interval '1 s')",
    "snowflake_to_text(id)",
];
const TOLD: [&str; 7] = [
    "snowflake_decode(id, 'discord')",
    "snowflake_decode(id, '29:21:13@1s', '2016-09-20Z')",
    "snowflake_timestamp(id, '41:10:12')",
    "snowflake_min_id(timestamptz '2024-01-01Z' + n * interval '1 s', 'discord')",
    "snowflake_from_text(snowflake_to_text(id))",
    "snowflake_conceal(id, 'sixteen-byte-key', 'ids')",
    "snowflake_reveal(id, 'sixteen-byte-key', 'ids')",
];

fn ids(session: &mut Client) {
    session.run(
        "CREATE TABLE ids (id bigint PRIMARY KEY, n int);
         INSERT INTO ids SELECT (hashint8extended(n, 7) & 9223372036854775807), n FROM generate_series(1, 30000) AS n",
    );
    session.run("VACUUM ANALYZE ids");
}

/// An expression has the same values in the leader and in parallel workers.
fn check_parallel(session: &mut Client, expression: &str) -> Result<(), String> {
    let query = format!("SELECT sum(hashtextextended({expression}::text, n))::text FROM ids");
    session.run("SET max_parallel_workers_per_gather = 0");
    let alone: String = session.one(&query);
    session.prefer_parallel(2);
    let plan = session.all::<String>(&format!("EXPLAIN (ANALYZE, TIMING OFF) {query}")).join("\n");
    ensure!(plan.contains("Partial Aggregate") && plan.contains("Workers Launched: 2"), "not by two workers:\n{plan}");
    let together: String = session.one(&query);
    ensure!(alone == together, "{expression} has other values in workers: {together}, not {alone}");
    Ok(())
}

#[test]
fn decoders_see_in_parallel_workers_what_the_leader_sees() {
    let server = Cluster::builder("layouts_parallel").start();
    // A server on which workers load the library themselves.
    let bare =
        Cluster::builder("layouts_bare").unset("shared_preload_libraries").unset("snowflake_pg.worker_id").start();
    let (mut session, mut other) = (server.session(), bare.session());
    ids(&mut session);
    ids(&mut other);
    for expression in OWN.iter().chain(&TOLD) {
        check_parallel(&mut session, expression).unwrap();
    }
    for expression in TOLD {
        check_parallel(&mut other, expression).unwrap();
    }
    // The negative controls: a function that cannot run in workers, and one that is wrongly marked as parallel safe.
    session.run("ALTER FUNCTION snowflake_timestamp(bigint) PARALLEL RESTRICTED");
    assert_caught(check_parallel(&mut session, "snowflake_timestamp(id)"), "not by two workers");
    session.run(
        "CREATE FUNCTION who() RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN pg_backend_pid(); END'",
    );
    assert_caught(check_parallel(&mut session, "(id + who())"), "has other values in workers");
}

/// A query finds the rows of a condition with the index `wanted`, and they are the rows of condition `same`.
fn check_indexed(session: &mut Client, wanted: &str, condition: &str, same: &str) -> Result<(), String> {
    let query = |condition: &str| format!("SELECT id FROM ids WHERE {condition} ORDER BY id");
    let plan = session.plan(&query(condition));
    ensure!(plan.contains(wanted) && plan.contains("Index Cond"), "not over {wanted}:\n{plan}");
    let found = session.all::<i64>(&query(condition));
    let expected = session.all::<i64>(&query(same));
    ensure!((1..2_000).contains(&found.len()), "{} rows", found.len());
    ensure!(found == expected, "{} rows, not {}", found.len(), expected.len());
    Ok(())
}

#[test]
fn an_index_on_a_part_of_an_id_is_used_and_right() {
    let (_server, mut session) = Cluster::builder("layouts_index").start_session();
    ids(&mut session);
    session.run(
        "CREATE INDEX by_time ON ids (snowflake_timestamp(id, '41:10:12'));
         CREATE INDEX by_worker ON ids (((snowflake_decode(id, 'discord')).worker_id)); ANALYZE ids",
    );
    let time =
        "snowflake_timestamp(id, '41:10:12') >= '2024-01-01Z' AND snowflake_timestamp(id, '41:10:12') < '2025-01-01Z'";
    let range =
        "id >= snowflake_min_id('2024-01-01Z', '41:10:12') AND id < snowflake_min_id('2025-01-01Z', '41:10:12')";
    check_indexed(&mut session, "by_time", time, range).unwrap();
    let worker = "(snowflake_decode(id, 'discord')).worker_id = 7";
    let bits = "id >> 12 & 31 = 7";
    check_indexed(&mut session, "by_worker", worker, bits).unwrap();
    // The negative controls: another spelling of the expression, and other rows.
    let spelled = time.replace("41:10:12", "twitter");
    assert_caught(check_indexed(&mut session, "by_time", &spelled, range), "not over by_time");
    let own = worker.replace(", 'discord'", "");
    assert_caught(check_indexed(&mut session, "by_worker", &own, bits), "not over by_worker");
    assert_caught(check_indexed(&mut session, "by_worker", worker, "id >> 13 & 31 = 7"), " rows, not ");
    assert_caught(check_indexed(&mut session, "by_time", time, &range.replace("2025-01", "2024-07")), " rows, not ");
}

/// A test server that has issued IDs of the default layout is changed to the 53-bit layout by these statements.
fn check_changed(name: &str, statements: &str) -> Result<(), String> {
    let layout = &blocks(&page("docs/layouts.md"), "conf")[0];
    let mut server = Cluster::builder(name).start();
    let old: i64 = server.session().one("SELECT max(id) FROM snowflake_nextval_batch(10000) AS id");
    ensure!(old > 1 << 53, "{old} is no ID of 63 bits");
    for (name, value) in cluster::settings(layout) {
        server.set(name, value);
    }
    server.restart(Stop::Fast);
    let mut session = server.session();
    let refusal = session.refusal("SELECT snowflake_nextval()");
    let told = ("55000".to_string(), "the high-water mark is more than a day ahead of the clock".to_string());
    ensure!(refusal == told, "{refusal:?}");
    session.batch_execute(statements).map_err(|error| format!("refused: {error:?}"))?;
    for _ in 0..2 {
        let ids = session
            .query("SELECT snowflake_nextval_batch(10000)", &[])
            .map_err(|error| format!("no IDs: {error:?}"))?;
        let wrong = ids.iter().filter(|row| !(1..1 << 53).contains(&row.get::<_, i64>(0))).count();
        ensure!(ids.len() == 10_000 && wrong == 0, "{wrong} of {} IDs are too large", ids.len());
        let apart: f64 =
            session.one("SELECT abs(extract(epoch FROM snowflake_timestamp(snowflake_nextval()) - now()))::float8");
        ensure!(apart < 60.0, "IDs are {apart} s from the clock");
        // The change survives a restart.
        server.restart(Stop::Fast);
        session = server.session();
    }
    Ok(())
}

#[test]
fn a_server_that_was_tried_gets_ids_for_javascript() {
    let set = "snowflake_set_mark(snowflake_min_id(now()), force => true)";
    assert!(page("docs/layouts.md").contains(&format!("`{set}`")));
    assert!(
        page("docs/errors.md")
            .contains("\n### \"the high-water mark is more than a day ahead of the clock\" (55000)\n")
    );
    check_changed("layouts_changed", &format!("SELECT {set}")).unwrap();
    // The negative controls: no mark is set, or a mark is set without force.
    assert_caught(check_changed("layouts_kept", ""), "no IDs: ");
    assert_caught(
        check_changed("layouts_unforced", &format!("SELECT {}", set.replace(", force => true", ""))),
        "refused: ",
    );
}
