//! However large an argument is, the server neither runs out of memory because of it nor ignores a cancel.

use cluster::{Answer, Builder, Cluster, assert_caught, ensure, limit_memory};

/// A server with IDs of three workers, 1 (its own), 7 and 9, and with an array of 20 million numbers, 80 MB, with 7 and NULL among
/// them. The array is stored, so that PostgreSQL itself needs no second copy of it.
fn prepare(builder: Builder) -> Cluster {
    let server = builder.start();
    server.session().run(
        "CREATE TABLE ids AS SELECT snowflake_encode(now(), worker, 0) AS id FROM unnest('{1, 7, 9}'::int[]) AS worker;
         CREATE TABLE many AS SELECT array_fill(3, '{20000000}') || '{7, NULL}' AS workers",
    );
    server
}

const CHECK: &str = "SELECT worker_id FROM snowflake_check('ids', workers => (SELECT workers FROM many)) \
    WHERE problem = 'unexpected worker'";

/// Whether a session that can grow by 150 MB can pass 20 million workers, of which one is in the table.
fn check_memory(builder: Builder) -> Result<(), String> {
    let server = prepare(builder);
    let mut session = server.connect();
    // The memory that a first call loads is not measured.
    session.run("SELECT * FROM snowflake_check('ids', workers => '{1}')");
    let process = limit_memory(&mut session, 150_000_000);
    let found = session.query(CHECK, &[]).map_err(|e| format!("the session ended: {e}"))?;
    let workers: Vec<i32> = found.iter().map(|row| row.get(0)).collect();
    ensure!(workers == [9], "unexpected are {workers:?}");
    // The control of the limit: PostgreSQL itself runs out of memory, with an error.
    let code = session.code("SELECT length(repeat('x', 300000000))");
    ensure!(code.as_deref() == Some("53200"), "the limit does not count: {code:?}");
    ensure!(session.one::<i32>("SELECT pg_backend_pid()") == process, "another session");
    Ok(())
}

#[test]
fn twenty_million_workers_take_no_memory_of_ours() {
    check_memory(Cluster::builder("limits_memory")).unwrap();
}

#[test]
fn a_copy_of_twenty_million_workers_is_caught() {
    assert_caught(check_memory(Cluster::builder("limits_copied").fault("ArgumentCopied")), "the session ended");
}

/// Whether a cancel that arrives when the function starts to read the workers ends the statement before it has read them all.
fn check_cancel(builder: Builder) -> Result<(), String> {
    let server = prepare(builder);
    let code = server.connect().code(CHECK);
    ensure!(code.as_deref() == Some("57014"), "not cancelled: {code:?}");
    ensure!(!server.log().contains("snowflake_pg: read to the end"), "cancelled after the last worker");
    Ok(())
}

#[test]
fn a_cancel_is_looked_for_while_workers_are_read() {
    check_cancel(Cluster::builder("limits_cancel").fault("CancelWhileReading")).unwrap();
}

#[test]
fn a_cancel_that_waits_for_the_last_worker_is_caught() {
    assert_caught(
        check_cancel(Cluster::builder("limits_deaf").fault("DeafReading")),
        "cancelled after the last worker",
    );
}

/// A range of as many partitions as ticks takes no memory, and can be cancelled. If the function did not check for a cancel, it
/// would return rows for days.
#[test]
fn the_bounds_of_a_trillion_partitions_can_be_cancelled() {
    let (_server, mut session) = Cluster::builder("limits_bounds").start_session();
    let bounds = "snowflake_partition_bounds('2010-11-05Z', '2080-01-01Z', '1 ms')";
    // Each partition is a row, which is read when it is needed.
    assert_eq!(session.all::<i64>(&format!("SELECT from_id FROM (SELECT ({bounds}).*) AS b LIMIT 3")).len(), 3);
    session.run("SET statement_timeout = '300ms'");
    assert_eq!(session.code(&format!("SELECT count(*) FROM (SELECT {bounds}) AS b")).as_deref(), Some("57014"));
}
