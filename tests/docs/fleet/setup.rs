//! A fleet is set up, observed and extended.

use std::path::Path;

use cluster::{Answer, Cluster, Host, Recipe, command, output, within};

use crate::fleet::hosts::{FleetHosts, SOON, check, check_next, psql, section, wait_for_heartbeat, wait_for_worker};

/// Returns the path of the registry's script.
fn script(name: &str) -> String {
    let share = output(command(Host::get().installation().bin.join("pg_config")).arg("--sharedir"));
    Path::new(&share).join("extension").join(name).display().to_string()
}

#[test]
fn a_fleet_is_set_up_as_the_page_says() {
    let hosts = FleetHosts::new("setup");
    let registry = hosts.builder("registry.example").start();
    let mut setup = section("Set up the registry");
    psql(&registry, "postgres", &setup.block("sql registry")).unwrap();

    // In another database of another server, the script does the same.
    let managed = hosts.builder("registry2.example").start();
    psql(&managed, "postgres", "CREATE DATABASE fleet; CREATE ROLE fleet LOGIN").unwrap();
    let name = format!("snowflake_registry--{}.sql", env!("CARGO_PKG_VERSION"));
    let block = setup.block("sh script").replace("registry.example", "registry2.example");
    assert!(block.contains(&name), "the page has another version than {name}");
    hosts.shell(&block.replace(&name, &script(&name)), &managed).unwrap();
    let create = "SELECT snowflake_registry.create_fleet('41:10:12'); SELECT snowflake_registry.grant_server('fleet')";
    psql(&managed, "fleet", create).unwrap();

    // Servers that connect through the socket need the password, too.
    let hba = format!("local all postgres trust\nlocal fleet fleet scram-sha-256\n{}", setup.block("text hba"));
    Host::get().write(&registry.dir().join("pg_hba.conf"), &hba);
    registry.reload();
    assert_eq!(registry.connect().all::<String>("SELECT error FROM pg_hba_file_rules WHERE error <> ''"), [""; 0]);
    assert!(setup.is_empty());

    let mut servers = section("Configure the servers");
    let conf = servers.block("conf server");
    let mut fleet = Vec::new();
    for host in ["db1", "db2"] {
        let mut server = hosts.builder(host).set("snowflake_pg.lease", "10min").create();
        server.append(&hosts.here(&conf));
        if host == "db1" {
            hosts.shell(&servers.block("sh server"), &server).unwrap();
        }
        server.start();
        wait_for_worker(&server, if host == "db1" { 0 } else { 1 });
        fleet.push(server);
    }
    let logged: Vec<&Cluster> = fleet.iter().filter(|server| server.log().contains("example-secret")).collect();
    assert!(logged.is_empty(), "the password is in a log");
    wait_for_heartbeat(&registry, 0);
    check_next(&mut servers, "sql server", &fleet[0], "postgres");
    assert!(servers.is_empty());

    let mut seen = section("See which server has which worker ID");
    wait_for_heartbeat(&registry, 1);
    check_next(&mut seen, "sql servers", &registry, "fleet");
    let id: i64 = fleet[0].session().one("SELECT snowflake_nextval()");
    assert!(seen.is_empty());
    let mut issuer = Recipe::of("docs/duplicates.md", "With a registry");
    let query = issuer.block("sql handovers").replace("2124459828209254400", &id.to_string());
    check(&registry, "fleet", &query, &issuer.block("text"));
    assert!(issuer.is_empty());

    let mut add = section("Add a server");
    let mut standby = hosts.builder("db3").set("snowflake_pg.lease", "10min").set("hot_standby", "on").empty();
    hosts.shell(&add.block("sh db3"), &standby).unwrap();
    standby.start();
    check_next(&mut add, "sql standby", &registry, "fleet");
    assert!(add.is_empty());
    standby.promote();
    wait_for_worker(&standby, 2);
}

#[test]
fn a_worker_id_is_reserved_and_released_as_the_page_says() {
    let hosts = FleetHosts::new("reserve");
    let registry = hosts.registry("registry.example", "41:10:12");
    let mut reserve = Recipe::of("docs/portable.md", "A managed server beside servers with the library");
    let mut client = registry.connect_to("fleet");
    let state = "SELECT max(state) FROM snowflake_registry.servers WHERE worker_id = 767";
    check_next(&mut reserve, "sql reserve", &registry, "fleet");
    assert_eq!(client.one::<String>(state), "reserved");
    // The statement succeeds only once.
    check_next(&mut reserve, "sql release", &registry, "fleet");
    assert_ne!(client.one::<String>(state), "reserved");
    assert!(reserve.is_empty());
}

/// A password in the connection string is written to the log at a reload, which is why the page keeps it in a file.
#[test]
fn a_reload_writes_the_connection_string_to_the_log() {
    let hosts = FleetHosts::new("logged");
    let mut server = hosts.server("db1").start();
    server.set("snowflake_pg.registry", "host=/nowhere password=example-secret");
    server.reload();
    assert!(within(SOON, || server.log().contains("password=example-secret")), "{}", server.log());
}
