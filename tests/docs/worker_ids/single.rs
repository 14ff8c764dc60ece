//! The shortest way to set the worker ID: two lines in `postgresql.conf`.

use cluster::Answer;

use crate::worker_ids::page::{PageHost, section};

#[test]
fn two_lines_give_a_server_its_worker_id() {
    let mut recipe = section("How do I give every server its worker ID?");
    let (lines, _, shown) = (recipe.block("conf"), recipe.block("sql"), recipe.block("text"));
    assert!(recipe.is_empty());
    let mut machine = PageHost::new("single", "alone", |builder| builder);
    machine.configure(&lines);
    machine.server.start();
    let mut session = machine.server.session();
    assert_eq!(session.one::<i32>("SELECT worker_id FROM snowflake_decode(snowflake_nextval())"), 7);
    // The page shows the result of the query, but with the path of its own example.
    let (setting, source, file) = machine.origin();
    let file = file.expect("it is set in a file").replace(&machine.server.dir().display().to_string(), "/srv/pg/data");
    let row: Vec<&str> = shown.lines().nth(2).expect("a row").split('|').map(str::trim).collect();
    assert_eq!(row, [setting, source, file]);
}
