//! The witness file is removed while the server runs.

use std::fs;

use cluster::{Answer, Boot, Builder, Stop, assert_caught, ensure, within};

use crate::fleet::{SOON, logged, number, registry, renewed, server, string, wait_for_log};

const LINE: &str = "WARNING:  snowflake_pg: the witness file was removed";

/// Removes the file of a server's witness, and restarts the server after some heartbeats.
fn check(name: &str, like: fn(Builder) -> Builder) -> Result<(), String> {
    let (registry, machine) = (registry(&format!("{name}_registry")), Boot::new(name));
    let mut server = like(server(name, &string(&registry))).on(&machine).start();
    server.session().batch(10);
    let seen = renewed(&registry, &server);
    fs::remove_file(machine.witnesses().remove(0)).expect("the file can be removed");
    let told =
        within(SOON, || logged(&server, LINE) > 0 || crate::fleet::seen(&registry, &server)[0].count > seen.count + 5);
    ensure!(told && logged(&server, LINE) == 1, "nothing is logged:\n{}", server.log());
    assert!(server.log().contains("it will request a different worker ID from the registry"), "{}", server.log());
    // The server goes on, and says it once.
    server.session().batch(10);
    let before = number(&server);
    let count = crate::fleet::seen(&registry, &server)[0].count;
    crate::fleet::renewed_above(&registry, &server, count + 1);
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
