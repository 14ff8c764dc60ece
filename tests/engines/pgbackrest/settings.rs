//! What a restore leaves behind: settings of the recovery, and a stanza into which two servers archive.

use cluster::{Answer, Cluster, Stop, assert_caught, ensure, within};

use crate::pgbackrest::hosts::{BackupHosts, Lost, PATIENCE, block, psql, section, wait_for_archive, wait_for_end};

/// Checks that a standby of a restored server follows it.
fn check_standby(db1: &Cluster, hosts: &BackupHosts) -> Result<(), String> {
    let standby = db1.standby(hosts.builder("db2").set("snowflake_pg.worker_id", "2"));
    // The recovery would end before this commit, whose time is later than the target.
    let id: i64 = db1.connect().one("INSERT INTO orders (customer) VALUES ('replicated') RETURNING id");
    let mut promoted = false;
    let ended = within(PATIENCE, || {
        let mut session = standby.connect();
        promoted = !session.one::<bool>("SELECT pg_is_in_recovery()");
        promoted || session.one(&format!("SELECT EXISTS (SELECT FROM orders WHERE id = {id})"))
    });
    ensure!(ended, "the standby does not follow:\n{}", standby.log());
    ensure!(!promoted, "the standby has promoted itself");
    Ok(())
}

#[test]
fn a_standby_of_a_restored_server_follows_it_after_the_settings_are_removed() {
    let hosts = BackupHosts::new("standby_of");
    let mut db1 = hosts.set_up(hosts.builder("db1").set("snowflake_pg.worker_id", "1")).unwrap();
    let lost = Lost::issue(&db1).unwrap();
    hosts.shell("db1", &lost.at(&block("Restore in place to an earlier time", "sh db1"))).unwrap();
    db1.stop(Stop::Fast);
    db1.start();
    wait_for_end(&db1).unwrap();
    assert_caught(check_standby(&db1, &hosts), "the standby has promoted itself");
    let [remove] = section("Remove the recovery settings").rest(["sql db1"]);
    psql(&db1, &remove).unwrap();
    check_standby(&db1, &hosts).unwrap();
}

/// Restores a copy of the server on one host, and as much as possible of the server on another host. The copy is restored with this
/// option. Checks that the second host has the rows of the server.
fn check_stanza(db1: &Cluster, hosts: &BackupHosts, [copied, restored]: [&str; 2], option: &str) -> Result<(), String> {
    let insert = |server: &Cluster, name: &str| {
        let insert = format!("INSERT INTO orders (customer) VALUES ('{name}')");
        server.connect().batch_execute(&insert).map_err(|error| error.to_string())
    };
    let target = db1.connect().one("SELECT clock_timestamp()::text");
    insert(db1, "later")?;
    wait_for_archive(db1)?;
    let lost = Lost { target, mark: 0, ids: Vec::new() };
    let mut copy = hosts.builder(copied).set("snowflake_pg.worker_id", "2").empty();
    let configuration = block("Set up the repository", "ini db1");
    hosts.configure(copied, &configuration)?;
    let restore = lost.at(&block("Restore on another host while the old server runs", "sh db2"));
    ensure!(restore.contains("--archive-mode=off"), "{restore}");
    hosts.shell(copied, &restore.replace("--archive-mode=off", option))?;
    copy.start();
    wait_for_end(&copy)?;
    insert(&copy, "copy")?;
    if option.is_empty() {
        wait_for_archive(&copy)?;
    }
    insert(db1, "latest")?;
    wait_for_archive(db1)?;

    let mut server = hosts.builder(restored).set("snowflake_pg.worker_id", "3").empty();
    hosts.configure(restored, &configuration)?;
    let restore = block("Replace a server that is gone", "sh db3");
    hosts.shell(restored, &restore.replace(" restore", " --archive-mode=off restore"))?;
    server.start();
    wait_for_end(&server)?;
    let customers = |server: &Cluster| server.connect().all::<String>("SELECT customer FROM orders ORDER BY id");
    let (expected, found) = (customers(db1), customers(&server));
    ensure!(found == expected, "the server has the rows {found:?}, not {expected:?}");
    Ok(())
}

#[test]
fn a_copy_that_does_not_archive_leaves_the_stanza_to_the_server() {
    let hosts = BackupHosts::new("stanza");
    let db1 = hosts.set_up(hosts.builder("db1").set("snowflake_pg.worker_id", "1")).unwrap();
    check_stanza(&db1, &hosts, ["db2", "db3"], "--archive-mode=off").unwrap();
    let both = check_stanza(&db1, &hosts, ["db4", "db5"], "");
    assert_caught(both, "the server has the rows [\"before\", \"later\", \"latest\", \"copy\"]");
}
