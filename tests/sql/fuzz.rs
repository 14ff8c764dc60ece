//! Whatever its arguments, a function returns a value or an error of its own, and the arguments that it accepts have one meaning.
//! `SEED` replays a run.

use std::time::{Duration, SystemTime};

use cluster::{Answer, Builder, Chance, Client, Cluster, assert_caught, ensure, rounds, sqlstate};
use postgres::types::ToSql;

use value::{GeneratedLayout, bigint, epoch, text, timestamp, value};

mod value;

/// The SQLSTATEs with which a function that only computes can refuse its arguments.
const REFUSALS: [&str; 3] = ["22023", "22003", "22008"];

/// Additional SQLSTATEs for the name of a column, as in any statement of PostgreSQL: the name is invalid, there is no such column,
/// or the column is not numeric. Also, the mark can be below the IDs of the table.
const COLUMN_REFUSALS: [&str; 8] = ["42601", "42622", "42703", "42804", "42846", "42883", "22023", "55000"];

/// Twitter's epoch, in milliseconds.
const TWITTER: i64 = 1_288_834_974_657;

/// The last epoch that is accepted, 2199-12-31 23:59:59.999 UTC, in milliseconds.
const LAST_EPOCH: i64 = 7_258_118_399_999;

/// A server whose log shows crashes, but not each refused argument of a megabyte.
fn quiet(builder: Builder) -> Cluster {
    builder.set("log_min_messages", "log").set("log_min_error_statement", "panic").start()
}

/// Passes random arguments to every function of the extension that only computes. The functions for COPY do not, whatever they declare.
fn check_outcomes(builder: Builder, name: &str, prepare: &str) -> Result<(), String> {
    let server = quiet(builder);
    let (mut session, mut chance) = (server.session(), Chance::of(name));
    session.run(&format!("SET statement_timeout = '10s'; {prepare}"));
    let pid: i32 = session.one("SELECT pg_backend_pid()");
    let functions = session
        .query(
            "SELECT proname::text, array_agg(format_type(type, NULL) ORDER BY place)
             FROM pg_proc, unnest(proargtypes) WITH ORDINALITY AS arguments (type, place)
             WHERE proname LIKE 'snowflake%' AND proname NOT LIKE 'snowflake_copy%' AND provolatile <> 'v'
                 AND NOT proargtypes::oid[] @> '{regclass}'::regtype[]::oid[]
             GROUP BY pg_proc.oid, proname ORDER BY 1, 2",
            &[],
        )
        .expect("a catalog");
    for function in &functions {
        let (mut accepted, mut refused) = (0, 0);
        let (name, kinds): (String, Vec<String>) = (function.get(0), function.get(1));
        let arguments: Vec<String> = kinds.iter().zip(1..).map(|(kind, n)| format!("${n}::text::{kind}")).collect();
        // A set can be endless.
        let call = format!("SELECT {name}({})::text LIMIT 3", arguments.join(", "));
        let statement = session.prepare(&call).map_err(|e| format!("{call}: {e:?}"))?;
        // If there are many arguments, they seldom fit together.
        for n in 0..30_000 {
            if n >= rounds(1_500, 300) && accepted > 0 {
                break;
            }
            let values: Vec<String> = kinds.iter().map(|kind| value(&mut chance, kind)).collect();
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
            let outcome = session.query(&statement, &values);
            if taken(outcome, &REFUSALS, || format!("{call} {values:?}"))? { accepted += 1 } else { refused += 1 }
        }
        // Texts are neither all valid nor all invalid. A function of times and numbers can accept all values.
        let careful = refused > 20 || !kinds.iter().any(|kind| kind == "text");
        ensure!(accepted > 0 && careful, "{call}: {accepted} accepted, {refused} refused");
    }
    check_alive(&server, &mut session, pid)
}

/// Whether a value was accepted. Returns an error if it was refused with any other SQLSTATE than these.
fn taken<T>(outcome: Result<T, postgres::Error>, refusals: &[&str], what: impl Fn() -> String) -> Result<bool, String> {
    let Err(error) = outcome else { return Ok(true) };
    ensure!(error.as_db_error().is_some(), "{:.300} ended the session: {error:?}", what());
    let (code, message, ..) = sqlstate(&error);
    ensure!(refusals.contains(&code.as_str()), "{:.300} gave {code}: {message:.200}", what());
    Ok(false)
}

/// The session continues in the same process, and no other session was ended by a crash.
fn check_alive(server: &Cluster, session: &mut Client, pid: i32) -> Result<(), String> {
    ensure!(session.one::<i32>("SELECT pg_backend_pid()") == pid, "another backend");
    ensure!(session.one::<i64>("SELECT snowflake_nextval()") > 0, "no ID");
    let log = server.log();
    let crashed = ["PANIC", "terminated by signal", "panicked"].iter().find(|word| log.contains(**word));
    ensure!(crashed.is_none(), "{crashed:?} in the server's log");
    Ok(())
}

#[test]
fn every_argument_gives_a_value_or_an_error_of_its_own() {
    check_outcomes(Cluster::builder("fuzz"), "fuzz", "").unwrap();
}

#[test]
fn a_function_that_fails_for_some_texts_is_caught() {
    // Converts the layout into a single-byte encoding, as a decoder could do.
    let careless = "CREATE FUNCTION snowflake_careless(layout text) RETURNS bytea LANGUAGE sql IMMUTABLE
                        AS $$ SELECT convert_to(layout, 'LATIN1') $$";
    let outcome = check_outcomes(Cluster::builder("fuzz_careless"), "fuzz_careless", careless);
    assert_caught(outcome, "gave 22P05");
}

/// A function that accepts none of its arguments.
#[test]
fn a_function_that_refuses_everything_is_caught() {
    let strict = "CREATE FUNCTION snowflake_careful(layout text) RETURNS bigint LANGUAGE sql IMMUTABLE
                      AS $$ SELECT snowflake_min_id('infinity', layout) $$";
    let outcome = check_outcomes(Cluster::builder("fuzz_careful"), "fuzz_careful", strict);
    assert_caught(outcome, "snowflake_careful($1::text::text)::text LIMIT 3: 0 accepted");
}

/// Writes random texts into the configuration as `setting`. Each is accepted, or refused like any invalid value. `expected` is a
/// query on the text as `$1`, which returns whether the text is valid, or NULL if it does not know.
fn check_setting(name: &str, setting: &str, any: fn(&mut Chance) -> String, expected: &str) -> Result<(), String> {
    let server = quiet(Cluster::builder(name).set("fsync", "off"));
    let (mut session, mut chance) = (server.session(), Chance::of(name));
    session.run(IS_LAYOUT);
    let pid: i32 = session.one("SELECT pg_backend_pid()");
    let expected = session.prepare(expected).expect("a statement");
    let (mut accepted, mut refused, mut known) = (0, 0, 0);
    for _ in 0..rounds(3_000, 2_000) {
        // A setting in a file cannot contain a line end.
        let text = any(&mut chance).replace('\n', " ");
        let set = format!("ALTER SYSTEM SET {setting} = '{}'", text.replace('\'', "''"));
        let taken = taken(session.batch_execute(&set), &["22023"], || format!("{setting} {text:?}"))?;
        let right: Option<bool> = session.query_one(&expected, &[&text]).expect("an answer").get(0);
        ensure!(right.is_none_or(|right| right == taken), "{setting}: taken {taken}, not {right:?}: {text:.200}");
        known += u32::from(right.is_some());
        if taken { accepted += 1 } else { refused += 1 }
    }
    ensure!(accepted > 200 && refused > 200, "{setting}: {accepted} accepted, {refused} refused");
    ensure!(known > 500, "{setting}: only {known} are known");
    check_alive(&server, &mut session, pid)
}

/// Whether the functions accept a text as a layout. The ID 0 is valid in all layouts.
const IS_LAYOUT: &str = "
    CREATE FUNCTION is_layout(layout text) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM snowflake_decode(0, layout);
        RETURN true;
    EXCEPTION WHEN invalid_parameter_value THEN
        -- A longer one is refused by its length.
        RETURN CASE WHEN length(layout) <= 100 THEN false END;
    END $$";

/// Milliseconds in digits, and times of the calendar in ISO 8601, are epochs. Words are not.
const IS_EPOCH: &str = "
    SELECT CASE WHEN $1 ~ '^-?[0-9]{1,30}$' THEN $1::numeric BETWEEN 0 AND 7258118399999
                WHEN $1 ~ ('^[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])'
                           'T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}0*Z$')
                    THEN $1::timestamptz BETWEEN '1970-01-01Z' AND '2199-12-31 23:59:59.999Z'
                WHEN $1 !~ '[0-9]' AND $1 ~ '[[:graph:]]' THEN false END";

#[test]
fn every_text_is_a_setting_or_refused() {
    check_setting("fuzz_layout", "snowflake_pg.layout", text, "SELECT is_layout($1)").unwrap();
    check_setting("fuzz_epoch", "snowflake_pg.epoch", epoch, IS_EPOCH).unwrap();
}

#[test]
fn a_setting_that_takes_other_texts_is_caught() {
    assert_caught(
        check_setting("fuzz_any_text", "application_name", text, "SELECT is_layout($1)"),
        "taken true, not Some(false)",
    );
    assert_caught(
        check_setting("fuzz_no_layout", "snowflake_pg.epoch", text, "SELECT is_layout($1)"),
        "taken false, not Some(true)",
    );
}

#[test]
fn every_name_of_a_column_is_a_column_or_refused() {
    let server = quiet(Cluster::builder("fuzz_column").set("client_min_messages", "error"));
    let (mut session, mut chance) = (server.session(), Chance::of("fuzz_column"));
    session.run(
        "CREATE TABLE orders (id bigint, \"q\"\"q\" bigint, \"日 \\ ' $1\" bigint, n numeric, at timestamptz, t text);
         INSERT INTO orders VALUES (snowflake_nextval(), 1, snowflake_nextval())",
    );
    let pid: i32 = session.one("SELECT pg_backend_pid()");
    let columns =
        ["id", "q\"q", "日 \\ ' $1", "n", "at", "t", "ID", "ctid", "orders", "id, id", "id\" FROM orders; --"];
    let set = session.prepare("SELECT snowflake_set_mark($1, 'orders', $2)").expect("a statement");
    let check = session.prepare("SELECT count(*) FROM snowflake_check('orders', $1)").expect("a statement");
    let mut found = 0;
    for _ in 0..rounds(3_000, 800) {
        let column = if chance.one_in(2) { chance.pick(&columns).to_string() } else { text(&mut chance) };
        let mark = if chance.one_in(2) { 1 } else { bigint(&mut chance) };
        for outcome in [session.query(&set, &[&mark, &column]), session.query(&check, &[&column])] {
            let outcome = taken(outcome, &COLUMN_REFUSALS, || format!("{mark} {column:?}"));
            found += u32::from(outcome.unwrap());
        }
    }
    assert!(found > 50, "{found} columns were found");
    assert_eq!(session.one::<i64>("SELECT count(*) FROM orders"), 1);
    check_alive(&server, &mut session, pid).unwrap();
}

#[test]
fn what_is_accepted_comes_back() {
    let server = quiet(Cluster::builder("fuzz_back").unset("snowflake_pg.worker_id"));
    let (mut session, mut chance) = (server.session(), Chance::of("fuzz_back"));
    let parts = "coalesce(worker_id, 0), sequence, coalesce(datacenter_id, 0)";
    let statements = [
        format!("SELECT snowflake_encode(created_at, {parts}, $2) FROM snowflake_decode($1::bigint, $2)"),
        format!(
            "SELECT snowflake_encode(created_at, {parts}, $2, $3::text::timestamptz)
             FROM snowflake_decode($1::bigint, $2, $3::text::timestamptz)"
        ),
    ];
    let [own, since] = statements.map(|sql| session.prepare(&sql).expect("a statement"));
    let text_back = "SELECT snowflake_to_text(snowflake_from_text($1))::text";
    let text_back = session.prepare(text_back).expect("a statement");
    let (mut ids, mut texts) = (0_u64, 0_u64);
    let rounds = rounds(20_000, 5_000);
    for _ in 0..rounds {
        let (id, given, epoch) = (bigint(&mut chance), text(&mut chance), timestamp(&mut chance));
        let results = [session.query_one(&own, &[&id, &given]), session.query_one(&since, &[&id, &given, &epoch])];
        for row in results.into_iter().flatten() {
            assert_eq!(row.get::<_, i64>(0), id, "{given:?} since {epoch}");
            ids += 1;
        }
        if let Ok(row) = session.query_one(&text_back, &[&given]) {
            let read = given.to_ascii_uppercase().replace(['I', 'L'], "1").replace('O', "0");
            assert_eq!(row.get::<_, String>(0), read);
            texts += 1;
        }
    }
    assert!(ids > rounds / 5 && texts > rounds / 20, "{ids} IDs and {texts} texts came back");
}

/// Encodes and decodes with random layouts and epochs, and compares the results with arithmetic.
fn check_layouts(builder: Builder, name: &str) -> Result<(), String> {
    let server = quiet(builder);
    let (mut session, mut chance) = (server.session(), Chance::of(name));
    let time = |micros: i64| SystemTime::UNIX_EPOCH + Duration::from_micros(micros as u64);
    let all = session
        .prepare(
            "SELECT encoded, created_at, datacenter_id, worker_id, sequence, snowflake_timestamp(encoded, $6, $7),
                    snowflake_min_id($1, $6, $7), snowflake_max_id($1, $6, $7)
             FROM snowflake_encode($1, $2, $3, $4, $6, $7) AS encoded, snowflake_decode($5, $6, $7)",
        )
        .expect("a statement");
    let encode = session.prepare("SELECT snowflake_encode($1, $2, $3, $4, $5, $6)").expect("a statement");
    for _ in 0..200 {
        let layout = GeneratedLayout::any(&mut chance);
        let epoch = if chance.one_in(3) { TWITTER } else { chance.between(0, LAST_EPOCH) };
        // Some layouts outlast PostgreSQL's timestamps, which end shortly after the 64-bit times used here.
        let last_tick = layout.max(0).min((i64::MAX - epoch * 1_000) / layout.tick - 2);
        for sample in 0..8 {
            let mut number = |max| *chance.pick(&[0, max, max / 2, max - max / 3]);
            let (datacenter, worker, sequence) = (number(layout.max(1)), number(layout.max(2)), number(layout.max(3)));
            let tick = if sample < 4 { number(last_tick) } else { chance.between(0, last_tick) };
            let begin = epoch * 1_000 + tick * layout.tick;
            let at = time(begin + chance.between(0, layout.tick - 1));
            let id = layout.id(tick, datacenter, worker, sequence);
            let numbers = [worker, sequence, datacenter].map(|number| number as i32);
            let row = session
                .query_one(&all, &[&at, &numbers[0], &numbers[1], &numbers[2], &id, &layout.text, &time(epoch * 1_000)])
                .map_err(|e| format!("{} {tick} {numbers:?}: {e:?}", layout.text))?;
            let first = layout.id(tick, 0, 0, 0);
            let expected = (
                id,
                time(begin),
                (layout.bits[1] > 0).then_some(numbers[2]),
                (layout.bits[2] > 0).then_some(numbers[0]),
            );
            let found = (row.get(0), row.get(1), row.get(2), row.get(3));
            let what = format!("{} since {epoch}, tick {tick}, {numbers:?}", layout.text);
            ensure!(found == expected, "{what}: {found:?}, not {expected:?}");
            ensure!(row.get::<_, i32>(4) == numbers[1], "{what}: sequence {}", row.get::<_, i32>(4));
            ensure!(row.get::<_, SystemTime>(5) == time(begin), "{what}: {:?}", row.get::<_, SystemTime>(5));
            let range = (row.get::<_, i64>(6), row.get::<_, i64>(7));
            ensure!(range == (first, first + ((1 << layout.shift()) - 1)), "{what}: from {} to {}", range.0, range.1);
        }
        // Values just out of range: the number of a field, the time before the first tick, and the time after the last.
        let (begin, zero) = (epoch * 1_000, 0i32);
        let mut refused = vec![(begin - 1, [zero; 3])];
        refused.extend((last_tick == layout.max(0)).then(|| (begin + (last_tick + 1) * layout.tick, [zero; 3])));
        for (field, number) in [(2, 0), (3, 1), (1, 2)] {
            let mut numbers = [zero; 3];
            if let Ok(above) = i32::try_from(layout.max(field) + 1) {
                numbers[number] = above;
                refused.push((begin, numbers));
            }
        }
        for (at, [worker, sequence, datacenter]) in refused.into_iter().filter(|(at, _)| *at >= 0) {
            let (at, since) = (time(at), time(epoch * 1_000));
            let result = session.query(&encode, &[&at, &worker, &sequence, &datacenter, &layout.text, &since]);
            let code = result.err().map(|error| sqlstate(&error).0);
            ensure!(code.as_deref() == Some("22023"), "{} {at:?} {worker} {sequence}: {code:?}", layout.text);
        }
        if layout.bits.iter().sum::<u32>() < 63 {
            let beyond = layout.id(layout.max(0), layout.max(1), layout.max(2), layout.max(3)) + 1;
            let code = session.code(&format!("SELECT snowflake_decode({beyond}, '{}')", layout.text));
            ensure!(code.as_deref() == Some("22003"), "{} {beyond}: {code:?}", layout.text);
        }
    }
    Ok(())
}

#[test]
fn any_layout_is_arithmetic() {
    check_layouts(Cluster::builder("fuzz_layouts"), "fuzz_layouts").unwrap();
}

#[test]
fn a_decoder_that_ignores_the_epoch_is_caught() {
    let outcome =
        check_layouts(Cluster::builder("fuzz_layouts_fault").fault("DecodeIgnoresEpoch"), "fuzz_layouts_fault");
    assert_caught(outcome, ", not (");
}
