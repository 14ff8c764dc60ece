//! Several databases become one, and their keys from sequences become snowflakes.

use cluster::{Answer, assert_caught, ensure};

use crate::migration::page::{AS_WRITTEN, Edit, SectionRun};
use crate::migration::{answers, assert_caught_edit};

/// Returns the statements that create two databases whose keys begin at 1, with several orders a millisecond, and the tables that
/// will contain the rows of both databases.
fn tables(spread: &str) -> String {
    let place = |place: &str| {
        format!(
            "CREATE SCHEMA {place};
             CREATE TABLE {place}.orders (id serial PRIMARY KEY, customer text, created_at timestamptz NOT NULL);
             CREATE TABLE {place}.order_lines (order_id integer REFERENCES {place}.orders, line text);
             INSERT INTO {place}.orders (customer, created_at)
             SELECT '{place} ' || n, now() - interval '1 day' + n * interval '{spread}' FROM generate_series(1, 3000) AS n;
             INSERT INTO {place}.order_lines SELECT id, customer FROM {place}.orders"
        )
    };
    format!(
        "{}; {};
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text, created_at timestamptz);
         CREATE TABLE order_lines (order_id bigint NOT NULL REFERENCES orders, line text)",
        place("berlin"),
        place("paris")
    )
}

pub fn check_merge(edit: Edit) -> Result<usize, String> {
    check("0.3 ms", edit)
}

/// Checks that every row arrives once, in the order of the rows' times, together with the rows that refer to it.
fn check(spread: &str, edit: Edit) -> Result<usize, String> {
    let mut run = SectionRun::on(edit, &tables(spread));
    run.section("Merge several databases", |session, next| {
        if next.contains("snowflake_check") {
            session.batch_execute("INSERT INTO orders (customer, created_at) VALUES ('new', now())").expect("a row");
            let problems = answers(session, next, edit)?;
            ensure!(problems.is_empty(), "the check finds {problems:?}");
        }
        Ok(())
    })?;
    let mut session = run.server.connect();
    let lines: i64 = session.one("SELECT count(*) FROM orders JOIN order_lines ON order_id = id AND line = customer");
    ensure!(lines == 6_000, "{lines} of 6000 lines belong to their order");
    let wrong: i64 = session.one(
        "SELECT count(*) FROM (SELECT id, created_at, lag(created_at) OVER (ORDER BY id) AS before FROM orders) AS ordered
         WHERE date_trunc('milliseconds', created_at) < date_trunc('milliseconds', before)
             OR abs(extract(epoch FROM snowflake_timestamp(id) - created_at)) > 60",
    );
    ensure!(wrong == 0, "{wrong} IDs do not show the time of their row");
    let found: String = session
        .one("SELECT customer FROM orders JOIN orders_new_ids ON new_id = orders.id WHERE place = 'paris' AND orders_new_ids.id = 7");
    ensure!(found == "paris 7", "the old number finds {found}");
    Ok(run.blocks)
}

#[test]
fn databases_that_are_mixed_up_or_numbered_one_by_one_are_caught() {
    let caught = |edit: Edit, reason: &str| assert_caught_edit(check_merge, edit, reason);
    caught(("PARTITION BY snowflake_min_id(at)", "PARTITION BY place, snowflake_min_id(at)"), "duplicate key value");
    let lines = ("ON id = order_id WHERE place = 'paris'", "ON id = order_id WHERE place = 'berlin'");
    caught(lines, "lines belong to their order");
}

/// The page tells the reader to list all worker IDs that were used.
#[test]
fn more_rows_of_a_millisecond_than_it_holds_get_the_next_worker_id() {
    assert_caught(check("0 ms", AS_WRITTEN).map(drop), "unexpected worker");
    check("0 ms", ("'{1000}'", "'{1000, 1001}'")).unwrap();
}
