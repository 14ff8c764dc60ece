//! IDs as text sort like the numbers in every collation of a database. A character of any encoding is refused.

use cluster::{Answer, Client, Cluster, Host, assert_caught, ensure, not_tested, thorough};

/// 100,000 IDs: small ones, consecutive snowflakes, and numbers from the whole range.
const IDS: &str = "
    CREATE TABLE ids AS
        SELECT n AS id FROM generate_series(0::bigint, 19999) AS n
        UNION SELECT 2124118500250226688 + n FROM generate_series(0, 19999) AS n
        UNION SELECT 9223372036854775807 - n FROM generate_series(0, 9999) AS n
        UNION SELECT hashint8extended(n, 7) & 9223372036854775807 FROM generate_series(1, 50000) AS n";

/// Databases, each with the end of the statement that creates it: with the letters of Estonian, Hungarian, Danish, Lithuanian and
/// others, with digits that sort as one number, and with the available locales of libc. Only a thorough run creates all of them.
fn collations(server: &Cluster) -> Vec<(String, String)> {
    let icu = ["et", "hu", "da", "lt", "cs", "en-u-kn-true", "tr", "de"];
    let icu = icu.map(|locale| (locale.to_string(), format!("LOCALE_PROVIDER icu ICU_LOCALE '{locale}' LOCALE 'C'")));
    let known = has_icu(server);
    let icu = icu.into_iter().filter(|_| known);
    let libc = server.connect().all::<String>(
        "SELECT DISTINCT collcollate FROM pg_collation
         WHERE collprovider = 'c' AND collencoding IN (-1, pg_char_to_encoding('UTF8'))
           AND collcollate ~* '^(C|C.utf-?8|en_US.utf-?8)$'",
    );
    let libc = libc.into_iter().map(|locale| (locale.clone(), format!("LOCALE_PROVIDER libc LOCALE '{locale}'")));
    icu.chain(libc).filter(|(locale, _)| thorough() || ["et", "en-u-kn-true", "C"].contains(&locale.as_str())).collect()
}

/// Whether the server has the sort orders of languages. Debian's PostgreSQL has them; other builds may not.
fn has_icu(server: &Cluster) -> bool {
    let create = "CREATE COLLATION german (provider = icu, locale = 'de'); DROP COLLATION german";
    let found = server.connect().code(create).is_none();
    assert!(found || !Host::get().installation().is_debians(), "Debian's PostgreSQL has ICU");
    if !found {
        not_tested("orders of languages, which this PostgreSQL was built without");
    }
    found
}

/// A session in a new database with the extension.
fn database(server: &Cluster, name: &str, like: &str) -> Client {
    server.connect().batch_execute(&format!("CREATE DATABASE \"{name}\" TEMPLATE template0 {like}")).expect(name);
    let mut session = server.connect_to(name);
    session.run("CREATE EXTENSION snowflake_pg");
    session
}

/// Whether texts in a column of this type compare and sort like their IDs, in every kind of query.
fn check_order(session: &mut Client, kind: &str) -> Result<(), String> {
    session.run(&format!(
        "CREATE TABLE links (id bigint, text {kind});
         INSERT INTO links SELECT id, snowflake_to_text(id) FROM ids;
         CREATE TABLE copies AS SELECT text FROM links;
         CREATE INDEX links_text ON links (text)"
    ));
    session.run("VACUUM ANALYZE links");
    let mut none = |what: &str, sql: &str| {
        let wrong: i64 = session.one(sql);
        if wrong == 0 { Ok(()) } else { Err(format!("{wrong} wrong {what}")) }
    };
    let pairs = |rows: &str| format!("SELECT count(*) FROM (SELECT {rows}) AS pairs WHERE NOT later");
    none(
        "by sorting",
        &pairs("id > lag(id) OVER (ORDER BY text) AS later FROM (SELECT * FROM links OFFSET 0) AS links"),
    )?;
    none("without a column", &pairs("id > lag(id) OVER (ORDER BY snowflake_to_text(id)) AS later FROM ids"))?;
    let from_copies =
        "snowflake_from_text(text) > lag(snowflake_from_text(text)) OVER (ORDER BY text) AS later FROM copies";
    none("in a copy", &pairs(from_copies))?;
    none(
        "ends",
        "SELECT count(*) FROM (SELECT min(text) = snowflake_to_text(min(id)) AND max(text) = snowflake_to_text(max(id)) AS so
                               FROM links) AS ends WHERE NOT so",
    )?;
    none(
        "comparisons",
        "WITH picked AS (SELECT * FROM links WHERE id % 397 = 0)
         SELECT count(*) FROM picked AS a, picked AS b
         WHERE (a.text < b.text, a.text = b.text, a.text >= b.text) <> (a.id < b.id, a.id = b.id, a.id >= b.id)",
    )?;
    session.run("SET enable_seqscan = off; SET enable_sort = off");
    let by_index = "SELECT text::text FROM links ORDER BY text";
    let plan = session.plan(by_index);
    ensure!(plan.contains("Index Only Scan using links_text"), "not over the index:\n{plan}");
    let (texts, ids) = (session.all::<String>(by_index), session.all::<i64>("SELECT id FROM links ORDER BY id"));
    ensure!(ids.len() > 99_000, "only {} IDs", ids.len());
    let found = session.all::<i64>("SELECT snowflake_from_text(text) FROM links ORDER BY text");
    ensure!(found == ids, "another order over the index");
    ensure!(texts.is_sorted() && texts.iter().all(|text| text.len() == 13), "texts of another form");
    let range = "SELECT count(*) FROM links WHERE text BETWEEN snowflake_to_text(2124118500250226688)
                                                           AND snowflake_to_text(2124118500250246687)";
    ensure!(session.one::<i64>(range) == 20_000, "another range over the index");
    session.run("RESET ALL; DROP TABLE links, copies");
    Ok(())
}

#[test]
fn texts_sort_like_ids_in_every_database() {
    let server = Cluster::builder("text_order").start();
    let databases = collations(&server);
    assert!(databases.iter().any(|(name, _)| name == "C"), "{databases:?}");
    for (locale, like) in databases {
        let mut session = database(&server, &locale, &format!("ENCODING 'UTF8' {like}"));
        session.run(IDS);
        check_order(&mut session, "snowflake_text").unwrap_or_else(|wrong| panic!("{locale}: {wrong}"));
        let lost: i64 = session.one(
            "SELECT count(*) FROM ids, snowflake_to_text(id) AS text
             WHERE snowflake_from_text(text) <> id OR snowflake_from_text(lower(text)) <> id",
        );
        assert_eq!(lost, 0, "{locale}: IDs did not come back");
        if locale == "et" {
            // A column of another type sorts by the collation of the database.
            assert_caught(check_order(&mut session, "text"), "wrong by sorting");
        }
    }
}

/// Whether the key of `links`, a column declared as `kind`, is found with its index when it is compared with `compared`.
fn check_index(session: &mut Client, kind: &str, compared: &str) -> Result<(), String> {
    session.run(&format!(
        "DROP TABLE IF EXISTS links; CREATE TABLE links (code {kind} PRIMARY KEY);
         INSERT INTO links SELECT snowflake_to_text(n) FROM generate_series(1, 10000) AS n; ANALYZE links"
    ));
    let query = format!("SELECT code::text FROM links WHERE code = {compared}");
    let plan = session.plan(&query);
    ensure!(plan.contains("Index Cond"), "not over the index:\n{plan}");
    let found = session.all::<String>(&query);
    ensure!(found == ["000000000009J"], "{found:?}");
    Ok(())
}

#[test]
fn a_stored_text_is_found_over_its_index() {
    let (server, mut session) = Cluster::builder("text_index").start_session();
    let text = "snowflake_to_text(306 + 0)";
    for kind in ["snowflake_text", "text COLLATE \"C\"", "varchar(13) COLLATE \"C\""] {
        check_index(&mut session, kind, text).unwrap_or_else(|wrong| panic!("{kind}: {wrong}"));
    }
    check_index(&mut session, "text", &format!("{text} COLLATE \"default\"")).unwrap();
    check_index(&mut session, "snowflake_text", "'000000000009J'").unwrap();
    assert_caught(check_index(&mut session, "text", text), "not over the index");
    // The query is no error, and finds the row.
    let rows = |collation: &str| format!("SELECT code::text FROM links WHERE code = {text}{collation}");
    assert_eq!(session.all::<String>(&rows("")), ["000000000009J"]);

    // Other collations by name, in which the texts also sort correctly.
    let mut named = vec!["\"POSIX\"", "ucs_basic"];
    if has_icu(&server) {
        named.push("\"en-x-icu\"");
    }
    for collation in named {
        let kind = format!("text COLLATE {collation}");
        check_index(&mut session, &kind, &format!("{text} COLLATE {collation}")).unwrap();
        // The negative controls: without a collation, and with the collation of another column.
        let refusal = session.refusal(&rows(""));
        let told = "could not determine which collation to use for string comparison";
        assert_eq!(refusal, ("42P22".into(), told.into()), "{collation}");
        assert_eq!(session.code(&rows("").replace(" = ", " < ")).as_deref(), Some("42P22"), "{collation}");
        let other = check_index(&mut session, &kind, &format!("{text} COLLATE \"default\""));
        assert_caught(other, "not over the index");
    }
}

/// Whether these calls refuse the character that replaces their `?`, and show its bytes.
fn check_refused(session: &mut Client, calls: &[String], character: &str, bytes: &str) -> Result<(), String> {
    for call in calls {
        let call = call.replace('?', character);
        let (code, message) = session.refusal(&format!("SELECT {call}"));
        ensure!(code == "22023" && message.contains(bytes), "{call} gave {code}: {message}");
        ensure!(message.starts_with('"') && message.contains(" is not "), "{call} gave: {message}");
    }
    ensure!(session.one::<i32>("SELECT 1") == 1, "the session ended");
    Ok(())
}

#[test]
fn a_character_of_another_encoding_is_refused_like_any_other() {
    let server = Cluster::builder("text_encodings").start();
    for (encoding, characters) in [
        ("UTF8", [("é", "\\xc3\\xa9"), ("日", "\\xe6\\x97\\xa5")]),
        ("LATIN1", [("é", "\\xe9"), ("ÿ", "\\xff")]),
        ("EUC_JP", [("日", "\\xc6\\xfc"), ("ア", "\\xa5\\xa2")]),
    ] {
        let mut session = database(&server, &encoding.to_lowercase(), &format!("ENCODING '{encoding}' LOCALE 'C'"));
        // Every function that takes a layout.
        let mut calls = session.all::<String>(
            "SELECT format('%s(%s)', proname, string_agg(CASE
                        WHEN name = 'layout' THEN '''41:10:12?'''
                        WHEN type = 'timestamptz'::regtype THEN '''2024-01-01 00:00:00Z'''
                        ELSE '1' END || '::' || type::regtype, ', ' ORDER BY place))
             FROM pg_proc, unnest(proargtypes, proargnames[:pronargs]) WITH ORDINALITY AS arguments (type, name, place)
             WHERE proname LIKE 'snowflake%' AND 'layout' = ANY (proargnames[:pronargs])
             GROUP BY pg_proc.oid, proname",
        );
        assert!(calls.len() > 10, "{calls:?}");
        calls.extend(["snowflake_from_text('?000000000000')".into(), "snowflake_from_text('000000000000?')".into()]);
        for (character, bytes) in characters {
            check_refused(&mut session, &calls, character, bytes).unwrap_or_else(|e| panic!("{encoding}: {e}"));
            // The negative control: another message.
            assert_caught(check_refused(&mut session, &["'?'::bigint".into()], character, bytes), "gave 22P02");
        }
    }
}
