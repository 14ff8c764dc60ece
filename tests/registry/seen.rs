//! What the registry shows about the worker IDs that are left.

use cluster::{Answer, Client};
use flake::fleet::{Answer as Said, Refusal};

use crate::calls::{claim, registry};

/// A layout with 16 worker IDs, of which 14 are given out outside a quarantine.
const LAYOUT: &str = "41:4:18";

/// Returns how many worker IDs of datacenter 0 exist, are used and are free.
fn left(client: &mut Client) -> String {
    client.one(
        "SELECT concat_ws(' ', worker_ids, used, free) FROM snowflake_registry.datacenters WHERE datacenter_id = 0",
    )
}

#[test]
fn the_registry_says_when_few_worker_ids_are_free() {
    let server = registry("registry_few", LAYOUT);
    let mut client = server.connect();
    for used in 1..=14 {
        claim(&mut client, LAYOUT).expect("a worker ID is free");
        assert_eq!(left(&mut client), format!("14 {used} {}", 14 - used));
        let said = server.log().matches("worker IDs of datacenter 0 are free").count();
        assert_eq!(said, usize::from(used >= 13) + usize::from(used >= 14), "{used}: {}", server.log());
    }
    assert!(server.log().contains("LOG:  only 1 of 14 worker IDs of datacenter 0 are free"), "{}", server.log());
    assert!(matches!(claim(&mut client, LAYOUT), Err(Said::Refused(Refusal::Full))));
    // A server that is gone frees its worker ID.
    let gone = "UPDATE snowflake_registry.node SET bound = bound - (25 * 60 * 1000::bigint << 22) WHERE worker_id = 3";
    client.batch_execute(gone).expect("a superuser may");
    assert_eq!(left(&mut client), "14 13 1");
    assert_eq!(claim(&mut client, LAYOUT).expect("a worker ID is free again").worker, 3);
}
