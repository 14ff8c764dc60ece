//! The script runs in any database, as an owner without privileges, and refuses to run beside the extension.

use cluster::{Answer, Client, Cluster, Host, Scratch, Stop, assert_caught, ensure, typed};

use crate::server::{install, library, plain, script, spoilt};

/// The functions of a session that belong to no extension or to this one, without the functions that only the script has: names,
/// arguments, results, volatility and parallel safety.
const FUNCTIONS: &str = "
    SELECT concat_ws(' ', proname, '(', pg_get_function_arguments(oid), ')', pg_get_function_result(oid), provolatile, proparallel)
    FROM pg_proc WHERE proname LIKE 'snowflake\\_%' AND proname NOT LIKE 'snowflake\\_portable\\_%' ORDER BY 1";

/// Runs the script with psql, which continues after an error.
fn psql(server: &Cluster, script: &str) -> String {
    let mut psql = server.program("psql");
    psql.args(["--no-psqlrc", "--quiet"]);
    typed(psql, script).expect("psql runs")
}

/// Whether the extension works as before after the script has run beside it.
fn check_refused(script: &str, test: &str) -> Result<(), String> {
    let (server, mut session) = library(test);
    session.run("CREATE SCHEMA other");
    for path in ["public", "other"] {
        psql(&server, &format!("SET search_path = {path}, public; {script}"));
        let strange: i64 = session.one(
            "SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake\\_%'
             AND prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c')
             AND proname <> 'snowflake_between'",
        );
        ensure!(strange == 0, "{strange} functions in {path} are not those of the library");
    }
    Ok(())
}

#[test]
fn the_script_refuses_to_run_beside_the_extension() {
    let script = script("refused");
    check_refused(&script, "refused").unwrap();
    let (_server, mut session) = library("refused_text");
    let (code, message, detail, hint) = install(&mut session, &script, &[]).expect_err("the extension is there");
    assert_eq!([code, message], ["42710", "extension \"snowflake_pg\" is installed in this database"]);
    assert_eq!(detail, "The extension has functions with the same names.");
    assert!(hint.starts_with("Use the functions of the extension."), "{hint}");
    // Without the extension, it is possible to follow the hint.
    session.run("DROP EXTENSION snowflake_pg");
    install(&mut session, &script, &[]).expect("the script runs");
    let (code, message) = session.refusal("CREATE EXTENSION snowflake_pg");
    assert_eq!(code, "42710", "{message}");
}

#[test]
fn a_script_that_runs_beside_the_extension_is_caught() {
    let unchecked = spoilt("unchecked", ("WHERE extname = 'snowflake_pg'", "WHERE extname = 'none'"));
    assert_caught(check_refused(&unchecked, "unchecked"), "are not those of the library");
    // psql continues after the error.
    let open = script("open").replace("\nBEGIN;\n", "").replace("\nCOMMIT;\n", "");
    assert_caught(check_refused(&open, "open"), "are not those of the library");
}

/// Returns the functions that the library has as well, and those that it does not have.
fn functions(library: &mut Client, twin: &mut Client) -> (Vec<String>, Vec<String>) {
    let known = library.all::<String>(FUNCTIONS);
    twin.all::<String>(FUNCTIONS).into_iter().partition(|function| known.contains(function))
}

#[test]
fn functions_are_declared_like_those_of_the_library() {
    let (_library, mut library) = library("declared");
    let (_server, mut twin) = plain("declared");
    install(&mut twin, &script("declared"), &[]).expect("the script runs");
    let (known, strange) = functions(&mut library, &mut twin);
    assert_eq!(known.len(), 26, "{known:?}");
    // Those that issue IDs are never PARALLEL SAFE here, and have no arguments for what they cannot do.
    let names: Vec<&str> = strange.iter().filter_map(|function| function.split(' ').next()).collect();
    let issuing = ["configure", "currval", "nextval", "nextval_batch", "reserve", "set_mark", "status"];
    assert_eq!(names, issuing.map(|name| format!("snowflake_{name}")));
    let columns = "SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute
        WHERE attrelid = 'snowflake_layouts'::regclass ORDER BY attnum";
    assert_eq!(library.all::<String>(columns), twin.all::<String>(columns));
    // The row of each layout is the same, with its texts.
    let rows = "SELECT layout::text FROM snowflake_layouts AS layout ORDER BY 1";
    assert_eq!(library.all::<String>(rows), twin.all::<String>(rows));
    let ours: i64 = twin.one(
        "SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake\\_%' AND proname NOT LIKE 'snowflake\\_portable\\_%'
         AND obj_description(oid) IS NULL",
    );
    assert_eq!(ours, 0, "functions without a comment");
}

#[test]
fn the_owner_of_a_database_installs_and_every_role_calls() {
    let (mut server, mut session) = plain("owner");
    session.run("CREATE ROLE shop LOGIN; CREATE ROLE reader LOGIN");
    session.run("CREATE DATABASE shop OWNER shop");
    let as_role = |server: &Cluster, role: &str| {
        server.config("shop").user(role).connect(postgres::NoTls).expect("the role can connect")
    };
    let script = script("owner");
    install(&mut as_role(&server, "shop"), &script, &[("snowflake_pg.layout", "sonyflake")]).expect("the script runs");
    // Also again, with another layout, and while a session uses the functions.
    let mut reader = as_role(&server, "reader");
    let layout = "SELECT snowflake_describe(0) ->> 'layout'";
    assert_eq!(reader.one::<String>(layout), "39:8s:16@10ms");
    reader.run("PREPARE workers AS SELECT worker_id FROM snowflake_decode(1000000)");
    install(&mut as_role(&server, "shop"), &script, &[("snowflake_pg.layout", "41:10:12")]).expect("the script runs");
    assert_eq!(reader.one::<String>(layout), "41:10:12");
    assert_eq!(reader.one::<i32>("EXECUTE workers"), 244);
    // No session can change the meaning of an ID.
    reader.run("SET snowflake_pg.layout = 'discord'");
    assert_eq!(reader.one::<String>(layout), "41:10:12");
    server.restart(Stop::Fast);
    assert_eq!(as_role(&server, "reader").one::<String>(layout), "41:10:12");
}

#[test]
fn a_wrong_layout_or_epoch_leaves_nothing_behind() {
    let (_server, mut session) = plain("settings");
    let script = script("settings");
    for (name, value, detail) in [
        (
            "layout",
            "41:10",
            "A layout is specified as three or four field widths in bits, or as a name from view \"snowflake_layouts\".",
        ),
        ("layout", "41:10:12@2ms", "The tick after \"@\" must be \"1ms\", \"10ms\" or \"1s\"."),
        ("epoch", "2020-01-01", "The value is neither an ISO 8601 time with a time zone nor a number of milliseconds."),
        ("epoch", "tomorrow", "The value is neither an ISO 8601 time with a time zone nor a number of milliseconds."),
        ("epoch", "2020-02-30Z", "The time does not exist."),
        ("epoch", "2020-02-29T00:00+99:00", "The time does not exist."),
        (
            "epoch",
            "2020-02-29T24:00Z",
            "The value is neither an ISO 8601 time with a time zone nor a number of milliseconds.",
        ),
        ("epoch", "1969-01-01Z", "An epoch must be between 1970-01-01 and 2199-12-31."),
        ("epoch", "-1", "An epoch must be between 1970-01-01 and 2199-12-31."),
        ("epoch", "99999999999999999999999", "An epoch must be between 1970-01-01 and 2199-12-31."),
        ("epoch", "2020-01-01T00:00:00.0001Z", "An epoch must not include a fraction of a millisecond."),
    ] {
        let parameter = format!("snowflake_pg.{name}");
        let (code, message, told, hint) =
            install(&mut session, &script, &[(&parameter, value)]).expect_err("the value is wrong");
        let expected = format!("invalid value for parameter \"{parameter}\": \"{value}\"");
        assert_eq!([code, message, told], ["22023".into(), expected, detail.into()]);
        assert!(hint.starts_with("Specify "), "{hint}");
        assert_eq!(session.one::<i64>("SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake%'"), 0);
        session.run("RESET ALL");
    }
    install(&mut session, &script, &[]).expect("the script runs");
}

#[test]
fn a_newer_script_changes_the_type_of_an_older_one() {
    let (_server, mut session) = plain("newer");
    let newer = script("newer");
    let older = spoilt("newer", ("'^[0-7][0-9A-HJKMNP-TV-Z]{12}$'", "'^[0-9A-Z]{13}$'"));
    install(&mut session, &older, &[]).expect("the script runs");
    let create =
        "CREATE TABLE codes (code snowflake_text); INSERT INTO codes VALUES ('ZZZZZZZZZZZZZ'), ('1ASD13XH1F800')";
    session.run(create);
    // Nothing changes while a table contains a value that the type no longer allows.
    let (code, message, ..) = install(&mut session, &newer, &[]).expect_err("a value is wrong");
    assert_eq!(
        [code, message],
        ["23514", "column \"code\" of table \"codes\" contains values that violate the new constraint"]
    );
    assert_eq!(session.one::<String>("SELECT 'ZZZZZZZZZZZZZ'::snowflake_text::text"), "ZZZZZZZZZZZZZ");
    // The value is not needed.
    session.run("DELETE FROM codes WHERE code = 'ZZZZZZZZZZZZZ'");
    install(&mut session, &newer, &[]).expect("the script runs");
    assert_eq!(session.code("INSERT INTO codes VALUES ('ZZZZZZZZZZZZZ')").as_deref(), Some("23514"));
    // The constraint of the same version stays, so that no table is read.
    let constraints = "SELECT array_agg(oid)::text FROM pg_constraint WHERE contypid = 'snowflake_text'::regtype";
    let before: String = session.one(constraints);
    install(&mut session, &newer, &[]).expect("the script runs again");
    assert_eq!(session.one::<String>(constraints), before);
}

/// Whether the script creates nothing if no schema of the search path exists, and the hint helps.
fn check_no_schema(script: &str, test: &str) -> Result<(), String> {
    let (_server, mut session) = plain(test);
    // A schema need not exist.
    session.run("SET search_path = snowflake");
    let refused = install(&mut session, script, &[]);
    let made = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake%'";
    let made: i64 = session.one(made);
    ensure!(made == 0, "{made} functions were created");
    let (code, message, detail, hint) = refused.expect_err("no schema exists");
    let expected = "no schema has been selected to create the functions in";
    ensure!((code.as_str(), message.as_str()) == ("3F000", expected), "{code}: {message}");
    ensure!(detail == "The search path is \"snowflake\".", "{detail}");
    ensure!(hint.contains("\"CREATE SCHEMA snowflake\""), "{hint}");
    // The hint works.
    session.run("CREATE SCHEMA snowflake");
    install(&mut session, script, &[]).map_err(|error| error.1)
}

#[test]
fn a_schema_that_does_not_exist_is_refused() {
    check_no_schema(&script("no_schema"), "no_schema").unwrap();
}

#[test]
fn a_script_that_ignores_a_schema_that_does_not_exist_is_caught() {
    let unchecked = spoilt("no_schema_unchecked", ("current_schema() IS NULL", "false"));
    assert_caught(check_no_schema(&unchecked, "no_schema_unchecked"), "zero-length delimited identifier");
}

#[test]
fn a_schema_of_the_state_that_remained_is_refused() {
    let (_server, mut session) = plain("remained");
    session.run("CREATE SCHEMA \"Shop\"; SET search_path = \"Shop\"");
    let script = script("remained");
    install(&mut session, &script, &[]).expect("the script runs");
    session.run("DROP SCHEMA \"Shop\" CASCADE; CREATE SCHEMA \"Shop\"");
    let (code, message, detail, hint) =
        install(&mut session, &script, &[]).expect_err("the schema of the state exists");
    assert_eq!([code.as_str(), message.as_str()], ["42P06", "schema \"Shop_state\" already exists"]);
    assert_eq!(detail, "The functions need a schema with this name for their state.");
    let statement = "DROP SCHEMA \"Shop_state\" CASCADE";
    assert!(hint.contains(statement), "{hint}");
    // The hint works.
    session.run(statement);
    install(&mut session, &script, &[]).expect("the script runs");
    session.run("SELECT snowflake_configure(7), snowflake_nextval()");
}

#[test]
fn a_renamed_schema_keeps_its_state() {
    let (_server, mut session) = plain("renamed");
    // A name of 63 bytes whose last characters have two bytes each.
    let long = format!("{}{}", "s".repeat(51), "\u{e9}".repeat(6));
    session.run("CREATE SCHEMA shop; SET search_path = shop");
    let script = script("renamed");
    install(&mut session, &script, &[]).expect("the script runs");
    session.run("SELECT snowflake_configure(7)");
    let id: i64 = session.one("SELECT snowflake_nextval()");
    session.run(&format!("ALTER SCHEMA shop RENAME TO {long}; SET search_path = {long}"));
    let state = format!("{}{}_state", "s".repeat(51), "\u{e9}".repeat(3));
    let (code, message, detail, hint) =
        install(&mut session, &script, &[]).expect_err("the schema of the state does not exist");
    assert_eq!([code, message], ["3F000".to_string(), format!("schema \"{state}\" does not exist")]);
    assert_eq!(detail, "It contains the state from which the functions issue IDs.");
    let rename = format!("RENAME TO {state}").replace(&state, &format!("\"{state}\""));
    assert!(hint.contains(&rename), "{hint}");
    // The hint works.
    session.run(&format!("ALTER SCHEMA shop_state {rename}"));
    install(&mut session, &script, &[]).expect("the script runs");
    assert!(session.one::<i64>("SELECT snowflake_nextval()") > id);
}

#[test]
fn the_script_prints_no_notice() {
    let (server, _) = plain("quiet");
    let files = Scratch::new("portable_quiet.files");
    let path = files.0.join("snowflake_portable.sql");
    Host::get().write(&path, &script("quiet"));
    for _ in 0..2 {
        let output = server.psql().arg("--file").arg(&path).output().expect("psql can be run");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert!(output.status.success());
    }
}

/// Whether the script refuses to run where the type of an older one has other attributes, and the hint helps.
fn check_other_attributes(script: &str, test: &str) -> Result<(), String> {
    let (_server, mut session) = plain(test);
    session.run("CREATE SCHEMA twin; SET search_path = twin, public");
    let decode = "SELECT worker_id FROM snowflake_decode(1541815603606036480)";
    for other in
        ["DROP ATTRIBUTE last_dated_tick", "ADD ATTRIBUTE other integer", "RENAME ATTRIBUTE tick_ms TO tick_us"]
    {
        install(&mut session, script, &[]).map_err(|error| error.1)?;
        session.run("CREATE OR REPLACE VIEW times AS SELECT snowflake_timestamp(0)");
        // Only values have the type.
        session.run("DROP FUNCTION snowflake_portable_own CASCADE");
        session.run(&format!("ALTER TYPE snowflake_portable_format {other} CASCADE"));
        let Err((code, message, detail, hint)) = install(&mut session, script, &[]) else {
            return Err(format!("the script runs after {other}"));
        };
        let expected = "type \"twin.snowflake_portable_format\" belongs to a different version of the functions";
        ensure!((code.as_str(), message.as_str()) == ("55000", expected), "{code}: {message}");
        ensure!(detail == "Its attributes differ from those that this version needs.", "{detail}");
        let statement = "DROP TYPE twin.snowflake_portable_format CASCADE";
        ensure!(hint.contains(statement), "{hint}");
        // The hint works.
        session.run(statement);
        install(&mut session, script, &[]).map_err(|error| error.1)?;
        ensure!(session.one::<i32>(decode) == 378, "the worker ID is wrong after {other}");
    }
    // The type of the same version is kept.
    install(&mut session, script, &[]).map_err(|error| error.1)
}

#[test]
fn a_type_with_other_attributes_is_refused() {
    check_other_attributes(&script("attributes"), "attributes").unwrap();
}

#[test]
fn a_script_that_keeps_a_type_with_other_attributes_is_caught() {
    let unchecked = spoilt("kept", ("ELSIF attributes IS DISTINCT FROM (", "ELSIF NULL IS DISTINCT FROM ("));
    assert_caught(check_other_attributes(&unchecked, "kept"), "belongs to");
    let unchecked = spoilt("kept", ("ELSIF attributes IS DISTINCT FROM (", "ELSIF 'none' = ("));
    assert_caught(check_other_attributes(&unchecked, "kept_2"), "returned record type does not match");
}

/// Whether a session that reads backslashes in strings as escapes gets the same functions.
fn check_backslashes(script: &str, test: &str) -> Result<(), String> {
    let (_server, mut session) = plain(test);
    session.run("SET standard_conforming_strings = off");
    install(&mut session, script, &[("snowflake_pg.epoch", "2024-01-01T00:00:00.000Z")]).map_err(|error| error.1)?;
    let epoch: String = session.one("SELECT snowflake_describe(0) ->> 'epoch'");
    ensure!(epoch == "2024-01-01T00:00:00+00:00", "{epoch}");
    let text = "chr(9) || chr(10) || chr(13) || chr(34) || chr(39) || chr(92) || chr(1)";
    let (code, message) = session.refusal(&format!("SELECT snowflake_from_text({text})"));
    ensure!(
        (code.as_str(), message.as_str()) == ("22023", r#""\t\n\r\"\'\\\x01" is not an ID in text form"#),
        "{code}: {message}"
    );
    let layout = "SELECT snowflake_describe(0, chr(9) || '41:10:12' || chr(13)) ->> 'layout'";
    let layout: String = session.one(layout);
    ensure!(layout == "41:10:12", "{layout}");
    Ok(())
}

#[test]
fn the_script_does_not_depend_on_the_meaning_of_backslashes() {
    check_backslashes(&script("backslashes"), "backslashes").unwrap();
}

#[test]
fn a_backslash_in_a_string_is_caught() {
    let tab = spoilt("backslash_tab", ("chr(92) || 't'", r"'\t'"));
    assert_caught(check_backslashes(&tab, "backslash_tab"), "is not an ID in text form");
    let day = spoilt("backslash_day", ("day constant text := '[0-9]{4}", r"day constant text := '\d{4}"));
    assert_caught(check_backslashes(&day, "backslash_day"), "invalid value for parameter");
}

#[test]
fn a_dump_restores_the_functions_and_what_uses_them() {
    let (server, mut session) = plain("dump");
    session.run("CREATE SCHEMA snowflake; SET search_path = snowflake, public");
    install(&mut session, &script("dump"), &[("snowflake_pg.layout", "discord")]).expect("the script runs");
    session.run(
        "CREATE TABLE public.messages (
             id bigint PRIMARY KEY,
             sent timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'discord')) STORED,
             code snowflake_text
         );
         INSERT INTO public.messages VALUES (175928847299117063, DEFAULT, snowflake_to_text(175928847299117063));
         CREATE INDEX ON public.messages (snowflake_timestamp(id, 'discord'))",
    );
    server.restore_dump("postgres", "restored");
    let mut restored = server.connect_to("restored");
    let row = "SELECT concat_ws(' ', sent, code, snowflake.snowflake_describe(id) ->> 'layout') FROM messages";
    assert_eq!(restored.one::<String>(row), session.one::<String>(row));
    assert_eq!(restored.one::<String>(row), "2016-04-30 11:18:25.796+00 04W86BB0G4007 41:5:5:12");
    // Where the functions do not lie in the search path, they find each other.
    assert_eq!(restored.code("SELECT snowflake.snowflake_decode(1, 'none')").as_deref(), Some("22023"));
    // All functions are in one schema.
    restored.run("DROP SCHEMA snowflake CASCADE");
    assert_eq!(restored.one::<i64>("SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake%'"), 0);
}

#[test]
fn on_a_server_with_the_library_the_script_uses_the_layout_of_the_server() {
    let server = Cluster::builder("portable_preloaded").set("snowflake_pg.layout", "discord").start();
    let mut session = server.connect();
    session.run("CREATE DATABASE warehouse");
    let mut session = server.connect_to("warehouse");
    let (code, message) = session.refusal("SET snowflake_pg.layout = '41:10:12'");
    let expected = "parameter \"snowflake_pg.layout\" cannot be changed without restarting the server";
    assert_eq!([code, message], ["55P02", expected]);
    install(&mut session, &script("preloaded"), &[]).expect("the script runs");
    assert_eq!(session.one::<String>("SELECT snowflake_describe(0) ->> 'layout'"), "41:5:5:12");
    let read = "SELECT worker_id FROM snowflake_decode(1541815603606036480, '41:10:12')";
    assert_eq!(session.one::<i32>(read), 378);
}
