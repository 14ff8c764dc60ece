//! Only the configuration determines the identity of a server. A server with an invalid configuration does not start.

use std::time::Duration;

use cluster::{Answer, Builder, Cluster, alter_system_takes_unknown_names, assert_caught, ensure, within};

/// Settings, by name and value, with which the server does not start, and two texts that the log then contains. The values that
/// `ALTER SYSTEM` refuses are in `tests/pg_regress/sql/default_settings.sql`.
type Refused = (&'static [(&'static str, &'static str)], &'static str, &'static str);

const REFUSED: [Refused; 16] = [
    (&[("worker_id", "1024")], "\"snowflake_pg.worker_id\": \"1024\"", "the value must be an integer from 0 to 1023"),
    (&[("worker_id", "-2")], "\"snowflake_pg.worker_id\": \"-2\"", "the value must be an integer from 0 to 1023"),
    (&[("worker_id", "one")], "\"snowflake_pg.worker_id\": \"one\"", "the value must be an integer from 0 to 1023"),
    (&[("worker_id", "")], "\"snowflake_pg.worker_id\": \"\"", "the value must be an integer from 0 to 1023"),
    (&[("worker_id", "010")], "worker_id\": \"010\"", "the value must be an integer from 0 to 1023"),
    (&[("worker_id", "1.5")], "worker_id\": \"1.5\"", "the value must be an integer from 0 to 1023"),
    (&[("worker_id", "0x10")], "worker_id\": \"0x10\"", "the value must be an integer from 0 to 1023"),
    (&[("worker_id", "99999999999")], "\"99999999999\"", "the value must be an integer from 0 to 1023"),
    (&[("worker_id", "32"), ("layout", "41:5:5:12")], "\"32\"", "the value must be an integer from 0 to 31"),
    (
        &[("datacenter_id", "32"), ("layout", "41:5:5:12")],
        "datacenter_id\": \"32\"",
        "the value must be an integer from 0 to 31",
    ),
    (&[("datacenter_id", "1")], "datacenter_id\": \"1\"", "Layout \"41:10:12\" has no datacenter field."),
    (
        &[("layout", "41:10")],
        "\"snowflake_pg.layout\": \"41:10\"",
        "A layout is specified as three or four field widths",
    ),
    (&[("epoch", "2020-01-32Z")], "\"2020-01-32Z\"", "neither an ISO 8601 time nor a number"),
    (&[("epoch", "2020-01-01Zulu")], "\"2020-01-01Zulu\"", "neither an ISO 8601 time nor a number"),
    (&[("epoch", "-")], "\"snowflake_pg.epoch\": \"-\"", "neither an ISO 8601 time nor a number"),
    (&[("epoch", "yesterday")], "\"yesterday\"", "neither an ISO 8601 time nor a number"),
];

#[test]
fn a_server_with_a_wrong_identity_does_not_start_and_says_why() {
    let mut server = Cluster::builder("refused").create();
    for (settings, message, reason) in REFUSED {
        for (name, value) in settings {
            server.set(&format!("snowflake_pg.{name}"), value);
        }
        let log = match server.try_start() {
            Ok(()) => panic!("started with {settings:?}"),
            Err(log) => log,
        };
        assert!(log.contains("FATAL:  invalid value for parameter"), "{settings:?}:\n{log}");
        assert!(log.contains(message) && log.contains(reason), "{settings:?}:\n{log}");
        assert!(log.contains("HINT:"), "{settings:?}:\n{log}");
        for (name, value) in [("worker_id", "1"), ("datacenter_id", "0"), ("layout", "41:10:12"), ("epoch", "")] {
            server.set(&format!("snowflake_pg.{name}"), value);
        }
    }
    server.start();
}

#[test]
fn every_way_to_write_a_right_identity_is_understood() {
    // 2010-11-04 01:42:54.657 UTC, written in four ways. A date with a time zone is midnight there. The name of a layout is not
    // case-sensitive.
    let (four, twitter) = ("41:5:5:12@1ms", "31 31 2010-11-04T01:42:54.657+00:00 41:5:5:12");
    for (layout, datacenter, epoch, shown) in [
        (four, "31", "1288834974657", twitter),
        (four, "31", "2010-11-04T01:42:54.657Z", twitter),
        (four, "31", "2010-11-04 03:42:54.657+02", twitter),
        (four, "31", "", twitter),
        ("TWITTER", "0", "2020-01-01Z", "0 31 2020-01-01T00:00:00+00:00 41:10:12"),
        ("TWITTER", "0", "2020-01-01 z", "0 31 2020-01-01T00:00:00+00:00 41:10:12"),
        ("TWITTER", "0", "2020-01-01+02:00", "0 31 2019-12-31T22:00:00+00:00 41:10:12"),
        ("TWITTER", "0", "2020-01-01-0530", "0 31 2020-01-01T05:30:00+00:00 41:10:12"),
        ("Sonyflake", "0", "", "0 31 2014-09-01T00:00:00+00:00 39:8s:16@10ms"),
    ] {
        let (_server, mut session) = Cluster::builder("understood")
            .set("snowflake_pg.worker_id", " 31 ")
            .set("snowflake_pg.datacenter_id", datacenter)
            .set("snowflake_pg.layout", layout)
            .set("snowflake_pg.epoch", epoch)
            .start_session();
        let described: String = session.one(
            "SELECT concat_ws(' ', d -> 'datacenter_id', d -> 'worker_id', d ->> 'epoch', d ->> 'layout')
             FROM snowflake_describe(snowflake_nextval()) AS d",
        );
        assert_eq!(described, shown, "{layout} {epoch:?}");
        let off = session.lead();
        assert!((-1.0..=0.011).contains(&off), "the ID's time is {off} s from the clock");
    }
}

#[test]
fn the_command_line_is_configuration_too() {
    // The command line is the place for a worker ID that a base backup must not copy.
    let server = Cluster::builder("command_line").argument("-csnowflake_pg.worker_id=77").start();
    let worker: i32 = server.session().one("SELECT worker_id FROM snowflake_decode(snowflake_nextval())");
    assert_eq!(worker, 77);
    drop(server);
    let mut server = Cluster::builder("command_line").argument("-csnowflake_pg.worker_id=1024").create();
    let log = server.try_start().expect_err("1024 does not fit");
    assert!(log.contains("invalid value for parameter \"snowflake_pg.worker_id\": \"1024\""), "{log}");
}

#[test]
fn a_misspelt_name_is_reported() {
    let server = Cluster::builder("misspelt").set("snowflake_pg.worker", "5").start();
    let log = server.log();
    assert!(log.contains("invalid configuration parameter name \"snowflake_pg.worker\""), "{log}");
    let mut session = server.session();
    assert_eq!(session.code("SET snowflake_pg.workerid = 3").as_deref(), Some("42602"));
    let unknown = if alter_system_takes_unknown_names() { "42602" } else { "42704" };
    assert_eq!(session.code("ALTER SYSTEM SET snowflake_pg.workerid = 3").as_deref(), Some(unknown));
}

/// No session, role or database can give the server another worker ID.
fn check_only_configuration(builder: Builder) -> Result<(), String> {
    let (mut server, mut session) = builder.start_session();
    session.run("CREATE ROLE clerk LOGIN SUPERUSER");
    for (name, value) in [("worker_id", "2"), ("datacenter_id", "0"), ("layout", "41:11:11"), ("epoch", "0")] {
        let setting = format!("snowflake_pg.{name} = '{value}'");
        for way in ["SET", "SET LOCAL", "ALTER ROLE clerk SET", "ALTER DATABASE postgres SET", "ALTER ROLE ALL SET"] {
            let code = session.code(&format!("{way} {setting}"));
            ensure!(code.as_deref() == Some("55P02"), "{way} {setting} gave {code:?}");
        }
        let options = format!("-c snowflake_pg.{name}={value}");
        let connected = server.config("postgres").options(&options).connect(postgres::NoTls);
        ensure!(connected.is_err(), "a connection may bring {options}");
    }
    // A change of the configuration takes effect at the next start.
    let worker = "SELECT worker_id FROM snowflake_decode(snowflake_nextval())";
    server.unset("snowflake_pg.worker_id");
    for setting in ["worker_id = 9", "max_ahead = '55ms'"] {
        session.run(&format!("ALTER SYSTEM SET snowflake_pg.{setting}"));
    }
    server.reload();
    let reloaded = within(Duration::from_secs(60), || session.one::<String>("SHOW snowflake_pg.max_ahead") == "55ms");
    ensure!(reloaded, "the reload has no effect");
    ensure!(session.one::<i32>(worker) == 1, "a reload made this another worker");
    server.restart(cluster::Stop::Fast);
    ensure!(server.session().one::<i32>(worker) == 9, "a restart did not make this worker 9");
    Ok(())
}

#[test]
fn nobody_but_the_configuration_sets_the_identity() {
    check_only_configuration(Cluster::builder("only_configuration")).unwrap();
}

#[test]
fn a_worker_id_that_everybody_may_set_is_caught() {
    let server = Cluster::builder("only_configuration_fault").fault("WorkerForEverybody");
    assert_caught(check_only_configuration(server), "SET snowflake_pg.worker_id = '2' gave None");
}
