//! Every named layout as the layout of a server: the server issues IDs of that layout, or says why it cannot.

use std::thread;

use cluster::{Answer, Cluster, ensure};

/// A preset to test: its name, the largest worker ID, the largest datacenter ID, and whether it can reserve.
const HONOURED: [(&str, u32, u32, bool); 7] = [
    ("twitter", 1023, 0, true),
    ("discord", 31, 31, true),
    ("instagram", 8191, 0, true),
    ("mastodon", 0, 0, true),
    ("sonyflake", 65_535, 0, false),
    ("pgedge", 1023, 0, true),
    ("leaf", 1023, 0, true),
];

fn check_server(name: &str, worker: u32, datacenter: u32, reserves: bool) -> Result<(), String> {
    let (mut server, mut session) = Cluster::builder(&format!("preset_{name}"))
        .set("snowflake_pg.layout", name)
        .set("snowflake_pg.worker_id", &worker.to_string())
        .set("snowflake_pg.datacenter_id", &datacenter.to_string())
        .start_session();
    let ids: Vec<i64> = session.all("SELECT snowflake_nextval_batch(10000)");
    ensure!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{name}: IDs do not increase");
    session
        .batch_execute("CREATE TABLE ids AS SELECT snowflake_nextval_batch(10000) AS id")
        .map_err(|e| format!("{name}: {e}"))?;
    // The layout's name gives the same parts as the settings of the server.
    let wrong: i64 = session.one(&format!(
        "SELECT count(*) FROM ids, snowflake_decode(id) AS own, snowflake_decode(id, '{name}') AS named
         WHERE (own.created_at, own.datacenter_id, own.worker_id, own.sequence) IS DISTINCT FROM
               (named.created_at, coalesce(named.datacenter_id, 0), coalesce(named.worker_id, 0), named.sequence)
            OR own.worker_id <> {worker} OR own.datacenter_id <> {datacenter}
            OR abs(extract(epoch FROM own.created_at - clock_timestamp())) > 60"
    ));
    ensure!(wrong == 0, "{name}: {wrong} IDs are read differently");
    let reserved = session.code("SELECT snowflake_reserve(10)");
    let expected = if reserves { None } else { Some("0A000") };
    ensure!(reserved.as_deref() == expected, "{name}: snowflake_reserve gave {reserved:?}");
    drop(session);

    server.stop(cluster::Stop::Fast);
    server.set("snowflake_pg.worker_id", &(worker + 1).to_string());
    let log = server.try_start().expect_err("a worker ID that does not fit");
    let reason = match worker {
        0 => format!("Layout \"{}\" has no worker field, so only one server can use this layout.", "47:0:16"),
        _ => format!("the value must be an integer from 0 to {worker}."),
    };
    ensure!(log.contains(&reason), "{name}: {log}");
    Ok(())
}

#[test]
fn a_server_issues_ids_of_every_preset_whose_time_is_not_used_up() {
    let runs = HONOURED.map(|(name, worker, datacenter, reserves)| {
        thread::spawn(move || check_server(name, worker, datacenter, reserves))
    });
    let failures: Vec<String> = runs.into_iter().filter_map(|run| run.join().expect("a server").err()).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_preset_whose_time_is_used_up_says_so_and_works_with_a_later_epoch() {
    let (mut server, mut session) =
        Cluster::builder("preset_used_up").set("snowflake_pg.layout", "uid-generator").start_session();
    let (code, message) = session.refusal("SELECT snowflake_nextval()");
    assert_eq!([code, message], ["2200H", "the timestamps of layout \"28:22:13@1s\" are exhausted"]);
    let detail = session.batch_execute("SELECT snowflake_nextval()").map_err(|error| cluster::sqlstate(&error).2);
    assert_eq!(detail, Err("The last tick of this layout ends at 2024-11-20T13:24:16+00:00.".into()));
    // IDs that were issued before can still be read.
    let read: bool = session.one(
        "SELECT snowflake_timestamp(snowflake_encode('2017-01-19 12:15:46+08', 4, 9)) = timestamptz '2017-01-19 12:15:46+08'",
    );
    assert!(read);
    drop(session);
    server.set("snowflake_pg.epoch", "2026-01-01T00:00:00Z");
    server.restart(cluster::Stop::Fast);
    assert!(server.session().one::<i64>("SELECT snowflake_nextval()") > 0);
}

#[test]
fn a_layout_without_a_worker_field_says_that_its_number_is_0() {
    for (name, layout, why) in [
        ("preset_no_worker", "mastodon", "so only one server can use this layout"),
        ("preset_no_worker_bits", "41:5:0:12", "so servers are distinguished only by their datacenter IDs"),
    ] {
        let server = Cluster::builder(name).set("snowflake_pg.layout", layout).unset("snowflake_pg.worker_id").start();
        let refused = server.session().batch_execute("SELECT snowflake_nextval()");
        let (code, message, _, hint) = cluster::sqlstate(&refused.expect_err("no worker ID"));
        assert_eq!([code, message], ["55000", "parameter \"snowflake_pg.worker_id\" is not set"]);
        let expected = format!(
            "Set \"snowflake_pg.worker_id\" to 0 in postgresql.conf and restart the server. The layout has no worker field, {why}."
        );
        assert_eq!(hint, expected, "{layout}");
    }
}

#[test]
fn every_preset_was_tried() {
    let server = Cluster::builder("preset_names").start();
    let mut names: Vec<String> = server.session().all("SELECT name FROM snowflake_layouts ORDER BY name");
    names.retain(|name| name != "uid-generator");
    let mut tried = HONOURED.map(|(name, ..)| name);
    tried.sort_unstable();
    assert_eq!(names, tried);
}

#[test]
fn another_layout_is_caught() {
    // The control of the tests above: the server has another layout than the one by which its IDs are read.
    let server = Cluster::builder("preset_other").set("snowflake_pg.layout", "discord").start();
    let differ: bool = server
        .session()
        .one("SELECT snowflake_timestamp(id) <> snowflake_timestamp(id, 'pgedge') FROM snowflake_nextval() AS id");
    assert!(differ);
}
