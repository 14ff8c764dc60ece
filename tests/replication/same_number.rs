//! A standby that has the worker ID of its primary logs a warning and shows it before the failover.

use cluster::{Answer, Cluster, PATIENCE, Stop, within};

const WARNING: &str = "01000 WARNING:  snowflake_pg: this standby and its primary both have worker ID 1";

/// True when the background worker that checks the worker ID has ended.
fn looked(standby: &Cluster) -> bool {
    let looks = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'snowflake_pg standby watch')";
    within(PATIENCE, || !standby.connect().one::<bool>(looks))
}

/// The worker ID that issued last, as far as a server knows.
fn last_issuer(server: &Cluster) -> Option<i32> {
    server.connect().one("SELECT last_issuer_worker_id FROM snowflake_status")
}

#[test]
fn a_standby_with_its_primarys_number_is_told_so_once() {
    let (primary, mut session) = Cluster::builder("number_primary").start_session();
    assert_eq!(last_issuer(&primary), None);
    let standby = |name, worker| {
        let with_codes = Cluster::builder(name).set("log_line_prefix", "%m [%p] %e ");
        primary.standby(with_codes.set("snowflake_pg.worker_id", worker))
    };
    let mut same = standby("number_same", "1");
    // There is nothing to compare with before the first ID.
    assert_eq!(last_issuer(&same), None);
    assert!(!same.log().contains(WARNING), "{}", same.log());
    // The background worker ends when the server is stopped, and starts with it again.
    same.restart(Stop::Fast);
    session.batch(10);
    assert!(looked(&same), "the background worker does not end");
    assert_eq!(same.log().matches(WARNING).count(), 1, "{}", same.log());
    assert!(
        same.log()
            .contains("HINT:  Give this server its own worker ID, and set that ID in a configuration file outside"),
        "{}",
        same.log()
    );
    assert_eq!(last_issuer(&same), Some(1));

    let own = standby("number_own", "2");
    assert!(looked(&own), "the background worker does not end");
    assert!(!own.log().contains("this standby and its primary"), "{}", own.log());
    assert_eq!(last_issuer(&own), Some(1));
    // After the promotion the worker ID stays that of the primary, until the new server issues its first ID.
    own.promote();
    assert_eq!(last_issuer(&own), Some(1));
    own.connect().batch(10);
    assert_eq!(last_issuer(&own), Some(2));
    assert_eq!(last_issuer(&primary), Some(1));
}

#[test]
fn a_mark_that_was_set_by_hand_has_no_issuer() {
    let (server, mut session) = Cluster::builder("number_by_hand")
        .set("snowflake_pg.layout", "41:5:5:12")
        .set("snowflake_pg.datacenter_id", "3")
        .start_session();
    session.batch(10);
    let both: String =
        session.one("SELECT concat_ws(' ', last_issuer_datacenter_id, last_issuer_worker_id) FROM snowflake_status");
    assert_eq!(both, "3 1");
    session.run("SELECT snowflake_set_mark(snowflake_max_id(now() + interval '1 minute'))");
    assert_eq!(last_issuer(&server), None);
}
