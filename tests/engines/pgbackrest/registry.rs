//! The registry is in a database that is restored to a time before it assigned a worker ID.

use cluster::{Answer, Ask, Cluster, History, Stop, assert_caught, ensure, succeeds_within};

use crate::pgbackrest::hosts::{
    BackupHosts, Lost, PATIENCE, compare, number, psql, section, wait_for_archive, wait_for_end,
};

/// Restores the registry. A server that got its worker ID in the part that is lost cannot reach the registry, and continues.
fn check(test: &str, noticed: bool) -> Result<(), String> {
    let hosts = BackupHosts::new(test);
    let plain = hosts
        .builder("db1")
        .unset("shared_preload_libraries")
        .unset("snowflake_pg.layout")
        .unset("snowflake_pg.max_ahead");
    let mut registry = plain.create();
    hosts.start_archiving(&mut registry)?;
    registry.create_fleet("41:10:12");
    hosts.back_up()?;
    let target = registry.connect().one("SELECT clock_timestamp()::text");
    let lost = Lost { target, mark: 0, ids: Vec::new() };
    let server = |name: &str| {
        let string = format!("host={} port=5432 user=postgres dbname=postgres", registry.socket().display());
        let builder = Cluster::builder(&format!("pgbackrest_{test}_{name}")).unset("snowflake_pg.worker_id");
        builder.set("snowflake_pg.registry", &string).set("snowflake_pg.lease", "10min")
    };
    let (first, second) = (server("first"), server("second"));
    let mut first = first.start();
    first.wait_for_ids();
    ensure!(number(&first) == "0", "the server has worker ID {}", number(&first));
    wait_for_archive(&registry)?;
    first.set("snowflake_pg.registry", "host=/nowhere");
    first.reload();

    let [restore, query, shown] = section("Restore the registry").rest(["sh registry", "sql registry", "text"]);
    registry.stop(Stop::Fast);
    if noticed {
        hosts.shell("db1", &lost.at(&restore))?;
    } else {
        let files = hosts.shell("db1", "pgbackrest --stanza=main --delta --type=none restore; ls /srv/pg/data")?;
        ensure!(files.contains("recovery.signal"), "without recovery.signal:\n{files}");
        hosts.shell("db1", "rm /srv/pg/data/recovery.signal")?;
    }
    registry.start();
    wait_for_end(&registry)?;
    let second = second.start();
    second.wait_for_ids();
    if noticed {
        succeeds_within(PATIENCE, || psql(&registry, &query).and_then(|printed| compare(&printed, &shown)))?;
    }
    let history = History::together(&[&first, &second], Ask::READING, std::time::Duration::from_secs(2))?;
    history.check(100)?;
    // The restored registry knows no server, so it assigns from the slice of its timeline, the second one, which has four spare worker IDs.
    let slice = 896 + 2 * 4;
    ensure!(number(&second) == slice.to_string(), "the new server has worker ID {}", number(&second));
    Ok(())
}

#[test]
fn a_registry_that_is_restored_notices_it() {
    check("registry", true).unwrap();
}

#[test]
fn a_registry_that_is_restored_without_recovery_is_caught() {
    assert_caught(check("registry_none", false), "IDs came twice");
}
