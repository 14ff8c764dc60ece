//! docs/bad-day.md, "The mark is missing": a server whose mark was set back issues IDs above all earlier IDs after a superuser
//! has set the mark as the page says.

use std::time::Duration;

use cluster::{Answer, Cluster, Stop, assert_caught, block_with, blocks, check_unique, ensure, page, typed, within};

/// The longest time until the reservation is exhausted.
const DRY: Duration = Duration::from_secs(12);

/// The number of IDs that are issued before and after the mark is set.
const SMALL: u32 = 100;

/// Sets the mark back by hand. If `set` is true, follows the page before the clock is set back by a minute. Otherwise, sets the
/// mark to a value that is too low.
fn check_set_back(name: &str, set: bool) -> Result<(), String> {
    let mut server = Cluster::builder(name).clock("+0").start();
    let mut session = server.session();
    let mut ids = session.batch(SMALL);
    session.batch_execute("SELECT pg_replication_origin_advance('snowflake_pg', '0/1')").expect("a superuser may");
    let refused = || match session.query("SELECT snowflake_nextval()", &[]) {
        Ok(rows) => {
            ids.push(rows[0].get(0));
            false
        }
        Err(error) => cluster::sqlstate(&error).1 == "the high-water mark was set back",
    };
    ensure!(within(DRY, refused), "the server does not notice:\n{}", server.log());
    let block = block_with(blocks(&page("docs/bad-day.md"), "sql missing mark"), "snowflake_set_mark");
    let statement = if set { block } else { block.replace("interval '20 s'", "interval '-60 s'") };
    typed(server.psql(), &statement)?;
    server.stop(Stop::Fast);
    server.set_clock("-60");
    server.start();
    let after = server.connect().batch(SMALL);
    ensure!(after.iter().min() > ids.iter().max(), "IDs begin below earlier ones");
    ids.extend(after);
    check_unique(&mut ids)
}

#[test]
fn a_server_whose_mark_was_set_as_the_page_says_issues_above_all_ids() {
    check_set_back("missing_mark_set", true).unwrap();
}

#[test]
fn a_mark_that_is_set_too_low_is_caught() {
    assert_caught(check_set_back("missing_mark_low", false), "IDs begin below earlier ones");
}
