//! Members with a worker ID in their own files: the places that override these files, and the change to the registry.

use std::fs;

use cluster::{Answer, Host, Patroni, PatroniMember, assert_caught, ensure, within};

use crate::patroni::page::{SOON, check, psql, section, shell};

/// Starts a cluster whose members have worker IDs 1, 2 and 3, as the page says.
fn start(test: &str) -> Patroni {
    let block = section("Without a registry").block("yaml db1");
    let line = block.lines().last().expect("the block has lines");
    let (name, value) = line.trim().split_once(": ").expect("a parameter and its value");
    assert_eq!((name, value), ("snowflake_pg.worker_id", "1"));
    Patroni::with_worker_ids(test, |member| member, &[])
}

fn workers(patroni: &Patroni) -> Vec<String> {
    patroni.members.iter().map(PatroniMember::worker).collect()
}

/// Checks that no two members have the same worker ID.
fn check_distinct(patroni: &Patroni) -> Result<(), String> {
    let mut workers = workers(patroni);
    workers.sort();
    ensure!(workers.windows(2).all(|pair| pair[0] != pair[1]), "two members have the same worker ID: {workers:?}");
    Ok(())
}

/// Restarts the server of a member, which has read the latest configuration.
fn restart(patroni: &Patroni, member: usize) {
    patroni.members[member].restart_postgres();
    patroni.wait_for_members();
}

/// Removes the worker ID from a member's file.
fn forget(patroni: &Patroni, member: &PatroniMember) {
    let text = fs::read_to_string(member.file()).expect("the driver has written it");
    let lines = text.lines().filter(|line| !line.contains("snowflake_pg.worker_id"));
    Host::get().write(&member.file(), &lines.map(|line| format!("{line}\n")).collect::<String>());
    shell(patroni, member, &format!("patronictl -c /etc/patroni/patroni.yml reload orders {} --force", member.name))
        .unwrap();
}

#[test]
fn a_members_file_overrides_the_common_configuration_and_the_base_file() {
    let patroni = start("patroni_local");
    assert_eq!(workers(&patroni), ["1", "2", "3"]);
    patroni.change("{\"postgresql\": {\"parameters\": {\"snowflake_pg.worker_id\": 9}}}");
    let leader = patroni.leader();
    let base = patroni.members[leader].dir().join("postgresql.base.conf");
    let known = fs::read_to_string(&base).expect("Patroni has renamed the file of initdb");
    Host::get().write(&base, &format!("{known}\nsnowflake_pg.worker_id = 7\n"));
    (0..3).for_each(|member| restart(&patroni, member));
    assert_eq!(workers(&patroni), ["1", "2", "3"]);

    // Without a worker ID in the files of Patroni, the base file has one, and a new base backup brings it.
    patroni.change("{\"postgresql\": {\"parameters\": {\"snowflake_pg.worker_id\": null}}}");
    let standby = (leader + 1) % 3;
    for member in [leader, standby] {
        forget(&patroni, &patroni.members[member]);
    }
    let pending = || {
        patroni.members[leader].request("GET", "/patroni", "").is_some_and(|(_, text)| text.contains("pending_restart"))
    };
    assert!(within(SOON, pending), "{}", patroni.log());
    restart(&patroni, leader);
    assert_eq!(patroni.members[leader].worker(), "7");
    patroni.members[standby].reinitialize();
    patroni.wait_for_members();
    assert_caught(check_distinct(&patroni), "two members have the same worker ID");
    assert_eq!(patroni.members[standby].worker(), "7");
}

#[test]
fn alter_system_overrides_a_members_file_and_is_copied() {
    let patroni = start("patroni_altered");
    let leader = patroni.leader();
    let alter = "ALTER SYSTEM SET snowflake_pg.worker_id = 7";
    patroni.members[leader].connect().batch_execute(alter).expect("a superuser may");
    restart(&patroni, leader);
    assert_eq!(patroni.members[leader].worker(), "7");
    let standby = (leader + 1) % 3;
    patroni.members[standby].reinitialize();
    patroni.wait_for_members();
    assert_eq!(patroni.members[standby].worker(), "7");
    assert_caught(check_distinct(&patroni), "two members have the same worker ID");

    let mut places = section("Settings that override the Patroni files");
    let query = places.block("sql member");
    check(&patroni, &places.block("text"), || psql(&patroni, &patroni.members[standby], "postgres", &query));
    let reset = places.block("sql reset");
    for member in [standby, leader] {
        psql(&patroni, &patroni.members[member], "postgres", &reset).unwrap();
        restart(&patroni, member);
    }
    assert_eq!(workers(&patroni), ["1", "2", "3"]);
    change(&patroni);
}

/// The members change to the registry, which assigns no worker ID before the time that the page tells the reader to find out.
fn change(patroni: &Patroni) {
    let [query, shown, create, forget, change] = section("Change from configured worker IDs to the registry").rest([
        "sql configured",
        "text",
        "sql not_before",
        "sh members",
        "sh change",
    ]);
    let leader = &patroni.members[patroni.leader()];
    check(patroni, &shown, || psql(patroni, leader, "postgres", &query));
    let query = query.trim_end().trim_end_matches(';');
    let not_before: String = leader.connect().one(&format!("SELECT not_before::text FROM ({query}) AS t"));
    let written = create.split('\'').find(|part| part.starts_with("20")).expect("a time");
    let create = create.replace(written, &not_before);
    let [_, _, setup] = section("Create the registry").rest(["sh list", "text", "sql leader"]);
    let changed = setup.replace("SELECT snowflake_registry.create_fleet('41:10:12');\n", &create);
    assert_ne!(setup, changed);
    psql(patroni, leader, "postgres", &changed).unwrap();
    for member in &patroni.members {
        shell(patroni, member, &forget).unwrap();
    }
    shell(patroni, leader, &change).unwrap();
    let says = "SELECT coalesce(heartbeat_error, '') LIKE 'the fleet does not grant IDs yet%' FROM snowflake_status";
    for member in &patroni.members {
        let waits = || member.try_connect().is_some_and(|mut session| session.one(says));
        assert!(within(SOON, waits), "{}", member.log());
    }
}
