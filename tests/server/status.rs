//! The views show correct values, whichever sessions caused them and even after those sessions have ended.

use std::thread;
use std::time::Duration;

use cluster::{Answer, Builder, Chance, Client, Cluster, Stop, assert_caught, ensure, sqlstate, within};

/// How many IDs one session draws in [`draw`].
const DRAWN: i64 = 20_000 + 1_000 + 30;

/// Draws in all ways, and returns the session's process ID.
fn draw(session: &mut Client) -> i32 {
    session.run("SELECT count(snowflake_nextval()) FROM generate_series(1, 20000)");
    assert_eq!(session.batch(1_000).len(), 1_000);
    session.run("SELECT snowflake_reserve(30)");
    session.one("SELECT pg_backend_pid()")
}

fn issued(session: &mut Client) -> i64 {
    session.one("SELECT ids_issued FROM snowflake_status")
}

/// The counts of many sessions, of ended sessions, and of parallel workers.
fn check_counts(builder: Builder) -> Result<(), String> {
    // So few connections that slots are used again. From 17 on, the slot that has been free for longest comes first.
    let (server, mut watcher) = builder.set("max_connections", "20").start_session();
    let running: Vec<_> = (0..8)
        .map(|_| {
            let mut session = server.connect();
            thread::spawn(move || (draw(&mut session), session))
        })
        .collect();
    let sessions: Vec<(i32, Client)> = running.into_iter().map(|session| session.join().expect("draws")).collect();
    for (pid, _) in &sessions {
        let sql = format!("SELECT sum(ids_issued)::bigint FROM snowflake_stat_backends WHERE pid = {pid}");
        let found = watcher.one::<Option<i64>>(&sql);
        ensure!(found == Some(DRAWN), "session {pid} has drawn {DRAWN}, shown is {found:?}");
    }
    let joined: i64 = watcher.one("SELECT count(*) FROM snowflake_stat_backends JOIN pg_stat_activity USING (pid)");
    ensure!(joined == 8, "{joined} of 8 sessions are joined");
    ensure!(issued(&mut watcher) == 8 * DRAWN, "{} of {} IDs are counted", issued(&mut watcher), 8 * DRAWN);

    drop(sessions);
    let gone = || watcher.one::<i64>("SELECT count(*) FROM snowflake_stat_backends") == 0;
    ensure!(within(Duration::from_secs(10), gone), "sessions that are gone are still shown");
    ensure!(issued(&mut watcher) == 8 * DRAWN, "the counts went with their sessions");
    // These sessions use the slots of those that have ended.
    let mut sessions: Vec<Client> = (0..16).map(|_| server.connect()).collect();
    sessions.iter_mut().for_each(|session| assert_eq!(session.batch(10).len(), 10));
    let shown: Vec<i64> = watcher.all("SELECT ids_issued FROM snowflake_stat_backends");
    ensure!(shown == [10; 16], "new sessions have drawn 10 each, shown is {shown:?}");
    let total = issued(&mut watcher);
    ensure!(total == 8 * DRAWN + 160, "{total} of {} IDs are counted", 8 * DRAWN + 160);

    let mut parallel = server.session();
    parallel.run("CREATE TABLE numbers AS SELECT generate_series(1, 100000) AS n; ANALYZE numbers");
    parallel.prefer_parallel(4);
    let sql = "SELECT count(snowflake_nextval()) FROM numbers";
    ensure!(parallel.plan(sql).contains("Workers Planned: 4"), "not parallel: {}", parallel.plan(sql));
    parallel.run(sql);
    let drawn = issued(&mut watcher) - total;
    ensure!(drawn == 100_000, "parallel workers have drawn 100000 IDs, counted are {drawn}");
    Ok(())
}

#[test]
fn what_sessions_and_parallel_workers_draw_is_counted_and_stays_when_they_are_gone() {
    check_counts(Cluster::builder("counts")).unwrap();
}

#[test]
fn counts_that_go_with_their_session_are_caught() {
    let builder = Cluster::builder("counts_fault").fault("CountsForgotten");
    assert_caught(check_counts(builder), "IDs are counted");
}

#[test]
fn the_row_agrees_with_what_the_server_knows() {
    let (server, mut session) = Cluster::builder("status")
        .set("snowflake_pg.layout", "41:5:5:12")
        .set("snowflake_pg.datacenter_id", "3")
        .set("snowflake_pg.worker_id", "17")
        .start_session();
    let one = |session: &mut Client, condition: &str| {
        let found: Option<bool> = session.one(&format!("SELECT {condition} FROM snowflake_status"));
        assert_eq!(found, Some(true), "{condition}");
    };
    for condition in [
        "state = 'idle' AND num_nulls(problem, hint, last_id, last_id_at, lead) = 5",
        "num_nulls(last_clock_regression, last_clock_regression_at, last_clock_jump, last_clock_jump_at) = 4",
        "(ids_issued, throttled_waits, mark_waits, clock_waits, retries, extensions, clock_regressions, clock_jumps) =
            (0, 0, 0, 0, 0, 0, 0, 0)",
        "stats_reset BETWEEN pg_postmaster_start_time() - interval '1 min' AND now()",
    ] {
        one(&mut session, condition);
    }
    let last: i64 = session.one("SELECT max(snowflake_nextval()) FROM generate_series(1, 5000)");
    for condition in [
        "state = 'issuing' AND num_nulls(problem, hint) = 2",
        "(datacenter_id, worker_id, layout) = (3, 17, '41:5:5:12')",
        "epoch = '2010-11-04 01:42:54.657Z'",
        &format!("last_id = {last} AND last_id_at = snowflake_timestamp({last})"),
        "ids_issued = 5000 AND extensions >= 1 AND slowest_extension > 0",
        "lead BETWEEN interval '-10 ms' AND interval '101 ms'",
        "mark = (SELECT (remote_lsn - '0/0')::bigint FROM pg_replication_origin_status
                 WHERE external_id = 'snowflake_pg')",
        "mark > last_id AND mark_lead < '11 s'
            AND mark_lead - (snowflake_timestamp(mark) - clock_timestamp()) BETWEEN '-1 ms' AND '1 s'",
        // 2^41 ms after the epoch.
        "exhaustion_date = '2080-07-10 17:30:30.209Z'",
        "abs(years_left - extract(epoch FROM exhaustion_date - now()) / (365.2425 * 86400)) < 0.001",
    ] {
        one(&mut session, condition);
    }
    // Beyond PostgreSQL's range of timestamps there is no date, but the number of years is shown.
    let mut long = server;
    long.set("snowflake_pg.layout", "52:5:5:1@1s");
    long.restart(Stop::Fast);
    // Read in seconds, a mark in milliseconds is far in the future.
    let far =
        "problem = 'the high-water mark is more than a day ahead of the clock' AND mark_lead > interval '1000 years'";
    one(&mut long.session(), &format!("exhaustion_date IS NULL AND years_left > 1e8 AND {far}"));
}

#[test]
fn whoever_watches_the_server_reads_the_views_and_nobody_else() {
    let server = Cluster::builder("status_rights").start();
    server.session().run("CREATE ROLE watcher LOGIN IN ROLE pg_monitor; CREATE ROLE anybody LOGIN");
    let mut watcher = server.connect_as("watcher");
    let mut anybody = server.connect_as("anybody");
    for view in ["snowflake_status", "snowflake_stat_backends"] {
        for sql in [format!("SELECT * FROM {view}"), format!("SELECT * FROM {view}()")] {
            assert_eq!(watcher.code(&sql), None, "{sql}");
            assert_eq!(anybody.code(&sql).as_deref(), Some("42501"), "{sql}");
        }
    }
    for client in [&mut watcher, &mut anybody] {
        assert_eq!(client.code("SELECT snowflake_stat_reset()").as_deref(), Some("42501"));
    }
}

/// A view with one row for which the planner expects many rows is compiled (`jit`) for each query, which takes much longer than to run it.
#[test]
fn the_planner_expects_one_row() {
    let (_server, mut session) = Cluster::builder("status_planned").start_session();
    let plan = session.plan("SELECT * FROM snowflake_status");
    assert!(plan.lines().filter(|line| line.contains("rows=")).all(|line| line.contains("rows=1 ")), "{plan}");
    let old = "ALTER FUNCTION snowflake_status() ROWS 1000";
    session.run(old);
    assert!(session.plan("SELECT * FROM snowflake_status").contains("rows=1000 "), "the estimate comes from elsewhere");
}

#[test]
fn a_reset_lets_all_counts_begin_again() {
    let (server, mut session) =
        Cluster::builder("status_reset").set("snowflake_pg.max_ahead", "2ms").clock("+0").start_session();
    // Repeats until two sessions have contended, and until a session whose requests take a whole tick was throttled.
    let mut drawn = 0;
    let contended = within(Duration::from_secs(60), || {
        let mut other = server.connect();
        let sql = "SELECT count(snowflake_nextval()) FROM generate_series(1, 500000)";
        let busy = thread::spawn(move || other.one::<i64>(sql));
        drawn += session.one::<i64>(sql) + busy.join().expect("draws");
        session.one("SELECT retries > 0 FROM snowflake_status")
    });
    assert!(contended, "no session met another: {}", status(&mut session));
    let throttled = within(Duration::from_secs(60), || {
        drawn += 4_096 * session.one::<i64>("SELECT count(snowflake_reserve(4096)) FROM generate_series(1, 100)");
        session.one("SELECT throttled_waits > 0 FROM snowflake_status")
    });
    assert!(throttled, "no session was throttled: {}", status(&mut session));
    // A clock regression.
    server.set_clock("-100");
    let counted = "SELECT clock_regressions = 1 FROM snowflake_status, snowflake_nextval()";
    assert!(within(Duration::from_secs(20), || session.one(counted)), "the step is not counted");
    let all = format!(
        "SELECT ids_issued > {drawn} AND retries > 0 AND extensions > 0 AND slowest_extension > 0
         AND throttled_waits > 0 AND throttled_time BETWEEN throttled_waits AND throttled_waits * 1000
         AND last_clock_regression BETWEEN '99 s' AND '101 s'
         AND last_clock_regression_at BETWEEN clock_timestamp() - interval '1 min' AND clock_timestamp()
         FROM snowflake_status"
    );
    assert_eq!(session.one::<Option<bool>>(&all), Some(true), "{}", status(&mut session));
    session.run("SELECT snowflake_stat_reset()");
    let none = "SELECT ids_issued = 0 AND retries = 0 AND extensions = 0 AND slowest_extension = 0
                AND throttled_waits = 0 AND throttled_time = 0 AND clock_regressions = 0
                AND last_clock_regression IS NULL AND last_clock_regression_at IS NULL
                AND clock_timestamp() - stats_reset < interval '1 min'
                FROM snowflake_status";
    assert_eq!(session.one::<Option<bool>>(none), Some(true), "{}", status(&mut session));
    assert_eq!(session.one::<i64>("SELECT sum(ids_issued)::bigint FROM snowflake_stat_backends"), 0);
    session.batch(10);
    assert_eq!(issued(&mut session), 10);
    assert_eq!(session.one::<i64>("SELECT sum(ids_issued)::bigint FROM snowflake_stat_backends"), 10);
}

fn status(session: &mut Client) -> String {
    session.one("SELECT row_to_json(snowflake_status)::text FROM snowflake_status")
}

/// Returns `state`, and whether `problem` and `hint` match the error of the next request for an ID.
fn state(session: &mut Client) -> (String, bool) {
    let row = session
        .query_one("SELECT state, coalesce(problem, ''), coalesce(hint, '') FROM snowflake_status", &[])
        .expect("the view answers whatever the generator does");
    let (state, problem, hint): (String, String, String) = (row.get(0), row.get(1), row.get(2));
    let told = match session.batch_execute("SELECT snowflake_nextval()") {
        Ok(()) => (String::new(), String::new()),
        Err(error) => {
            let (_, message, _, hint) = sqlstate(&error);
            (message, hint)
        }
    };
    (state, told == (problem, hint))
}

#[test]
fn a_server_that_refuses_says_why_before_anybody_asks() {
    let agreed = |state: &str| (state.to_string(), true);
    let (mut server, mut session) = Cluster::builder("status_states").clock("+0").start_session();
    assert_eq!(state(&mut session), agreed("idle"));
    assert_eq!(state(&mut session), agreed("issuing"));

    let standby = server.standby(Cluster::builder("status_standby").set("snowflake_pg.worker_id", "2"));
    let mut replica = standby.connect();
    assert_eq!(state(&mut replica), agreed("standby"));
    let replayed = format!("SELECT mark = {} AND mark_lead IS NOT NULL FROM snowflake_status", server.shown_mark());
    assert!(within(Duration::from_secs(60), || replica.one(&replayed)), "{}", status(&mut replica));
    standby.promote();
    assert_eq!(state(&mut replica), agreed("idle"));

    // The mark is removed while IDs are issued.
    session.run("SELECT pg_replication_origin_drop('snowflake_pg')");
    assert_eq!(session.one::<String>("SELECT state FROM snowflake_status"), "refused");
    let missing = session.one::<String>("SELECT problem FROM snowflake_status");
    let told = || {
        let asked = session.batch_execute("SELECT count(*) FROM snowflake_nextval_batch(100000)");
        asked.is_err_and(|error| sqlstate(&error).1 == missing)
    };
    assert!(within(Duration::from_secs(20), told), "nobody is told {missing:?}");

    for (name, value) in [("snowflake_pg.worker_id", None), ("snowflake_pg.epoch", Some("2100-01-01T00:00:00Z"))] {
        let known = server.connect().one::<String>(&format!("SHOW {name}"));
        match value {
            Some(value) => server.set(name, value),
            None => server.unset(name),
        }
        server.restart(Stop::Fast);
        assert_eq!(state(&mut server.connect()), agreed("refused"), "{name}");
        server.set(name, &known);
    }
    // The clock is more than a day behind the mark.
    server.restart(Stop::Fast);
    assert_eq!(state(&mut server.connect()), agreed("idle"));
    server.restart_at(Stop::Fast, "-172800");
    assert_eq!(state(&mut server.connect()), agreed("refused"));
    server.set_clock("@2081-01-01 00:00:00");
    assert_eq!(state(&mut server.connect()), agreed("refused"));
    // A mark above all IDs, less than a day before the end of the layout.
    server.set_clock("+0");
    let end: f64 = server.connect().one("SELECT extract(epoch FROM now() + interval '1 hour')::float8");
    server.set("snowflake_pg.layout", "40:10:12");
    server.set("snowflake_pg.epoch", &format!("{:.0}", end * 1e3 - (1u64 << 40) as f64));
    server.restart(Stop::Fast);
    let mut session = server.connect();
    let above = format!("SELECT snowflake_set_mark({}, force => true)", (1i64 << 62) - 1);
    session.run(&above);
    session.batch_execute("SELECT snowflake_nextval()").expect_err("no ID is left but that of another");
    assert_eq!(state(&mut session), agreed("refused"));
}

#[test]
fn after_a_crash_of_a_session_counting_begins_anew() {
    let (server, mut session) = Cluster::builder("status_crash").start_session();
    let before: std::time::SystemTime = session.one("SELECT stats_reset FROM snowflake_status");
    session.batch(1_000);
    assert!(server.kill_session(&mut Chance::of("status_crash")), "nobody to kill");
    server.wait_until_back();
    let mut session = server.connect();
    assert_eq!(session.one::<i64>("SELECT count(*) FROM snowflake_stat_backends"), 0);
    assert_eq!(issued(&mut session), 0);
    assert!(session.one::<std::time::SystemTime>("SELECT stats_reset FROM snowflake_status") > before);
    session.batch(10);
    assert_eq!(issued(&mut session), 10);
}

#[test]
fn a_clock_that_is_waited_for_is_a_problem_until_it_is_back() {
    let (server, mut session) =
        Cluster::builder("status_clock").clock("+0").set("snowflake_pg.on_clock_regression", "error").start_session();
    session.batch(10);
    server.set_clock("-60");
    let refused = |session: &mut Client| session.code("SELECT snowflake_nextval()").is_some();
    assert!(within(Duration::from_secs(20), || refused(&mut session)), "the clock is not looked at");
    let problem: String = session.one("SELECT state || ': ' || problem FROM snowflake_status");
    assert!(problem.starts_with("refused: the clock was set back and is now 5"), "{problem}");
    server.set_clock("+0");
    assert!(within(Duration::from_secs(20), || state(&mut session) == ("issuing".into(), true)));
}
