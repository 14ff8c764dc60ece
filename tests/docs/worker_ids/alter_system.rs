//! Tests of the section "By ALTER SYSTEM".

use std::fs;

use cluster::{Answer, Stop, alter_system_takes_unknown_names, assert_caught, ensure};

use crate::worker_ids::page::{PageHost, section};

/// Returns the blocks of the section: the statements, and the commands that repair and overrule them. The first block is the
/// statements for a server that knows the setting.
fn commands() -> [String; 4] {
    let mut recipe = section("By ALTER SYSTEM");
    let [statements, repair, overrule] = ["sql alone", "sh repair", "sh override"].map(|info| recipe.block(info));
    assert!(recipe.is_empty());
    let known = statements.replace("\nSET snowflake_pg.worker_id = 7;\n", "\n");
    assert_ne!(known, statements);
    [known, statements, repair, overrule]
}

/// Starts a server without the extension's library and settings.
fn stock(test: &str) -> PageHost {
    let mut machine = PageHost::new(test, "alone", |builder| builder);
    machine.server.start();
    machine
}

/// Runs the statements, restarts the server, and returns its worker ID and its preloaded libraries.
fn outcome(machine: &mut PageHost, statements: &str) -> Result<(i32, String), String> {
    machine.psql(statements)?;
    machine.server.stop(Stop::Fast);
    machine.server.try_start()?;
    let mut session = machine.server.session();
    let worker = session.query_one("SELECT worker_id FROM snowflake_decode(snowflake_nextval())", &[]);
    let worker = worker.map_err(|error| cluster::sqlstate(&error).1)?.get(0);
    Ok((worker, session.one("SHOW shared_preload_libraries")))
}

#[test]
fn after_the_statements_and_a_restart_the_server_has_its_number() {
    let mut machine = stock("alter");
    let [_, statements, ..] = commands();
    let found = outcome(&mut machine, &statements).unwrap();
    assert_eq!(found, (7, "plpgsql, snowflake_pg".into()));
    let (setting, source, file) = machine.origin();
    assert_eq!((setting.as_str(), source.as_str()), ("7", "configuration file"));
    assert!(file.is_some_and(|file| file.ends_with("/postgresql.auto.conf")));
}

#[test]
fn alter_system_knows_no_setting_of_a_library_that_is_not_loaded() {
    let machine = stock("alter_unknown");
    let [known, ..] = commands();
    let typed = machine.psql(&known);
    if alter_system_takes_unknown_names() {
        assert_eq!(typed, Ok(String::new()));
    } else {
        assert_caught(typed.map(drop), "unrecognized configuration parameter \"snowflake_pg.worker_id\"");
    }
}

/// Makes a mistake that keeps the server from starting, and then checks both ways to repair the server.
fn check_ways_out(test: &str, mistake: &str, log: &str) -> Result<(), String> {
    let [known, statements, repair, overrule] = commands();
    let mut machine = stock(test);
    outcome(&mut machine, &statements)?;
    let blocked = |machine: &mut PageHost| match outcome(machine, mistake) {
        Ok(found) => Err(format!("the server starts: {found:?}")),
        Err(said) => {
            ensure!(said.contains(log), "the log has no {log:?}:\n{said}");
            Ok(())
        }
    };

    blocked(&mut machine)?;
    machine.shell(&repair)?;
    machine.server.try_start()?;
    let lines = fs::read_to_string(machine.server.dir().join("postgresql.auto.conf")).expect("it can be read");
    ensure!(lines.lines().all(|line| line.starts_with('#')), "lines are left: {lines}");
    ensure!(outcome(&mut machine, &statements)?.0 == 7, "it cannot be said right");

    blocked(&mut machine)?;
    machine.start_by(&overrule, &[])?;
    ensure!(machine.origin().1 == "command line", "the command line is not stronger");
    assert_caught(machine.psql(&statements).map(drop), "cannot be changed without restarting the server");
    ensure!(outcome(&mut machine, &known)?.0 == 7, "it cannot be said right");
    Ok(())
}

#[test]
fn from_a_wrong_number_or_list_there_are_two_ways_out() {
    let number = "ALTER SYSTEM SET snowflake_pg.worker_id = 1024";
    let log = "FATAL:  invalid value for parameter \"snowflake_pg.worker_id\": \"1024\"";
    check_ways_out("alter_number", number, log).unwrap();
    // The list becomes one name.
    let list = "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements, snowflake_pg'";
    check_ways_out("alter_list", list, "could not access file \"plpgsql, snowflake_pg\"").unwrap();
}

#[test]
fn what_is_no_mistake_is_noticed() {
    let outcome = check_ways_out("alter_right", "ALTER SYSTEM SET snowflake_pg.worker_id = 1023", "FATAL");
    assert_caught(outcome, "the server starts: (1023, ");
}
