//! A formation that has run without the extension.

use cluster::{page, sections};

use crate::auto_failover::formation::{Formation, PAGE, section};
use crate::auto_failover::story::{set_up, wait_for_output};

#[test]
fn nodes_of_an_existing_formation_get_worker_ids() {
    let mut formation = Formation::new("added", "snowflake_pg.lease = '10min'\n");
    drop(set_up(&mut formation, Some("")));
    let first = sections(&page(PAGE)).remove(0);
    let named = |info: &str| &first.blocks.iter().find(|(found, _)| found == info).expect("a block").1;
    for node in [0, 1] {
        formation.shell(node, named("sh passfile")).unwrap();
        formation.append(node, "postgresql.conf", named("conf db1"));
        formation.append(node, "pg_hba.conf", named("text hba"));
        formation.psql(node, "postgres", "SELECT pg_reload_conf()").unwrap();
    }
    formation.psql(0, "postgres", named("sql db1")).unwrap();
    let [db2, secondary, shown, failover, servers, listed] = section("Add the extension to an existing formation")
        .rest(["sh db2", "sql secondary", "text", "sh failover", "sql servers", "text"]);
    formation.shell(1, &db2).unwrap();
    formation.wait_for(["primary", "secondary"]);
    wait_for_output(&formation, 0, &secondary, &shown);
    formation.shell(2, &failover).unwrap();
    formation.wait_for(["secondary", "primary"]);
    wait_for_output(&formation, 1, &servers, &listed);
    formation.psql(1, "postgres", named("sql application")).unwrap();
    formation.psql(1, "postgres", "INSERT INTO orders (customer) VALUES ('first')").unwrap();
}
