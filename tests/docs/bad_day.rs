//! Runs the blocks of docs/bad-day.md on servers whose clock was three days ahead or whose mark was set back. Afterwards, the
//! servers issue IDs again although there are rows from the future, and there are no duplicates.

use cluster::{
    Answer, Builder, Client, Cluster, Stop, assert_caught, blocks, check_unique, ensure, page, sections, sqlstate,
    typed, within,
};

const PAGE: &str = "docs/bad-day.md";

/// A minute less than three days. The page's blocks subtract 72 hours from the times of the IDs.
const AHEAD: &str = "+259140";

/// The longest time until the server notices that the clock was changed.
const NOTICED: std::time::Duration = std::time::Duration::from_secs(30);

const TABLES: &str = "
    CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text);
    CREATE TABLE items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), order_id bigint REFERENCES orders, name text)";

/// How the IDs came to be three days ahead of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Day {
    /// The server was started with the wrong clock and then again with the right clock, so it refuses to issue IDs.
    Restarted,
    /// The wrong clock was accepted by mistake and then set right, so the server continues to issue IDs from the future.
    Running,
}

/// Returns the block of the page that has this text after its fence.
fn block(info: &str) -> String {
    blocks(&page(PAGE), info).concat()
}

fn insert(session: &mut Client, name: &str) -> Vec<i64> {
    let mut ids: Vec<i64> = session.all(&format!(
        "INSERT INTO orders (customer) SELECT '{name} ' || n FROM generate_series(1, 50) AS n RETURNING id"
    ));
    ids.extend(session.all::<i64>(&format!(
        "INSERT INTO items (order_id, name) SELECT id, 'item of ' || customer FROM orders WHERE customer LIKE '{name} %' RETURNING id"
    )));
    ids
}

/// Returns a server with rows from the future and the right clock, and the IDs that were received.
fn bad_day(builder: Builder, day: Day) -> (Cluster, Vec<i64>) {
    let mut server = builder.clock("+0").start();
    let mut session = server.session();
    session.batch_execute(TABLES).expect("new tables");
    let mut ids = insert(&mut session, "before");
    match day {
        Day::Restarted => {
            server.stop(Stop::Fast);
            server.set_clock(AHEAD);
            server.start();
            ids.extend(insert(&mut server.connect(), "future"));
            server.stop(Stop::Immediate);
            server.set_clock("+0");
            server.start();
        }
        Day::Running => {
            server.set_clock(AHEAD);
            session.batch_execute("SELECT snowflake_accept_clock()").expect("a superuser may");
            ids.extend(insert(&mut session, "future"));
            server.set_clock("+0");
            let noticed = || {
                ids.extend(session.batch(100));
                session.one::<i64>("SELECT clock_regressions FROM snowflake_status") > 0
            };
            assert!(within(NOTICED, noticed), "the clock is not looked at:\n{}", server.log());
        }
    }
    (server, ids)
}

/// Checks that the server works normally again, also after a crash. `ids` are the IDs that must not be issued again.
fn check_well(server: &mut Cluster, mut ids: Vec<i64>) -> Result<(), String> {
    let mut session = server.connect();
    let lead = session.lead();
    ensure!(lead.abs() < 1.0, "IDs lead the clock by {lead} s");
    ids.extend(insert(&mut session, "after"));
    // Each item still belongs to the order to which it belonged before.
    let joined: i64 = session
        .one("SELECT count(*) FROM orders o JOIN items i ON order_id = o.id WHERE name = 'item of ' || customer");
    ensure!(joined == 150, "{joined} of 150 items are those of their orders");
    server.restart(Stop::Immediate);
    ids.extend(insert(&mut server.connect(), "crashed"));
    check_unique(&mut ids)
}

/// Gives the rows different IDs by typing the page's blocks. If `renumbered` is false, the UPDATE statements are left out.
fn check_renumbered(name: &str, day: Day, renumbered: bool) -> Result<(), String> {
    let (mut server, ids) = bad_day(Cluster::builder(name), day);
    let run = |text: &str| typed(server.psql(), text);
    let shown = run(&block("sql view"))?;
    let both = shown.contains("orders.id") && shown.contains("items.id");
    ensure!(both, "the rows from the future are not shown:\n{shown}");
    let mut text = block("sql other ids");
    if !renumbered {
        text = text.lines().filter(|line| !line.starts_with("UPDATE")).collect::<Vec<_>>().join("\n");
    }
    run(&text)?;
    let mut session = server.connect();
    for column in ["id FROM orders", "id FROM items", "order_id FROM items"] {
        let future: i64 = session
            .one(&format!("SELECT count(*) FROM (SELECT {column}) AS t (id) WHERE id > snowflake_max_id(now())"));
        ensure!(future == 0, "{future} rows from the future in {column}");
    }
    let kept: i64 = session.one("SELECT count(*) FROM orders, snowflake_decode(id) WHERE worker_id = 1");
    ensure!(kept == 50, "{kept} of 50 rows from before have kept their IDs");
    let ordered: bool = session.one(
        "SELECT array_agg(customer ORDER BY id) = array_agg(customer ORDER BY length(customer), customer)
         FROM orders WHERE customer LIKE 'future %'",
    );
    ensure!(ordered, "the order of the rows is another");
    check_well(&mut server, ids)
}

#[test]
fn rows_of_the_future_get_other_ids_on_a_server_that_refuses() {
    check_renumbered("bad_day_refuses", Day::Restarted, true).unwrap();
}

#[test]
fn rows_of_the_future_get_other_ids_on_a_server_that_still_issues() {
    check_renumbered("bad_day_issues", Day::Running, true).unwrap();
}

/// The error if the mark would be below rows that keep their IDs.
const TOO_LOW: &str = "is not above every ID issued by this server in \"public.every_id\"";

#[test]
fn a_mark_below_rows_that_keep_their_ids_is_refused() {
    for (name, day) in [("bad_day_kept", Day::Restarted), ("bad_day_kept_running", Day::Running)] {
        assert_caught(check_renumbered(name, day, false), TOO_LOW);
    }
}

/// Gives the server a different worker ID by typing the page's blocks. If `number` is "1", the server keeps its worker ID.
fn check_another_number(name: &str, number: &str) -> Result<(), String> {
    let (mut server, ids) = bad_day(Cluster::builder(name), Day::Restarted);
    typed(server.psql(), &block("sql view"))?;
    server.set("snowflake_pg.worker_id", number);
    server.restart(Stop::Fast);
    typed(server.psql(), &block("sql other worker ID"))?;
    let drawn = server.connect().batch(100);
    let future = ids.iter().filter(|id| **id > drawn[99]).count();
    ensure!(future > 0, "no row has kept its ID");
    check_well(&mut server, ids)
}

#[test]
fn a_server_with_another_number_issues_beside_rows_of_the_future() {
    check_another_number("bad_day_number", "2").unwrap();
}

#[test]
fn a_server_with_the_number_of_those_rows_is_caught() {
    assert_caught(check_another_number("bad_day_own_number", "1"), TOO_LOW);
}

/// Every block of the section is typed in the tests above, and each refusal names the section that deals with it.
#[test]
fn the_refusals_name_the_sections_that_end_them() {
    let page = page(PAGE);
    let section = sections(&page).into_iter().find(|section| section.title == "IDs from the future");
    let blocks = section.expect("a section of the page").blocks;
    let infos: Vec<&str> = blocks.iter().map(|(info, _)| info.as_str()).collect();
    assert_eq!(infos, ["sql view", "sql other worker ID", "sql other ids"]);
    let (server, ids) = bad_day(Cluster::builder("bad_day_hints"), Day::Restarted);
    let mut session = server.connect();
    let highest = ids.iter().max().expect("IDs were drawn");
    let (future, earlier) = ("IDs from the future", "SELECT snowflake_set_mark(snowflake_max_id(now()), 'orders')");
    for (sql, code, message, section) in [
        ("SELECT snowflake_nextval()", "55000", "more than a day ahead of the clock", "Issuing is refused"),
        (earlier, "55000", "not above every ID", future),
        (&format!("SELECT snowflake_set_mark({highest} + 1)"), "22023", "more than a day ahead", future),
    ] {
        let (found, said, _, hint) = sqlstate(&session.batch_execute(sql).expect_err("refused"));
        assert!(found == code && said.contains(message), "{sql}: {found} {said}");
        let place = format!("See \"{section}\" in $(pg_config --sharedir)/snowflake_pg/docs/bad-day.md.");
        // If no ID could be issued after a forced call, the hint must not recommend `force`.
        assert!(hint.ends_with(&place) && !hint.contains("force"), "{sql}: {hint}");
        assert!(page.contains(&format!("\n## {section}\n")), "no section {section:?}");
    }
    let hint: String = session.one("SELECT hint FROM snowflake_status");
    assert!(hint.contains("See \"Issuing is refused\""), "{hint}");
}
