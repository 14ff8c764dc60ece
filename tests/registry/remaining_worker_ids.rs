//! What the registry shows about the worker IDs that are left.

use cluster::{Answer as _, Client};
use flake::fleet::RegistryRefusal;

use crate::calls::{claim, registry};

/// A layout with 16 worker IDs, of which 12 are assigned outside a quarantine.
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
    for used in 1..=12 {
        claim(&mut client, LAYOUT).expect("a worker ID is free");
        assert_eq!(left(&mut client), format!("12 {used} {}", 12 - used));
        let said = server.log().matches("worker IDs of datacenter 0 are free").count();
        assert_eq!(said, usize::from(used >= 11) + usize::from(used >= 12), "{used}: {}", server.log());
    }
    assert!(server.log().contains("LOG:  only 1 of 12 worker IDs of datacenter 0 are free"), "{}", server.log());
    assert_eq!(claim(&mut client, LAYOUT), Err(RegistryRefusal::Full));
    // A server that is gone frees its worker ID.
    let gone = "UPDATE snowflake_registry.node SET bound = bound - (25 * 60 * 1000::bigint << 22) WHERE worker_id = 3";
    client.batch_execute(gone).expect("a superuser may");
    assert_eq!(left(&mut client), "12 11 1");
    assert_eq!(claim(&mut client, LAYOUT), Ok(3));
}

/// The page says for how long a server that was removed is in each state, with the default lease.
#[test]
fn a_server_that_was_removed_is_live_then_late_then_gone() {
    let server = registry("registry_removed", LAYOUT);
    let mut client = server.connect();
    claim(&mut client, LAYOUT).expect("a worker ID is free");
    let mut state = |since_heartbeat: &str| -> (String, String) {
        let removed = format!(
            "UPDATE snowflake_registry.node SET lease = '12 hours', seen = now() - interval '{since_heartbeat}',
             bound = ((extract(epoch FROM now() - interval '{since_heartbeat}' + interval '12 hours') * 1000)::bigint
                 - 1288834974657) << 22"
        );
        client.batch_execute(&removed).expect("a superuser may");
        (client.one("SELECT state FROM snowflake_registry.servers"), left(&mut client))
    };
    for (since, expected, used) in [
        ("4 min", "live", "12 1 11"),
        ("6 min", "late", "12 1 11"),
        ("12 hours 9 min", "late", "12 1 11"),
        ("12 hours 11 min", "gone", "12 0 12"),
    ] {
        assert_eq!(state(since), (expected.into(), used.into()), "{since} after the last heartbeat");
    }
    let page = cluster::page("docs/registry.md");
    let section = page.split("## Remove or replace a server").nth(1).expect("a section");
    for times in ["5 minutes", "12 hours and 10 minutes"] {
        assert!(section.contains(times), "{times}");
    }
}
