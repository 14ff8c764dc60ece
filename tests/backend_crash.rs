//! The end of one backend by force takes the shared memory of all along; issuing begins anew, by the clock.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Cluster};

#[test]
fn after_a_backend_was_killed_ids_go_on_above() {
    let server = Cluster::builder("backend_crash").start();
    let mut session = server.session();
    let mut last: i64 = session.one("SELECT max(id) FROM snowflake_nextval_batch(1000) AS id");
    for _ in 0..3 {
        let pid: i32 = session.one("SELECT pg_backend_pid()");
        // What was issued ahead of the clock is not remembered: let the clock pass it.
        thread::sleep(Duration::from_millis(200));
        let killed = Command::new("kill").arg("-KILL").arg(pid.to_string()).status();
        assert!(killed.is_ok_and(|status| status.success()));
        let deadline = Instant::now() + Duration::from_secs(30);
        session = loop {
            // The first connections may still be ended by the restart.
            let client = server.config("postgres").connect(postgres::NoTls);
            let alive = client.and_then(|mut client| client.simple_query("SELECT 1").map(|_| client));
            if let Ok(client) = alive {
                break client;
            }
            assert!(Instant::now() < deadline, "the server did not come back:\n{}", server.log());
            thread::sleep(Duration::from_millis(20));
        };
        let next: i64 = session.one("SELECT snowflake_nextval()");
        assert!(next > last, "{next} came after {last}");
        last = next;
    }
    assert!(server.log().contains("terminated by signal 9"), "no backend was killed");
}
