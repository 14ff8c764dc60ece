//! A server's clock is set back by more than its lease.

use cluster::{Answer, Cluster, check_unique, within};

use crate::fleet::{SOON, refused, renewed_above, seen, status, with_server};

const BOUND: &str = "SELECT extract(epoch FROM granted_until)::float8 FROM snowflake_status";

/// Returns by how many seconds some successful heartbeats raise the bound of a server's grant.
fn raised(registry: &Cluster, server: &Cluster) -> f64 {
    let renew = || {
        let count = seen(registry, server)[0].count;
        renewed_above(registry, server, count + 1);
        server.connect().one::<f64>(BOUND)
    };
    let before = renew();
    renew();
    renew() - before
}

/// A renewal raises the bound to the lease after the server's clock. IDs advance from the last one, so they reach a bound that is not
/// raised.
#[test]
fn a_clock_that_is_set_back_by_more_than_the_lease_ends_the_grant_until_it_is_corrected() {
    let (registry, server, _) = with_server("clock_back", |builder| builder.clock("+0"));
    let mut client = server.session();
    let mut ids = client.batch(1_000);
    // The control: while the clock is right, heartbeats raise the bound.
    let risen = raised(&registry, &server);
    assert!(risen > 0.0, "raised by {risen} s");

    server.set_clock("-3600");
    ids.extend(client.batch(1_000));
    assert_eq!(raised(&registry, &server), 0.0);
    ids.extend(client.batch(1_000));
    // Eleven minutes pass in two seconds.
    let later = "SELECT snowflake_set_mark(snowflake_min_id(granted_until - interval '2 s')) FROM snowflake_status";
    client.batch_execute(later).expect("a superuser may");
    let mut error = None;
    let ended = within(SOON, || {
        match client.query_one("SELECT snowflake_nextval()", &[]) {
            Ok(row) => ids.push(row.get(0)),
            Err(_) => error = refused(&mut client),
        }
        error.is_some()
    });
    assert!(ended, "the grant has not ended: {}", server.log());
    let (code, message, detail, hint) = error.expect("an error");
    assert_eq!((code.as_str(), message.as_str()), ("55000", "the grant for worker ID 0 has ended"));
    assert!(!detail.contains("failed"), "heartbeats succeed, but the detail is {detail}");
    assert!(hint.starts_with("Check the clocks of this server and of the registry"), "{hint}");
    assert_eq!(status(&mut client), format!("refused: {message}"));

    // The hint works.
    server.set_clock("+0");
    assert!(within(SOON, || refused(&mut client).is_none()), "{}", server.log());
    ids.extend(client.batch(1_000));
    assert!(ids.is_sorted());
    check_unique(&mut ids).unwrap();
}
