//! Tests of the section "From the host name or the environment".

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cluster::{Answer, Host, Stop, assert_caught};

use crate::worker_ids::page::{PageHost, section};

/// Returns the blocks of the section: the command for an ordinal, what it prints, the commands for a range and a variable, and
/// the description of a container.
fn commands() -> [String; 5] {
    let mut recipe = section("From the host name or the environment");
    let blocks = ["sh ordinal", "text", "sh range", "sh variable", "yaml"].map(|info| recipe.block(info));
    assert!(recipe.is_empty());
    blocks
}

/// Returns a host whose server gets its worker ID only from the command line.
fn machine(test: &str, host: &str) -> PageHost {
    PageHost::new(test, host, |builder| builder.set("shared_preload_libraries", "snowflake_pg"))
}

/// Starts the server with a command in this environment, and returns the worker ID in the server's IDs. If the server does not
/// start, the error is what the command printed.
fn worker(machine: &mut PageHost, command: &str, environment: &[(&str, &str)]) -> Result<i32, String> {
    machine.start_by(command, environment)?;
    let worker = machine.server.session().one("SELECT worker_id FROM snowflake_decode(snowflake_nextval())");
    let (setting, source, file) = machine.origin();
    assert_eq!((setting, source.as_str(), file), (i32::to_string(&worker), "command line", None));
    machine.server.stop(Stop::Fast);
    Ok(worker)
}

#[test]
fn the_ordinal_of_a_host_name_is_the_worker_id_and_no_server_starts_without_one_that_fits() {
    let [ordinal, complaint, range, variable, _] = commands();
    let mut machine = machine("no_ordinal", "orders");
    let refused = |value: &str| format!("invalid value for parameter \"snowflake_pg.worker_id\": \"{value}\"");
    assert_eq!(complaint, format!("FATAL:  {}\n", refused("orders")));
    let ordinals: [(&[(&str, &str)], &str); 6] = [
        (&[("HOSTNAME", "orders")], "orders"),
        (&[], ""),
        (&[("HOSTNAME", "")], ""),
        (&[("HOSTNAME", "orders-1024")], "1024"),
        (&[("HOSTNAME", "orders-07")], "07"),
        (&[("HOSTNAME", "orders-5d4f8c7b9-22222")], "22222"),
    ];
    for (environment, value) in ordinals {
        assert_caught(worker(&mut machine, &ordinal, environment).map(drop), &refused(value));
    }
    for (environment, value) in
        [(&[][..], ""), (&[("WORKER_ID", "")], ""), (&[("WORKER_ID", "$(WORKER_ID)")], "$(WORKER_ID)")]
    {
        assert_caught(worker(&mut machine, &variable, environment).map(drop), &refused(value));
    }
    for name in ["orders", "orders-", "", "orders-1x", "orders-010"] {
        let complaint = format!("host name \"{name}\" has no ordinal");
        let started = worker(&mut machine, &range, &[("HOSTNAME", name)]);
        assert_caught(started.map(drop), &complaint);
    }
    // The ordinals 923 and 1023 below are the highest ordinals that fit. The ordinal 924 does not fit.
    let last = worker(&mut machine, &range, &[("HOSTNAME", "orders-924")]);
    assert_caught(last.map(drop), &refused("1024"));
    assert_eq!(worker(&mut machine, &range, &[("HOSTNAME", "orders-923")]), Ok(1023));
    for (name, id) in [("orders-7", 7), ("shop-orders-12", 12), ("orders-1023", 1023)] {
        assert_eq!(worker(&mut machine, &ordinal, &[("HOSTNAME", name)]), Ok(id));
    }
}

#[test]
fn a_range_begins_where_it_is_said() {
    let [_, _, range, ..] = commands();
    let mut machine = machine("range", "orders");
    for (name, expected) in [("orders-0", 100), ("orders-7", 107)] {
        assert_eq!(worker(&mut machine, &range, &[("HOSTNAME", name)]), Ok(expected));
    }
    // This command does not check the ordinal. The page warns of this mistake.
    let last = range.lines().last().expect("the server's start");
    let unchecked = last.replace("100 + ordinal", "100 + ${HOSTNAME##*-}");
    assert_ne!(unchecked, last);
    for (name, wrong) in [("orders", 100), ("orders-010", 108)] {
        assert_eq!(worker(&mut machine, &unchecked, &[("HOSTNAME", name)]), Ok(wrong));
    }
}

#[test]
fn the_environment_is_stronger_than_the_data_directory() {
    let [_, _, _, command, _] = commands();
    let mut machine = machine("variable", "orders");
    machine.configure("snowflake_pg.worker_id = 8");
    machine.server.start();
    machine.psql("ALTER SYSTEM SET snowflake_pg.worker_id = 9").unwrap();
    machine.server.stop(Stop::Fast);
    assert_eq!(worker(&mut machine, &command, &[("WORKER_ID", "31")]), Ok(31));
    // Without the command line, the server uses the worker ID that ALTER SYSTEM has set.
    machine.server.start();
    assert_eq!(machine.origin().0, "9");
}

#[test]
fn the_container_runs_the_command_of_its_description() {
    let [.., container] = commands();
    let line = container.lines().last().and_then(|line| line.strip_prefix("        command: ")).expect("the command");
    let mut machine = PageHost::new("container", "orders", |builder| builder);
    machine.server.start();
    // A YAML list of this form is also valid JSON.
    let query = format!("SELECT json_array_elements_text($yaml${line}$yaml$)");
    let [shell, option, command] = machine.server.connect().all(&query).try_into().expect("three words");
    assert_eq!((shell, option), ("sh".to_string(), "-c".to_string()));
    machine.server.stop(Stop::Fast);

    // This script replaces the official image's script, which finally runs its arguments as the user postgres.
    let entrypoint = machine.directory.join("docker-entrypoint.sh");
    machine.shell("mkdir -p /etc/snowflake_pg").unwrap();
    Host::get().write(&entrypoint, "#!/bin/sh\nexec \"$@\"\n");
    fs::set_permissions(&entrypoint, PermissionsExt::from_mode(0o755)).expect("the mode of a new file can be set");
    let data = machine.server.dir().display().to_string();
    let others = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{}:{others}", machine.directory.display(), Host::get().installation().bin.display());
    let mut run =
        |name: &str| worker(&mut machine, &command, &[("HOSTNAME", name), ("PGDATA", &data), ("PATH", &path)]);
    assert_eq!(run("orders-0"), Ok(0));
    assert_eq!(run("orders-7"), Ok(7));
    assert_caught(run("orders").map(drop), "invalid value for parameter \"snowflake_pg.worker_id\": \"orders\"");
}
