//! docs/conceal.md: who can read the key, where it appears, and which index finds the rows. `pages.rs` compares what the blocks
//! print.

use cluster::{
    Answer, Client, Cluster, Host, Stop, assert_caught, block_with, blocks, ensure, hex, not_tested, output, page,
    sqlstate, typed,
};

/// A key that no other text contains.
const KEY: &str = "k3y-that-must-not-appear-in-logs";

/// Returns the only block of the page that contains this text.
pub fn block(part: &str) -> String {
    block_with(blocks(&page("docs/conceal.md"), "sql"), part)
}

/// Starts a server with the page's functions, and with 10,000 orders.
pub fn server(name: &str) -> (Cluster, Client) {
    let server = Cluster::builder(name).start();
    let mut session = server.session();
    let table = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text NOT NULL)";
    let parts =
        ["CREATE SCHEMA private", "CREATE FUNCTION public_id(", "CREATE ROLE shop_app", "CREATE FUNCTION public_id_1("];
    let rows =
        "INSERT INTO orders (customer) SELECT 'customer ' || n FROM generate_series(1, 10000) AS n; ANALYZE orders";
    for sql in [table.to_string()].into_iter().chain(parts.map(block)).chain([rows.to_string()]) {
        session.run(&sql);
    }
    (server, session)
}

#[test]
fn the_application_uses_the_key_and_cannot_read_it() {
    let (server, mut owner) = server("conceal_roles");
    let id: i64 = owner.one("SELECT id FROM orders WHERE customer = 'customer 7'");
    let public: String = owner.one(&format!("SELECT public_id({id})"));
    let roles = "ALTER ROLE shop_app LOGIN; CREATE ROLE stranger LOGIN; CREATE SCHEMA trap AUTHORIZATION shop_app;
         CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader";
    owner.batch_execute(roles).unwrap();
    // The page names this role among the readers of the key.
    assert_eq!(server.connect_as("reader").one::<i64>("SELECT count(key) FROM private.id_keys"), 1);
    let mut application = server.connect_as("shop_app");
    assert_eq!(application.one::<i64>(&format!("SELECT order_of('{public}')")), id);
    assert_eq!(application.one::<String>(&format!("SELECT public_id({id})")), public);
    assert_eq!(application.one::<String>(&format!("SELECT public_id_1({id})")), public);
    assert_eq!(application.code("SELECT key FROM private.id_keys").as_deref(), Some("42501"));
    let mut stranger = server.connect_as("stranger");
    for call in [format!("public_id({id})"), format!("public_id_1({id})"), format!("order_of('{public}')")] {
        assert_eq!(stranger.code(&format!("SELECT {call}")).as_deref(), Some("42501"), "{call}");
    }
    // Functions of the caller do not replace those that the body names.
    let trap = "CREATE FUNCTION trap.snowflake_conceal_text(bigint, bytea, bytea) RETURNS text
             LANGUAGE sql RETURN encode($2, 'hex');
         CREATE FUNCTION trap.snowflake_reveal_text(text, bytea, bytea) RETURNS bigint LANGUAGE sql RETURN 1;
         SET search_path = trap, public, pg_catalog";
    application.batch_execute(trap).expect("the role owns the schema");
    assert_eq!(application.one::<String>(&format!("SELECT public.public_id({id})")), public);
    assert_eq!(application.one::<i64>(&format!("SELECT public.order_of('{public}')")), id);
}

/// The error of the page's functions if the row of the key is missing.
fn missing() -> (String, String) {
    let message = "the row of the key is missing in private.id_keys";
    assert!(page("docs/conceal.md").contains("`the row of the key is missing in private.id_keys`"));
    ("55000".into(), message.into())
}

#[test]
fn a_key_that_is_deleted_too_early_is_reported_and_can_be_inserted_again() {
    let (_server, mut session) = server("conceal_early");
    let delete = "CREATE TABLE backup AS SELECT * FROM private.id_keys; DELETE FROM private.id_keys";
    session.batch_execute(delete).expect("the owner may");
    let insert = "INSERT INTO orders (customer) VALUES ('Grace')";
    assert_eq!(session.refusal(insert), missing());
    assert_eq!(session.refusal("SELECT public_id(1)"), missing());
    // With a constant, the planner must not call the function that raises the error.
    session.batch_execute("INSERT INTO private.id_keys SELECT * FROM backup").expect("the owner may");
    assert_eq!(session.code(insert), None);
    assert_eq!(session.code("SELECT public_id(1), public_id_1(1)"), None);
    // The other way of the hint. The index is not built again without its key.
    session.batch_execute("DELETE FROM private.id_keys; DROP INDEX orders_public_id").expect("the owner may");
    assert_eq!(session.code(insert), None);
    let create = "CREATE UNIQUE INDEX orders_public_id ON orders (public_id_1(id))";
    assert!(block("CREATE FUNCTION public_id_1(").contains(create));
    assert_eq!(session.refusal(create), missing());
}

/// Checks that the regular expression of the page matches the public IDs and no text that aborts a transaction.
fn check_pattern(pattern: &str) -> Result<(), String> {
    let (_server, mut session) = server("conceal_pattern");
    let ours: i64 = session.one(&format!("SELECT count(*) FROM orders WHERE public_id(id) ~ '{pattern}'"));
    ensure!(ours == 10_000, "only {ours} public IDs match");
    // Each character in each place, also after the last one, and other lengths.
    let candidates = "SELECT overlay('1-0W66XNJVHPTA1' PLACING chr(c) FROM place FOR 1)
             FROM generate_series(1, 127) AS c, generate_series(1, 16) AS place
         UNION VALUES (''), ('1'), ('1-'), ('-0W66XNJVHPTA1'), ('1-0W66XNJVHPTA'), ('1-0W66XNJVHPTA11'), ('10-ZZZZZZZZZZZZZ'),
             ('99999999999999999999-0W66XNJVHPTA1'), ('1-0W66XNJVHPTA1-tea'), ('1-7ZZZZZZZZZZZZ'), ('1--0W66XNJVHPTA1')";
    let texts =
        session.all::<String>(&format!("SELECT * FROM ({candidates}) AS texts (text) WHERE text ~ '{pattern}'"));
    ensure!(texts.len() > 300, "the pattern matches {} texts", texts.len());
    for text in texts {
        session.query("SELECT order_of($1)", &[&text]).map_err(|error| format!("{text} is refused: {error:?}"))?;
    }
    Ok(())
}

#[test]
fn a_text_of_the_form_that_the_page_shows_raises_no_error() {
    let page = page("docs/conceal.md");
    let pattern = page.lines().find(|line| line.starts_with("^[0-9]+-")).expect("a regular expression");
    check_pattern(pattern).unwrap();
    assert_caught(check_pattern(&pattern.replace("[0-7]", "[0-9]")), "is refused");
    assert_caught(check_pattern(&pattern.replace("HJK", "HK")), "public IDs match");
}

/// Follows the steps of the page for a new key. After each step, the application inserts a row, and finds rows by public IDs with the
/// version that `public_id` returned before the steps and with the one that it returns now.
#[test]
fn rows_are_found_by_old_and_new_public_ids_while_the_key_is_changed() {
    let (server, mut owner) = server("conceal_rotation");
    owner.batch_execute(&block("CREATE TRIGGER set_public_id")).expect("the page's trigger");
    owner.batch_execute("ALTER ROLE shop_app LOGIN").expect("a superuser may");
    let mut application = server.connect_as("shop_app");
    let id: i64 = owner.one("SELECT id FROM orders WHERE customer = 'customer 7'");
    let old: String = owner.one(&format!("SELECT public_id({id})"));
    let steps = [
        ("RETURN public_id_1(id);", "1-", "public_id_1(id) = $1"),
        ("CREATE FUNCTION public_id_2(", "1-", "public_id_1(id) = $1"),
        ("left(public_id_1(id), 2) AS old", "2-", "public_id_1(id) = $1 OR public_id_2(id) = $1"),
        ("ADD COLUMN old_public_id", "2-", "public_id_1(id) = $1 OR public_id_2(id) = $1"),
        ("SET old_public_id = public_id,", "2-", "public_id = $1 OR old_public_id = $1"),
        ("DROP INDEX CONCURRENTLY orders_public_id;", "2-", "public_id_2(id) = $1"),
        ("DELETE FROM private.id_keys WHERE version = 1", "2-", "public_id_2(id) = $1"),
    ];
    let find = |application: &mut Client, filter: &str, public: &String| -> Vec<i64> {
        let rows = application.query(&format!("SELECT id FROM orders WHERE {filter}"), &[public]);
        rows.expect(filter).iter().map(|row| row.get(0)).collect()
    };
    let mut columns = false;
    for (step, version, filter) in steps {
        // One statement at a time, because CONCURRENTLY is not allowed in a transaction.
        typed(server.psql(), &block(step)).unwrap_or_else(|e| panic!("{step}: {e}"));
        let row = application
            .query_one("INSERT INTO orders (customer) VALUES ('Grace') RETURNING id, public_id(id), public_id", &[])
            .unwrap_or_else(|e| panic!("{step}: {e:?}"));
        let (inserted, public): (i64, String) = (row.get(0), row.get(1));
        assert!(public.starts_with(version) && row.get::<_, String>(2) == public, "{step}: {public}");
        let current: String = application.one(&format!("SELECT public_id({id})"));
        let deleted = step.starts_with("DELETE");
        columns = (columns || step.starts_with("ADD COLUMN")) && !deleted;
        if columns {
            let shown: String = application.one(&format!("SELECT public_id FROM orders WHERE id = {id}"));
            for public in [&shown, &old] {
                let found = find(&mut application, "public_id = $1 OR old_public_id = $1", public);
                assert_eq!(found, [id], "{step}: {public}");
            }
        }
        for (public, id) in [(&public, inserted), (&current, id), (&old, id)] {
            let found: Option<i64> = application.query_one("SELECT order_of($1)", &[public]).expect(step).get(0);
            assert_eq!(found, (!deleted || *public != old).then_some(id), "{step}: {public}");
            // A public ID of the old version is found by the index until the index is dropped.
            if !filter.starts_with("public_id_2") || *public != old {
                assert_eq!(find(&mut application, filter, public), [id], "{step}: {public}");
            }
        }
    }
    let plan = owner.plan("SELECT customer FROM orders WHERE public_id_2(id) = '2-0W66XNJVHPTA1'");
    assert!(plan.contains("Index Scan using orders_public_id_2"), "{plan}");
    assert_eq!(owner.one::<i64>("SELECT count(*) FROM orders WHERE public_id IS DISTINCT FROM public_id_2(id)"), 0);
}

#[test]
fn a_changed_link_finds_no_order() {
    let (_server, mut session) = server("conceal_links");
    let public: String = session.one("SELECT public_id(id) FROM orders WHERE customer = 'customer 7'");
    for changed in [public.replacen("1-", "2-", 1), public.replace('-', ""), String::new()] {
        assert_eq!(session.one::<Option<i64>>(&format!("SELECT order_of('{changed}')")), None, "{changed}");
    }
    // Another character is another ID, and what is not a concealed ID is one of the two errors that the page names.
    let other = if public.ends_with('0') { "1" } else { "0" };
    let other = format!("{}{other}", &public[..public.len() - 1]);
    assert_eq!(session.one::<i64>(&format!("SELECT count(*) FROM orders WHERE id = order_of('{other}')")), 0);
    for (changed, code) in [
        ("1".to_string(), "22023"),
        ("1-".into(), "22023"),
        (format!("{public}0"), "22023"),
        ("1-8000000000000".into(), "22003"),
    ] {
        assert_eq!(session.code(&format!("SELECT order_of('{changed}')")).as_deref(), Some(code), "{changed}");
    }
}

#[test]
fn the_primary_key_and_the_index_find_the_rows() {
    let (_server, mut session) = server("conceal_plans");
    let plan = session.plan("SELECT customer FROM orders WHERE id = order_of('1-0W66XNJVHPTA1')");
    assert!(plan.contains("Index Scan using orders_pkey") && !plan.contains("Filter"), "{plan}");
    let plan = session.plan("SELECT customer FROM orders WHERE public_id_1(id) = '1-0W66XNJVHPTA1'");
    assert!(plan.contains("Index Scan using orders_public_id") && !plan.contains("Filter"), "{plan}");
    // The report of the page, which joins a list.
    let found: i64 = session.one(
        "WITH list AS MATERIALIZED (SELECT public_id_1(id) AS public_id FROM orders ORDER BY id LIMIT 100)
         SELECT count(*) FROM list JOIN orders ON public_id_1(orders.id) = list.public_id",
    );
    assert_eq!(found, 100);
}

#[test]
fn a_dump_of_the_page_is_restored() {
    let (server, mut session) = server("conceal_dump");
    session.batch_execute(&block("CREATE TRIGGER set_public_id")).expect("the page's trigger");
    let public: String = session.one("SELECT public_id FROM orders WHERE customer = 'Katherine'");
    let dump = output(&mut server.program("pg_dump"));
    session.batch_execute("CREATE DATABASE restored").expect("a superuser may");
    let mut psql = server.psql();
    psql.args(["--dbname", "restored"]);
    typed(psql, &dump).expect("a dump that can be restored");
    let mut restored = server.connect_to("restored");
    for query in ["id = order_of($1)", "public_id_1(id) = $1", "public_id = $1"] {
        let found = restored.query_one(&format!("SELECT customer FROM orders WHERE {query}"), &[&public]).expect(query);
        assert_eq!(found.get::<_, String>(0), "Katherine", "{query}");
    }
}

#[test]
fn the_log_contains_the_constants_of_a_statement_that_fails_and_parameters_only_if_they_are_logged() {
    let mut server = Cluster::builder("conceal_log").start();
    let parameter = |server: &Cluster, id: i64| {
        let mut session = server.session();
        session.query("SELECT snowflake_conceal($1, $2)", &[&id, &KEY.as_bytes()]).map(drop)
    };
    // As a parameter, also if the statement fails. A key of a wrong length is no exception.
    parameter(&server, 1).expect("a concealed ID");
    let (_, message, detail, hint) = sqlstate(&parameter(&server, -1).expect_err("not an ID"));
    assert!(![&message, &detail, &hint].iter().any(|text| text.contains(KEY)), "{message} {detail} {hint}");
    let refused =
        server.session().query("SELECT snowflake_conceal(1, $1)", &[&&KEY.as_bytes()[1..]]).expect_err("31 bytes");
    let (code, message, detail, hint) = sqlstate(&refused);
    assert_eq!((code.as_str(), message.as_str()), ("22023", "invalid key length"));
    assert!(![&detail, &hint].iter().any(|text| text.contains(&KEY[1..])), "{detail} {hint}");
    let hex = hex(KEY.as_bytes());
    let shown = |server: &Cluster| server.log().contains(&KEY[1..]) || server.log().contains(&hex[2..]);
    assert!(server.log().contains("-1 is not an ID") && !shown(&server), "{}", server.log());
    // As a constant of a statement that fails. The server begins a new log when it is restarted.
    let failed = format!("SELECT snowflake_conceal(-1, '{KEY}')");
    assert_eq!(server.session().code(&failed).as_deref(), Some("22003"));
    assert!(server.log().contains(KEY), "{}", server.log());
    // With every statement in the log, the parameters are there, unless their length is limited to 0.
    server.set("log_statement", "all");
    server.set("log_parameter_max_length", "0");
    server.restart(Stop::Fast);
    parameter(&server, 2).expect("a concealed ID");
    assert!(server.log().contains("SELECT snowflake_conceal($1, $2)") && !shown(&server), "{}", server.log());
    server.set("log_parameter_max_length", "-1");
    server.restart(Stop::Fast);
    parameter(&server, 3).expect("a concealed ID");
    assert!(shown(&server), "{}", server.log());
}

#[test]
fn every_role_can_read_a_constant_in_the_catalog() {
    let server = Cluster::builder("conceal_catalog").start();
    let mut owner = server.session();
    let objects = format!(
        "CREATE TABLE orders (id bigint PRIMARY KEY, public_id bigint GENERATED ALWAYS AS (snowflake_conceal(id, '{KEY}')) STORED);
             CREATE INDEX by_expression ON orders (snowflake_conceal(id, '{KEY}'));
             CREATE VIEW shown AS SELECT snowflake_conceal(id, '{KEY}') FROM orders;
             CREATE ROLE stranger LOGIN"
    );
    owner.batch_execute(&objects).expect("objects with a constant");
    let mut stranger = server.connect_as("stranger");
    // Definitions show a bytea in hexadecimal.
    let hex = hex(KEY.as_bytes());
    for definition in [
        "pg_get_indexdef('by_expression'::regclass)",
        "pg_get_viewdef('shown'::regclass)",
        "(SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'orders'::regclass)",
    ] {
        let definition: String = stranger.one(&format!("SELECT {definition}"));
        assert!(definition.contains(&hex), "{definition}");
    }
}

#[test]
fn statistics_show_the_bodies_of_functions_and_no_constants_of_queries() {
    if !Host::get().installation().libraries.join("pg_stat_statements.so").exists() {
        return not_tested("pg_stat_statements, which this PostgreSQL lacks");
    }
    let server = Cluster::builder("conceal_statements")
        .set("shared_preload_libraries", "snowflake_pg, pg_stat_statements")
        .start();
    let mut session = server.session();
    session.batch_execute("CREATE EXTENSION pg_stat_statements").expect("an extension");
    session.batch_execute(&format!("SELECT snowflake_conceal(1, '{KEY}')")).expect("a concealed ID");
    let shown = |session: &mut Client| {
        session.all::<String>("SELECT query FROM pg_stat_statements WHERE query LIKE '%snowflake_conceal(%'")
    };
    let seen = shown(&mut session);
    assert!(seen.contains(&"SELECT snowflake_conceal($1, $2)".into()) && !seen.concat().contains(KEY), "{seen:?}");
    let body = format!(
        "CREATE FUNCTION concealed(bigint) RETURNS bigint LANGUAGE sql AS $$ SELECT snowflake_conceal($1, '{KEY}') $$"
    );
    session.batch_execute(&body).expect("a function");
    assert!(shown(&mut session).concat().contains(KEY));
}
