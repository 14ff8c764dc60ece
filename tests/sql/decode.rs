//! Decoding an ID gives the encoded values, in the correct unit, from the correct epoch, whatever the session's settings.

use std::time::Duration;

use cluster::{Answer, Builder, Client, Cluster, assert_caught, ensure, within};

/// The time of a new ID is that of the clock, and never decreases in a session.
fn check_time(builder: Builder) -> Result<(), String> {
    let (_server, mut session) = builder.start_session();
    for _ in 0..100 {
        let row = session
            .query_one(
                "SELECT extract(epoch FROM snowflake_timestamp(snowflake_nextval()) - clock_timestamp())::float8 * 1000",
                &[],
            )
            .map_err(|e| format!("not decoded: {e:?}"))?;
        let off: f64 = row.get(0);
        // Below the limit there is no lead, and a tick is 1 ms. The rest allows for a busy machine between the two reads.
        ensure!((-1_000.0..=2.0).contains(&off), "the ID's time is {off} ms from the clock");
    }
    let decreasing: i64 = session.one(
        "SELECT count(*) FROM (
             SELECT at < lag(at) OVER () AS earlier
             FROM (SELECT snowflake_timestamp(snowflake_nextval()) AS at FROM generate_series(1, 100000)) AS ids) AS pairs
         WHERE earlier",
    );
    ensure!(decreasing == 0, "time went back {decreasing} times");
    Ok(())
}

#[test]
fn the_time_of_an_id_is_the_clock_and_never_goes_back() {
    check_time(Cluster::builder("time")).unwrap();
}

#[test]
fn microseconds_taken_for_milliseconds_are_caught() {
    // A layout that includes the wrong time. In the default layout there would be no ID at all.
    let server = Cluster::builder("time_fault").fault("MicrosAsMillis").set("snowflake_pg.layout", "45:8:10");
    assert_caught(check_time(server), "ms from the clock");
}

#[test]
fn infinity_lies_beyond_every_layout() {
    // One layout ends long before PostgreSQL's timestamps do, and the other one outlasts them.
    for layout in ["41:10:10", "54:2:4"] {
        let (_server, mut session) = Cluster::builder("infinity").set("snowflake_pg.layout", layout).start_session();
        for function in ["min_id", "max_id"] {
            for at in ["infinity", "-infinity"] {
                let (code, message) = session.refusal(&format!("SELECT snowflake_{function}('{at}')"));
                assert_eq!(code, "22023");
                assert_eq!(message, format!("time {at} is outside the range of layout \"{layout}\""));
            }
        }
        let last = (1i64 << layout.split(':').map(|bits| bits.parse::<u32>().unwrap()).sum::<u32>()) - 1;
        for (from, until, id, expected) in [
            ("-infinity", "infinity", last, true),
            ("infinity", "infinity", last, false),
            ("-infinity", "-infinity", 0, false),
            ("infinity", "-infinity", 0, false),
        ] {
            // The result is false and not NULL, so that NOT finds the row.
            let found: Option<bool> = session.one(&format!("SELECT snowflake_between({id}, '{from}', '{until}')"));
            assert_eq!(found, Some(expected), "{layout}: {id} between {from} and {until}");
        }
    }
}

/// The results of `expressions` do not depend on display settings, so they are equal in five sessions.
fn check_zones(server: &Cluster, expressions: &str) -> Result<(), String> {
    let query = format!("SELECT row_to_json(results)::text FROM (SELECT {expressions}) AS results");
    let ask = |zone: &str, style: &str| {
        let mut session: Client = server.session();
        session
            .run(&format!(
                "SET timezone = '{zone}'; SET datestyle = '{style}';
             BEGIN; CREATE TABLE days (id bigint) PARTITION BY RANGE (id); CREATE TABLE months (LIKE days) PARTITION BY RANGE (id)"
            ));
        let result = session.one::<String>(&query);
        session.run("ROLLBACK");
        result
    };
    let sessions = [
        ("UTC", "ISO"),
        ("Pacific/Auckland", "ISO"),
        ("America/St_Johns", "SQL, DMY"),
        ("UTC", "German"),
        ("America/New_York", "Postgres, MDY"),
    ];
    let results = sessions.map(|(zone, style)| ask(zone, style));
    ensure!(results.iter().all(|result| *result == results[0]), "not equal: {results:#?}");
    Ok(())
}

/// The functions of the extension that take or return a time and were never called.
fn not_called(server: &Cluster) -> Vec<String> {
    server.connect().all(
        "WITH timely AS (SELECT ARRAY['timestamptz', 'interval', 'jsonb']::regtype[]::oid[] AS types)
         SELECT oid::regprocedure::text FROM pg_proc, timely
         WHERE proname LIKE 'snowflake%'
           AND (prorettype = ANY (types) OR coalesce(proallargtypes, proargtypes::oid[]) && types)
           AND oid NOT IN (SELECT funcid FROM pg_stat_user_functions) ORDER BY 1",
    )
}

#[test]
fn no_result_depends_on_time_zone_or_date_style() {
    let server = Cluster::builder("zones").set("track_functions", "all").start();
    let series = "SELECT snowflake_create_series('zoned', '{YYYY}-{MM}-{DD}-{HH}-{n:3}', time_zone => 'Asia/Kolkata')";
    server.session().run(series);
    let at = "timestamptz '2024-03-10 12:34:56.789+00'";
    let since = "timestamptz '2020-01-01 00:00:00+00'";
    let (id, old) = ("1541815603606036480", "175928847299117063");
    // Days with a clock change in New York and St. John's, and months with one in Auckland.
    let days = "'2024-11-02 00:00:00+00', '2024-11-05 00:00:00+00', '1 day'";
    let months = "'2024-03-31 12:00:00+00', '2024-11-30 12:00:00+00', '1 month'";
    let bounds = |range: &str| {
        format!(
            "SELECT json_agg(json_build_array(extract(epoch FROM from_time), extract(epoch FROM until_time), from_id, until_id))
             FROM snowflake_partition_bounds({range})"
        )
    };
    let made = |table: &str, interval: &str, from: &str| {
        format!(
            "SELECT json_agg(json_build_array(made::text, pg_get_partition_constraintdef(made)))
             FROM snowflake_create_partitions('{table}', '{interval}', 9, '{from}') AS made"
        )
    };
    check_zones(
        &server,
        &format!(
            "extract(epoch FROM snowflake_timestamp({id})) AS at,
             extract(epoch FROM snowflake_timestamp({old}, 'discord')) AS at_layout,
             extract(epoch FROM snowflake_timestamp({id}, '41:10:12@10ms', {since})) AS at_epoch,
             (SELECT extract(epoch FROM created_at) FROM snowflake_decode({id})) AS decoded,
             (SELECT extract(epoch FROM created_at) FROM snowflake_decode({old}, 'discord')) AS decoded_layout,
             (SELECT extract(epoch FROM created_at) FROM snowflake_decode({id}, '41:10:12', {since})) AS decoded_epoch,
             snowflake_describe({id}) AS described, snowflake_describe({old}, 'discord') AS described_layout,
             snowflake_describe({id}, '41:10:12', {since}) AS described_epoch, snowflake_to_text({id}) AS text,
             snowflake_encode({at}, 1, 2) AS encoded, snowflake_encode({at}, 1, 2, 'discord') AS encoded_layout,
             snowflake_encode({at}, 1, 2, 'discord', {since}) AS encoded_epoch,
             snowflake_encode({at}, 1, 2, 3, 'discord') AS encoded_parts,
             snowflake_encode({at}, 1, 2, 3, 'discord', {since}) AS encoded_parts_epoch,
             snowflake_min_id({at}) AS min, snowflake_max_id({at}) AS max,
             snowflake_min_id({at}, 'sonyflake') AS min_layout, snowflake_max_id({at}, 'sonyflake') AS max_layout,
             snowflake_min_id({at}, '41:10:12', {since}) AS min_epoch, snowflake_max_id({at}, '41:10:12', {since}) AS max_epoch,
             snowflake_first_id_from({at}) AS first, snowflake_last_id_before({at}) AS before,
             snowflake_between({id}, '2022-06-28 16:07:40.105+00', '2022-06-28 16:07:40.106+00') AS between,
             (SELECT json_agg(json_build_array(name, extract(epoch FROM tick), extract(epoch FROM epoch),
                                               extract(epoch FROM last_instant))) FROM snowflake_layouts) AS layouts,
             (SELECT json_build_array(extract(epoch FROM epoch), extract(epoch FROM exhaustion_date),
                                      extract(epoch FROM stats_reset)) FROM snowflake_status) AS status,
             (SELECT count(*) FROM snowflake_segments) AS segments, snowflake_serial('zoned', {at}) AS serial,
             ({}) AS days, ({}) AS months, ({}) AS made_days, ({}) AS made_months,
             extract(epoch FROM snowflake_accept_clock()) < 60 AS accepted",
            bounds(days),
            bounds(months),
            made("days", "1 day", "2024-11-02 12:00:00+00"),
            made("months", "1 month", "2024-03-31 12:00:00+00"),
        ),
    )
    .unwrap();
    // Sessions report their calls when they end. Calls that the planner inlines are not counted.
    let inlined = "snowflake_between(bigint,timestamp with time zone,timestamp with time zone)";
    let complete = || not_called(&server).iter().all(|function| function == inlined);
    assert!(within(Duration::from_secs(60), complete), "not called: {:?}", not_called(&server));
    // The negative controls: a decoder that converts by way of text, and bounds at the session's days.
    let local = format!("extract(epoch FROM (snowflake_timestamp({id})::text::timestamp)) AS at");
    assert_caught(check_zones(&server, &local), "not equal");
    let local = "snowflake_min_id(date_trunc('day', timestamptz '2024-11-03 12:00:00+00')) AS bound";
    assert_caught(check_zones(&server, local), "not equal");
}
