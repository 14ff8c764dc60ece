//! The ways of docs/portable.md from a server without the library to one with it, and back. No table is rewritten.

use cluster::{Answer, Client, Cluster, Host, Recipe, Scratch, ensure, typed};

use crate::server::{install, plain, script};

const PAGE: &str = "docs/portable.md";

fn shell(block: &str, files: &Scratch, managed: &Cluster, own: &Cluster) {
    let mut shell = Host::get().shell(&format!("set -e\n{block}"));
    let connection = |server: &Cluster| format!("host={} dbname=shop user=postgres", server.socket().display());
    shell.current_dir(&files.0).env("MANAGED", connection(managed)).env("OWN", connection(own));
    typed(shell, "").unwrap();
}

fn psql(server: &Cluster, block: &str) -> Result<String, String> {
    let mut psql = server.psql();
    psql.args(["-d", "shop", "-v", "ON_ERROR_STOP=1"]);
    typed(psql, block)
}

/// Tables whose keys the functions issue in every way that a column can name them.
const TABLES: &str = "
    CREATE TABLE public.orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
    CREATE TABLE public.lines (id bigint DEFAULT snowflake_nextval(), order_id bigint) PARTITION BY RANGE (order_id);
    CREATE TABLE public.lines_1 PARTITION OF public.lines FOR VALUES FROM (0) TO (1000);
    CREATE DOMAIN public.key AS bigint DEFAULT snowflake_nextval();
    CREATE TABLE public.visits (id public.key PRIMARY KEY, at int DEFAULT 7);
    CREATE TABLE public.codes (code snowflake_text PRIMARY KEY DEFAULT snowflake_to_text(snowflake_nextval()));
    CREATE TABLE public.labels (label text DEFAULT 'label ' || snowflake_to_text(snowflake_nextval()), copy snowflake_text)";

/// What a role puts into the copy: a table whose index calls a function. The function notes whether it runs as a superuser.
const TRAP: &str = "
    CREATE ROLE trapper; CREATE SCHEMA trap; CREATE SEQUENCE trap.taken;
    CREATE FUNCTION trap.take() RETURNS boolean LANGUAGE sql AS $$
        SELECT nextval('trap.taken') > 0 FROM pg_catalog.pg_roles WHERE rolname = current_user AND rolsuper $$;
    CREATE FUNCTION trap.yes(int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN trap.take() IS NULL; END';
    CREATE TABLE trap.orders (id bigint DEFAULT snowflake.snowflake_nextval());
    CREATE INDEX ON trap.orders (id) WHERE trap.yes(1);
    ALTER TABLE trap.orders OWNER TO trapper; GRANT ALL ON SCHEMA trap TO trapper;
    SELECT setval('trap.taken', 1, false)";

/// The rows.
fn rows(session: &mut Client) -> Vec<i64> {
    session.all("SELECT id FROM orders ORDER BY id")
}

/// The files in which the tables store their rows.
fn stored(session: &mut Client) -> Vec<String> {
    session.all(
        "SELECT concat_ws(' ', relname, pg_relation_filenode(oid)) FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1",
    )
}

fn check_next(session: &mut Client, worker: i64, last: i64) -> Result<(), String> {
    let id: i64 = session.one("INSERT INTO orders DEFAULT VALUES RETURNING id");
    ensure!(id > last && (id >> 12) & 1023 == worker, "{id} after {last}");
    let line: i64 = session.one("INSERT INTO lines (order_id) VALUES (1) RETURNING id");
    ensure!(line > last && (line >> 12) & 1023 == worker, "{line} after {last}");
    for (table, key) in [
        ("visits", "id::bigint"),
        ("codes", "snowflake_from_text(code)"),
        ("labels", "snowflake_from_text(substr(label, 7))"),
    ] {
        let id: i64 = session.one(&format!("INSERT INTO {table} DEFAULT VALUES RETURNING {key}"));
        ensure!(id > last && (id >> 12) & 1023 == worker, "{id} of {table} after {last}");
    }
    Ok(())
}

#[test]
fn a_database_moves_to_the_library_and_back_without_a_rewrite() {
    let (managed, _) = plain("managed");
    let mut own = Cluster::builder("portable_own").set("snowflake_pg.worker_id", "9").create_anew();
    own.start();
    for server in [&managed, &own] {
        server.connect().run("CREATE DATABASE shop");
    }
    let mut session = managed.connect_to("shop");
    session.run("CREATE SCHEMA snowflake; SET search_path = snowflake, public");
    install(&mut session, &script("to_library"), &[]).expect("the script runs");
    // IDs an hour ahead of the clock, which the library has to respect.
    session.run(&format!(
        "SELECT snowflake_configure(7);
         SELECT snowflake_set_mark(snowflake_max_id(now() + interval '1 hour'));
         {TABLES};
         INSERT INTO orders SELECT FROM generate_series(1, 1000)",
    ));
    check_next(&mut session, 7, 0).unwrap();
    let before = rows(&mut session);
    let last: i64 = session.one("SELECT snowflake_nextval()");
    drop(session);

    let files = Scratch::new("portable_library.files");
    let mut recipe = Recipe::of(PAGE, "To the library");
    shell(&recipe.block("sh library"), &files, &managed, &own);
    let mut session = own.connect_to("shop");
    let files_before = stored(&mut session);
    assert_eq!(files_before.len(), 5, "{files_before:?}");
    assert_eq!(session.refusal("INSERT INTO orders DEFAULT VALUES").0, "55000");
    // What would be dropped with the functions is named, and stays.
    let transaction = recipe.block("sql library");
    for (create, name) in [
        ("VIEW times AS SELECT snowflake.snowflake_timestamp(id) AS at FROM orders", "view public.times"),
        ("TABLE snowflake.basket (n int)", "table snowflake.basket"),
    ] {
        session.run(&format!("CREATE {create}"));
        let refused = psql(&own, &transaction).expect_err("the object would be dropped");
        assert!(refused.contains("other objects use the portable functions") && refused.contains(name), "{refused}");
        session.run(&format!("DROP {}", name.replace("public.", "")));
    }
    // Neither the code of another role nor a temporary table of another session has an effect on the superuser.
    session.run(TRAP);
    let mut other = own.connect_to("shop");
    other.run("CREATE TEMP TABLE noise (id bigint DEFAULT length('public.snowflake_nextval('))");
    let taken = "SELECT is_called FROM trap.taken";
    let checked = "SELECT max(last_id) INTO last FROM public.snowflake_check(item.relation, item.key, '{}'::integer[])
        WHERE problem <> 'not an ID';";
    let read = "EXECUTE format('SELECT max(%I) FROM %s', item.key, item.relation) INTO last;";
    let trapped = transaction.replace(checked, read).replace("\nCOMMIT;", "\nROLLBACK;");
    assert!(trapped.contains(read) && trapped.contains("ROLLBACK"));
    psql(&own, &trapped).unwrap();
    assert!(session.one::<bool>(taken), "the control runs no code of the other role");
    session.run("SELECT setval('trap.taken', 1, false)");
    psql(&own, &transaction).unwrap();
    assert!(!session.one::<bool>(taken), "code of another role has run as the superuser");
    session.run("DROP SCHEMA trap CASCADE; DROP ROLE trapper");
    drop(other);
    assert!(recipe.is_empty());
    let mut session = own.connect_to("shop");
    assert_eq!((rows(&mut session), stored(&mut session)), (before, files_before));
    let types: Vec<String> = session.all(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute
         WHERE attrelid IN ('codes'::regclass, 'labels'::regclass) AND attnum > 0",
    );
    assert_eq!(types, ["text"; 3]);
    check_next(&mut session, 9, last).unwrap();
    let left = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake_portable%'";
    assert_eq!(session.one::<i64>(left), 0);

    // And back, into an empty database of a server without the library.
    let before = rows(&mut session);
    let last: i64 = session.one("SELECT snowflake_nextval()");
    drop(session);
    for statement in ["DROP DATABASE shop WITH (FORCE)", "CREATE DATABASE shop"] {
        managed.connect().run(statement);
    }
    Host::get().write(&files.0.join("snowflake_portable.sql"), &script("from_library"));
    let mut recipe = Recipe::of(PAGE, "Back from the library");
    shell(&recipe.block("sh back"), &files, &managed, &own);
    assert!(recipe.is_empty());
    let mut session = managed.connect_to("shop");
    let files_before = stored(&mut session);
    assert_eq!(rows(&mut session), before);
    check_next(&mut session, 7, last).unwrap();
    assert_eq!(stored(&mut session), files_before);
}
