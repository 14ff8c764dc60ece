//! `snowflake_create_partitions()` beside other operations on a table: readers and writers, an interrupted detach, event triggers,
//! other keys, partitions and tables of other kinds. Also tests the end of the calendar.

use std::thread;

use cluster::{Answer, Client, Cluster, assert_caught, ensure, sqlstate, waiting};

const TABLE: &str = "CREATE TABLE p (id bigint PRIMARY KEY) PARTITION BY RANGE (id)";

fn create(days: u32) -> String {
    format!("SELECT snowflake_create_partitions('p', '1 day', {days}, '2024-02-01 00:00+00')")
}

/// The names of the partitions of `table`.
pub fn partitions(session: &mut Client, table: &str) -> Vec<String> {
    session.all(&format!(
        "SELECT relname::text FROM pg_inherits JOIN pg_class ON oid = inhrelid
         WHERE inhparent = '{table}'::regclass ORDER BY relname COLLATE \"C\""
    ))
}

#[test]
fn a_transaction_with_one_snapshot_is_refused_where_something_is_missing() {
    let (_server, mut session) = Cluster::builder("create_partitions_isolation").start_session();
    session.run(TABLE);
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let [code, message, _, hint] = session.error(&format!("BEGIN ISOLATION LEVEL {level}; {}", create(1)));
        assert_eq!([code, message], ["25001", "cannot create partitions in this transaction"]);
        assert_eq!(hint, "Call snowflake_create_partitions() in a transaction with isolation level READ COMMITTED.");
        session.run("ROLLBACK");
    }
    session.run(&create(1));
    session.run(&format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {}; COMMIT", create(1)));
}

#[test]
fn a_partition_whose_detach_was_broken_off_is_not_taken_for_one() {
    let server = Cluster::builder("create_partitions_detach").start();
    let (mut session, mut reader) = (server.session(), server.session());
    session.run(TABLE);
    session.run(&create(2));
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM p");
    session.run("SET statement_timeout = '500ms'");
    assert_eq!(session.code("ALTER TABLE p DETACH PARTITION p_20240202 CONCURRENTLY").as_deref(), Some("57014"));
    reader.run("COMMIT");
    session.run("RESET statement_timeout");
    // The partition takes no rows. The error says what is wrong, and finishing the detach repairs it.
    let refusal = session.refusal(&create(2));
    assert_eq!(refusal, ("42P07".into(), "relation \"p_20240202\" already exists".into()));
    session.run("ALTER TABLE p DETACH PARTITION p_20240202 FINALIZE; DROP TABLE p_20240202");
    session.run(&create(2));
    assert_eq!(partitions(&mut session, "p"), ["p_20240201", "p_20240202"]);
}

#[test]
fn partitions_that_an_event_trigger_renames_are_returned_and_found_again() {
    let (_server, mut session) = Cluster::builder("create_partitions_trigger").start_session();
    session.run(TABLE);
    session.run(
        "CREATE FUNCTION rename() RETURNS event_trigger LANGUAGE plpgsql AS $$
         DECLARE made oid;
         BEGIN
             FOR made IN SELECT objid FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table' LOOP
                 EXECUTE format('ALTER TABLE %s RENAME TO %I', made::regclass, 'x_' || made::regclass);
             END LOOP;
         END $$;
         CREATE EVENT TRIGGER rename ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION rename()",
    );
    let text = |sql: String| format!("{sql}::text");
    assert_eq!(session.all::<String>(&text(create(2))), ["x_p_20240201", "x_p_20240202"]);
    assert_eq!(session.all::<String>(&text(create(2))), [""; 0]);
}

/// While a call waits for its lock, its table is renamed, and another table takes the name.
fn check_renamed(server: &Cluster, make: &str) -> Result<(), String> {
    let (mut session, mut caller, mut watch) = (server.session(), server.session(), server.session());
    session.run(&format!("DROP TABLE IF EXISTS p, renamed CASCADE; {TABLE}"));
    session.run("BEGIN; LOCK TABLE p IN SHARE MODE");
    let oid: i64 = session.one("SELECT 'p'::regclass::oid::bigint");
    let make = make.replace("OID", &oid.to_string());
    let caller = thread::spawn(move || caller.batch_execute(&make).map_err(|error| sqlstate(&error)));
    ensure!(waiting(&mut watch, || caller.is_finished()), "the caller never asks");
    session.run(&format!("ALTER TABLE p RENAME TO renamed; {TABLE}; COMMIT"));
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

#[test]
fn only_ranges_of_ids_are_partitioned() {
    let (_server, mut session) = Cluster::builder("create_partitions_keys").start_session();
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
        session.run(&format!("CREATE {made}"));
        let [code, message, detail, hint] = session.error("SELECT snowflake_create_partitions('k', '1 day', 1)");
        assert_eq!([code, message], ["42809", "\"public.k\" is not partitioned by ranges of IDs"], "{made}");
        assert_eq!(detail, "The table must be partitioned by RANGE on one column of type bigint.");
        assert_eq!(hint, "Pass a table that was created with PARTITION BY RANGE (id).");
        session.run(&format!("DROP {} k", made.split(' ').next().expect("a kind")));
    }
    // The key can have any name and any position.
    session.run("CREATE TABLE k (a int, b bigint) PARTITION BY RANGE (b)");
    session.run("SELECT snowflake_create_partitions('k', '1 day', 1)");
}

#[test]
fn the_calendar_ends_before_some_layouts_do() {
    let (_server, mut session) =
        Cluster::builder("create_partitions_calendar").set("snowflake_pg.layout", "50:1:12").start_session();
    session.run(TABLE);
    for call in [
        "snowflake_create_partitions('p', '1 month', 3, '9999-11-15 00:00Z')",
        "snowflake_create_partitions('p', '1 month', 2, '12345-08-15 00:00Z')",
        "snowflake_create_partitions('p', '1 day', 2, '12345-08-15 00:00Z')",
        "snowflake_create_partitions('p', '178000000 years', 1)",
        "snowflake_partition_bounds('9999-06-11 00:00Z', '12001-12-31 23:00Z', '4 months')",
        "snowflake_partition_bounds('12345-11-11 00:00Z', '12345-11-14 00:00Z', '6 months')",
    ] {
        let [code, message, detail, hint] = session.error(&format!("SELECT {call}"));
        assert_eq!(code, "22023", "{call}: {message}");
        assert!(message.ends_with(" is out of range for partitions"), "{call}: {message}");
        assert_eq!(
            [detail, hint],
            [
                "Partitions can cover times up to the end of the year 9999.",
                "Pass an earlier time, or request fewer partitions."
            ]
        );
    }
    assert_eq!(partitions(&mut session, "p"), [""; 0]);
    session.run("SELECT snowflake_create_partitions('p', '1 month', 2, '9999-10-15 00:00Z')");
    assert_eq!(partitions(&mut session, "p"), ["p_99991001", "p_99991101"]);
}

/// The first of three days has a partition of another kind. The call creates the other two.
fn check_counted(session: &mut Client, like: &str) -> Result<(), String> {
    session.run(&format!("DROP TABLE IF EXISTS p; {TABLE}").replace(" PRIMARY KEY", ""));
    let bounds: String = session.one(
        "SELECT format('FOR VALUES FROM (%s) TO (%s)', from_id, until_id)
         FROM snowflake_partition_bounds('2024-02-01Z', '2024-02-02Z', '1 day')",
    );
    session.run(&format!("CREATE {}", like.replace("BOUNDS", &bounds)));
    session.batch_execute(&create(3)).map_err(|error| format!("refused: {:?}", sqlstate(&error)))?;
    let there = partitions(session, "p");
    ensure!(there == ["mine", "p_20240202", "p_20240203"], "{there:?}");
    ensure!(session.all::<String>(&format!("{}::text", create(3))).is_empty(), "made again");
    Ok(())
}

#[test]
fn a_partition_of_another_kind_counts() {
    let (_server, mut session) = Cluster::builder("create_partitions_kinds").start_session();
    session.run("CREATE FOREIGN DATA WRAPPER none; CREATE SERVER far FOREIGN DATA WRAPPER none");
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
    let (_server, mut session) = Cluster::builder("create_partitions_temporary").start_session();
    session.run(&format!("{TABLE}; {}", TABLE.replace("CREATE", "CREATE TEMPORARY")));
    let schemas = |session: &mut Client| {
        session.all::<String>(
            "SELECT format('%s %s', count(*), CASE relpersistence WHEN 't' THEN 'temporary' ELSE relnamespace::regnamespace::text END)
             FROM pg_class WHERE relispartition AND relkind = 'r' GROUP BY relpersistence, relnamespace ORDER BY 1",
        )
    };
    session.run(&create(2).replace("'p'", "'public.p'"));
    assert_eq!(schemas(&mut session), ["2 public"]);
    // The negative control: the name alone refers to the temporary table.
    session.run(&create(3));
    assert_eq!(schemas(&mut session), ["2 public", "3 temporary"]);
    assert_eq!(session.all::<String>(&format!("{}::text", create(3))), [""; 0]);
}
