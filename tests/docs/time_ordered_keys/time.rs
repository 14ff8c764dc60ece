//! The functions that read the time in keys, compared with the libraries that made the keys.

use cluster::{Answer, Client, assert_caught, ensure};
use fastrand::Rng;

use super::kind::{Format, KINDS, KeyKind};
use super::{CHECK, block_of, told};
use crate::migration::page::{Edit, builder};

/// Replaces the function by the one for this kind, and the table of documents by one with keys of this kind. Keys in text are in
/// a `varchar`. `default.rs` reads those in a `char`.
fn create(session: &mut Client, kind: KeyKind, edit: Edit) {
    let function = kind.function().replace(edit.0, edit.1);
    let column = if kind.column == "text" { "varchar" } else { kind.column };
    let table = format!("DROP TABLE IF EXISTS documents; CREATE TABLE documents (id {column})");
    session.batch_execute(&format!("DROP FUNCTION IF EXISTS key_time; {function}; {table}")).unwrap();
}

/// Checks that each key has the time, in milliseconds since 1970, with which it was made.
fn check_times(session: &mut Client, kind: KeyKind, keys: &[(String, u64)]) -> Result<(), String> {
    let rows: Vec<String> = keys.iter().map(|(key, ms)| format!("('{key}'::{}, {ms})", kind.column)).collect();
    let wrong: Vec<String> = session.all(&format!(
        "SELECT concat_ws(' ', key, ms, key_time(key)) FROM (VALUES {}) AS keys (key, ms)
         WHERE round(extract(epoch FROM key_time(key)) * 1000) IS DISTINCT FROM ms::numeric LIMIT 3",
        rows.join(", ")
    ));
    ensure!(wrong.is_empty(), "{kind:?} has wrong times: {wrong:?}");
    Ok(())
}

/// Returns random keys of random times, and keys of the first and last time, with the smallest and the largest rest.
fn keys(kind: KeyKind) -> Vec<(String, u64)> {
    let mut random = Rng::with_seed(20_101_104);
    let (first, last) = kind.range();
    let mut times: Vec<u64> = (0..3_000).map(|_| random.u64(first..=last)).collect();
    times.extend((0..3_000).map(|_| random.u64(first.max(1_400_000_000_000)..=2_000_000_000_000)));
    times.extend([first, last, last - kind.unit(), first + kind.unit()]);
    let rounded = |ms: u64| ms / kind.unit() * kind.unit();
    let mut keys: Vec<(String, u64)> = times.iter().map(|ms| (kind.random(*ms, &mut random), rounded(*ms))).collect();
    for ms in [first, last] {
        keys.extend([0, u128::MAX].map(|rest| (kind.key(ms, rest), rounded(ms))));
    }
    keys
}

#[test]
fn times_are_those_of_the_libraries() {
    let server = builder().set("timezone", "Asia/Kathmandu").start();
    let mut session = server.session();
    for kind in KINDS {
        create(&mut session, kind, ("", ""));
        check_times(&mut session, kind, &keys(kind)).unwrap();
        if kind.column == "text" && kind.format != Format::Ksuid {
            let swap = |key: &str| {
                let swapped = |c: char| if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
                key.chars().map(swapped).collect()
            };
            let other: Vec<(String, u64)> = keys(kind).iter().map(|(key, ms)| (swap(key), *ms)).collect();
            check_times(&mut session, kind, &other).unwrap();
        }
        let null: bool = session.one(&format!("SELECT key_time(NULL::{}) IS NULL", kind.column));
        assert!(null, "{kind:?}: NULL has a time");
    }
}

#[test]
fn published_keys_have_their_published_times() {
    let server = builder().start();
    let mut session = server.session();
    // From the specification of ULID, RFC 9562, the README of segmentio/ksuid, and MongoDB's manual of ObjectId.getTimestamp().
    for (format, column, key, time) in [
        (Format::Ulid, "text", "01ARYZ6S41TSV4RRFFQ69G5FAV", "2016-07-30 22:36:16.385+00"),
        (Format::Uuidv7, "uuid", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "2022-02-22 19:22:22+00"),
        (Format::Ksuid, "text", "0ujtsYcgvSTl8PAuAdqWYSMnLOv", "2017-10-10 04:00:47+00"),
        (Format::Ksuid, "bytea", "\\x0669F7EFB5A1CD34B5F99D1154FB6853345C9735", "2017-10-10 04:00:47+00"),
        (Format::ObjectId, "text", "507c7f79bcf86cd7994f6c0e", "2012-10-15 21:26:17+00"),
    ] {
        create(&mut session, KeyKind::of(format, column), ("", ""));
        let read: String = session.one(&format!("SELECT (key_time('{key}') AT TIME ZONE 'UTC')::text || '+00'"));
        assert_eq!(read, time, "{key}");
    }
}

#[test]
fn a_function_with_another_epoch_or_alphabet_is_caught() {
    let server = builder().start();
    let mut session = server.session();
    for (format, edit) in [
        (Format::Ksuid, ("1400000000", "1300000000")),
        (
            Format::Ksuid,
            (
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
            ),
        ),
        (Format::Ulid, ("VWXYZ'", "UVWXY'")),
        (Format::ObjectId, ("bit(32)", "bit(31)")),
    ] {
        let kind = KeyKind::of(format, "text");
        assert!(kind.function().contains(edit.0), "{edit:?}");
        create(&mut session, kind, edit);
        assert_caught(check_times(&mut session, kind, &keys(kind)), "has wrong times");
    }
}

/// A function without a subquery costs no call.
#[test]
fn short_functions_are_inlined() {
    let server = builder().start();
    let mut session = server.session();
    for kind in KINDS {
        create(&mut session, kind, ("", ""));
        let plan = session.plan("(VERBOSE, COSTS OFF) SELECT key_time(id) FROM documents");
        let inlined = !plan.contains("key_time");
        assert_eq!(inlined, !kind.function().contains("SELECT"), "{kind:?}:\n{plan}");
    }
}

/// PostgreSQL 18 has a function for the same purpose.
#[test]
fn from_18_on_the_built_in_function_agrees() {
    told("uuid_extract_timestamp");
    let server = builder().start();
    let mut session = server.session();
    let kind = KeyKind::of(Format::Uuidv7, "uuid");
    create(&mut session, kind, ("", ""));
    let built_in: bool = session.one("SELECT current_setting('server_version_num')::int >= 180000");
    if built_in {
        for (key, _) in keys(kind).into_iter().filter(|(_, ms)| *ms < 4_000_000_000_000) {
            let same = format!("SELECT uuid_extract_timestamp('{key}') = key_time('{key}')");
            assert!(session.one::<bool>(&same), "{key}");
        }
        let default =
            "ALTER TABLE documents ALTER COLUMN id SET DEFAULT uuidv7(); INSERT INTO documents VALUES (DEFAULT)";
        session.batch_execute(default).unwrap();
        let recent = "SELECT key_time(id) BETWEEN now() - interval '1 min' AND now() + interval '1 min' FROM documents";
        assert!(session.one::<bool>(recent));
    }
}

#[test]
fn the_check_finds_every_key_that_cannot_be_used() {
    let server = builder().start();
    let mut session = server.session();
    let mut random = Rng::with_seed(2);
    for kind in KINDS {
        create(&mut session, kind, ("", ""));
        let insert = |session: &mut Client, keys: &[String]| {
            for key in keys {
                session.batch_execute(&format!("INSERT INTO documents VALUES ('{key}')")).unwrap();
            }
        };
        let check = block_of(CHECK, "AS problem");
        let usual: Vec<String> = (0..10).map(|_| kind.random(1_700_000_000_000, &mut random)).collect();
        insert(&mut session, &usual);
        let mut wanted: Vec<String> = Vec::new();
        assert_eq!(problems(&mut session, &check), wanted);
        let most = cluster::printed(&mut session, &block_of(CHECK, "LIMIT 3")).unwrap();
        assert_eq!(most.len(), 1, "{most:?}");
        assert!(most[0].ends_with(" 10"), "{most:?}");
        let range = cluster::printed(&mut session, &block_of(CHECK, "min(key_time(id))")).unwrap();
        assert!(range[0].matches("2023-11-14").count() == 2, "{range:?}");
        // Two thousand and forty is in the future for each kind, and KSUIDs begin after the epoch.
        insert(&mut session, &[kind.random(2_208_988_800_000, &mut random)]);
        wanted.push("in the future 1".into());
        if kind.format != Format::Ksuid {
            insert(&mut session, &[kind.random(1_288_834_973_657, &mut random)]);
            wanted.insert(0, "before the epoch 1".into());
        }
        let malformed = kind.malformed();
        insert(&mut session, &malformed);
        if !malformed.is_empty() {
            wanted.push(format!("malformed {}", malformed.len()));
        }
        assert_eq!(problems(&mut session, &check), wanted, "{kind:?}");
    }
}

/// Returns the problems that a query of the page finds, each with its number of keys.
fn problems(session: &mut Client, query: &str) -> Vec<String> {
    let query = query.trim().trim_end_matches(';');
    session.all(&format!("SELECT concat(problem, ' ', count) FROM ({query}) AS found ORDER BY 1"))
}
