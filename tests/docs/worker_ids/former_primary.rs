//! Streaming replication: a former primary has issued IDs that the other server does not know. When the former primary is rewound
//! and promoted again, it does not repeat these IDs, although its clock is behind them, because its mark was carried over.

use cluster::{Boot, Builder, SPARSE_PER_SECOND, Stop, assert_caught, check_unique, draw_above, ensure, within};

use crate::worker_ids::page::{PATIENCE, PageHost, section};

/// What is done with the mark of the former primary before the former primary is rewound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkHandling {
    /// The mark is carried over, as the page says.
    CarriedOver,
    Forgotten,
    /// The mark is forgotten, but the machine was not restarted since.
    Witnessed,
}

fn like(builder: Builder) -> Builder {
    builder.sparse().set("wal_retrieve_retry_interval", "100ms")
}

fn check(test: &str, what: MarkHandling) -> Result<(), String> {
    let boot = Boot::new(test);
    let mut recipe = section("Streaming replication");
    let mut db1 = PageHost::new(test, "db1", like);
    if what == MarkHandling::Witnessed {
        db1.server.set("snowflake_pg.witness_directory", &boot.dir().to_string_lossy());
    }
    let mut db2 = PageHost::without_data(test, "db2", like);
    db1.shell(&recipe.block("sh db1"))?;
    db2.shell(&recipe.block("sh db2"))?;
    db1.configure(&recipe.block("conf db1"));
    db1.localize();
    db1.server.try_start()?;
    db1.psql(
        "CREATE EXTENSION snowflake_pg;
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text NOT NULL)",
    )?;
    let mut ids = db1.insert(SPARSE_PER_SECOND as usize)?;
    db2.shell(&recipe.block("sh db2"))?;
    db2.localize();
    db2.server.try_start()?;
    let mark = db1.server.shown_mark();
    ensure!(within(PATIENCE, || db2.server.shown_mark() == mark), "the standby does not follow:\n{}", db2.server.log());
    // db2 is cut off, so no server replays what db1 issues from now on.
    db2.psql(&recipe.block("sql db2"))?;
    ids.extend(draw_above(&mut db1.server.connect(), mark));
    let alone = db1.server.shown_mark();
    ensure!(alone > mark && db2.server.shown_mark() == mark, "nothing was issued that the other does not know of");

    db1.server.stop(Stop::Immediate);
    let carry = recipe.block("sh db1");
    if what == MarkHandling::CarriedOver {
        db1.shell(&carry)?;
        ensure!(db2.server.shown_mark() == alone, "db2 has mark {}, not {alone}", db2.server.shown_mark());
        // The mark of db2 is now high enough. If the command is repeated, it changes nothing and raises no error.
        db1.shell(&carry)?;
        ensure!(db2.server.shown_mark() == alone, "db2 has mark {}, not {alone}", db2.server.shown_mark());
    }
    db1.shell(&recipe.block("sh db1"))?;
    assert!(recipe.is_empty());
    db1.localize();
    db1.server.set_clock("-60");
    db1.server.try_start()?;
    db1.server.promote();
    ids.extend(draw_above(&mut db1.server.connect(), mark));
    ensure!(db1.origin().0 == "1", "db1 has another number");
    check_unique(&mut ids)
}

#[test]
fn a_former_primary_whose_mark_was_carried_over_repeats_nothing() {
    check("former", MarkHandling::CarriedOver).unwrap();
}

#[test]
fn a_former_primary_whose_mark_was_forgotten_is_caught() {
    assert_caught(check("forgotten", MarkHandling::Forgotten), "IDs came twice");
}

#[test]
fn a_former_primary_on_a_machine_that_was_not_restarted_repeats_nothing() {
    check("witnessed", MarkHandling::Witnessed).unwrap();
}
