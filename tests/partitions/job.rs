//! The scheduled job that creates partitions: it gives up if a transaction has the table open, and the next run creates all partitions
//! after a timeout or a deadlock.

use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use cluster::{Answer, Cluster, Host, assert_caught, blocks, ensure, page, waiting, within};

use crate::create::partitions;

/// Runs a command as cron would.
fn job(server: &Cluster, command: &str) -> Child {
    let mut shell = Host::get().shell(command);
    shell.env("PGHOST", server.socket()).env("PGPORT", "5432").env("PGUSER", "postgres");
    shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell")
}

/// The job gives up if a transaction has the table open. It has then created nothing, and its next run creates all partitions.
fn check_job(server: &Cluster, command: &str) -> Result<(), String> {
    let [mut session, mut reader, mut other] = [0; 3].map(|_| server.connect_to("shop"));
    session.run(
        "DROP TABLE IF EXISTS events; CREATE TABLE events (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE events_rest PARTITION OF events DEFAULT",
    );
    reader.run("BEGIN; SELECT FROM events");
    let mut first = job(server, command);
    ensure!(waiting(&mut session, || first.try_wait().is_ok_and(|ended| ended.is_some())), "the job never asks");
    let gave_up = within(Duration::from_secs(5), || first.try_wait().is_ok_and(|ended| ended.is_some()));
    let others = other.code("SET lock_timeout = '100ms'; SELECT FROM events");
    let made = partitions(&mut session, "events").len() - 1;
    reader.run("COMMIT");
    let first = first.wait_with_output().expect("the job ends");
    ensure!(gave_up, "the job waits on, and keeps others waiting: {others:?}");
    ensure!(others.is_none(), "others were kept waiting: {others:?}");
    let said = String::from_utf8_lossy(&first.stderr);
    ensure!(!first.status.success() && said.contains("canceling statement due to lock timeout"), "it said: {said}");
    ensure!(made == 0, "{made} partitions were made");

    let second = job(server, command).wait_with_output().expect("the job ends");
    let names = String::from_utf8_lossy(&second.stdout).lines().count();
    ensure!(second.status.success() && names == 7, "{names} were made: {}", String::from_utf8_lossy(&second.stderr));
    let there = partitions(&mut session, "events");
    ensure!(there.len() == 8, "{there:?}");
    Ok(())
}

#[test]
fn the_job_gives_up_where_the_table_is_open() {
    let server = Cluster::builder("job_timeout").start();
    server.connect().run("CREATE DATABASE shop");
    server.connect_to("shop").run("CREATE EXTENSION snowflake_pg");
    let [line] = &blocks(&page("docs/partitions.md"), "conf")[..] else { panic!("one line for cron") };
    // Minute, hour, day, month, weekday, and then the command.
    let command = line.split_whitespace().skip(5).collect::<Vec<_>>().join(" ");
    let timeout = "PGOPTIONS='-c lock_timeout=5s' ";
    assert!(command.starts_with(timeout), "{command}");
    check_job(&server, &command.replace("5s", "300ms")).unwrap();
    // The SQLSTATE of the error.
    let (mut reader, mut session) = (server.connect_to("shop"), server.connect_to("shop"));
    reader.run("BEGIN; SELECT FROM events");
    let call = "SET lock_timeout = '50ms'; SELECT snowflake_create_partitions('events', '1 day', 9)";
    assert_eq!(session.code(call).as_deref(), Some("55P03"));
    reader.run("COMMIT");
    // The negative control: without the timeout.
    let waits = check_job(&server, &command.replace(timeout, ""));
    assert_caught(waits, "the job waits on, and keeps others waiting: Some(\"55P03\")");
}

/// Statements of a transaction: at the other ends of foreign keys, and in the table itself.
const CUSTOMER: &str = "INSERT INTO customers VALUES (1)";
const NOTE: &str = "INSERT INTO notes VALUES (NULL)";
const EVENT: &str = "INSERT INTO events VALUES (snowflake_min_id('2024-02-01Z'))";

/// A transaction writes to one table and, while the job waits for it, to another. The one that detects the deadlock first is
/// ended.
fn check_deadlock(server: &Cluster, [first, second]: [&str; 2], job_looks: bool) -> Result<(), String> {
    let [mut writer, mut job, mut watch] = [0; 3].map(|_| server.session());
    writer.run(
        "DROP TABLE IF EXISTS events, customers, notes;
         CREATE TABLE customers (id bigint PRIMARY KEY);
         CREATE TABLE events (id bigint PRIMARY KEY, customer bigint REFERENCES customers) PARTITION BY RANGE (id);
         SELECT snowflake_create_partitions('events', '1 day', 1, '2024-02-01Z');
         CREATE TABLE notes (event bigint REFERENCES events)",
    );
    let [jobs, writers] = if job_looks { ["5s", "120s"] } else { ["60s", "50ms"] };
    for (session, timeout) in [(&mut job, jobs), (&mut writer, writers)] {
        session.run(&format!("SET deadlock_timeout = '{timeout}'"));
    }
    writer.run(&format!("BEGIN; {first}"));
    let call = "SELECT snowflake_create_partitions('events', '1 day', 3, '2024-02-01Z')";
    let job = thread::spawn(move || job.code(call));
    ensure!(waiting(&mut watch, || job.is_finished()), "the job never asks");
    let writer_told = writer.code(second);
    writer.run("COMMIT");
    let job_told = job.join().expect("a thread ends");
    let mut expected = [Some("40P01"), None];
    expected.rotate_right(job_looks.into());
    let told = [writer_told.as_deref(), job_told.as_deref()];
    ensure!(told == expected, "the writer and the job were told {told:?}");
    let made = partitions(&mut watch, "events").len();
    ensure!(made == if job_looks { 1 } else { 3 }, "{made} partitions");
    watch.run(call);
    let made = partitions(&mut watch, "events").len();
    ensure!(made == 3, "{made} partitions at last");
    Ok(())
}

#[test]
fn the_job_and_a_writer_at_the_other_end_of_a_key_deadlock_and_one_goes_on() {
    let server = Cluster::builder("job_deadlock").start();
    for (other_end, job_looks) in [(CUSTOMER, false), (CUSTOMER, true), (NOTE, false)] {
        check_deadlock(&server, [other_end, EVENT], job_looks).unwrap_or_else(|wrong| panic!("{other_end}: {wrong}"));
    }
    // The negative control: a transaction that writes to this table first makes the job wait before the job holds a lock.
    let here_first = check_deadlock(&server, [EVENT, CUSTOMER], false);
    assert_caught(here_first, "the writer and the job were told [None, None]");
}
