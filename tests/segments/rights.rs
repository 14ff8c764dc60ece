//! Which privileges a role needs to draw, and that a name in a text gives none.

use cluster::{Answer, Client, Cluster, assert_caught, ensure, sqlstate};

use crate::servers::{DRAW, empty_registry, registry, server};

pub const CREATE: &str =
    "SELECT snowflake_create_series('ticket', 'T-{YYYY}-{n:6}', kind => 'dense', time_zone => 'UTC')";
pub const NEXT: &str = "SELECT snowflake_serial('ticket', date '2026-03-01')";

/// The view is for roles that monitor the server, and the numbers are for roles that were granted the function.
#[test]
fn only_granted_roles_draw_and_monitoring_roles_look() {
    let registry = registry("seg_roles", 100);
    let (server, mut client) = server("seg_roles_1", &registry).start_session();
    client.run("CREATE ROLE app LOGIN; CREATE ROLE ops LOGIN; GRANT pg_monitor TO ops");
    let mut app = server.connect_as("app");
    let [code, message, ..] = app.error(DRAW);
    assert_eq!([code, message], ["42501", "permission denied for function snowflake_segment_nextval"]);
    client.run("GRANT EXECUTE ON FUNCTION snowflake_segment_nextval(text) TO app");
    assert_eq!(app.one::<i64>(DRAW), 1);
    assert_eq!(app.code("SELECT * FROM snowflake_segments").as_deref(), Some("42501"));
    assert_eq!(server.connect_as("ops").one::<i64>("SELECT numbers_left FROM snowflake_segments"), 99);
}

/// The ways to draw a number through the function that is put into the defaults of a COPY. It draws for each role that may draw.
const THROUGH_COPY: [&str; 3] = [
    "SELECT snowflake_copy_segment('orders')",
    "INSERT INTO filled (n) VALUES (1)",
    "COPY copied (n) FROM PROGRAM 'seq 3'",
];

/// Role `app` can insert rows, but it can draw only after it was granted the function.
fn draw_through_copy(name: &str, fault: Option<&str>) -> Result<(), String> {
    let registry = registry(name, 100);
    let (server, mut owner) = server(&format!("{name}_1"), &registry).fault_if(fault).start_session();
    owner.run(
        "CREATE ROLE app LOGIN; GRANT pg_execute_server_program TO app;
         CREATE TABLE filled (number bigint DEFAULT snowflake_copy_segment('orders'), n int);
         CREATE TABLE copied (number bigint DEFAULT snowflake_segment_nextval('orders'), n int);
         GRANT INSERT ON filled, copied TO app",
    );
    let mut app = server.connect_as("app");
    for statement in THROUGH_COPY {
        match app.batch_execute(statement) {
            Ok(()) => return Err(format!("a role without the privilege has drawn a number: {statement}")),
            Err(error) => {
                let (code, message, ..) = sqlstate(&error);
                let expected = ("42501", "permission denied for function snowflake_segment_nextval");
                assert_eq!((code.as_str(), message.as_str()), expected, "{statement}");
            }
        }
    }
    // Only the privilege was missing, and what was refused has drawn nothing.
    owner.run("GRANT EXECUTE ON FUNCTION snowflake_segment_nextval(text) TO app");
    for statement in THROUGH_COPY {
        app.run(statement);
    }
    let drawn: Vec<i64> = owner.all("SELECT number FROM filled UNION ALL SELECT number FROM copied ORDER BY number");
    assert_eq!(drawn, [2, 3, 4, 5]);
    Ok(())
}

#[test]
fn a_role_that_may_not_draw_draws_nothing_through_copy() {
    draw_through_copy("seg_copy", None).unwrap();
}

#[test]
fn a_privilege_that_copy_does_not_check_is_caught() {
    assert_caught(draw_through_copy("seg_copy_unchecked", Some("CopyUnchecked")), "without the privilege has drawn");
}

/// Starts a registry, and a server with a series of kind `dense` and with role `low`, which can connect and create temporary tables.
pub fn with_series(name: &str, fault: Option<&str>) -> (Cluster, Cluster) {
    let registry = empty_registry(name);
    let (server, mut owner) = server(&format!("{name}_1"), &registry).fault_if(fault).start_session();
    owner.run("CREATE ROLE low LOGIN; CREATE SCHEMA AUTHORIZATION low");
    owner.run(CREATE);
    (registry, server)
}

/// Writes the statement that makes a table a series by hand.
pub fn forged(table: &str, template: &str, start: &str, tag: &str) -> String {
    format!(
        "CREATE TRIGGER snowflake_series AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW
         EXECUTE FUNCTION public.snowflake_series_row('{template}', 'dense', 'UTC', '{start}', '{tag}')"
    )
}

/// Writes the statements that create such a table.
fn forged_table(table: &str, create: &str, template: &str, start: &str, tag: &str) -> String {
    format!("{create} {table} (period text PRIMARY KEY, last_number bigint); {}", forged(table, template, start, tag))
}

/// Role `low` attaches the trigger of the series to tables of its own, and draws the numbers of the series. It begins a year that the
/// series has not used, with a first number and lengths of blocks of its own.
fn attack(name: &str, fault: Option<&str>) -> Result<(), String> {
    let (registry, server) = with_series(name, fault);
    assert_eq!(server.connect().one::<String>(NEXT), "T-2026-000001");
    let mut low = server.connect_as("low");
    for (n, create) in ["CREATE TEMPORARY TABLE", "CREATE TABLE"].iter().enumerate() {
        low.run(&forged_table(&format!("own{n}"), create, "T-{YYYY}-{n:6}", "999000", "public.ticket"));
        for year in [2026, 2025] {
            let drawn = low.code(&format!("SELECT snowflake_serial('own{n}', date '{year}-03-01')"));
            ensure!(drawn.is_some(), "the numbers of the series were drawn from table {n}");
        }
    }
    let tags: Vec<String> = registry.connect().all("SELECT tag FROM snowflake_registry.segment");
    ensure!(tags == ["series public.ticket 2026"], "the registry has created {tags:?}");
    Ok(())
}

#[test]
fn a_name_in_the_arguments_of_a_trigger_gives_no_right() {
    attack("dense_forged", None).unwrap();
}

#[test]
fn a_tag_that_is_trusted_is_caught() {
    assert_caught(attack("dense_trusted", Some("TagTrusted")), "the numbers of the series were drawn");
}

/// What the owner of a series needs, whoever takes the numbers.
#[test]
fn the_owner_of_a_dense_series_needs_the_privilege_to_draw() {
    let (_registry, server) = with_series("dense_owner", None);
    let mut owner = server.session();
    let mut low = server.connect_as("low");
    let create = "SELECT snowflake_create_series('low.own', 'L-{YYYY}-{n:6}', kind => 'dense')";
    let lacking = |client: &mut Client, sql: &str, series: &str| {
        let [code, message, detail, hint] = client.error(sql);
        assert_eq!(
            [code, message],
            ["42501".into(), format!("the owner of series \"{series}\" is not allowed to draw numbers from segments")]
        );
        assert_eq!(
            detail,
            "Role \"low\" does not have the EXECUTE privilege on function public.snowflake_segment_nextval(text)."
        );
        let grant = "GRANT EXECUTE ON FUNCTION public.snowflake_segment_nextval(text) TO low";
        assert_eq!(hint, format!("As the owner of the extension, run {grant}."));
        grant
    };
    let grant = lacking(&mut low, create, "low.own");
    // The hint works.
    owner.run(grant);
    low.run(create);
    let next = "SELECT snowflake_serial('low.own', date '2026-03-01')";
    assert_eq!(low.one::<String>(next), "L-2026-000001");
    // The caller needs privileges on the table alone.
    owner.run("CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA low TO clerk");
    let mut clerk = server.connect_as("clerk");
    assert_eq!(clerk.code(next).as_deref(), Some("42501"));
    low.run("GRANT SELECT, INSERT, UPDATE ON low.own TO clerk");
    assert_eq!(clerk.one::<String>(next), "L-2026-000002");
    // A session that has drawn before notices that the privilege was revoked.
    owner.run("REVOKE EXECUTE ON FUNCTION snowflake_segment_nextval(text) FROM low");
    lacking(&mut clerk, next, "low.own");
    lacking(&mut owner, next, "low.own");
}

/// Even a role that can draw from every segment does not draw from those of a series that exists, except through the series.
#[test]
fn a_series_does_not_use_the_tag_of_another_series() {
    let (_registry, server) = with_series("dense_shared", None);
    let mut owner = server.session();
    owner.run("GRANT EXECUTE ON FUNCTION snowflake_segment_nextval(text) TO low");
    let mut low = server.connect_as("low");
    low.run(&forged_table("own", "CREATE TABLE", "T-{YYYY}-{n:6}", "1", "public.ticket"));
    let own = "SELECT snowflake_serial('own', date '2026-03-01')";
    let [code, message, detail, hint] = low.error(own);
    assert_eq!([code, message], ["42501", "series \"low.own\" is not allowed to draw from tag \"public.ticket\""]);
    assert_eq!(detail, "The table does not have the security label that snowflake_create_series() sets.");
    assert_eq!(
        hint,
        "If the table should have this tag, run SECURITY LABEL FOR snowflake_pg ON TABLE low.own IS 'public.ticket' as \
         a superuser. If the tag is the name of the table, the owner of the table can also run this statement."
    );
    // A tag that snowflake_create_series() does not write, such as that of a period.
    for (n, tag) in ["series public.ticket 2026", "public.\"ticket\"", "ticket", "public.ticket.x", "\"public.ticket"]
        .iter()
        .enumerate()
    {
        low.run(&forged_table(&format!("odd{n}"), "CREATE TABLE", "T-{n:6}", "1", tag));
        assert_eq!(low.code(&format!("SELECT snowflake_serial('odd{n}')")).as_deref(), Some("42501"), "{tag}");
    }
    low.run(&forged_table("passing", "CREATE TEMPORARY TABLE", "T-{YYYY}-{n:6}", "1", "public.ticket"));
    let [code, message, _, hint] = low.error("SELECT snowflake_serial('passing', date '2026-03-01')");
    assert_eq!(code, "42P16");
    assert!(message.ends_with("cannot be a series of kind \"dense\""), "{message}");
    assert_eq!(hint, "Create the series in a schema that is not temporary, or use kind \"gapless\".");
    let temporary = "SET search_path = pg_temp, public; \
                     SELECT snowflake_create_series('brief', 'B-{n:6}', kind => 'dense')";
    assert_eq!(owner.code(temporary).as_deref(), Some("42P16"));
    owner.run("RESET search_path");

    // A series that is renamed keeps its numbers, and its former name can be that of a table, but not of another dense series.
    assert_eq!(owner.one::<String>(NEXT), "T-2026-000001");
    owner.run("ALTER TABLE ticket RENAME TO case_number; CREATE TABLE ticket (period text)");
    let next = NEXT.replace("ticket", "case_number");
    assert_eq!(owner.one::<String>(&next), "T-2026-000002");
    owner.run("DROP TABLE ticket");
    let [code, message, detail, hint] = owner.error(CREATE);
    assert_eq!(
        [code, message],
        ["42710", "series \"public.ticket\" would share the numbers of series \"public.case_number\""]
    );
    assert_eq!(
        detail,
        "Only one table in a database can draw from a tag. The existing series has kept this tag, because it was \
         renamed or restored from a dump."
    );
    assert_eq!(hint, "Use a different name, or drop the existing series.");
    assert_eq!(owner.one::<String>(&next), "T-2026-000003");
    // The hint works, and a role without the privilege cannot keep a name from others.
    owner.run("DROP TABLE case_number");
    owner.run("REVOKE EXECUTE ON FUNCTION snowflake_segment_nextval(text) FROM low");
    owner.run(CREATE);
    assert_eq!(owner.one::<String>(NEXT), "T-2026-000004");
}
