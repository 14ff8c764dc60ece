//! Applications that issue IDs themselves: the examples of `crates/flake`, run as processes beside servers of a fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use cluster::{Answer, Cluster, Host, Scratch, assert_caught, command, ensure, repository, within};
use flake::{IdFormat, Issuer, Mark, Node, Reading};

use crate::fleet::{LAYOUT, SOON, logged, registry, renewed, server, string, with_server};

/// Returns the command that runs an example. Cargo builds it first if necessary.
fn example(name: &str, arguments: &[&str]) -> Command {
    let mut command = command(env!("CARGO"));
    command.current_dir(repository()).args(["run", "--quiet", "-p", "flake", "--example", name, "--"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn spawn(mut command: Command) -> Child {
    command.spawn().expect("cargo can be started")
}

/// Returns the IDs that a process has written, which must have ended with success.
fn ids(output: &Output) -> Vec<i64> {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| line.parse().expect("every line is an ID")).collect()
}

fn run(name: &str, arguments: &[&str]) -> Vec<i64> {
    ids(&example(name, arguments).output().expect("cargo can be started"))
}

/// Returns what a process writes that must fail.
fn failure(name: &str, arguments: &[&str]) -> String {
    let output = example(name, arguments).output().expect("cargo can be started");
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn applications_and_servers_of_a_fleet_issue_different_ids() {
    let registry = registry("fleet_applications");
    let servers: Vec<_> =
        (0..2).map(|n| server(&format!("fleet_applications_{n}"), &string(&registry)).start()).collect();
    servers.iter().for_each(|server| drop(renewed(&registry, server)));
    let applications: Vec<_> =
        (0..3).map(|_| spawn(example("registry", &[&string(&registry), LAYOUT, "20000"]))).collect();
    let mut all: Vec<Vec<i64>> = servers
        .iter()
        .map(|server| server.session().one("SELECT array_agg(snowflake_nextval()) FROM generate_series(1, 40000)"))
        .collect();
    all.extend(applications.into_iter().map(|child| ids(&child.wait_with_output().expect("a process ends"))));

    let mut client = servers[0].session();
    let mut holders = BTreeMap::new();
    for ids in &all {
        let sql = "SELECT array_agg(DISTINCT (snowflake_decode(id)).worker_id) FROM unnest($1::bigint[]) AS id";
        let workers: Vec<i32> = client.query_one(sql, &[ids]).expect("every ID can be decoded").get(0);
        let [worker] = workers.as_slice() else { panic!("the worker IDs {workers:?} in the IDs of one process") };
        let role: String =
            registry.connect().one(&format!("SELECT role FROM snowflake_registry.servers WHERE worker_id = {worker}"));
        holders.insert(*worker, role);
    }
    let roles: Vec<_> = holders.values().map(String::as_str).collect();
    assert_eq!(roles, ["primary", "primary", "application", "application", "application"]);
    let count: usize = all.iter().map(Vec::len).sum();
    assert_eq!((count, all.into_iter().flatten().collect::<BTreeSet<_>>().len()), (200_000, 200_000));
}

#[test]
fn an_application_with_the_worker_id_of_a_server_is_caught() {
    let (_registry, server, seen) = with_server("fleet_application_shares", |builder| builder);
    let worker = u32::try_from(seen.worker).expect("worker IDs are not negative");
    let id: i64 = server.session().one("SELECT snowflake_nextval()");
    let format = IdFormat::parse(LAYOUT).expect("a layout");
    // An application whose clock shows what the server's clock showed, and to which somebody has given the server's worker ID.
    let wall = u64::try_from(format.instant(format.split(id).expect("an ID").tick)).expect("a time") * 1_000;
    let reading = Reading { monotonic: 1, boot: 1, wall, apart: 0 };
    let issuer =
        Issuer::start(&format, Node { datacenter: 0, worker }, Mark::NOTHING_ISSUED, reading).expect("it starts");
    issuer.reserve(1, 0).expect("no other thread plans").publish(1);
    let issued: Vec<_> = (0..4_096).map(|_| issuer.next_id(|| 1).expect("the tick has 4096 IDs")).collect();
    let twice = || {
        ensure!(!issued.contains(&id), "{id} is issued by the server and by the application");
        Ok(())
    };
    assert_caught(twice(), "by the server and by the application");
}

/// What a person must change stops the application at once.
#[test]
fn an_application_that_cannot_get_a_worker_id_says_why() {
    let registry = registry("fleet_application_refused");
    let refused = |string: &str, layout: &str| failure("registry", &[string, layout, "1"]);
    let says = |reason: &str| format!("error: the registry refused the request: {reason}\n");
    let other = "the server's layout or epoch differs from the fleet's";
    assert_eq!(refused(&string(&registry), "41:5:5:12"), says(other));
    let roles = "CREATE ROLE guest LOGIN; CREATE ROLE shop LOGIN PASSWORD 'right'";
    registry.connect().batch_execute(roles).expect("the roles are new");
    let as_role = |role: &str| string(&registry).replace("user=postgres", role);
    let denied = "permission denied for schema snowflake_registry";
    assert_eq!(refused(&as_role("user=guest"), LAYOUT), says(denied));
    Host::get().write(&registry.dir().join("pg_hba.conf"), "local all shop scram-sha-256\nlocal all all trust\n");
    assert!(registry.connect().one::<bool>("SELECT pg_reload_conf()"));
    // The reload is asynchronous. With the old rules, the error is that of a role without privileges.
    let expected = says("password authentication failed for user \"shop\"");
    let mut said = String::new();
    let fails = within(SOON, || {
        said = refused(&as_role("user=shop password=wrong"), LAYOUT);
        said == expected
    });
    assert!(fails, "{said}");

    let layout = refused(&string(&registry), "41:10");
    assert!(layout.contains("error: a layout is three or four widths in bits"), "{layout}");
    assert_eq!(failure("registry", &[]).trim(), "error: usage: registry CONNECTION_STRING LAYOUT COUNT");
}

/// An application that waits for its first worker ID. It is stopped when the test ends.
struct WaitingApplication {
    child: Child,
    errors: BufReader<ChildStderr>,
    said: Vec<String>,
}

impl WaitingApplication {
    fn start(arguments: &[&str]) -> WaitingApplication {
        let mut child = spawn(example("registry", arguments));
        let errors = BufReader::new(child.stderr.take().expect("it is a pipe"));
        WaitingApplication { child, errors, said: Vec::new() }
    }

    /// Waits until the application has printed this line.
    fn says(&mut self, line: &str) {
        while self.said.last().is_none_or(|last| last != line) {
            let mut next = String::new();
            let length = self.errors.read_line(&mut next).expect("the application writes text");
            assert!(length > 0, "the application has ended without {line:?} after {:?}", self.said);
            self.said.push(next.trim_end().to_owned());
        }
    }

    /// Waits for the end of the application, and returns its IDs.
    fn ids(&mut self) -> Vec<i64> {
        let mut text = String::new();
        let output = self.child.stdout.as_mut().expect("it is a pipe");
        output.read_to_string(&mut text).expect("the application writes text");
        let mut rest = String::new();
        self.errors.read_to_string(&mut rest).expect("the application writes text");
        self.said.extend(rest.lines().map(str::to_owned));
        assert!(self.child.wait().expect("a process ends").success(), "{:?}", self.said);
        text.lines().map(|line| line.parse().expect("every line is an ID")).collect()
    }
}

impl Drop for WaitingApplication {
    fn drop(&mut self) {
        // It has usually ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The registry is not there, has no functions, has no fleet, and is in quarantine. The application prints each reason once.
#[test]
fn an_application_waits_for_its_first_worker_id() {
    let mut registry = Cluster::builder("fleet_application_waits").unset("shared_preload_libraries").create();
    let string = string(&registry);
    let mut application = WaitingApplication::start(&[&string, LAYOUT, "3"]);
    let no_server =
        "cannot connect to the registry: error connecting to server: No such file or directory (os error 2)";
    application.says(no_server);
    registry.start();
    application.says("the registry refused the request: schema \"snowflake_registry\" does not exist");
    let mut owner = registry.connect();
    owner.batch_execute("CREATE EXTENSION snowflake_registry").expect("the extension is installed");
    let no_fleet = "the registry has no fleet";
    application.says(
        "the registry refused the request: the registry has no fleet. As the owner of the registry, run \
         \"SELECT snowflake_registry.create_fleet(layout)\" with the layout of the servers.",
    );
    let again = logged(&registry, no_fleet) + 2;
    assert!(within(SOON, || logged(&registry, no_fleet) >= again), "the application does not retry");
    // In one transaction, so that the application cannot get a worker ID in between.
    let closed = format!("SELECT snowflake_registry.create_fleet('{LAYOUT}'); SELECT snowflake_registry.close()");
    owner.batch_execute(&closed).expect("the registry has no fleet yet");
    application.says("the registry refused the request: the registry is in quarantine, and no spare worker ID is free");
    assert!(owner.one::<bool>("SELECT snowflake_registry.open()"));
    let ids = application.ids();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 6);
    let said = &application.said;
    assert!(said.windows(2).all(|pair| pair[0] != pair[1]), "{said:?}");
    assert_eq!(said.iter().filter(|line| line.contains(no_fleet)).count(), 1, "{said:?}");
}

/// What the file contains before a mark of worker ID 900.
const OWNER: &str = "layout 41:10:12 epoch 1288834974657 datacenter 0 worker 900";

#[test]
fn an_application_with_a_mark_begins_above_it() {
    let scratch = Scratch::new("application_mark");
    let file = scratch.0.join("mark");
    let path = file.display().to_string();
    let store = |mark: i64| fs::write(&file, format!("{OWNER} mark {mark}\n")).expect("the file can be written");
    let mut last = 0;
    for count in ["3", "5000", "1"] {
        let ids = run("mark_file", &["900", &path, count]);
        assert!(ids.is_sorted_by(|a, b| a < b) && ids[0] > last, "{ids:?}");
        last = *ids.last().expect("at least one ID");
        let text = fs::read_to_string(&file).expect("the mark is stored");
        let mark = text.trim_end().strip_prefix(&format!("{OWNER} mark ")).unwrap_or_else(|| panic!("{text}"));
        assert!(mark.parse::<i64>().expect("a number") > last, "the mark {mark} is not above {last}");
    }
    // A mark that was stored while the clock was an hour ahead.
    let ahead = last + (3_600_000 << 22);
    store(ahead);
    let ids = run("mark_file", &["900", &path, "2"]);
    assert!(ids[0] >= ahead && ids[0] < ahead + (1 << 23), "{ids:?} after the mark {ahead}");
    store(i64::MAX);
    assert!(failure("mark_file", &["900", &path, "1"]).contains("ahead of the clock"));
}

/// The file contains no mark, or the mark of another generator, which says nothing about the IDs of this one. The file stays as it is.
#[test]
fn an_application_refuses_a_file_that_does_not_contain_its_mark() {
    let scratch = Scratch::new("application_mark_refused");
    let file = scratch.0.join("mark");
    let path = file.display().to_string();
    let refuses = |text: &str| {
        fs::write(&file, text).expect("the file can be written");
        let said = failure("mark_file", &["900", &path, "1"]);
        assert_eq!(fs::read_to_string(&file).expect("the file is there"), text);
        said.trim().strip_prefix(&format!("error: {path} ")).unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    for garbage in ["", "garbage\n", "2124824050613121024\n"] {
        assert_eq!(refuses(garbage), "does not contain a mark", "{garbage:?}");
    }
    for mark in ["0", "-1", "none", "99999999999999999999"] {
        assert_eq!(refuses(&format!("{OWNER} mark {mark}\n")), "does not contain a mark", "{mark}");
    }
    for other in [
        OWNER.replace("worker 900", "worker 7"),
        OWNER.replace("datacenter 0", "datacenter 1"),
        OWNER.replace("41:10:12", "41:5:5:12"),
        OWNER.replace("1288834974657", "0"),
    ] {
        let said = refuses(&format!("{other} mark 2124824050613121024\n"));
        assert_eq!(said, format!("contains a mark for \"{other}\", not for \"{OWNER}\""));
    }
    // A file that the program itself has written.
    fs::remove_file(&file).expect("the file is there");
    run("mark_file", &["7", &path, "1"]);
    let said = failure("mark_file", &["900", &path, "1"]);
    assert!(said.contains(&format!("worker 7\", not for \"{OWNER}\"")), "{said}");
}

#[test]
fn an_application_with_a_file_names_what_is_wrong() {
    let scratch = Scratch::new("application_mark_arguments");
    let path = scratch.0.join("mark").display().to_string();
    let nowhere = scratch.0.join("nodir/mark").display().to_string();
    fs::create_dir(scratch.0.join("folder")).expect("a new directory");
    let directory = scratch.0.join("folder").display().to_string();
    for (arguments, expected) in [
        (&["seven", &path, "1"][..], "worker ID \"seven\" is not a number".to_owned()),
        (&["-1", &path, "1"], "worker ID \"-1\" is not a number".to_owned()),
        (&["99999999999", &path, "1"], "worker ID \"99999999999\" is too large".to_owned()),
        (&["1024", &path, "1"], "1024 does not fit into the worker field, which can hold 0 to 1023".to_owned()),
        (&["900", &path, "many"], "number of IDs \"many\" is not a number".to_owned()),
        (&["900", &path, "99999999999"], "number of IDs \"99999999999\" is too large".to_owned()),
        (&["900", &nowhere, "1"], format!("cannot create {nowhere}.lock: No such file or directory (os error 2)")),
        (&["900", &directory, "1"], format!("cannot read {directory}: Is a directory (os error 21)")),
        (&["900"], "usage: mark_file WORKER_ID FILE COUNT".to_owned()),
    ] {
        assert_eq!(failure("mark_file", arguments).trim(), format!("error: {expected}"));
    }
    // Where the new mark would be written, there is a directory.
    fs::create_dir(format!("{path}.new")).expect("a new directory");
    let said = failure("mark_file", &["900", &path, "1"]);
    assert_eq!(said.trim(), format!("error: cannot store the mark in {path}: Is a directory (os error 21)"));
}
