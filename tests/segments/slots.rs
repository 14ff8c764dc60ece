//! More tags than a server has room for, and many sessions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cluster::{Answer, Client, SetOnDrop, assert_caught, check_increasing, copy_ids, ensure};

use crate::servers::{check_ledger, create, draw_at_once, held, next_value, registry, server};

fn draw_of(client: &mut Client, tag: &str) -> i64 {
    client.one(&format!("SELECT snowflake_segment_nextval('{tag}')"))
}

/// A server with two slots gives back the numbers of a tag before it takes those of another, so that no tag has a hole.
#[test]
fn the_numbers_of_a_tag_without_room_are_given_back() {
    let registry = registry("seg_room", 100);
    let tags = ["a", "b", "c", "d", "e"];
    tags.iter().for_each(|tag| create(&registry, tag, 100));
    let (_server, mut client) = server("seg_room_1", &registry).set("snowflake_pg.max_segments", "2").start_session();
    for round in 1..=6 {
        for tag in tags {
            assert_eq!(draw_of(&mut client, tag), round, "{tag}");
        }
    }
    assert_eq!(client.one::<i64>("SELECT count(*) FROM snowflake_segments"), 2);
    // The tag that is used stays, and the others come and go.
    let fetches = "SELECT fetches FROM snowflake_segments WHERE tag = 'e'";
    let before: i64 = client.one(fetches);
    for (number, tag) in (7..).zip(["a", "b", "c", "d"]) {
        assert_eq!(draw_of(&mut client, tag), 7);
        assert_eq!(draw_of(&mut client, "e"), number);
    }
    assert_eq!(client.one::<i64>(fetches), before);
}

/// Sessions of more tags than slots draw at the same time, all of them to the end, and no number comes twice.
#[test]
fn many_tags_share_few_slots() {
    let registry = registry("seg_share", 10);
    let tags: Vec<String> = (0..4).map(|n| format!("tag {n}")).collect();
    tags.iter().for_each(|tag| create(&registry, tag, 10));
    let server = server("seg_share_1", &registry).set("snowflake_pg.max_segments", "2").start();
    server.session();
    let numbers: Vec<Vec<i64>> = thread::scope(|scope| {
        let drawing = tags.iter().map(|tag| {
            let mut client = server.connect();
            scope.spawn(move || {
                let sql = format!("SELECT snowflake_segment_nextval('{tag}') FROM generate_series(1, 200)");
                copy_ids(&mut client, &sql)
            })
        });
        drawing.collect::<Vec<_>>().into_iter().map(|thread| thread.join().expect("a session draws")).collect()
    });
    for numbers in &numbers {
        assert_eq!(numbers.len(), 200);
        check_increasing(numbers).unwrap();
        check_ledger(std::slice::from_ref(numbers)).unwrap();
    }
}

/// Many sessions of one server draw every number once, and leave none out.
#[test]
fn sixteen_sessions_share_the_blocks_of_a_server() {
    let registry = registry("seg_sessions", 10);
    let server = server("seg_sessions_1", &registry).start();
    let ledger = draw_at_once(&[&server], 16, 5_000);
    check_ledger(&ledger).unwrap();
    ledger.iter().for_each(|numbers| check_increasing(numbers).unwrap());
    assert_eq!(next_value(&registry, "orders"), 1 + 16 * 5_000 + held(&[&server]));
    // The blocks have become longer than the step.
    assert!(server.connect().one::<i64>("SELECT step FROM snowflake_segments") > 10);
}

/// The workers of a parallel query draw, too.
#[test]
fn parallel_workers_draw_every_number_once() {
    let registry = registry("seg_parallel", 1_000);
    let (_server, mut client) = server("seg_parallel_1", &registry).start_session();
    client.run("CREATE TABLE many AS SELECT n FROM generate_series(1, 50000) AS n; ANALYZE many");
    client.prefer_parallel(2);
    let sql = "SELECT snowflake_segment_nextval('orders') FROM many";
    assert!(client.plan(sql).contains("Workers Planned: 2"), "{}", client.plan(sql));
    let numbers: Vec<i64> = client.all(sql);
    assert_eq!(numbers.len(), 50_000);
    check_ledger(&[numbers]).unwrap();
}

/// A tag that has used up its window does not keep the only slot.
#[test]
fn a_tag_that_waits_for_its_next_window_keeps_no_slot() {
    let registry = registry("seg_dry", 10);
    registry.connect().one::<i64>("SELECT snowflake_registry.create_segment('short', 1, 1, 1)");
    let (_server, mut client) = server("seg_dry_1", &registry).set("snowflake_pg.max_segments", "1").start_session();
    client.run("SET statement_timeout = '8s'");
    (1..=64).for_each(|number| assert_eq!(draw_of(&mut client, "short"), number));
    for number in 1..=3 {
        assert_eq!(draw_of(&mut client, "orders"), number);
        for _ in 0..2 {
            assert_eq!(client.code("SELECT snowflake_segment_nextval('short')").as_deref(), Some("53400"));
        }
        let shown: String = client.one("SELECT concat_ws(' ', tag, state) FROM snowflake_segments");
        assert_eq!(shown, "short refused");
    }
}

/// Role `modest` draws a number of one tag and then runs `draws`, while role `greedy` draws from six tags in turn. The server has
/// slots for three tags. Returns an error if the segment of `modest` was closed meanwhile.
fn check_roles(name: &str, fault: Option<&str>, draws: impl FnOnce(&mut Client)) -> Result<(), String> {
    let registry = registry(name, 100);
    (0..6).for_each(|n| create(&registry, &format!("tag {n}"), 100));
    let server = server(&format!("{name}_1"), &registry).set("snowflake_pg.max_segments", "3").fault_if(fault).start();
    server.session().run(
        "CREATE ROLE modest LOGIN; CREATE ROLE greedy LOGIN;
         GRANT EXECUTE ON FUNCTION snowflake_segment_nextval(text) TO modest, greedy",
    );
    let (mut modest, mut greedy) = (server.connect_as("modest"), server.connect_as("greedy"));
    assert_eq!(draw_of(&mut modest, "orders"), 1);
    let written = "SELECT updated_at::text FROM snowflake_registry.segment WHERE tag = 'orders'";
    let before: String = registry.connect().one(written);
    let ended = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(move || {
            let tags = (0..6).cycle().take_while(|_| !ended.load(Ordering::Relaxed));
            tags.for_each(|n| _ = draw_of(&mut greedy, &format!("tag {n}")));
        });
        let _end = SetOnDrop(ended);
        draws(&mut modest);
    });
    ensure!(registry.connect().one::<String>(written) == before, "the segment was closed for another role");
    Ok(())
}

fn draw_now_and_then(modest: &mut Client) {
    for number in 2..=6 {
        thread::sleep(Duration::from_millis(400));
        assert_eq!(draw_of(modest, "orders"), number);
    }
}

#[test]
fn a_role_that_uses_many_tags_closes_no_segment_of_another() {
    check_roles("seg_roles", None, draw_now_and_then).unwrap();
}

#[test]
fn slots_that_roles_do_not_share_are_caught() {
    let closed = check_roles("seg_roles_turn", Some("SlotsInTurn"), draw_now_and_then);
    assert_caught(closed, "the segment was closed for another role");
}

/// A segment from which the role does not draw leaves.
#[test]
fn a_segment_that_is_idle_is_closed_for_any_role() {
    let closed = check_roles("seg_roles_idle", Some("ShortPatience"), |_| thread::sleep(Duration::from_secs(4)));
    assert_caught(closed, "the segment was closed for another role");
}
