//! Statements that the pages tell a superuser to run on all tables of a database run no code of other roles as the superuser.

use cluster::{Answer, Cluster, assert_caught, block_with, blocks, ensure, page, typed};

/// What the owner of the database `shop`, who also owns its schema `public`, puts into it. The functions and the operator fit the arguments
/// in the pages better than those of PostgreSQL and of the extension. A superuser that calls one of them makes the owner a superuser.
const TRAP: &str = "
    SET ROLE trapper;
    CREATE FUNCTION public.take() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN ALTER ROLE trapper SUPERUSER; END IF;
        RETURN true;
    END $$;
    CREATE FUNCTION public.same(regtype, oid) RETURNS boolean LANGUAGE sql AS 'SELECT public.take()';
    CREATE OPERATOR public.= (LEFTARG = regtype, RIGHTARG = oid, FUNCTION = public.same);
    CREATE FUNCTION public.format(text, regclass, regclass, name) RETURNS text LANGUAGE sql AS
        'SELECT ''SELECT '' || public.take()';
    CREATE FUNCTION public.format(text, regclass, name) RETURNS text LANGUAGE sql AS 'SELECT public.take()::text';
    CREATE FUNCTION public.snowflake_check(text, text) RETURNS TABLE (problem text) LANGUAGE sql AS
        'SELECT public.take()::text'";

/// What the owner does to a table: an index calls a function, which also puts a view in the place of another table. Both tables have a row
/// without an ID.
const TABLES: &str = "
    SET ROLE trapper;
    CREATE TABLE public.first (id bigint DEFAULT public.snowflake_nextval());
    CREATE TABLE public.second (id bigint DEFAULT public.snowflake_nextval());
    INSERT INTO public.first VALUES (NULL); INSERT INTO public.second VALUES (NULL);
    CREATE FUNCTION public.swap() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
        IF to_regclass('public.renamed') IS NULL AND current_setting('trap.set', true) = 'on' THEN
            ALTER TABLE public.second RENAME TO renamed;
            CREATE VIEW public.second AS SELECT id FROM public.renamed UNION ALL SELECT 1 WHERE public.take();
        END IF;
        RETURN public.take();
    END $$;
    CREATE FUNCTION public.yes(integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN public.swap(); END';
    CREATE INDEX ON public.first (id) WHERE public.yes(1)";

/// A superuser runs a block of a page in the database. Returns an error if the owner of the database has become a superuser.
fn check(name: &str, tables: &str, block: &str) -> Result<String, String> {
    let server = Cluster::builder(name).start();
    let mut session = server.connect();
    for statement in ["CREATE ROLE trapper", "CREATE DATABASE shop OWNER trapper"] {
        session.batch_execute(statement).expect("a superuser may");
    }
    for statements in ["CREATE EXTENSION snowflake_pg", TRAP, tables] {
        server.connect_to("shop").batch_execute(statements).expect("an owner may");
    }
    session.batch_execute("ALTER DATABASE shop SET trap.set = 'on'").expect("a superuser may");
    let mut psql = server.psql();
    psql.args(["-d", "shop"]);
    let printed = typed(psql, block)?;
    let taken: bool = session.one("SELECT rolsuper FROM pg_roles WHERE rolname = 'trapper'");
    ensure!(!taken, "the owner of the database has become a superuser");
    Ok(printed)
}

fn block(path: &str, info: &str) -> String {
    block_with(blocks(&page(path), info), "SET search_path")
}

#[test]
fn a_superuser_who_checks_all_tables_runs_no_code_of_the_owner_of_the_database() {
    let printed = check("superuser_check", TABLES, &block("docs/duplicates.md", "sql all tables")).unwrap();
    assert!(["public.first", "public.renamed", "(2 rows)"].iter().all(|part| printed.contains(part)), "{printed}");
}

#[test]
fn a_search_path_with_the_schema_of_the_owner_is_caught() {
    let trapped = block("docs/duplicates.md", "sql all tables").replace("pg_catalog;", "pg_catalog, public;");
    assert_caught(check("superuser_path", TABLES, &trapped).map(drop), "has become a superuser");
}

#[test]
fn tables_that_are_checked_by_name_are_caught() {
    let by_name = "SET search_path = pg_catalog;
        SELECT format('SELECT public.snowflake_check(%L, %L, NULL::integer[])', adrelid::regclass, attname)
        FROM pg_attrdef JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum ORDER BY adrelid \\gexec";
    assert_caught(check("superuser_name", TABLES, by_name).map(drop), "has become a superuser");
}

#[test]
fn a_superuser_who_looks_for_ids_of_the_future_runs_no_code_of_the_owner_of_the_database() {
    let tables = "SET ROLE trapper; CREATE TABLE public.orders (id bigint DEFAULT public.snowflake_nextval())";
    let text = block("docs/bad-day.md", "sql view");
    check("superuser_future", tables, &text).unwrap();
    let trapped = text.replace("= pg_catalog;", "= public;");
    assert_caught(check("superuser_future_path", tables, &trapped).map(drop), "has become a superuser");
}
