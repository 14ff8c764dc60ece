//! From integer keys, by adding new columns to large tables.

use cluster::{Answer, Client, assert_caught, ensure};

use crate::migration::page::{AS_WRITTEN, Edit, SectionRun, section};
use crate::migration::{act, answers, assert_caught_edit, catalog, check_order, columns, filenode, write};

pub const LARGE: &str = "Large tables with integer keys";
pub const UNDO: &str = "Undo an unfinished migration";

/// Creates events with IDs below and above 0, and clicks whose own keys are sparse. One of the user's triggers moves clicks to
/// another event. The log shows whether a constraint was enough for `SET NOT NULL`.
pub const TABLES: &str = "ALTER ROLE CURRENT_USER SET log_min_messages = debug1;
     CREATE TABLE events (id serial PRIMARY KEY, name text);
     CREATE TABLE clicks (id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
         event_id integer NOT NULL REFERENCES events ON DELETE CASCADE, name text);
     INSERT INTO events (name) SELECT n FROM generate_series(1, 12000) AS n;
     INSERT INTO events (id, name) SELECT n, n FROM generate_series(-1000, -1) AS n;
     INSERT INTO clicks (event_id, name) SELECT id, name FROM events;
     CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS
     'BEGIN IF NEW.name = ''1'' THEN NEW.event_id := 1; END IF; RETURN NEW; END';
     CREATE TRIGGER z_move BEFORE INSERT ON clicks FOR EACH ROW EXECUTE FUNCTION move()";

/// Inserts a new event with a click, and returns the event's ID.
pub const CLICK: &str = "WITH new AS (INSERT INTO events (name) VALUES ('live') RETURNING id),
    click AS (INSERT INTO clicks (event_id, name) SELECT id, 'live' FROM new) SELECT id::bigint FROM new";

/// Inserts a click that the user's trigger moves. Then inserts two clicks as a subscription does, which fires only triggers that
/// are enabled with ALWAYS. Then inserts an event with a click, and deletes the event, which also deletes the click.
const OTHERS: &str = "INSERT INTO clicks (event_id, name) VALUES (2, '1');
     SET session_replication_role = replica;
     INSERT INTO clicks (event_id, name) VALUES (3, '3'), (4, '4');
     UPDATE clicks SET event_id = 6, name = '6' WHERE id = (SELECT max(id) FROM clicks WHERE name = '4');
     RESET session_replication_role;
     WITH new AS (INSERT INTO events (name) VALUES ('gone') RETURNING id)
     INSERT INTO clicks (event_id, name) SELECT id, 'gone' FROM new;
     DELETE FROM events WHERE id = (SELECT max(event_id) FROM clicks WHERE name = 'gone')";

fn clicks_refer(session: &mut Client, next: &str) -> Result<(), String> {
    let refer = answers(session, next, AS_WRITTEN)?;
    let clicks = "clicks clicks_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id) ON DELETE CASCADE";
    ensure!(refer == [clicks], "{refer:?} refer to events");
    Ok(())
}

pub fn check_large(edit: Edit) -> Result<usize, String> {
    check(SectionRun::on(edit, TABLES))
}

fn check_with(edit: Edit, more: &str) -> Result<(), String> {
    check(SectionRun::on(edit, &format!("{TABLES}; {more}"))).map(drop)
}

/// Checks that the tables stay in their files, that they can be written to throughout, and that no row or reference is lost.
fn check(mut run: SectionRun) -> Result<usize, String> {
    let mut session = run.server.connect();
    let files = ["events", "clicks"].map(|table| filenode(&mut session, table));
    let before = ["events", "clicks"].map(|table| columns(&mut session, table)).concat();
    let (mut ids, mut others) = (Vec::new(), 0);
    let written = run.busy(&section(LARGE).blocks, CLICK, |session, next| {
        if next.contains("confrelid") {
            clicks_refer(session, next)?;
        }
        others += 3;
        act(session, OTHERS)?;
        write(session, &mut ids, CLICK)
    })?;
    ensure!(["events", "clicks"].map(|table| filenode(&mut session, table)) == files, "a table was rewritten");
    check_order(&ids)?;
    let wrong: i64 = session.one(
        "SELECT count(*) FROM events LEFT JOIN clicks ON event_id = events.id
         WHERE clicks.name IS DISTINCT FROM events.name OR events.name <> 'live' AND events.name::int <> events.id",
    );
    ensure!(wrong == 0, "{wrong} clicks belong to another event");
    let kept: i64 = session.one("SELECT count(*) FROM clicks JOIN events ON events.id = event_id");
    ensure!(kept == 13_000 + (ids.len() + others + written) as i64, "{kept} clicks are left");
    ensure!(session.code("INSERT INTO clicks (event_id) VALUES (0)").as_deref() == Some("23503"), "no foreign key");
    ensure!(session.code("INSERT INTO events (id) VALUES (1)").as_deref() == Some("23505"), "no primary key");
    let deleted = session.code("DELETE FROM events WHERE id = 7");
    ensure!(deleted.is_none(), "the action of the foreign key is lost: {deleted:?}");
    let after = ["events", "clicks"].map(|table| columns(&mut session, table)).concat();
    ensure!(after == before, "there are other columns, or others that may be NULL: {after:?}");
    let left: i64 = session.one(
        "SELECT count(*) FROM pg_constraint WHERE conrelid IN ('events'::regclass, 'clicks'::regclass) AND contype = 'c'",
    );
    ensure!(left == 0, "{left} CHECKs are left");
    for column in ["events.new_id", "clicks.new_event_id"] {
        let enough = format!("existing constraints on column \"{column}\" are sufficient");
        let nulls = !before.contains(&column.replace("new_", ""));
        ensure!(nulls || run.server.log().contains(&enough), "SET NOT NULL reads {column}");
    }
    Ok(run.blocks)
}

#[test]
fn a_large_table_that_is_changed_without_a_step_is_caught() {
    let caught = |edit: Edit, reason: &str| assert_caught_edit(check_large, edit, reason);
    let (id, event) = ("check constraint \"new_id_filled\"", "check constraint \"new_event_id_filled\"");
    // No trigger fills new rows, or a subscription does not fire the triggers.
    caught(("zz_widen BEFORE INSERT OR UPDATE ON events", "zz_widen BEFORE UPDATE ON events"), id);
    caught(("ENABLE ALWAYS TRIGGER", "ENABLE TRIGGER"), event);
    caught(("new_event_id bigint;", "new_event_id bigint, ADD COLUMN n serial;"), "a table was rewritten");
    caught((" ON DELETE CASCADE", ""), "violates foreign key constraint \"clicks_event\"");
    caught(("new_id IS NOT NULL AND new_id = id", "new_id = id"), "SET NOT NULL reads events.new_id");
    // The batches leave out negative keys, or cannot count snowflakes.
    caught(("min(id), max(id) INTO start, last FROM events", "0, max(id) INTO start, last FROM events"), id);
    caught(("start bigint", "start integer"), "integer out of range");
}

/// The constraint is the last safeguard. It refuses the writes of a trigger whose name sorts even later. Without the comparison
/// in the constraint, only this test would notice these writes.
#[test]
fn a_write_that_goes_past_the_triggers_is_refused() {
    let later = "ALTER TRIGGER z_move ON clicks RENAME TO zzz_move";
    assert_caught(check_with(AS_WRITTEN, later), "check constraint \"new_event_id_filled\"");
    let edit = (" AND new_event_id = event_id", "");
    assert_caught(check_with(edit, later), "clicks belong to another event");
}

/// Writes a row past the triggers, after the batches and before the constraints. If `again` is true, follows the page's advice
/// afterwards.
fn check_mended(again: bool) -> Result<(), String> {
    let tables = format!("{TABLES}; ALTER TRIGGER z_move ON clicks RENAME TO zzz_move");
    let mut run = SectionRun::on(AS_WRITTEN, &tables);
    let mut batches = String::new();
    run.section(LARGE, |session, next| {
        if next.contains("DO $$") {
            batches = next.into();
        }
        if next.contains("new_id_filled CHECK") {
            act(session, OTHERS)?;
            act(session, "ALTER TRIGGER zzz_move ON clicks RENAME TO z_move")?;
            act(session, if again { &batches } else { "" })?;
        }
        Ok(())
    })?;
    let moved: Vec<i64> = run.server.connect().all("SELECT event_id FROM clicks WHERE name = '1'");
    ensure!(moved == [1, 1], "the user's trigger gave {moved:?}");
    Ok(())
}

#[test]
fn a_row_that_went_past_the_triggers_is_mended_by_the_batches() {
    check_mended(true).unwrap();
    assert_caught(check_mended(false), "check constraint \"new_event_id_filled\"");
}

#[test]
fn a_reference_can_be_null() {
    let nulls = "ALTER TABLE clicks ALTER COLUMN event_id DROP NOT NULL; INSERT INTO clicks (name) VALUES ('nobody')";
    assert_caught(check_with(AS_WRITTEN, nulls), "check constraint \"new_event_id_filled\"");
    let same = ("new_event_id IS NOT NULL AND new_event_id = event_id", "new_event_id IS NOT DISTINCT FROM event_id");
    let run = SectionRun::on(same, &format!("{TABLES}; {nulls}"));
    check(run.also(("ALTER TABLE clicks ALTER COLUMN new_event_id SET NOT NULL;", ""))).unwrap();
}

/// The page's query shows a table that the reader has forgotten, and nothing is lost.
#[test]
fn a_forgotten_reference_keeps_the_old_key() {
    let tables = format!("{TABLES}; CREATE TABLE marks (event_id integer REFERENCES events)");
    let mut run = SectionRun::on(AS_WRITTEN, &tables);
    let mut refer = Vec::new();
    let ended = run.section(LARGE, |session, next| {
        if next.contains("confrelid") {
            refer = answers(session, next, AS_WRITTEN)?;
        }
        Ok(())
    });
    assert_caught(ended, "cannot drop column id of table events because other objects depend on it");
    assert!(refer.iter().any(|line| line.starts_with("marks marks_event_id_fkey")), "{refer:?}");
    let mut session = run.server.connect();
    assert_eq!(session.code("INSERT INTO marks VALUES (1)"), None, "the old key is in use");
    write(&mut session, &mut Vec::new(), CLICK).unwrap();
}

/// The batches fire the user's triggers, unless they run with the `session_replication_role` that the page names. They fill the
/// columns in both cases.
#[test]
fn batches_fire_the_users_triggers_unless_told_not_to() {
    let touch = "ALTER TABLE events ADD COLUMN touched boolean NOT NULL DEFAULT false;
         CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.touched := true; RETURN NEW; END';
         CREATE TRIGGER touch BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION touch()";
    let touched = |edit| {
        let mut run = SectionRun::on(edit, &format!("{TABLES}; {touch}"));
        let mut session = run.server.connect();
        let mut before_end = 0;
        run.section(LARGE, |session, next| {
            if next.contains("DROP COLUMN") {
                before_end = session.one("SELECT count(*) FROM events WHERE touched");
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(session.one::<i64>("SELECT count(*) FROM events"), 13_000);
        before_end
    };
    assert_eq!(touched(AS_WRITTEN), 13_000_i64);
    assert_eq!(touched(("DO $$", "SET session_replication_role = replica; DO $$")), 0_i64);
}

/// Runs every step that can fail halfway before the page's block runs it: the batches, `VALIDATE`, and the creation of an index,
/// which is ended and leaves an invalid index.
fn check_repeated(before_index: &str) -> Result<(), String> {
    let mut run = SectionRun::on(AS_WRITTEN, TABLES);
    let mut other = run.server.connect();
    run.section(LARGE, |session, next| {
        if next.contains("DO $$") {
            act(session, next)?;
        }
        if next.contains("CONCURRENTLY") {
            act(&mut other, "BEGIN; LOCK TABLE events IN ROW EXCLUSIVE MODE")?;
            act(session, "SET statement_timeout = '200ms'")?;
            let ended = session.code("CREATE UNIQUE INDEX CONCURRENTLY events_new_id ON events (new_id)");
            ensure!(ended.as_deref() == Some("57014"), "it was not ended: {ended:?}");
            let invalid: i64 = session.one("SELECT count(*) FROM pg_index WHERE NOT indisvalid");
            ensure!(invalid == 1, "no invalid index is left");
            act(&mut other, "COMMIT")?;
            act(session, before_index)?;
        }
        if next.contains("ADD CONSTRAINT clicks_event") {
            act(session, "ALTER TABLE events VALIDATE CONSTRAINT new_id_filled")?;
        }
        Ok(())
    })
}

#[test]
fn what_was_ended_can_be_repeated() {
    check_repeated("DROP INDEX events_new_id").unwrap();
    assert_caught(check_repeated(""), "relation \"events_new_id\" already exists");
}

/// Undoes the migration before its last transaction. Afterwards, the tables are as they were, and the migration can be started
/// again.
pub fn check_undo(edit: Edit) -> Result<usize, String> {
    let mut run = SectionRun::on(edit, TABLES);
    let mut session = run.server.connect();
    let before = catalog(&mut session);
    let gone = |_: &mut Client, next: &str| {
        ensure!(!next.contains("DROP COLUMN event_id"), "not now");
        Ok(())
    };
    assert_caught(run.section(LARGE, gone), "not now");
    run.blocks = 0;
    run.section(UNDO, |session, _| {
        act(session, OTHERS)?;
        write(session, &mut Vec::new(), CLICK)
    })?;
    let after = catalog(&mut session);
    ensure!(after == before, "something is left: {after:#?}");
    let blocks = run.blocks;
    if edit == AS_WRITTEN {
        run.section(LARGE, |_, _| Ok(()))?;
    }
    Ok(blocks)
}

#[test]
fn functions_that_are_left_are_caught() {
    let edit = ("DROP FUNCTION events_widen(), clicks_widen();", "");
    assert_caught(check_undo(edit).map(drop), "something is left");
}
