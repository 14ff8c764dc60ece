//! A session that waits because its IDs are too far ahead of the clock can be cancelled and terminated, and holds nothing.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Builder, Cluster, assert_caught, end_of, ensure, sqlstate, within};

/// The longest time for any answer on a machine busy with other tests. Half of the answers must come within [`PROMPT`].
const ANSWER: Duration = Duration::from_secs(2);
const PROMPT: Duration = Duration::from_millis(100);

/// Draws for hours if a second has two IDs.
const DRAW: &str = "SELECT count(*) FROM snowflake_nextval_batch(100000)";

/// A session that would wait for hours responds to timeout, cancel and terminate. Other sessions are served while it waits.
fn check_interrupts(builder: Builder) -> Result<(), String> {
    let (mut server, mut session) =
        builder.set("snowflake_pg.layout", "32:16:1@1s").set("snowflake_pg.max_ahead", "10s").start_session();
    let mut other = server.session();

    let begin = Instant::now();
    let (tell, told) = mpsc::channel();
    let waiting = thread::spawn(move || {
        let result = session.batch_execute(&format!("SET statement_timeout = 200; {DRAW}"));
        let _ = tell.send((session, result));
    });
    let Ok((mut session, result)) = told.recv_timeout(Duration::from_millis(200) + ANSWER + Duration::from_secs(2))
    else {
        server.stop(cluster::Stop::Immediate);
        return Err("statement_timeout is not answered".into());
    };
    waiting.join().expect("a thread that ends");
    let late = begin.elapsed().saturating_sub(Duration::from_millis(200));
    ensure!(late < ANSWER, "statement_timeout was answered {late:?} late");
    let code = sqlstate(&result.expect_err("the time is used up")).0;
    ensure!(code == "57014", "statement_timeout gave {code}");

    let pid: i32 = session.one("SELECT pg_backend_pid()");
    session.run("RESET statement_timeout");
    let mut answers = Vec::new();
    let cancels = [("pg_cancel_backend", "57014"); 10];
    for (function, code) in cancels.into_iter().chain([("pg_terminate_backend", "57P01")]) {
        let (tell, told) = mpsc::channel();
        let waiting = thread::spawn(move || {
            let result = session.batch_execute(DRAW);
            let _ = tell.send(Instant::now());
            (session, result)
        });
        let event = format!("SELECT coalesce(max(wait_event_type), '') FROM pg_stat_activity WHERE pid = {pid}");
        let shown = within(Duration::from_secs(10), || other.one::<String>(&event) == "Extension");
        ensure!(shown, "the wait is not shown in pg_stat_activity");
        let begin = Instant::now();
        other.one::<bool>(&format!("SELECT {function}({pid})"));
        let answered = told.recv_timeout(Duration::from_secs(5)).map_err(|_| format!("{function} is not answered"))?;
        let late = answered - begin;
        ensure!(late < ANSWER, "{function} was answered after {late:?}");
        answers.push(late);
        let (known, result) = waiting.join().expect("a thread that ends");
        session = known;
        let found = end_of(&result.expect_err("the time is used up"), pid, &server);
        ensure!(found == code, "{function} gave {found}");
    }
    answers.sort();
    ensure!(answers[answers.len() / 2] < PROMPT, "answers took {answers:?}");
    Ok(())
}

#[test]
fn a_waiting_session_answers_timeout_cancel_and_terminate() {
    check_interrupts(Cluster::builder("interrupts")).unwrap();
}

#[test]
fn a_deaf_wait_is_caught() {
    assert_caught(check_interrupts(Cluster::builder("interrupts_fault").fault("DeafWait")), "not answered");
}
