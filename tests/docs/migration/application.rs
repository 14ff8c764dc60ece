//! IDs made by the application.

use cluster::{Answer, Client, ensure};

use crate::migration::page::{AS_WRITTEN, Edit, SectionRun};
use crate::migration::{act, answers, assert_caught_edit};

/// Creates orders whose IDs three instances of the application have made since yesterday.
const TABLES: &str = "CREATE TABLE orders (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp());
     INSERT INTO orders SELECT snowflake_encode(at, 1 + n % 3, n % 4096, layout => '41:10:12', epoch => '2020-01-01Z'), at
     FROM generate_series(1, 10000) AS n, LATERAL (SELECT now() - interval '1 day' + n * interval '1 s') AS times(at)";

/// The application continues to insert: one row from instance 2, and rows for 10 s from instance 3, whose clock is ahead.
const APPLICATION: &str = "INSERT INTO orders
     SELECT snowflake_encode(at, 2, 0, layout => '41:10:12', epoch => '2020-01-01Z'), at FROM clock_timestamp() AS at";
const AHEAD: &str = "INSERT INTO orders
     SELECT snowflake_encode(at, 3, 0, layout => '41:10:12', epoch => '2020-01-01Z'), at
     FROM generate_series(clock_timestamp(), clock_timestamp() + interval '10 s', '1 ms') AS at";

/// Sessions on the server use the column default.
const SERVER: &str = "INSERT INTO orders SELECT FROM generate_series(1, 1000)";

/// Checks the times that the page tells the reader to compare, which are correct if the clocks of the instances are right.
fn check_times(session: &mut Client, query: &str) -> Result<(), String> {
    let wrong: i64 = session.one(&format!(
        "SELECT count(*) FROM ({}) AS workers WHERE worker_id NOT BETWEEN 1 AND 3
             OR min NOT BETWEEN now() - interval '25 hours' AND now() OR max > now() + interval '1 minute'",
        query.trim().trim_end_matches(';')
    ));
    ensure!(wrong == 0, "the query shows {wrong} workers or times that are not those of the application");
    Ok(())
}

/// Checks that the application and the server can write to the same table. Every ID shows the time of its row, and there are no
/// duplicates.
pub fn check_application(edit: Edit) -> Result<usize, String> {
    let mut run = SectionRun::on(edit, TABLES);
    run.section("IDs made by the application", |session, next| {
        act(session, APPLICATION)?;
        if next.contains("min(created_at)") {
            check_times(session, next)?;
        }
        if next.contains("SET DEFAULT") {
            act(session, AHEAD)?;
        }
        if next.contains("snowflake_check") {
            act(session, SERVER)?;
            let problems = answers(session, next, AS_WRITTEN)?;
            ensure!(problems.is_empty(), "the check finds {problems:?}");
        }
        Ok(())
    })?;
    let mut session = run.server.connect();
    let wrong: i64 =
        session.one("SELECT count(*) FROM orders WHERE abs(extract(epoch FROM snowflake_timestamp(id) - at)) > 15");
    ensure!(wrong == 0, "{wrong} IDs do not show the time of their row");
    let workers: Vec<i32> =
        session.all("SELECT DISTINCT worker_id FROM orders, snowflake_decode(id) ORDER BY worker_id");
    ensure!(workers == [1, 2, 3, 100], "IDs of {workers:?}");
    Ok(run.blocks)
}

#[test]
fn an_epoch_or_worker_id_that_does_not_suit_the_application_is_caught() {
    let caught = |edit: Edit, reason: &str| assert_caught_edit(check_application, edit, reason);
    caught(("snowflake_pg.epoch = '2020-01-01Z'", "snowflake_pg.epoch = '2020-02-01Z'"), "in the future");
    caught(("snowflake_pg.worker_id = 100", "snowflake_pg.worker_id = 3"), "duplicate key value");
}
