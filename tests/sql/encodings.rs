//! Names of tables and columns in databases of several encodings are found, created, measured and refused in that encoding.

use cluster::{Answer, Client, Cluster, assert_caught, ensure, limit_memory};

const ENCODINGS: [&str; 4] = ["UTF8", "LATIN1", "EUC_JP", "SQL_ASCII"];

/// A session with client encoding UTF-8, in a database of this encoding with the extension.
fn database(server: &Cluster, encoding: &str) -> Client {
    let name = encoding.to_lowercase();
    let create = format!("CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'");
    server.session().run(&create);
    let mut session = server.connect_to(&name);
    session.run("CREATE EXTENSION snowflake_pg");
    session
}

/// Creates a table of this name, and partitions of it for two days. Returns an error if their names are wrong.
fn check_name(session: &mut Client, name: &str) -> Result<(), String> {
    let table = format!("\"Übung\".\"{}\"", name.replace('"', "\"\""));
    let literal = table.replace('\'', "''");
    session
        .batch_execute(&format!("CREATE TABLE {table} (id bigint) PARTITION BY RANGE (id)"))
        .map_err(|e| format!("{name}: {e:?}"))?;
    // One day, and then two. The first is found again.
    for days in [1, 2] {
        let create =
            format!("SELECT snowflake_create_partitions('{literal}', '1 day', {days}, '2024-02-01 00:00+00')::text");
        let made = session.query(&create, &[]).map_err(|e| format!("{name}, {days} days: {e:?}"))?;
        ensure!(made.len() == 1, "{name}: {} made", made.len());
    }
    let names = format!(
        "SELECT relname::text FROM pg_inherits JOIN pg_class ON oid = inhrelid
         WHERE inhparent = '{literal}'::regclass ORDER BY relname COLLATE \"C\""
    );
    let made = session.all::<String>(&names);
    let expected = ["20240201", "20240202"].map(|day| format!("{name}_{day}"));
    ensure!(made == expected, "{made:?}, not {expected:?}");
    Ok(())
}

#[test]
fn partitions_are_named_after_any_table() {
    let server = Cluster::builder("encodings_names").start();
    for encoding in ENCODINGS {
        let mut session = database(&server, encoding);
        session.run("CREATE SCHEMA \"Übung\"");
        for name in ["Orders", "select", "größe", "a \"b\" \\c", "n'est pas; --", "50 %s"] {
            check_name(&mut session, name).unwrap_or_else(|wrong| panic!("{encoding}: {wrong}"));
        }
    }
}

#[test]
fn a_name_is_as_long_as_it_is_in_the_database() {
    let server = Cluster::builder("encodings_lengths").start();
    // The bytes of a letter in each encoding, tested with the longest name that leaves room for a day.
    for (encoding, letter, bytes) in
        [("UTF8", "ö", 2), ("LATIN1", "ö", 1), ("EUC_JP", "ö", 3), ("EUC_JP", "日", 2), ("SQL_ASCII", "ö", 2)]
    {
        let exists =
            server.session().query_one("SELECT count(*) FROM pg_database WHERE datname = lower($1)", &[&encoding]);
        let mut session = match exists.unwrap().get::<_, i64>(0) {
            0 => database(&server, encoding),
            _ => server.connect_to(&encoding.to_lowercase()),
        };
        session.run("CREATE SCHEMA IF NOT EXISTS \"Übung\"");
        let longest = (63 - "_20240201".len()) / bytes;
        check_name(&mut session, &letter.repeat(longest)).unwrap_or_else(|wrong| panic!("{encoding}: {wrong}"));
        // The negative control. The name is not truncated.
        let cut = check_name(&mut session, &letter.repeat(longest + 1));
        assert_caught(cut, "42622");
    }
}

#[test]
fn the_mark_is_compared_with_a_column_of_any_name() {
    let server = Cluster::builder("encodings_mark").start();
    for (encoding, letter) in [("UTF8", "日"), ("LATIN1", "é"), ("EUC_JP", "日"), ("SQL_ASCII", "é")] {
        let mut session = database(&server, encoding);
        session.run(&format!("CREATE TABLE \"{letter}\" (\"{letter}\" bigint)"));
        session.run(&format!("INSERT INTO \"{letter}\" VALUES (snowflake_nextval())"));
        let set = |column: &str| format!("SELECT snowflake_set_mark(1000, '\"{letter}\"', '{column}')");
        let (code, message) = session.refusal(&set(letter));
        assert_eq!(code, "55000", "{encoding}: {message}");
        assert!(
            message.starts_with("mark 1000 is not above every ID issued by this server in "),
            "{encoding}: {message}"
        );
        assert_eq!(session.code(&set(&letter.repeat(2))).as_deref(), Some("42703"), "{encoding}");
        assert_eq!(session.code(&set(&letter.repeat(64))).as_deref(), Some("42622"), "{encoding}");
        assert_eq!(session.one::<i32>("SELECT 1"), 1);
    }
}

/// A text of 300 MB, whose characters need three bytes each in UTF-8, in a session whose process can grow by at most 700 MB. A
/// copy would end the process, and with it all other sessions.
#[test]
fn a_long_text_is_refused_before_it_is_copied() {
    let server = Cluster::builder("encodings_long").start();
    let mut session = database(&server, "LATIN1");
    let process = limit_memory(&mut session, 700_000_000);
    for call in ["snowflake_timestamp(1, long)", "snowflake_from_text(long)", "snowflake_set_mark(1, 'pg_class', long)"]
    {
        let (code, message) =
            session.refusal(&format!("SELECT {call} FROM repeat(repeat(chr(233), 10000), 30000) AS long"));
        assert!(code == "22023" || code == "42622", "{call}: {code} {message}");
        assert!(message.len() < 400 && message.contains("\\xe9\\xe9"), "{call}: {message}");
    }
    // The control of the limit: PostgreSQL itself runs out of memory, with an error.
    assert_eq!(session.code("SELECT length(repeat(repeat('x', 10000), 90000))").as_deref(), Some("53200"));
    assert_eq!(session.one::<i32>("SELECT pg_backend_pid()"), process);
}

/// In EUC_TW, two characters can be the same character in UTF-8, so a table cannot be locked by its name in UTF-8. The attempt ends when
/// it is cancelled.
#[test]
fn a_table_whose_name_is_ambiguous_does_not_end_a_session() {
    let server = Cluster::builder("encodings_ambiguous").start();
    let mut session = database(&server, "EUC_TW");
    session.run(
        "DO $$BEGIN
             EXECUTE format('CREATE TABLE %I (id bigint)', convert_from('\\x8ea1c4a1', 'EUC_TW'));
             EXECUTE format('CREATE TABLE %I (id bigint)', convert_from('\\xc4a1', 'EUC_TW'));
         END$$",
    );
    let guard = "SELECT snowflake_guard(oid::regclass, 'id') FROM pg_class WHERE relkind = 'r' AND convert_to(relname, 'EUC_TW') = ";
    session.run("SET statement_timeout = '1s'");
    let codes = ["'\\x8ea1c4a1'", "'\\xc4a1'"].map(|name| session.code(&format!("{guard}{name}")));
    assert!(codes.contains(&Some("57014".into())), "{codes:?}");
}
