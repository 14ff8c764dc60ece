//! Periods that ended long ago: the registry keeps the segment of each one for ever, so only the owner of a series begins them.

use cluster::{Answer, Cluster, assert_caught, ensure};

use crate::rights::with_series;

/// Starts a server with a series and with role `clerk`, which can take its numbers.
fn start(name: &str, fault: Option<&str>) -> (Cluster, Cluster) {
    let (registry, server) = with_series(name, fault);
    server.session().run(
        "CREATE ROLE clerk LOGIN; GRANT SELECT, INSERT, UPDATE ON ticket TO clerk;
         CREATE TABLE tickets (id integer, number text, day date); GRANT ALL ON tickets TO clerk;
         SELECT snowflake_number_at_commit('tickets', 'number', 'ticket', 'day')",
    );
    (registry, server)
}

/// A role asks for numbers of years in the past, in both ways.
fn fill(name: &str, fault: Option<&str>) -> Result<(), String> {
    let (registry, server) = start(name, fault);
    let mut clerk = server.connect_as("clerk");
    for year in 1990..1995 {
        _ = clerk.code(&format!("SELECT snowflake_serial('ticket', date '{year}-05-05')"));
        _ = clerk.code(&format!("INSERT INTO tickets (day) VALUES ('{}-05-05')", year + 10));
    }
    let tags: i64 = registry.connect().one("SELECT count(*) FROM snowflake_registry.segment");
    ensure!(tags == 0, "the registry has got {tags} tags");
    Ok(())
}

#[test]
fn a_role_that_takes_numbers_does_not_fill_the_registry_with_the_past() {
    fill("dense_past", None).unwrap();
}

#[test]
fn a_past_that_any_role_begins_is_caught() {
    assert_caught(fill("dense_past_any", Some("PastByAnyRole")), "the registry has got 10 tags");
}

/// Rows of earlier years can be numbered, and numbers of the last months need no owner.
#[test]
fn the_owner_of_a_series_begins_any_period() {
    let (_registry, server) = start("dense_backfill", None);
    let (mut owner, mut clerk) = (server.session(), server.connect_as("clerk"));
    let next = "SELECT snowflake_serial('ticket', date '1999-05-05')";
    for _ in 0..2 {
        let [code, message, detail, hint] = clerk.error(next);
        assert_eq!(
            [code, message],
            ["42501", "only the owner of the series can begin segment \"series public.ticket 1999\""]
        );
        assert_eq!(
            detail,
            "No number has been drawn for this period, which began at 1999-01-01T00:00:00+00:00 and ended more than \
             100 days ago."
        );
        assert_eq!(
            hint,
            "As the owner of the series, call snowflake_serial() once with a time in this period. After that, other \
             roles can also draw numbers."
        );
    }
    // The hint works, directly after the role has asked.
    assert_eq!(owner.one::<String>(next), "T-1999-000001");
    assert_eq!(clerk.one::<String>(next), "T-1999-000002");
    owner.run("INSERT INTO tickets VALUES (1, NULL, '1998-05-05')");
    // A row that is rolled back draws no number. The period has begun.
    clerk.run("BEGIN; INSERT INTO tickets VALUES (2, NULL, '1998-05-05'); ROLLBACK");
    clerk.run("INSERT INTO tickets VALUES (2, NULL, '1998-05-05')");
    assert_eq!(owner.all::<String>("SELECT number FROM tickets ORDER BY id"), ["T-1998-000001", "T-1998-000002"]);
    let recent: String = clerk.one("SELECT snowflake_serial('ticket', now() - interval '90 days')");
    assert!(recent.ends_with("-000001"), "{recent}");
}
