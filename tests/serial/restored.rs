//! A dump contains the definitions and the numbers of series, and the triggers that number rows.

use cluster::{Answer, Cluster, assert_caught, ensure, output, typed};

/// How a dump is taken.
#[derive(Clone, Copy, PartialEq)]
enum DumpParts {
    Whole,
    /// The definitions, and then the data, as some programs restore them.
    InTwoParts,
    /// The same without the option that keeps triggers from firing.
    WithTriggers,
    /// A mistake: without the data of the series.
    WithoutNumbers,
}

/// Creates series and rows, with names and templates that need quotes, and the extension in a schema of its own.
const PREPARE: &str = r#"
    CREATE SCHEMA ids; CREATE EXTENSION snowflake_pg SCHEMA ids; CREATE SCHEMA "Back Office";
    SELECT ids.snowflake_create_series('"Back Office"."In''voice \ %s"', 'In''voice\n "{YYYY}" {n:4}', time_zone => 'Europe/Berlin');
    SELECT ids.snowflake_create_series('public.receipt', 'R-{YYYY}{MM}{DD}-{n:4}', time_zone => 'Asia/Kolkata', start => 100);
    CREATE TABLE invoices (id integer PRIMARY KEY, number text UNIQUE
        DEFAULT ids.snowflake_serial('"Back Office"."In''voice \ %s"', timestamptz '2026-12-31 23:30+00'));
    CREATE TABLE receipts (id integer PRIMARY KEY, number text UNIQUE, booked date);
    SELECT ids.snowflake_number_at_commit('receipts', 'number', 'receipt', 'booked');
    INSERT INTO invoices SELECT n FROM generate_series(1, 5) AS n;
    INSERT INTO receipts SELECT n, NULL, date '2026-01-01' + n % 3 FROM generate_series(1, 9) AS n"#;

/// What a database contains, and the next numbers.
fn contents(server: &Cluster, database: &str) -> Vec<String> {
    let mut session = server.connect_to(database);
    let more =
        "SET timezone = 'UTC'; INSERT INTO invoices VALUES (6); INSERT INTO receipts VALUES (10, NULL, '2026-01-02')";
    session.run(more);
    [
        "SELECT s::text FROM ids.snowflake_series AS s ORDER BY 1",
        "SELECT number FROM invoices ORDER BY id",
        "SELECT number FROM receipts ORDER BY id",
        "SELECT pg_get_triggerdef(oid) || tgenabled::text FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1",
        "SELECT r::text FROM receipt AS r ORDER BY 1",
    ]
    .iter()
    .flat_map(|query| session.all::<String>(query))
    .collect()
}

fn check(name: &str, how: DumpParts) -> Result<(), String> {
    let server = Cluster::builder(name).start();
    for database in ["books", "copy"] {
        server.connect().run(&format!("CREATE DATABASE {database}"));
    }
    server.connect_to("books").run(PREPARE);
    let parts: &[&[&str]] = match how {
        DumpParts::Whole => &[&[]],
        DumpParts::InTwoParts => &[&["--schema-only"], &["--data-only", "--disable-triggers"]],
        DumpParts::WithTriggers => &[&["--schema-only"], &["--data-only"]],
        DumpParts::WithoutNumbers => &[&["--exclude-table-data=public.receipt"]],
    };
    for arguments in parts {
        let dump = output(server.program("pg_dump").args(["-d", "books"]).args(*arguments));
        let mut psql = server.psql();
        psql.args(["-d", "copy"]);
        typed(psql, &dump).map_err(|e| format!("{arguments:?}: {e}"))?;
    }
    let restored =
        std::panic::catch_unwind(|| contents(&server, "copy")).map_err(|_| "a number came twice".to_string())?;
    let expected = contents(&server, "books");
    ensure!(restored == expected, "{restored:#?}\nnot {expected:#?}");
    ensure!(expected.contains(&"In'voice\\n \"2027\" 0006".into()), "{expected:#?}");
    ensure!(expected.contains(&"R-20260102-0103".into()), "{expected:#?}");
    Ok(())
}

#[test]
fn a_restored_series_continues() {
    check("serial_dump", DumpParts::Whole).unwrap();
}

#[test]
fn a_series_that_is_restored_in_two_parts_continues() {
    check("serial_dump_parts", DumpParts::InTwoParts).unwrap();
}

/// The triggers would number other rows, or refuse the numbers.
#[test]
fn data_that_is_restored_while_triggers_fire_is_refused() {
    assert_caught(check("serial_dump_triggers", DumpParts::WithTriggers), "cannot write number");
}

#[test]
fn a_dump_without_the_numbers_is_caught() {
    assert_caught(check("serial_dump_numbers", DumpParts::WithoutNumbers), "a number came twice");
}
