//! Servers whose data directory has forgotten the mark, on a machine that has forgotten the witness: after `pg_resetwal`, after the loss
//! of the replication origin, and after `pg_upgrade`.

use cluster::{
    Answer, Boot, Builder, Cluster, Host, SPARSE_LAYOUT, Scratch, Stop, assert_caught, check_unique, draw_above,
    output, within,
};

use crate::fleet::{SOON, server, string};

/// Draws IDs ahead of the clock, forgets the mark, and draws again with a clock that is behind these IDs.
fn check(
    like: impl Fn(&str) -> Builder,
    machine: Option<&Boot>,
    forget: impl Fn(Cluster) -> Cluster,
) -> Result<(), String> {
    let build = |n: &str| like(n).sparse();
    let old = build("old").start();
    old.wait_for_ids();
    let mut ids = old.session().batch(16);
    let mark = old.shown_mark();
    ids.extend(draw_above(&mut old.connect(), mark));
    let mut server = forget(old);
    if let Some(machine) = machine {
        machine.reboot();
    }
    server.set_clock_behind(&ids);
    server.start();
    let mut session = server.session();
    assert!(within(SOON, || session.one::<String>("SHOW snowflake_pg.worker_id") != "-1"), "no ID:\n{}", server.log());
    // The start can take longer than the clock is behind.
    server.set_clock_behind(&ids);
    ids.extend(draw_above(&mut session, mark));
    check_unique(&mut ids)
}

/// Stops the server as a crash does, and resets its WAL to the last checkpoint.
fn reset(mut server: Cluster) -> Cluster {
    server.stop(Stop::Immediate);
    output(Host::get().program("pg_resetwal").arg("-f").arg(server.dir()));
    server
}

/// Drops the replication origin that stores the mark.
fn drop_origin(mut server: Cluster) -> Cluster {
    server.connect().batch_execute("SELECT pg_replication_origin_drop('snowflake_pg')").expect("a superuser may");
    server.stop(Stop::Immediate);
    server
}

/// Upgrades the server, here to the same version.
fn upgrade(mut old: Cluster, new: Builder) -> Cluster {
    old.stop(Stop::Fast);
    let new = new.sparse().create_anew();
    let host = Host::get();
    let bin = host.installation().bin.display().to_string();
    let work = Scratch::new(&format!("{}_work", old.dir().file_name().expect("a name").to_string_lossy()));
    let mut upgrade = host.program("pg_upgrade");
    upgrade.current_dir(&work.0).args(["--username=postgres", "-b", &bin, "-B", &bin, "-d"]).arg(old.dir());
    output(upgrade.arg("-D").arg(new.dir()).arg("--socketdir").arg(old.socket()));
    new
}

/// Checks a server of a fleet. Its machine is restarted after the mark is forgotten.
fn check_fleet(name: &str, forget: impl Fn(Cluster, Builder) -> Cluster) -> Result<(), String> {
    let registry = Cluster::builder(name).start_registry(SPARSE_LAYOUT);
    let machine = Boot::new(name);
    let like = |n: &str| server(&format!("{name}_{n}"), &string(&registry)).on(&machine);
    check(like, Some(&machine), |old| forget(old, like("new")))
}

/// Checks a server that keeps the worker ID in its configuration and has no witness.
fn check_configured(name: &str, forget: impl Fn(Cluster, Builder) -> Cluster) -> Result<(), String> {
    let like = |n: &str| Cluster::builder(&format!("{name}_{n}"));
    check(like, None, |old| forget(old, like("new")))
}

#[test]
fn after_pg_resetwal_nothing_is_repeated() {
    check_fleet("reset", |server, _| reset(server)).unwrap();
}

#[test]
fn after_the_loss_of_the_origin_nothing_is_repeated() {
    check_fleet("dropped", |server, _| drop_origin(server)).unwrap();
}

#[test]
fn after_pg_upgrade_nothing_is_repeated() {
    check_fleet("upgraded", upgrade).unwrap();
}

#[test]
fn a_configured_worker_id_is_caught() {
    assert_caught(check_configured("reset_set", |server, _| reset(server)), "IDs came twice");
    assert_caught(check_configured("dropped_set", |server, _| drop_origin(server)), "IDs came twice");
    assert_caught(check_configured("upgraded_set", upgrade), "IDs came twice");
}
