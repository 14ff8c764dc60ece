//! Functions do the same whatever objects a session's search path offers in place of PostgreSQL's own.

use cluster::{Answer, Client, Cluster, assert_caught, ensure, printed, sqlstate};

/// Names that precede those of PostgreSQL: operators and functions with wrong results, empty catalogs, types of other kinds.
const TRAP: &str = "
    CREATE SCHEMA trap;
    DO $$ DECLARE kind text; name text; BEGIN
        FOREACH kind IN ARRAY '{bigint,integer,smallint,oid,name,text,timestamptz}'::text[] LOOP
            EXECUTE format('CREATE FUNCTION trap.never(%s, %1$s) RETURNS boolean LANGUAGE sql RETURN false', kind);
            FOREACH name IN ARRAY '{=,<>,<,<=,>,>=}'::text[] LOOP
                EXECUTE format('CREATE OPERATOR trap.%s (LEFTARG = %s, RIGHTARG = %2$s, FUNCTION = trap.never)', name, kind);
            END LOOP;
        END LOOP;
        FOREACH name IN ARRAY '{pg_class,pg_inherits,pg_namespace,pg_partitioned_table,pg_proc}'::text[] LOOP
            EXECUTE format('CREATE VIEW trap.%I AS SELECT * FROM pg_catalog.%1$I LIMIT 0', name);
        END LOOP;
    END $$;
    CREATE TABLE trap.pg_attribute (attrelid oid, attnum smallint, atttypid oid);
    CREATE FUNCTION trap.zero(bigint, bigint) RETURNS bigint LANGUAGE sql RETURN 0;
    CREATE OPERATOR trap.& (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.zero);
    CREATE OPERATOR trap.+ (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.zero);
    CREATE VIEW trap.pg_trigger AS SELECT * FROM pg_catalog.pg_trigger LIMIT 0;
    CREATE FUNCTION trap.to_regclass(text) RETURNS regclass LANGUAGE sql RETURN NULL;
    CREATE AGGREGATE trap.max(bigint) (SFUNC = trap.zero, STYPE = bigint);
    CREATE AGGREGATE trap.min(bigint) (SFUNC = trap.zero, STYPE = bigint);
    CREATE AGGREGATE trap.count(bigint) (SFUNC = trap.zero, STYPE = bigint);
    CREATE FUNCTION trap.replace(text, text, text) RETURNS text LANGUAGE sql RETURN 'replaced';
    CREATE FUNCTION trap.pg_get_expr(pg_node_tree, oid) RETURNS text LANGUAGE sql RETURN 'got';
    CREATE FUNCTION trap.now() RETURNS timestamptz LANGUAGE sql RETURN timestamptz '2035-01-01Z';
    CREATE FUNCTION trap.convert_from(bytea, name) RETURNS text LANGUAGE sql RETURN 'converted';
    CREATE DOMAIN trap.int8 AS text; CREATE DOMAIN trap.regtype AS text; CREATE DOMAIN trap.name AS integer;";

/// Tables for the calls below, and an ID for the mark.
const TABLES: &str = "
    CREATE TABLE days (id bigint) PARTITION BY RANGE (id);
    SELECT snowflake_create_partitions('days', '1 day', 2, '2024-02-01Z');
    CREATE TABLE decades (id bigint) PARTITION BY RANGE (id);
    CREATE TABLE orders (id bigint PRIMARY KEY);
    INSERT INTO orders SELECT snowflake_encode(timestamptz '2024-02-01Z' + n * interval '1 hour', 1, 0) FROM generate_series(0, 999) AS n;
    ANALYZE orders;
    CREATE TABLE copies (id bigint);
    INSERT INTO copies SELECT id FROM orders UNION ALL (SELECT id FROM orders ORDER BY id LIMIT 3);
    INSERT INTO copies VALUES (-5), (snowflake_encode('2024-02-01Z', 9, 9));
    CREATE TABLE issued (id bigint);
    INSERT INTO issued SELECT snowflake_nextval();
    SELECT snowflake_create_series('invoice', 'INV-{YYYY}-{n:4}', time_zone => 'UTC');
    INSERT INTO invoice VALUES ('2024', 41);
    CREATE TABLE invoices (id bigint, number text);
    SELECT snowflake_number_at_commit('invoices', 'number', 'invoice');";

/// Functions of the same effect that do not qualify names. They are called `naive` instead of `snowflake`.
const NAIVE: &str = r#"
    CREATE FUNCTION naive_create_partitions(parent regclass, step interval, parts integer, at timestamptz DEFAULT NULL)
        RETURNS SETOF regclass LANGUAGE plpgsql AS $$ BEGIN
            IF EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = parent) THEN
                RETURN QUERY SELECT snowflake_create_partitions(parent, step, parts, coalesce(at, now()));
            END IF;
        END $$;
    CREATE FUNCTION naive_partition_bounds(f timestamptz, u timestamptz, step interval)
        RETURNS TABLE (from_time timestamptz, until_time timestamptz, from_id bigint, until_id bigint) LANGUAGE sql AS
        'SELECT * FROM snowflake_partition_bounds(f, u, step) AS bounds WHERE bounds.from_time < u';
    CREATE FUNCTION naive_between(id bigint, f timestamptz, u timestamptz) RETURNS boolean LANGUAGE sql STABLE AS
        'SELECT id >= snowflake_first_id_from(f) AND id <= snowflake_last_id_before(u)';
    CREATE FUNCTION naive_check(regclass) RETURNS TABLE (problem text, ids bigint) LANGUAGE sql AS
        $$ SELECT 'duplicate', count(id) FROM copies GROUP BY id HAVING count(id) > 1 $$;
    CREATE FUNCTION naive_set_mark(mark bigint, "table" regclass) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT FROM issued WHERE id >= mark) THEN RAISE EXCEPTION SQLSTATE '55000'; END IF;
        RETURN mark;
    END $$;
    CREATE FUNCTION naive_serial(series regclass, day date) RETURNS text LANGUAGE plpgsql AS $$ DECLARE number bigint; BEGIN
        UPDATE public.invoice SET last_number = last_number + 1 WHERE period = '2024' RETURNING last_number INTO number;
        RETURN 'INV-2024-00' || number;
    END $$;
    CREATE FUNCTION naive_serial_gaps(relation regclass, key text, series regclass) RETURNS SETOF bigint LANGUAGE sql AS
        $$ SELECT n FROM public.invoice, pg_catalog.generate_series(1, last_number) AS n WHERE n >= 1::pg_catalog.int8 $$;
    CREATE FUNCTION naive_create_series(name text, template text) RETURNS regclass LANGUAGE plpgsql AS $$ BEGIN
        IF to_regclass('public.invoice') IS NULL THEN RAISE EXCEPTION SQLSTATE '42P01'; END IF;
        RETURN public.snowflake_create_series(name, template);
    END $$;
    CREATE FUNCTION naive_series() RETURNS TABLE (series regclass, template text) LANGUAGE sql AS $$
        SELECT tgrelid, 'INV-{YYYY}-{n:4}' FROM pg_trigger WHERE tgname = 'snowflake_series' $$"#;

/// The calls, and a part of each answer. The statements themselves use no name from the trap.
const CALLS: [(&str, &str); 11] = [
    ("SELECT FUNCTION_create_partitions('public.days', '1 day', 4, '2024-02-01Z')", "days_20240203\ndays_20240204"),
    ("SELECT FUNCTION_create_partitions('public.decades', '10 years', 1)", "decades_20"),
    ("SELECT * FROM FUNCTION_partition_bounds('2024-01-31Z', '2024-04-30Z', '1 month')", "2024-03-31 00:00:00+00"),
    ("SELECT id FROM public.orders WHERE FUNCTION_between(id, '2024-02-02Z', '2024-02-03Z')", "\n"),
    // A real call, because the planner does not inline a function that is STRICT.
    (
        "ALTER FUNCTION FUNCTION_between STRICT;
         SELECT id FROM public.orders WHERE FUNCTION_between(id, '2024-02-02Z', '2024-02-03Z')",
        "\n",
    ),
    ("SELECT * FROM FUNCTION_check('public.copies')", "duplicate"),
    ("SELECT FUNCTION_set_mark((TABLE public.issued), 'public.issued')", "55000"),
    ("SELECT FUNCTION_serial('public.invoice', date '2024-05-05')", "INV-2024-0042"),
    ("SELECT * FROM FUNCTION_serial_gaps('public.invoices', 'number', 'public.invoice')", "1"),
    ("SELECT FUNCTION_create_series('public.receipt', '{n:3}')", "receipt"),
    ("SELECT template FROM FUNCTION_series()", "INV-{YYYY}-{n:4}"),
];

/// The answer to a call with this search path.
fn answer(session: &mut Client, path: &str, call: &str) -> String {
    let sql = format!("BEGIN; SET LOCAL search_path = {path}; {call}");
    let answer = printed(session, &sql).map_or_else(|error| sqlstate(&error).0, |rows| rows.join("\n"));
    session.run("ROLLBACK");
    answer
}

/// A call gives the same answer whatever names precede PostgreSQL's own.
fn check_answer(session: &mut Client, call: &str, part: &str) -> Result<(), String> {
    let plain = answer(session, "public", call);
    ensure!(plain.contains(part), "{call}: {plain}");
    let trapped = answer(session, "trap, pg_catalog, public", call);
    ensure!(trapped == plain, "{call}: trapped: {trapped}, not {plain}");
    Ok(())
}

#[test]
fn names_of_the_session_change_nothing() {
    let (_server, mut session) = Cluster::builder("search_path").start_session();
    for made in [TRAP, TABLES, NAIVE] {
        session.run(made);
    }
    for (call, part) in CALLS {
        check_answer(&mut session, &call.replace("FUNCTION_", "public.snowflake_"), part).unwrap();
        // The negative control: the trap works.
        assert_caught(check_answer(&mut session, &call.replace("FUNCTION_", "public.naive_"), part), ": trapped: ");
    }
    // The index is also used when the planner inlines the call.
    session.run("SET search_path = trap, pg_catalog, public");
    let plan = session.plan(&CALLS[3].0.replace("FUNCTION_", "public.snowflake_"));
    assert!(plan.contains("Index Cond: ((id OPERATOR(pg_catalog.>=) "), "{plan}");
    // The trigger also works at COMMIT, and after its plan was made with another search path.
    for path in ["trap, pg_catalog, public", "public", "trap, pg_catalog, public"] {
        session.run(&format!("SET search_path = {path}; INSERT INTO public.invoices VALUES (1)"));
    }
    session.run("SET search_path = public");
    let numbered = "SELECT count(DISTINCT i.number) FROM invoices AS i, snowflake_serial_parse('invoice', i.number)";
    assert_eq!(session.one::<i64>(numbered), 3);
    session.run("SET search_path = trap, pg_catalog, public");
    // The partitions are still there, and none was added.
    assert_eq!(session.one::<i64>("SELECT pg_catalog.count(*) FROM pg_catalog.pg_class WHERE relispartition"), 2);
}
