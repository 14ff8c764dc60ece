//! A registry that forgets blocks that are in use: a failover to a standby that is behind, a restored dump.

use cluster::{Answer as _, Client, Cluster, Stop, assert_caught, output};
use flake::fleet::{Kept, ReportAnswer, TagBlock};

use crate::blocks::{Taker, check_ledger, last, with_tag};
use crate::calls::{LAYOUT, restore};

const STEP: i64 = 100;
/// What a tag skips after one failover if the registry was used within the last 10 minutes.
const SKIP: i64 = 4 * 64 * STEP;

/// A function that takes nothing to be lost.
fn without_skip(client: &mut Client) {
    let sql = "CREATE OR REPLACE FUNCTION snowflake_registry.lost_windows(since interval, steps bigint) RETURNS bigint
             LANGUAGE sql IMMUTABLE AS 'SELECT 0::bigint'";
    client.batch_execute(sql).expect("a superuser may");
}

fn range(block: &TagBlock) -> (i64, i64) {
    (block.first, last(block))
}

/// A primary whose standby, behind by `lost` blocks, is promoted. Returns the standby, and the blocks: of the first one the standby
/// knows.
fn fail_over(name: &str, lost: usize, prepare: impl Fn(&mut Client)) -> (Cluster, Vec<TagBlock>) {
    let (mut primary, mut taker) = with_tag(name, STEP, STEP);
    prepare(&mut taker.client);
    let mut blocks = vec![taker.take(STEP)];
    let standby = primary.standby(Cluster::builder(&format!("{name}_standby")).unset("shared_preload_libraries"));
    let late = primary.leave_behind(&standby);
    blocks.extend((0..lost).map(|_| taker.take(STEP)));
    drop(taker);
    primary.stop(Stop::Immediate);
    drop(late);
    standby.promote();
    (standby, blocks)
}

/// The registry fails over, and another server takes blocks of the tag before and after those that are in use are reported.
fn check(name: &str, prepare: impl Fn(&mut Client)) -> Result<(), String> {
    let (standby, mut blocks) = fail_over(name, 40, prepare);
    let mut taker = Taker::of(&standby);
    assert_eq!(taker.next(), (101, 0), "the standby knows more than it should");
    for _ in 0..10 {
        blocks.push(taker.take(STEP));
    }
    check_ledger(blocks.iter().map(range).collect()).map(drop)
}

#[test]
fn after_a_failover_that_lost_blocks_no_number_comes_twice() {
    check("registry_segments_primary", |_| {}).unwrap();
}

#[test]
fn a_failover_without_a_skip_is_caught() {
    assert_caught(check("registry_segments_unskipped", without_skip), "number 101 was used twice");
}

#[test]
fn a_skip_is_a_hole_that_a_view_and_the_log_show() {
    let (standby, blocks) = fail_over("registry_segments_hole", 3, |_| {});
    let mut taker = Taker::of(&standby);
    // A server that has the first block gives nothing back, because the skip begins above it.
    assert_eq!(taker.give_back(&blocks[0], 50, 100), Err(Kept::NotTop));
    assert_eq!(taker.next(), (101, SKIP));
    let block = taker.take(STEP);
    assert_eq!(block.first, 101 + SKIP);
    assert_eq!(taker.next(), (201 + SKIP, 0));
    let hole: String = taker.client.one("SELECT concat_ws(' ', tag, first, last, life) FROM snowflake_registry.holes");
    assert_eq!(hole, format!("orders 101 {} 2", 100 + SKIP));
    let said = format!("LOG:  tag \"orders\" skips the numbers from 101 to {}", 100 + SKIP);
    assert!(standby.log().contains(&said), "{}", standby.log());
    // The administrator's word comes too late for this tag.
    assert!(taker.client.one::<bool>("SELECT snowflake_registry.open()"));
    assert_eq!(taker.take(STEP).first, 201 + SKIP);
}

#[test]
fn a_lossless_failover_that_the_administrator_confirms_has_no_hole() {
    let (standby, _) = fail_over("registry_segments_lossless", 0, |_| {});
    let mut taker = Taker::of(&standby);
    // The failover's script says so before any server asks.
    assert!(taker.client.one::<bool>("SELECT snowflake_registry.open()"));
    assert_eq!(taker.next(), (101, 0));
    assert_eq!(taker.take(STEP).first, 101);
    assert_eq!(taker.client.one::<i64>("SELECT count(*) FROM snowflake_registry.holes"), 0);
}

#[test]
fn a_reported_block_that_was_lost_applies_the_skip_at_once() {
    let (standby, blocks) = fail_over("registry_segments_reported", 3, |_| {});
    let mut taker = Taker::of(&standby);
    let generation = blocks[0].generation;
    assert_eq!(taker.report(generation, last(&blocks[0])), ReportAnswer::Current);
    assert_eq!(taker.next(), (101, SKIP));
    assert_eq!(taker.report(generation, 101 + 2 * SKIP), ReportAnswer::Ahead);
    assert_eq!(taker.report(generation, last(&blocks[3])), ReportAnswer::Raised);
    assert_eq!(taker.next(), (101 + SKIP, 0));
    assert_eq!(taker.report(generation, last(&blocks[3])), ReportAnswer::Current);
}

/// The administrator has taken the skip back, although blocks were lost.
#[test]
fn a_reported_block_that_the_administrator_forgot_is_not_given_again() {
    let (standby, blocks) = fail_over("registry_segments_forgotten", 3, |_| {});
    let mut taker = Taker::of(&standby);
    assert!(taker.client.one::<bool>("SELECT snowflake_registry.open()"));
    assert_eq!(taker.next(), (101, 0));
    assert_eq!(taker.report(blocks[0].generation, last(&blocks[3])), ReportAnswer::Raised);
    assert_eq!(taker.next(), (last(&blocks[3]) + 1, 0));
    let hole: String = taker.client.one("SELECT concat_ws(' ', tag, first, last, life) FROM snowflake_registry.holes");
    assert_eq!(hole, format!("orders 101 {} 2", last(&blocks[3])));
}

/// A registry in a database that was restored from a dump.
#[test]
fn after_a_dump_was_restored_no_number_comes_twice() {
    let (server, mut taker) = with_tag("registry_segments_dump", STEP, STEP);
    let mut blocks = vec![taker.take(STEP)];
    let dump = output(&mut server.program("pg_dump"));
    blocks.extend((0..30).map(|_| taker.take(STEP)));
    server.connect().batch_execute("CREATE DATABASE restored").expect("a superuser may");
    restore(&server, "restored", &dump);
    let mut restored = Taker::on(server.connect_to("restored"), "orders");
    assert_eq!(restored.next(), (101, 0));
    blocks.extend((0..10).map(|_| restored.take(STEP)));
    check_ledger(blocks.iter().map(range).collect()).unwrap();
    // How many failovers the dump has missed cannot be seen.
    assert_eq!(blocks[31].first, 101 + 15 * 11 * 64 * STEP);
    // A dump contains what was skipped, too.
    assert_eq!(restored.client.one::<i64>("SELECT count(*) FROM snowflake_registry.holes"), 1);
    let dump = output(server.program("pg_dump").args(["-d", "restored"]));
    assert!(
        ["hole", "skip"].iter().all(|table| dump.contains(&format!("COPY snowflake_registry.{table} ("))),
        "{dump}"
    );
}

/// A backup that is put back without a new timeline shows nothing. The owner closes the registry.
#[test]
fn a_registry_that_is_closed_by_hand_skips_what_it_may_have_lost() {
    let (server, mut taker) = with_tag("registry_segments_closed", STEP, STEP);
    taker.take(STEP);
    taker.client.one::<std::time::SystemTime>("SELECT snowflake_registry.close()");
    assert_eq!(taker.next(), (101, 15 * 11 * 64 * STEP));
    // Skips of lives in one quarantine add up, and the administrator's word takes all of them back.
    taker.client.one::<std::time::SystemTime>("SELECT snowflake_registry.close()");
    assert_eq!(taker.next(), (101, 2 * 15 * 11 * 64 * STEP));
    assert!(taker.client.one::<bool>("SELECT snowflake_registry.open()"));
    assert_eq!(taker.take(STEP).first, 101);
    assert_eq!(server.connect().one::<String>("SELECT layout FROM snowflake_registry.status"), LAYOUT);
}
