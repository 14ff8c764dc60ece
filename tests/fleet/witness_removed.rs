//! The witness file is removed while the server runs.

use std::fs;

use cluster::{Answer, Boot, Builder, Stop, assert_caught, ensure, within};

use crate::fleet::{SOON, logged, number, renewed_above, seen, wait_for_log, with_server};

const LINE: &str = "WARNING:  snowflake_pg: the witness file was removed";

/// Removes the file of a server's witness, and restarts the server after some heartbeats.
fn check(name: &str, like: fn(Builder) -> Builder) -> Result<(), String> {
    let machine = Boot::new(name);
    let (registry, mut server, first) = with_server(name, |builder| like(builder).on(&machine));
    server.session().batch(10);
    fs::remove_file(machine.witnesses().remove(0)).expect("the file can be removed");
    let told = within(SOON, || logged(&server, LINE) > 0 || seen(&registry, &server)[0].count > first.count + 5);
    ensure!(told && logged(&server, LINE) == 1, "nothing is logged:\n{}", server.log());
    assert!(server.log().contains("it will request a different worker ID from the registry"), "{}", server.log());
    // The server goes on, and says it once.
    server.session().batch(10);
    let before = number(&server);
    let count = seen(&registry, &server)[0].count;
    renewed_above(&registry, &server, count + 1);
    assert_eq!((logged(&server, LINE), number(&server)), (1, before.clone()), "{}", server.log());
    // The hint works.
    server.restart(Stop::Fast);
    wait_for_log(&server, "the registry assigned worker ID 1");
    assert!(within(SOON, || server.session().query("SELECT snowflake_nextval()", &[]).is_ok()));
    assert_ne!(number(&server), before);
    // The log begins again with each start.
    assert_eq!((logged(&server, LINE), machine.witnesses().len()), (0, 1), "{}", server.log());
    Ok(())
}

#[test]
fn a_witness_that_is_removed_is_reported_once_and_the_server_goes_on() {
    check("witness_gone", |server| server).unwrap();
}

#[test]
fn a_witness_that_is_removed_without_a_word_is_caught() {
    assert_caught(check("witness_unnoticed", |server| server.fault("RemovalUnnoticed")), "nothing is logged");
}
