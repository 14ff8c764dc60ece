//! A role that may call the functions of the registry, and sends renewals of grants that it does not have.

use cluster::{Answer as _, Client, assert_caught, ensure};
use flake::fleet::{Effect, Member};

use crate::calls::{LAYOUT, claim, registry};
use crate::lost::{heartbeat, number, server};

/// Renews a grant that does not exist. `start`, `bound` and `count` are expressions.
fn forge(client: &mut Client, fleet: &str, worker: u32, life: i64, numbers: [&str; 3]) {
    let [start, bound, count] = numbers;
    let sql = format!(
        "SELECT answer FROM snowflake_registry.renew('{fleet}', '{LAYOUT}', 1288834974657, 0, {worker}, md5('forger')::uuid, {count},
             {life}, gen_random_uuid(), gen_random_uuid(), {start}, {bound}, 0, '1 day', NULL)"
    );
    // An error is a refusal, too.
    drop(client.query(&sql, &[]));
}

/// Lets a role attack every worker ID while a server has one of them, and checks that the server goes on and that the others can be
/// assigned a day later.
fn check(name: &str, spoil: &str) -> Result<(), String> {
    let registry = registry(name, LAYOUT);
    let mut owner = registry.connect();
    let fleet: String = owner.one("SELECT fleet_id::text FROM snowflake_registry.fleet");
    let role = "CREATE ROLE fleet LOGIN; SELECT snowflake_registry.grant_server('fleet')";
    owner.batch_execute(role).expect("a superuser may");
    owner.batch_execute(spoil).expect("a superuser may");
    let mut member: Member = server();
    let mut client = registry.connect_as("fleet");
    ensure!(heartbeat(&mut client, &mut member) == Effect::Assigned, "no worker ID");
    ensure!(heartbeat(&mut client, &mut member) == Effect::Renewed, "no renewal");
    let now = "(extract(epoch FROM clock_timestamp()) * 1000 - 1288834974657)::bigint << 22";
    let (future, end) = (format!("({now}) + (3 * 86400000::bigint << 22)"), "9223372036854775807".to_string());
    for round in 1..=3 {
        for worker in 0..8 {
            for numbers in
                [["0", &future, "1"], [&future, &end, "1"], ["0", &end, "1000000000000"], ["0", now, "1000000000000"]]
            {
                forge(&mut client, &fleet, worker, 1 + round, numbers);
            }
        }
        let effect = heartbeat(&mut client, &mut member);
        ensure!(effect == Effect::Renewed, "the server got {effect:?}");
        ensure!(number(&member) == 0, "the server has worker ID {}", number(&member));
    }
    let spoiled: i64 = owner.one(&format!(
        "SELECT count(*) FROM snowflake_registry.node
         WHERE bound > ({now}) + (2 * 86400000::bigint << 22) OR count >= 1000000000000"
    ));
    ensure!(spoiled == 0, "{spoiled} worker IDs are spoiled");
    Ok(())
}

#[test]
fn a_role_of_the_servers_stops_no_server_and_spoils_no_worker_id() {
    check("forged", "").unwrap();
}

#[test]
fn a_registry_without_limits_for_renewals_is_caught() {
    let signature = "f snowflake_registry.fleet, now_point bigint, count bigint, start bigint, bound bigint";
    let spoil = format!(
        "CREATE OR REPLACE FUNCTION snowflake_registry.implausible({signature}) RETURNS boolean LANGUAGE sql AS 'SELECT false'"
    );
    assert_caught(check("forged_unlimited", &spoil), "the server got Lost(GivenAway)");
}

/// A worker ID whose count is the highest number is assigned and renewed as usual.
#[test]
fn no_count_takes_a_worker_id_out_of_use() {
    let registry = registry("forged_count", "41:0:22");
    let mut owner = registry.connect();
    claim(&mut owner, "41:0:22").expect("a worker ID");
    let sql = "UPDATE snowflake_registry.node SET count = 9223372036854775807, bound = 0";
    owner.batch_execute(sql).expect("a superuser may");
    assert_eq!(claim(&mut owner, "41:0:22"), Ok(0));
}
