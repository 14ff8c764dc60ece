//! Whatever the template, the name, the time zone and the time, a series is created and its serials are read back, or the arguments are
//! refused. `SEED` replays a run.

use cluster::{Answer, Chance, Client, Cluster, sqlstate};
use postgres::types::ToSql;

const PIECES: [&str; 30] = [
    "{YYYY}", "{YY}", "{MM}", "{DD}", "{HH}", "{n:1}", "{n:5}", "{n:18}", "{n:19}", "{n:0}", "{n}", "{", "}", "{}",
    "{yyyy}", "-", "/", " ", "'", "\"", "\\", "\\000", "%s", "$1", "é", "日", "🦀", "0", "\n", "\u{1}",
];

const ZONES: [&str; 9] =
    ["UTC", "Europe/Berlin", "europe/london", "Asia/Kathmandu", "CET-1", "nowhere", "", "../../etc/passwd", "\u{1}"];

const TIMES: [&str; 10] = [
    "now",
    "infinity",
    "-infinity",
    "4714-11-24 00:00:00+00 BC",
    "294276-12-31 23:59:59.999999+00",
    "epoch",
    "1999-12-31 23:59:59Z",
    "2099-12-31 23:59:59Z",
    "0001-01-01 00:00:00Z",
    "9999-12-31 23:59:59Z",
];

/// A template that is often valid.
fn template(chance: &mut Chance) -> String {
    let mut pieces: Vec<&str> = (0..chance.between(0, 6)).map(|_| *chance.pick(&PIECES)).collect();
    if chance.one_in(2) {
        let times = ["{YYYY}", "{MM}", "{DD}", "{HH}"];
        pieces.retain(|piece| !piece.contains(['{', '}']));
        pieces.extend(&times[..chance.between(0, 4) as usize]);
        pieces.push("{n:4}");
    }
    let text = pieces.concat();
    if chance.one_in(50) { text.repeat(chance.between(1, 100_000) as usize) } else { text }
}

/// Runs a query with parameters. Returns its first column as text, or the SQLSTATE of a refusal, which must be one of these.
fn ask(session: &mut Client, query: &str, values: &[&str], refusals: &[&str]) -> Result<String, String> {
    let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
    match session.query_one(query, &values) {
        Ok(row) => Ok(row.get(0)),
        Err(error) => {
            let (code, message, _, _) = sqlstate(&error);
            assert!(refusals.contains(&code.as_str()), "{query} {values:?}: {code} {message}");
            Err(code)
        }
    }
}

#[test]
fn every_argument_gives_a_serial_or_an_error_of_its_own() {
    let server =
        Cluster::builder("serial_fuzz").set("log_min_messages", "log").set("log_min_error_statement", "panic").start();
    let (mut session, mut chance) = (server.session(), Chance::of("serial_fuzz"));
    let pid: i32 = session.one("SELECT pg_backend_pid()");
    let (mut created, mut refused, mut issued) = (0, 0, 0);
    for n in 0..400 {
        let (form, zone) = (template(&mut chance), *chance.pick(&ZONES));
        let name = if chance.one_in(10) { template(&mut chance) } else { "series".into() };
        let start = chance.between(-1, 1_000).to_string();
        session.run("BEGIN");
        let create = "SELECT snowflake_create_series($1, $2, time_zone => $3, start => $4::text::bigint)::oid::text";
        let outcome = ask(&mut session, create, &[&name, &form, zone, &start], &["22023", "42601", "42622", "42P07"]);
        let Ok(series) = outcome else {
            refused += 1;
            session.run("ROLLBACK");
            continue;
        };
        created += 1;
        let stored: String = session.one(&format!("SELECT template FROM snowflake_series WHERE series = {series}"));
        assert_eq!(stored, form);
        for _ in 0..3 {
            session.run("SAVEPOINT s");
            let at = *chance.pick(&TIMES);
            let (kind, refusals) = match chance.one_in(2) {
                true => ("date", &["22008", "2200H", "22023"][..]),
                false => ("timestamptz", &["22008", "2200H"][..]),
            };
            let next = format!("SELECT snowflake_serial($1::text::oid::regclass, $2::text::timestamptz::{kind})");
            match ask(&mut session, &next, &[&series, at], refusals) {
                Err(_) => session.run("ROLLBACK TO s"),
                Ok(serial) => {
                    issued += 1;
                    let read = "SELECT p.number = c.last_number AND p.period = c.period
                                FROM snowflake_serial_parse($1::text::oid::regclass, $2) AS p, TABLE_NAME AS c ORDER BY 1 DESC LIMIT 1";
                    let table: String = session.one(&format!("SELECT {series}::regclass::text"));
                    let right = session.query_one(&read.replace("TABLE_NAME", &table), &[&series, &serial]).unwrap();
                    assert!(right.get::<_, bool>(0), "{form:?} {at}: {serial:?}");
                    // A text that differs is refused or has another meaning.
                    let other = serial.replacen(|c: char| c.is_ascii_digit(), "x", 1);
                    session.run("SAVEPOINT t");
                    let parse = "SELECT p::text FROM snowflake_serial_parse($1::text::oid::regclass, $2) AS p";
                    if ask(&mut session, parse, &[&series, &other], &["22023"]).is_err() {
                        session.run("ROLLBACK TO t");
                    }
                }
            }
        }
        session.run("ROLLBACK");
        // A random text as a template of an existing series, and as a serial.
        if n % 10 == 0 {
            let text = template(&mut chance);
            session.run(
                "BEGIN; SELECT snowflake_create_series('fixed', '{YYYY}-{n:3}'); SELECT snowflake_serial('fixed')",
            );
            let alter = "SELECT snowflake_alter_series('fixed', template => $1, time_zone => $2)::text";
            let _ = ask(&mut session, alter, &[&text, zone], &["22023", "55000"]);
            session.run("ROLLBACK");
        }
    }
    assert!(created > 30 && refused > 30 && issued > 40, "{created} created, {refused} refused, {issued} issued");
    assert_eq!(session.one::<i32>("SELECT pg_backend_pid()"), pid);
    let log = server.log();
    let crashed = ["PANIC", "terminated by signal", "panicked"].iter().find(|word| log.contains(**word));
    assert_eq!(crashed, None);
}

/// The trigger functions with arguments and tables that nobody would give them.
#[test]
fn triggers_that_were_made_by_hand_give_an_error_of_their_own() {
    let server = Cluster::builder("serial_fuzz_triggers").start();
    let (mut session, mut chance) = (server.session(), Chance::of("serial_fuzz_triggers"));
    session.run(
        "SELECT snowflake_create_series('series', 'S{n:3}');
         CREATE TABLE rows (period text, last_number bigint, number text, day date, at timestamp, n integer)",
    );
    let arguments = r"'number' 'S{n:3}' 'gapless' 'UTC' '1' 'series' 'day' 'at' 'rows' '' 'x' '\000' 3 'ctid'";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let expected = [
        "39P01", "22023", "55000", "42703", "42P01", "42809", "42804", "42883", "2200H", "27000", "0A000", "42601",
        "42602", "23502", "428C9",
    ];
    let (mut done, mut refused) = (0, 0);
    for _ in 0..1_500 {
        let function = *chance.pick(&["snowflake_series_row", "snowflake_number_row", "snowflake_number_keep"]);
        let timing = *chance.pick(&["BEFORE", "AFTER"]);
        let event = *chance.pick(&["INSERT", "UPDATE", "DELETE", "TRUNCATE", "INSERT OR UPDATE"]);
        let level = if event == "TRUNCATE" { "STATEMENT" } else { *chance.pick(&["ROW", "ROW", "ROW", "STATEMENT"]) };
        let given: Vec<&str> = (0..chance.between(0, 4)).map(|_| *chance.pick(&arguments)).collect();
        // Only a constraint trigger can name another table.
        let (kind, from) = match timing == "AFTER" && level == "ROW" && chance.one_in(2) {
            true => ("CONSTRAINT TRIGGER", *chance.pick(&["FROM series", "FROM rows"])),
            false => ("TRIGGER", ""),
        };
        let create = format!(
            "CREATE {kind} odd {timing} {event} ON rows {from} FOR EACH {level} EXECUTE FUNCTION {function}({})",
            given.join(", ")
        );
        session.run("BEGIN; INSERT INTO rows VALUES ('', 1), (NULL, NULL)");
        session.run(&create);
        let statements =
            "INSERT INTO rows VALUES ('', 2, NULL, '2026-01-01', now()); UPDATE rows SET n = 2; DELETE FROM rows;
            TRUNCATE rows";
        match session.code(statements) {
            None => done += 1,
            Some(code) => {
                refused += 1;
                assert!(expected.contains(&code.as_str()), "{create}: {code}");
            }
        }
        session.run("ROLLBACK");
    }
    for column in ["ctid", "at", "n"] {
        session.run(&format!(
            "BEGIN; CREATE CONSTRAINT TRIGGER odd AFTER INSERT ON rows FROM series
                 FOR EACH ROW EXECUTE FUNCTION snowflake_number_row(number, {column})"
        ));
        assert_eq!(session.code("INSERT INTO rows (n) VALUES (1)").as_deref(), Some("42804"), "{column}");
        session.run("ROLLBACK");
    }
    assert!(refused > 300 && done + refused == 1_500, "{done} done, {refused} refused");
    assert!(!server.log().contains("terminated by signal"));
}
