//! IDs of a table that gets one row now and then. With `sequence_start = random` they are evenly distributed over any number of
//! shards. Without it the IDs are not, but their hashes are.

use std::thread;
use std::time::Duration;

use cluster::{Answer, Builder, Client, Cluster, assert_caught, ensure};

/// Each ID has its own tick, and there are enough that each of 256 shards expects a dozen.
const IDS: usize = 3_000;

/// Draws IDs with a pause before each.
fn draw(session: &mut Client, count: usize, pause: Duration) -> Vec<i64> {
    let statement = session.prepare("SELECT snowflake_nextval()").expect("a statement can be prepared");
    let one = |_| {
        thread::sleep(pause);
        session.query_one(&statement, &[]).expect("an ID").get(0)
    };
    (0..count).map(one).collect()
}

/// Each ID has its own tick, as in a quiet table.
fn check_ticks(ids: &[i64]) -> Result<(), String> {
    let shared = ids.windows(2).filter(|pair| pair[0] >> 22 >= pair[1] >> 22).count();
    ensure!(shared == 0, "{shared} of {} IDs share a tick", ids.len());
    Ok(())
}

/// Rows are evenly distributed over shards with these counts.
fn check_level(counts: &[usize], what: &str) -> Result<(), String> {
    let shards = counts.len();
    let expected = counts.iter().sum::<usize>() as f64 / shards as f64;
    let chi_square: f64 = counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum();
    // Mean and deviation of chi-square. Six deviations do not occur by chance, even over all 255 counts.
    let freedom = (shards - 1) as f64;
    let limit = freedom + 6.0 * (2.0 * freedom).sqrt() + 12.0;
    ensure!(chi_square < limit, "{what} {shards} the chi-square is {chi_square:.0}, not below {limit:.0}");
    Ok(())
}

fn check_moduli(ids: &[i64]) -> Result<(), String> {
    for shards in 2..=256 {
        let mut counts = vec![0; shards];
        ids.iter().for_each(|id| counts[*id as usize % shards] += 1);
        check_level(&counts, "modulo")?;
    }
    Ok(())
}

/// Rows are evenly distributed over 4 to 16 shards by a number.
fn check_shards(session: &mut Client, number: &str) -> Result<(), String> {
    for shards in 4..=16 {
        let counts = session.all::<i64>(&format!(
            "SELECT count(id) FROM generate_series(0, {shards} - 1) AS shard
                 LEFT JOIN quiet ON (({number} % {shards}) + {shards}) % {shards} = shard GROUP BY shard"
        ));
        check_level(&counts.iter().map(|count| *count as usize).collect::<Vec<_>>(), "shards of")?;
    }
    Ok(())
}

/// Rows are evenly distributed over N partitions of this kind. `bounds` is the bound of one partition, by its number and N.
fn check_partitions(session: &mut Client, kind: &str, bounds: &str) -> Result<(), String> {
    for partitions in [4, 7, 16] {
        session.run(&format!(
            "DROP TABLE IF EXISTS sharded; CREATE TABLE sharded (id bigint) PARTITION BY {};
             DO $$ BEGIN
                 FOR n IN 0..{partitions} - 1 LOOP
                     EXECUTE format('CREATE TABLE sharded_%1$s PARTITION OF sharded {bounds}', n, {partitions});
                 END LOOP;
             END $$;
             INSERT INTO sharded SELECT id FROM quiet",
            kind.replace('N', &partitions.to_string())
        ));
        let counts = session.all::<i64>(
            "SELECT count(id) FROM pg_inherits LEFT JOIN sharded AS s ON s.tableoid = inhrelid
             WHERE inhparent = 'sharded'::regclass GROUP BY inhrelid",
        );
        check_level(&counts.iter().map(|count| *count as usize).collect::<Vec<_>>(), "partitions of")?;
    }
    Ok(())
}

fn quiet(name: &str, start: &str) -> Builder {
    Cluster::builder(name).set("snowflake_pg.sequence_start", start)
}

#[test]
fn a_random_start_levels_every_modulus() {
    let (_server, mut session) = quiet("quiet", "random").start_session();
    let ids = draw(&mut session, IDS, Duration::from_millis(1));
    check_ticks(&ids).unwrap();
    check_moduli(&ids).unwrap();
    // The negative control of ticks: IDs drawn without a pause.
    assert_caught(check_ticks(&draw(&mut session, 300, Duration::ZERO)), "IDs share a tick");
}

#[test]
fn with_a_start_at_zero_hashes_are_level_and_numbers_are_not() {
    let (_server, mut session) = quiet("quiet_zero", "zero").start_session();
    let ids = draw(&mut session, IDS, Duration::from_millis(1));
    check_ticks(&ids).unwrap();
    assert_caught(check_moduli(&ids), "modulo 2 ");

    session.run("CREATE TABLE quiet (id bigint)");
    session.execute("INSERT INTO quiet SELECT unnest($1::bigint[])", &[&ids]).expect("a table");
    check_shards(&mut session, "hashint8(id)").unwrap();
    check_partitions(&mut session, "HASH (id)", "FOR VALUES WITH (MODULUS %2$s, REMAINDER %1$s)").unwrap();
    // The negative controls: the number itself instead of its hash.
    assert_caught(check_shards(&mut session, "id"), "shards of 4 ");
    assert_caught(check_partitions(&mut session, "LIST ((id % N))", "FOR VALUES IN (%1$s)"), "partitions of 4 ");
}

/// Each ID that is drawn after a pause starts at sequence 0 of its tick.
fn check_beginnings(session: &mut Client, draw: &str) -> Result<(), String> {
    for n in 0..200 {
        thread::sleep(Duration::from_millis(1));
        let sequence = session.one::<i64>(&format!("SELECT {draw}")) & 4095;
        ensure!(sequence == 0, "number {n} begins at {sequence}");
    }
    Ok(())
}

#[test]
fn a_reservation_begins_at_0_all_the_same() {
    let (_server, mut session) = quiet("quiet_blocks", "random").start_session();
    check_beginnings(&mut session, "snowflake_reserve(16)").unwrap();
    check_beginnings(&mut session, "snowflake_reserve(1)").unwrap();
    assert_caught(check_beginnings(&mut session, "snowflake_nextval()"), " begins at ");
}
