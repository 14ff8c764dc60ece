//! The configuration that docs/monitoring.md contains for postgres_exporter and Prometheus does what the page says. The real
//! exporter queries real servers, and promtool tests the alerts.

mod alerts;
mod annotations;
mod dashboard;
mod exporter;
mod files;
mod fleet;
mod page;

use std::thread;

use cluster::{Answer, Builder, Client, Cluster, PATIENCE, assert_caught, ensure, within};
use exporter::{Exporter, Scrape};

/// The expression for each figure on the view, written independently of the page. The names begin with `snowflake_pg_`.
const SHOWN: [(&str, &str); 25] = [
    ("refused", "CASE state WHEN 'refused' THEN 1 ELSE 0 END"),
    (
        "standby_has_primary_worker_id",
        "CASE WHEN pg_is_in_recovery() AND worker_id = last_issuer_worker_id THEN 1 ELSE 0 END",
    ),
    ("lead_seconds", "extract(epoch FROM lead)"),
    ("mark_lead_seconds", "extract(epoch FROM mark_lead)"),
    ("ids_issued_total", "ids_issued"),
    ("throttled_waits_total", "throttled_waits"),
    ("throttled_seconds_total", "throttled_time * 0.001"),
    ("mark_waits_total", "mark_waits"),
    ("mark_wait_seconds_total", "mark_time * 0.001"),
    ("clock_waits_total", "clock_waits"),
    ("clock_wait_seconds_total", "clock_time * 0.001"),
    ("retries_total", "retries"),
    ("extensions_total", "extensions"),
    ("slowest_extension_seconds", "slowest_extension * 0.001"),
    ("clock_regressions_total", "clock_regressions"),
    ("clock_jumps_total", "clock_jumps"),
    ("years_left", "years_left"),
    ("fenced", "CASE registry_state WHEN 'fenced' THEN 1 WHEN NULL THEN NULL ELSE 0 END * sign(failed_heartbeats + 1)"),
    ("failed_heartbeats", "failed_heartbeats"),
    (
        "grant_left_ratio",
        "extract(epoch FROM granted_until - now()) / (SELECT setting::float8 FROM pg_settings WHERE name = 'snowflake_pg.lease')",
    ),
    ("clock_offset_seconds", "extract(epoch FROM clock_offset)"),
    ("segments_failing", "(SELECT count(last_error) FROM snowflake_segments WHERE state IN ('failing', 'waiting'))"),
    (
        "segments_empty",
        "(SELECT count(last_error) FROM snowflake_segments WHERE state IN ('failing', 'waiting') AND numbers_left < 1)",
    ),
    (
        "segments_used",
        "(SELECT count(*) FROM snowflake_segments WHERE state IN ('drawing', 'failing', 'waiting', 'leaving'))",
    ),
    ("server_primary", "CASE WHEN pg_is_in_recovery() THEN 0 ELSE 1 END"),
];

/// The tolerance of a figure. A lead is the difference between two clocks, and an administrator's daemon may slew one of these
/// clocks between two reads. In addition, figures in text have a limited precision.
const SLACK: f64 = 0.05;

/// Returns the figures as the view shows them now.
fn shown(session: &mut Client) -> Vec<f64> {
    SHOWN
        .iter()
        .map(|(_, sql)| session.one(&format!("SELECT coalesce(({sql})::float8, 'NaN') FROM snowflake_status")))
        .collect()
}

/// Starts a server that has the role of the exporter.
fn watched(builder: Builder) -> (Cluster, Client) {
    let server = builder.start();
    let mut session = server.session();
    session.batch_execute(&page::role()).expect("a new role");
    (server, session)
}

/// Checks that the exporter shows every figure of the page, each with its type and with a value between the view's values before
/// and after.
fn check_figures(server: &Cluster, session: &mut Client, queries: &str, arguments: &[&str]) -> Result<(), String> {
    let exporter = Exporter::start(server, queries, arguments);
    let before = shown(session);
    let scrape = exporter.scrape();
    let after = shown(session);
    exporter.check(&scrape, &page::queries())?;
    for ((name, _), (before, after)) in SHOWN.iter().zip(before.into_iter().zip(after)) {
        let found = scrape.only(&format!("snowflake_pg_{name}"))?;
        let slack = if name.ends_with("_total") { 1e-6 * after.abs() } else { SLACK };
        let unknown = before.is_nan() && after.is_nan() && found.is_nan();
        let between = before.min(after) - slack <= found && found <= before.max(after) + slack;
        ensure!(unknown || between, "{name} is {found}, and in the view {before} to {after}");
    }
    for waiting in ["throttled", "mark", "clock", "segment"] {
        scrape.with("snowflake_pg_waiting_backends", &[("waiting_for", waiting)])?;
    }
    Ok(())
}

/// Checks that the labels identify the server.
fn check_labels(scrape: &Scrape, primary: f64, worker: &str) -> Result<(), String> {
    let labels = [("worker_id", worker), ("datacenter_id", "0"), ("layout", "41:10:12"), ("epoch", "1288834974657")];
    let found = scrape.with("snowflake_pg_server_primary", &labels)?;
    ensure!(found == primary, "primary is {found}");
    Ok(())
}

/// Draws until a count of the view has risen. It does not matter whether a draw succeeds.
fn draw_until(session: &mut Client, count: &str) {
    let risen = within(PATIENCE, || {
        let _ = session.code("SELECT count(*) FROM snowflake_nextval_batch(100000)");
        session.one::<i64>(&format!("SELECT {count} FROM snowflake_status")) > 0
    });
    assert!(risen, "{count} does not rise");
}

/// Returns a server on which everything that is counted has happened, except perhaps retries.
fn eventful(name: &str) -> (Cluster, Client) {
    // The layout has 256 IDs per ms, so that a batch is throttled.
    let builder = Cluster::builder(name).clock("+0").set("snowflake_pg.layout", "41:14:8");
    let (mut server, mut session) = watched(builder.set("snowflake_pg.on_clock_regression", "wait"));
    draw_until(&mut session, "throttled_waits");
    // A standby that does not exist acknowledges nothing. This wait comes before the clock is stepped, because PostgreSQL's
    // timeouts use the same clock.
    server.set("synchronous_standby_names", "nobody");
    server.reload();
    session.batch_execute("SET statement_timeout = '1s'").expect("a setting");
    draw_until(&mut session, "mark_waits");
    session.batch_execute("RESET statement_timeout").expect("a setting");
    server.unset("synchronous_standby_names");
    server.reload();
    server.set_clock("-3");
    draw_until(&mut session, "clock_waits");
    server.set_clock("+7200");
    draw_until(&mut session, "clock_jumps");
    let all = "SELECT throttled_time > 0 AND clock_time > 0 AND mark_time > 0 AND slowest_extension > 0
               AND clock_regressions > 0 AND lead < '-1 hour' FROM snowflake_status";
    assert!(session.one::<bool>(all), "{:?}", shown(&mut session));
    // This database does not have the extension. The exporter may find the database, but must not query it.
    session.batch_execute("CREATE DATABASE other").expect("a new database");
    (server, session)
}

#[test]
fn the_exporter_shows_what_the_view_shows() {
    let queries = page::queries();
    let (server, mut session) = eventful("monitoring");
    check_figures(&server, &mut session, &queries, &[]).unwrap();
    check_figures(&server, &mut session, &queries, &["--auto-discover-databases"]).unwrap();
}

#[test]
fn a_query_with_a_mistake_is_caught() {
    let queries = page::queries();
    let (server, mut session) = eventful("monitoring_mistakes");
    let changed = |from: &str, to: &str| {
        let changed = queries.replacen(from, to, 1);
        assert_ne!(changed, queries, "{from}");
        changed
    };
    let mut check = |queries: &str, arguments: &[&str]| check_figures(&server, &mut session, queries, arguments);
    let failed = "a query failed";
    assert_caught(check(&changed("FROM lead)", "FROM leed)"), &[]), failed);
    assert_caught(check(&changed("master: true", "master: false"), &["--auto-discover-databases"]), failed);
    assert_caught(check(&changed("  metrics:", " metrics:"), &[]), "the file was not read");
    assert_caught(check(&changed("throttled_time / 1000", "throttled_time"), &[]), "throttled_seconds_total is");
    assert_caught(check(&changed("- mark_waits_total:", "- marked_total:"), &[]), "is \"untyped\", not \"counter\"");
    assert_caught(check(&changed("usage: COUNTER", "usage: COUNTR"), &[]), "is \"\", not \"counter\"");
}

/// An operator in a schema with the name of the exporter's role. The default `search_path` contains this schema.
const OPERATOR: &str = "CREATE SCHEMA prometheus; GRANT USAGE ON SCHEMA prometheus TO PUBLIC;
    CREATE FUNCTION prometheus.one(float8, integer) RETURNS float8 LANGUAGE sql RETURN 1;
    CREATE OPERATOR prometheus./ (LEFTARG = float8, RIGHTARG = integer, FUNCTION = prometheus.one)";

#[test]
fn the_exporter_calls_no_operators_of_the_database() {
    let (server, mut session) = watched(Cluster::builder("monitoring_operator"));
    session.batch_execute(OPERATOR).expect("a new operator");
    check_figures(&server, &mut session, &page::queries(), &[]).unwrap();
    // The negative control: without `options`.
    let connection = page::connection(server.socket());
    let open = connection.replace(" options=-csearch_path=pg_catalog", "");
    assert_ne!(open, connection);
    let scrape = Exporter::start_with(&open, &page::queries(), &[]).scrape();
    assert_eq!(scrape.only("snowflake_pg_throttled_seconds_total"), Ok(1.0));
}

#[test]
fn counters_rise_and_a_session_that_waits_is_seen() {
    let (mut server, mut session) = watched(Cluster::builder("monitoring_rise"));
    let exporter = Exporter::start(&server, &page::queries(), &[]);
    let first = exporter.scrape();
    check_labels(&first, 1.0, "1").unwrap();
    assert!(first.only("snowflake_pg_lead_seconds").unwrap().is_nan());
    session.batch(1_000);
    let second = exporter.scrape();
    let issued = "snowflake_pg_ids_issued_total";
    assert_eq!((first.only(issued).unwrap(), second.only(issued).unwrap()), (0.0, 1_000.0));
    assert!(second.only("snowflake_pg_extensions_total").unwrap() >= 1.0);
    assert_eq!(second.with("snowflake_pg_waiting_backends", &[("waiting_for", "mark")]), Ok(0.0));

    server.set("synchronous_standby_names", "nobody");
    server.reload();
    let mut waiting = server.connect();
    let draw = "SELECT count(*) FROM snowflake_nextval_batch(10000000)";
    let waiter = thread::spawn(move || waiting.one::<i64>(draw));
    let seen = within(PATIENCE, || {
        exporter.scrape().with("snowflake_pg_waiting_backends", &[("waiting_for", "mark")]) == Ok(1.0)
    });
    assert!(seen, "nobody is seen to wait");
    server.unset("synchronous_standby_names");
    server.reload();
    assert_eq!(waiter.join().expect("the session goes on"), 10_000_000);
}

#[test]
fn a_server_that_refuses_shows_it() {
    let (server, mut session) = watched(Cluster::builder("monitoring_refused").unset("snowflake_pg.worker_id"));
    check_figures(&server, &mut session, &page::queries(), &[]).unwrap();
    let scrape = Exporter::start(&server, &page::queries(), &[]).scrape();
    assert_eq!(scrape.only("snowflake_pg_refused"), Ok(1.0));
    check_labels(&scrape, 1.0, "").unwrap();
}

/// A standby is watched like a primary. If it has its primary's worker ID, it shows this until it is promoted.
#[test]
fn a_standby_is_watched_like_a_primary() {
    let (primary, mut session) = watched(Cluster::builder("monitoring_number"));
    let shown = |scrape: Scrape| scrape.only("snowflake_pg_standby_has_primary_worker_id");
    for (name, worker, expected) in [("monitoring_same", "1", 1.0), ("monitoring_own", "2", 0.0)] {
        session.batch(10);
        let mark = primary.shown_mark();
        let standby = primary.standby(Cluster::builder(name).set("snowflake_pg.worker_id", worker));
        assert!(within(PATIENCE, || standby.shown_mark() >= mark), "the standby does not follow");
        check_figures(&standby, &mut standby.connect(), &page::queries(), &[]).unwrap();
        let exporter = Exporter::start(&standby, &page::queries(), &[]);
        let scrape = exporter.scrape();
        check_labels(&scrape, 0.0, worker).unwrap();
        assert_eq!(scrape.only("snowflake_pg_refused"), Ok(0.0));
        assert!(!scrape.only("snowflake_pg_mark_lead_seconds").unwrap().is_nan());
        assert_eq!(shown(scrape), Ok(expected), "worker ID {worker}");
        standby.promote();
        let scrape = exporter.scrape();
        check_labels(&scrape, 1.0, worker).unwrap();
        assert_eq!(shown(scrape), Ok(0.0), "promoted with worker ID {worker}");
    }
    assert_eq!(shown(Exporter::start(&primary, &page::queries(), &[]).scrape()), Ok(0.0));
}

/// Checks that a section of the page has a row for each column of a view.
fn check_columns(session: &mut Client, view: &str, section: &str) -> Result<(), String> {
    let columns: Vec<String> = session
        .all(&format!("SELECT attname::text FROM pg_attribute WHERE attrelid = '{view}'::regclass AND attnum > 0"));
    ensure!(columns.len() > 5, "{view} has {} columns", columns.len());
    let mut described = page::first_cells(section);
    for column in &columns {
        ensure!(described.contains(column), "column {column} of {view} is not described");
    }
    described.retain(|name| !columns.contains(name));
    ensure!(described.is_empty(), "{view} has no columns {described:?}");
    Ok(())
}

#[test]
fn every_column_is_described() {
    let server = Cluster::builder("monitoring_columns").start();
    let mut session = server.session();
    let [status, backends, segments] = page::views();
    check_columns(&mut session, "snowflake_status", &status).unwrap();
    check_columns(&mut session, "snowflake_stat_backends", &backends).unwrap();
    check_columns(&mut session, "snowflake_segments", &segments).unwrap();
    let other = check_columns(&mut session, "snowflake_status", &status.replace("`retries`", "`retry`"));
    assert_caught(other, "column retries of snowflake_status is not described");
    let more = check_columns(&mut session, "snowflake_stat_backends", &backends.replace("`pid`", "`pid`, `id`"));
    assert_caught(more, "has no columns [\"id\"]");
}
