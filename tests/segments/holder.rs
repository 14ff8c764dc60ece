//! Which table draws from the tag of a series: one table of the database, which keeps it under a different name and after a restore.

use cluster::{Answer, assert_caught, ensure};

use crate::rights::{CREATE, forged, with_series};

/// The series has a different name now.
const RENAMED: &str = "SELECT snowflake_serial('case_number', date '2026-03-01')";

/// What role `low`, which has the privilege TRIGGER on table `notes`, and role `app`, which can draw, write as a definition of a series.
const FORGED: [(&str, &str, &str); 4] = [
    ("low", "notes", "public.ticket"),
    ("low", "notes", "public.notes"),
    ("app", "app.older", "public.ticket"),
    ("app", "app.older", "app.older"),
];

/// The roles attach the trigger of a series to tables that are older than the series, which then gets a different name.
fn attack(name: &str, is_restored: bool, fault: Option<&str>) -> Result<(), String> {
    let (_registry, server) = with_series(name, fault);
    let mut owner = server.session();
    owner.run(&format!(
        "DROP TABLE ticket; CREATE ROLE app LOGIN; CREATE SCHEMA app AUTHORIZATION app;
         GRANT EXECUTE ON FUNCTION snowflake_segment_nextval(text) TO app;
         CREATE TABLE notes (period text PRIMARY KEY, last_number bigint);
         GRANT SELECT, INSERT, UPDATE, TRIGGER ON notes TO low;
         SET ROLE app; CREATE TABLE app.older (period text PRIMARY KEY, last_number bigint); RESET ROLE;
         {CREATE}; ALTER TABLE ticket RENAME TO case_number"
    ));
    if is_restored {
        server.restore_dump("postgres", "other");
        owner = server.connect_to("other");
    }
    for (n, (role, table, tag)) in FORGED.into_iter().enumerate() {
        let trigger = forged(table, "T-{YYYY}-{n:6}", "999000", tag).replace("snowflake_series ", &format!("a{n} "));
        owner.run(&format!("SET SESSION AUTHORIZATION {role}; {trigger}"));
        let drawn = owner.code(&format!("SELECT snowflake_serial('{table}', date '2026-03-01')"));
        ensure!(drawn.as_deref() == Some("42501"), "{role} drew from {tag}: {drawn:?}");
        owner.batch_execute(&format!("DROP TRIGGER IF EXISTS a{n} ON app.older")).unwrap_or_default();
        owner.run("RESET SESSION AUTHORIZATION; DROP TRIGGER IF EXISTS a0 ON notes");
    }
    let drawn = owner.one::<String>(RENAMED);
    ensure!(drawn == "T-2026-000001", "the series has issued {drawn}");
    Ok(())
}

#[test]
fn no_table_draws_the_numbers_of_a_series_that_was_renamed_or_restored() {
    attack("dense_renamed", false, None).unwrap();
    attack("dense_dumped", true, None).unwrap();
}

#[test]
fn a_definition_that_is_trusted_is_caught() {
    assert_caught(attack("dense_renamed_trusted", false, Some("TagTrusted")), "low drew from public.ticket: None");
}

/// The hints of the errors work.
#[test]
fn the_owner_of_a_table_gives_it_its_own_name_and_superusers_any_name() {
    let (_registry, server) = with_series("dense_label", None);
    let mut owner = server.session();
    owner.run(
        "CREATE TABLE low.own (period text PRIMARY KEY, last_number bigint); ALTER TABLE low.own OWNER TO low;
         ALTER TABLE ticket RENAME TO case_number",
    );
    let mut low = server.connect_as("low");
    low.run(&forged("low.own", "T-{YYYY}-{n:6}", "1", "low.own"));
    let label = "SECURITY LABEL FOR snowflake_pg ON TABLE low.own IS 'low.own'";
    let [code, message, ..] = low.error(label);
    assert_eq!(
        [code, message],
        ["42501", "the owner of series \"low.own\" is not allowed to draw numbers from segments"]
    );
    owner.run("GRANT EXECUTE ON FUNCTION snowflake_segment_nextval(text) TO low");
    for other in
        [label.replace("'low.own'", "'public.ticket'"), label.replace("TABLE low.own", "COLUMN low.own.period")]
    {
        let [code, message, detail, hint] = low.error(&other);
        assert_eq!(code, "42501", "{other}");
        assert!(message.starts_with("permission denied to set security label \""), "{message}");
        assert_eq!(detail, "The label allows a series of kind \"dense\" to draw from the tag with this name.");
        assert_eq!(hint, "Run the statement as a superuser, or set the schema and the name of the table as its label.");
    }
    let next = "SELECT snowflake_serial('low.own', date '2026-03-01')";
    assert_eq!(low.code(next).as_deref(), Some("42501"));
    low.run(label);
    assert_eq!(low.one::<String>(next), "T-2026-000001");
    low.run("SECURITY LABEL FOR snowflake_pg ON TABLE low.own IS NULL");
    assert_eq!(low.code(next).as_deref(), Some("42501"));
    // Not even a superuser gives two tables the same tag. A transaction with an older snapshot does not either.
    let taken = label.replace("'low.own'", "'public.ticket'");
    assert_eq!(owner.code(&taken).as_deref(), Some("42710"));
    low.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    owner.run(&format!("{label}; ALTER TABLE low.own RENAME TO former; GRANT ALL ON SCHEMA low TO low"));
    assert_eq!(
        low.code("SELECT snowflake_create_series('low.own', 'T{n:6}', kind => 'dense')").as_deref(),
        Some("42710")
    );
    low.run("ROLLBACK");
    owner.run("DROP TABLE case_number");
    owner.run(&taken.replace("low.own", "low.former"));
    low.run(&CREATE.replace("'ticket'", "'low.own'"));
}
