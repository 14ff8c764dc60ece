//! Servers that are recovered to a point in time from the archive, in their own data directory or beside their origin.

use cluster::{
    Answer, Boot, Builder, Client, Cluster, Host, SPARSE_LAYOUT, SPARSE_PER_SECOND, Scratch, Stop, assert_caught,
    check_unique, draw_above, ensure, within,
};

use crate::fleet::{SOON, number, replace, server, string};

/// Waits until the WAL before this moment is in the archive.
fn wait_for_archive(server: &Cluster, session: &mut Client) {
    let wal: String = session.one("SELECT pg_walfile_name(pg_switch_wal())");
    let archived = format!("SELECT coalesce(last_archived_wal >= '{wal}', false) FROM pg_stat_archiver");
    assert!(within(SOON, || session.one(&archived)), "{wal} is not archived:\n{}", server.log());
}

/// Recovers a server to a point in time. Without another server, its data directory is replaced. Otherwise, the other server is
/// recovered, and the first one goes on. Returns the worker IDs of the server and of the one that was recovered.
fn check_recovery(name: &str, like: Builder, elsewhere: Option<Builder>) -> Result<[String; 2], String> {
    let archive = Scratch::new(&format!("{name}.archive"));
    let file = archive.0.join("%f").display().to_string();
    let archived = like.sparse().set("archive_mode", "on");
    let mut server = archived.set("archive_command", &format!("cp %p {file}")).start();
    let mut session = server.session();
    let mut ids = session.batch(SPARSE_PER_SECOND);
    let before = number(&server);

    let in_place = elsewhere.is_none();
    let mut copy = server.backup(elsewhere.unwrap_or_else(|| Cluster::builder(&format!("{name}_aside"))).sparse());
    Host::get().write(&copy.dir().join("recovery.signal"), "");
    ids.extend(session.batch(SPARSE_PER_SECOND));
    session.batch_execute("SELECT pg_create_restore_point('before')").expect("a superuser may");
    // The recovered server does not know of the IDs that are drawn here.
    let mark = server.shown_mark();
    ids.extend(draw_above(&mut session, mark));
    wait_for_archive(&server, &mut session);
    let recovered = if in_place {
        drop(session);
        server.stop(Stop::Immediate);
        replace(server.dir(), copy.dir());
        &mut server
    } else {
        &mut copy
    };
    for (setting, value) in [
        ("restore_command", format!("cp {file} %p").as_str()),
        ("recovery_target_name", "before"),
        ("recovery_target_action", "promote"),
    ] {
        recovered.set(setting, value);
    }
    // The clock is behind what was issued, so it does not prevent duplicates.
    recovered.set_clock_behind(&ids);
    recovered.start();
    let up = || !recovered.connect().one::<bool>("SELECT pg_is_in_recovery()");
    ensure!(within(SOON, up), "not recovered:\n{}", recovered.log());
    // The start can take longer than the clock is behind.
    recovered.set_clock_behind(&ids);
    ids.extend(draw_above(&mut recovered.connect(), mark));
    let after = number(recovered);
    if !in_place {
        ids.extend(server.connect().batch(SPARSE_PER_SECOND));
    }
    check_unique(&mut ids)?;
    Ok([before, after])
}

#[test]
fn a_server_that_is_recovered_in_place_begins_above_what_the_witness_contains() {
    let registry = Cluster::builder("recovered").start_registry(SPARSE_LAYOUT);
    let machine = Boot::new("recovered");
    let like = server("recovered_1", &string(&registry)).on(&machine);
    let [before, after] = check_recovery("recovered", like, None).unwrap();
    assert_eq!(after, before);
}

#[test]
fn a_server_that_is_recovered_elsewhere_has_its_own_worker_id() {
    let registry = Cluster::builder("recovered_away").start_registry(SPARSE_LAYOUT);
    let machines = [1, 2].map(|n| Boot::new(&format!("recovered_away_{n}")));
    let [first, second] =
        [1, 2].map(|n| server(&format!("recovered_away_{n}"), &string(&registry)).on(&machines[n - 1]));
    let [before, after] = check_recovery("recovered_away", first, Some(second)).unwrap();
    assert_ne!(after, before);
}

#[test]
fn a_recovered_server_with_a_worker_id_and_without_a_witness_is_caught() {
    let like = |name: &str| Cluster::builder(name);
    let in_place = check_recovery("recovered_set", like("recovered_set_1"), None);
    assert_caught(in_place.map(drop), "IDs came twice");
    let elsewhere = check_recovery("recovered_both", like("recovered_both_1"), Some(like("recovered_both_2")));
    assert_caught(elsewhere.map(drop), "IDs came twice");
}
