//! Where issuing begins: at the clock or the mark, whichever is later, and nowhere if old IDs could come again.

use cluster::{Answer, Builder, Cluster, Stop, check_ledger, sqlstate};

const AHEAD: &str = "the high-water mark is more than a day ahead of the clock";

/// A server with a clock that can be set, that has issued IDs and is stopped without notice.
fn used(builder: Builder) -> (Cluster, Vec<i64>) {
    let mut server = builder.clock("+0").start();
    let ids = server.session().batch(5000);
    server.stop(Stop::Immediate);
    (server, ids)
}

#[test]
fn a_clock_set_back_by_an_hour_begins_at_the_mark() {
    let (mut server, mut ids) = used(Cluster::builder("start_hour"));
    server.set_clock("-3600");
    server.start();
    let mut session = server.session();
    let begun: i64 = session.one("SELECT snowflake_nextval()");
    assert!(ids.iter().all(|id| *id < begun));
    ids.extend(session.batch(5000));
    check_ledger(&mut ids).unwrap();
    // At most a window and max_ahead above the old IDs.
    let gap =
        format!("SELECT extract(epoch FROM snowflake_timestamp({begun}) - snowflake_timestamp({}))::float8", ids[0]);
    assert!((0.0..2.5).contains(&session.one::<f64>(&gap)));
    assert!(server.log().contains("snowflake_pg: issuing begins at "), "{}", server.log());
}

#[test]
fn a_clock_set_back_by_days_is_refused_until_it_is_right() {
    let (mut server, mut ids) = used(Cluster::builder("start_days"));
    server.set_clock("-172800");
    server.start();
    let mut session = server.session();
    for sql in ["SELECT snowflake_nextval()", "SELECT snowflake_reserve(3)", "SELECT snowflake_nextval_batch(3)"] {
        let (code, message, detail, hint) = sqlstate(&session.batch_execute(sql).unwrap_err());
        assert_eq!((code.as_str(), message.as_str()), ("55000", AHEAD));
        assert!(detail.contains("the clock shows 20") && detail.contains("\"41:10:12\""), "{detail}");
        assert!(detail.ends_with("the epoch 2010-11-04T01:42:54.657+00:00."), "{detail}");
        for cause in ["clock", "snowflake_pg.epoch", "snowflake_pg.layout", "snowflake_set_mark()"] {
            assert!(hint.contains(cause), "{hint}");
        }
    }
    let decoded = format!("SELECT worker_id FROM snowflake_decode({})", ids[0]);
    assert_eq!(session.one::<i32>(&decoded), 1);
    server.set_clock("+0");
    ids.extend(session.batch(5000));
    check_ledger(&mut ids).unwrap();
}

/// Configurations that could make old IDs again are refused, the others begin above them.
#[test]
fn a_changed_configuration_is_refused_where_it_could_repeat_ids() {
    let four = [("layout", "41:5:5:12"), ("datacenter_id", "3")];
    let (mut server, mut ids) = used(four.iter().fold(Cluster::builder("start_changed"), |builder, (name, value)| {
        builder.set(&format!("snowflake_pg.{name}"), value)
    }));
    // What is changed, and whether IDs may go on.
    let changes: [(&[(&str, &str)], bool); 8] = [
        (&[("epoch", "2012-01-01T00:00:00Z")], false),
        (&[("layout", "40:5:5:12"), ("epoch", "2020-01-01T00:00:00Z")], false),
        (&[("layout", "41:5:5:11")], false),
        (&[("layout", "37:5:5:12@10ms")], false),
        (&[("datacenter_id", "0")], true),
        (&[("worker_id", "31"), ("datacenter_id", "31")], true),
        (&[("layout", "41:0:10:12"), ("datacenter_id", "0"), ("worker_id", "1023")], true),
        (&[("epoch", "2009-01-01T00:00:00Z")], true),
    ];
    for (settings, goes_on) in changes {
        for (name, value) in settings {
            server.set(&format!("snowflake_pg.{name}"), value);
        }
        server.start();
        let mut session = server.session();
        if goes_on {
            let begun: i64 = session.one("SELECT snowflake_nextval()");
            assert!(ids.iter().all(|id| *id < begun), "{settings:?}: {begun} is not above what was issued");
            ids.push(begun);
            ids.extend(session.batch(5000));
        } else {
            assert_eq!(session.refusal("SELECT snowflake_nextval()"), ("55000".into(), AHEAD.into()), "{settings:?}");
        }
        server.stop(Stop::Immediate);
        if !goes_on {
            server.unset("snowflake_pg.epoch");
            server.set("snowflake_pg.layout", "41:5:5:12");
        }
    }
    check_ledger(&mut ids).unwrap();
}

/// Workers of one parallel query share their locks, so that nothing but the state itself makes one of them the loader.
#[test]
fn when_parallel_workers_ask_first_one_of_them_loads() {
    // Reading the clocks takes long enough for all to be at it.
    let mut server = Cluster::builder("start_parallel")
        .fault("ReadsApart")
        .set("max_parallel_workers", "8")
        .set("max_worker_processes", "16")
        .start();
    let seeds =
        "CREATE TABLE seeds AS SELECT FROM generate_series(1, 20000); ALTER TABLE seeds SET (parallel_workers = 6)";
    server.session().batch_execute(seeds).expect("a superuser may");
    server.restart(Stop::Fast);
    let mut session = server.session();
    session.prefer_parallel(6);
    let mut ids: Vec<i64> = session.all("SELECT snowflake_nextval() FROM seeds");
    assert_eq!(ids.len(), 20_000);
    check_ledger(&mut ids).unwrap();
    let log = server.log();
    assert_eq!(log.matches("snowflake_pg: issuing begins at ").count(), 1, "{log}");
}
