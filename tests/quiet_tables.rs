//! Hazard 23: with `sequence_start = random` the IDs of a table that gets one row now and then are level modulo any shard
//! count; without it they are not.

use std::thread;
use std::time::Duration;

use cluster::{Builder, Cluster, assert_caught, ensure};

/// One ID per tick, and enough of them that 256 shards expect a dozen each.
const IDS: usize = 3_000;

fn check_level(builder: Builder) -> Result<(), String> {
    let server = builder.start();
    let mut session = server.session();
    let statement = session.prepare("SELECT snowflake_nextval()").expect("a statement can be prepared");
    let mut ids = Vec::with_capacity(IDS);
    for _ in 0..IDS {
        ids.push(session.query_one(&statement, &[]).expect("an ID").get::<_, i64>(0));
        thread::sleep(Duration::from_millis(1));
    }
    for shards in 2..=256usize {
        let mut counts = vec![0f64; shards];
        for id in &ids {
            counts[*id as usize % shards] += 1.0;
        }
        let expected = IDS as f64 / shards as f64;
        let chi_square: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        // Mean and deviation of chi-square; six deviations are beyond chance even over all 255 counts.
        let freedom = (shards - 1) as f64;
        let limit = freedom + 6.0 * (2.0 * freedom).sqrt() + 12.0;
        ensure!(chi_square < limit, "modulo {shards} the chi-square is {chi_square:.0}, not below {limit:.0}");
    }
    Ok(())
}

#[test]
fn a_random_start_levels_every_modulus() {
    check_level(Cluster::builder("quiet").set("snowflake_pg.sequence_start", "random")).unwrap();
}

#[test]
fn a_start_at_zero_is_caught() {
    assert_caught(check_level(Cluster::builder("quiet_zero").set("snowflake_pg.sequence_start", "zero")), "modulo 2 ");
}
