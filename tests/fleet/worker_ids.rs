//! Which worker ID a server gets, keeps and loses.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use cluster::{Answer, Boot, Builder, Cluster, Stop, assert_caught, command, ensure, sqlstate, within};

use crate::fleet::{
    SOON, logged, registrar, registry, renewed, renewed_above, seen, server, signal, string, wait_for_log, with_server,
};

#[test]
fn a_restart_keeps_the_number_and_a_reboot_gets_another() {
    let machine = Boot::new("fleet_restart");
    let (registry, mut server, first) = with_server("fleet_restart", |builder| builder.on(&machine));
    for how in [Stop::Fast, Stop::Immediate] {
        server.restart(how);
        let count = seen(&registry, &server)[0].count;
        let after = renewed_above(&registry, &server, count);
        assert_eq!((after.worker, &after.holder), (first.worker, &first.holder), "{how:?}");
        assert!(server.log().contains("continuing with worker ID 0 from the witness"), "{}", server.log());
    }
    server.kill_postmaster();
    server.start();
    let after = renewed_above(&registry, &server, seen(&registry, &server)[0].count);
    assert_eq!(after.holder, first.holder);
    // The machine restarts.
    server.stop(Stop::Fast);
    assert_eq!(machine.witnesses().len(), 1);
    machine.reboot();
    server.start();
    wait_for_log(&server, "the registry assigned worker ID 1");
    assert_ne!(renewed(&registry, &server).holder, first.holder);
}

/// Without a witness, the record of the grant is in shared memory, which outlives the registrar.
#[test]
fn a_registrar_that_ends_is_started_again_and_keeps_the_number() {
    let (registry, server, first) = with_server("fleet_ended", |builder| builder);
    let pid = registrar(&server).expect("the registrar runs");
    signal(pid, "TERM");
    assert!(within(SOON, || registrar(&server).is_some_and(|new| new != pid)), "{}", server.log());
    let after = renewed_above(&registry, &server, seen(&registry, &server)[0].count + 1);
    assert_eq!((after.worker, &after.holder), (first.worker, &first.holder));
    assert_eq!(logged(&server, "the registry assigned"), 1, "{}", server.log());
}

#[test]
fn a_crash_of_the_registrar_keeps_the_number_of_the_witness() {
    let machine = Boot::new("fleet_killed");
    let (registry, server, first) = with_server("fleet_killed", |builder| builder.on(&machine));
    for crash in 1..=3 {
        signal(registrar(&server).expect("the registrar runs"), "KILL");
        let reinitialized = || logged(&server, "all server processes terminated; reinitializing") == crash;
        assert!(within(SOON, reinitialized), "{}", server.log());
        server.wait_until_back();
        let after = renewed_above(&registry, &server, seen(&registry, &server)[0].count + 1);
        assert_eq!((after.worker, &after.holder), (first.worker, &first.holder));
    }
    assert_eq!(logged(&server, "the registry assigned"), 1, "{}", server.log());
}

/// Locks the files that are not locked, as a server does, and prints how many they are.
const LOCK: &str = "
import fcntl, sys
locked = []
for path in sys.argv[1:]:
    file = open(path, 'r+')
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        locked.append(file)
    except OSError:
        pass
print(len(locked), flush=True)
sys.stdin.read()
";

/// Another process has the lock of a server's witness while the server starts.
fn check_lock(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let registry = registry(name);
    let machine = Boot::new(name);
    let start = |name: &str| change(server(name, &string(&registry)).on(&machine)).start();
    let mut first = start(&format!("{name}_1"));
    let second = start(&format!("{name}_2"));
    let number = |server: &Cluster| renewed(&registry, server).worker;
    assert_ne!(number(&first), number(&second));
    assert_eq!(machine.witnesses().len(), 2);
    first.stop(Stop::Fast);
    let mut holder = command("python3")
        .args(["-c", LOCK])
        .args(machine.witnesses())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 can be run");
    let mut locked = String::new();
    BufReader::new(holder.stdout.take().expect("a pipe")).read_line(&mut locked).expect("a line");
    let locked = locked.trim();
    if locked == "1" {
        first.start();
        wait_for_log(&first, "has locked the file");
        wait_for_log(&first, "the registry assigned worker ID 2");
    }
    // The program ends with its input.
    drop(holder.stdin.take());
    let _ = holder.wait();
    ensure!(locked == "1", "{locked} of two witnesses were free, but one server runs");
    Ok(())
}

#[test]
fn two_servers_of_one_machine_have_two_witnesses_and_a_locked_one_is_not_shared() {
    check_lock("fleet_machine", |builder| builder).unwrap();
}

#[test]
fn a_witness_that_is_not_locked_is_caught() {
    let outcome = check_lock("fleet_unlocked", |builder| builder.fault("WitnessShared"));
    assert_caught(outcome, "2 of two witnesses were free");
}

/// A function that lowers the mark has compared it with the IDs of the previous worker ID.
#[test]
fn a_mark_is_not_set_for_a_worker_id_that_has_changed_meanwhile() {
    let (registry, server, _) = with_server("fleet_mark", |builder| builder);
    let mut client = server.session();
    let sql = "CREATE TABLE orders (id bigint DEFAULT snowflake_nextval()); INSERT INTO orders DEFAULT VALUES;
             CREATE VIEW slow_orders AS SELECT id FROM orders, pg_advisory_xact_lock_shared(1)";
    client.batch_execute(sql).expect("a table");
    let before = server.shown_mark();
    let refused = std::thread::scope(|scope| {
        // The call waits while this session has the lock.
        let mut holder = server.connect();
        holder.batch_execute("SELECT pg_advisory_lock(1)").expect("nobody has the lock");
        let set = "SELECT snowflake_set_mark((SELECT max(id) + 1 FROM orders), 'slow_orders')";
        let setting =
            scope.spawn(|| sqlstate(&server.connect().batch_execute(set).expect_err("the worker ID changes")));
        let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'advisory')";
        assert!(within(SOON, || holder.one(waits)), "the call does not wait for the lock");
        let taken = "UPDATE snowflake_registry.node SET holder = gen_random_uuid(), nonce = gen_random_uuid()";
        registry.connect().batch_execute(taken).expect("a superuser may");
        wait_for_log(&server, "the registry assigned worker ID 1");
        drop(holder);
        setting.join().expect("the thread ends")
    });
    let (code, message, ..) = refused;
    assert_eq!((code.as_str(), message.as_str()), ("40001", "the worker ID of this server changed during the call"));
    assert_eq!(server.shown_mark(), before);
    // The hint works.
    let set = "SELECT snowflake_set_mark((SELECT max(id) + 1 FROM orders), 'orders')";
    client.batch_execute(set).expect("the worker ID stays");
}
