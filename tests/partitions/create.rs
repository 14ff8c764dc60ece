//! `snowflake_create_partitions()` beside other operations on a table: readers and writers, an interrupted detach, event triggers,
//! other keys, partitions and tables of other kinds. Also tests the end of the calendar.

use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use cluster::{Answer, Client, Cluster, Host, assert_caught, blocks, ensure, page, sqlstate, waiting, within};

const TABLE: &str = "CREATE TABLE p (id bigint PRIMARY KEY) PARTITION BY RANGE (id)";

fn create(days: u32) -> String {
    format!("SELECT snowflake_create_partitions('p', '1 day', {days}, '2024-02-01 00:00+00')")
}

/// The names of the partitions of `table`.
fn partitions(session: &mut Client, table: &str) -> Vec<String> {
    session.all(&format!(
        "SELECT relname::text FROM pg_inherits JOIN pg_class ON oid = inhrelid
         WHERE inhparent = '{table}'::regclass ORDER BY relname COLLATE \"C\""
    ))
}

#[test]
fn a_transaction_with_one_snapshot_is_refused_where_something_is_missing() {
    let server = Cluster::builder("create_partitions_isolation").start();
    let mut session = server.session();
    session.batch_execute(TABLE).unwrap();
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let error = session
            .batch_execute(&format!("BEGIN ISOLATION LEVEL {level}; {}", create(1)))
            .map_err(|error| sqlstate(&error))
            .expect_err("nothing says that others see what this one does not");
        assert_eq!(error.0, "25001");
        assert_eq!(error.1, "cannot create partitions in this transaction");
        assert_eq!(error.3, "Call snowflake_create_partitions() in a transaction with isolation level READ COMMITTED.");
        session.batch_execute("ROLLBACK").unwrap();
    }
    session.batch_execute(&create(1)).unwrap();
    session.batch_execute(&format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {}; COMMIT", create(1))).unwrap();
}

#[test]
fn a_partition_whose_detach_was_broken_off_is_not_taken_for_one() {
    let server = Cluster::builder("create_partitions_detach").start();
    let (mut session, mut reader) = (server.session(), server.session());
    session.batch_execute(TABLE).unwrap();
    session.batch_execute(&create(2)).unwrap();
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM p").unwrap();
    session.batch_execute("SET statement_timeout = '500ms'").unwrap();
    assert_eq!(session.code("ALTER TABLE p DETACH PARTITION p_20240202 CONCURRENTLY").as_deref(), Some("57014"));
    reader.batch_execute("COMMIT").unwrap();
    session.batch_execute("RESET statement_timeout").unwrap();
    // The partition takes no rows. The error says what is wrong, and finishing the detach repairs it.
    let refusal = session.refusal(&create(2));
    assert_eq!(refusal, ("42P07".into(), "relation \"p_20240202\" already exists".into()));
    session.batch_execute("ALTER TABLE p DETACH PARTITION p_20240202 FINALIZE; DROP TABLE p_20240202").unwrap();
    session.batch_execute(&create(2)).unwrap();
    assert_eq!(partitions(&mut session, "p"), ["p_20240201", "p_20240202"]);
}

#[test]
fn partitions_that_an_event_trigger_renames_are_returned_and_found_again() {
    let server = Cluster::builder("create_partitions_trigger").start();
    let mut session = server.session();
    session.batch_execute(TABLE).unwrap();
    session
        .batch_execute(
            "CREATE FUNCTION rename() RETURNS event_trigger LANGUAGE plpgsql AS $$
             DECLARE made oid;
             BEGIN
                 FOR made IN SELECT objid FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table' LOOP
                     EXECUTE format('ALTER TABLE %s RENAME TO %I', made::regclass, 'x_' || made::regclass);
                 END LOOP;
             END $$;
             CREATE EVENT TRIGGER rename ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION rename()",
        )
        .unwrap();
    let text = |sql: String| format!("{sql}::text");
    assert_eq!(session.all::<String>(&text(create(2))), ["x_p_20240201", "x_p_20240202"]);
    assert_eq!(session.all::<String>(&text(create(2))), [""; 0]);
}

/// While a call waits for its lock, its table is renamed, and another table takes the name.
fn check_renamed(server: &Cluster, make: &str) -> Result<(), String> {
    let (mut session, mut caller, mut watch) = (server.session(), server.session(), server.session());
    session
        .batch_execute(&format!("DROP TABLE IF EXISTS p, renamed CASCADE; {TABLE}"))
        .and_then(|()| session.batch_execute("BEGIN; LOCK TABLE p IN SHARE MODE"))
        .expect("a table");
    let oid: i64 = session.one("SELECT 'p'::regclass::oid::bigint");
    let make = make.replace("OID", &oid.to_string());
    let caller = thread::spawn(move || caller.batch_execute(&make).map_err(|error| sqlstate(&error)));
    ensure!(waiting(&mut watch, || caller.is_finished()), "the caller never asks");
    session.batch_execute(&format!("ALTER TABLE p RENAME TO renamed; {TABLE}; COMMIT")).expect("a new name");
    let made = caller.join().expect("a caller");
    ensure!(made.is_ok(), "the call failed: {made:?}");
    let (old, new) = (partitions(&mut watch, "renamed"), partitions(&mut watch, "p"));
    ensure!(new.is_empty() && old.len() == 1, "another table got them: {new:?}, not {old:?}");
    Ok(())
}

#[test]
fn a_table_that_is_renamed_meanwhile_gets_its_partitions_all_the_same() {
    let server = Cluster::builder("create_partitions_renamed").start();
    let call = "SELECT snowflake_create_partitions(OID::regclass, '1 day', 1, '2024-02-01 00:00+00')";
    check_renamed(&server, call).unwrap();
    // The negative control: a statement that uses the name.
    let by_name = "CREATE TABLE by_name PARTITION OF p FOR VALUES FROM (0) TO (1)";
    assert_caught(check_renamed(&server, by_name), "another table got them");
}

/// Runs a command as cron would.
fn job(server: &Cluster, command: &str) -> Child {
    let mut shell = Host::get().shell(command);
    shell.env("PGHOST", server.socket()).env("PGPORT", "5432").env("PGUSER", "postgres");
    shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell")
}

/// The job gives up if a transaction has the table open. It has then created nothing, and its next run creates all partitions.
fn check_job(server: &Cluster, command: &str) -> Result<(), String> {
    let [mut session, mut reader, mut other] = [0; 3].map(|_| server.connect_to("shop"));
    session
        .batch_execute(
            "DROP TABLE IF EXISTS events; CREATE TABLE events (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
             CREATE TABLE events_rest PARTITION OF events DEFAULT",
        )
        .expect("a table");
    reader.batch_execute("BEGIN; SELECT FROM events").expect("a reader");
    let mut first = job(server, command);
    ensure!(waiting(&mut session, || first.try_wait().is_ok_and(|ended| ended.is_some())), "the job never asks");
    let gave_up = within(Duration::from_secs(5), || first.try_wait().is_ok_and(|ended| ended.is_some()));
    let others = other.code("SET lock_timeout = '100ms'; SELECT FROM events");
    let made = partitions(&mut session, "events").len() - 1;
    reader.batch_execute("COMMIT").expect("a reader");
    let first = first.wait_with_output().expect("the job ends");
    ensure!(gave_up, "the job waits on, and keeps others waiting: {others:?}");
    ensure!(others.is_none(), "others were kept waiting: {others:?}");
    let said = String::from_utf8_lossy(&first.stderr);
    ensure!(!first.status.success() && said.contains("canceling statement due to lock timeout"), "it said: {said}");
    ensure!(made == 0, "{made} partitions were made");

    let second = job(server, command).wait_with_output().expect("the job ends");
    let names = String::from_utf8_lossy(&second.stdout).lines().count();
    ensure!(second.status.success() && names == 7, "{names} were made: {}", String::from_utf8_lossy(&second.stderr));
    let there = partitions(&mut session, "events");
    ensure!(there.len() == 8, "{there:?}");
    Ok(())
}

#[test]
fn the_job_gives_up_where_the_table_is_open() {
    let server = Cluster::builder("job_timeout").start();
    server.connect().batch_execute("CREATE DATABASE shop").unwrap();
    server.connect_to("shop").batch_execute("CREATE EXTENSION snowflake_pg").unwrap();
    let [line] = &blocks(&page("docs/partitions.md"), "conf")[..] else { panic!("one line for cron") };
    // Minute, hour, day, month, weekday, and then the command.
    let command = line.split_whitespace().skip(5).collect::<Vec<_>>().join(" ");
    let timeout = "PGOPTIONS='-c lock_timeout=5s' ";
    assert!(command.starts_with(timeout), "{command}");
    check_job(&server, &command.replace("5s", "300ms")).unwrap();
    // The SQLSTATE of the error.
    let (mut reader, mut session) = (server.connect_to("shop"), server.connect_to("shop"));
    reader.batch_execute("BEGIN; SELECT FROM events").unwrap();
    let call = "SET lock_timeout = '50ms'; SELECT snowflake_create_partitions('events', '1 day', 9)";
    assert_eq!(session.code(call).as_deref(), Some("55P03"));
    reader.batch_execute("COMMIT").unwrap();
    // The negative control: without the timeout.
    let waits = check_job(&server, &command.replace(timeout, ""));
    assert_caught(waits, "the job waits on, and keeps others waiting: Some(\"55P03\")");
}

/// Statements of a transaction: at the other ends of foreign keys, and in the table itself.
const CUSTOMER: &str = "INSERT INTO customers VALUES (1)";
const NOTE: &str = "INSERT INTO notes VALUES (NULL)";
const EVENT: &str = "INSERT INTO events VALUES (snowflake_min_id('2024-02-01Z'))";

/// A transaction writes to one table and, while the job waits for it, to another. The one that detects the deadlock first is
/// ended.
fn check_deadlock(server: &Cluster, [first, second]: [&str; 2], job_looks: bool) -> Result<(), String> {
    let [mut writer, mut job, mut watch] = [0; 3].map(|_| server.session());
    writer
        .batch_execute(
            "DROP TABLE IF EXISTS events, customers, notes;
             CREATE TABLE customers (id bigint PRIMARY KEY);
             CREATE TABLE events (id bigint PRIMARY KEY, customer bigint REFERENCES customers) PARTITION BY RANGE (id);
             SELECT snowflake_create_partitions('events', '1 day', 1, '2024-02-01Z');
             CREATE TABLE notes (event bigint REFERENCES events)",
        )
        .expect("tables");
    let [jobs, writers] = if job_looks { ["5s", "120s"] } else { ["60s", "50ms"] };
    for (session, timeout) in [(&mut job, jobs), (&mut writer, writers)] {
        session.batch_execute(&format!("SET deadlock_timeout = '{timeout}'")).expect("a superuser may");
    }
    writer.batch_execute(&format!("BEGIN; {first}")).expect("a row");
    let call = "SELECT snowflake_create_partitions('events', '1 day', 3, '2024-02-01Z')";
    let job = thread::spawn(move || job.code(call));
    ensure!(waiting(&mut watch, || job.is_finished()), "the job never asks");
    let writer_told = writer.code(second);
    writer.batch_execute("COMMIT").expect("a transaction ends");
    let job_told = job.join().expect("a thread ends");
    let mut expected = [Some("40P01"), None];
    expected.rotate_right(job_looks.into());
    let told = [writer_told.as_deref(), job_told.as_deref()];
    ensure!(told == expected, "the writer and the job were told {told:?}");
    let made = partitions(&mut watch, "events").len();
    ensure!(made == if job_looks { 1 } else { 3 }, "{made} partitions");
    watch.batch_execute(call).expect("the next run");
    let made = partitions(&mut watch, "events").len();
    ensure!(made == 3, "{made} partitions at last");
    Ok(())
}

#[test]
fn the_job_and_a_writer_at_the_other_end_of_a_key_deadlock_and_one_goes_on() {
    let server = Cluster::builder("job_deadlock").start();
    for (other_end, job_looks) in [(CUSTOMER, false), (CUSTOMER, true), (NOTE, false)] {
        check_deadlock(&server, [other_end, EVENT], job_looks).unwrap_or_else(|wrong| panic!("{other_end}: {wrong}"));
    }
    // The negative control: a transaction that writes to this table first makes the job wait before the job holds a lock.
    let here_first = check_deadlock(&server, [EVENT, CUSTOMER], false);
    assert_caught(here_first, "the writer and the job were told [None, None]");
}

#[test]
fn only_ranges_of_ids_are_partitioned() {
    let server = Cluster::builder("create_partitions_keys").start();
    let mut session = server.session();
    for made in [
        "TABLE k (id bigint)",
        "TABLE k (id text) PARTITION BY RANGE (id)",
        "TABLE k (id integer) PARTITION BY RANGE (id)",
        "TABLE k (id timestamptz) PARTITION BY RANGE (id)",
        "TABLE k (id bigint) PARTITION BY RANGE ((id / 2))",
        "TABLE k (id bigint, tenant bigint) PARTITION BY RANGE (id, tenant)",
        "TABLE k (id bigint) PARTITION BY LIST (id)",
        "TABLE k (id bigint) PARTITION BY HASH (id)",
        "VIEW k AS SELECT 1::bigint AS id",
        "SEQUENCE k",
    ] {
        session.batch_execute(&format!("CREATE {made}")).unwrap();
        let error = session.batch_execute("SELECT snowflake_create_partitions('k', '1 day', 1)").expect_err(made);
        let (code, message, detail, hint) = sqlstate(&error);
        assert_eq!(
            (code.as_str(), message.as_str()),
            ("42809", "\"public.k\" is not partitioned by ranges of IDs"),
            "{made}"
        );
        assert_eq!(detail, "The table must be partitioned by RANGE on one column of type bigint.");
        assert_eq!(hint, "Pass a table that was created with PARTITION BY RANGE (id).");
        session.batch_execute(&format!("DROP {} k", made.split(' ').next().expect("a kind"))).unwrap();
    }
    // The key can have any name and any position.
    session.batch_execute("CREATE TABLE k (a int, b bigint) PARTITION BY RANGE (b)").unwrap();
    session.batch_execute("SELECT snowflake_create_partitions('k', '1 day', 1)").unwrap();
}

#[test]
fn the_calendar_ends_before_some_layouts_do() {
    let server = Cluster::builder("create_partitions_calendar").set("snowflake_pg.layout", "50:1:12").start();
    let mut session = server.session();
    session.batch_execute(TABLE).unwrap();
    for call in [
        "snowflake_create_partitions('p', '1 month', 3, '9999-11-15 00:00Z')",
        "snowflake_create_partitions('p', '1 month', 2, '12345-08-15 00:00Z')",
        "snowflake_create_partitions('p', '1 day', 2, '12345-08-15 00:00Z')",
        "snowflake_create_partitions('p', '178000000 years', 1)",
        "snowflake_partition_bounds('9999-06-11 00:00Z', '12001-12-31 23:00Z', '4 months')",
        "snowflake_partition_bounds('12345-11-11 00:00Z', '12345-11-14 00:00Z', '6 months')",
    ] {
        let error = session.batch_execute(&format!("SELECT {call}")).expect_err(call);
        let (code, message, detail, hint) = sqlstate(&error);
        assert_eq!(code, "22023", "{call}: {message}");
        assert!(message.ends_with(" is out of range for partitions"), "{call}: {message}");
        assert_eq!(
            (detail.as_str(), hint.as_str()),
            (
                "Partitions can cover times up to the end of the year 9999.",
                "Pass an earlier time, or request fewer partitions."
            )
        );
    }
    assert_eq!(partitions(&mut session, "p"), [""; 0]);
    session.batch_execute("SELECT snowflake_create_partitions('p', '1 month', 2, '9999-10-15 00:00Z')").unwrap();
    assert_eq!(partitions(&mut session, "p"), ["p_99991001", "p_99991101"]);
}

/// The first of three days has a partition of another kind. The call creates the other two.
fn check_counted(session: &mut Client, like: &str) -> Result<(), String> {
    session.batch_execute(&format!("DROP TABLE IF EXISTS p; {TABLE}").replace(" PRIMARY KEY", "")).expect("a table");
    let bounds: String = session.one(
        "SELECT format('FOR VALUES FROM (%s) TO (%s)', from_id, until_id)
         FROM snowflake_partition_bounds('2024-02-01Z', '2024-02-02Z', '1 day')",
    );
    session.batch_execute(&format!("CREATE {}", like.replace("BOUNDS", &bounds))).expect("a partition of its kind");
    session.batch_execute(&create(3)).map_err(|error| format!("refused: {:?}", sqlstate(&error)))?;
    let there = partitions(session, "p");
    ensure!(there == ["mine", "p_20240202", "p_20240203"], "{there:?}");
    ensure!(session.all::<String>(&format!("{}::text", create(3))).is_empty(), "made again");
    Ok(())
}

#[test]
fn a_partition_of_another_kind_counts() {
    let server = Cluster::builder("create_partitions_kinds").start();
    let mut session = server.session();
    session.batch_execute("CREATE FOREIGN DATA WRAPPER none; CREATE SERVER far FOREIGN DATA WRAPPER none").unwrap();
    for like in [
        "TABLE mine PARTITION OF p BOUNDS",
        "UNLOGGED TABLE mine PARTITION OF p BOUNDS",
        "FOREIGN TABLE mine PARTITION OF p BOUNDS SERVER far",
        "TABLE mine PARTITION OF p BOUNDS PARTITION BY HASH (id)",
        "TABLE mine PARTITION OF p BOUNDS PARTITION BY RANGE (id); CREATE TABLE half PARTITION OF mine DEFAULT",
    ] {
        check_counted(&mut session, like).unwrap_or_else(|wrong| panic!("{like}: {wrong}"));
    }
    // The negative controls: a table that is not attached, and a partition with other bounds.
    assert_caught(check_counted(&mut session, "TABLE apart (id bigint)"), "[\"p_20240201\", ");
    let longer = "TABLE mine PARTITION OF p FOR VALUES FROM (0) TO (MAXVALUE)";
    assert_caught(check_counted(&mut session, longer), "refused: (\"42P17\"");
}

#[test]
fn a_temporary_table_is_neither_taken_for_another_nor_forgotten() {
    let server = Cluster::builder("create_partitions_temporary").start();
    let mut session = server.session();
    session.batch_execute(&format!("{TABLE}; {}", TABLE.replace("CREATE", "CREATE TEMPORARY"))).unwrap();
    let schemas = |session: &mut Client| {
        session.all::<String>(
            "SELECT format('%s %s', count(*), CASE relpersistence WHEN 't' THEN 'temporary' ELSE relnamespace::regnamespace::text END)
             FROM pg_class WHERE relispartition AND relkind = 'r' GROUP BY relpersistence, relnamespace ORDER BY 1",
        )
    };
    session.batch_execute(&create(2).replace("'p'", "'public.p'")).unwrap();
    assert_eq!(schemas(&mut session), ["2 public"]);
    // The negative control: the name alone refers to the temporary table.
    session.batch_execute(&create(3)).unwrap();
    assert_eq!(schemas(&mut session), ["2 public", "3 temporary"]);
    assert_eq!(session.all::<String>(&format!("{}::text", create(3))), [""; 0]);
}
