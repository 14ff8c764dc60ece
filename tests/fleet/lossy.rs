//! A connection to the registry that loses answers. The registry has stored what a request asked for, and the server does not know.

use cluster::{Answer, Ask, Builder, Chance, Cluster, History, Load, Proxy, assert_caught, ensure, within};

use crate::fleet::{SOON, logged, number, refused, registry, seen, server};

/// How many answers are lost.
const LOST: usize = 24;

/// Three servers claim and renew while one answer in two is lost.
fn check(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let registry = registry(name);
    let proxy = Proxy::before(&registry, &format!("{name}_proxy"));
    proxy.lose_answers(Chance::of(name), 2);
    let through = format!("host={} user=postgres dbname=postgres", proxy.socket().display());
    let like = |n: usize| change(server(&format!("{name}_{n}"), &through));
    let servers: Vec<Cluster> = (0..3).map(|n| like(n).start()).collect();
    let fenced = || servers.iter().any(|server| logged(server, "a copy of this server") > 0);
    for server in &servers {
        let mut client = server.session();
        assert!(within(SOON, || fenced() || refused(&mut client).is_none()), "{}", server.log());
    }
    // A server that is fenced this early may be alone in the registry.
    ensure!(!fenced(), "a server is fenced although it has no copy");
    let before: Vec<String> = servers.iter().map(number).collect();
    let loads: Vec<Load> = servers.iter().map(|server| Load::start(server, 1, Ask::READING, "")).collect();
    let lost = || proxy.lost() >= LOST || fenced();
    assert!(within(SOON, lost), "only {} answers were lost", proxy.lost());
    proxy.lose_nothing();
    let counts = || servers.iter().map(|server| seen(&registry, server)[0].count).collect::<Vec<_>>();
    let earlier = counts();
    let renewed = || counts().iter().zip(&earlier).all(|(count, earlier)| *count > earlier + 1);
    assert!(within(SOON, || fenced() || renewed()), "{earlier:?}, and later {:?}", counts());
    let mut ledger = History::default();
    loads.into_iter().for_each(|load| ledger.merge(load.finish()));
    ensure!(!fenced(), "a server is fenced although it has no copy");
    ledger.check(1_000)?;
    ensure!(ledger.errors.is_empty(), "sessions got errors: {:?}", ledger.errors);
    let after: Vec<String> = servers.iter().map(number).collect();
    ensure!(after == before, "the servers had worker IDs {before:?} and have {after:?}");
    // A claim that was repeated has not used up a second worker ID.
    let rows: i64 = registry.connect().one("SELECT count(*) FROM snowflake_registry.node");
    ensure!(rows == 3, "three servers have {rows} worker IDs");
    Ok(())
}

#[test]
fn servers_whose_answers_are_lost_keep_their_worker_ids() {
    check("lossy", |builder| builder).unwrap();
}

#[test]
fn a_renewal_that_is_repeated_with_another_nonce_is_caught() {
    let outcome = check("lossy_nonce", |builder| builder.fault("NonceReplaced"));
    assert_caught(outcome, "a server is fenced although it has no copy");
}
