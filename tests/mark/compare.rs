//! `snowflake_set_mark()` with tables: the IDs in tables of every kind keep the mark up, including rows that the caller does not
//! see. The function waits for rows that are not committed.

use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer, Cluster, check_increasing, ensure};
use postgres::NoTls;

#[test]
fn ids_are_found_in_tables_of_every_kind() {
    let (server, mut session) = Cluster::builder("repair_kinds").start_session();
    session.run(
        "CREATE TABLE parts (id bigint) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF parts DEFAULT;
         CREATE TABLE parent (id bigint); CREATE TABLE child () INHERITS (parent);
         CREATE TABLE \"Odd; \"\"Name\" (\"Row \"\"Id\" bigint);
         CREATE SCHEMA far; CREATE TABLE far.away (id bigint);
         CREATE DOMAIN key AS bigint; CREATE TABLE typed (id key);
         CREATE TABLE deep (n bigint); CREATE VIEW shallow AS SELECT n FROM deep;
         CREATE VIEW every_id AS SELECT id AS key FROM typed UNION ALL
             (SELECT n FROM shallow) UNION ALL SELECT id FROM far.away",
    );
    // The table, the column, and the table that holds the ID.
    for (table, column, holder) in [
        ("parts", "id", "parts"),
        ("parent", "id", "child"),
        ("\"Odd; \"\"Name\"", "Row \"Id", "\"Odd; \"\"Name\""),
        ("far.away", "id", "far.away"),
        ("typed", "id", "typed"),
        ("every_id", "key", "deep"),
    ] {
        let id: i64 = session.one("SELECT snowflake_nextval()");
        session.run(&format!("INSERT INTO {holder} VALUES ({id})"));
        let set = |mark: i64| format!("SELECT snowflake_set_mark({mark}, $t${table}$t$, $c${column}$c$)");
        let [code, message, detail, hint] = session.error(&set(id));
        let name = if table.contains('.') { table.into() } else { format!("public.{table}") };
        let name = if name.contains('"') { name } else { format!("\"{name}\"") };
        assert_eq!(
            [code, message],
            ["55000".into(), format!("mark {id} is not above every ID issued by this server in {name}")]
        );
        assert_eq!(
            detail,
            format!("The highest of these IDs is {id}. If this mark were set, the server might issue that ID again.")
        );
        assert!(
            hint.contains("See \"IDs from the future\" in $(pg_config --sharedir)/snowflake_pg/docs/bad-day.md"),
            "{hint}"
        );
        assert_eq!(session.code(&set(id + 1)), None, "{table}");
        assert_eq!(server.shown_mark(), id + 1);
    }
    // A relation that cannot be searched for IDs, or cannot be locked against changes, is refused, and the mark stays.
    session.run(
        "CREATE TABLE n (id numeric); CREATE TABLE t (id text); CREATE SEQUENCE s;
         CREATE MATERIALIZED VIEW m AS SELECT id FROM typed",
    );
    let (mark, high) = (server.shown_mark(), session.one::<i64>("SELECT snowflake_nextval()"));
    assert!(mark < high && server.shown_mark() > high);
    let kept = server.shown_mark();
    for (arguments, code) in
        [("'n'", "42804"), ("'t'", "42804"), ("'s'", "42809"), ("'m'", "42809"), ("'typed', 'key'", "42703")]
    {
        let sql = format!("SELECT snowflake_set_mark({mark}, {arguments})");
        assert_eq!(session.code(&sql).as_deref(), Some(code), "{arguments}");
    }
    assert_eq!(server.shown_mark(), kept);
}

#[test]
fn a_mark_is_compared_with_this_servers_ids_alone_and_with_rows_that_are_not_committed() {
    let (server, mut session) = Cluster::builder("repair_tables").start_session();
    session.run(
        "CREATE TABLE a (id bigint PRIMARY KEY); CREATE TABLE b (key bigint);
         CREATE VIEW every_id AS SELECT id FROM a UNION ALL SELECT key FROM b",
    );
    let mark: i64 = session.one("SELECT snowflake_nextval()");
    // An ID of another server above the mark does not count. An ID of this server does.
    session.run("INSERT INTO a SELECT snowflake_encode(now() + interval '1 hour', 2, 0)");
    let set = |table: &str| format!("SELECT snowflake_set_mark({mark}, {table})");
    assert_eq!(session.code(&set("'a'")), None);
    // An ID of this server.
    session.run("INSERT INTO b SELECT snowflake_encode(now() + interval '1 hour', 1, 0)");
    assert_eq!(session.code(&set("'a'")), None);
    assert_eq!(session.refusal(&set("'b', 'key'")).0, "55000");
    let (code, message) = session.refusal(&set("'every_id'"));
    assert!(
        code == "55000" && message.contains("is not above every ID issued by this server in \"public.every_id\""),
        "{message}"
    );
    // A column of a shorter integer type has no IDs, but can be compared.
    session.run("CREATE TABLE short AS SELECT 7 AS id, 7::smallint AS key");
    assert_eq!((session.code(&set("'short'")), session.code(&set("'short', 'key'"))), (None, None));
    assert_eq!(session.code(&set("'b', 'key', force => true")), None);
    assert!(server.log().contains(&format!("the high-water mark was set to {mark} by force")), "{}", server.log());
    let [code, message, _, hint] = session.error(&set("'b'"));
    assert_eq!([code, message], ["42703", "table \"public.b\" has no column \"id\""]);
    assert_eq!(hint, "Pass the name of the column that contains the IDs as argument \"key\".");
    assert_eq!(session.refusal(&set("'b', 'missing'")).0, "42703");
    assert_eq!(session.refusal(&set("1")), ("42P01".into(), "relation with OID 1 does not exist".into()));
    let [code, message, detail, hint] = session.error(&format!("BEGIN; DELETE FROM b; {}", set("'b', 'key'")));
    assert_eq!([code, message], ["25001", "cannot compare a mark with the IDs in a table in this transaction"]);
    assert!(
        detail.starts_with("The transaction might not see all rows") && hint.contains("READ COMMITTED"),
        "{detail} {hint}"
    );
    session.run("ROLLBACK");

    // The function waits for a row that is not committed, can be cancelled, and then sees the row.
    let mut writer = server.connect();
    writer.run("BEGIN; INSERT INTO a SELECT snowflake_encode(now() + interval '1 hour', 1, 1)");
    let (code, _) = session.refusal(&format!("SET statement_timeout = 200; {}", set("'a'")));
    assert_eq!(code, "57014");
    session.run("RESET statement_timeout");
    let statement = set("'a'");
    let waiting = thread::spawn(move || session.refusal(&statement).0);
    thread::sleep(Duration::from_millis(100));
    writer.run("COMMIT");
    assert_eq!(waiting.join().expect("a thread that ends"), "55000");
}

/// Whether the mark is above all IDs of a table `orders`, whatever the result of setting it. `statements` prepare the attempt to
/// set it just above the ID of an earlier row.
fn check_kept(server: &Cluster, database: &str, statements: &[&str], user: &str) -> Result<(), String> {
    server.connect().run(&format!("CREATE DATABASE {database}"));
    let mut admin = server.connect_to(database);
    admin.run(
        "CREATE EXTENSION snowflake_pg; CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
         INSERT INTO orders DEFAULT VALUES; GRANT ALL ON orders TO clerk;
         GRANT EXECUTE ON FUNCTION snowflake_set_mark(bigint, regclass, text, boolean) TO clerk",
    );
    let mark: i64 = admin.one("SELECT id FROM orders");
    let mut session = server.config(database).user(user).connect(NoTls).expect("a role that may log in");
    session.run("BEGIN");
    for sql in statements {
        let by = if sql.starts_with('@') { &mut admin } else { &mut session };
        by.batch_execute(sql.trim_start_matches('@')).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }
    let _ = session.batch_execute(&format!("SELECT snowflake_set_mark({mark} + 1, 'orders')"));
    session.run("ROLLBACK");
    let (highest, known): (i64, i64) = (admin.one("SELECT max(id) FROM orders"), server.shown_mark());
    ensure!(known > highest, "{database}: the mark was lowered to {known}, and there is ID {highest}");
    Ok(())
}

const ANOTHER_ROW: &str = "@INSERT INTO orders DEFAULT VALUES";

#[test]
fn a_row_that_is_not_seen_keeps_the_mark_up() {
    let server = Cluster::builder("repair_kept").start();
    server.session().run("CREATE ROLE clerk LOGIN");
    let cases: [(&str, &[&str], &str); 5] = [
        ("seen", &[ANOTHER_ROW], "postgres"),
        ("seen_by_a_clerk", &[ANOTHER_ROW], "clerk"),
        (
            "not_in_the_snapshot",
            &["SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SELECT 1", ANOTHER_ROW],
            "postgres",
        ),
        ("deletion_is_undone", &[ANOTHER_ROW, "DELETE FROM orders"], "postgres"),
        ("hidden_by_a_policy", &["@ALTER TABLE orders ENABLE ROW LEVEL SECURITY", ANOTHER_ROW], "clerk"),
    ];
    for (database, statements, user) in cases {
        check_kept(&server, database, statements, user).unwrap();
    }
}

#[test]
fn while_the_mark_waits_for_a_table_others_go_on() {
    let (server, mut session) = Cluster::builder("repair_waits").start_session();
    session.run("CREATE TABLE orders (id bigint)");
    let mut ids = session.batch(5000);
    let mut writer = server.connect();
    writer.run("BEGIN; INSERT INTO orders VALUES (snowflake_nextval())");
    let mut admin = server.connect();
    let cancel = admin.cancel_token();
    let waiting = thread::spawn(move || {
        let refused = admin.refusal("SELECT snowflake_set_mark(1, 'orders')").0;
        (refused, admin)
    });
    // Longer than a window, so that the mark is raised meanwhile.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_500) {
        let asked = Instant::now();
        ids.push(session.one("SELECT snowflake_nextval()"));
        assert!(asked.elapsed() < Duration::from_secs(1), "an ID took {:?}", asked.elapsed());
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!waiting.is_finished(), "the row that is not committed is not waited for");
    cancel.cancel_query(NoTls).expect("a cancel can be sent");
    let (code, mut admin) = waiting.join().expect("a thread that ends");
    assert_eq!(code, "57014");
    assert!(server.shown_mark() > *ids.last().expect("just drawn"));
    // The cancelled call leaves nothing behind: the row is written, and the next call finds it.
    writer.run("COMMIT");
    assert_eq!(admin.refusal("SELECT snowflake_set_mark(1, 'orders')").0, "55000");
    ids.extend(session.batch(5000));
    check_increasing(&ids).unwrap();
}
