//! Templates, names and serials in databases of several encodings.

use cluster::{Answer, Cluster, limit_memory};

#[test]
fn a_template_is_text_of_the_database() {
    let server = Cluster::builder("serial_encodings").start();
    for (encoding, word) in
        [("UTF8", "Größe日🦀"), ("LATIN1", "Größe"), ("EUC_JP", "日本"), ("SQL_ASCII", "Größe日"), ("WIN1251", "Счёт")]
    {
        let name = encoding.to_lowercase();
        let create = format!("CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'");
        server.session().run(&create);
        let mut session = server.connect_to(&name);
        session
            .batch_execute(&format!(
                "CREATE EXTENSION snowflake_pg;
                 CREATE SCHEMA \"{word}\";
                 SELECT snowflake_create_series('\"{word}\".\"{word} \"\"x\"\"\"', '{word} {{YYYY}}/{{n:3}} {word}');
                 CREATE TABLE \"{word}\".\"{word}\" (id integer, \"{word}\" text, \"{word}1\" date);
                 SELECT snowflake_number_at_commit('\"{word}\".\"{word}\"', '{word}', '\"{word}\".\"{word} \"\"x\"\"\"', '{word}1');"
            ))
            .unwrap_or_else(|e| panic!("{encoding}: {e:?}"));
        let series = format!("'\"{word}\".\"{word} \"\"x\"\"\"'");
        let serial: String = session.one(&format!("SELECT snowflake_serial({series}, date '2026-05-05')"));
        assert_eq!(serial, format!("{word} 2026/001 {word}"), "{encoding}");
        let number: i64 = session.one(&format!("SELECT number FROM snowflake_serial_parse({series}, '{serial}')"));
        assert_eq!(number, 1);
        session.run(&format!("INSERT INTO \"{word}\".\"{word}\" VALUES (1, NULL, '2026-01-01'), (2, NULL, NULL)"));
        let numbers: Vec<Option<String>> =
            session.all(&format!("SELECT \"{word}\" FROM \"{word}\".\"{word}\" ORDER BY id"));
        assert_eq!(numbers, [Some(format!("{word} 2026/002 {word}")), None], "{encoding}");
        let gaps: Vec<String> = session.all(&format!(
            "SELECT g::text FROM snowflake_serial_gaps('\"{word}\".\"{word}\"', '{word}', {series}) AS g"
        ));
        assert_eq!(gaps, ["(2026,1,1)"], "{encoding}");
        let templates: Vec<String> = session.all("SELECT template FROM snowflake_series");
        assert_eq!(templates, [format!("{word} {{YYYY}}/{{n:3}} {word}")], "{encoding}");
        session.run(&format!("SELECT snowflake_alter_series({series}, template => '{word}{word}{{YYYY}}{{n:4}}')"));
        let serial: String = session.one(&format!("SELECT snowflake_serial({series}, date '2026-05-05')"));
        assert_eq!(serial, format!("{word}{word}20260003"), "{encoding}");
        // Errors are readable in every encoding.
        let (code, message) = session.refusal(&format!("SELECT snowflake_serial_parse({series}, '{word}')"));
        assert!(code == "22023" && message.contains("is not a serial of series"), "{encoding}: {message}");
    }
}

/// A text of 300 MB as each argument, in a session whose process can grow by at most 700 MB. A copy would end the process, and with it all
/// other sessions.
#[test]
fn a_long_text_is_refused_before_it_is_copied() {
    let (_server, mut session) = Cluster::builder("serial_long").start_session();
    session.run("SELECT snowflake_create_series('series', 'S{n:3}'); CREATE TABLE rows (number text)");
    let process = limit_memory(&mut session, 700_000_000);
    for call in [
        "snowflake_create_series(long, '{n:3}')",
        "snowflake_create_series('other', long)",
        "snowflake_create_series('other', '{n:3}', long)",
        "snowflake_create_series('other', '{n:3}', time_zone => long)",
        "snowflake_alter_series('series', template => long)",
        "snowflake_alter_series('series', time_zone => long)",
        "snowflake_serial_parse('series', long)",
        "snowflake_serial_gaps('rows', long, 'series')",
        "snowflake_number_at_commit('rows', long, 'series')",
        "snowflake_number_at_commit('rows', 'number', 'series', long)",
    ] {
        let (code, message) = session.refusal(&format!("SELECT {call} FROM repeat(repeat('x', 10000), 30000) AS long"));
        assert!(code == "22023" || code == "42622", "{call}: {code} {message}");
        assert!(message.len() < 400 && message.contains("xxxx"), "{call}: {message}");
    }
    // The control of the limit: PostgreSQL itself runs out of memory, with an error.
    assert_eq!(session.code("SELECT length(repeat(repeat('x', 10000), 90000))").as_deref(), Some("53200"));
    assert_eq!(session.one::<i32>("SELECT pg_backend_pid()"), process);
}
