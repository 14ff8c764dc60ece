//! The registry fails over, moves to another server, or is in the cluster that it serves.

use cluster::{Boot, Host, Scratch, Stop, assert_caught, output, within};

use crate::fleet::hosts::{
    FleetHosts, SOON, check, check_log, check_next, check_together, psql, section, wait_for_heartbeat, wait_for_worker,
};

#[test]
fn a_registry_that_is_moved_to_a_standby_is_opened() {
    let hosts = FleetHosts::new("standby");
    let mut old = hosts.registry("registry.example", "41:10:12");
    let standby = old.standby(hosts.builder("registry2.example").set("hot_standby", "on"));
    let both = "host=registry.example,registry2.example dbname=fleet user=fleet target_session_attrs=read-write";
    let like = |host: &str| hosts.server(host).set("snowflake_pg.registry", &hosts.here(both));
    let _server = hosts.join(like("db1"), 0, &old);
    psql(&standby, "postgres", "SELECT pg_wal_replay_pause()").unwrap();
    wait_for_heartbeat(&old, 0);

    let mut steps = section("Move the registry to a standby");
    let printed = hosts.shell(&steps.block("sh old"), &old).unwrap();
    old.stop(Stop::Fast);
    let written = steps.block("text");
    let location = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("Latest checkpoint location:")).expect("a location");
        line.rsplit(' ').next().expect("a word").to_owned()
    };
    let (query, shown) = (steps.block("sql replayed"), steps.block("text"));
    let query = query.replace(&location(&written), &location(&printed));
    // A standby that has not replayed everything is noticed.
    check(&standby, "postgres", &query, &shown.replace(" t\n", " f\n"));
    psql(&standby, "postgres", "SELECT pg_wal_replay_resume()").unwrap();
    check(&standby, "postgres", &query, &shown);
    psql(&standby, "postgres", &steps.block("sql promote")).unwrap();
    assert!(steps.is_empty());
    wait_for_heartbeat(&standby, 0);
    check_next(&mut section("The registry is in quarantine"), "sql quarantine", &standby, "fleet");
    let mut end = section("End the quarantine");
    check_next(&mut end, "sql open", &standby, "fleet");
    assert!(end.is_empty());
    wait_for_worker(&like("db2").start(), 1);
}

/// The registry's server is upgraded with `pg_upgrade`, here to the same version.
#[test]
fn an_upgraded_registry_gives_out_no_worker_ids_until_it_is_opened() {
    let hosts = FleetHosts::new("upgraded");
    let mut old = hosts.registry("registry.example", "41:10:12");
    let mut server = hosts.join(hosts.server("db1"), 0, &old);
    old.stop(Stop::Fast);
    let mut new = hosts.builder("registry2.example").empty();
    let host = Host::get();
    let mut initdb = host.program("initdb");
    initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"]);
    output(initdb.arg(new.dir()));
    let bin = host.installation().bin.display().to_string();
    let work = Scratch::new("fleet_page_upgraded.work");
    let mut upgrade = host.program("pg_upgrade");
    upgrade.current_dir(&work.0).args(["--username=postgres", "-b", &bin, "-B", &bin, "-d"]).arg(old.dir());
    output(upgrade.arg("-D").arg(new.dir()).arg("--socketdir").arg(old.socket()));
    new.start();

    hosts.move_to_second(&mut server);
    wait_for_heartbeat(&new, 0);
    let mut quarantine = section("The registry is in quarantine");
    let (query, shown) = (quarantine.block("sql quarantine"), quarantine.block("text"));
    let shown = shown
        .replace("timeline 2 follows timeline 1", "the registry is in a different cluster or database than before");
    check(&new, "fleet", &query, &shown.replace("| t\n", "| f\n"));
    let string = hosts.here("host=registry2.example dbname=fleet user=fleet");
    let waiting = hosts.server("db2").set("snowflake_pg.registry", &string).start();
    check_log(&waiting, &quarantine.block("text waiting"));
    assert!(quarantine.is_empty());
    check_next(&mut section("End the quarantine"), "sql open", &new, "fleet");
    wait_for_worker(&waiting, 1);
    wait_for_worker(&server, 0);
}

/// Moves the registry by a dump while servers continue. `stopped` says whether the old registry stops assigning first.
fn check_move(test: &'static str, stopped: bool) -> Result<(), String> {
    let hosts = FleetHosts::new(test);
    let machine = Boot::new(&format!("fleet_page_{test}"));
    let old = hosts.registry("registry.example", "41:10:12");
    let mut server = hosts.join(hosts.server("db1").on(&machine), 0, &old);
    let mut steps = section("Move the registry with a dump");
    let login = steps.block("sql old");
    if stopped {
        psql(&old, "fleet", &login)?;
    }
    let (query, shown) = (steps.block("sql old"), steps.block("text"));
    if stopped {
        check(&old, "fleet", &query, &shown);
    }
    let new = hosts.builder("registry2.example").start();
    hosts.shell(&steps.block("sh new"), &new)?;
    // A server that is started during the move.
    let mut late = hosts.server("db2").start();
    if !stopped {
        wait_for_worker(&late, 1);
    }
    check_next(&mut steps, "sql new", &new, "fleet");
    assert!(steps.is_empty());

    let moved = hosts.here("host=registry2.example dbname=fleet user=fleet");
    let third = hosts.server("db3").set("snowflake_pg.registry", &moved).start();
    // A server that is not told yet continues with its grant.
    if stopped {
        hosts.move_to_second(&mut server);
        hosts.move_to_second(&mut late);
        wait_for_heartbeat(&new, 0);
        wait_for_worker(&server, 0);
    }
    check_together(&[&server, &late, &third])
}

#[test]
fn a_registry_that_is_moved_by_a_dump_gives_no_worker_id_twice() {
    check_move("moved", true).unwrap();
}

#[test]
fn a_registry_that_assigns_worker_ids_during_its_move_is_caught() {
    assert_caught(check_move("moved_running", false), "IDs came twice");
}

/// The registry is in a primary. Its standby is promoted, and then another server is added.
#[test]
fn a_registry_in_its_own_cluster_follows_the_primary() {
    let hosts = FleetHosts::new("embedded");
    let mut embedded = section("The registry inside the cluster that it serves");
    let block = embedded.block("conf embedded");
    assert!(embedded.is_empty());
    let (_, string) = cluster::settings(&block).next().expect("a setting");
    let like =
        |host: &str| hosts.server(host).set("snowflake_pg.registry", &hosts.here(string)).set("hot_standby", "on");
    let mut primary = hosts.registry_of(like("db1"), "41:10:12");
    wait_for_worker(&primary, 0);
    let standby = primary.standby(like("db2"));
    wait_for_heartbeat(&primary, 1);
    primary.stop(Stop::Fast);
    standby.promote();
    wait_for_worker(&standby, 1);
    wait_for_heartbeat(&standby, 1);
    let third = standby.standby(like("db3"));
    let spare = "SELECT role FROM snowflake_registry.servers WHERE worker_id = 768";
    let role = || psql(&standby, "fleet", spare).is_ok_and(|printed| printed.contains("standby"));
    assert!(within(SOON, role), "{}", third.log());
}
