//! When a throttled bulk request is overdue.

use flake::{Bulk, Nanos};

const MS: Nanos = 1_000_000;

/// A time of the monotonic clock.
const NOW: Nanos = 86_400_000 * MS;

#[test]
fn overdue_requests_share_a_quarter_of_the_time() {
    let bulk = Bulk::default();
    assert!(bulk.takes_overdue(NOW, 100 * MS));
    bulk.granted_overdue(NOW, 10 * MS);
    assert!(!bulk.takes_overdue(NOW + 39 * MS, 100 * MS));
    assert!(bulk.takes_overdue(NOW + 40 * MS, 100 * MS));
    // The request becomes overdue again even if the monotonic clock has gone back by an hour.
    let later = NOW + 3_600_000 * MS;
    bulk.granted_overdue(later, 10 * MS);
    assert!(bulk.takes_overdue(NOW, 100 * MS));
}

#[test]
fn no_request_is_overdue_while_bulk_requests_are_granted() {
    let bulk = Bulk::default();
    bulk.granted(NOW);
    assert!(!bulk.takes_overdue(NOW + 99 * MS, 100 * MS));
    assert!(bulk.takes_overdue(NOW + 100 * MS, 100 * MS));
    // The caller read the clock before another caller's grant.
    assert!(!bulk.takes_overdue(NOW - MS, 100 * MS));
    // The request becomes overdue again even if the monotonic clock has gone back by an hour.
    bulk.granted(NOW + 3_600_000 * MS);
    assert!(bulk.takes_overdue(NOW, 100 * MS));
}
