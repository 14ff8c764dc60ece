//! An error leaves nothing behind: the same session and all others continue.

use cluster::{Answer, Builder, Cluster, assert_caught, ensure};

/// Statements that end in an error of the extension, and their SQLSTATEs. All others are in `tests/pg_regress/sql/default_errors.sql`.
const FAILING: [(&str, &str); 5] = [
    ("SELECT snowflake_nextval_batch(0)", "22023"),
    ("SELECT snowflake_nextval_batch(10000001)", "22023"),
    ("SELECT snowflake_reserve(0)", "22023"),
    ("SELECT snowflake_reserve(4097)", "22023"),
    ("SELECT snowflake_decode(-1)", "22003"),
];

fn check_errors(builder: Builder) -> Result<(), String> {
    let (server, mut session) = builder.set("log_min_messages", "fatal").start_session();
    let mut other = server.session();
    for (sql, code) in FAILING {
        let found = session.code(sql);
        ensure!(found.as_deref() == Some(code), "{sql} gave {found:?}, not {code}");
        for client in [&mut session, &mut other] {
            let next = client.query_one("SELECT snowflake_nextval()", &[]);
            ensure!(next.is_ok(), "after {sql} no ID is issued: {:?}", next.err());
        }
    }
    // Also in the middle of a set, when the session holds the rest of a run, and if the error is not the extension's.
    for sql in ["SELECT 1 / (snowflake_nextval_batch(100) % 7)", "SELECT 1 / 0, snowflake_nextval()"] {
        let found = session.code(sql);
        ensure!(found.as_deref() == Some("22012"), "{sql} gave {found:?}");
        ensure!(session.query_one("SELECT snowflake_nextval()", &[]).is_ok(), "after {sql} no ID is issued");
    }
    Ok(())
}

#[test]
fn an_error_leaves_nothing_behind() {
    check_errors(Cluster::builder("errors")).unwrap();
}

/// Without a worker ID, every draw raises an error in the middle of the slow path. If a lock were held there, the next draw would
/// find it poisoned.
fn check_slow_path(builder: Builder) -> Result<(), String> {
    let (_server, mut session) = builder.unset("snowflake_pg.worker_id").start_session();
    for _ in 0..3 {
        let found = session.code("SELECT snowflake_nextval()");
        ensure!(found.as_deref() == Some("55000"), "gave {found:?}");
    }
    ensure!(session.one::<i32>("SELECT 1") == 1, "the session ended");
    Ok(())
}

#[test]
fn an_error_on_the_slow_path_can_be_met_again() {
    check_slow_path(Cluster::builder("slow_path")).unwrap();
}

#[test]
fn a_default_worker_id_is_caught() {
    assert_caught(check_slow_path(Cluster::builder("slow_path_default").fault("DefaultWorker")), "gave None");
}

#[test]
fn a_lock_held_over_an_error_is_caught() {
    assert_caught(check_slow_path(Cluster::builder("slow_path_fault").fault("PoisonedLock")), "gave Some(\"XX000\")");
}
