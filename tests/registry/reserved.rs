//! Worker IDs that the owner of the registry reserves for databases without the library. No server is granted them.

use cluster::{Answer as _, Client, Cluster, Stop, sqlstate};
use flake::fleet::{Effect, RegistryRefusal};

use crate::calls::{claim, registry};
use crate::lost::{heartbeat, number, server};

/// A layout with 16 worker IDs, of which 12 are assigned outside a quarantine.
const LAYOUT: &str = "41:4:18";

/// The clock passes the bound of a worker ID and both margins.
fn end(client: &mut Client, worker: i32) {
    let sql = format!(
        "UPDATE snowflake_registry.node SET bound = bound - (45 * 60 * 1000::bigint << 22) WHERE worker_id = {worker}"
    );
    client.batch_execute(&sql).expect("a superuser may");
}

pub fn reserved(client: &mut Client) -> Vec<i32> {
    client.all("SELECT worker_id FROM snowflake_registry.servers WHERE state = 'reserved' ORDER BY 1")
}

#[test]
fn a_reserved_worker_id_is_assigned_to_no_server_until_it_is_released() {
    let server = registry("registry_reserved", LAYOUT);
    let mut client = server.connect();
    assert_eq!(client.one::<i64>("SELECT snowflake_registry.reserve(1)"), 1);
    for worker in [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] {
        assert_eq!(claim(&mut client, LAYOUT), Ok(worker));
    }
    let full = Err(RegistryRefusal::Full);
    assert_eq!(claim(&mut client, LAYOUT), full);
    let shown =
        "SELECT concat_ws(' ', worker_id, state, granted_until) FROM snowflake_registry.servers WHERE worker_id = 1";
    assert_eq!(client.one::<String>(shown), "1 reserved infinity");
    let handovers = "SELECT count(*) FROM snowflake_registry.handovers WHERE worker_id = 1 AND ended IS NULL";
    assert_eq!(client.one::<i64>(handovers), 1);
    // The same reservation again changes nothing.
    assert_eq!(client.one::<i64>("SELECT snowflake_registry.reserve(1)"), 1);

    // The worker ID of a server that is gone.
    let in_use = client.batch_execute("SELECT snowflake_registry.reserve(3)").expect_err("a server has it");
    let (code, message, _, hint) = sqlstate(&in_use);
    assert_eq!((code.as_str(), message.as_str()), ("55006", "worker ID 3 is in use"));
    assert!(hint.contains("\"gone\""), "{hint}");
    end(&mut client, 3);
    let bound: i64 = client.one("SELECT bound FROM snowflake_registry.node WHERE worker_id = 3");
    assert!(client.one::<i64>("SELECT snowflake_registry.reserve(3)") > bound);
    assert_eq!(reserved(&mut client), [1, 3]);
    let ended = "SELECT ended_by FROM snowflake_registry.history WHERE worker_id = 3";
    assert_eq!(client.one::<String>(ended), "reserve");
    assert_eq!(claim(&mut client, LAYOUT), full);

    let release = "SELECT until - now() BETWEEN '19 min' AND '21 min' FROM snowflake_registry.release(1) AS until";
    assert!(client.one::<bool>(release));
    assert_eq!(claim(&mut client, LAYOUT), full);
    let again = client.refusal("SELECT snowflake_registry.release(1)");
    assert_eq!(again, ("55000".into(), "worker ID 1 is not reserved".into()));
    end(&mut client, 1);
    assert_eq!(claim(&mut client, LAYOUT), Ok(1));
}

#[test]
fn a_spare_worker_id_and_one_out_of_range_cannot_be_reserved() {
    let server = registry("registry_reserved_range", LAYOUT);
    let mut client = server.connect();
    for (arguments, code, name) in [
        ("12", "22023", "worker_id"),
        ("-1", "22023", "worker_id"),
        ("1, 1", "22023", "datacenter_id"),
        ("1, -1", "22023", "datacenter_id"),
        ("NULL", "22004", "worker_id"),
        ("1, NULL", "22004", "datacenter_id"),
    ] {
        for function in ["reserve", "release"] {
            let refused = client.refusal(&format!("SELECT snowflake_registry.{function}({arguments})"));
            let what = if code == "22004" { "must not be null" } else { "is out of range" };
            assert_eq!(refused, (code.into(), format!("argument \"{name}\" {what}")), "{function}({arguments})");
        }
    }
    assert_eq!(client.one::<i64>("SELECT count(*) FROM snowflake_registry.node"), 0);
}

#[test]
fn a_lost_reservation_can_be_made_again_before_a_server_gets_it() {
    const WIDE: &str = "41:10:12";
    let mut primary = registry("registry_reserved_primary", WIDE);
    let mut client = primary.connect();
    let mut first = server();
    assert_eq!(heartbeat(&mut client, &mut first), Effect::Assigned);
    let standby = primary.standby(Cluster::builder("registry_reserved_behind").unset("shared_preload_libraries"));
    let late = primary.leave_behind(&standby);
    client.batch_execute("SELECT snowflake_registry.reserve(1)").expect("the owner reserves");
    drop(client);
    primary.stop(Stop::Immediate);
    drop(late);
    standby.promote();
    let mut client = standby.connect();
    // The ring, with the lost reservation, is closed.
    assert_eq!(claim(&mut client, WIDE), Ok(768));
    assert_eq!(reserved(&mut client), []);
    // Nobody knows whether a server was granted this worker ID in what was lost, so its IDs begin above the quarantine.
    let begins = "SELECT snowflake_registry.reserve(1) > quarantine_until FROM snowflake_registry.fleet";
    assert!(client.one::<bool>(begins));
    assert_eq!(reserved(&mut client), [1]);
    assert!(client.one::<bool>("SELECT snowflake_registry.open()"));
    assert_eq!(claim(&mut client, WIDE), Ok(2));
    assert_eq!(heartbeat(&mut client, &mut first), Effect::Renewed);
    assert_eq!(number(&first), 0);
}

#[test]
fn the_layout_is_not_changed_while_a_worker_id_is_reserved() {
    let server = registry("registry_reserved_layout", LAYOUT);
    let mut client = server.connect();
    client.batch_execute("SELECT snowflake_registry.reserve(1)").expect("the owner reserves");
    let change = "SELECT snowflake_registry.change_layout('41:6:16')";
    assert_eq!(client.refusal(change), ("55000".into(), "worker IDs are reserved".into()));
    client.batch_execute("SELECT snowflake_registry.release(1)").expect("the hint can be followed");
    let released: i64 = client.one("SELECT bound FROM snowflake_registry.node WHERE worker_id = 1");
    client.batch_execute(change).expect("the hint works");
    assert!(client.one::<i64>("SELECT floor FROM snowflake_registry.fleet") > released);
}
