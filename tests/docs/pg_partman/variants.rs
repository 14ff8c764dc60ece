//! Tables, roles and layouts other than those of the example.

use cluster::{Answer, Host, Scratch, assert_caught, ensure, printed, typed};

use super::key::{BACK, INDEXES, KEY, TABLES, migrate, steps};
use super::remove::{END, REMOVE};
use super::{block, blocks, installed, maintain, page, run, run_on};
use crate::migration::page::{AS_WRITTEN, SectionRun, builder};

/// The sections with blocks, and how many blocks each has.
pub const SECTIONS: &[(&str, usize)] = &[(TITLE, 2)];

const TITLE: &str = "How do I move a table that pg_partman maintains to snowflakes?";

/// Moves rows out of the default partition. The page has it in its text.
const CALL: &str = "CALL partman.partition_data_proc('public.readings')";

/// A server with the table, whose owner is not a superuser. A superuser, to which the partitions belong, runs these statements. No
/// other table refers to the table.
fn owned(prepare: &str) -> SectionRun<'static> {
    let run = run(AS_WRITTEN, TABLES);
    run.server
        .connect()
        .batch_execute(
            "CREATE ROLE telemetry; GRANT CREATE ON SCHEMA public TO telemetry; DROP TABLE alerts;
             ALTER TABLE readings OWNER TO telemetry",
        )
        .expect("an owner");
    typed(run.server.psql(), prepare).expect("a superuser may");
    run
}

/// What a superuser runs before the owner can run the page.
fn privileges() -> String {
    block(TITLE, "GRANT") + "\n" + &block(TITLE, "OWNER TO")
}

/// Types statements as the owner.
fn as_owner(run: &SectionRun, statements: &str) -> Result<(), String> {
    let mut psql = run.server.psql();
    psql.env("PGOPTIONS", "-c role=telemetry");
    typed(psql, statements).map(drop)
}

/// Types statements as a superuser if they change pg_partman's configuration, which the owner cannot do, and otherwise as the owner.
fn as_the_page_says(run: &SectionRun, statements: &str) -> Result<(), String> {
    if !["UPDATE partman.", "DELETE FROM partman."].iter().any(|change| statements.contains(change)) {
        return as_owner(run, statements);
    }
    let refused = as_owner(run, statements).err().unwrap_or_default();
    ensure!(
        refused.contains("permission denied for table part_config"),
        "the owner changes the configuration: {refused}"
    );
    typed(run.server.psql(), statements).map(drop)
}

/// Runs the whole page as the owner of the table, and as a superuser where the page says so, except the way back. Moves rows out of
/// the default partition where the page says that this is possible.
fn check_owner(prepare: &str) -> Result<(), String> {
    let run = owned(prepare);
    let mut session = run.server.connect();
    let mut move_rows = |number: i64| {
        session.batch_execute(&format!("INSERT INTO readings (id) VALUES ({number})")).expect("a row");
        as_owner(&run, CALL)?;
        let left: i64 = session.one("SELECT count(*) FROM readings_default");
        ensure!(left == 0, "{left} rows are in the default partition");
        Ok(())
    };
    assert!(page().contains(CALL));
    for (_, statements) in steps() {
        as_the_page_says(&run, &statements)?;
        if statements.contains("automatic_maintenance = 'off'") {
            move_rows(150_000)?;
        }
    }
    move_rows(170_000)?;
    for (_, statements) in [blocks(REMOVE), blocks(END)].concat() {
        as_the_page_says(&run, &statements)?;
    }
    Ok(())
}

#[test]
fn the_owner_of_the_table_needs_only_the_privileges_on_the_page() {
    let Some(()) = installed() else { return };
    check_owner(&privileges()).unwrap();
    let fewer = privileges().replace("partman.part_config, ", "");
    assert_caught(check_owner(&fewer), "permission denied for table part_config");
    let more = privileges().replace("GRANT SELECT", "GRANT SELECT, UPDATE, DELETE");
    assert_caught(check_owner(&more), "the owner changes the configuration");
    assert_caught(check_owner(&block(TITLE, "GRANT")), "permission denied for table readings_default");
}

#[test]
fn a_table_without_a_default_partition_can_be_moved_and_goes_back() {
    let Some(()) = installed() else { return };
    let mut run = run(AS_WRITTEN, TABLES);
    let mut session = run.server.connect();
    let settings = block(KEY, "partdefid");
    let names = printed(&mut session, &settings).unwrap();
    assert!(
        names[0].contains("partman.template_public_readings") && names[0].ends_with(" readings_default"),
        "{names:?}"
    );
    session
        .batch_execute("ALTER TABLE readings DETACH PARTITION readings_default; DROP TABLE readings_default")
        .unwrap();
    let names = printed(&mut session, &settings).unwrap();
    assert!(names[0].ends_with(" -"), "{names:?}");
    let steps: Vec<_> = steps().into_iter().filter(|(_, text)| !text.contains("readings_default")).collect();
    run.all(&steps, |_, _| Ok(())).unwrap();
    // The new rows need more numbers than there are partitions for.
    session
        .batch_execute(
            "INSERT INTO readings (value) SELECT 0 FROM generate_series(1, 100); SELECT setval('readings_id_seq', 69990)",
        )
        .unwrap();
    let back = block(BACK, "LOCK TABLE");
    let refused = typed(run.server.psql(), &back).unwrap_err();
    assert!(refused.contains("no partition of relation \"readings\" found for row"), "{refused}");
    let default = "CREATE TABLE readings_default PARTITION OF readings DEFAULT";
    assert!(page().contains(default));
    session.batch_execute(default).unwrap();
    typed(run.server.psql(), &back).unwrap();
    assert!(session.one::<i64>("SELECT count(*) FROM readings_default") > 0);
    // The page says to drop foreign keys first.
    session.batch_execute("DROP TABLE alerts").unwrap();
    typed(run.server.psql(), CALL).unwrap();
    assert_eq!(session.one::<i64>("SELECT count(*) FROM readings_default"), 0);
    assert_eq!(session.one::<i64>("SELECT count(*) FROM readings WHERE id < 1::bigint << 60"), 25_100);
    maintain(&mut session).unwrap();
}

#[test]
fn the_way_back_is_refused_where_policies_hide_rows() {
    let Some(()) = installed() else { return };
    let run = owned(&privileges());
    for (_, statements) in steps() {
        as_the_page_says(&run, &statements).unwrap();
    }
    let mut session = run.server.connect();
    session
        .batch_execute(
            "INSERT INTO readings (value) VALUES (0);
             ALTER TABLE readings ENABLE ROW LEVEL SECURITY; ALTER TABLE readings FORCE ROW LEVEL SECURITY",
        )
        .unwrap();
    let back = block(BACK, "LOCK TABLE");
    let refused = as_owner(&run, &back).unwrap_err();
    assert!(refused.contains("query would be affected by row-level security policy"), "{refused}");
    assert_eq!(session.one::<i64>("SELECT count(*) FROM readings WHERE id > 1::bigint << 60"), 1);
}

#[test]
fn rows_to_which_others_refer_are_not_to_be_moved_by_pg_partman() {
    let Some(()) = installed() else { return };
    let run = run(AS_WRITTEN, TABLES);
    let mut session = run.server.connect();
    session.batch_execute("INSERT INTO readings (id) VALUES (150000); INSERT INTO alerts VALUES (150000)").unwrap();
    let refused = typed(run.server.psql(), CALL).unwrap_err();
    assert!(refused.contains("violates foreign key constraint"), "{refused}");
    session
        .batch_execute(
            "ALTER TABLE alerts DROP CONSTRAINT alerts_reading_id_fkey;
             ALTER TABLE alerts ADD FOREIGN KEY (reading_id) REFERENCES readings ON DELETE CASCADE",
        )
        .unwrap();
    typed(run.server.psql(), CALL).unwrap();
    assert_eq!(session.one::<i64>("SELECT count(*) FROM alerts WHERE reading_id = 150000"), 0);
}

#[test]
fn a_layout_with_smaller_ids_needs_another_number() {
    let edit = ("1::bigint << 60", "1::bigint << 40");
    let Some(()) = installed() else { return };
    let mut run = run_on(builder().set("snowflake_pg.layout", "41:4:8"), edit, TABLES);
    let mut session = run.server.connect();
    let check = block(KEY, "distinct_numbers");
    assert_eq!(printed(&mut session, &check).unwrap(), ["f"]);
    assert_eq!(printed(&mut session, &check.replace(edit.0, edit.1)).unwrap(), ["t"]);
    run.all(&steps(), |_, _| Ok(())).unwrap();
    session
        .batch_execute(
            "INSERT INTO readings (value) VALUES (0); DROP TABLE alerts;
             SELECT snowflake_create_partitions('readings', '1 day', 1, now() - interval '92 days');
             UPDATE readings SET created_at = created_at - interval '100 days' WHERE id < 10000",
        )
        .unwrap();
    assert!(
        session.one::<bool>(
            "SELECT tableoid::regclass::text ~ '^readings_\\d{8}$' FROM readings ORDER BY id DESC LIMIT 1"
        )
    );
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'readings'::regclass";
    let before: i64 = session.one(partitions);
    for statement in ["max(created_at)", "snowflake_min_id"] {
        typed(run.server.psql(), &block(REMOVE, statement).replace(edit.0, edit.1)).unwrap();
    }
    assert_eq!(session.one::<i64>(partitions), before - 2);
    assert_eq!(session.one::<i64>("SELECT min(id) FROM readings"), 10_000);
    assert_eq!(session.one::<i64>("SELECT count(*) FROM readings WHERE id > 1::bigint << 40"), 1);
}

#[test]
fn new_partitions_get_the_unique_indexes_of_the_template_from_the_daily_job() {
    let Some(()) = installed() else { return };
    let run = migrate(AS_WRITTEN).unwrap();
    let mut session = run.server.connect();
    session.batch_execute("ALTER TABLE readings ADD COLUMN reference text").unwrap();
    let unique = block(INDEXES, "CREATE UNIQUE INDEX");
    typed(run.server.psql(), &unique).unwrap();
    let days = "SELECT count(*) FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'readings'::regclass
        AND relname ~ '^readings_\\d{8}$'";
    let indexed = format!(
        "{days} AND (SELECT count(*) FROM pg_index WHERE indrelid = oid AND indisunique AND NOT indisprimary) = 1"
    );
    assert_eq!((session.one::<i64>(days), session.one::<i64>(&indexed)), (7, 7));
    let twice = "INSERT INTO readings (reference) VALUES ('a'), ('a')";
    assert_eq!(session.code(twice).as_deref(), Some("23505"));
    // The line of the page, in the tests' database and without the part for cron.
    let scratch = Scratch::new(&format!("partman_job_{}", std::process::id()));
    let file = scratch.write("readings.sql", &unique);
    let (_, line) = blocks(INDEXES).into_iter().find(|(language, _)| language == "conf").expect("a line for cron");
    let command = line.split_whitespace().skip(5).collect::<Vec<_>>().join(" ");
    let command = command
        .replace("-d shop", "-d postgres")
        .replace("/etc/postgresql/readings.sql", &file.display().to_string())
        .replace("'1 day', 7", "'1 day', 9");
    for _ in 0..2 {
        let mut shell = Host::get().shell(&command);
        shell.env("PGHOST", run.server.socket()).env("PGPORT", "5432").env("PGUSER", "postgres");
        let done = shell.output().expect("a shell");
        assert!(done.status.success() && done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!((session.one::<i64>(days), session.one::<i64>(&indexed)), (9, 9));
    }
}
