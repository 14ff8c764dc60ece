//! Servers that are recovered to a point in time from the archive, in their own data directory.

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

/// Recovers a server to a point in time, in its data directory. Returns its worker IDs before and after the recovery.
fn check_recovery(name: &str, like: Builder) -> Result<[String; 2], String> {
    let archive = Scratch::new(&format!("{name}.archive"));
    let file = archive.0.join("%f").display().to_string();
    let archived = like.sparse().set("archive_mode", "on");
    let mut server = archived.set("archive_command", &format!("cp %p {file}")).start();
    let mut session = server.session();
    let mut ids = session.batch(SPARSE_PER_SECOND);
    let before = number(&server);

    let copy = server.backup(Cluster::builder(&format!("{name}_aside")).sparse());
    Host::get().write(&copy.dir().join("recovery.signal"), "");
    ids.extend(session.batch(SPARSE_PER_SECOND));
    session.batch_execute("SELECT pg_create_restore_point('before')").expect("a superuser may");
    // The recovered server does not know of the IDs that are drawn here.
    let mark = server.shown_mark();
    ids.extend(draw_above(&mut session, mark));
    wait_for_archive(&server, &mut session);
    drop(session);
    server.stop(Stop::Immediate);
    replace(server.dir(), copy.dir());
    for (setting, value) in [
        ("restore_command", format!("cp {file} %p").as_str()),
        ("recovery_target_name", "before"),
        ("recovery_target_action", "promote"),
    ] {
        server.set(setting, value);
    }
    // The clock is behind what was issued, so it does not prevent duplicates.
    server.set_clock_behind(&ids);
    server.start();
    let up = || !server.connect().one::<bool>("SELECT pg_is_in_recovery()");
    ensure!(within(SOON, up), "not recovered:\n{}", server.log());
    // The start can take longer than the clock is behind.
    server.set_clock_behind(&ids);
    ids.extend(draw_above(&mut server.connect(), mark));
    check_unique(&mut ids)?;
    Ok([before, number(&server)])
}

#[test]
fn a_server_that_is_recovered_in_place_begins_above_what_the_witness_contains() {
    let registry = Cluster::builder("recovered").start_registry(SPARSE_LAYOUT);
    let machine = Boot::new("recovered");
    let like = server("recovered_1", &string(&registry)).on(&machine);
    let [before, after] = check_recovery("recovered", like).unwrap();
    assert_eq!(after, before);
}

#[test]
fn a_recovered_server_with_a_worker_id_and_without_a_witness_is_caught() {
    let outcome = check_recovery("recovered_set", Cluster::builder("recovered_set_1"));
    assert_caught(outcome.map(drop), "IDs came twice");
}
