//! A server's clock was days ahead and is right again, as in "IDs from the future" of docs/bad-day.md.

use std::fs;

use cluster::{Answer, Boot, Client, Cluster, Stop, check_unique, within};

use crate::fleet::{LAYOUT, SOON, refused, renewed, renewed_above, seen, server, string, with_server};

/// Three days minus a minute.
const AHEAD: &str = "+259140";
const ENDED: &str = "the grant for worker ID 0 has ended";

/// Draws IDs, and checks that their times are those of the clock.
fn draw(client: &mut Client, ids: &mut Vec<i64>) {
    ids.extend(client.batch(1_000));
    let now = "SELECT snowflake_timestamp(snowflake_nextval()) < clock_timestamp() + interval '1 minute'";
    assert!(client.one::<bool>(now), "the IDs are ahead of the clock");
}

fn heartbeat(registry: &Cluster, server: &Cluster) {
    let count = seen(registry, server)[0].count;
    renewed_above(registry, server, count + 1);
}

#[test]
fn a_restart_ends_the_error_after_a_wrong_clock_was_accepted() {
    let (registry, mut server, _) = with_server("ahead", |builder| builder.clock("+0"));
    let mut client = server.session();
    let mut ids = client.batch(1_000);
    server.set_clock(AHEAD);
    client.batch_execute("SELECT snowflake_accept_clock()").expect("a superuser may");
    assert_eq!(refused(&mut client).expect("the clock is above the bound").1, ENDED);
    // Both clocks are right and heartbeats succeed, but generator time stays ahead.
    server.set_clock("+0");
    heartbeat(&registry, &server);
    assert_eq!(refused(&mut client).expect("generator time is above the bound").1, ENDED);
    let below: bool = client.one("SELECT mark_lead < interval '1 day' FROM snowflake_status");
    assert!(below, "no ID is that far ahead");
    server.restart(Stop::Fast);
    let mut client = server.connect();
    assert!(within(SOON, || refused(&mut client).is_none()), "{}", server.log());
    draw(&mut client, &mut ids);
    check_unique(&mut ids).unwrap();
}

#[test]
fn a_server_that_was_started_with_a_wrong_clock_continues_when_the_clock_is_right() {
    let (_registry, mut server, _) = with_server("ahead_start", |builder| builder.clock("+0"));
    let mut ids = server.session().batch(1_000);
    server.set_clock(AHEAD);
    server.restart(Stop::Fast);
    let mut client = server.connect();
    let ended = || refused(&mut client).is_some_and(|error| error.1.ends_with("has ended"));
    assert!(within(SOON, ended), "{}", server.log());
    server.set_clock("+0");
    assert!(within(SOON, || refused(&mut client).is_none()), "{}", server.log());
    draw(&mut client, &mut ids);
    check_unique(&mut ids).unwrap();
}

/// The registry's clock was ahead, too, so that the server has issued IDs from the future.
#[test]
fn a_server_with_ids_from_the_future_gets_a_different_worker_id_without_its_witness() {
    let machine = Boot::new("ahead_both");
    let registry = Cluster::builder("ahead_both_registry").clock(AHEAD).start_registry(LAYOUT);
    let mut server = server("ahead_both_1", &string(&registry)).on(&machine).clock(AHEAD).start();
    renewed(&registry, &server);
    let mut client = server.session();
    client.batch_execute("CREATE TABLE rows (id bigint DEFAULT snowflake_nextval())").expect("a superuser may");
    client.batch_execute("INSERT INTO rows SELECT FROM generate_series(1, 1000)").expect("the server has a worker ID");
    registry.set_clock("+0");
    server.set_clock("+0");
    heartbeat(&registry, &server);
    assert!(client.one::<bool>("SELECT mark_lead > interval '1 day' FROM snowflake_status"));
    let before: i32 = client.one("SELECT worker_id FROM snowflake_status");
    server.stop(Stop::Fast);
    machine.witnesses().iter().for_each(|file| fs::remove_file(file).expect("the file can be removed"));
    server.start();
    let mut client = server.connect();
    let worker = "SELECT worker_id FROM snowflake_status";
    let changed = within(SOON, || client.one::<Option<i32>>(worker).is_some_and(|worker| worker != before));
    assert!(changed, "{}", server.log());
    // The mark is still ahead. No row has an ID of the new worker ID.
    let sql = "SELECT snowflake_set_mark(snowflake_max_id(now()), 'rows')";
    client.batch_execute(sql).expect("the statement of the page");
    let mut ids = client.all::<i64>("SELECT id FROM rows");
    draw(&mut client, &mut ids);
    server.restart(Stop::Immediate);
    let mut client = server.connect();
    assert!(within(SOON, || refused(&mut client).is_none()), "{}", server.log());
    draw(&mut client, &mut ids);
    check_unique(&mut ids).unwrap();
}
