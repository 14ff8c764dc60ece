//! The problems that `snowflake_check` finds in a table, and rows that it does not report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Ask, Client, Cluster, Load, block_with, blocks, page, typed, within};

const INTEGERS: &str = "Pass a column of type bigint. If the IDs are stored as text, create a view that converts them with \
     snowflake_from_text(), and pass that view.";
const COLUMN: &str = "Pass the name of the column that contains the IDs as argument \"key\".";

/// Problem, worker, number, first and last ID of each row.
type ProblemRow = (String, Option<i32>, i64, Option<i64>, Option<i64>);

fn check(client: &mut Client, arguments: &str) -> Vec<ProblemRow> {
    let sql = format!("SELECT problem, worker_id, ids, first_id, last_id FROM snowflake_check({arguments})");
    let rows = client.query(&sql, &[]).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4))).collect()
}

fn row(problem: &str, worker: impl Into<Option<i32>>, ids: i64, first: i64, last: i64) -> ProblemRow {
    (problem.into(), worker.into(), ids, Some(first), Some(last))
}

#[test]
fn each_kind_of_problem_is_found_and_told_apart() {
    let (server, mut session) = Cluster::builder("check").start_session();
    session.run(
        "CREATE TABLE orders (id bigint DEFAULT snowflake_nextval(), n int);
         INSERT INTO orders (n) SELECT generate_series(1, 10000)",
    );
    assert_eq!(check(&mut session, "'orders'"), []);
    // ADD PRIMARY KEY would later fail on these rows. They are of no worker, so they are not unexpected.
    session.run("INSERT INTO orders VALUES (NULL, 0), (NULL, 0)");
    let nulls = ("null".to_string(), None, 2, None, None);
    assert_eq!(check(&mut session, "'orders'"), std::slice::from_ref(&nulls));

    let mut id = |at: &str, worker: i32| -> i64 {
        let id = session.one(&format!("SELECT snowflake_encode({at}, {worker}, 0)"));
        session.run(&format!("INSERT INTO orders VALUES ({id}, 0)"));
        id
    };
    // IDs of this server above the mark: one within the slack of the clock, and one beyond it.
    let mark = server.shown_mark();
    let near = id("clock_timestamp() + interval '9 s'", 1);
    assert!(near > mark, "{near} and {mark}");
    let far = id("clock_timestamp() + interval '1 h'", 1);
    let other = id("clock_timestamp()", 7);
    let other_far = id("clock_timestamp() + interval '1 h'", 7);
    let third = id("clock_timestamp() - interval '1 h'", 1023);
    for number in [-5, i64::MIN] {
        session.run(&format!("INSERT INTO orders VALUES ({number}, 0)"));
    }
    session.run("INSERT INTO orders SELECT id FROM orders WHERE n BETWEEN 1 AND 3");
    session.run(&format!("INSERT INTO orders VALUES ({other}), ({other})"));
    let first: i64 = session.one("SELECT min(id) FROM orders WHERE n = 1");
    let last: i64 = session.one("SELECT max(id) FROM orders WHERE n = 3");
    let always = [
        row("duplicate", 1, 3, first, last),
        row("duplicate", 7, 1, other, other),
        row("above the mark", 1, 2, near, far),
        row("in the future", 1, 1, far, far),
        row("in the future", 7, 1, other_far, other_far),
    ];
    let not_ids = row("not an ID", None, 2, i64::MIN, -5);
    let seventh = row("unexpected worker", 7, 4, other, other_far);
    let last = row("unexpected worker", 1023, 1, third, third);
    let mut found = always.to_vec();
    found.extend([seventh, last.clone(), not_ids.clone(), nulls.clone()]);
    assert_eq!(check(&mut session, "'orders'"), found);
    let mut found = always.to_vec();
    found.extend([last, not_ids.clone(), nulls.clone()]);
    assert_eq!(check(&mut session, "'orders', workers => '{7, NULL, -1}'"), found);
    let mut found = always.to_vec();
    found.extend([not_ids, nulls]);
    assert_eq!(check(&mut session, "'orders', 'id', '{7, 1023}'"), found);
}

#[test]
fn tables_partitions_views_domains_and_strange_names_are_read() {
    let (_server, mut session) = Cluster::builder("check_tables").start_session();
    session.run(
        "CREATE SCHEMA \"Odd \"\"schema\";
         CREATE DOMAIN key AS bigint;
         CREATE TABLE \"Odd \"\"schema\".\"Odd table\" (\"The \"\"ID\" key DEFAULT snowflake_nextval(), n int);
         INSERT INTO \"Odd \"\"schema\".\"Odd table\" (n) SELECT generate_series(1, 100);
         CREATE TABLE parts (id bigint, n int) PARTITION BY LIST (n);
         CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1);
         CREATE TABLE part_2 PARTITION OF parts FOR VALUES IN (2);
         INSERT INTO parts SELECT \"The \"\"ID\", n FROM \"Odd \"\"schema\".\"Odd table\" WHERE n < 3;
         CREATE VIEW united AS SELECT \"The \"\"ID\" AS id FROM \"Odd \"\"schema\".\"Odd table\"
             UNION ALL SELECT id FROM parts;
         CREATE TABLE nothing (id bigint)",
    );
    let odd = "'\"Odd \"\"schema\".\"Odd table\"', 'The \"ID'";
    for arguments in [odd, "'parts'", "'nothing'"] {
        assert_eq!(check(&mut session, arguments), [], "{arguments}");
    }
    // The same ID in two tables.
    let ids: Vec<i64> = session.all("SELECT id FROM parts ORDER BY id");
    assert_eq!(check(&mut session, "'united'"), [row("duplicate", 1, 2, ids[0], ids[1])]);
    session.run("INSERT INTO part_2 SELECT id, 2 FROM part_1");
    assert_eq!(check(&mut session, "'parts'"), [row("duplicate", 1, 1, ids[0], ids[0])]);
}

#[test]
fn an_answer_to_nothing_is_an_error() {
    let (server, mut session) = Cluster::builder("check_errors").start_session();
    session.run(
        "CREATE TABLE orders (id bigint, name text, key uuid, shown snowflake_text, price numeric);
         INSERT INTO orders VALUES (1, 'one');
         CREATE ROLE clerk LOGIN; CREATE ROLE auditor LOGIN;
         CREATE VIEW keyed AS SELECT id AS key FROM orders;
         CREATE TABLE secrets (id bigint); INSERT INTO secrets VALUES (snowflake_nextval());
         ALTER TABLE secrets ENABLE ROW LEVEL SECURITY; GRANT SELECT ON secrets TO auditor",
    );
    for (arguments, code, message, hint) in [
        ("NULL", "22004", "argument \"relation\" must not be null", "Pass the name of an existing table."),
        ("'orders', NULL", "22004", "argument \"key\" must not be null", "Pass the name of an existing column."),
        ("0", "42P01", "relation with OID 0 does not exist", "Pass the name of an existing table."),
        ("'secrets', 'zzz'", "42703", "table \"public.secrets\" has no column \"zzz\"", COLUMN),
        ("'keyed'", "42703", "table \"public.keyed\" has no column \"id\"", COLUMN),
        ("'orders', 'name'", "42804", "column \"name\" is not of an integer type", INTEGERS),
        ("'orders', 'key'", "42804", "column \"key\" is not of an integer type", INTEGERS),
        ("'orders', 'shown'", "42804", "column \"shown\" is not of an integer type", INTEGERS),
        ("'orders', 'price'", "42804", "column \"price\" is not of an integer type", INTEGERS),
    ] {
        let found = session.error(&format!("SELECT * FROM snowflake_check({arguments})"));
        assert_eq!([&found[0], &found[1], &found[3]], [code, message, hint], "{arguments}");
    }
    // The hint works.
    assert_eq!(session.code("SELECT * FROM snowflake_check('keyed', key => 'key')"), None);
    // A role that cannot read the table, and a role that cannot read all of its rows.
    for (role, table, message) in [
        ("clerk", "orders", "permission denied for table orders"),
        ("auditor", "secrets", "query would be affected by row-level security policy for table \"secrets\""),
    ] {
        let refusal = server.connect_as(role).refusal(&format!("SELECT * FROM snowflake_check('{table}')"));
        assert_eq!(refusal, ("42501".into(), message.into()));
    }
    // The session that was refused continues, with its own setting.
    let mut auditor = server.connect_as("auditor");
    auditor.refusal("SELECT * FROM snowflake_check('secrets')");
    assert_eq!(auditor.one::<String>("SHOW row_security"), "on");
    assert_eq!(auditor.one::<i64>("SELECT count(*) FROM secrets"), 0);
    // The same for an error that occurs while the table is read.
    session.run(
        "CREATE VIEW slow AS SELECT n::bigint AS id FROM generate_series(1, 10) AS n, pg_sleep(n);
         SET statement_timeout = '200ms'",
    );
    assert_eq!(session.code("SELECT * FROM snowflake_check('slow')").as_deref(), Some("57014"));
    assert_eq!(session.one::<String>("SHOW row_security"), "on");
}

#[test]
fn ids_are_read_with_the_layout_of_the_server() {
    // The server's layout, datacenter ID and worker ID. Then the parts of another server's ID, for snowflake_encode and as shown.
    type Shown = (Option<i32>, Option<i32>);
    let layouts: [(&str, &str, &str, &str, &str, Shown); 4] = [
        ("check_four", "41:5:5:12", "3", "17", "17, 0, 4", (Some(4), Some(17))),
        ("check_sonyflake", "sonyflake", "0", "300", "7, 0", (None, Some(7))),
        ("check_short", "41:4:8", "0", "15", "14, 0", (None, Some(14))),
        ("check_none", "41:0:12", "0", "0", "0, 0", (None, None)),
    ];
    for (name, layout, datacenter, worker, foreign, shown) in layouts {
        let (_server, mut session) = Cluster::builder(name)
            .set("snowflake_pg.layout", layout)
            .set("snowflake_pg.datacenter_id", datacenter)
            .set("snowflake_pg.worker_id", worker)
            .start_session();
        session.run("CREATE TABLE orders AS SELECT snowflake_nextval() AS id FROM generate_series(1, 3000)");
        assert_eq!(check(&mut session, "'orders'"), [], "{layout}");
        // An hour ahead, so that the ID is also found in a layout without a worker ID.
        let at = "clock_timestamp() + interval '1 hour'";
        let far: i64 = session.one(&format!("SELECT snowflake_encode({at}, {foreign})"));
        session.run(&format!("INSERT INTO orders VALUES ({far}), ({})", i64::MAX));
        let rows =
            session.query("SELECT problem, datacenter_id, worker_id FROM snowflake_check('orders')", &[]).unwrap();
        let found: Vec<(String, Shown)> = rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect();
        let problem = if shown == (None, None) { "above the mark" } else { "unexpected worker" };
        let all = ["in the future", problem].map(|problem| (problem.to_string(), shown));
        assert!(all.iter().all(|row| found.contains(row)), "{layout}: {found:?}");
        // The largest bigint is an ID of the 63-bit layouts, of the server with the largest worker ID.
        let widest = layout == "41:5:5:12" || layout == "sonyflake";
        assert_eq!(found.contains(&("not an ID".into(), (None, None))), !widest, "{layout}: {found:?}");
    }
}

#[test]
fn ids_above_a_mark_that_was_lowered_are_found_and_a_lead_is_no_future() {
    let (server, mut session) = Cluster::builder("check_lowered").clock("+0").start_session();
    session.run("CREATE TABLE orders AS SELECT snowflake_nextval() AS id FROM generate_series(1, 100)");
    // A minute back, so that the next IDs of this server lead the clock.
    server.set_clock("-60");
    let led = "SELECT clock_regressions = 1 FROM snowflake_status, snowflake_nextval()";
    assert!(within(Duration::from_secs(30), || session.one(led)), "the step is not noticed");
    session.run("INSERT INTO orders SELECT snowflake_nextval() FROM generate_series(1, 100)");
    assert_eq!(check(&mut session, "'orders'"), []);
    let last: i64 = session.one("SELECT max(id) FROM orders");
    session.run(&format!("SELECT snowflake_set_mark({last}, force => true)"));
    let found = check(&mut session, "'orders'");
    assert_eq!(found[0], row("above the mark", 1, 1, last, last));
}

#[test]
fn a_column_with_the_numbers_of_too_many_servers_is_refused() {
    let (_server, mut session) =
        Cluster::builder("check_wide").set("snowflake_pg.layout", "12:24:24:3").start_session();
    session.run(
        "CREATE TABLE wide AS SELECT n::bigint * 8 AS id FROM generate_series(1, 65536) AS n;
         CREATE TABLE wider AS TABLE wide; INSERT INTO wider VALUES (0)",
    );
    assert_eq!(check(&mut session, "'wide'").len(), 65_536);
    session.run("INSERT INTO wide VALUES (NULL)");
    assert_eq!(check(&mut session, "'wide'").len(), 65_537);
    let (code, message) = session.refusal("SELECT * FROM snowflake_check('wider')");
    assert_eq!([code, message], ["54000", "column \"id\" contains IDs from more than 65536 servers"]);
}

#[test]
fn nothing_is_found_while_ids_are_issued_and_nothing_is_in_the_way() {
    let (server, mut session) = Cluster::builder("check_load").start_session();
    Load::prepare(&server);
    let load = Load::start(&server, 4, Ask::ALL, "");
    session.run("CREATE TABLE orders (id bigint DEFAULT snowflake_nextval(), n int)");
    let mut writer = server.connect();
    // Rows are inserted until all checks have run, however slow the machine is. The pauses keep the table small, because each check
    // reads all of it.
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let begun = Instant::now();
            while !enough.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(60) {
                writer.run("INSERT INTO orders (n) SELECT generate_series(1, 1000)");
                thread::sleep(Duration::from_millis(20));
            }
        });
        let (begun, mut looks) = (Instant::now(), 0);
        while looks < 5 || begun.elapsed() < Duration::from_secs(2) {
            looks += 1;
            assert_eq!(check(&mut session, "'orders'"), []);
            // Also in a transaction that has written.
            let written = "BEGIN; CREATE TEMP TABLE t (n int) ON COMMIT DROP; SELECT count(*) FROM orders";
            session.run(written);
            assert_eq!(check(&mut session, "'orders'"), []);
            session.run("COMMIT");
        }
        enough.store(true, Ordering::Relaxed);
    });
    assert!(session.one::<i64>("SELECT count(*) FROM orders") > 1_000);
    load.finish().check(1_000).unwrap();
}

#[test]
fn a_standby_checks_what_it_has() {
    let (server, mut session) = Cluster::builder("check_primary").start_session();
    session.run("CREATE TABLE orders AS SELECT snowflake_nextval() AS id FROM generate_series(1, 100)");
    let standby = server.standby(Cluster::builder("check_standby").set("snowflake_pg.worker_id", "1"));
    let mut replica = standby.connect();
    let rows = || replica.one::<Option<i64>>("SELECT count(*) FROM orders") == Some(100);
    assert!(within(Duration::from_secs(60), rows));
    assert_eq!(check(&mut replica, "'orders'"), []);
    let far: i64 = session.one("SELECT snowflake_encode(now() + interval '1 d', 1, 0)");
    session.run(&format!("INSERT INTO orders VALUES ({far}), ({far})"));
    let expected =
        [row("duplicate", 1, 1, far, far), row("above the mark", 1, 2, far, far), row("in the future", 1, 2, far, far)];
    assert!(within(Duration::from_secs(60), || check(&mut replica, "'orders'") == expected));
}

#[test]
fn without_a_mark_or_a_number_of_its_own_a_server_vouches_for_nothing() {
    let (mut server, mut session) = Cluster::builder("check_unknown").start_session();
    session.run("CREATE TABLE orders AS SELECT snowflake_nextval() AS id FROM generate_series(1, 100)");
    let row_of = |session: &mut Client, problem: &str| {
        let (first, last) = (session.one("SELECT min(id) FROM orders"), session.one("SELECT max(id) FROM orders"));
        row(problem, 1, 100, first, last)
    };
    session.run("SELECT pg_replication_origin_drop('snowflake_pg')");
    let expected = row_of(&mut session, "above the mark");
    assert_eq!(check(&mut session, "'orders'"), [expected]);
    server.unset("snowflake_pg.worker_id");
    server.restart(cluster::Stop::Fast);
    let mut session = server.connect();
    let expected = row_of(&mut session, "unexpected worker");
    assert_eq!(check(&mut session, "'orders'"), [expected]);
    assert_eq!(check(&mut session, "'orders', workers => '{1}'"), []);
}

#[test]
fn the_query_over_all_tables_takes_those_with_numbers_and_no_others() {
    let server = Cluster::builder("check_all").start();
    server.session().run(
        "CREATE DOMAIN key AS bigint;
         CREATE TABLE numbers (id bigint DEFAULT snowflake_nextval());
         CREATE TABLE keys (k key DEFAULT snowflake_nextval());
         CREATE TABLE texts (id text DEFAULT snowflake_to_text(snowflake_nextval()));
         CREATE TABLE digits (id text DEFAULT snowflake_nextval()::text);
         CREATE TABLE prices (id numeric DEFAULT snowflake_nextval());
         INSERT INTO numbers VALUES (-1); INSERT INTO keys VALUES (-2);
         INSERT INTO texts DEFAULT VALUES; INSERT INTO digits DEFAULT VALUES; INSERT INTO prices DEFAULT VALUES",
    );
    let query = block_with(blocks(&page("docs/duplicates.md"), "sql all tables"), "pg_attrdef");
    let mut psql = server.psql();
    psql.args(["-At"]);
    let found = typed(psql, &query).expect("a query that works as it stands");
    let mut lines: Vec<&str> = found.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["public.keys|k|not an ID|||1|-2|-2", "public.numbers|id|not an ID|||1|-1|-1"]);
}
