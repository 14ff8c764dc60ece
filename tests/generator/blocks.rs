//! Batches and reservations stay inside the sequence field. None reaches the bits of the worker ID, and none is cut short.

use cluster::{Answer, Builder, Cluster, assert_caught, check_increasing, check_unique, copy_ids, ensure};

/// Each ID of large batches and of full reservations contains the worker ID of this server.
fn check_blocks(builder: Builder) -> Result<(), String> {
    let (_server, mut session) =
        builder.set("snowflake_pg.layout", "41:3:5:8").set("snowflake_pg.datacenter_id", "5").start_session();
    let mut history = Vec::new();
    for count in [1, 255, 256, 257, 1_000, 20_000] {
        let ids = copy_ids(&mut session, &format!("SELECT * FROM snowflake_nextval_batch({count})"));
        ensure!(ids.len() == count, "a batch of {count} had {} IDs", ids.len());
        check_increasing(&ids)?;
        history.extend(ids);
    }
    for count in [1, 2, 100, 255, 256] {
        for _ in 0..20 {
            let first: i64 = session.one(&format!("SELECT snowflake_reserve({count})"));
            ensure!(
                first & 255 <= 256 - count && first >> 8 & 31 == 1,
                "the {count} IDs from {first} are not in one tick of worker 1"
            );
            history.extend(first..first + count);
        }
    }
    check_unique(&mut history)?;
    match history.iter().find(|id| *id >> 8 & 31 != 1 || *id >> 13 & 7 != 5) {
        Some(id) => Err(format!("{id} has not the node bits of this server")),
        None => Ok(()),
    }
}

#[test]
fn batches_and_reservations_keep_the_node_bits() {
    check_blocks(Cluster::builder("blocks")).unwrap();
}

#[test]
fn a_batch_that_runs_into_the_node_bits_is_caught() {
    assert_caught(check_blocks(Cluster::builder("blocks_fault").fault("RunIntoNodeBits")), "node bits");
}

#[test]
fn a_batch_of_ten_million_ends() {
    let (_server, mut session) = Cluster::builder("large_batch").start_session();
    // The rows are sorted in memory.
    session.run("SET work_mem = '512MB'");
    let sql = "SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE id <= 0)
               FROM snowflake_nextval_batch(10000000) AS id";
    let row = session.query_one(sql, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)), (10_000_000, 10_000_000, 0));
}
