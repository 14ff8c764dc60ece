//! Several servers that draw from one segment at the same time.

use cluster::{Answer, Builder, assert_caught, check_increasing, ensure, rounds};

use crate::servers::{check_ledger, draw, draw_at_once, empty_registry, held, next_value, registry, server};

/// Three servers with two sessions each draw `count` numbers a session.
fn check(name: &str, count: u32, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let registry = registry(name, 1_000);
    let servers: Vec<_> = (1..=3).map(|n| change(server(&format!("{name}_{n}"), &registry)).start()).collect();
    let all: Vec<_> = servers.iter().collect();
    let ledger = draw_at_once(&all, 2, count);
    check_ledger(&ledger)?;
    for session in &ledger {
        ensure!(session.len() == count as usize, "a session drew {} numbers", session.len());
        check_increasing(session)?;
    }
    // Every number below the next one of the registry was drawn or is held by a server.
    let drawn = i64::from(count) * ledger.len() as i64;
    let (next, held) = (next_value(&registry, "orders"), held(&all));
    ensure!(next == 1 + drawn + held, "{drawn} numbers were drawn, {held} are held, and the next is {next}");
    Ok(())
}

#[test]
fn several_servers_draw_millions_of_numbers_of_one_segment_and_none_twice() {
    check("seg_many", rounds(850_000, 200_000) as u32, |builder| builder).unwrap();
}

#[test]
fn a_block_of_each_session_is_caught() {
    let private = |builder: Builder| builder.fault("BlockPerSession");
    assert_caught(check("seg_private", 100, private), "numbers came twice");
}

/// The registry rolls back the blocks of one server at their COMMIT.
fn check_commit(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let registry = registry(name, 100);
    registry.connect().run(
        "CREATE ROLE cut_off LOGIN;
         SELECT snowflake_registry.grant_server('cut_off');
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF session_user = 'cut_off' THEN RAISE 'this transaction cannot end' USING ERRCODE = '58000'; END IF;
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER fail AFTER UPDATE ON snowflake_registry.segment
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail();",
    );
    let string = crate::servers::string(&registry).replace("user=postgres", "user=cut_off");
    let cut_off = change(server(&format!("{name}_1"), &registry).set("snowflake_pg.registry", &string)).start();
    let other = server(&format!("{name}_2"), &registry).start();
    let mut client = cut_off.session();
    let mut ledger = Vec::new();
    // Without the fault, this is an error.
    match client.query(crate::servers::DRAW, &[]) {
        Ok(rows) => ledger.push(rows.iter().map(|row| row.get(0)).collect()),
        Err(error) => {
            let (code, _, detail, _) = cluster::sqlstate(&error);
            ensure!(code == "55000" && detail.contains("this transaction cannot end"), "{code}: {detail}");
        }
    }
    ledger.push(draw(&mut other.session(), 50));
    registry.connect().run("DROP TRIGGER fail ON snowflake_registry.segment");
    assert!(cluster::within(crate::servers::SOON, || client.code(crate::servers::DRAW).is_none()), "{}", cut_off.log());
    ledger.push(draw(&mut client, 50));
    check_ledger(&ledger).map(drop)
}

#[test]
fn a_block_is_not_used_before_its_commit() {
    check_commit("seg_commit", |builder| builder).unwrap();
}

#[test]
fn a_block_that_is_used_before_its_commit_is_caught() {
    assert_caught(check_commit("seg_early", |builder| builder.fault("CommitIgnored")), "numbers came twice");
}

/// A proxy loses answers of the registry. The server sends the request again.
#[test]
fn an_answer_that_is_lost_repeats_no_number() {
    let registry = empty_registry("seg_lossy");
    // Blocks that stay small are requested often.
    registry.connect().one::<i64>("SELECT snowflake_registry.create_segment('orders', 1, 10, 10)");
    let proxy = cluster::Proxy::before(&registry, "seg_lossy_proxy");
    let string = format!("host={} user=postgres dbname=postgres connect_timeout=2", proxy.socket().display());
    let lossy = server("seg_lossy_1", &registry).set("snowflake_pg.registry", &string).start();
    let other = server("seg_lossy_2", &registry).start();
    let (mut client, mut clear) = (lossy.session(), other.session());
    let mut ledger = vec![draw(&mut client, 5)];
    proxy.lose_answers(cluster::Chance::of("seg_lossy"), 4);
    // While the lost answer's transaction holds the segment, a draw of the other server can fail, too.
    let mut answered = [0; 2];
    for _ in 0..300 {
        for (client, answered) in [&mut client, &mut clear].into_iter().zip(&mut answered) {
            if let Ok(rows) = client.query(crate::servers::DRAW, &[]) {
                ledger.push(rows.iter().map(|row| row.get(0)).collect());
                *answered += 1;
            }
        }
    }
    assert!(proxy.lost() > 0, "no answer was lost");
    assert!(answered[0] > 0, "{}", lossy.log());
    assert!(answered[1] > 0, "{}", other.log());
    check_ledger(&ledger).unwrap();
}
