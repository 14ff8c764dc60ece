//! A backup from a standby is restored on another host.

use cluster::{Answer, Boot, Cluster, SPARSE_LAYOUT, Stop, assert_caught, check_unique, ensure};

use crate::pgbackrest::hosts::{
    BackupHosts, beside, block, number, section, wait_for_archive, wait_for_end, wait_for_next_second,
};

/// Restores a backup of the standby `db2` on `db3`, and lets the server issue IDs beside the primary.
fn check(test: &str, with_registry: bool) -> Result<(), String> {
    let hosts = BackupHosts::new(test);
    let machines = [1, 2, 3].map(|n| Boot::new(&format!("pgbackrest_{test}_{n}")));
    let registry =
        with_registry.then(|| Cluster::builder(&format!("pgbackrest_{test}_registry")).start_registry(SPARSE_LAYOUT));
    let like = |host: &str, n: usize| match &registry {
        Some(registry) => hosts.with_registry(host, registry).on(&machines[n - 1]),
        None => hosts.builder(host).on(&machines[n - 1]),
    };
    let db1 = hosts.prepare(like("db1", 1), if with_registry { "" } else { "snowflake_pg.worker_id = 1" })?;
    let create = block("Set up the repository", "sh db1");
    hosts.shell("db1", create.lines().next().expect("the first command"))?;
    let mut db2 = db1.standby(like("db2", 2));
    if !with_registry {
        db2.append("snowflake_pg.worker_id = 2");
        db2.restart(Stop::Fast);
        assert_eq!(number(&db2), "2");
    }
    let mut ids = db1.connect().batch(100);

    let [configuration, back_up] = section("Back up from a standby").rest(["ini backup", "sh backup"]);
    hosts.configure_backup(&configuration)?;
    let printed = hosts.shell("backup", &format!("export PGBACKREST_LOG_LEVEL_CONSOLE=info\n{back_up}"))?;
    ensure!(printed.contains("replay on the standby reached"), "not from the standby:\n{printed}");
    wait_for_next_second();
    wait_for_archive(&db1)?;
    ids.extend(db1.connect().batch(100));

    let mut db3 = like("db3", 3).empty();
    hosts.configure("db3", &block("Set up the repository", "ini db1"))?;
    hosts.shell("db3", "pgbackrest --stanza=main --archive-mode=off restore")?;
    db3.start();
    wait_for_end(&db3)?;
    db3.wait_for_ids();
    let (primary, restored) = (number(&db1), number(&db3));
    ensure!(restored != number(&db2), "the server has the worker ID of the standby");
    ids.extend(beside(&db1, &db3));
    let unique = check_unique(&mut ids);
    ensure!((restored == primary) == unique.is_err(), "the servers have the worker IDs {primary} and {restored}");
    unique
}

#[test]
fn a_backup_of_a_standby_that_is_restored_elsewhere_gets_its_worker_id_from_the_registry() {
    check("of_standby", true).unwrap();
}

#[test]
fn a_backup_of_a_standby_that_brings_the_worker_id_of_the_primary_is_caught() {
    assert_caught(check("of_standby_left", false), "IDs came twice");
}
