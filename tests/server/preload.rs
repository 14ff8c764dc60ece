//! On a server that does not preload the library, every function that needs it says so, and the session continues.

use cluster::{Answer, Cluster, Stop};

#[test]
fn without_preload_every_function_says_what_to_do() {
    let (_server, mut session) = Cluster::builder("no_preload")
        .unset("shared_preload_libraries")
        .unset("snowflake_pg.worker_id")
        .start_session();
    let at = "timestamptz '2024-01-01 00:00:00+00'";
    // Functions that raise an error because they need the server's settings or shared memory.
    let need_preload = [
        "snowflake_nextval()".to_string(),
        "snowflake_nextval_batch(3)".into(),
        "snowflake_reserve(3)".into(),
        "snowflake_currval()".into(),
        "snowflake_decode(1)".into(),
        "snowflake_describe(1)".into(),
        "snowflake_timestamp(1)".into(),
        format!("snowflake_encode({at}, 1, 1)"),
        format!("snowflake_min_id({at})"),
        format!("snowflake_max_id({at})"),
        format!("snowflake_first_id_from({at})"),
        format!("snowflake_last_id_before({at})"),
        format!("snowflake_between(1, {at}, {at})"),
        format!("snowflake_partition_bounds({at}, {at}, '1 day')"),
        "snowflake_create_partitions('pg_class', '1 day', 1)".into(),
        "snowflake_accept_clock()".into(),
        "snowflake_set_mark(1)".into(),
        "snowflake_check('pg_class', 'oid')".into(),
        "snowflake_stat_backends()".into(),
        "snowflake_stat_reset()".into(),
        "snowflake_guard('pg_class')".into(),
        "snowflake_segment_nextval('orders')".into(),
        "snowflake_segments()".into(),
    ];
    for call in &need_preload {
        let [code, message, detail, hint] = session.error(&format!("SELECT {call}"));
        assert_eq!([code, message], ["55000", "library \"snowflake_pg\" is not preloaded"], "{call}");
        assert_eq!(detail, "");
        assert_eq!(hint, "Add snowflake_pg to \"shared_preload_libraries\" in postgresql.conf and restart the server.");
    }
    assert_eq!(session.one::<i32>("SELECT 1"), 1);
    // The view returns a row that says so and nothing else, so that monitoring shows it.
    let status = "SELECT state || ': ' || problem || '. ' || hint || ' ' || (
            SELECT count(*) FROM jsonb_object_keys(jsonb_strip_nulls(to_jsonb(s))) AS known
            WHERE known NOT IN ('state', 'problem', 'hint')) FROM snowflake_status AS s";
    let expected = "not preloaded: library \"snowflake_pg\" is not preloaded. \
                    Add snowflake_pg to \"shared_preload_libraries\" in postgresql.conf and restart the server. 0";
    assert_eq!(session.all::<String>(status), [expected]);
    session.run("LOAD 'snowflake_pg'");
    session.run("CREATE TABLE numbered (number text)");
    // Functions that read no setting need no preload: IDs of any layout can be decoded on any server, and serials are no IDs.
    let need_none = [
        "snowflake_decode(1, 'discord')".to_string(),
        "snowflake_decode(1, 'discord', '2015-01-01Z')".into(),
        "snowflake_describe(1, 'discord')".into(),
        "snowflake_describe(1, 'discord', '2015-01-01Z')".into(),
        "snowflake_timestamp(1, 'discord')".into(),
        "snowflake_timestamp(1, 'discord', '2015-01-01Z')".into(),
        format!("snowflake_encode({at}, 1, 1, 'discord')"),
        format!("snowflake_encode({at}, 1, 1, 'discord', {at})"),
        format!("snowflake_encode({at}, 1, 1, 1, 'discord')"),
        format!("snowflake_encode({at}, 1, 1, 1, 'discord', {at})"),
        format!("snowflake_min_id({at}, 'discord')"),
        format!("snowflake_min_id({at}, 'discord', {at})"),
        format!("snowflake_max_id({at}, 'discord')"),
        format!("snowflake_max_id({at}, 'discord', {at})"),
        "snowflake_to_text(1)".into(),
        "snowflake_from_text('0000000000001')".into(),
        "snowflake_conceal(1, 'sixteen-byte-key')".into(),
        "snowflake_reveal(1, 'sixteen-byte-key', 'tweak')".into(),
        "snowflake_conceal_text(1, 'sixteen-byte-key')".into(),
        "snowflake_reveal_text('0000000000001', 'sixteen-byte-key', 'tweak')".into(),
        "snowflake_to_uuid(1)".into(),
        "snowflake_from_uuid('00000000-0000-8000-8000-000000000000')".into(),
        "snowflake_layouts()".into(),
        "snowflake_version()".into(),
        "snowflake_status()".into(),
        "snowflake_last_issuer()".into(),
        "snowflake_registry_status()".into(),
        "snowflake_guard_status()".into(),
        "snowflake_create_series('series', 'S{n:3}')".into(),
        "snowflake_serial('series')".into(),
        "snowflake_serial('series', date '2024-01-01')".into(),
        "snowflake_serial_parse('series', 'S001')".into(),
        "snowflake_serial_gaps('numbered', 'number', 'series')".into(),
        "snowflake_alter_series('series', start => 1)".into(),
        "snowflake_number_at_commit('numbered', 'number', 'series')".into(),
        "snowflake_series()".into(),
    ];
    for call in &need_none {
        session.batch_execute(&format!("SELECT {call}")).expect(call);
    }
    session.run("INSERT INTO numbered DEFAULT VALUES");
    // Each function was called once, except those for COPY, which the library uses only if it is preloaded, and trigger functions.
    let functions: Vec<String> = session.all(
        "SELECT proname::text FROM pg_proc
         WHERE proname LIKE 'snowflake%' AND proname NOT LIKE 'snowflake_copy%' AND prorettype <> 'trigger'::regtype
         ORDER BY proname COLLATE \"C\"",
    );
    let calls = need_preload.iter().chain(&need_none).filter_map(|call| call.split('(').next());
    let mut called: Vec<&str> = calls.collect();
    called.sort_unstable();
    let missing: Vec<&String> = functions.iter().filter(|function| !called.contains(&function.as_str())).collect();
    assert!(missing.is_empty(), "tests/server/preload.rs does not call {missing:?}");
    assert_eq!(called, functions, "tests/server/preload.rs calls each function once");
}

/// The warning of CREATE EXTENSION, and whether the output of pg_dump can be restored.
#[test]
fn create_extension_warns_where_the_library_is_not_preloaded() {
    let mut server =
        Cluster::builder("warned").unset("shared_preload_libraries").unset("snowflake_pg.worker_id").start();
    let create = "CREATE SCHEMA \"Odd one\"; CREATE EXTENSION snowflake_pg SCHEMA \"Odd one\"";
    let told = |server: &Cluster| {
        let psql = server.psql().args(["-c", create]).output().expect("psql can be run");
        assert!(psql.status.success(), "{psql:?}");
        String::from_utf8_lossy(&psql.stderr).into_owned()
    };
    let warned = told(&server);
    for line in [
        "WARNING:  library \"snowflake_pg\" is not preloaded",
        "DETAIL:  Until the library is preloaded, the server cannot issue IDs, and only functions called with a layout argument can \
         decode IDs.",
        "HINT:  Add snowflake_pg to \"shared_preload_libraries\" in postgresql.conf and restart the server.",
    ] {
        assert!(warned.lines().any(|told| told == line), "{line} is not in {warned}");
    }
    // The function that warned is gone, and a dump can be restored there.
    let left = "SELECT count(*) FROM pg_proc WHERE proname LIKE '%preloaded%'";
    assert_eq!(server.connect().one::<i64>(left), 0);
    server.restore_dump("postgres", "restored");
    // The hint works: with the library preloaded there is no warning.
    server.connect().run("DROP SCHEMA \"Odd one\" CASCADE");
    server.set("shared_preload_libraries", "snowflake_pg");
    server.restart(Stop::Fast);
    assert_eq!(told(&server), "");
}
