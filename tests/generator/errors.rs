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

#[test]
fn an_error_leaves_nothing_behind() {
    let (server, mut session) = Cluster::builder("errors").set("log_min_messages", "fatal").start_session();
    let mut other = server.session();
    for (sql, code) in FAILING {
        assert_eq!(session.code(sql).as_deref(), Some(code), "{sql}");
        for client in [&mut session, &mut other] {
            assert_eq!(client.code("SELECT snowflake_nextval()"), None, "after {sql}");
        }
    }
    // Also in the middle of a set, when the session holds the rest of a run, and if the error is not the extension's.
    for sql in ["SELECT 1 / (snowflake_nextval_batch(100) % 7)", "SELECT 1 / 0, snowflake_nextval()"] {
        assert_eq!(session.code(sql).as_deref(), Some("22012"), "{sql}");
        assert_eq!(session.code("SELECT snowflake_nextval()"), None, "after {sql}");
    }
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
