//! Data directories that are copied, restored, or promoted.

use std::fs;
use std::time::Duration;

use cluster::{
    Answer, Ask, Boot, Builder, Cluster, History, Host, Load, SPARSE_LAYOUT, Stop, assert_caught, check_unique,
    draw_above, ensure, sqlstate, within,
};

use crate::fleet::{
    SOON, SeenServer, logged, number, registrar, registry, renewed, replace, seen, server, signal, status, string,
    wait_for_log, with_server,
};

/// Starts a copy of a server beside it: a base backup that is taken while sessions draw IDs, or a copy of the stopped data
/// directory.
fn check_copy(server: Builder, copied: Builder, backup: bool) -> Result<[Cluster; 2], String> {
    let mut server = server.start();
    server.wait_for_ids();
    let load = Load::start(&server, 2, Ask::READING, "");
    let mut twin = if backup {
        server.backup(copied)
    } else {
        server.stop(Stop::Fast);
        let twin = copied.empty();
        Host::get().copy_dir(server.dir(), twin.dir());
        server.start();
        twin
    };
    twin.start();
    twin.wait_for_ids();
    let mut ledger = History::together(&[&server, &twin], Ask::READING, Duration::from_secs(3))?;
    ledger.merge(load.finish());
    ledger.check(100)?;
    Ok([server, twin])
}

#[test]
fn a_copied_data_directory_has_its_own_worker_id_on_the_same_machine_and_on_another() {
    let registry = registry("issue_copied");
    let machines = [Boot::new("issue_copied_a"), Boot::new("issue_copied_b")];
    for (name, other, backup) in [
        ("issue_copied_here", 0, false),
        ("issue_copied_away", 1, false),
        ("issue_backup_here", 0, true),
        ("issue_backup_away", 1, true),
    ] {
        let like = |n: usize, machine: usize| server(&format!("{name}_{n}"), &string(&registry)).on(&machines[machine]);
        let servers = check_copy(like(1, 0), like(2, other), backup).unwrap();
        for server in &servers {
            assert_eq!(logged(server, "a copy of this server"), 0, "{}", server.log());
        }
        assert_ne!(number(&servers[0]), number(&servers[1]));
    }
}

#[test]
fn a_copied_data_directory_with_a_worker_id_is_caught() {
    let [server, copied] = ["issue_copied_alike_1", "issue_copied_alike_2"].map(Cluster::builder);
    assert_caught(check_copy(server, copied, false).map(drop), "IDs came twice");
}

/// Promotes a standby while its primary goes on.
fn check_promotion(primary: &Cluster, standby: Builder) -> Result<(), String> {
    drop(primary.session());
    let before = Load::start(primary, 1, Ask::READING, "");
    let standby = primary.standby(standby.set("hot_standby", "on"));
    std::thread::sleep(Duration::from_secs(2));
    let standing_by = standby.connect().query("SELECT snowflake_nextval()", &[]).expect_err("it is a standby");
    ensure!(sqlstate(&standing_by).0 == "25006", "{standing_by:?}");
    standby.promote();
    let beside = Load::start(primary, 1, Ask::READING, "");
    let mut ledger = before.finish();
    let promoted = History::together(&[&standby], Ask::READING, Duration::from_secs(3))?;
    ensure!(promoted.errors.is_empty(), "after the promotion: {:?}", promoted.errors);
    ledger.merge(promoted);
    ledger.merge(beside.finish());
    ledger.check(100)
}

#[test]
fn a_standby_that_is_promoted_beside_its_primary_repeats_nothing() {
    let (registry, primary, _) = with_server("issue_promoted", |builder| builder);
    check_promotion(&primary, server("issue_promoted_2", &string(&registry))).unwrap();
}

#[test]
fn a_standby_with_the_worker_id_of_its_primary_is_caught() {
    let primary = Cluster::builder("issue_promoted_alike_1").start();
    let outcome = check_promotion(&primary, Cluster::builder("issue_promoted_alike_2"));
    assert_caught(outcome, "IDs came twice");
}

/// Restores the data directory of a server to an earlier state. The clock is behind what the server has issued.
fn check_restore(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let registry = Cluster::builder(name).start_registry(SPARSE_LAYOUT);
    let machine = Boot::new(name);
    let mut server = change(server(&format!("{name}_1"), &string(&registry)).sparse().on(&machine)).start();
    renewed(&registry, &server);
    let mut ids = server.session().batch(16);
    let mark = server.shown_mark();
    server.stop(Stop::Fast);
    let aside = Host::get().fresh_dir(&format!("{name}.aside"));
    Host::get().copy_dir(server.dir(), &aside);
    server.start();
    ids.extend(draw_above(&mut server.session(), mark));
    server.stop(Stop::Fast);
    replace(server.dir(), &aside);
    let _ = fs::remove_dir_all(&aside);
    server.set_clock_behind(&ids);
    server.start();
    ensure!(server.log().contains("continuing with worker ID 0 from the witness"), "{}", server.log());
    let mut session = server.session();
    // The start can take longer than the clock is behind.
    server.set_clock_behind(&ids);
    ids.extend(draw_above(&mut session, mark));
    check_unique(&mut ids)
}

#[test]
fn a_data_directory_that_is_restored_in_place_begins_above_what_the_witness_contains() {
    check_restore("issue_restored", |builder| builder).unwrap();
}

#[test]
fn a_start_that_is_ignored_is_caught() {
    assert_caught(check_restore("issue_unstarted", |builder| builder.fault("StartIgnored")), "IDs came twice");
}

/// A copy of a running machine renews the grant. The first server is fenced while its sessions issue IDs.
fn check_fence(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let (machine, other) = (Boot::new(&format!("{name}_a")), Boot::new(&format!("{name}_b")));
    let (registry, mut first, _) = with_server(name, |builder| change(builder.on(&machine)));
    let mut client = first.session();
    client.batch(1_000);
    let guarded = "CREATE TABLE guarded (id bigint PRIMARY KEY); SELECT snowflake_guard('guarded')";
    client.batch_execute(guarded).expect("a superuser may");
    // The second server has a witness of its own, whose contents are replaced.
    let mut twin = server(&format!("{name}_2"), &string(&registry)).on(&other).start();
    renewed(&registry, &twin);
    twin.stop(Stop::Fast);
    let pid = registrar(&first).expect("the registrar runs");
    // A request that is on its way is answered.
    std::thread::sleep(Duration::from_millis(200));
    signal(pid, "STOP");
    let before = seen(&registry, &first).remove(0);
    fs::copy(machine.witnesses().remove(0), other.witnesses().remove(0)).expect("the witness can be copied");
    twin.start();
    wait_for_log(&twin, "continuing with worker ID 0 from the witness");
    // The twin's own worker ID is still in the registry, too.
    let renews = |seen: &SeenServer| seen.worker == before.worker && seen.count > before.count;
    assert!(within(SOON, || seen(&registry, &twin).iter().any(renews)), "the twin does not renew:\n{}", twin.log());
    client.batch(1_000);
    signal(pid, "CONT");
    wait_for_log(&first, "a copy of this server uses worker ID 0");
    for text in ["DETAIL:  The copy has host \"", "stop the other one. This server gets a different worker ID"] {
        assert!(first.log().contains(text), "{}", first.log());
    }
    let after = client.query("SELECT snowflake_nextval()", &[]);
    let Err(error) = after else { return Err("the server issues IDs after it was fenced".into()) };
    let (code, message, detail, hint) = sqlstate(&error);
    assert_eq!((code.as_str(), message.as_str()), ("55000", "a copy of this server uses worker ID 0"));
    assert!(detail.starts_with("The copy has host \"") && detail.contains("This server runs on host \""), "{detail}");
    assert!(hint.starts_with("Find out which of the two servers is the right one"), "{hint}");
    assert_eq!(status(&mut client), format!("refused: {message}"));
    let issued = twin.session().query_one("SELECT snowflake_nextval()", &[]);
    let Ok(issued) = issued else { return Err("the copy does not issue IDs".into()) };
    // The copy could issue an ID that the first server had issued before it was fenced.
    let row =
        format!("SET session_replication_role = replica; INSERT INTO guarded VALUES ({})", issued.get::<_, i64>(0));
    ensure!(client.code(&row).as_deref() == Some("23000"), "the row of the copy is not refused");
    // The end of the registrar does not end the fence. A restart of the server ends it.
    signal(pid, "TERM");
    assert!(within(SOON, || registrar(&first).is_some_and(|new| new != pid)), "{}", first.log());
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(logged(&first, "the registry assigned"), 1, "{}", first.log());
    first.restart(Stop::Fast);
    wait_for_log(&first, "the registry assigned worker ID 2");
    Ok(())
}

#[test]
fn a_server_whose_copy_has_renewed_the_grant_issues_nothing_more() {
    check_fence("issue_fenced", |builder| builder).unwrap();
}

#[test]
fn an_assignment_that_is_ignored_is_caught() {
    let outcome = check_fence("issue_unfenced", |builder| builder.fault("AssignmentIgnored"));
    assert_caught(outcome, "the server issues IDs after it was fenced");
}
