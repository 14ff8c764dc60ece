//! The portable functions give the results of the library for random IDs in random layouts.

use cluster::{Answer, Client, Stop, assert_caught, ensure, rounds};
use flake::{Layout, Part, Tick};

use crate::choices::Random;
use crate::server::{install, library, script, spoilt, twin};

/// The number of IDs in each layout.
const IDS: u64 = 100;

impl Random {
    fn up_to(&mut self, max: u64) -> u64 {
        self.next() % (max + 1)
    }

    /// Returns a layout whose IDs have times that fit `timestamptz`: up to 2^52 ms after an epoch in the year 2199.
    fn layout(&mut self) -> Layout {
        loop {
            let (tick, most) = [(Tick::Ms1, 52), (Tick::Ms10, 49), (Tick::S1, 42)][self.up_to(2) as usize];
            let datacenter = (self.up_to(1) == 1).then(|| self.up_to(8) as u32);
            let timestamp = 1 + self.up_to(most - 1) as u32;
            let widths = (timestamp, datacenter, self.up_to(20) as u32, 1 + self.up_to(20) as u32);
            if let Ok(layout) = Layout::of(widths.0, widths.1, widths.2, widths.3, tick) {
                return if self.up_to(3) == 0 { layout.with_sequence_above_node() } else { layout };
            }
        }
    }
}

/// Returns a query with a row for each of the IDs that a seed gives. `format` is the layout, and maybe the epoch, as arguments.
fn query(seed: u64, layout: &Layout, format: &str) -> String {
    let (last, last_tick, shift) = (layout.last_id(), layout.max(Part::Timestamp), layout.timestamp_shift());
    format!(
        "SELECT concat_ws(' ', id, decoded, snowflake_timestamp(id, {format}), snowflake_describe(id, {format}),
             snowflake_encode((decoded).created_at + n * interval '7 microseconds', coalesce((decoded).worker_id, 0),
                 (decoded).sequence, coalesce((decoded).datacenter_id, 0), {format}),
             snowflake_encode((decoded).created_at, 0, (decoded).sequence, {format}),
             snowflake_min_id((decoded).created_at + n * interval '7 microseconds', {format}),
             snowflake_max_id((decoded).created_at + n * interval '7 microseconds', {format}),
             snowflake_to_text(id), snowflake_from_text(lower(snowflake_to_text(id))))
         FROM (
             SELECT n, id, snowflake_decode(id, {format}) AS decoded
             FROM generate_series(1, {IDS}) AS n, LATERAL (
                 SELECT CASE n WHEN 1 THEN 0 WHEN 2 THEN {last} WHEN 3 THEN {last_tick}::bigint << {shift}
                     ELSE (hashint8extended(n, {seed}) & {last}) >> (n % 3 * (n % 20))::integer END AS id
             ) AS ids
             OFFSET 0
         ) AS ids ORDER BY n",
        seed = seed >> 1,
    )
}

/// Runs a query on both sides, and compares the rows.
fn compare(library: &mut Client, twin: &mut Client, query: &str) -> Result<usize, String> {
    let (ours, theirs) = (library.all::<String>(query), twin.all::<String>(query));
    ensure!(ours.len() == theirs.len(), "{} rows, not {}: {query}", theirs.len(), ours.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        ensure!(ours == theirs, "{theirs}\nis not\n{ours}\nin {query}");
    }
    Ok(ours.len())
}

/// Compares random IDs in random layouts, and returns the number of IDs.
fn check(library: &mut Client, twin: &mut Client, layouts: u64) -> Result<usize, String> {
    let mut random = Random(0x5eed);
    let mut ids = 0;
    for _ in 0..layouts {
        let layout = random.layout();
        let epoch = random.up_to(7_258_118_399_999);
        let format = match random.up_to(3) {
            0 => format!("layout => '{layout}'"),
            _ => format!("layout => '{layout}', epoch => timestamptz '1970-01-01Z' + {epoch} * interval '1 ms'"),
        };
        ids += compare(library, twin, &query(random.next(), &layout, &format))?;
    }
    Ok(ids)
}

#[test]
fn random_ids_in_random_layouts_are_read_alike() {
    let (_library, mut library) = library("random");
    let (_twin, mut twin) = twin("random", &script("random"));
    let layouts = rounds(1_000, 60);
    assert_eq!(check(&mut library, &mut twin, layouts), Ok((layouts * IDS) as usize));
}

#[test]
fn a_function_that_differs_is_caught() {
    let (_library, mut library) = library("random_wrong");
    // Only times that are not whole seconds show the mistake.
    let mistake = ("* (format).tick_ms)::double precision / 1000", "* (format).tick_ms) / 1000");
    let (_twin, mut twin) = twin("random_wrong", &spoilt("random_wrong", mistake));
    assert_caught(check(&mut library, &mut twin, 20).map(drop), "is not");
}

/// The layouts of a server, each with its epoch.
const OWN: [(&str, &str); 6] = [
    ("", ""),
    ("discord", ""),
    ("sonyflake", "2025-01-01Z"),
    (" 41:4:8 ", "1704067200000"),
    ("38:3:6:16@10ms", "2020-02-29T12:00:00.001+01:00"),
    ("29:21S:13@1S", "2016-12-31 23:59:60Z"),
];

/// A query with a row for each ID and each pair of instants, with the functions that use the layout of the server.
const OWN_QUERY: &str = "
    SELECT concat_ws(' ', id, snowflake_decode(id), snowflake_timestamp(id), snowflake_describe(id),
        snowflake_encode(at, 3, 5), snowflake_encode(at, 2, 1, 0), snowflake_min_id(at), snowflake_max_id(at),
        start, coalesce(snowflake_first_id_from(start)::text, 'none'), snowflake_last_id_before(start),
        coalesce(snowflake_between(id, start, stop)::text, 'unknown'))
    FROM (
        SELECT n, id, snowflake_timestamp(id) + n % 1500 * interval '3 microseconds' AS at,
            CASE n % 7 WHEN 0 THEN '-infinity' ELSE timestamptz '2000-01-01Z' + n * interval '31.4159265 hours' END AS start,
            CASE n % 5 WHEN 0 THEN 'infinity' ELSE timestamptz '2100-01-01Z' - n * interval '31.4159265 hours' END AS stop
        FROM generate_series(1, 5000) AS n, LATERAL (
            SELECT (hashint8extended(n, 42) & 9007199254740991) AS id
        ) AS ids
        OFFSET 0
    ) AS ids ORDER BY n";

#[test]
fn the_layout_and_the_epoch_of_a_server_are_taken_over() {
    let (mut server, _) = library("own");
    let script = script("own");
    let (_twin, mut twin) = twin("own", &script);
    for (layout, epoch) in OWN {
        for (name, value) in [("snowflake_pg.layout", layout), ("snowflake_pg.epoch", epoch)] {
            if value.is_empty() { server.unset(name) } else { server.set(name, value) }
        }
        server.restart(Stop::Fast);
        // The values are those that the server shows.
        let mut library = server.connect();
        let shown = |library: &mut Client, name: &str| library.one::<String>(&format!("SHOW {name}"));
        let settings = ["snowflake_pg.layout", "snowflake_pg.epoch"].map(|name| (name, shown(&mut library, name)));
        let settings = [(settings[0].0, settings[0].1.as_str()), (settings[1].0, settings[1].1.as_str())];
        install(&mut twin, &script, &settings).expect("the script can run again");
        assert_eq!(compare(&mut library, &mut twin, OWN_QUERY), Ok(5_000), "{layout} {epoch}");
    }
}

/// A query with a row for each instant near an end of a range, and each layout whose IDs reach the last instant of `timestamptz`.
const EDGES_QUERY: &str = "
    SELECT concat_ws(' ', layout, at, snowflake_min_id(at, layout, epoch), snowflake_max_id(at, layout, epoch),
        snowflake_encode(at, 1, 1, layout, epoch), snowflake_timestamp(snowflake_min_id(at, layout, epoch), layout, epoch),
        snowflake_min_id(at), snowflake_first_id_from(at), snowflake_last_id_before(at), snowflake_between(1, at, 'infinity'))
    FROM (VALUES ('55:4:4'), ('52:4:4@10ms'), ('45:4:4@1s'), ('55:4s:4')) AS layouts (layout),
        (VALUES (timestamptz '1970-01-01Z'), ('2038-01-19 03:14:07.001Z')) AS epochs (epoch),
        (VALUES (timestamptz '2038-01-19 03:14:08Z'), ('9999-12-31 23:59:59.999Z'), ('294246-12-31 23:59:59.999Z'),
            ('294247-01-10 04:00:54.775807Z'), ('294276-12-31 23:59:59.995Z')) AS edges (edge),
        generate_series(-2500, 2500, 51) AS n, LATERAL (SELECT edge + n * interval '1 microsecond' AS at OFFSET 0) AS instants
    ORDER BY layout, epoch, at";

/// Compares what both sides make of instants up to the last one of `timestamptz`.
fn check_edges(test: &str, script: &str) -> Result<(), String> {
    let (mut server, _) = library(test);
    let layout = [("snowflake_pg.layout", "55:4:4"), ("snowflake_pg.epoch", "1970-01-01Z")];
    layout.iter().for_each(|(name, value)| server.set(name, value));
    server.restart(Stop::Fast);
    let (_twin, mut twin) = twin(test, script);
    install(&mut twin, script, &layout).expect("the script can run again");
    let rows = compare(&mut server.connect(), &mut twin, EDGES_QUERY)?;
    ensure!(rows == 4 * 2 * 5 * 99, "{rows} rows");
    Ok(())
}

#[test]
fn instants_up_to_the_year_294276_have_the_same_ids() {
    check_edges("edges", &script("edges")).unwrap();
}

#[test]
fn an_instant_that_postgresql_rounds_is_caught() {
    let exact = "extract(epoch FROM date_trunc('minute', at AT TIME ZONE 'UTC'))
            + coalesce(extract(second FROM at AT TIME ZONE 'UTC'), 0)";
    let rounded = spoilt("edges_rounded", (exact, "extract(epoch FROM at AT TIME ZONE 'UTC')"));
    assert_caught(check_edges("edges_rounded", &rounded), "is not");
}
