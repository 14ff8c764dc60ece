//! The figures of servers with a registry, and those of the registry.

use cluster::{Answer, Client, Cluster, assert_caught, ensure, within};

use crate::monitoring::exporter::Exporter;
use crate::monitoring::{PATIENCE, check_figures, page};

/// The name and the labels of a figure.
type MetricSample = (&'static str, &'static [(&'static str, &'static str)]);

/// The expression for each figure of the registry, written independently of the page. The names begin with `snowflake_registry_`.
const SHOWN: [(MetricSample, &str); 7] = [
    (("life", &[]), "SELECT life FROM snowflake_registry.fleet"),
    (("quarantine", &[]), "SELECT count(quarantine_until) FROM snowflake_registry.status"),
    (("servers_count", &[("state", "live")]), "SELECT count(*) FROM snowflake_registry.node WHERE worker_id < 2"),
    (("servers_count", &[("state", "late")]), "SELECT 0"),
    (("servers_count", &[("state", "gone")]), "SELECT count(*) FROM snowflake_registry.node WHERE worker_id = 2"),
    (("worker_ids_total", &[("datacenter_id", "0")]), "SELECT 768"),
    (("worker_ids_free", &[("datacenter_id", "0")]), "SELECT 766"),
];

/// Checks that the exporter shows every figure of the registry.
fn check_registry(registry: &Cluster, session: &mut Client, queries: &str) -> Result<(), String> {
    let exporter = Exporter::start(registry, queries, &[]);
    let scrape = exporter.scrape();
    exporter.check(&scrape, &page::registry_queries())?;
    for ((name, labels), sql) in SHOWN {
        let found = scrape.with(&format!("snowflake_registry_{name}"), labels)?;
        let expected: i64 = session.one(&format!("SELECT ({sql})::bigint"));
        ensure!(found == expected as f64, "{name} with labels {labels:?} is {found}, not {expected}");
    }
    Ok(())
}

#[test]
fn the_exporters_of_a_fleet_show_what_its_views_show() {
    let registry = Cluster::builder("monitoring_registry").start_registry("41:10:12");
    let mut owner = registry.connect();
    owner.batch_execute(&page::role()).expect("a new role");
    let string = format!("host={} port=5432 user=postgres dbname=postgres", registry.socket().display());
    let member = |name: &str| {
        let builder = Cluster::builder(name).unset("snowflake_pg.worker_id").set("snowflake_pg.lease", "10min");
        builder.set("snowflake_pg.registry", &string).start()
    };
    // Each server is awaited, so that it gets the next worker ID.
    let mut servers: Vec<Cluster> = Vec::new();
    for name in ["monitoring_member_0", "monitoring_member_1", "monitoring_member_2"] {
        servers.push(member(name));
        let renewed = "SELECT count(*) FROM snowflake_registry.node WHERE count > 1";
        assert!(within(PATIENCE, || owner.one::<i64>(renewed) == servers.len() as i64), "{}", servers[0].log());
    }
    let mut session = servers[0].session();
    session.batch_execute(&page::role()).expect("a new role");
    check_figures(&servers[0], &mut session, &page::queries(), &[]).unwrap();
    let other = page::queries().replacen("failed_heartbeats,", "failed_heartbeats + 1 AS failed_heartbeats,", 1);
    assert_caught(check_figures(&servers[0], &mut session, &other, &[]), "failed_heartbeats is 1");
    // The last server is gone for longer than its grant.
    servers.pop();
    let gone = "UPDATE snowflake_registry.node SET bound = bound - (25 * 60 * 1000::bigint << 22) WHERE worker_id = 2";
    owner.batch_execute(gone).expect("a superuser may");
    check_registry(&registry, &mut owner, &page::registry_queries()).unwrap();
    let other = page::registry_queries().replacen("'gone'", "'left'", 1);
    assert_caught(check_registry(&registry, &mut owner, &other), "0 figures snowflake_registry_servers_count");
}
