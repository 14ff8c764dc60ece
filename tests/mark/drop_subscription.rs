//! DROP SUBSCRIPTION locks the catalog of replication origins, which contains the mark.

use std::thread;
use std::time::Duration;

use cluster::{Answer, Cluster, check_increasing};

#[test]
fn sessions_get_ids_while_a_subscription_is_dropped() {
    let (server, mut session) = Cluster::builder("extension_locked").start_session();
    let mut holder = server.connect();
    // DROP SUBSCRIPTION takes this lock while it waits for its publisher.
    holder.run("BEGIN; LOCK TABLE pg_replication_origin IN EXCLUSIVE MODE");
    let mut ids: Vec<i64> = Vec::new();
    for _ in 0..4 {
        ids.push(session.one("SELECT snowflake_nextval()"));
        thread::sleep(Duration::from_millis(1_200));
    }
    check_increasing(&ids).unwrap();
}
