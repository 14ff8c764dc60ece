//! A formation under load: planned failovers in both directions, crashes of the server, of `pg_autoctl` and of both, and maintenance.

use cluster::{Answer, Ask, Host, Load, Recipe, compare, succeeds_within, within};

use crate::auto_failover::formation::{Formation, PATIENCE, section};

/// Types the blocks that start both nodes. If there is a configuration, it replaces the one that contains the registry.
pub fn set_up(formation: &mut Formation, instead: Option<&str>) -> Recipe {
    let registry = instead.is_none();
    let mut recipe = section("Set up a formation");
    formation.begin(&mut recipe);
    let configuration = recipe.block("conf db1");
    let configuration = instead.unwrap_or(&configuration);
    formation.append(0, "postgresql.conf", configuration);
    let (hba, passfile, run) = (recipe.block("text hba"), recipe.block("sh passfile"), recipe.block("sh run"));
    let (fleet, application) = (recipe.block("sql db1"), recipe.block("sql application"));
    if registry {
        formation.append(0, "pg_hba.conf", &hba);
        for node in [0, 1] {
            formation.shell(node, &passfile).unwrap();
        }
    }
    formation.run(0, &run);
    formation.wait_for_server(0, 0);
    if registry {
        formation.psql(0, "postgres", &fleet).unwrap();
    }
    if configuration.contains("snowflake_pg") {
        formation.psql(0, "postgres", &application).unwrap();
        // The page shows the worker IDs in the order in which a reader creates the nodes.
        wait_for_ids(formation, 0);
    }
    formation.shell(1, &recipe.block("sh db2")).unwrap();
    if let Some((from, to)) = formation.corrected {
        let path = formation.data(1).join("postgresql.conf");
        let text = std::fs::read_to_string(&path).expect("a copied file");
        assert!(text.contains(from), "the base backup copies the configuration");
        Host::get().write(&path, &text.replace(from, to));
    }
    formation.run(1, &run);
    formation.wait_for(["primary", "secondary"]);
    recipe
}

/// Waits until psql prints what the page shows.
pub fn wait_for_output(formation: &Formation, node: usize, sql: &str, shown: &str) {
    let check = || compare(&formation.psql(node, "fleet", sql)?, shown, str::to_string);
    succeeds_within(PATIENCE, check).unwrap();
}

/// Waits until a node issues IDs.
fn wait_for_ids(formation: &Formation, node: usize) {
    let mut session = formation.session(node);
    let issues = || session.query("SELECT snowflake_nextval()", &[]).is_ok();
    assert!(within(PATIENCE, issues), "{}", formation.server_log(node));
}

/// Plays everything that the page describes, and checks that no ID repeats and that the nodes keep their worker IDs.
fn play(formation: &mut Formation, recipe: Recipe, registry: bool) {
    let [state, shown, servers, listed, uri, printed] =
        recipe.rest(["sh state", "text", "sql servers", "text", "sh uri", "text"]);
    formation.compare(&formation.shell(2, &state).unwrap(), &shown);
    if registry {
        wait_for_output(formation, 0, &servers, &listed);
    }
    formation.compare(&formation.shell(2, &uri).unwrap(), &printed);
    let own = [0, 1].map(|node| formation.worker(node));
    assert_eq!(own, if registry { ["0", "1"] } else { ["1", "2"] });
    let keeps = |formation: &Formation, when: &str| {
        assert_eq!([0, 1].map(|node| formation.worker(node)), own, "{when}");
    };

    wait_for_ids(formation, 0);
    let sql = "CREATE TABLE load_rows (id bigint DEFAULT snowflake_nextval()); CREATE SEQUENCE load_sequence";
    formation.session(0).batch_execute(sql).unwrap();
    let load = Load::at(&formation.uri(&uri), 4, Ask::ALL, "");

    let [failover, servers, listed] = section("A planned failover").rest(["sh failover", "sql servers", "text"]);
    formation.shell(2, &failover).unwrap();
    formation.wait_for(["secondary", "primary"]);
    keeps(formation, "after a planned failover");
    if registry {
        wait_for_output(formation, 1, &servers, &listed);
    }
    formation.shell(2, &failover).unwrap();
    formation.wait_for(["primary", "secondary"]);
    keeps(formation, "after the second failover");

    let killed = formation.kill_server(0);
    formation.wait_for_server(0, killed);
    formation.wait_for(["primary", "secondary"]);
    wait_for_ids(formation, 0);
    keeps(formation, "after a crash of the server");

    let [run] = section("After a crash").rest(["sh run"]);
    formation.kill_keeper(0);
    wait_for_ids(formation, 0);
    formation.run(0, &run);
    let adopted = || formation.log(0).contains("current state is \"primary\"");
    assert!(within(PATIENCE, adopted), "{}", formation.log(0));
    formation.wait_for(["primary", "secondary"]);
    keeps(formation, "after a crash of pg_autoctl");

    // The whole node fails.
    formation.kill_keeper(0);
    formation.kill_server(0);
    let promoted = || formation.states().get(1).is_some_and(|(state, _)| state == "wait_primary");
    assert!(within(PATIENCE, promoted), "{:?}\n{}", formation.states(), formation.log(1));
    wait_for_ids(formation, 1);
    formation.run(0, &run);
    formation.wait_for(["secondary", "primary"]);
    // pg_rewind can fail, because it cannot start a server that was killed while it was about to become a standby. pg_autoctl then
    // makes a base backup. Both copy the configuration.
    let log = formation.log(0);
    assert!(log.contains("servers diverged") || log.contains("base backup completed"), "{log}");
    keeps(formation, "after the files were copied from the new primary");

    let [begin, end] = section("Maintenance of a node").rest(["sh begin", "sh end"]);
    formation.shell(0, &begin).unwrap();
    formation.wait_for(["maintenance", "wait_primary"]);
    wait_for_ids(formation, 1);
    formation.shell(0, &end).unwrap();
    formation.wait_for(["secondary", "primary"]);
    keeps(formation, "after maintenance");
    wait_for_ids(formation, 1);

    let history = load.finish();
    println!("{} IDs, slowest {:?}, errors {:?}", history.len(), history.slowest, history.errors);
    history.check(1_000).unwrap();
    let mut session = formation.session(1);
    let mut workers: Vec<i32> = session.all("SELECT DISTINCT worker_id FROM load_rows, snowflake_decode(id)");
    workers.sort_unstable();
    assert_eq!(workers.iter().map(i32::to_string).collect::<Vec<_>>(), own, "one node has issued nothing");
}

#[test]
fn with_a_registry_inside_the_formation_no_id_repeats() {
    let mut formation = Formation::new("registry", "snowflake_pg.lease = '10min'\n");
    let recipe = set_up(&mut formation, None);
    play(&mut formation, recipe, true);
}

#[test]
fn with_worker_ids_in_files_of_the_hosts_no_id_repeats() {
    let mut formation = Formation::new("files", "");
    let configuration = host_files(&formation);
    let recipe = set_up(&mut formation, Some(&configuration));
    play(&mut formation, recipe, false);
}

/// Types the blocks that write the worker IDs to files of the hosts. Returns the configuration that includes these files.
pub fn host_files(formation: &Formation) -> String {
    let [db1, db2, configuration] = section("Without a registry").rest(["sh db1", "sh db2", "conf db1"]);
    formation.shell(0, &db1).unwrap();
    formation.shell(1, &db2).unwrap();
    configuration
}
