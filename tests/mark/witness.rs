//! The witness: what a server issues on a machine that has not been restarted since.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use cluster::{
    Answer, Boot, Cluster, Host, PATIENCE, SPARSE_PER_SECOND, Stop, assert_caught, check_unique, draw_above, ensure,
    not_tested, within,
};

/// Runs a program on the data directory of a stopped server.
fn run(server: &Cluster, program: &str, arguments: &[&str]) -> Result<(), String> {
    let ended = server.program(program).args(arguments).arg(server.dir()).output().expect("the program can be run");
    ensure!(ended.status.success(), "{program}: {}", String::from_utf8_lossy(&ended.stderr));
    Ok(())
}

/// What happens to the mark of a stopped server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkLoss {
    /// The data directory is replaced by an earlier copy of it.
    RestoredInPlace,
    /// The earlier copy is started elsewhere on the same machine.
    RestoredBeside,
    /// The replication origin is dropped.
    OriginDropped,
    /// The write-ahead log is reset after a crash, so that the mark of the last checkpoint remains.
    WalReset,
}

/// Lets a server issue IDs, loses its mark, and lets it issue IDs again with a clock that is behind.
fn check_loss(name: &str, loss: MarkLoss, machine: Option<&Boot>) -> Result<(), String> {
    let builder = |name: &str| Cluster::builder(name).sparse().set("fsync", "on").on(machine);
    let mut server = builder(name).start();
    let mut ids = server.session().batch(SPARSE_PER_SECOND);
    let mark = server.shown_mark();
    server.stop(Stop::Fast);
    let aside = Host::get().fresh_dir(&format!("{name}.aside"));
    Host::get().copy_dir(server.dir(), &aside);
    server.start();
    ids.extend(draw_above(&mut server.connect(), mark));
    if loss == MarkLoss::OriginDropped {
        let mut session = server.connect();
        session.run("SELECT pg_replication_origin_drop('snowflake_pg')");
    }
    server.stop(if loss == MarkLoss::WalReset { Stop::Immediate } else { Stop::Fast });
    let mut other = None;
    match loss {
        MarkLoss::RestoredInPlace => {
            fs::remove_dir_all(server.dir()).expect("the server is stopped");
            Host::get().fresh_dir(name);
            Host::get().copy_dir(&aside, server.dir());
        }
        MarkLoss::RestoredBeside => {
            let beside = builder(&format!("{name}_beside")).empty();
            Host::get().copy_dir(&aside, beside.dir());
            other = Some(beside);
        }
        MarkLoss::WalReset => run(&server, "pg_resetwal", &["--force", "--pgdata"])?,
        MarkLoss::OriginDropped => {}
    }
    let _ = fs::remove_dir_all(&aside);
    let again = other.as_mut().unwrap_or(&mut server);
    again.set_clock_behind(&ids);
    again.start();
    ids.extend(draw_above(&mut again.connect(), mark));
    check_unique(&mut ids)?;
    ensure!(
        machine.is_none() || again.log().contains(", and the mark in the witness is at 20"),
        "the log does not say so:\n{}",
        again.log()
    );
    Ok(())
}

#[test]
fn after_a_lost_mark_ids_begin_above_what_this_machine_has_issued() {
    for loss in [MarkLoss::RestoredInPlace, MarkLoss::RestoredBeside, MarkLoss::OriginDropped, MarkLoss::WalReset] {
        let name = format!("witness_{loss:?}").to_lowercase();
        let machine = Boot::new(&name);
        check_loss(&name, loss, Some(&machine)).unwrap_or_else(|reason| panic!("{loss:?}: {reason}"));
    }
}

#[test]
fn a_lost_mark_without_a_witness_is_caught() {
    for loss in [MarkLoss::RestoredInPlace, MarkLoss::RestoredBeside, MarkLoss::OriginDropped, MarkLoss::WalReset] {
        let name = format!("unwitnessed_{loss:?}").to_lowercase();
        assert_caught(check_loss(&name, loss, None), "IDs came twice");
    }
}

#[test]
fn a_restarted_machine_begins_at_the_mark() {
    let machine = Boot::new("witness_reboot");
    let mut server = Cluster::builder("witness_reboot").on(&machine).clock("+0").start();
    let mut ids = server.session().batch(100);
    for stop in [Stop::Fast, Stop::Immediate] {
        server.stop(stop);
        machine.reboot();
        assert!(machine.witnesses().is_empty(), "the machine was not restarted");
        server.set_clock("-3600");
        server.start();
        ids.extend(server.connect().batch(100));
        assert!(server.log().contains(", and the high-water mark is at 20"), "{}", server.log());
    }
    check_unique(&mut ids).unwrap();
}

#[test]
fn setting_the_mark_sets_the_witness_and_lowers_it_only_if_nothing_was_reverted() {
    let machine = Boot::new("witness_set");
    let (mut server, mut session) = Cluster::builder("witness_set").on(&machine).start_session();
    let first: i64 = session.one("SELECT snowflake_nextval()");
    let ahead = "SELECT snowflake_set_mark(snowflake_max_id(now() + interval '12 hours'))";
    session.run(&format!("CREATE TABLE orders (id bigint); {ahead}"));
    let high = server.shown_mark();
    // A table does not contain what was lost with the mark, so it does not show that the mark in the witness can be lowered.
    for set in [
        "SELECT snowflake_set_mark(snowflake_max_id(now()))",
        "SELECT snowflake_set_mark(snowflake_max_id(now()), 'orders')",
    ] {
        session.run("SELECT pg_replication_origin_drop('snowflake_pg')");
        server.restart(Stop::Fast);
        session = server.connect();
        assert!(server.shown_mark() < high, "the mark was not lost");
        // The mark is raised.
        session.run(set);
        let mark = server.shown_mark();
        assert!(mark >= high, "{set}: {mark}");
        assert!(server.log().contains(&format!("the high-water mark was set to {mark}\n")), "{}", server.log());
        assert!(session.one::<i64>("SELECT snowflake_nextval()") >= high);
    }
    // Nothing is lost now, and the table has no ID.
    session.run("SELECT snowflake_set_mark(snowflake_max_id(now()), 'orders')");
    let next: i64 = session.one("SELECT snowflake_nextval()");
    assert!(next < high && next > first);
    server.restart(Stop::Fast);
    let next: i64 = server.connect().one("SELECT snowflake_nextval()");
    assert!(next < high, "the mark in the witness was not lowered");
    // With force, the mark in the witness is lowered whatever happened.
    server.connect().run(ahead);
    server.connect().run("SELECT pg_replication_origin_drop('snowflake_pg')");
    server.restart(Stop::Fast);
    server.connect().run("SELECT snowflake_set_mark(snowflake_max_id(now()), force => true)");
    assert!(server.connect().one::<i64>("SELECT snowflake_nextval()") < high);
}

#[test]
fn a_witness_that_is_removed_is_reported_and_the_server_goes_on() {
    let machine = Boot::new("witness_removed");
    let (server, mut session) = Cluster::builder("witness_removed").on(&machine).start_session();
    session.batch(10);
    machine.reboot();
    let warning = "WARNING:  snowflake_pg: the witness file was removed";
    let warned = || {
        session.batch(10);
        server.log().contains(warning)
    };
    assert!(within(PATIENCE, warned), "{}", server.log());
    assert_eq!(server.log().matches(warning).count(), 1, "{}", server.log());
}

#[test]
fn a_witness_of_the_future_is_refused_and_can_be_set() {
    let machine = Boot::new("witness_future");
    let mut server = Cluster::builder("witness_future").on(&machine).clock("+604800").start();
    server.session().batch(10);
    let mut session = server.connect();
    session.run("SELECT pg_replication_origin_drop('snowflake_pg')");
    server.restart_at(Stop::Fast, "+0");
    let message = "the mark in the witness is more than a day ahead of the clock";
    assert_eq!(server.connect().refusal("SELECT snowflake_nextval()"), ("55000".into(), message.into()));
    assert_eq!(server.connect().one::<String>("SELECT problem FROM snowflake_status"), message);
    assert!(within(PATIENCE, || server.log().contains(&format!("cannot issue IDs: {message}"))), "{}", server.log());
    // The hint works.
    server.connect().run("SELECT snowflake_set_mark(snowflake_max_id(now()), force => true)");
    server.connect().batch(10);
}

/// A file that cannot be the witness, at the place of the witness.
fn check_hostile(name: &str, make: fn(&Path)) {
    let machine = Boot::new(name);
    let mut server = Cluster::builder(name).on(&machine).start();
    server.session().batch(10);
    server.stop(Stop::Fast);
    let witness: PathBuf = machine.witnesses().remove(0);
    make(&witness);
    server.start();
    let expected =
        format!("WARNING:  snowflake_pg: cannot use directory \"{}\" for the witness: ", machine.dir().display());
    assert!(server.log().contains(&expected), "{name}:\n{}", server.log());
    server.connect().batch(10);
}

#[test]
fn what_another_program_has_put_in_the_place_of_the_witness_is_not_used() {
    check_hostile("witness_symlink", |witness| {
        let target = witness.with_extension("target");
        fs::rename(witness, &target).expect("the witness can be renamed");
        symlink(&target, witness).expect("a link can be made");
    });
    check_hostile("witness_link", |witness| {
        fs::hard_link(witness, witness.with_extension("link")).expect("a link can be made");
    });
    check_hostile("witness_mode", |witness| {
        fs::set_permissions(witness, PermissionsExt::from_mode(0o644)).expect("the mode can be changed");
    });
    check_hostile("witness_size", |witness| {
        let file = fs::File::options().write(true).open(witness).expect("the witness can be opened");
        file.set_len(100).expect("the witness can be shortened");
    });
    check_hostile("witness_directory", |witness| {
        fs::remove_file(witness).expect("the witness can be removed");
        fs::create_dir(witness).expect("a directory can be made");
    });
    check_hostile("witness_fifo", |witness| {
        fs::remove_file(witness).expect("the witness can be removed");
        let made = Host::get().command(Path::new("mkfifo")).arg("-m").arg("600").arg(witness).status();
        assert!(made.is_ok_and(|made| made.success()), "no FIFO");
    });
}

/// In a directory to which every user can write, any user can create the file before the server does. The log says who it was, and how to
/// keep other users from doing so.
#[test]
fn a_witness_of_another_user_is_reported_with_its_owner_and_a_directory_of_its_own_helps() {
    const NOBODY: u32 = 65_534;
    let machine = Boot::new("witness_foreign");
    let mut server = Cluster::builder("witness_foreign").on(&machine).start();
    server.session().batch(10);
    server.stop(Stop::Fast);
    let witness: PathBuf = machine.witnesses().remove(0);
    if chown(&witness, Some(NOBODY), None).is_err() {
        return not_tested("only root can give a file to another user");
    }
    server.start();
    let directory = machine.dir().display();
    let warning = format!(
        "WARNING:  snowflake_pg: cannot use directory \"{directory}\" for the witness: file \"{}\" belongs to the user with ID {NOBODY}",
        witness.display()
    );
    let log = server.log();
    assert!(log.contains(&warning) && log.contains("HINT:  Remove this file as root."), "{log}");
    server.connect().batch(10);
    // A directory inside, which belongs to the user of the server.
    server.stop(Stop::Fast);
    let own = machine.dir().join("snowflake_pg");
    fs::create_dir(&own).expect("a directory can be made");
    fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).expect("the mode can be changed");
    let owner = fs::metadata(server.dir()).expect("the data directory");
    chown(&own, Some(owner.uid()), Some(owner.gid())).expect("root can");
    server.set("snowflake_pg.witness_directory", &own.to_string_lossy());
    server.start();
    assert!(!server.log().contains("for the witness"), "{}", server.log());
    server.connect().batch(10);
    assert_eq!(fs::read_dir(&own).expect("the directory").count(), 1, "no witness");
}

#[test]
fn a_directory_on_a_disk_or_nowhere_gives_a_warning_and_no_witness() {
    let disk = cluster::repository().join("target");
    for (name, directory, reason) in [
        ("witness_disk", disk.display().to_string(), "the directory is not in an in-memory file system (tmpfs)"),
        ("witness_nowhere", "/nowhere".to_string(), "No such file or directory"),
        ("witness_relative", "pg_stat_tmp".to_string(), "the path is not absolute"),
    ] {
        let server = Cluster::builder(name).set("snowflake_pg.witness_directory", &directory).start();
        let warning = format!("WARNING:  snowflake_pg: cannot use directory \"{directory}\" for the witness: {reason}");
        assert!(server.log().contains(&warning), "{}", server.log());
        server.session().batch(10);
    }
    let server = Cluster::builder("no_memory").start();
    assert!(!server.log().contains("witness"), "{}", server.log());
}
