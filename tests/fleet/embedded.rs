//! A primary with two standbys whose registry is in the primary.

use std::thread;
use std::time::Duration;

use cluster::{Answer, Ask, Boot, Host, Load, Stop, within};

use crate::fleet::{LAYOUT, SOON, logged, number, refused, renewed, renewed_above, seen, server, wait_for_log};

/// The primary is stopped, one standby is promoted, and the other one follows it. All connect to the same list of hosts, in which
/// the standbys are the first ones.
#[test]
fn a_primary_and_two_standbys_keep_their_numbers_through_a_promotion() {
    let names = ["within_1", "within_2", "within_3"];
    let machines = names.map(Boot::new);
    let mut sockets = names.map(|name| Host::get().socket_dir(name).display().to_string());
    sockets.reverse();
    let hosts = format!("host={} user=postgres dbname=postgres connect_timeout=2", sockets.join(","));
    let like = |n: usize| server(names[n], &hosts).on(&machines[n]).set("hot_standby", "on");
    let mut primary = like(0).start();
    wait_for_log(&primary, "schema \"snowflake_registry\" does not exist");
    primary.create_fleet(LAYOUT);
    let first = renewed(&primary, &primary);
    // While the server starts, the registry accepts no connections.
    for how in [Stop::Fast, Stop::Immediate] {
        primary.restart(how);
        let after = renewed_above(&primary, &primary, seen(&primary, &primary)[0].count + 1);
        assert_eq!((after.worker, &after.holder), (first.worker, &first.holder));
        assert_eq!(logged(&primary, "heartbeat failed"), 0, "{}", primary.log());
    }
    let standby = primary.standby(like(1));
    let other = primary.standby(like(2));
    for standby in [&standby, &other] {
        renewed_above(&primary, standby, 1);
    }
    let before = [&primary, &standby, &other].map(number);
    assert_eq!(before, ["0", "1", "2"]);
    let holder = seen(&primary, &standby).remove(0).holder;
    Load::prepare(&primary);
    let load = Load::start(&primary, 2, Ask::READING, "");
    thread::sleep(Duration::from_secs(1));
    let mut ledger = load.finish();
    // The claims of all three are replicated, so that the promoted registry has lost at most renewals.
    let replayed = || [&standby, &other].iter().all(|standby| seen(standby, &other).len() == 1);
    assert!(within(SOON, replayed));
    let role = || standby.connect().one::<String>("SELECT role FROM snowflake_registry.servers WHERE worker_id = 1");
    assert!(within(SOON, || role() == "standby"));
    primary.stop(Stop::Immediate);
    standby.promote();
    other.follow(&standby);
    let load = Load::start(&standby, 2, Ask::READING, "");
    for member in [&standby, &other] {
        let count = seen(&standby, member)[0].count;
        renewed_above(&standby, member, count + 1);
        assert_eq!(logged(member, "lost worker ID"), 0, "{}", member.log());
    }
    let history = load.finish();
    assert!(history.errors.is_empty() && !history.is_empty(), "{:?}", history.errors);
    ledger.merge(history);
    ledger.check(100).unwrap();
    assert_eq!([&standby, &other].map(number), ["1", "2"]);
    assert!(within(SOON, || role() == "primary"));
    assert_eq!(seen(&standby, &standby)[0].holder, holder);
    assert!(refused(&mut standby.session()).is_none());
}
