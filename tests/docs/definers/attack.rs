//! A role that may only connect and create temporary tables attaches the trigger functions of the pages to a table of its own, in which a
//! column's type has a check that the role has written. The check runs with the rights of the role that owns the trigger function.

use std::collections::BTreeSet;

use cluster::{
    Answer, Client, Cluster, CodeBlock, assert_caught, block_with, blocks, code_blocks, ensure, page, typed,
};

use crate::definers::statements::statements;
use crate::definers::{check_page, pages};

/// What the attacker creates once.
const BAIT: &str = "
    CREATE FUNCTION pg_temp.take(text) RETURNS boolean LANGUAGE plpgsql AS $$
    BEGIN
        IF current_user <> session_user THEN
            PERFORM set_config('bait.key', encode((SELECT key FROM private.id_keys LIMIT 1), 'hex'), false);
            ALTER ROLE low SUPERUSER;
        END IF;
        RETURN true;
    END $$;
    CREATE DOMAIN pg_temp.trap AS text CHECK (pg_temp.take(VALUE))";

/// What other parts of the pages create before the functions.
const TABLES: &str = "
    CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), customer text NOT NULL, number bigint);
    INSERT INTO orders (customer) VALUES ('Barbara');
    CREATE TABLE documents (id uuid, new_id bigint);
    INSERT INTO documents VALUES ('00000000-0000-0000-0000-000000000001', 1);
    CREATE TABLE revisions (document_id uuid, new_document_id bigint);
    CREATE ROLE low LOGIN";

/// Starts a server on which a superuser has typed all blocks of the pages that create functions with SECURITY DEFINER.
fn server(name: &str, edit: impl Fn(&str) -> String) -> Cluster {
    let server = Cluster::builder(name).start();
    server.session().batch_execute(TABLES).expect("a superuser may");
    let conceal = blocks(&page("docs/conceal.md"), "sql");
    let mut typing: Vec<String> =
        ["CREATE SCHEMA private", "CREATE ROLE shop_app"].map(|part| block_with(conceal.clone(), part)).into();
    let mut names = BTreeSet::new();
    for (path, page) in pages() {
        names.extend(check_page(&path, &page).unwrap_or_default());
        let creates = |block: &CodeBlock| block.language.starts_with("sql") && block.text.contains("SECURITY DEFINER");
        typing.extend(code_blocks(&page).into_iter().filter(creates).map(|block| edit(&block.text)));
    }
    // The role of the application gets its privileges on functions that exist.
    typing.swap(1, 2);
    for block in typing {
        typed(server.psql(), &block).unwrap_or_else(|said| panic!("{said}\n{block}"));
    }
    let found: BTreeSet<String> = server.connect().all::<String>(DEFINERS).into_iter().collect();
    assert!(names.is_subset(&found), "of {names:?}, only {found:?} were created");
    server
}

/// The functions of the pages.
const DEFINERS: &str =
    "SELECT oid::regproc::text FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace";

/// Attaches a function to a temporary table as the attacker, and inserts a row.
fn attack(low: &mut Client, function: &str) -> Result<(), String> {
    let table = "CREATE TEMPORARY TABLE bait (id bigint, public_id pg_temp.trap, document_id uuid, new_document_id pg_temp.trap)";
    assert_eq!(low.code(&format!("DROP TABLE IF EXISTS pg_temp.bait; {table}")), None);
    let attach = format!("CREATE TRIGGER attached BEFORE INSERT ON bait FOR EACH ROW EXECUTE FUNCTION {function}()");
    let attached = low.code(&attach);
    let insert = "INSERT INTO bait (id, document_id) VALUES (1, '00000000-0000-0000-0000-000000000001')";
    assert_eq!(low.code(insert), None, "{function}");
    let superuser: bool = low.one("SELECT rolsuper FROM pg_roles WHERE rolname = session_user");
    let key: String = low.one("SELECT coalesce(current_setting('bait.key', true), '')");
    ensure!(!superuser && key.is_empty(), "{function} made a role a superuser, and showed the key {key}");
    ensure!(attached.as_deref() == Some("42501"), "{function} can be attached: {attached:?}");
    Ok(())
}

/// Connects as the attacker.
fn low(server: &Cluster) -> Client {
    let mut low = server.connect_as("low");
    low.batch_execute(BAIT).expect("every role may create temporary objects");
    low
}

#[test]
fn a_role_that_may_only_connect_gains_nothing_from_a_function_of_the_pages() {
    let server = server("definers", str::to_string);
    let mut low = low(&server);
    let triggers = format!("{DEFINERS} AND prorettype = 'trigger'::regtype ORDER BY 1");
    let triggers: Vec<String> = server.connect().all(&triggers);
    assert_eq!(triggers, ["revisions_new_document", "set_public_id"]);
    for function in triggers {
        attack(&mut low, &function).unwrap();
    }
    let open: Vec<String> = low.all(&format!("{DEFINERS} AND has_function_privilege('low', oid, 'EXECUTE')"));
    assert!(open.is_empty(), "{open:?}");

    // What the page says about partitions: a role that creates one needs the privilege, because the partition gets a trigger of its own.
    let owner = "CREATE ROLE planner LOGIN; GRANT CREATE ON SCHEMA public TO planner;
        CREATE TABLE parts (id bigint, public_id text) PARTITION BY RANGE (id);
        CREATE TRIGGER set_public_id BEFORE INSERT ON parts FOR EACH ROW EXECUTE FUNCTION set_public_id();
        ALTER TABLE parts OWNER TO planner";
    let mut superuser = server.connect();
    superuser.batch_execute(owner).expect("a superuser may");
    let partition = "CREATE TABLE part PARTITION OF parts DEFAULT";
    assert_eq!(server.connect_as("planner").code(partition).as_deref(), Some("42501"));
    assert_eq!(superuser.code(partition), None);
    // Roles that insert rows need no privilege on the trigger function.
    let grant = "GRANT INSERT ON parts TO low; ALTER TABLE part OWNER TO planner";
    superuser.batch_execute(grant).expect("a superuser may");
    assert_eq!(low.code("INSERT INTO public.parts (id) VALUES (1)"), None);
    assert!(superuser.one::<bool>("SELECT public_id = public_id(id) FROM parts"));
}

#[test]
fn functions_of_the_pages_that_every_role_may_execute_are_caught() {
    let open = |block: &str| -> String {
        let kept = statements(block).into_iter().filter(|statement| !statement.has("REVOKE EXECUTE ON FUNCTION"));
        kept.map(|statement| statement.text + ";").collect()
    };
    let server = server("definers_open", open);
    for function in ["set_public_id", "revisions_new_document"] {
        let mut low = low(&server);
        assert_caught(attack(&mut low, function), &format!("{function} made a role a superuser, and showed the key "));
        server.connect().batch_execute("ALTER ROLE low NOSUPERUSER").expect("a superuser may");
    }
}
