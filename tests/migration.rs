//! docs/migration.md, typed on live tables: what it promises of rows, locks, order and uniqueness.

use cluster::{Answer, Client, assert_caught, ensure, sqlstate};

use page::{AS_WRITTEN, Edit, Run, builder, page, sections};

#[path = "migration/page.rs"]
mod page;

/// Where the rows of a table lie, in which file, and its constraints: all of it stays where nothing is rewritten.
fn place(session: &mut Client, table: &str, rows: &str) -> String {
    session.one(&format!(
        "SELECT concat_ws(' ', pg_relation_filenode('{table}'),
             (SELECT md5(string_agg(concat(ctid, t), ',' ORDER BY ctid)) FROM {table} AS t WHERE {rows}),
             (SELECT string_agg(concat(oid, conname), ',' ORDER BY oid) FROM pg_constraint
              WHERE '{table}'::regclass IN (conrelid, confrelid)))"
    ))
}

fn filenode(session: &mut Client, table: &str) -> u32 {
    session.one(&format!("SELECT pg_relation_filenode('{table}')"))
}

/// A shop whose tables count in different ways.
fn shop() -> String {
    "CREATE TABLE orders (id bigserial PRIMARY KEY, customer text NOT NULL);
     CREATE TABLE order_lines (order_id bigint NOT NULL REFERENCES orders, line int NOT NULL, PRIMARY KEY (order_id, line));
     CREATE TABLE invoices (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, total int);
     INSERT INTO orders (customer) SELECT 'old' FROM generate_series(1, 1000);
     INSERT INTO order_lines SELECT id, 1 FROM orders;
     INSERT INTO invoices (total) SELECT generate_series(1, 1000)"
        .into()
}

/// Somebody writes, and is given the ID.
fn write(session: &mut Client, ids: &mut Vec<i64>, insert: &str) -> Result<(), String> {
    let row = session.query_one(insert, &[]).map_err(|error| sqlstate(&error).1)?;
    ids.push(row.get(0));
    Ok(())
}

/// An order with a line, and an invoice.
const ORDER: &str = "WITH new AS (INSERT INTO orders (customer) VALUES ('live') RETURNING id),
    line AS (INSERT INTO order_lines SELECT id, 1 FROM new), invoice AS (INSERT INTO invoices (total) VALUES (0))
    SELECT id FROM new";

fn check_order(ids: &[i64]) -> Result<(), String> {
    ensure!(ids.windows(2).all(|pair| pair[0] < pair[1]), "an ID sorts before an old one: {ids:?}");
    Ok(())
}

/// Rows are neither moved nor changed, references hold, new IDs come after old ones.
fn check_serial(edit: Edit) -> Result<usize, String> {
    let mut run = Run::on(edit, &shop());
    let mut session = run.server.connect();
    let tables = ["orders", "order_lines", "invoices"];
    let places = |session: &mut Client| {
        let rows = ["id <= 1000", "order_id <= 1000", "id <= 1000"];
        [0, 1, 2].map(|n| place(session, tables[n], rows[n]))
    };
    let before = places(&mut session);
    let mut ids = Vec::new();
    run.section("From bigserial or identity", |session, _| write(session, &mut ids, ORDER))?;
    ensure!(places(&mut session) == before, "rows were rewritten, or constraints made anew");
    check_order(&ids)?;
    ensure!(ids.last() > Some(&(1 << 60)), "no snowflake came: {ids:?}");
    for table in ["orders", "invoices"] {
        let wrong: i64 = session.one(&format!(
            "SELECT count(*) FROM {table} WHERE (id >= snowflake_min_id('2024-01-01 00:00+00')) <> (id > 1000000)
                OR id < 1000000 AND snowflake_timestamp(id) <> '2010-11-04 01:42:54.657+00'"
        ));
        ensure!(wrong == 0, "old and new are not told apart");
    }
    assert_eq!(session.one::<String>("SELECT snowflake_timestamp(1000000000)::text"), "2010-11-04 01:42:54.895+00");
    ensure!(session.code("SELECT nextval('orders_id_seq')").as_deref() == Some("42P01"), "the sequence goes on");
    assert_eq!(session.code("INSERT INTO order_lines VALUES (0, 1)").as_deref(), Some("23503"));
    Ok(run.blocks)
}

#[test]
fn a_migration_that_rewrites_is_caught() {
    let edit = ("ALTER COLUMN id SET DEFAULT", "ALTER COLUMN id TYPE bigint USING id + 0, ALTER COLUMN id SET DEFAULT");
    assert_caught(check_serial(edit).map(drop), "rows were rewritten");
}

/// A transaction that only reads keeps the change waiting, and everybody else behind the change no longer than 500 ms.
fn check_timeout(edit: Edit) -> Result<(), String> {
    let mut run = Run::on(edit, &shop());
    let mut reader = run.server.connect();
    reader.batch_execute("BEGIN; SELECT FROM orders").expect("a reader");
    let failed = run.section("From bigserial or identity", |_, _| Ok(())).expect_err("the reader was not waited for");
    ensure!(failed.contains("due to lock timeout"), "the change waits on: {failed}");
    reader.batch_execute("COMMIT").expect("a reader");
    run.section("From bigserial or identity", |_, _| Ok(()))
}

#[test]
fn a_change_that_has_to_wait_gives_up_and_can_be_tried_again() {
    check_timeout(AS_WRITTEN).unwrap();
}

#[test]
fn a_change_without_a_lock_timeout_is_caught() {
    assert_caught(check_timeout(("SET LOCAL lock_timeout = '500ms';", "")), "the change waits on");
}

fn check_small_integer(edit: Edit) -> Result<usize, String> {
    let tables = "CREATE TABLE customers (id serial PRIMARY KEY, name text);
         CREATE TABLE addresses (customer_id integer NOT NULL REFERENCES customers, street text);
         INSERT INTO customers (name) SELECT 'old' FROM generate_series(1, 1000);
         INSERT INTO addresses SELECT id FROM customers";
    let mut run = Run::on(edit, tables);
    let add = "WITH new AS (INSERT INTO customers (name) VALUES ('live') RETURNING id),
        address AS (INSERT INTO addresses SELECT id FROM new) SELECT id::bigint FROM new";
    let mut ids = Vec::new();
    run.section("Small tables with integer keys", |session, _| write(session, &mut ids, add))?;
    check_order(&ids)?;
    let mut session = run.server.connect();
    let joined: i64 = session.one("SELECT count(*) FROM customers JOIN addresses ON customer_id = id");
    ensure!(joined == 1002, "{joined} of 1002 addresses have a customer");
    ensure!(session.code("INSERT INTO addresses VALUES (0)").as_deref() == Some("23503"), "the foreign key is lost");
    Ok(run.blocks)
}

#[test]
fn a_key_that_stays_an_integer_is_caught() {
    let edit = ("ALTER COLUMN id TYPE bigint, ALTER COLUMN id SET", "ALTER COLUMN id SET");
    assert_caught(check_small_integer(edit).map(drop), "integer out of range");
}

/// The tables stay in their files, are written to throughout, and no row or reference is lost.
fn check_large_integer(edit: Edit) -> Result<usize, String> {
    let tables = "CREATE TABLE events (id serial PRIMARY KEY, name text);
         CREATE TABLE clicks (id serial PRIMARY KEY, event_id integer NOT NULL REFERENCES events, name text);
         INSERT INTO events (name) SELECT n FROM generate_series(1, 25000) AS n;
         INSERT INTO clicks (event_id, name) SELECT id, name FROM events";
    let mut run = Run::on(edit, tables);
    let mut session = run.server.connect();
    let files = ["events", "clicks"].map(|table| filenode(&mut session, table));
    let mut ids = Vec::new();
    let click = "WITH new AS (INSERT INTO events (name) VALUES ('live') RETURNING id),
        click AS (INSERT INTO clicks (event_id, name) SELECT id, 'live' FROM new) SELECT id::bigint FROM new";
    let written =
        run.busy_section("Large tables with integer keys", click, |session, _| write(session, &mut ids, click))?;
    ensure!(["events", "clicks"].map(|table| filenode(&mut session, table)) == files, "a table was rewritten");
    check_order(&ids)?;
    let wrong: i64 = session.one(
        "SELECT count(*) FROM events LEFT JOIN clicks ON event_id = events.id
         WHERE clicks.name IS DISTINCT FROM events.name OR events.name <> 'live' AND events.name::int <> events.id",
    );
    ensure!(wrong == 0, "{wrong} clicks belong to another event");
    let kept: i64 = session.one("SELECT count(*) FROM clicks JOIN events ON events.id = event_id");
    ensure!(kept == 25_000 + (ids.len() + written) as i64, "{kept} clicks are left");
    ensure!(session.code("INSERT INTO clicks (event_id) VALUES (0)").as_deref() == Some("23503"), "no foreign key");
    ensure!(session.code("INSERT INTO events (id) VALUES (1)").as_deref() == Some("23505"), "no primary key");
    Ok(run.blocks)
}

#[test]
fn rows_that_no_trigger_fills_are_caught() {
    let edit =
        ("CREATE TRIGGER widen BEFORE INSERT OR UPDATE ON events", "CREATE TRIGGER widen BEFORE UPDATE ON events");
    assert_caught(check_large_integer(edit).map(drop), "check constraint \"new_id_filled\"");
}

#[test]
fn a_large_table_that_is_rewritten_is_caught() {
    let edit = ("new_event_id bigint;", "new_event_id bigint, ALTER COLUMN name TYPE varchar(9);");
    assert_caught(check_large_integer(edit).map(drop), "a table was rewritten");
}

/// What pgEdge's `snowflake.nextval` does on node 1, in an extension that can be dropped; `id` says where node and counter go.
/// Its sequence is `ahead` of the clock.
fn pgedge(id: &str, ahead: &str) -> String {
    format!(
        "CREATE SCHEMA snowflake; CREATE SEQUENCE snowflake.id_seq;
         CREATE FUNCTION snowflake.nextval(seq regclass DEFAULT 'snowflake.id_seq') RETURNS bigint LANGUAGE plpgsql AS $$
         DECLARE ms bigint := extract(epoch FROM clock_timestamp() - '2023-01-01Z') * 1000; last bigint; node bigint := 1;
         BEGIN
             EXECUTE format('SELECT last_value FROM %s', seq) INTO last;
             RETURN setval(seq, greatest(ms, (last >> 22) + 1) << 22 | ({id}));
         END $$;
         INSERT INTO pg_extension VALUES (99999, 'snowflake', 10, 'snowflake'::regnamespace, false, '2.4');
         ALTER EXTENSION snowflake ADD FUNCTION snowflake.nextval;
         ALTER EXTENSION snowflake ADD SEQUENCE snowflake.id_seq;
         CREATE SEQUENCE orders_id_seq;
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake.nextval('orders_id_seq'));
         CREATE TABLE invoices (id bigint PRIMARY KEY DEFAULT snowflake.nextval());
         SELECT setval('orders_id_seq', (extract(epoch FROM now() + '{ahead}' - '2023-01-01Z') * 1000)::bigint << 22)"
    )
}

const NODE_LOWEST: &str = "node";
const NODE_ABOVE: &str = "node << 12";
const PGEDGE: &str = "From pgEdge's snowflake";

/// New IDs come after every old one, in rows or only in a sequence, though that is ahead of the clock; all are of this node.
fn check_pgedge(id: &str, edit: Edit) -> Result<usize, String> {
    let server = builder().unset("shared_preload_libraries").unset("snowflake_pg.worker_id").start();
    let mut run = Run::of(server, edit);
    run.server.connect().batch_execute(&pgedge(id, "1 hour")).expect("tables can be made");
    let mut ids = Vec::new();
    run.section(PGEDGE, |session, next| {
        write(session, &mut ids, "INSERT INTO orders DEFAULT VALUES RETURNING id")?;
        if next.contains("snowflake_set_mark") {
            ids.extend(session.all::<i64>("SELECT snowflake.nextval('orders_id_seq') FROM generate_series(1, 5)"));
        }
        Ok(())
    })?;
    check_order(&ids)?;
    let other: i64 = run.server.connect().one("SELECT count(*) FROM orders, snowflake_decode(id) WHERE worker_id <> 1");
    ensure!(other == 0, "{other} IDs are read as another node's");
    Ok(run.blocks)
}

/// The settings of the one section, in the place of those of the other.
fn check_node_lowest() -> Result<usize, String> {
    let settings = |title: &str| {
        let section = sections().into_iter().find(|section| section.title == title).expect("a section of the page");
        let (_, text) = section.blocks.into_iter().find(|(language, _)| language == "conf").expect("settings");
        &*text.leak()
    };
    let edit = (settings(PGEDGE), settings("IDs with the node lowest"));
    check_pgedge(NODE_LOWEST, edit).map(|_| 1)
}

#[test]
fn a_mark_that_is_not_set_is_caught() {
    let edit = ("SELECT snowflake_set_mark(max(id) + 1)", "SELECT max(id)");
    assert_caught(check_pgedge(NODE_ABOVE, edit).map(drop), "an ID sorts before an old one");
}

#[test]
fn a_mark_that_does_not_know_the_sequences_is_caught() {
    let edit = ("UNION ALL SELECT last_value FROM orders_id_seq", "");
    assert_caught(check_pgedge(NODE_ABOVE, edit).map(drop), "an ID sorts before an old one");
}

#[test]
fn the_other_layout_of_pgedge_is_caught() {
    assert_caught(check_pgedge(NODE_LOWEST, AS_WRITTEN).map(drop), "read as another node's");
}

fn check_default_layout(ahead: &str) -> Result<usize, String> {
    let mut run = Run::on(AS_WRITTEN, &pgedge(NODE_ABOVE, ahead));
    let mut ids = Vec::new();
    let order = "INSERT INTO orders DEFAULT VALUES RETURNING id";
    run.section("The default layout instead", |session, _| write(session, &mut ids, order))?;
    check_order(&ids)?;
    let between: bool = run.server.connect().one(
        "SELECT id BETWEEN snowflake_min_id(now() + '12 years 56 days', 'pgedge')
                       AND snowflake_max_id(now() + '12 years 58 days', 'pgedge') FROM snowflake_nextval() AS id",
    );
    let example = "SELECT created_at = '2024-01-11 13:08:59.845-05' AND worker_id = 1 AND sequence = 0
         FROM snowflake_decode(136169504773242881, '41:12s:10', '2023-01-01Z')";
    ensure!(run.server.connect().one::<bool>(example), "pgEdge's example is read otherwise");
    ensure!(between, "a new ID is not 12 years and 57 days above pgEdge's");
    Ok(run.blocks)
}

#[test]
fn an_old_sequence_13_years_ahead_is_caught() {
    assert_caught(check_default_layout("13 years").map(drop), "an ID sorts before an old one");
}

/// The tables stay in their files; rows are ordered by their time, which their IDs carry; UUIDs find them to the last.
fn check_uuid(spread: &str, edit: Edit) -> Result<usize, String> {
    let tables = format!(
        "CREATE TABLE documents (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), n serial,
             created_at timestamptz NOT NULL DEFAULT now());
         CREATE TABLE revisions (id bigserial PRIMARY KEY, document_id uuid NOT NULL REFERENCES documents, n int);
         INSERT INTO documents (created_at) SELECT now() - interval '1 day' + n * interval '{spread}'
         FROM generate_series(1, 12000) AS n;
         INSERT INTO revisions (document_id, n) SELECT id, n FROM documents;
         CREATE TABLE known AS SELECT id, n FROM documents"
    );
    let mut run = Run::on(edit, &tables);
    let mut session = run.server.connect();
    let files = ["documents", "revisions"].map(|table| filenode(&mut session, table));
    let insert = "WITH new AS (INSERT INTO documents DEFAULT VALUES RETURNING id, n),
        revision AS (INSERT INTO revisions (document_id, n) SELECT id, n FROM new) SELECT n::bigint FROM new";
    run.busy_section("From UUIDs", insert, |session, next| {
        write(session, &mut Vec::new(), insert)?;
        let lost = "SELECT count(*) FROM known LEFT JOIN documents ON old_id = known.id WHERE known.n IS DISTINCT FROM documents.n";
        ensure!(!next.contains("COLUMN old_id") || session.one::<i64>(lost) == 0, "a UUID finds no row");
        Ok(())
    })?;
    ensure!(["documents", "revisions"].map(|table| filenode(&mut session, table)) == files, "a table was rewritten");
    let wrong: i64 = session.one(
        "SELECT count(*) FROM (SELECT *, created_at < lag(created_at) OVER (ORDER BY id) AS later FROM documents) AS ordered WHERE later AND n <= 12000
             OR snowflake_timestamp(id) NOT BETWEEN date_trunc('milliseconds', created_at) AND created_at + interval '10 s'",
    );
    ensure!(wrong == 0, "{wrong} IDs do not carry the time of their row");
    let joined: i64 =
        session.one("SELECT count(*) FROM documents AS d JOIN revisions AS r ON document_id = d.id AND d.n = r.n");
    let rows: i64 = session.one("SELECT count(*) FROM documents");
    ensure!(joined == rows && rows > 12_000, "{joined} of {rows} references hold");
    ensure!(
        session.code("INSERT INTO revisions (document_id) VALUES (0)").as_deref() == Some("23503"),
        "no foreign key"
    );
    Ok(run.blocks)
}

#[test]
fn a_default_that_rewrites_is_caught() {
    let edit = ("ADD COLUMN new_id bigint;", "ADD COLUMN new_id bigint DEFAULT snowflake_nextval();");
    assert_caught(check_uuid("0.3 ms", edit).map(drop), "a table was rewritten");
}

#[test]
fn a_writer_who_is_refused_after_the_swap_is_caught() {
    let edit = (", ALTER COLUMN old_document_id DROP NOT NULL", "");
    assert_caught(check_uuid("0.3 ms", edit).map(drop), "null value in column \"old_document_id\"");
}

#[test]
fn ids_with_the_time_of_the_migration_are_caught() {
    let edit = ("snowflake_encode(ms, 1023, n)", "snowflake_nextval()");
    assert_caught(check_uuid("0.3 ms", edit).map(drop), "do not carry the time");
}

#[test]
fn more_rows_of_a_millisecond_than_it_holds_take_more_workers() {
    assert_caught(check_uuid("0 ms", AS_WRITTEN).map(drop), "sequence number 4096 is out of range");
    let edit = ("1023, n)", "1020 + n / 4096, n % 4096)");
    check_uuid("0 ms", edit).unwrap();
}

/// The sequence goes on above every ID, and the extension can go.
fn check_back(edit: Edit) -> Result<usize, String> {
    let tables = shop()
        + ";
         ALTER TABLE orders ALTER COLUMN id SET DEFAULT snowflake_nextval(); DROP SEQUENCE orders_id_seq;
         ALTER TABLE invoices ALTER COLUMN id DROP IDENTITY, ALTER COLUMN id SET DEFAULT snowflake_nextval()";
    let mut run = Run::on(edit, &tables);
    let mut ids = Vec::new();
    run.section("Back to a sequence", |session, next| {
        write(session, &mut ids, ORDER)?;
        if next.contains("CREATE SEQUENCE") {
            // Held by a client, in no row.
            ids.extend(session.batch(1_000));
        }
        Ok(())
    })?;
    check_order(&ids)?;
    let left: i64 = run.server.connect().one("SELECT count(*) FROM pg_extension WHERE extname = 'snowflake_pg'");
    ensure!(left == 0, "the extension is left");
    Ok(run.blocks)
}

#[test]
fn a_sequence_that_begins_at_1_is_caught() {
    let edit = ("SELECT setval('orders_id_seq', greatest(max(id), snowflake_nextval())) FROM orders;", "");
    assert_caught(check_back(edit).map(drop), "duplicate key value");
}

#[test]
fn a_sequence_that_begins_below_ids_in_clients_is_caught() {
    assert_caught(
        check_back(("greatest(max(id), snowflake_nextval())", "max(id)")).map(drop),
        "sorts before an old one",
    );
}

#[test]
fn the_page_does_what_it_says() {
    type Check = dyn Fn() -> Result<usize, String>;
    let checks: [(&str, &Check); 8] = [
        ("From bigserial or identity", &|| check_serial(AS_WRITTEN)),
        ("Small tables with integer keys", &|| check_small_integer(AS_WRITTEN)),
        ("Large tables with integer keys", &|| check_large_integer(AS_WRITTEN)),
        (PGEDGE, &|| check_pgedge(NODE_ABOVE, AS_WRITTEN)),
        ("IDs with the node lowest", &check_node_lowest),
        ("The default layout instead", &|| check_default_layout("0")),
        ("From UUIDs", &|| check_uuid("0.3 ms", AS_WRITTEN)),
        ("Back to a sequence", &|| check_back(AS_WRITTEN)),
    ];
    let titles: Vec<String> = sections().into_iter().map(|section| section.title).collect();
    assert_eq!(titles, checks.map(|(title, _)| title), "a section is not checked");
    let run: usize = checks.iter().map(|(title, check)| check().unwrap_or_else(|e| panic!("{title}: {e}"))).sum();
    assert_eq!(run, page().lines().filter(|line| line.starts_with("```")).count() / 2, "a block was not run");
}
