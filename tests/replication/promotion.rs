//! No duplicates after the promotion of a standby. A primary that has lost its synchronous standby runs out of IDs. All servers
//! here have the same worker ID, so that only the mark keeps their IDs apart.

use std::ops::RangeInclusive;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cluster::{Answer, Ask, Builder, Chance, Cluster, History, Load, Stop};
use cluster::{
    assert_caught, assert_caught_by_chance, check_unique, copy_ids, end_of, ensure, rounds, sqlstate, within,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replication {
    Asynchronous,
    Synchronous,
}

/// What happens to a primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Killed,
    Stopped,
    /// Its processes are stopped during the promotion and continue afterwards, with their sessions.
    Frozen,
}

/// How far the clock of a promoted standby is behind the moment at which its primary ended, in milliseconds. IDs of up to five
/// seconds before that moment are in use.
const BEHIND: RangeInclusive<i64> = 0..=5_000;

/// The longest window, and a second for a busy machine.
const WINDOW: Duration = Duration::from_secs(11);

/// The longest time until a waiting session responds, on a machine busy with other tests.
const PROMPT: Duration = Duration::from_secs(2);

/// Sessions that draw in all ways. Some do not wait for the standby at COMMIT. Their IDs must not come twice either.
fn draw(server: &Cluster) -> Vec<Load> {
    ["", "SET synchronous_commit = off", "SET synchronous_commit = local"]
        .map(|setup| Load::start(server, 2, Ask::ALL, setup))
        .into()
}

fn finish(loads: Vec<Load>) -> History {
    let mut history = History::default();
    loads.into_iter().for_each(|load| history.merge(load.finish()));
    history
}

/// The IDs issued by a line of servers, each the promoted standby of the one before.
#[derive(Default)]
struct Past {
    /// The IDs that must not come again.
    ids: Vec<i64>,
    /// The mark with which the last promoted server began.
    mark: i64,
    /// How many issued IDs were not below the mark that the standby had.
    lost: usize,
}

impl Past {
    /// Checks and adds the IDs that the last promoted server has issued.
    fn add(&mut self, issued: &History) -> Result<(), String> {
        issued.check(100)?;
        let ids = issued.ids();
        let first = ids.iter().copied().min();
        self.ids.extend(ids);
        check_unique(&mut self.ids)?;
        ensure!(first >= Some(self.mark), "{first:?} is below the mark {} that the promoted server had", self.mark);
        Ok(())
    }

    /// Continues with the next server, which was promoted with this mark and these rows.
    fn pass_on(&mut self, mark: i64, mut rows: Vec<i64>, replication: Replication) -> Result<(), String> {
        check_unique(&mut rows)?;
        // WAL is replayed in order, so a mark above the rows was replayed before them.
        let last = rows.last().copied();
        ensure!(last.is_some() && last < Some(mark), "row {last:?} and the mark {mark} on a promoted server");
        let known = self.ids.partition_point(|id| *id < mark);
        let unknown = self.ids.split_off(known);
        ensure!(
            replication == Replication::Asynchronous || unknown.is_empty(),
            "{} IDs from {:?} on were issued that are not below {mark}, the mark of the synchronous standby",
            unknown.len(),
            unknown.first()
        );
        // An INSERT can be committed without its client receiving the ID.
        self.ids.extend(rows);
        self.ids.sort_unstable();
        self.ids.dedup();
        self.lost += unknown.len();
        self.mark = mark;
        Ok(())
    }
}

/// Promotes standbys one after the other, each a standby of the one before, while sessions draw.
fn check_promotions(
    name: &str,
    replication: Replication,
    times: u64,
    behind: RangeInclusive<i64>,
    like: fn(Builder) -> Builder,
) -> Result<(), String> {
    let mut chance = Chance::of(name);
    // By default, a standby that has lost its primary looks for it every five seconds, and can sleep through its promotion.
    let server = |number: u64| {
        Cluster::builder(&format!("{name}_{number}")).clock("+0").set("wal_retrieve_retry_interval", "100ms")
    };
    let mut primary = like(server(0)).start();
    Load::prepare(&primary);
    let mut past = Past::default();
    for number in 1..=times {
        let standby = primary.standby(like(server(number)));
        if replication == Replication::Synchronous {
            primary.rely_on_standby();
        }
        let loads = draw(&primary);
        thread::sleep(Duration::from_millis(400) + chance.millis(400));
        let late = (number % 2 == 1).then(|| primary.leave_behind(&standby));
        let end = *chance.pick(&[End::Killed, End::Stopped, End::Frozen]);
        let mut frozen = None;
        match end {
            End::Killed => primary.kill_postmaster(),
            End::Stopped => primary.stop(Stop::Immediate),
            End::Frozen => frozen = Some(primary.frozen()),
        }
        let ended = Instant::now();
        drop(late);
        standby.promote();
        let mark = standby.shown_mark();
        let rows = copy_ids(&mut standby.connect(), "SELECT id FROM load_rows");
        // The clock is set now, because nothing has read the time before. The offset does not depend on how long the promotion
        // took.
        let back = Duration::from_millis(chance.between(*behind.start(), *behind.end()).unsigned_abs());
        standby.set_clock(&format!("-{:.3}", (ended.elapsed() + back).as_secs_f64()));
        let next = draw(&standby);
        drop(frozen);
        let mut issued = History::default();
        if end == End::Frozen && replication == Replication::Synchronous {
            issued.stretches.push(run_dry(&primary)?);
        }
        thread::sleep(Duration::from_millis(200));
        primary.stop(Stop::Immediate);
        issued.merge(finish(loads));
        println!("{name} {number}: {end:?}, {} IDs, errors {:?}, back {back:?}", issued.len(), issued.errors);
        past.add(&issued)?;
        past.pass_on(mark, rows, replication)?;
        past.add(&finish(next))?;
        primary = standby;
        // The clock of the next standby must be behind this server, not ahead of it.
        primary.set_clock("+0");
    }
    println!("{name}: {} IDs, and {} that were lost", past.ids.len(), past.lost);
    // Otherwise the standbys were never behind.
    ensure!((past.lost > 0) == (replication == Replication::Asynchronous), "nothing was lost, and so nothing shown");
    Ok(())
}

/// Draws from a server that has lost its synchronous standby until it has no more IDs, and returns those IDs.
fn run_dry(primary: &Cluster) -> Result<Vec<i64>, String> {
    let mut client = primary.connect();
    client.run("SET statement_timeout = '150ms'");
    let mut left = Vec::new();
    // A single time-out can come from a session that waits for the next window although an ID of this one is left.
    let mut refused = 0;
    let dry = within(WINDOW, || {
        match client.query_one("SELECT snowflake_nextval()", &[]) {
            Ok(row) => {
                left.push(row.get(0));
                refused = 0;
            }
            Err(error) if sqlstate(&error).0 == "57014" => refused += 1,
            Err(error) => panic!("not a time-out: {error:?}"),
        }
        refused == 5
    });
    ensure!(dry, "a primary without its synchronous standby still issues after {WINDOW:?}");
    Ok(left)
}

#[test]
fn ids_in_replayed_wal_do_not_come_again_after_promotions() {
    check_promotions("promotion_async", Replication::Asynchronous, rounds(10, 3), BEHIND, |standby| standby).unwrap();
}

#[test]
fn with_a_synchronous_standby_no_id_received_comes_again_after_promotions() {
    check_promotions("promotion_sync", Replication::Synchronous, rounds(10, 3), BEHIND, |standby| standby).unwrap();
}

#[test]
fn a_promoted_standby_that_does_not_load_the_mark_is_caught() {
    let like = |server: Builder| server.fault("MarkNotLoaded");
    // Several promotions, because on a busy machine a server can issue its first ID later than the last one of its primary.
    let check = || check_promotions("promotion_unloaded", Replication::Asynchronous, 5, 700..=700, like);
    assert_caught_by_chance(check, "came twice");
}

#[test]
fn a_primary_that_does_not_ask_its_synchronous_standby_is_caught() {
    let like = |server: Builder| server.fault("PublishBeforeFlush");
    let check = || check_promotions("promotion_unasked", Replication::Synchronous, 1, BEHIND, like);
    // It is caught by its successor or, if it was frozen, because it still issues.
    assert_caught_by_chance(check, "synchronous standby");
}

/// Sessions with each setting of what a COMMIT waits for, half of them with a short statement_timeout.
fn draw_with_all_settings(server: &Cluster) -> Vec<Load> {
    [
        "SET synchronous_commit = on",
        "SET synchronous_commit = off",
        "SET synchronous_commit = local",
        "SET synchronous_commit = remote_write",
        "SET synchronous_commit = on; SET statement_timeout = '150ms'",
        "SET synchronous_commit = off; SET statement_timeout = '150ms'",
        "SET synchronous_commit = local; SET statement_timeout = '150ms'",
        "SET synchronous_commit = remote_write; SET statement_timeout = '150ms'",
    ]
    .map(|setup| Load::start(server, 1, Ask::ALL, setup))
    .into()
}

/// While the synchronous standby is stopped, no ID is issued above the mark that it has acknowledged, whatever the settings of a
/// session are, and even if it is cancelled. Afterwards all sessions continue.
fn check_frozen_standby(name: &str, like: fn(Builder) -> Builder) -> Result<(), String> {
    let mut chance = Chance::of(name);
    let mut primary = like(Cluster::builder(&format!("{name}_primary"))).start();
    Load::prepare(&primary);
    let standby = primary.standby(Cluster::builder(&format!("{name}_standby")));
    primary.rely_on_standby();

    let loads = draw_with_all_settings(&primary);
    thread::sleep(Duration::from_millis(500));
    let (frozen, mark) = standby.frozen_at_mark();
    // Longer than a window under load: its second half, in which the next mark is written, and the time after it.
    cancel_and_terminate(&primary, &mut chance, Duration::from_millis(2_500));
    let mut history = finish_waiting(&primary, loads);
    println!("{name}: {} IDs below {mark}, errors {:?}", history.len(), history.errors);
    let above = history.ids().iter().filter(|id| **id >= mark).count();
    ensure!(above == 0, "{above} of {} IDs lie above the mark {mark} that the standby has", history.len());
    ensure!(
        history.errors.keys().any(|error| error.starts_with("57014")),
        "nobody was cancelled: {:?}",
        history.errors
    );
    check_answers(&primary)?;
    drop(frozen);

    // All sessions continue. Then the standby is stopped again, until the DBA removes it from the setting.
    let loads = draw_with_all_settings(&primary);
    primary.rely_on_standby();
    thread::sleep(Duration::from_millis(500));
    let (frozen, mark) = standby.frozen_at_mark();
    let left = run_dry(&primary)?;
    ensure!(left.last() < Some(&mark), "{left:?} was issued above the mark {mark} that the standby has");
    let (_, waiting) = wait_for_id(&primary, "on")?;
    primary.set("synchronous_standby_names", "");
    primary.reload();
    let begun = Instant::now();
    let went_on = waiting.join().expect("the session answers");
    let took = begun.elapsed();
    ensure!(went_on.is_ok() && took < PROMPT, "{went_on:?} {took:?} after synchronous_standby_names was emptied");
    drop(frozen);

    // The standby has the IDs that were issued meanwhile as soon as it has caught up.
    primary.rely_on_standby();
    thread::sleep(chance.millis(500));
    primary.kill_postmaster();
    let issued = finish(loads);
    ensure!(issued.len() > 1_000, "issuing did not go on: {} IDs, {:?}", issued.len(), issued.errors);
    history.merge(issued);
    history.stretches.push(left);
    history.stretches.push(went_on.into_iter().collect());
    standby.promote();
    history.stretches.push(copy_ids(&mut standby.connect(), "SELECT snowflake_nextval_batch(10000)"));
    history.check(10_000)
}

/// Cancels and terminates sessions, one after the other.
fn cancel_and_terminate(server: &Cluster, chance: &mut Chance, time: Duration) {
    let mut client = server.connect();
    let end = Instant::now() + time;
    while Instant::now() < end {
        let pids: Vec<i32> = client.all(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
             ORDER BY pid",
        );
        if !pids.is_empty() {
            let function = chance.pick(&["pg_cancel_backend", "pg_terminate_backend"]);
            // False if the session has already ended.
            client.one::<bool>(&format!("SELECT {function}({})", chance.pick(&pids)));
        }
        thread::sleep(chance.millis(60));
    }
}

/// Ends sessions that would wait forever.
fn finish_waiting(server: &Cluster, loads: Vec<Load>) -> History {
    let finishing = thread::spawn(move || finish(loads));
    let mut client = server.connect();
    while !finishing.is_finished() {
        client.all::<bool>(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
        thread::sleep(Duration::from_millis(20));
    }
    finishing.join().expect("the sessions end")
}

/// A session that waits for an ID: its process ID, and the result of the wait.
type WaitingSession = (i32, JoinHandle<Result<i64, postgres::Error>>);

fn wait_for_id(server: &Cluster, synchronous_commit: &str) -> Result<WaitingSession, String> {
    let mut client = server.connect();
    let pid = client.one("SELECT pg_backend_pid()");
    client.run(&format!("SET synchronous_commit = {synchronous_commit}"));
    let statement = thread::spawn(move || client.query_one("SELECT snowflake_nextval()", &[]).map(|row| row.get(0)));
    let waits =
        format!("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = {pid} AND wait_event_type = 'Extension')");
    let mut watch = server.connect();
    ensure!(within(PROMPT * 5, || watch.one(&waits)), "no wait for the standby with {synchronous_commit}");
    Ok((pid, statement))
}

/// Sessions that wait for the standby respond at once.
fn check_answers(server: &Cluster) -> Result<(), String> {
    let (mut client, mut slowest) = (server.connect(), Duration::ZERO);
    for setting in ["on", "off", "local", "remote_write"] {
        let timeout = format!("SET synchronous_commit = {setting}; SET statement_timeout = '100ms'");
        client.run(&timeout);
        let begun = Instant::now();
        let code = client.code("SELECT snowflake_nextval()");
        slowest = slowest.max(begun.elapsed().saturating_sub(Duration::from_millis(100)));
        ensure!(code.as_deref() == Some("57014"), "{code:?} after statement_timeout with {setting}");
        client.run("RESET statement_timeout");
        for (function, expected) in [("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")] {
            let (pid, waiting) = wait_for_id(server, setting)?;
            let begun = Instant::now();
            client.one::<bool>(&format!("SELECT {function}({pid})"));
            let answer = waiting.join().expect("the session answers");
            slowest = slowest.max(begun.elapsed());
            let code = answer.map_err(|error| end_of(&error, pid, server));
            ensure!(code.as_ref().is_err_and(|code| code == expected), "{code:?} after {function} with {setting}");
        }
    }
    println!("slowest answer of a session that waits: {slowest:?}");
    ensure!(slowest < PROMPT, "{slowest:?} until a session answered that waits for the standby");
    Ok(())
}

#[test]
fn nothing_is_issued_that_the_synchronous_standby_has_not_acknowledged() {
    check_frozen_standby("promotion_frozen", |primary| primary).unwrap();
}

#[test]
fn a_mark_that_counts_when_its_wait_is_cancelled_is_caught() {
    let outcome = check_frozen_standby("promotion_cancelled", |primary| primary.fault("PublishAfterCancel"));
    assert_caught(outcome, "above the mark");
}

/// If a standby runs plain PostgreSQL without the library, it still keeps the mark.
#[test]
fn a_standby_without_the_library_replays_and_keeps_the_mark() {
    let mut primary = Cluster::builder("promotion_with_library").start();
    Load::prepare(&primary);
    let without = |name| Cluster::builder(name).unset("shared_preload_libraries").unset("snowflake_pg.worker_id");
    let mut standby = primary.standby(without("promotion_without_library"));
    let loads = draw(&primary);
    thread::sleep(Duration::from_millis(700));
    let mut history = finish(loads);
    let mark = primary.shown_mark();
    // A fast shutdown sends all WAL to the standby before the primary ends.
    primary.stop(Stop::Fast);
    assert!(within(PROMPT * 10, || standby.shown_mark() == mark), "{} and not {mark}", standby.shown_mark());
    standby.promote();
    let mut client = standby.connect();
    assert_eq!(client.code("SHOW snowflake_pg.worker_id").as_deref(), Some("42704"), "our library is loaded");
    let rows = copy_ids(&mut client, "SELECT id FROM load_rows");
    assert!(!rows.is_empty() && rows.iter().all(|id| *id < mark), "{} rows below {mark}", rows.len());
    client.run("CREATE TABLE plain AS SELECT 1 AS n; CHECKPOINT");
    standby.restart(Stop::Immediate);
    assert_eq!(standby.shown_mark(), mark, "after a crash");
    // With the library, the standby issues above all IDs of its primary.
    standby.set("shared_preload_libraries", "snowflake_pg");
    standby.set("snowflake_pg.worker_id", "1");
    standby.restart(Stop::Fast);
    history.stretches.push(copy_ids(&mut standby.connect(), "SELECT snowflake_nextval_batch(10000)"));
    assert!(history.stretches.last().is_some_and(|ids| ids[0] >= mark), "below the mark");
    history.check(11_000).unwrap();
}
