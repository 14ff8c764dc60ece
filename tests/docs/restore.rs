//! docs/bad-day.md, "After a restore": a server is restored to an earlier time while its clock is behind. It repeats IDs that the
//! old server issued later, unless somebody does what the page says.
//! docs/kubernetes.md: so does a container that is restarted without its witness.

use std::fs;

use cluster::{
    Answer, Boot, Cluster, Host, PATIENCE, SPARSE_PER_SECOND, Scratch, Stop, assert_caught, block_with, blocks,
    check_unique, draw_above, ensure, page, typed, within,
};

const WARNING: &str = "01000 WARNING:  snowflake_pg: restored from a backup or an archive, \
    so the high-water mark might be below existing IDs";

/// What is done before clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RestoreStep {
    Nothing,
    /// The mark is set as the page says.
    MarkSet,
    /// The server gets a worker ID that no server has had.
    AnotherNumber,
    /// Nothing is done, but the old server ran on the same machine, which was not restarted since.
    SameMachine,
}

fn check_restore(name: &str, done: RestoreStep) -> Result<(), String> {
    let archive = Scratch::new(&format!("{name}.archive"));
    let file = |file: &str| archive.0.join(file).display().to_string();
    let boot = Boot::new(name);
    let machine = (done == RestoreStep::SameMachine).then_some(&boot);
    let like = |name: &str| Cluster::builder(name).sparse().on(machine);
    let mut old = like(&format!("{name}_old"))
        .set("archive_mode", "on")
        .set("archive_command", &format!("cp %p {}", file("%f")))
        .start();
    let mut session = old.session();
    let mut ids = session.batch(SPARSE_PER_SECOND);

    let number = if done == RestoreStep::AnotherNumber { "2" } else { "1" };
    let mut restored = like(&format!("{name}_restored"))
        .set("snowflake_pg.worker_id", number)
        .set("log_line_prefix", "%m [%p] %e ")
        .set("restore_command", &format!("cp {} %p", file("%f")))
        .set("recovery_target_name", "before")
        .set("recovery_target_action", "promote")
        .empty();
    let backup =
        old.program("pg_basebackup").args(["--checkpoint=fast", "--no-sync", "-D"]).arg(restored.dir()).output();
    ensure!(backup.as_ref().is_ok_and(|backup| backup.status.success()), "no backup: {backup:?}");
    Host::get().write(&restored.dir().join("recovery.signal"), "");

    ids.extend(session.batch(SPARSE_PER_SECOND));
    let wal: String = session.one("SELECT pg_walfile_name(pg_create_restore_point('before'))");
    // The restored server does not know of the IDs that are drawn here.
    let mark = old.shown_mark();
    let lost = draw_above(&mut session, mark);
    ids.extend(&lost);
    session.batch_execute("SELECT pg_switch_wal()").expect("a superuser may");
    let archived = format!("SELECT coalesce(last_archived_wal >= '{wal}', false) FROM pg_stat_archiver");
    ensure!(within(PATIENCE, || session.one(&archived)), "nothing is archived:\n{}", old.log());
    let ended: String = session.one("SELECT clock_timestamp()::text");
    drop(session);
    old.stop(Stop::Immediate);

    // The clock of the restored server is behind, so only the mark prevents duplicates.
    restored.set_clock("-60");
    restored.start();
    let up = || {
        restored.log().contains("started with worker ID")
            && !restored.connect().one::<bool>("SELECT pg_is_in_recovery()")
    };
    ensure!(within(PATIENCE, up), "not restored:\n{}", restored.log());
    ensure!(restored.shown_mark() == mark, "restored with mark {}, not {mark}", restored.shown_mark());
    ensure!(within(PATIENCE, || restored.log().contains(WARNING)), "the log does not warn:\n{}", restored.log());
    ensure!(
        restored.log().contains("See \"After a restore\" in $(pg_config --sharedir)/snowflake_pg/docs/bad-day.md"),
        "no hint:\n{}",
        restored.log()
    );
    if done == RestoreStep::MarkSet {
        let block = block_with(blocks(&page("docs/bad-day.md"), "sql restore"), "snowflake_set_mark");
        let example = "2024-03-10 12:00:00+00";
        ensure!(block.contains(example), "the page's time is another");
        typed(restored.psql(), &block.replace(example, &ended))?;
    }
    ids.extend(draw_above(&mut restored.connect(), mark));
    check_unique(&mut ids)?;
    restored.restart(Stop::Fast);
    ensure!(!restored.log().contains(WARNING), "it warns at each start");
    Ok(())
}

/// Restarts the container of a server whose worker ID is configured. Meanwhile, the volume with its data is restored to an
/// earlier state and its clock is set back. The machine on which the container runs is not restarted. `emptied` says whether the
/// directory in memory that contains the witness is private to the container, as `/dev/shm` is by default, or is in a volume that
/// outlives the container.
fn check_container(name: &str, emptied: bool) -> Result<(), String> {
    let container = Boot::new(name);
    let mut server = Cluster::builder(name).sparse().on(&container).start();
    let mut ids = server.session().batch(SPARSE_PER_SECOND);
    let mark = server.shown_mark();
    server.stop(Stop::Fast);
    let snapshot = Scratch::new(&format!("{name}.snapshot"));
    Host::get().copy_dir(server.dir(), &snapshot.0);
    server.start();
    ids.extend(draw_above(&mut server.connect(), mark));
    // The processes of a container are killed.
    server.stop(Stop::Immediate);
    fs::remove_dir_all(server.dir()).expect("the server is stopped");
    Host::get().fresh_dir(name);
    Host::get().copy_dir(&snapshot.0, server.dir());
    ensure!(!container.witnesses().is_empty(), "the server had no witness");
    if emptied {
        container.reboot();
    }
    server.set_clock_behind(&ids);
    server.start();
    ids.extend(draw_above(&mut server.connect(), mark));
    check_unique(&mut ids)?;
    ensure!(server.log().contains(", and the mark in the witness is at 20"), "no witness was used:\n{}", server.log());
    Ok(())
}

#[test]
fn a_restarted_container_whose_witness_was_kept_repeats_nothing() {
    check_container("restore_kept", false).unwrap();
}

#[test]
fn a_restarted_container_whose_memory_was_emptied_is_caught() {
    assert_caught(check_container("restore_emptied", true), "IDs came twice");
}

#[test]
fn a_restored_server_whose_mark_was_set_repeats_nothing() {
    check_restore("restore_set", RestoreStep::MarkSet).unwrap();
}

#[test]
fn a_restored_server_with_another_number_repeats_nothing() {
    check_restore("restore_number", RestoreStep::AnotherNumber).unwrap();
}

#[test]
fn a_server_restored_on_the_same_machine_repeats_nothing() {
    check_restore("restore_same", RestoreStep::SameMachine).unwrap();
}

#[test]
fn a_restored_server_that_was_left_as_it_is_is_caught() {
    assert_caught(check_restore("restore_left", RestoreStep::Nothing), "IDs came twice");
}

#[test]
fn the_page_has_the_section_that_the_log_names() {
    assert!(page("docs/bad-day.md").contains("\n## After a restore\n"));
}
