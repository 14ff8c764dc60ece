//! The layout of a fleet changes, and servers with worker IDs in their configuration change to a registry.

use cluster::{
    Answer, Cluster, Recipe, SPARSE_LAYOUT, SPARSE_PER_SECOND, Stop, assert_caught, check_unique, ensure, within,
};

use crate::fleet::hosts::{FleetHosts, SOON, check, check_log, check_together, psql, section, wait_for_worker};

#[test]
fn a_fleet_with_another_layout_issues_ids_above_those_of_the_old_layout() {
    let hosts = FleetHosts::new("layout");
    let registry = hosts.registry_of(hosts.builder("registry.example").clock("+0"), "41:10:12");
    let mut server = hosts.server("db1").clock("+0").start();
    wait_for_worker(&server, 0);
    let old = server.session().batch(1_000);
    let mut change = Recipe::of("docs/layouts.md", "Change the layout of a fleet");
    let statement = change.block("sql layout");
    let refused = psql(&registry, "fleet", &statement.replace("41:12:10", "42:10:11")).expect_err("IDs would be lower");
    assert!(refused.contains("the IDs of the new layout would be lower than the existing IDs"), "{refused}");
    check(&registry, "fleet", &format!("BEGIN; {statement} ROLLBACK"), &change.block("text"));
    psql(&registry, "fleet", &statement).unwrap();
    check_log(&server, "heartbeat failed: the registry's fleet has a different layout or epoch");
    // The server continues with the old layout.
    let between = server.session().batch(1_000);
    let block = change.block("conf layout");
    assert!(change.is_empty());
    let (name, value) = cluster::settings(&block).next().expect("a setting");
    server.set(name, value);
    server.restart(Stop::Fast);
    check_log(&server, "heartbeat failed: the fleet does not grant IDs yet");
    for clock in [&registry, &server] {
        clock.set_clock("+1500");
    }
    wait_for_worker(&server, 0);
    let new = server.session().batch(1_000);
    assert!(old.iter().max() < between.iter().min() && between.iter().max() < new.iter().min());
}

/// A server with a configured worker ID continues while another server with another datacenter ID gets its worker ID from a registry.
#[test]
fn with_another_datacenter_id_servers_change_one_after_the_other() {
    const LAYOUT: &str = "41:5:5:12";
    let hosts = FleetHosts::new("datacenter");
    let _registry = hosts.registry("registry.example", LAYOUT);
    let configured = hosts.builder("db1").set("shared_preload_libraries", "snowflake_pg");
    let configured = configured.set("snowflake_pg.layout", LAYOUT).set("snowflake_pg.worker_id", "0").start();
    let changed = hosts.server("db2").set("snowflake_pg.layout", LAYOUT).set("snowflake_pg.datacenter_id", "1").start();
    wait_for_worker(&changed, 0);
    check_together(&[&configured, &changed]).unwrap();
}

/// Servers with configured worker IDs change to a registry. The clock of the first one is wrong, so that its IDs are in the future, and
/// the registry assigns its worker ID to the second one. `bounded` says whether the fleet is created with `not_before`.
fn check_change(test: &'static str, bounded: bool) -> Result<(), String> {
    let hosts = FleetHosts::new(test);
    let registry = hosts.builder("registry.example").clock("+0").start();
    let configured = |host: &str, worker: &str| {
        let builder = hosts.builder(host).set("shared_preload_libraries", "snowflake_pg").sparse();
        builder.set("snowflake_pg.worker_id", worker).set("snowflake_pg.lease", "10min").start()
    };
    let mut servers: Vec<Cluster> = vec![configured("db1", "0"), configured("db2", "1")];
    servers[0].set_clock("+60");
    servers[0].restart(Stop::Fast);
    let mut ids = servers[0].session().batch(SPARSE_PER_SECOND * 15);

    let mut change = section("Change from configured worker IDs to a registry");
    let (query, shown) = (change.block("sql configured"), change.block("text"));
    let mut latest = String::new();
    for server in &servers {
        server.session();
        check(server, "postgres", &query, &shown);
        let query = query.trim_end().trim_end_matches(';');
        latest = latest.max(server.connect().one(&format!("SELECT not_before::text FROM ({query}) AS t")));
    }
    servers.iter_mut().for_each(|server| server.stop(Stop::Fast));
    let create = change.block("sql not_before");
    assert!(change.is_empty());
    let written = create.split('\'').find(|part| part.starts_with("20")).expect("a time");
    let create = match bounded {
        true => create.replace(written, &latest),
        false => create.replace(&format!(", not_before => '{written}'"), ""),
    };
    let setup = section("Set up the registry").block("sql registry");
    let setup = setup.replace("SELECT snowflake_registry.create_fleet('41:10:12');\n", &create);
    psql(&registry, "postgres", &setup.replace("41:10:12", SPARSE_LAYOUT))?;

    let second = &mut servers[1];
    second.unset("snowflake_pg.worker_id");
    second.set("snowflake_pg.registry", &hosts.here("host=registry.example dbname=fleet user=fleet"));
    second.start();
    if bounded {
        check_log(second, "heartbeat failed: the fleet does not grant IDs yet");
        for clock in [&registry, second] {
            clock.set_clock("+700");
        }
    }
    let worker = || second.connect().one::<String>("SHOW snowflake_pg.worker_id") == "0";
    ensure!(within(SOON, worker), "the server has no worker ID:\n{}", second.log());
    if !bounded {
        second.set_clock_behind(&ids);
    }
    ids.extend(second.session().batch(SPARSE_PER_SECOND * 15));
    check_unique(&mut ids)
}

#[test]
fn servers_with_configured_worker_ids_change_to_a_registry() {
    check_change("configured", true).unwrap();
}

#[test]
fn a_registry_that_does_not_know_the_configured_worker_ids_is_caught() {
    assert_caught(check_change("unbounded", false), "IDs came twice");
}
