//! Series of kind `dense`: the numbers of each period are a segment, which the registry creates when a server first needs it.

use std::thread;

use cluster::{Answer, Builder, Client, Cluster, Stop, assert_caught, copy_ids, ensure, within};

use crate::servers::{SOON, empty_registry, server};

const CREATE: &str =
    "SELECT snowflake_create_series('ticket', 'T-{YYYY}{MM}{DD}-{n:7}', kind => 'dense', time_zone => 'Europe/Berlin')";
const NEXT: &str = "SELECT snowflake_serial('ticket', timestamptz '2026-03-01 12:00Z')";

fn with_series(builder: Builder) -> Cluster {
    let server = builder.start();
    server.session().one::<String>(&format!("{CREATE}::text"));
    server
}

/// Three servers with two sessions each issue serials of two days.
fn check(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let registry = empty_registry(name);
    let servers: Vec<_> = (1..=3).map(|n| with_series(change(server(&format!("{name}_{n}"), &registry)))).collect();
    let count = 5_000;
    let day = |session: usize| ["2026-02-27", "2026-02-28"][session % 2];
    let serials: Vec<Vec<i64>> = thread::scope(|scope| {
        let issue = |server: &Cluster, session| {
            // The number without its period, which distinguishes the days.
            let sql = format!(
                "SELECT replace(substr(snowflake_serial('ticket', date '{}'), 9), '-', '')::bigint
                 FROM generate_series(1, {count})",
                day(session)
            );
            copy_ids(&mut server.connect(), &sql)
        };
        let sessions = servers.iter().flat_map(|server| (0..2).map(move |session| (server, session)));
        let threads: Vec<_> = sessions.map(|(server, session)| scope.spawn(move || issue(server, session))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a session issues serials")).collect()
    });
    let mut all: Vec<i64> = serials.into_iter().flatten().collect();
    all.sort_unstable();
    let pairs = all.windows(2).filter(|pair| pair[0] == pair[1]).count();
    ensure!(pairs == 0, "{pairs} serials came twice");
    for day in [27, 28] {
        let first = all.iter().find(|number| **number / 10_000_000 == day);
        ensure!(first == Some(&(day * 10_000_000 + 1)), "the day begins with {first:?}");
    }
    let tags: Vec<String> = registry
        .connect()
        .query("SELECT tag || ' ' || begins_at AT TIME ZONE 'UTC' FROM snowflake_registry.segments ORDER BY 1", &[])
        .map(|rows| rows.iter().map(|row| row.get(0)).collect())
        .expect("a superuser may");
    let expected =
        ["series public.ticket 2026-02-27 2026-02-26 23:00:00", "series public.ticket 2026-02-28 2026-02-27 23:00:00"];
    ensure!(tags == expected, "{tags:?}");
    Ok(())
}

#[test]
fn several_servers_issue_serials_of_one_series_and_none_twice() {
    check("dense_many", |builder| builder).unwrap();
}

#[test]
fn a_series_with_blocks_of_each_session_is_caught() {
    assert_caught(check("dense_private", |builder| builder.fault("BlockPerSession")), "serials came twice");
}

/// A standby that knows nothing of the tag becomes the registry.
fn fail_over(name: &str, prepare: impl Fn(&mut Client)) -> Result<(), String> {
    let mut first = empty_registry(&format!("{name}_a"));
    prepare(&mut first.connect());
    let mut known = with_series(server(&format!("{name}_1"), &first));
    let standby = first.standby(Cluster::builder(&format!("{name}_b")).unset("shared_preload_libraries"));
    let late = first.leave_behind(&standby);
    let issued: Vec<String> = (0..5).map(|_| known.connect().one(NEXT)).collect();
    ensure!(issued[0] == "T-20260301-0000001", "{issued:?}");
    known.stop(Stop::Immediate);
    first.stop(Stop::Immediate);
    drop(late);
    standby.promote();
    let other = with_series(server(&format!("{name}_2"), &standby));
    let next: String = other.connect().one(NEXT);
    ensure!(!issued.contains(&next), "{next} came twice");
    // A day that begins after the failover begins with 1.
    let mut client = standby.connect();
    client.run("UPDATE snowflake_registry.skip SET since = '2026-02-01'");
    let later: String = other.connect().one("SELECT snowflake_serial('ticket', date '2026-03-02')");
    ensure!(later == "T-20260302-0000001", "{later}");
    // The skip is at most a quarter of the numbers.
    let number: i64 = other.connect().one(&format!("SELECT number FROM snowflake_serial_parse('ticket', '{next}')"));
    ensure!(number < 2_500_000, "{number}");
    Ok(())
}

#[test]
fn a_period_that_the_registry_has_lost_goes_on_above_its_numbers() {
    fail_over("dense_lost", |_| {}).unwrap();
}

#[test]
fn a_period_that_begins_again_is_caught() {
    let without_lives = |client: &mut Client| {
        let definition: String = client.one(
            "SELECT pg_get_functiondef(oid) FROM pg_proc
             WHERE oid = 'snowflake_registry.begin_segment(uuid, text, timestamptz, bigint, bigint, bigint)'::regprocedure",
        );
        let wrong = definition.replace("min(k.life) - 1", "max(k.life)");
        assert_ne!(wrong, definition);
        client.run(&wrong);
    };
    assert_caught(fail_over("dense_again", without_lives), "came twice");
}

#[test]
fn a_period_that_has_not_begun_is_refused() {
    let registry = empty_registry("dense_early");
    let server = with_series(server("dense_early_1", &registry));
    let mut client = server.connect();
    let soon = "SELECT snowflake_serial('ticket', now() + interval '2 days')";
    let tag: String = client.one(
        "SELECT format('series public.ticket %s', ((now() + interval '2 days') AT TIME ZONE 'Europe/Berlin')::date)",
    );
    let begins: String = client.one(
        "SELECT to_char(date_trunc('day', now() + interval '2 days', 'Europe/Berlin') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS')",
    );
    for _ in 0..2 {
        let [code, message, detail, hint] = client.error(soon);
        assert_eq!([code, message], ["55000".into(), format!("the period of segment \"{tag}\" has not begun")]);
        assert_eq!(
            detail,
            format!(
                "The period begins at {begins}+00:00, which is more than 10 minutes ahead of the registry's clock."
            )
        );
        assert!(
            hint.starts_with("Pass a time in a period that has begun, or use a series of kind \"gapless\"."),
            "{hint}"
        );
    }
    let shown = format!("SELECT state || ': ' || last_error FROM snowflake_segments WHERE tag = '{tag}'");
    assert_eq!(client.one::<String>(&shown), "refused: the period has not begun");
    // The hints work.
    assert!(client.one::<String>("SELECT snowflake_serial('ticket')").ends_with("-0000001"));
    client.run("SELECT snowflake_create_series('plan', 'P-{YYYY}{MM}{DD}-{n:7}', kind => 'gapless')");
    assert!(client.one::<String>(&soon.replace("ticket", "plan")).ends_with("-0000001"));
}

#[test]
fn the_numbers_of_a_series_are_drawn_by_nothing_but_the_series() {
    let registry = empty_registry("dense_named");
    let server = with_series(server("dense_named_1", &registry));
    let mut client = server.connect();
    assert_eq!(client.one::<String>(NEXT), "T-20260301-0000001");
    let draw = "SELECT snowflake_segment_nextval('series public.ticket 2026-03-01')";
    let [code, message, detail, hint] = client.error(draw);
    assert_eq!(
        [code, message, detail],
        ["22023", "segment \"series public.ticket 2026-03-01\" belongs to a series", ""]
    );
    assert_eq!(hint, "Call snowflake_serial() with the series, or pass a tag that does not begin with \"series \".");
    assert_eq!(client.one::<String>(NEXT), "T-20260301-0000002");
}

/// The first and the last day that a template can have, which begin in another year in UTC.
#[test]
fn the_first_and_the_last_day_are_periods() {
    let registry = empty_registry("dense_days");
    let (_server, mut client) = server("dense_days_1", &registry).start_session();
    for (n, zone) in ["Europe/Berlin", "Asia/Tokyo", "America/Los_Angeles"].iter().enumerate() {
        let create = format!(
            "SELECT snowflake_create_series('days{n}', '{{YYYY}}{{MM}}{{DD}}-{{n:4}}', kind => 'dense', time_zone => '{zone}')"
        );
        client.run(&create);
        assert_eq!(
            client.one::<String>(&format!("SELECT snowflake_serial('days{n}', date '0001-01-01')")),
            "00010101-0001"
        );
        let [code, message, ..] = client.error(&format!("SELECT snowflake_serial('days{n}', date '9999-12-31')"));
        assert_eq!(
            [code, message],
            ["55000".into(), format!("the period of segment \"series public.days{n} 9999-12-31\" has not begun")]
        );
    }
}

/// The tag is the same whatever the server quotes.
#[test]
fn a_tag_does_not_depend_on_settings_or_keywords() {
    let registry = empty_registry("dense_quotes");
    let (_server, mut client) = server("dense_quotes_1", &registry).start_session();
    for (name, tag) in
        [("ticket", "public.ticket"), ("system_user", "public.system_user"), ("\"Two \"\"x\"", "public.\"Two \"\"x\"")]
    {
        client.run(&format!(
            "SET quote_all_identifiers = on;
             SELECT snowflake_create_series('{name}', '{{YYYY}}-{{n:4}}', kind => 'dense')"
        ));
        assert_eq!(client.one::<String>(&format!("SELECT snowflake_serial('{name}', date '2026-01-01')")), "2026-0001");
        let found = format!("SELECT count(*) FROM snowflake_registry.segments WHERE tag = 'series {tag} 2026'");
        assert_eq!(registry.connect().one::<i64>(&found), 1, "{tag}");
    }
}

/// A registry that was created again, because the former one was lost with all its data.
#[test]
fn a_period_of_a_registry_that_was_lost_begins_where_its_owner_says() {
    let registry = Cluster::builder("dense_replaced").start();
    registry.connect().run(
        "CREATE EXTENSION snowflake_registry;
         SELECT snowflake_registry.create_fleet('41:10:12', not_before => '2026-03-05 00:00Z')",
    );
    let server = with_series(server("dense_replaced_1", &registry));
    let mut client = server.connect();
    let [code, message, _, hint] = client.error(NEXT);
    assert_eq!([code, message], ["42704", "segment \"series public.ticket 2026-03-01\" does not exist"]);
    assert!(hint.contains("create_segment(tag, start, begins_at => ..) as the owner of the registry"), "{hint}");
    registry.connect().one::<i64>(
        "SELECT snowflake_registry.create_segment('series public.ticket 2026-03-01', 100, begins_at => '2026-02-28 23:00Z')",
    );
    assert_eq!(client.one::<String>(NEXT), "T-20260301-0000100");
    assert_eq!(client.one::<String>("SELECT snowflake_serial('ticket', date '2026-03-06')"), "T-20260306-0000001");
}

#[test]
fn a_dense_series_has_no_counters() {
    let registry = empty_registry("dense_counters");
    let server = with_series(server("dense_counters_1", &registry));
    let mut client = server.connect();
    client.run("CREATE TABLE tickets (number text)");
    for statement in [
        "INSERT INTO ticket VALUES ('2026-03-01', 5)",
        "SELECT * FROM snowflake_serial_gaps('tickets', 'number', 'ticket')",
    ] {
        let [code, message, detail, hint] = client.error(statement);
        assert_eq!([code, message], ["55000", "series \"public.ticket\" has no counters"]);
        assert_eq!(detail, "Its kind is \"dense\": the registry issues its numbers, and numbers can be missing.");
        assert_eq!(hint, "Use a series of kind \"gapless\".");
    }
}

#[test]
fn the_segment_of_a_series_is_not_dropped() {
    let registry = empty_registry("dense_drop");
    let server = with_series(server("dense_drop_1", &registry));
    assert_eq!(server.connect().one::<String>(NEXT), "T-20260301-0000001");
    let mut owner = registry.connect();
    let [code, message, detail, hint] =
        owner.error("SELECT snowflake_registry.drop_segment('series public.ticket 2026-03-01')");
    assert_eq!([code, message], ["55006", "tag \"series public.ticket 2026-03-01\" belongs to a series"]);
    assert!(
        detail.ends_with("would issue the same numbers again.") && hint.starts_with("Keep the tag, which"),
        "{detail} {hint}"
    );
    assert_eq!(server.connect().one::<String>(NEXT), "T-20260301-0000002");
    // The hint works, and the server discards what it holds when it hears of it.
    owner.one::<i64>("SELECT snowflake_registry.recreate_segment('series public.ticket 2026-03-01', 500, 1, 1)");
    assert!(within(SOON, || server.connect().one::<String>(NEXT).as_str() > "T-20260301-0000499"), "{}", server.log());
}

#[test]
fn a_series_without_periods_has_a_segment_that_its_owner_creates() {
    let registry = empty_registry("dense_one");
    let (_server, mut client) = server("dense_one_1", &registry).start_session();
    client.run("SELECT snowflake_create_series('ticket', 'T{n:5}', kind => 'dense')");
    let [code, message, _, hint] = client.error("SELECT snowflake_serial('ticket')");
    assert_eq!([code, message], ["42704", "segment \"public.ticket\" does not exist"]);
    assert_eq!(
        hint,
        "In the database of the registry, run SELECT snowflake_registry.create_segment(tag) as the owner of the registry."
    );
    // The hint works.
    registry.connect().one::<i64>("SELECT snowflake_registry.create_segment('public.ticket', 99998, 10, 100)");
    assert_eq!(client.one::<String>("SELECT snowflake_serial('ticket')"), "T99998");
    assert_eq!(client.one::<String>("SELECT snowflake_serial('ticket')"), "T99999");
    let [code, message, ..] = client.error("SELECT snowflake_serial('ticket')");
    assert_eq!(code, "2200H", "{message}");
}

#[test]
fn a_series_without_a_registry_says_what_to_do() {
    let server = with_series(Cluster::builder("dense_without"));
    let [code, message, ..] = server.connect().error(NEXT);
    assert_eq!([code, message], ["55000", "this server has no registry"]);
}

/// The tag is part of the definition, so the numbers go on under another name and in another database.
#[test]
fn a_series_that_is_renamed_or_restored_goes_on() {
    let registry = empty_registry("dense_restored");
    let server = with_series(server("dense_restored_1", &registry));
    let mut client = server.connect();
    assert_eq!(client.one::<String>(NEXT), "T-20260301-0000001");
    client.run("ALTER TABLE ticket RENAME TO case_number");
    server.restore_dump("postgres", "other");
    let mut other = server.connect_to("other");
    let next = NEXT.replace("ticket", "case_number");
    assert_eq!(other.one::<String>(&next), "T-20260301-0000002");
    assert_eq!(client.one::<String>(&next), "T-20260301-0000003");
    let kinds = "SELECT kind || ' ' || template FROM snowflake_series";
    assert_eq!(other.one::<String>(kinds), "dense T-{YYYY}{MM}{DD}-{n:7}");
    // Numbers are not part of transactions: a row that is rolled back leaves a gap.
    other.run(&format!("BEGIN; {next}; ROLLBACK"));
    assert_eq!(other.one::<String>(&next), "T-20260301-0000005");
    // What the servers of the fleet must agree on cannot change, even if nothing was issued.
    client.run("SELECT snowflake_create_series('fixed', 'F{YYYY}{n:5}', kind => 'dense', time_zone => 'UTC')");
    for (part, change) in [
        ("periods", "template => 'F{YYYY}{MM}{n:5}'"),
        ("first number", "start => 2"),
        ("time zone", "time_zone => 'Asia/Tokyo'"),
        ("width of the number", "template => 'F{YYYY}{n:4}'"),
    ] {
        let [code, message, ..] = client.error(&format!("SELECT snowflake_alter_series('fixed', {change})"));
        assert_eq!([code, message], ["55000".into(), format!("cannot change the {part} of series \"public.fixed\"")]);
    }
    let unchanged =
        "SELECT snowflake_alter_series('fixed', template => 'F{YYYY}{n:6}', time_zone => 'UTC', start => 1)";
    client.run(unchanged);
}

#[test]
fn a_name_that_is_too_long_for_a_tag_is_refused() {
    let (_server, mut client) = Cluster::builder("dense_long").start_session();
    let name = "\"".repeat(63);
    client.run(&format!("CREATE SCHEMA \"{}\"", name.replace('"', "\"\"")));
    let create = format!(
        "SELECT snowflake_create_series(format('%I.%I', '{name}', '{name}'), 'T-{{YYYY}}-{{n:7}}', kind => 'dense')"
    );
    let [code, message, detail, hint] = client.error(&create);
    assert_eq!(code, "42622", "{message}");
    assert!(message.ends_with("is too long for kind \"dense\""), "{message}");
    assert_eq!(
        detail,
        "The schema and the name have 257 bytes in UTF-8, including the dot and the quotes, but the maximum is 179."
    );
    assert_eq!(hint, "Pass a shorter name.");
}
