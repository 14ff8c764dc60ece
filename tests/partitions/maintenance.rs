//! The maintenance that docs/partitions.md describes loses no row and drops only old partitions: moving rows out of a default
//! partition beside writers, changing from days to weeks or months, detaching and dropping.

use std::thread;
use std::time::Duration;

use cluster::{
    Answer, Ask, Client, Cluster, Load, assert_caught, block_with, blocks, ensure, page, sqlstate, typed, waiting,
    within,
};

/// The only block of SQL on the page that contains this text.
fn block(part: &str) -> String {
    block_with(blocks(&page("docs/partitions.md"), "sql"), part)
}

/// The ends of the names of a table's partitions, in order. The table is a literal.
fn partitions(session: &mut Client, table: &str) -> Vec<String> {
    session.all(&format!(
        "SELECT right(relname, 8) FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = {table}::regclass
         ORDER BY right(relname, 8) COLLATE \"C\""
    ))
}

/// A table whose rows of today are in its default partition. The sessions of [`Load`] write to it.
const WITHOUT_TODAY: &str = "
    DROP TABLE IF EXISTS load_rows CASCADE;
    CREATE TABLE load_rows (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), what text DEFAULT 'beside')
        PARTITION BY RANGE (id);
    CREATE TABLE load_rows_default PARTITION OF load_rows DEFAULT;
    INSERT INTO load_rows SELECT snowflake_nextval(), 'before' FROM generate_series(1, 100);
    INSERT INTO load_rows VALUES (1, 'of the first day')";

/// No row is lost that a session wrote while other rows were moved, and each is in the correct partition.
fn check_moved(server: &Cluster, recipe: &str) -> Result<(), String> {
    let mut session = server.session();
    session.run(WITHOUT_TODAY);
    let refusal = session.refusal("SELECT snowflake_create_partitions('load_rows', '1 day', 7)");
    let message =
        "updated partition constraint for default partition \"load_rows_default\" would be violated by some row";
    ensure!(refusal == ("23514".into(), message.into()), "{refusal:?}");
    let there = partitions(&mut session, "'load_rows'");
    ensure!(there == ["_default"], "a refused call has made {there:?}");

    let load = Load::start(server, 3, &[Ask::Insert], "");
    let rows = "SELECT count(*) > 200 FROM load_rows";
    let begun = within(Duration::from_secs(20), || session.one(rows));
    let moved = typed(server.psql(), recipe);
    // Sessions that have waited continue.
    thread::sleep(Duration::from_millis(50));
    let written = load.finish();
    moved?;
    ensure!(begun && written.errors.is_empty(), "the writers were told {:?}", written.errors);
    session.run("CREATE TEMPORARY TABLE written (id bigint)");
    session.execute("INSERT INTO written SELECT unnest($1::bigint[])", &[&written.ids()]).expect("a temporary table");
    let lost: i64 = session.one("SELECT count(*) FROM written LEFT JOIN load_rows USING (id) WHERE what IS NULL");
    ensure!(lost == 0, "{lost} of {} rows were lost", written.len());
    let rest: Vec<String> = session.all("SELECT format('%s %s', id, what) FROM load_rows_default");
    ensure!(rest == ["1 of the first day"], "in the default partition: {rest:?}");
    let before: i64 = session.one("SELECT count(*) FROM load_rows WHERE what = 'before'");
    ensure!(before == 100, "{before} of 100 rows that were moved");
    session.run("DROP TABLE written");
    Ok(())
}

/// The recipe of the page, for the table of [`Load`].
fn recipe() -> String {
    block("LOCK TABLE events").replace("events", "load_rows")
}

#[test]
fn rows_leave_the_default_partition_beside_writers_and_none_is_lost() {
    let server = Cluster::builder("care_default").start();
    // The sleep gives writers time to write. The lock must prevent that.
    let copy = "CREATE TEMPORARY TABLE moved ON COMMIT DROP AS SELECT * FROM load_rows_default;\n";
    let slow = format!("{copy}SELECT pg_sleep(0.2);\n");
    let recipe = recipe().replace(copy, &slow);
    let lock = "LOCK TABLE load_rows;\n";
    assert!(recipe.contains(&format!("{lock}{slow}")), "{recipe}");
    check_moved(&server, &recipe).unwrap();
    // The negative control: the lock is taken after the rows have been read.
    let late = recipe.replace(&format!("{lock}{slow}"), &format!("{slow}{lock}"));
    assert_caught(check_moved(&server, &late), "rows were lost");
}

/// Rows that refer to a default partition are still there after its rows were moved, or after psql has refused for the reason
/// `kept`.
fn check_referring(server: &Cluster, recipe: &str, kept: Option<&str>) -> Result<(), String> {
    let mut session = server.session();
    session.run(&format!(
        "{WITHOUT_TODAY}; DROP TABLE IF EXISTS notes;
         CREATE TABLE notes (id bigint CONSTRAINT about REFERENCES load_rows ON DELETE CASCADE);
         INSERT INTO notes SELECT id FROM load_rows"
    ));
    let refused = typed(server.psql(), recipe).err();
    let expected = kept.is_none_or(|why| refused.as_ref().is_some_and(|said| said.contains(why)));
    ensure!(refused.is_some() == kept.is_some() && expected, "psql said {refused:?}");
    for table in ["load_rows", "notes"] {
        let rows: i64 = session.one(&format!("SELECT count(*) FROM {table}"));
        ensure!(rows == 101, "{rows} rows of {table} are left");
    }
    let rest: i64 = session.one("SELECT count(*) FROM load_rows_default");
    ensure!(rest == if kept.is_some() { 101 } else { 1 }, "{rest} rows are in the default partition");
    ensure!(session.code("INSERT INTO notes VALUES (0)").as_deref() == Some("23503"), "the key is lost");
    Ok(())
}

#[test]
fn rows_that_others_refer_to_are_moved_without_their_key() {
    let server = Cluster::builder("care_referring").start();
    let recipe = recipe();
    check_referring(&server, &recipe, Some("cannot truncate a table referenced in a foreign key constraint")).unwrap();
    let key = "CONSTRAINT about";
    let refers = "FOREIGN KEY (id) REFERENCES load_rows ON DELETE CASCADE";
    let without = recipe
        .replace("load_rows;\nCREATE", &format!("load_rows;\nALTER TABLE notes DROP {key};\nCREATE"))
        .replace("COMMIT;", &format!("ALTER TABLE notes ADD {key} {refers};\nCOMMIT;"));
    check_referring(&server, &without, None).unwrap();
    // The negative control: the mistake that the page warns of.
    let deletes = recipe.replace("TRUNCATE", "DELETE FROM");
    assert_caught(check_referring(&server, &deletes, None), "0 rows of notes are left");
    let forgets = without.replace("ALTER TABLE notes ADD", "-- ALTER TABLE notes ADD");
    assert_caught(check_referring(&server, &forgets, None), "the key is lost");
}

/// A table with a partition for each day around 90 days ago, for today, and a default partition. Tables in another schema have the
/// same names as its partitions.
const OLD_AND_NEW: &str = r#"
    DROP SCHEMA IF EXISTS decoys, "Odd ""schema" CASCADE; DROP TABLE IF EXISTS events;
    CREATE SCHEMA decoys; CREATE SCHEMA "Odd ""schema";
    CREATE TABLE NAME (id bigint) PARTITION BY RANGE (id);
    CREATE TABLE "Odd ""schema"."The rest" PARTITION OF NAME DEFAULT;
    SELECT snowflake_create_partitions(LITERAL, '1 day', 20, now() - interval '100 days');
    SELECT snowflake_create_partitions(LITERAL, '1 day', 3);
    DO $$ DECLARE made text; BEGIN
        FOR made IN SELECT relname FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = LITERAL::regclass LOOP
            EXECUTE format('CREATE TABLE decoys.%I ()', made);
        END LOOP;
    END $$"#;

/// A query of the page drops the partitions of a table that ended at least 90 days ago, and nothing else.
fn check_dropped(server: &Cluster, table: &str, path: &str, query: &str) -> Result<(), String> {
    let mut session = server.session();
    let literal: String = session.one(&format!("SELECT quote_literal($t${table}$t$)"));
    let make = OLD_AND_NEW.replace("NAME", table).replace("LITERAL", &literal);
    session.batch_execute(&make).map_err(|e| format!("not made: {e:?}"))?;
    let first: String = session.one("SELECT to_char((now() - interval '90 days') AT TIME ZONE 'UTC', 'YYYYMMDD')");
    let mut expected = partitions(&mut session, &literal);
    ensure!(expected.len() == 24 && expected[10] == first, "{first} is not the eleventh of {expected:?}");
    expected.retain(|name| *name >= first);
    typed(server.psql(), &format!("SET search_path = {path};\n{}", query.replace("'events'", &literal)))?;
    let decoys: i64 = session.one("SELECT count(*) FROM pg_class WHERE relnamespace = 'decoys'::regnamespace");
    ensure!(decoys == 24, "{} tables of another schema were dropped", 24 - decoys);
    let kept = partitions(&mut session, &literal);
    ensure!(kept == expected, "kept {kept:?}, not {expected:?}");
    Ok(())
}

#[test]
fn what_is_old_is_dropped_and_nothing_else() {
    let server = Cluster::builder("care_old").start();
    let query = block("DROP TABLE %s");
    let odd = r#""Odd ""schema"."It's ""events"#.to_string() + "\"";
    let ways = [("events", "public"), ("events", "decoys, public"), (&odd, "decoys, \"Odd \"\"schema\", public")];
    for (table, path) in ways {
        check_dropped(&server, table, path, &query).unwrap_or_else(|wrong| panic!("{table}, {path}: {wrong}"));
    }
    // The negative controls: a partition is not old because it began 90 days ago, and a name alone does not identify a table.
    let (table, path) = ways[2];
    let early = query.replace("'TO ", "'FROM ");
    assert_caught(check_dropped(&server, table, path, &early), "kept ");
    let by_name = query.replace("%s", "%I").replace("oid::regclass)", "relname)");
    assert_caught(check_dropped(&server, table, path, &by_name), "10 tables of another schema were dropped");
}

/// A table that was migrated from a sequence: partitions of old numbers, one of which has no lower bound, and partitions of days. A
/// row of the last old number was inserted yesterday.
const MIGRATED: &str = "
    DROP TABLE IF EXISTS events;
    CREATE TABLE events (id bigint PRIMARY KEY, created_at timestamptz) PARTITION BY RANGE (id);
    CREATE TABLE events_negative PARTITION OF events FOR VALUES FROM (MINVALUE) TO (0);
    CREATE TABLE events_first PARTITION OF events FOR VALUES FROM (0) TO (1000000);
    CREATE TABLE events_second PARTITION OF events FOR VALUES FROM (1000000) TO (2000000);
    SELECT snowflake_create_partitions('events', '1 day', 1, now() - interval '92 days');
    SELECT snowflake_create_partitions('events', '1 day', 1);
    INSERT INTO events VALUES (-1, now() - interval '400 days'), (1, now() - interval '300 days'),
        (1999999, now() - interval '1 day'),
        (snowflake_min_id(date_trunc('day', now(), 'UTC') - interval '92 days'), now() - interval '92 days'),
        (snowflake_min_id(date_trunc('day', now(), 'UTC')), now())";

/// A query of the page drops the partition of a day 92 days ago, and keeps all old numbers.
fn check_old_numbers(server: &Cluster, query: &str) -> Result<(), String> {
    let mut session = server.session();
    session.run(MIGRATED);
    typed(server.psql(), query)?;
    let kept: Vec<i64> = session.all("SELECT id FROM events WHERE id < 1::bigint << 60 ORDER BY id");
    ensure!(kept == [-1, 1, 1_999_999], "old rows are lost, and only {kept:?} are left");
    let days: i64 = session.one("SELECT count(*) FROM events WHERE id > 1::bigint << 60");
    ensure!(days == 1, "{days} rows of days are left");
    Ok(())
}

#[test]
fn rows_with_old_sequence_numbers_are_not_dropped_as_old_days() {
    let server = Cluster::builder("care_numbers").start();
    let query = block("DROP TABLE %s");
    check_old_numbers(&server, &query).unwrap();
    // The negative control: the statement without its lower limit.
    let unlimited = query.replace(">= snowflake_min_id('2024-01-01 00:00+00')", "IS NOT NULL");
    assert_ne!(unlimited, query);
    assert_caught(check_old_numbers(&server, &unlimited), "old rows are lost, and only [-1] are left");
}

/// Creates a table with partitions for this many days.
fn by_day(session: &mut Client, from: &str, count: u32) {
    session.run(&format!(
        "DROP TABLE IF EXISTS p; CREATE TABLE p (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
         SELECT snowflake_create_partitions('p', '1 day', {count}, '{from}Z')"
    ));
}

/// Changes from days to longer partitions. Every ID from the first day to the last partition has one.
fn check_followed(session: &mut Client, (day, days): (&str, u32), (from, step): (&str, &str)) -> Result<(), String> {
    by_day(session, day, days);
    session
        .batch_execute(&format!("SELECT snowflake_create_partitions('p', '{step}', 3, '{from}Z')"))
        .map_err(|error| format!("refused: {:?}", sqlstate(&error)))?;
    let found = partitions(session, "'p'").len() as u32;
    ensure!(found == days + 3, "{found} partitions");
    session
        .batch_execute(&format!(
            "INSERT INTO p
             SELECT unnest(ARRAY[snowflake_min_id(at), snowflake_encode(at, 5, 9), snowflake_max_id(at + interval '1 h -1 us')])
             FROM generate_series(timestamp '{day}', timestamp '{from}' + 3 * interval '{step}' - interval '1 h', '1 h') AS hour,
                  timezone('UTC', hour) AS at"
        ))
        .map_err(|error| format!("a row is refused: {:?}", sqlstate(&error)))
}

/// The calls refuse a start inside a week or month that has partitions by day, and create none.
fn check_refused(session: &mut Client, day: &str, calls: &[String], code: &str) -> Result<(), String> {
    by_day(session, day, 3);
    let told: Vec<_> = calls.iter().map(|call| session.code(&format!("SELECT {call}"))).collect();
    ensure!(told.contains(&Some(code.into())), "told {told:?}, not {code}");
    let made = partitions(session, "'p'").len() - 3;
    ensure!(made == 0, "{made} partitions were made");
    Ok(())
}

#[test]
fn days_become_weeks_or_months_without_a_gap() {
    let (_server, mut session) = Cluster::builder("care_longer").start_session();
    session.run("SET timezone = 'America/New_York'");
    let (week, month, quarter) = (("2024-03-11", "1 week"), ("2024-04-01", "1 month"), ("2024-04-01", "3 months"));
    for (days, longer) in [
        (("2024-03-06", 5), week),
        (("2024-03-04", 7), week),
        (("2024-03-20", 12), month),
        (("2024-03-20", 12), quarter),
    ] {
        check_followed(&mut session, days, longer).unwrap_or_else(|wrong| panic!("{longer:?}: {wrong}"));
    }
    // The negative controls: a day too few, and a day too many.
    assert_caught(check_followed(&mut session, ("2024-03-06", 4), week), "a row is refused");
    assert_caught(check_followed(&mut session, ("2024-03-20", 11), month), "a row is refused");
    assert_caught(check_followed(&mut session, ("2024-03-06", 6), week), "refused: (\"42P07\"");

    let call =
        |step: &str, count: u32, from: &str| format!("snowflake_create_partitions('p', '{step}', {count}, '{from}Z')");
    for (step, day, from, code) in [
        ("1 week", "2024-03-06", "2024-03-07", "42P17"),
        ("1 week", "2024-03-06", "2024-03-09", "42P17"),
        ("1 week", "2024-03-04", "2024-03-07", "42P07"),
        ("1 month", "2024-03-06", "2024-03-09", "42P17"),
        ("1 month", "2024-03-01", "2024-03-04", "42P07"),
    ] {
        check_refused(&mut session, day, &[call(step, 3, from)], code)
            .unwrap_or_else(|wrong| panic!("{from}: {wrong}"));
    }
    // The negative control: one call for each partition.
    let each = ["2024-03-07", "2024-03-14", "2024-03-21"].map(|from| call("1 week", 1, from));
    assert_caught(check_refused(&mut session, "2024-03-06", &each, "42P17"), "2 partitions were made");
}

/// A statement detaches the first of three days while one reader has the table open, and other readers continue.
fn check_detached(server: &Cluster, detach: &str) -> Result<(), String> {
    let (mut session, mut reader, mut other) = (server.session(), server.session(), server.session());
    session.run(
        "DROP TABLE IF EXISTS events, events_20240310;
         CREATE TABLE events (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
         SELECT snowflake_create_partitions('events', '1 day', 3, '2024-03-10Z');
         INSERT INTO events SELECT snowflake_min_id(at) FROM unnest('{2024-03-10Z,2024-03-11Z}'::timestamptz[]) AS at",
    );
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM events");
    let statement = detach.to_string();
    let detaching = thread::spawn(move || session.code(&statement));
    let waits = waiting(&mut other, || detaching.is_finished());
    let locked = other.code("SET lock_timeout = '300ms'; SELECT FROM events");
    let rows: i64 = reader.one("SELECT count(*) FROM events");
    reader.run("COMMIT");
    let told = detaching.join().expect("a thread ends");
    ensure!(waits && told.is_none(), "told {told:?}");
    ensure!(locked.is_none() && rows == 2, "readers are locked out: {locked:?}, or miss rows: {rows}");
    let left = partitions(&mut reader, "'events'");
    ensure!(left == ["20240311", "20240312"], "{left:?}");
    ensure!(reader.one::<i64>("SELECT count(*) FROM events_20240310") == 1, "its row has gone");
    Ok(())
}

#[test]
fn a_partition_is_let_go_of_beside_readers() {
    let server = Cluster::builder("care_detach").start();
    let detach = "ALTER TABLE events DETACH PARTITION events_20240310 CONCURRENTLY";
    assert!(page("docs/partitions.md").contains(&format!("`{detach}`")));
    check_detached(&server, detach).unwrap();
    let plain = detach.replace(" CONCURRENTLY", "");
    assert_caught(check_detached(&server, &plain), "readers are locked out: Some(\"55P03\")");

    // The name of the detached partition is still in use.
    let mut session = server.session();
    let make = "SELECT snowflake_create_partitions('events', '1 day', 3, '2024-03-10Z')";
    assert_eq!(session.code(make).as_deref(), Some("42P07"));
    session.run("ALTER TABLE events_20240310 RENAME TO gone");
    session.run(make);
    assert_eq!(session.code(&format!("BEGIN; {detach}")).as_deref(), Some("25001"));
    session.run("ROLLBACK; CREATE TABLE events_default PARTITION OF events DEFAULT");
    let beside_default = "cannot detach partitions concurrently when a default partition exists";
    assert_eq!(session.refusal(detach), ("55000".into(), beside_default.into()));
    session.run(&plain);
}

#[test]
fn a_partition_of_a_table_to_which_others_refer_is_detached_first() {
    let (_server, mut session) = Cluster::builder("care_detach_referred").start_session();
    session.run(
        "CREATE TABLE events (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE notes (event bigint REFERENCES events);
         SELECT snowflake_create_partitions('events', '1 day', 1, '2024-03-10Z');
         INSERT INTO events VALUES (snowflake_min_id('2024-03-10 12:00+00')); INSERT INTO notes SELECT id FROM events",
    );
    let (detach, drop) = ("ALTER TABLE events DETACH PARTITION events_20240310", "DROP TABLE events_20240310");
    assert_eq!(session.code(drop).as_deref(), Some("2BP01"));
    assert_eq!(session.code(detach).as_deref(), Some("23503"));
    session.run("DELETE FROM notes");
    assert_eq!(session.code(drop).as_deref(), Some("2BP01"));
    session.run(&format!("{detach}; {drop}"));
}
