//! Updates from one release to the next: an updated database has the same catalog as a new one, and a library and a catalog that
//! do not match produce clear errors.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cluster::{Answer, Client, Cluster, Host, assert_caught, block_with, blocks, ensure, page, repository, sqlstate};

/// The version of these sources.
pub const CURRENT: &str = env!("CARGO_PKG_VERSION");

/// The C name of a function that was added in the release after the first.
const LATER: &str = "snowflake_version_wrapper";

/// The releases whose base scripts are frozen, except the current one.
pub fn releases() -> Vec<String> {
    let name = |path: PathBuf| path.file_name().expect("a file").to_string_lossy().into_owned();
    let files =
        fs::read_dir(repository().join("sql")).expect("sql/ can be read").map(|entry| name(entry.unwrap().path()));
    let version = |file: String| Some(file.strip_prefix("snowflake_pg--")?.strip_suffix(".sql")?.to_string());
    let mut versions: Vec<String> = files.filter_map(version).filter(|version| !version.contains("--")).collect();
    versions.retain(|version| version != CURRENT);
    versions.sort();
    versions
}

/// All objects of the extension in the catalog of a database, one on each line.
fn catalog(session: &mut Client) -> Vec<String> {
    session.all(
        "WITH member AS (
             SELECT d.classid, d.objid FROM pg_depend d
             JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
             WHERE d.deptype = 'e' AND e.extname = 'snowflake_pg')
         SELECT concat_ws(E'\\n', pg_describe_object(m.classid, m.objid, 0), obj_description(m.objid, m.classid::regclass::name),
             pg_get_functiondef(p.oid), p.proowner::regrole, p.proacl,
             pg_get_viewdef(c.oid), c.relowner::regrole, c.relacl, c.reloptions,
             (SELECT string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attcollation::regcollation,
                         a.attnotnull, a.attacl, col_description(c.oid, a.attnum)), ', ' ORDER BY a.attnum)
              FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0),
             format_type(t.typbasetype, t.typtypmod), t.typcollation::regcollation, t.typdefault, t.typacl,
             (SELECT string_agg(concat_ws(' ', o.conname, pg_get_constraintdef(o.oid)), ', ' ORDER BY o.conname)
              FROM pg_constraint o WHERE o.contypid = t.oid))
         FROM member m
         LEFT JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
         LEFT JOIN pg_class c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
         LEFT JOIN pg_type t ON m.classid = 'pg_type'::regclass AND t.oid = m.objid
         UNION ALL
         SELECT concat_ws(' ', extversion, extrelocatable, extconfig, extcondition, obj_description(oid, 'pg_extension'))
         FROM pg_extension WHERE extname = 'snowflake_pg'
         ORDER BY 1",
    )
}

/// Compares the catalog after these statements with the catalog after CREATE EXTENSION.
fn check_catalog(name: &str, statements: &[&str]) -> Result<(), String> {
    let server = Cluster::builder(name).start();
    let fresh = catalog(&mut server.session());
    ensure!(fresh.len() > 40, "only {} objects", fresh.len());
    server.connect().run("CREATE DATABASE updated TEMPLATE template0");
    let mut session = server.connect_to("updated");
    for statement in statements {
        session.batch_execute(statement).map_err(|e| format!("{statement}: {}", sqlstate(&e).1))?;
    }
    let updated = catalog(&mut session);
    let other: Vec<_> = fresh.iter().filter(|object| !updated.contains(object)).collect();
    let more: Vec<_> = updated.iter().filter(|object| !fresh.contains(object)).collect();
    ensure!(other.is_empty() && more.is_empty(), "another catalog: not {other:#?} but {more:#?}");
    Ok(())
}

#[test]
fn the_catalog_of_an_updated_database_is_that_of_a_new_one() {
    assert_eq!(releases()[0], "0.1.0");
    for release in releases() {
        let create = format!("CREATE EXTENSION snowflake_pg VERSION '{release}'");
        let script = format!("sql/snowflake_pg--{release}--{}.sql", env!("CARGO_PKG_VERSION"));
        check_catalog("upgrade", &[&create, "ALTER EXTENSION snowflake_pg UPDATE"])
            .unwrap_or_else(|reason| panic!("{script}: {reason}"));
    }
}

/// Objects that a user of 0.1.0 can have created still work after parameters have been renamed.
#[test]
fn what_depends_on_a_function_outlives_the_new_names_of_its_parameters() {
    let server = Cluster::builder("upgrade_dependents").start();
    let mut session = server.connect();
    session
        .run(
            "CREATE SCHEMA apart; CREATE EXTENSION snowflake_pg SCHEMA apart VERSION '0.1.0'; SET search_path = public, apart;
         CREATE TABLE orders (
             id bigint PRIMARY KEY DEFAULT snowflake_nextval() CHECK (snowflake_between(id, '2020-01-01Z', until => 'infinity')),
             at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, layout => 'twitter')) STORED);
         CREATE INDEX orders_text ON orders (snowflake_to_text(id));
         CREATE INDEX orders_at ON orders (snowflake_timestamp(id, 'twitter'));
         CREATE VIEW positional AS SELECT id FROM orders WHERE snowflake_between(id, '2020-01-01Z', 'infinity');
         CREATE VIEW named AS
             SELECT id FROM orders WHERE snowflake_between(until => 'infinity', id => id, \"from\" => '2020-01-01Z');
         CREATE MATERIALIZED VIEW kept AS SELECT problem FROM snowflake_check(\"table\" => 'orders', \"column\" => 'id');
         ALTER TABLE orders ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
         CREATE POLICY recent ON orders USING (snowflake_between(id, '2020-01-01Z', 'infinity'));
         CREATE FUNCTION bounds() RETURNS bigint BEGIN ATOMIC
             SELECT count(*) FROM snowflake_partition_bounds(\"from\" => '2024-01-01Z', until => '2024-01-03Z',
                 \"interval\" => '1 day');
         END;
         CREATE FUNCTION text_body() RETURNS boolean LANGUAGE sql
             AS $$ SELECT snowflake_between(1, \"from\" => '2020-01-01Z', until => 'infinity') $$;
         CREATE FUNCTION older_notation() RETURNS boolean LANGUAGE sql
             AS $$ SELECT snowflake_between(1, \"from\" := '2020-01-01Z', until := 'infinity') $$;
         INSERT INTO orders DEFAULT VALUES",
        );
    // Also in a session that has cached plans for these objects.
    let used = "EXPLAIN SELECT FROM positional; INSERT INTO orders DEFAULT VALUES; REFRESH MATERIALIZED VIEW kept";
    session.run(used);
    session.run(UPDATE);
    for session in [&mut session, &mut server.connect()] {
        session.run("SET search_path = public, apart");
        session.run(used);
        let rows: i64 = session.one("SELECT count(*) FROM orders");
        assert_eq!(session.one::<i64>("SELECT count(*) FROM positional"), rows);
        assert_eq!(session.one::<i64>("SELECT count(*) FROM named"), rows);
        assert_eq!(session.one::<i64>("SELECT bounds()"), 2);
        assert_eq!(session.code("INSERT INTO orders VALUES (1)").as_deref(), Some("23514"));
        session.run("SET enable_seqscan = off");
        let plan = session.plan("SELECT FROM orders WHERE snowflake_timestamp(id, 'twitter') > now()");
        assert!(plan.contains("orders_at"), "{plan}");
        let plan = session.plan("SELECT FROM positional");
        assert!(plan.contains("Index Cond: ((id >= "), "{plan}");
        let new = "SELECT snowflake_between(1, start => '2020-01-01Z', stop => 'infinity')";
        assert!(!session.one::<bool>(new));
        // The page says that such bodies must be written again.
        assert_eq!(session.code("SELECT text_body()").as_deref(), Some("42883"));
        let printed: String = session.one("SELECT pg_get_viewdef('named')");
        assert!(printed.contains("\"from\" =>"), "{printed}");
    }
    // In a session that does not find the extension by its search_path.
    let query = block_with(blocks(&page("docs/upgrading.md"), "sql"), "SELECT DISTINCT pg_describe_object");
    let found: Vec<String> = server.connect().all(&query);
    for expected in [
        "view named",
        "view positional",
        "materialized view kept",
        "orders_id_check",
        "policy recent",
        "bounds()",
        "text_body()",
        "older_notation()",
    ] {
        assert!(found.iter().any(|found| found.contains(expected)), "{expected} is not in {found:?}");
    }
}

#[test]
fn an_update_that_forgets_something_is_caught() {
    let forgetful = [
        "SELECT",
        "COMMENT ON FUNCTION snowflake_nextval() IS NULL",
        "ALTER FUNCTION snowflake_nextval() STABLE",
        "GRANT EXECUTE ON FUNCTION snowflake_stat_reset() TO PUBLIC",
        "REVOKE SELECT ON snowflake_status FROM pg_monitor",
        "ALTER DOMAIN snowflake_text SET DEFAULT '0000000000000'",
        "ALTER EXTENSION snowflake_pg DROP VIEW snowflake_layouts",
    ];
    let create = format!("CREATE EXTENSION snowflake_pg VERSION '{CURRENT}'");
    for (n, statement) in forgetful.into_iter().enumerate() {
        let create = if n == 0 { "CREATE EXTENSION snowflake_pg VERSION '0.1.0'" } else { create.as_str() };
        assert_caught(check_catalog("upgrade_forgets", &[create, statement]), "another catalog");
    }
}

/// The declarations of the C functions in a script, by their C names, without differences of format.
fn declarations(script: &str) -> BTreeMap<String, String> {
    let comment =
        |text: &str| text.split("/*").map(|part| part.rsplit("*/").next().unwrap_or(part)).collect::<String>();
    let script: String =
        script.lines().filter(|line| !line.trim_start().starts_with("--")).map(|l| format!("{l} ")).collect();
    let mut found = BTreeMap::new();
    for part in comment(&script).split("CREATE ").skip(1) {
        let Some((declaration, symbol)) = part.split_once("'MODULE_PATHNAME', '") else { continue };
        let declaration = declaration.trim_start_matches("OR REPLACE ").replace('"', "");
        let words: Vec<&str> = declaration.split_whitespace().collect();
        found.insert(symbol.split('\'').next().expect("a name").into(), words.join(" ").to_lowercase());
    }
    found
}

/// Parameters that were renamed since 0.1.0. A C function does not see their names.
const RENAMED: [(&str, &str); 7] = [
    ("snowflake_check(table regclass, column text", "snowflake_check(relation regclass, key text"),
    ("(parent regclass, interval interval,", "(parent regclass, step interval,"),
    ("count integer, from timestamptz", "count integer, start timestamptz"),
    ("partition_bounds( from ", "partition_bounds( start "),
    (" until timestamp with time zone, interval interval", " stop timestamp with time zone, step interval"),
    ("snowflake_set_mark(mark bigint, table regclass", "snowflake_set_mark(mark bigint, relation regclass"),
    ("default null, column text", "default null, key text"),
];

/// A library serves every older catalog: each C function exists, with the same arguments and results.
fn check_declarations(old: &str, new: &str) -> Result<(), String> {
    let (old, new) = (declarations(old), declarations(new));
    ensure!(old.len() > 30, "only {} functions", old.len());
    for (symbol, declaration) in &old {
        let declaration = &RENAMED.iter().fold(declaration.clone(), |text, (was, is)| text.replace(was, is));
        let now = new.get(symbol).ok_or(format!("{symbol} is gone"))?;
        ensure!(now == declaration, "{symbol} is another function now:\n{declaration}\n{now}");
    }
    Ok(())
}

/// The installed base script of a version.
pub fn script(version: &str) -> String {
    let path = Host::get().installation().extensions.join(format!("snowflake_pg--{version}.sql"));
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn a_c_function_never_changes_what_it_takes_and_gives() {
    for release in releases() {
        check_declarations(&script(&release), &script(CURRENT)).unwrap();
    }
}

#[test]
fn a_changed_or_missing_c_function_is_caught() {
    let (old, new) = (script("0.1.0"), script(CURRENT));
    for (was, is, outcome) in [
        ("problem text, datacenter_id integer", "problem text, datacenter_id bigint", "is another function now"),
        ("snowflake_reserve_wrapper", "snowflake_reserve_2_wrapper", "snowflake_reserve_wrapper is gone"),
    ] {
        assert!(new.contains(was), "{was}");
        assert_caught(check_declarations(&old, &new.replace(was, is)), outcome);
    }
}

#[test]
fn the_library_serves_the_catalog_of_every_release() {
    let server = Cluster::builder("upgrade_old_catalog").start();
    for release in releases() {
        let mut session = server.connect();
        session.run(&format!("CREATE EXTENSION snowflake_pg VERSION '{release}'"));
        let calls = "
            CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n integer);
            INSERT INTO orders (n) SELECT generate_series(1, 1000);
            SELECT count(*), max(created_at) FROM orders, snowflake_decode(id);
            SELECT snowflake_reserve(10), snowflake_currval(), snowflake_describe(snowflake_currval());
            SELECT count(*) FROM snowflake_nextval_batch(10000);
            SELECT snowflake_decode(id, 'twitter'), snowflake_timestamp(id, 'twitter'), snowflake_to_text(id) FROM orders;
            SELECT snowflake_encode(snowflake_timestamp(id), 1, 1) FROM orders;
            SELECT * FROM snowflake_partition_bounds('2024-01-01', '2024-03-01', '1 day');
            SELECT * FROM snowflake_check('orders');
            SELECT snowflake_stat_reset();
            TABLE snowflake_layouts; TABLE snowflake_status; TABLE snowflake_stat_backends";
        session.batch_execute(calls).unwrap_or_else(|e| panic!("{release}: {:?}", sqlstate(&e)));
        assert!(
            session.one::<i64>(
                "SELECT count(*) FROM orders WHERE snowflake_between(id, now() - interval '1 h', 'infinity')"
            ) == 1000
        );
        session.run("DROP EXTENSION snowflake_pg CASCADE; DROP TABLE orders");
    }
}

/// A directory with a library like the one before [`LATER`] was written.
fn old_library(name: &str) -> PathBuf {
    let mut library = installed();
    let place = |library: &[u8]| library.windows(LATER.len()).position(|bytes| bytes == LATER.as_bytes());
    while let Some(at) = place(&library) {
        library[at..at + LATER.len()].fill(b'x');
    }
    let dir = Host::get().fresh_dir(name);
    put(&dir, &library);
    dir
}

/// The installed library.
fn installed() -> Vec<u8> {
    fs::read(Host::get().installation().libraries.join("snowflake_pg.so")).expect("the extension is installed")
}

/// Replaces a library as packages do: the name refers to a new file.
fn put(dir: &Path, library: &[u8]) {
    let fresh = dir.join("snowflake_pg.so.new");
    fs::write(&fresh, library).expect("the directory can be written");
    fs::rename(&fresh, dir.join("snowflake_pg.so")).expect("a file can be renamed in place");
}

/// A server that looks for its library in a directory first.
fn server_with(name: &str, dir: &Path) -> cluster::Builder {
    Cluster::builder(name).set("dynamic_library_path", &format!("{}:$libdir", dir.display()))
}

const UPDATE: &str = "ALTER EXTENSION snowflake_pg UPDATE";

#[test]
fn an_update_under_the_old_library_is_refused_until_the_server_restarts() {
    let dir = old_library("upgrade_unrestarted_lib");
    let mut server = server_with("upgrade_unrestarted", &dir).start();
    let mut session = server.connect();
    let tables =
        "CREATE EXTENSION snowflake_pg VERSION '0.1.0'; CREATE TABLE t (id bigint DEFAULT snowflake_nextval())";
    session.run(tables);
    session.run("INSERT INTO t DEFAULT VALUES");
    put(&dir, &installed());
    let before = catalog(&mut session);
    // An existing session and a new one: both have the library with which the server started.
    for session in [&mut session, &mut server.connect()] {
        let [code, message, detail, hint] = session.error(UPDATE);
        assert_eq!([code, message], ["55000", "this session runs the library of snowflake_pg 0.1.0"]);
        assert_eq!(detail, "Version 0.2.0 has functions that this library does not have.");
        assert_eq!(hint, "Install the new library, restart the server, and retry in a new session.");
        assert_eq!(catalog(session), before);
        // The server still issues IDs.
        session.run("INSERT INTO t DEFAULT VALUES");
    }
    server.restart(cluster::Stop::Fast);
    let mut session = server.connect();
    // After the restart and before the update.
    session.run("INSERT INTO t DEFAULT VALUES");
    // The new library.
    session.run(UPDATE);
    assert_eq!(session.one::<String>("SELECT snowflake_version()"), CURRENT);
    let (rows, ids): (i64, i64) =
        (session.one("SELECT count(*) FROM t"), session.one("SELECT count(DISTINCT id) FROM t"));
    assert_eq!((rows, ids), (4, 4));
    let _ = fs::remove_dir_all(dir);
}

#[test]
fn a_session_that_has_loaded_the_old_library_gets_errors_not_crashes() {
    let dir = old_library("upgrade_session_lib");
    // Without preload, each session loads the file that exists at its first call.
    let server =
        server_with("upgrade_session", &dir).unset("shared_preload_libraries").unset("snowflake_pg.worker_id").start();
    let mut old = server.connect();
    old.run("CREATE EXTENSION snowflake_pg VERSION '0.1.0'");
    let decode = "SELECT created_at::text FROM snowflake_decode(1541815603606036480, 'twitter')";
    assert_eq!(old.one::<String>(decode), "2022-06-28 16:07:40.105+00");
    put(&dir, &installed());
    let mut new = server.connect();
    // A new session has the new library.
    new.run(UPDATE);
    assert_eq!(new.one::<String>("SELECT snowflake_version()"), CURRENT);
    let [code, message, ..] = old.error("SELECT snowflake_version()");
    assert_eq!(code, "42883");
    assert!(message.starts_with("could not find function \"snowflake_version_wrapper\" in file"), "{message}");
    // Both sessions continue.
    assert_eq!(old.one::<String>(decode), new.one::<String>(decode));
    let _ = fs::remove_dir_all(dir);
}
