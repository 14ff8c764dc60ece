//! Sessions of one role ask for tags that do not exist, all the time. Sessions of other roles get the first numbers of new tags.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use cluster::{Answer, Cluster, assert_caught, ensure, sqlstate, within};

use crate::servers::{SOON, empty_registry, server};

/// How many sessions ask for tags that do not exist. This is more than there is room for.
const SESSIONS: usize = 60;

/// How many tags that did not exist a server has looked up when it begins to pause.
const PAUSES: u64 = 150;

/// How many new tags the other role draws from, one after the other.
const NEW: usize = 4;

/// Role `flood` asks for unknown tags in many sessions, while `other` runs.
fn flooded<T>(server: &Cluster, other: impl FnOnce() -> T) -> (T, Vec<(String, String, String, String)>) {
    let (ended, refused) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let (mut client, ended, refused) = (server.connect_as("flood"), &ended, &refused);
                scope.spawn(move || {
                    let mut errors = Vec::new();
                    for n in 0.. {
                        let sql = format!("SELECT snowflake_segment_nextval('unknown {session} {n}')");
                        errors.extend(client.batch_execute(&sql).err().map(|error| sqlstate(&error)));
                        refused.fetch_add(1, Ordering::Relaxed);
                        if ended.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                    errors
                })
            })
            .collect();
        assert!(within(SOON, || refused.load(Ordering::Relaxed) >= PAUSES), "{}", server.log());
        let result = other();
        ended.store(true, Ordering::Relaxed);
        let errors = sessions.into_iter().flat_map(|session| session.join().expect("a session")).collect();
        (result, errors)
    })
}

fn start(name: &str, fault: Option<&str>) -> (Cluster, Cluster) {
    let registry = empty_registry(name);
    let mut owner = registry.connect();
    for n in 0..NEW {
        owner.one::<i64>(&format!("SELECT snowflake_registry.create_segment('new {n}')"));
    }
    let server = server(&format!("{name}_1"), &registry).fault_if(fault).start();
    server.session().run(
        "CREATE ROLE flood LOGIN; CREATE ROLE app LOGIN;
         GRANT EXECUTE ON FUNCTION snowflake_segment_nextval(text) TO flood, app",
    );
    (registry, server)
}

/// The registrar looks up 20 tags per second, and the other role has one of 32 places, so a first number takes about two seconds.
fn check(name: &str, fault: Option<&str>) -> Result<(), String> {
    let (_registry, server) = start(name, fault);
    let mut app = server.connect_as("app");
    app.run("SET statement_timeout = '8s'");
    let draw = || {
        let draw = |n| app.code(&format!("SELECT snowflake_segment_nextval('new {n}')"));
        (0..NEW).map(draw).collect::<Vec<_>>()
    };
    let (drawn, _) = flooded(&server, draw);
    ensure!(drawn.iter().all(Option::is_none), "the other role has got {drawn:?}");
    Ok(())
}

#[test]
fn unknown_tags_of_one_role_do_not_keep_out_the_new_tags_of_another() {
    check("seg_crowd", None).unwrap();
}

#[test]
fn an_entrance_that_is_not_shared_by_roles_is_caught() {
    assert_caught(check("seg_crowd_first", Some("EntranceOfFirst")), "the other role has got [");
}

/// The role itself waits for a limited time, here two seconds.
#[test]
fn a_session_does_not_wait_without_a_limit_until_its_tag_is_looked_up() {
    let (_registry, server) = start("seg_crowd_limit", Some("ShortPatience"));
    let ((), errors) = flooded(&server, || thread::sleep(Duration::from_secs(6)));
    let (late, unknown): (Vec<_>, Vec<_>) = errors.iter().partition(|error| error.0 == "53400");
    assert!(unknown.iter().all(|error| error.0 == "42704"), "{unknown:?}");
    let (_, message, detail, hint) = late.first().expect("a session that has waited for too long");
    assert!(
        message.starts_with("segment \"unknown ") && message.ends_with("\" was not looked up in time"),
        "{message}"
    );
    assert_eq!(detail, "Sessions are requesting new segments faster than the server can look them up.");
    assert_eq!(
        hint,
        "Find the sessions that request segments that do not exist, revoke EXECUTE on function \
         snowflake_segment_nextval(text) from their roles, and retry the statement."
    );
    // The hint works.
    assert_eq!(server.connect_as("app").one::<i64>("SELECT snowflake_segment_nextval('new 1')"), 1);
}
