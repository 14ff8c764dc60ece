//! The environment of the caller does not change the results of tests.

use std::fs;
use std::path::Path;
use std::process::Command;

use cluster::{Answer, Cluster, Host, PATIENCE, Scratch, command, output, typed, within};

/// Variables in the environment of a caller. Each would break a program of a test or change its output.
pub const NONSENSE: [(&str, &str); 17] = [
    ("PGHOST", "/nonsense"),
    ("PGPORT", "5544"),
    ("PGUSER", "nonsense"),
    ("PGDATABASE", "nonsense"),
    ("PGOPTIONS", "-c nonsense=1"),
    ("PGSERVICE", "nonsense"),
    ("PGSERVICEFILE", "/nonsense"),
    ("PGPASSFILE", "/nonsense"),
    ("PGSSLMODE", "nonsense"),
    ("PGCLIENTENCODING", "NONSENSE"),
    ("PGTZ", "Nonsense/Zone"),
    ("PGDATESTYLE", "nonsense"),
    ("PGDATA", "/nonsense"),
    ("PG_REGRESS_DIFF_OPTS", "--nonsense"),
    ("LANG", "nonsense"),
    ("LC_ALL", "nonsense"),
    ("TZ", "Nonsense-11"),
];

/// The lines of an environment that have one of these values.
fn nonsense(environment: &str) -> Vec<&str> {
    environment
        .split(['\n', '\0'])
        .filter(|line| NONSENSE.iter().any(|(name, value)| *line == format!("{name}={value}")))
        .collect()
}

/// Runs programs and servers as tests do. The test below runs it again with nonsense in the environment.
#[test]
fn programs_and_servers_run_whatever_the_caller_has_in_the_environment() {
    let host = Host::get();
    // The test can run twice at the same time.
    let name = |part: &str| format!("environment_{part}_{}", std::process::id());
    for mut printer in [command("env"), host.command(Path::new("env")), host.shell("env")] {
        let inherited = output(&mut printer);
        assert_eq!(nonsense(&inherited), [""; 0], "{printer:?}");
    }
    let offset = output(command("node").args(["-p", "new Date(0).getTimezoneOffset()"]));
    let same = output(command("node").args(["-p", "new Date(0).getTimezoneOffset()"]).env_remove("TZ"));
    assert_eq!(offset, same);

    let publisher = Cluster::builder(&name("publisher")).set("wal_level", "logical").start();
    let pid = fs::read_to_string(publisher.dir().join("postmaster.pid")).expect("it is running");
    let pid = pid.lines().next().expect("the first line");
    let inherited = fs::read_to_string(format!("/proc/{pid}/environ")).expect("a process of ours");
    assert_eq!(nonsense(&inherited), [""; 0], "a server");
    let mut session = publisher.session();
    assert_eq!(session.one::<String>("SHOW timezone"), "UTC");
    let table = "CREATE TABLE orders (id bigint PRIMARY KEY); CREATE PUBLICATION orders FOR TABLE orders;
         INSERT INTO orders VALUES (1)";
    session.batch_execute(table).expect("a superuser may");
    assert_eq!(typed(publisher.psql(), "\\pset format unaligned\n\\t\nTABLE orders;\n").unwrap(), "1\n");
    assert!(output(publisher.program("pg_dump").arg("--table=orders")).contains("CREATE TABLE public.orders"));

    // The server makes the connection of the subscription, and takes the port from its environment.
    let subscriber = Cluster::builder(&name("subscriber")).start();
    let mut other = subscriber.connect();
    let subscribe = format!(
        "CREATE SUBSCRIPTION orders CONNECTION 'host={} dbname=postgres user=postgres' PUBLICATION orders",
        publisher.socket().display()
    );
    // The subscription cannot be created in one transaction with the table.
    for sql in ["CREATE TABLE orders (id bigint PRIMARY KEY)", &subscribe] {
        assert_eq!(other.code(sql), None, "{sql}:\n{}", subscriber.log());
    }
    let copied = within(PATIENCE, || other.one::<i64>("SELECT count(*) FROM orders") == 1);
    assert!(copied, "the subscription copies nothing:\n{}", subscriber.log());

    let scratch = Scratch::new(&name("files"));
    for part in ["sql", "expected"] {
        host.fresh_dir(&format!("{}/{part}", name("files")));
    }
    host.write(&scratch.0.join("sql/one.sql"), "SELECT 1 AS one;\n");
    host.write(&scratch.0.join("expected/one.out"), "SELECT 1 AS one;\n one \n-----\n   1\n(1 row)\n\n");
    let psql = publisher.program("psql");
    let bin = Path::new(psql.get_program()).parent().expect("a program lies in a directory");
    let mut regress = publisher.pg_regress();
    regress.current_dir(&scratch.0).arg(format!("--bindir={}", bin.display()));
    regress.arg(format!("--host={}", publisher.socket().display()));
    output(regress.args(["--port=5432", "--user=postgres", "--dbname=regression", "one"]));
}

#[test]
fn nothing_of_the_callers_environment_reaches_servers_or_programs() {
    let this = std::env::current_exe().expect("this program");
    let again = |program: &mut Command| {
        program
            .args(["--exact", "environment::programs_and_servers_run_whatever_the_caller_has_in_the_environment"])
            .envs(NONSENSE);
        output(program)
    };
    let said = again(&mut command(&this));
    assert!(said.contains("1 passed"), "{said}");
    // The control: a process inherits all variables, and psql without the harness fails because of them.
    let inherited = output(command("env").envs(NONSENSE));
    assert_eq!(nonsense(&inherited).len(), NONSENSE.len(), "{inherited}");
    let server = Cluster::builder("environment_control").start();
    assert!(output(server.psql().args(["--command", "SELECT 1"])).contains('1'));
    for (name, value) in [("PGOPTIONS", "-c nonsense=1"), ("PGSERVICE", "nonsense"), ("PGSSLMODE", "nonsense")] {
        let psql = server.psql().args(["--command", "SELECT 1"]).env(name, value).output().expect("psql can be run");
        assert!(!psql.status.success(), "psql does not mind {name}={value}");
    }
}
