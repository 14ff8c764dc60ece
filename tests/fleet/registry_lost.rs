//! A registry that is replaced by one that knows less: a promoted standby, or a restored dump. All servers issue IDs
//! at the same time. One of them got its worker ID in the part that is lost, and one asks the new registry for a worker ID.

use std::time::Duration;

use cluster::{Answer, Ask, Client, Cluster, History, Stop, assert_caught, ensure, output, typed, within};

use crate::fleet::{
    SOON, logged, move_to, refused, registry, renewed, renewed_above, seen, server, string, wait_for_log,
};

/// What replaces the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Successor {
    /// A standby that has not received the end of the WAL.
    Standby,
    /// A dump, which is restored into a new cluster.
    Dump,
}

/// The first spare worker ID of the fleet.
const SPARE: i32 = 1_024 - 1_024 / 4;

/// Takes away the quarantine that follows if the state of the registry might be older than what the registry has answered.
fn without_lives(registry: &Cluster) {
    let sql = "CREATE OR REPLACE FUNCTION snowflake_registry.begin_life(
                   f snowflake_registry.fleet, i snowflake_registry.identity, told bigint, now_at timestamptz, why text DEFAULT NULL
               ) RETURNS snowflake_registry.fleet LANGUAGE plpgsql AS 'BEGIN RETURN f; END'";
    registry.connect().batch_execute(sql).expect("a superuser may");
}

/// Lets all servers issue IDs at the same time, and adds the IDs to the ledger.
fn issue(servers: &[&Cluster], ledger: &mut History) -> Result<(), String> {
    ledger.merge(History::together(servers, Ask::READING, Duration::from_secs(2))?);
    ledger.check(100)
}

fn check(name: &str, successor: Successor, change: impl Fn(&Cluster)) -> Result<(), String> {
    let mut first = registry(&format!("{name}_a"));
    change(&first);
    let mut known = server(&format!("{name}_1"), &string(&first)).start();
    let known_as = renewed(&first, &known);

    let plain = Cluster::builder(&format!("{name}_b")).unset("shared_preload_libraries");
    let mut dump = String::new();
    let mut second = match successor {
        Successor::Standby => first.standby(plain),
        Successor::Dump => {
            dump = output(&mut first.program("pg_dump"));
            plain.create_anew()
        }
    };
    let behind = (successor == Successor::Standby).then(|| {
        let replayed = || seen(&second, &known).first().is_some_and(|seen| seen.count >= known_as.count);
        assert!(within(SOON, replayed), "the standby does not follow");
        first.leave_behind(&second)
    });
    let mut lost = server(&format!("{name}_2"), &string(&first)).start();
    let lost_as = renewed(&first, &lost);
    assert_eq!((known_as.worker, lost_as.worker), (0, 1));
    [&known, &lost].iter().for_each(|server| drop(server.session()));
    first.stop(Stop::Immediate);
    drop(behind);

    match successor {
        Successor::Standby => second.promote(),
        Successor::Dump => {
            second.start();
            typed(second.psql(), &dump)?;
        }
    }
    change(&second);
    assert!(seen(&second, &lost).is_empty(), "nothing is lost");

    let new = server(&format!("{name}_3"), &string(&second)).start();
    let mut client = new.session();
    let waits = "heartbeat failed: the registry is in quarantine, and no spare worker ID is free";
    let answered = within(SOON, || logged(&new, waits) > 0 || refused(&mut client).is_none());
    assert!(answered, "{}", new.log());
    let mut ledger = History::default();
    let issuing = [&known, &lost, &new];
    let granted = seen(&second, &new).first().map(|seen| seen.worker);
    issue(&issuing[..if granted.is_some() { 3 } else { 2 }], &mut ledger)?;
    check_new(successor, &new, granted, &mut client)?;

    // Both servers keep what the first registry has granted, although the new one does not know the second grant.
    for (server, before) in [(&mut known, known_as), (&mut lost, lost_as)] {
        move_to(server, &second);
        let after = renewed_above(&second, server, before.count + 1);
        ensure!((after.worker, after.holder) == (before.worker, before.holder), "a server lost its worker ID");
        ensure!(logged(server, "the registry assigned") == 1, "{}", server.log());
    }
    if granted.is_none() {
        // The administrator knows that every server has reached the new registry.
        assert!(second.connect().one::<bool>("SELECT snowflake_registry.open()"));
        wait_for_log(&new, "the registry assigned worker ID 2");
    }
    issue(&[&known, &lost, &new], &mut ledger)
}

/// Checks what a server gets that asks during the quarantine.
fn check_new(successor: Successor, new: &Cluster, granted: Option<i32>, client: &mut Client) -> Result<(), String> {
    if successor != Successor::Dump {
        ensure!(granted == Some(SPARE), "the new server has worker ID {granted:?}");
        return Ok(());
    }
    ensure!(granted.is_none(), "the new server has worker ID {granted:?}");
    let log = new.log();
    for text in [
        "Worker IDs will be assigned again at 20",
        "The reason is: the registry is in a different cluster or database than before",
        "HINT:  Start a server that still has its witness and make it the primary, or wait.",
    ] {
        ensure!(log.contains(text), "{log}");
    }
    let (_, _, detail, _) = refused(client).expect("no worker ID");
    let last = "The last error was: the registry is in quarantine, and no spare worker ID is free";
    ensure!(detail.contains(last), "{detail}");
    Ok(())
}

#[test]
fn a_registry_that_is_promoted_with_a_lost_suffix_gives_no_worker_id_twice() {
    check("lost_promoted", Successor::Standby, |_| {}).unwrap();
}

#[test]
fn a_promoted_registry_without_a_quarantine_is_caught() {
    assert_caught(check("lost_promoted_open", Successor::Standby, without_lives), "IDs came twice");
}

#[test]
fn a_registry_that_is_restored_from_a_dump_gives_no_worker_id_until_it_is_opened() {
    check("lost_dump", Successor::Dump, |_| {}).unwrap();
}
