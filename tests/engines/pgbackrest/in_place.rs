//! A server is restored to an earlier time in its data directory.

use cluster::{
    Answer, Ask, Boot, Builder, Cluster, Load, SPARSE_LAYOUT, Stop, assert_caught, check_unique, draw_above, ensure,
    within,
};

use crate::pgbackrest::hosts::{
    BackupHosts, Lost, PATIENCE, block, compare, number, psql, section, wait_for_archive, wait_for_end,
};

/// What is done before clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InPlaceStep {
    Nothing,
    /// The mark is carried over as the page says.
    MarkSet,
    /// Nothing, but the machine was not restarted since.
    SameMachine,
    /// Nothing, but the server has a registry, and the machine was not restarted since.
    Registry,
    /// Nothing, but the server has a registry, and the machine was restarted.
    RegistryAfterRestart,
}

/// Restores a server whose clock is behind the IDs that were issued after the target.
fn check(test: &str, done: InPlaceStep) -> Result<(), String> {
    let hosts = BackupHosts::new(test);
    let machine = Boot::new(&format!("pgbackrest_{test}"));
    let has_registry = matches!(done, InPlaceStep::Registry | InPlaceStep::RegistryAfterRestart);
    let registry =
        has_registry.then(|| Cluster::builder(&format!("pgbackrest_{test}_registry")).start_registry(SPARSE_LAYOUT));
    let builder = match &registry {
        Some(registry) => hosts.with_registry("db1", registry),
        None => hosts.builder("db1").set("snowflake_pg.worker_id", "1"),
    };
    let mut db1 = hosts.set_up(builder.on((has_registry || done == InPlaceStep::SameMachine).then_some(&machine)))?;
    let worker = number(&db1);
    let lost = Lost::issue(&db1)?;
    let mut ids = db1.connect().all("SELECT id FROM orders WHERE customer = 'before'");
    ids.extend(&lost.ids);
    let last = lost.ids[lost.ids.len() - 1];

    let [query, shown, restore, warning, set] =
        section("Restore in place to an earlier time").rest(["sql db1", "text", "sh db1", "text db1", "sql db1"]);
    compare(&psql(&db1, &query)?, &shown)?;
    let mark: i64 = db1.connect().one("SELECT mark FROM snowflake_status");
    ensure!(mark > last, "the mark {mark} is below {last}");
    hosts.shell("db1", &lost.at(&restore))?;
    db1.stop(Stop::Fast);
    if done == InPlaceStep::RegistryAfterRestart {
        machine.reboot();
    }
    db1.set_clock_behind(&ids);
    db1.start();
    wait_for_end(&db1)?;
    let warned = within(PATIENCE, || db1.log().contains(warning.trim()) || has_registry);
    ensure!(warned, "no warning:\n{}", db1.log());
    if done == InPlaceStep::MarkSet {
        let example = "2124459828209254400";
        ensure!(set.contains(example), "the page's mark is another");
        psql(&db1, &set.replace(example, &mark.to_string()))?;
    }
    db1.wait_for_ids();
    ensure!((number(&db1) == worker) == (done != InPlaceStep::RegistryAfterRestart), "{} after {worker}", number(&db1));
    // The start can take longer than the clock is behind.
    db1.set_clock_behind(&ids);
    ids.extend(draw_above(&mut db1.connect(), lost.mark));
    check_unique(&mut ids)
}

#[test]
fn a_server_that_is_restored_with_its_mark_repeats_nothing() {
    check("mark_set", InPlaceStep::MarkSet).unwrap();
}

#[test]
fn a_server_that_is_restored_on_a_machine_that_was_not_restarted_repeats_nothing() {
    check("same_machine", InPlaceStep::SameMachine).unwrap();
}

#[test]
fn a_server_that_is_restored_with_a_registry_repeats_nothing() {
    check("registry_same", InPlaceStep::Registry).unwrap();
}

#[test]
fn a_server_that_is_restored_with_a_registry_after_a_restart_of_the_machine_repeats_nothing() {
    check("registry_restart", InPlaceStep::RegistryAfterRestart).unwrap();
}

#[test]
fn a_restored_server_that_is_left_as_it_is_is_caught() {
    assert_caught(check("left", InPlaceStep::Nothing), "IDs came twice");
}

/// The clock is right, and nothing else is done. The history contains the IDs that were issued during the backups and the restore.
#[test]
fn a_server_that_is_restored_while_its_clock_is_right_repeats_nothing() {
    let hosts = BackupHosts::new("clock_right");
    let like = |builder: Builder| builder.unset("snowflake_pg.layout").unset("snowflake_pg.max_ahead");
    let mut db1 = hosts.prepare(like(hosts.builder("db1")).set("snowflake_pg.worker_id", "1"), "").unwrap();
    let load = Load::start(&db1, 2, Ask::READING, "");
    hosts.back_up().unwrap();
    let target: String = db1.connect().one("SELECT clock_timestamp()::text");
    db1.connect().batch_execute("INSERT INTO orders (customer) VALUES ('after')").unwrap();
    wait_for_archive(&db1).unwrap();
    let mut history = load.finish();
    assert!(history.len() > 1_000, "{} IDs", history.len());
    let restore = block("Restore in place to an earlier time", "sh db1");
    let lost = Lost { target, mark: 0, ids: Vec::new() };
    hosts.shell("db1", &lost.at(&restore)).unwrap();
    db1.stop(Stop::Fast);
    db1.start();
    wait_for_end(&db1).unwrap();
    assert_eq!(db1.connect().one::<i64>("SELECT count(*) FROM orders WHERE customer = 'after'"), 0);
    let load = Load::start(&db1, 2, Ask::READING, "");
    std::thread::sleep(std::time::Duration::from_secs(1));
    history.merge(load.finish());
    history.check(1_000).unwrap();
}
