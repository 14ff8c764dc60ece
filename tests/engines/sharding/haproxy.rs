//! HAProxy in front of a Patroni cluster, while another member becomes the leader.

use cluster::{
    Answer, Ask, Client, HaProxy, Host, Load, PATIENCE, Patroni, SPARSE_LAYOUT, check_unique, draw_beside, output,
    within,
};
use postgres::NoTls;

use crate::sharding::page::{compare, section};

/// The option of the page that ends the connections to a former primary.
const SHUTDOWN: &str = " on-marked-down shutdown-sessions";

/// Waits until sessions have inserted rows on the server of this connection.
fn wait_for_rows(client: &mut Client) {
    let own =
        "SELECT count(*) FROM load_rows WHERE id >> 12 & 1023 = current_setting('snowflake_pg.worker_id')::bigint";
    assert!(within(PATIENCE, || client.one::<i64>(own) > 50), "the load does not reach the primary");
}

/// The settings of a server that issues only a few IDs a second, without gaps.
const SPARSE: [(&str, &str); 2] = [("snowflake_pg.layout", SPARSE_LAYOUT), ("snowflake_pg.max_ahead", "10s")];

/// The name of another member than this one.
fn other(leader: usize) -> usize {
    (leader + 1) % 3
}

#[test]
fn clients_of_haproxy_follow_the_leader_and_get_no_id_twice() {
    let mut patroni = Patroni::with_registry("sharding_haproxy", &[]);
    let haproxy = HaProxy::start("sharding_haproxy", &patroni, |text| text);
    let first = patroni.leader();
    let mut client = haproxy.connect(&patroni, first);
    client.batch_execute("CREATE TABLE load_rows (id bigint DEFAULT snowflake_nextval())").expect("a superuser may");
    let [_, shell, shown] = section("HAProxy in front of Patroni").rest(["text haproxy", "sh haproxy", "text"]);
    let shell = format!("set -e\n{}", shell.replace("10.0.0.5", &haproxy.address));
    // HAProxy takes every member for available until its first checks have ended.
    let leads = |port: u16, to_standbys: bool| {
        let sql = "SELECT pg_is_in_recovery()";
        let one = || haproxy.config(port).connect(NoTls).and_then(|mut client| client.query_one(sql, &[]));
        (0..6).all(|_| one().is_ok_and(|row| row.get::<_, bool>(0) == to_standbys))
    };
    assert!(within(PATIENCE, || leads(5000, false) && leads(5001, true)), "wrong members:\n{}", haproxy.log());
    let printed = output(Host::get().shell(&shell).env("PGPASSWORD", "postgres-secret"));
    compare(&printed, &shown).unwrap();

    let load = Load::at(&haproxy.config(5000), 4, Ask::ALL, "");
    wait_for_rows(&mut client);
    patroni.switchover(other(first));
    let mut client = haproxy.connect(&patroni, other(first));
    wait_for_rows(&mut client);

    // The server goes on without Patroni, but HAProxy ends the connections to it.
    let former = patroni.wait_for_members();
    assert_eq!(former, other(first));
    patroni.members[former].kill_patroni();
    let next = patroni.leader_after(former);
    let mut new = haproxy.connect(&patroni, next);
    let ended = within(PATIENCE, || client.simple_query("SELECT 1").is_err());
    assert!(ended, "the connection to the former primary goes on");
    assert!(patroni.members[former].postmaster().is_some(), "the former primary has ended, which shows nothing");
    wait_for_rows(&mut new);
    let history = load.finish();
    history.check(500).unwrap();
    let mut workers: Vec<i64> = history.ids().iter().map(|id| id >> 12 & 1023).collect();
    workers.sort_unstable();
    workers.dedup();
    assert!(workers.len() >= 2, "only one server issued IDs: {workers:?}");
}

fn without_shutdown(text: String) -> String {
    assert!(text.contains(SHUTDOWN), "{text}");
    text.replace(SHUTDOWN, "")
}

/// Without the option that ends its connections, a former primary without Patroni issues IDs beside the new one. The control is that of
/// `patroni/failovers.rs`, in which all members have one worker ID.
#[test]
fn a_former_primary_with_connected_clients_repeats_nothing() {
    let mut patroni = Patroni::with_registry("sharding_former", &SPARSE);
    let haproxy = HaProxy::start("sharding_former", &patroni, without_shutdown);
    let leader = patroni.leader();
    let mut old = haproxy.connect(&patroni, leader);
    patroni.members[leader].kill_patroni();
    let next = patroni.leader_after(leader);
    let mut new = haproxy.connect(&patroni, next);
    let mut ids = draw_beside(&mut old, &mut new);
    let address = "SELECT host(inet_server_addr())";
    let addresses: [String; 2] = [old.one(address), new.one(address)];
    assert_eq!(addresses, [leader, next].map(|member| patroni.members[member].address.clone()));
    assert!(ids.len() > 60, "only {} IDs", ids.len());
    check_unique(&mut ids).unwrap();
}
