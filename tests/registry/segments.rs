//! Blocks of the numbers of a tag: many servers at once, lost answers, rights, and locks that are left behind.

use std::thread;
use std::time::{Duration, Instant};

use cluster::{Answer as _, Chance, Client, Cluster, assert_caught_by_chance, sqlstate, within};
use flake::fleet::{Kept, LAST_NUMBER, NoBlock, ReportAnswer, TagBlock, Uuid};

use crate::blocks::{Taker, check_ledger, last, with_tag};
use crate::calls::spoil;

const CLIENTS: usize = 16;
const ROUNDS: usize = 100;

fn nonce(chance: &mut Chance) -> Uuid {
    Uuid((u128::from(chance.between(0, i64::MAX).unsigned_abs()) << 64) | chance.between(1, i64::MAX) as u128)
}

/// Takes blocks as one server. Returns the numbers that it used.
fn serve(server: &Cluster, mut chance: Chance) -> Vec<(i64, i64)> {
    let (mut taker, mut late) = (Taker::of(server), Taker::of(server));
    let mut used = Vec::new();
    for _ in 0..ROUNDS {
        let (nonce, want) = (nonce(&mut chance), chance.between(1, 12_000));
        let take = |taker: &mut Taker| taker.try_take(nonce, want).expect("the registry answers").expect("a block");
        let mut block = take(&mut taker);
        // The answer is lost, and the request is sent again.
        if chance.one_in(4) {
            block = take(&mut late);
        }
        let end = if chance.one_in(3) { chance.between(block.first - 1, last(&block)) } else { last(&block) };
        if end >= block.first {
            used.push((block.first, end));
        }
        if end < last(&block) && !chance.one_in(4) {
            let _ = taker.give_back(&block, end + 1, last(&block));
            // A second copy of the request was on its way for some time.
            if chance.one_in(2) {
                thread::sleep(chance.millis(3));
                let _ = late.give_back(&block, end + 1, last(&block));
            }
        }
    }
    used
}

/// Lets clients take blocks at once. Returns how many numbers they used.
fn check(name: &str, spoil: impl Fn(&mut Client)) -> Result<i64, String> {
    let (server, mut taker) = with_tag(name, 100, 300_000);
    spoil(&mut taker.client);
    let mut chance = Chance::of(name);
    let used: Vec<(i64, i64)> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let chance = chance.fork();
                scope.spawn(|| serve(&server, chance))
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("the thread ends")).collect()
    });
    check_ledger(used)
}

#[test]
fn sixteen_servers_use_no_number_twice() {
    let count = check("registry_segments", |_| {}).unwrap();
    assert!(count > 5_000_000, "only {count} numbers");
}

#[test]
fn a_take_without_a_lock_is_caught() {
    let spoil = |client: &mut Client| spoil(client, "lock_segment", " FOR UPDATE;", ";");
    assert_caught_by_chance(|| check("registry_segments_unlocked", spoil).map(drop), "twice");
}

#[test]
fn a_give_back_that_ignores_the_nonce_is_caught() {
    let spoil = |client: &mut Client| {
        spoil(client, "give_back", "s.top_nonce <> give_back.nonce OR", "false OR");
        spoil(client, "give_back", "give_back.last <> s.next_value - 1 OR give_back.first < s.top_first", "false");
    };
    assert_caught_by_chance(|| check("registry_segments_nonce", spoil).map(drop), "twice");
}

#[test]
fn an_answer_that_was_lost_is_given_again() {
    let (server, mut taker) = with_tag("registry_segments_again", 10, 100);
    let first = taker.nonce();
    let block = taker.try_take(first, 50).expect("an answer").expect("a block");
    assert_eq!((block.first, block.count), (1, 50));
    let mut other = Taker::of(&server);
    // Nothing of the request but the nonce counts.
    assert_eq!(other.try_take(first, 7).expect("an answer"), Ok(block));
    let next = other.take(1);
    assert_eq!((next.first, next.count), (51, 10));
    // The block is no longer the highest. A new one is safe.
    let again = taker.try_take(first, 50).expect("an answer").expect("a block");
    assert_eq!((again.first, again.count), (61, 50));
    // The numbers of the first block are not the end of the highest one, although the nonce is the same.
    assert_eq!(taker.give_back(&block, 5, 50), Err(Kept::NotTop));
    assert_eq!(taker.give_back(&again, 65, 110), Ok(()));
    assert_eq!(taker.give_back(&again, 65, 110), Err(Kept::NotTop));
    assert_eq!(taker.next(), (65, 0));
}

#[test]
fn a_server_that_stops_gives_back_both_of_its_blocks() {
    let (server, mut taker) = with_tag("registry_segments_back", 10, 100);
    let (older, newer) = (taker.take(10), taker.take(20));
    assert_eq!(taker.give_back(&newer, newer.first, last(&newer)), Ok(()));
    assert_eq!(taker.give_back(&older, 4, last(&older)), Ok(()));
    assert_eq!(taker.next(), (4, 0));
    // Another server takes the same numbers. A late copy of the request must not take them from it.
    let mut other = Taker::of(&server);
    let block = other.take(7);
    assert_eq!((block.first, block.count), (4, 10));
    assert_eq!(other.give_back(&block, 11, last(&block)), Ok(()));
    assert_eq!(taker.give_back(&older, 4, last(&older)), Err(Kept::NotTop));
    assert_eq!(taker.next(), (11, 0));
}

#[test]
fn a_tag_that_is_created_again_is_another_tag() {
    let (_server, mut taker) = with_tag("registry_segments_created", 10, 100);
    let block = taker.take(10);
    assert_eq!(taker.report(block.generation, last(&block)), ReportAnswer::Current);
    assert_eq!(taker.report(block.generation, last(&block) + 1), ReportAnswer::Ahead);
    taker.client.batch_execute("SELECT snowflake_registry.drop_segment('orders')").expect("the tag exists");
    assert_eq!(taker.report(block.generation, last(&block)), ReportAnswer::UnknownTag);
    assert_eq!(taker.give_back(&block, 5, 10), Err(Kept::UnknownTag));
    let unknown = taker.nonce();
    assert_eq!(taker.try_take(unknown, 1).expect("an answer"), Err(NoBlock::UnknownTag));
    let create = "SELECT snowflake_registry.create_segment('orders', 1, 10, 100)";
    let generation: i64 = taker.client.one(create);
    assert!(generation as u64 > block.generation);
    assert_eq!(taker.report(block.generation, last(&block)), ReportAnswer::Generation);
    assert_eq!(taker.give_back(&block, 5, 10), Err(Kept::Generation));
    assert_eq!(taker.take(1).generation, generation as u64);
    assert_eq!(taker.client.refusal(create), ("42710".into(), "tag \"orders\" already exists".into()));
    // The generation is higher even if the clock of the registry was set back.
    let highest =
        "UPDATE snowflake_registry.fleet SET generation = 9000000000000000000; SELECT snowflake_registry.mark_fleet()";
    taker.client.batch_execute(highest).expect("may");
    taker.client.batch_execute("SELECT snowflake_registry.drop_segment('orders')").expect("the tag exists");
    assert!(taker.client.one::<i64>(create) > 9_000_000_000_000_000_000);
}

#[test]
fn a_tag_waits_for_its_next_window_and_ends_at_its_last_number() {
    let (server, mut taker) = with_tag("registry_segments_limits", 10, 100);
    let mut taken = 0;
    let until = loop {
        let nonce = taker.nonce();
        match taker.try_take(nonce, 90).expect("an answer") {
            Ok(block) => taken += block.count,
            Err(NoBlock::Wait { until }) => break until,
            other => panic!("{other:?}"),
        }
    };
    // The last block of the window is smaller than the server wants.
    assert_eq!(taken, 64 * 100);
    let ahead: i64 = taker.client.one(&format!("SELECT {until} - (extract(epoch FROM now()) * 1000000)::bigint"));
    assert!((500_000_000..=600_000_000).contains(&ahead), "{ahead}");
    let past = "UPDATE snowflake_registry.segment SET window_start = window_start - interval '10 minutes'";
    taker.client.batch_execute(past).expect("a superuser may");
    assert_eq!(taker.take(90).first, 6_401);
    let mut owner = server.connect();
    let sql = format!("SELECT snowflake_registry.create_segment('end', {LAST_NUMBER} - 4, 3)");
    owner.batch_execute(&sql).expect("new");
    let mut taker = Taker::on(owner, "end");
    let sizes = |block: TagBlock| (block.first, block.count);
    assert_eq!(sizes(taker.take(1)), (LAST_NUMBER - 4, 3));
    let top = taker.take(1);
    assert_eq!(sizes(top), (LAST_NUMBER - 1, 2));
    let nonce = taker.nonce();
    assert_eq!(taker.try_take(nonce, 1).expect("an answer"), Err(NoBlock::Exhausted));
    assert_eq!(taker.give_back(&top, LAST_NUMBER, LAST_NUMBER), Ok(()));
    assert_eq!(sizes(taker.take(1)), (LAST_NUMBER, 1));
    assert_eq!(taker.next(), (i64::MAX, 0));
}

#[test]
fn a_lock_that_is_left_in_a_transaction_is_an_answer_in_bounded_time() {
    let (server, mut taker) = with_tag("registry_segments_left", 10, 100);
    taker.client.batch_execute("SELECT snowflake_registry.create_segment('invoices')").expect("the tag is new");
    let mut left = Taker::of(&server);
    left.client.batch_execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0").expect("a session may");
    left.take(10);
    // Servers that take blocks of another tag do not wait.
    let begun = Instant::now();
    assert_eq!(Taker::on(server.connect(), "invoices").take(1).first, 1);
    assert!(begun.elapsed() < Duration::from_secs(4), "the block came after {:?}", begun.elapsed());
    let (nonce, begun) = (taker.nonce(), Instant::now());
    assert_eq!(taker.answer(nonce, 10), "locked");
    assert!(begun.elapsed() < Duration::from_secs(20), "the answer came after {:?}", begun.elapsed());
    // The registry ends the session that left the lock. Its block was never given.
    assert!(within(Duration::from_secs(60), || taker.answer(nonce, 10) == "taken"), "{}", server.log());
    assert!(left.client.simple_query("SELECT 1").is_err(), "the session goes on");
    assert_eq!(taker.next(), (11, 0));
}

#[test]
fn a_standby_and_a_read_only_session_give_no_block() {
    let (server, mut taker) = with_tag("registry_segments_read_only", 10, 100);
    let standby = server.standby(Cluster::builder("registry_segments_standby").unset("shared_preload_libraries"));
    let mut reader = Taker::of(&standby);
    let nonce = reader.nonce();
    let error = reader.try_take(nonce, 10).expect_err("a standby gives no block");
    assert_eq!(sqlstate(&error).0, "25006");
    assert_eq!(sqlstate(&error).1, "the registry is on a standby");
    taker.client.batch_execute("SET default_transaction_read_only = on").expect("a session may");
    let error = taker.try_take(nonce, 10).expect_err("nothing can be written");
    assert_eq!(sqlstate(&error).0, "25006");
    assert_eq!(taker.next(), (1, 0));
}

/// A session that does not wait for the disk and the standby when it commits waits when it takes a block.
#[test]
fn a_take_commits_durably_whatever_the_session_has_set() {
    let (_server, mut taker) = with_tag("registry_segments_durable", 10, 100);
    taker.client.batch_execute("SET synchronous_commit = off").expect("a session may");
    let nonce = taker.nonce();
    taker.client.batch_execute("BEGIN").expect("a session may");
    taker.try_take(nonce, 10).expect("an answer").expect("a block");
    assert_eq!(taker.client.one::<String>("SHOW synchronous_commit"), "on");
    taker.client.batch_execute("ROLLBACK").expect("a session may");
    // A block that was not committed was not given.
    assert_eq!(taker.next(), (1, 0));
    assert_eq!(taker.take(10).first, 1);
}
