//! What the log says when the registry is there but not usable.

use std::collections::BTreeSet;
use std::thread;

use cluster::{Answer, Boot, Builder, Cluster, Host, Stop, assert_caught, ensure, sqlstate, within};

use crate::fleet::{
    LAYOUT, SOON, UNASSIGNED, check_refused, logged, refused, registry, renewed, server, string, wait_for_log,
};

/// Starts a server whose heartbeats fail, and checks what it says.
fn check(name: &str, string: &str, message: &str, hint: &str) {
    let server = server(name, string).start();
    wait_for_log(&server, &format!("WARNING:  snowflake_pg: heartbeat failed: {message}"));
    let log = server.log();
    assert!(log.contains(&format!("HINT:  {hint}")), "{log}");
    assert!(log.contains("The server has no worker ID and cannot issue IDs."), "{log}");
}

#[test]
fn a_registry_that_cannot_be_reached_or_used_is_named_with_a_hint() {
    let registry = registry("fleet_troubles");
    let mut owner = registry.connect();
    for sql in [
        "CREATE DATABASE empty",
        "CREATE DATABASE unfilled",
        "CREATE ROLE stranger LOGIN",
        "CREATE ROLE reader LOGIN",
        "ALTER ROLE reader SET default_transaction_read_only = on",
        "SELECT snowflake_registry.grant_server('reader')",
    ] {
        owner.batch_execute(sql).expect("a superuser may");
    }
    registry.connect_to("unfilled").batch_execute("CREATE EXTENSION snowflake_registry").expect("it is installed");
    let host = format!("host={} user=postgres", registry.socket().display());
    let checks = [
        (
            "fleet_no_host",
            "host=/nowhere dbname=postgres user=postgres".to_string(),
            "cannot connect to the registry",
            "Check that the registry's server is running",
        ),
        (
            "fleet_no_database",
            format!("{host} dbname=missing"),
            "cannot connect to the registry",
            "Check that the registry's server is running",
        ),
        (
            "fleet_no_schema",
            format!("{host} dbname=empty"),
            "the registry raised an error: schema \"snowflake_registry\" does not exist",
            "In the database specified by \"snowflake_pg.registry\", run CREATE EXTENSION snowflake_registry",
        ),
        (
            "fleet_no_fleet",
            format!("{host} dbname=unfilled"),
            "the registry raised an error: the registry has no fleet",
            "As the owner of the registry, run \"SELECT snowflake_registry.create_fleet(layout)\"",
        ),
        (
            "fleet_no_grant",
            format!("{} dbname=postgres", host.replace("user=postgres", "user=stranger")),
            "the registry raised an error: permission denied for schema snowflake_registry",
            "As the owner of the registry, run SELECT snowflake_registry.grant_server(role)",
        ),
        (
            "fleet_read_only",
            format!("{} dbname=postgres target_session_attrs=any", host.replace("user=postgres", "user=reader")),
            "the registry raised an error: cannot execute SELECT FOR UPDATE in a read-only transaction",
            "The registry's server is read-only: either it is a standby, or its setting \"default_transaction_read_only\" is on",
        ),
        (
            "fleet_malformed",
            "host=somewhere secret-word".to_string(),
            "the value of parameter \"snowflake_pg.registry\" is not a connection string",
            "Set a libpq connection string",
        ),
    ];
    // A server that cannot connect says so ten seconds after its start, so the servers wait together.
    thread::scope(|scope| {
        for (name, string, message, hint) in &checks {
            scope.spawn(move || check(name, string, message, hint));
        }
    });
}

#[test]
fn a_part_of_a_password_is_not_taken_for_a_host() {
    let wrong = [
        ("at", "postgresql://fleet:p@secret-word@registry.invalid/postgres"),
        ("slash", "postgresql://fleet:secret-word/p@registry.invalid/postgres"),
        ("both", "postgres://fleet:p@secret-word/p@registry.invalid/postgres"),
        ("digits", "postgresql://fleet:5432/secret-word@registry.invalid/postgres"),
        ("mark", "postgresql://fleet:p?p@secret-word/p@registry.invalid/postgres"),
        ("port", "host=registry.invalid port=secret-word"),
    ];
    for (case, string) in wrong {
        let server = server(&format!("fleet_misread_{case}"), string).start();
        wait_for_log(
            &server,
            "heartbeat failed: the value of parameter \"snowflake_pg.registry\" is not a connection string",
        );
        assert!(server.log().contains("In a URI, percent-encode the special characters"), "{}", server.log());
        assert_eq!(logged(&server, "secret-word"), 0, "{}", server.log());
    }
}

/// Starts a registry to which the role `fleet` logs in with this password.
fn registry_with_password(name: &str, password: &str) -> Cluster {
    let registry = registry(name);
    let role =
        format!("CREATE ROLE fleet LOGIN PASSWORD '{password}'; SELECT snowflake_registry.grant_server('fleet')");
    registry.connect().batch_execute(&role).expect("a superuser may");
    Host::get().write(&registry.dir().join("pg_hba.conf"), "local all postgres trust\nlocal all fleet scram-sha-256\n");
    registry.reload();
    registry
}

#[test]
fn a_password_with_special_characters_is_used() {
    let registry = registry_with_password("fleet_special", "p@a/b?c");
    let socket = registry.socket().display().to_string();
    let strings = [
        ("list", format!("host={socket} user=fleet dbname=postgres password=p@a/b?c")),
        ("uri", format!("postgresql://fleet:p%40a%2Fb%3Fc@{}/postgres", socket.replace('/', "%2F"))),
    ];
    for (case, string) in strings {
        renewed(&registry, &server(&format!("fleet_special_{case}"), &string).start());
    }
}

#[test]
fn another_layout_or_epoch_is_named_with_that_of_the_fleet() {
    let registry = registry("fleet_layout");
    let others = [
        ("snowflake_pg.layout", "41:9:13", "layout \"41:9:13\" and epoch 2010-11-04T01:42:54.657+00:00"),
        ("snowflake_pg.epoch", "2020-01-01T00:00:00Z", "layout \"41:10:12\" and epoch 2020-01-01T00:00:00+00:00"),
    ];
    for (n, (name, value, shown)) in others.into_iter().enumerate() {
        let mut server = server(&format!("fleet_layout_{n}"), &string(&registry)).set(name, value).start();
        let message = "the registry's fleet has a different layout or epoch";
        wait_for_log(&server, &format!("heartbeat failed: {message}"));
        let detail = format!(
            "The fleet has layout \"{LAYOUT}\" and epoch 2010-11-04T01:42:54.657+00:00. This server has {shown}."
        );
        assert!(server.log().contains(&detail), "{}", server.log());
        let [detail, hint] = check_refused(&mut server.session(), UNASSIGNED);
        assert!(detail.ends_with(&format!("The last error was: {message}.")), "{detail}");
        let begin = "Set \"snowflake_pg.layout\" and \"snowflake_pg.epoch\" to the fleet's values";
        assert!(hint.starts_with(begin), "{hint}");
        // The hint works.
        server.unset(name);
        server.restart(Stop::Fast);
        renewed(&registry, &server);
    }
}

#[test]
fn another_fleet_is_named_with_the_witness_to_remove() {
    let (first, second) = (registry("fleet_first"), registry("fleet_second"));
    let machine = Boot::new("fleet_moves");
    let mut server = server("fleet_moves", &string(&first)).on(&machine).start();
    renewed(&first, &server);
    server.set("snowflake_pg.registry", &string(&second));
    server.reload();
    wait_for_log(&server, "heartbeat failed: the registry belongs to a different fleet");
    let witness = machine.witnesses().remove(0);
    let hint = format!("stop it, remove file \"{}\", and start it again.", witness.display());
    assert!(server.log().contains(&hint), "{}", server.log());
    // The grant of its own fleet stays.
    assert!(refused(&mut server.session()).is_none());
    // The hint works.
    server.stop(Stop::Fast);
    std::fs::remove_file(witness).expect("the server is stopped");
    server.start();
    renewed(&second, &server);
}

#[test]
fn a_wrong_password_is_said_and_not_shown() {
    let registry = registry_with_password("fleet_password", "right");
    let at =
        |password: &str| format!("host={} user=fleet dbname=postgres password={password}", registry.socket().display());
    let mut server = server("fleet_password_1", &at("not-this-one")).start();
    wait_for_log(&server, "heartbeat failed: the registry's server refused the login");
    assert!(server.log().contains("HINT:  Check the user name, password and database"), "{}", server.log());
    assert_eq!(logged(&server, "not-this-one"), 0, "{}", server.log());
    server.set("snowflake_pg.registry", &at("right"));
    server.reload();
    assert_eq!(renewed(&registry, &server).worker, 0);
    // Only a superuser sees the connection string.
    server.connect().batch_execute("CREATE ROLE someone LOGIN").expect("a superuser may");
    let refused = server.connect_as("someone").query("SHOW snowflake_pg.registry", &[]).expect_err("it has a password");
    assert_eq!(sqlstate(&refused).0, "42501");
    // A server that accepts the password but no changes is not taken for one that refuses the login.
    registry.connect().batch_execute("ALTER SYSTEM SET default_transaction_read_only = on").expect("a superuser may");
    registry.reload();
    wait_for_log(&server, "heartbeat failed: cannot connect to the registry");
    wait_for_log(&server, "HINT:  The registry's server is read-only: either it is a standby");
}

#[test]
fn a_server_with_a_number_and_a_registry_does_not_start() {
    let mut server = Cluster::builder("fleet_both").set("snowflake_pg.registry", "host=somewhere").create();
    let log = server.try_start().expect_err("both are set");
    for text in [
        "FATAL:  parameters \"snowflake_pg.worker_id\" and \"snowflake_pg.registry\" are both set",
        "HINT:  Remove \"snowflake_pg.worker_id\" from the configuration",
    ] {
        assert!(log.contains(text), "{log}");
    }
    assert_eq!(log.matches("somewhere").count(), 0, "{log}");
}

/// A COMMIT whose wait for the standby is cancelled succeeds with a warning. The answer might be lost in a failover. The role of the
/// servers hides warnings.
fn check_warning(name: &str, change: impl Fn(Builder) -> Builder) -> Result<(), String> {
    let mut registry = registry(name);
    registry.connect().batch_execute("ALTER ROLE postgres SET client_min_messages = error").expect("a superuser may");
    let server = change(server(&format!("{name}_1"), &string(&registry))).start();
    let first = renewed(&registry, &server);
    registry.set("synchronous_standby_names", "nobody");
    registry.reload();
    let cancel = "SELECT pid, pg_cancel_backend(pid) FROM pg_stat_activity
                  WHERE application_name = 'snowflake_pg' AND wait_event = 'SyncRep'";
    let mut client = registry.connect();
    let warning = "heartbeat failed: the registry answered with a warning: canceling wait for synchronous";
    // A session that has been cancelled can still be there for the next query.
    let mut cancelled = BTreeSet::new();
    let warned = within(SOON, || {
        cancelled.extend(client.all::<i32>(cancel));
        logged(&server, warning) > 0 || cancelled.len() > 3
    });
    assert!(warned, "{}", server.log());
    ensure!(logged(&server, warning) == 1, "an answer with a warning was used");
    registry.unset("synchronous_standby_names");
    registry.reload();
    wait_for_log(&server, "a heartbeat succeeded after");
    ensure!(renewed(&registry, &server).holder == first.holder, "the server has another worker ID");
    Ok(())
}

#[test]
fn an_answer_with_a_warning_is_not_used() {
    check_warning("fleet_warning", |builder| builder).unwrap();
}

#[test]
fn the_use_of_an_answer_with_a_warning_is_caught() {
    let outcome = check_warning("fleet_warning_used", |builder| builder.fault("WarningTrusted"));
    assert_caught(outcome, "an answer with a warning was used");
}

#[test]
fn a_registry_that_is_set_by_a_reload_is_said_to_need_a_restart() {
    let registry = registry("fleet_later_set");
    let later =
        Cluster::builder("fleet_later_set_1").unset("snowflake_pg.worker_id").set("snowflake_pg.lease", "10min");
    let mut server = later.start();
    let warning =
        "WARNING:  snowflake_pg: parameter \"snowflake_pg.registry\" was set, but takes effect only after a restart";
    assert_eq!(logged(&server, warning), 0, "{}", server.log());
    server.set("snowflake_pg.registry", &string(&registry));
    server.reload();
    wait_for_log(&server, warning);
    server.connect().batch_execute("SELECT 1").expect("a session may");
    assert_eq!(logged(&server, warning), 1, "{}", server.log());
    // The hint works.
    server.restart(Stop::Fast);
    renewed(&registry, &server);
    assert_eq!(logged(&server, warning), 0, "{}", server.log());
}

#[test]
fn a_registrar_that_does_not_run_is_named() {
    let registry = registry("fleet_no_slot");
    let mut server = server("fleet_no_slot_1", &string(&registry)).set("max_worker_processes", "1").start();
    wait_for_log(&server, "WARNING:  snowflake_pg: no free slot for background worker \"snowflake_pg registrar\"");
    let mut client = server.session();
    let [detail, hint] = check_refused(&mut client, UNASSIGNED);
    assert!(detail.ends_with("Background worker \"snowflake_pg registrar\" is not sending heartbeats."), "{detail}");
    assert!(hint.contains("increase \"max_worker_processes\""), "{hint}");
    let shown = "SELECT registry_state || ': ' || heartbeat_error FROM snowflake_status";
    let expected = "no worker ID: background worker \"snowflake_pg registrar\" is not sending heartbeats";
    assert_eq!(client.one::<String>(shown), expected);
    // The hint works.
    server.set("max_worker_processes", "3");
    server.restart(Stop::Fast);
    assert!(within(SOON, || refused(&mut server.session()).is_none()), "{}", server.log());
}

/// Starts a registry that grants IDs from this time on, which is an SQL expression.
fn registry_from(name: &str, time: &str) -> Cluster {
    let registry = Cluster::builder(name).unset("shared_preload_libraries").start();
    let create = format!(
        "CREATE EXTENSION snowflake_registry; SELECT snowflake_registry.create_fleet('{LAYOUT}', NULL, {time})"
    );
    registry.connect().batch_execute(&create).expect("a superuser may");
    registry
}

#[test]
fn a_clock_far_behind_the_grant_is_named() {
    let mut registry = registry_from("fleet_behind", "now() - interval '1 hour'");
    let machine = Boot::new("fleet_behind");
    let mut server = server("fleet_behind_1", &string(&registry)).on(&machine).clock("+0").start();
    renewed(&registry, &server);
    server.stop(Stop::Fast);
    registry.stop(Stop::Fast);
    server.set_clock("-172800");
    server.start();
    let message = "the first ID of the grant is more than a day ahead of the clock";
    let [detail, hint] = check_refused(&mut server.session(), message);
    assert!(detail.starts_with("The grant begins at 20"), "{detail}");
    assert!(hint.starts_with("Correct this server's clock."), "{hint}");
    // The hint works.
    server.set_clock("+0");
    assert!(within(SOON, || refused(&mut server.session()).is_none()));
}

/// A fleet whose first IDs are granted only later.
#[test]
fn a_fleet_that_grants_no_ids_yet_says_when() {
    let registry = registry_from("fleet_later", "now() + interval '1 hour'");
    let server = server("fleet_later_1", &string(&registry)).start();
    wait_for_log(&server, "heartbeat failed: the fleet does not grant IDs yet");
    let log = server.log();
    assert!(log.contains("DETAIL:  The first IDs will be granted at 20"), "{log}");
    assert!(log.contains("HINT:  Wait until then."), "{log}");
    let [detail, hint] = check_refused(&mut server.session(), UNASSIGNED);
    assert!(detail.contains("The last error was: the fleet does not grant IDs yet."), "{detail}");
    assert!(hint.starts_with("Wait until then."), "{hint}");
}

#[test]
fn a_witness_that_cannot_be_used_is_said_and_the_server_asks_at_every_start() {
    let registry = registry("fleet_unwitnessed");
    let like = server("fleet_unwitnessed_1", &string(&registry)).set("snowflake_pg.witness_directory", "/proc/self");
    let mut server = like.start();
    assert_eq!(renewed(&registry, &server).worker, 0);
    wait_for_log(
        &server,
        "cannot use directory \"/proc/self\" for the witness: the directory is not in an in-memory file system (tmpfs)",
    );
    assert!(server.log().contains("this server requests a different worker ID from the registry at every start"));
    server.restart(Stop::Fast);
    wait_for_log(&server, "the registry assigned worker ID 1");
}
