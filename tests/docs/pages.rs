//! Types what README.md and docs/ tell a reader to type.

use std::fs;
use std::path::{Path, PathBuf};

use cluster::{
    Answer, Cluster, CodeBlock, Host, code_blocks, command, ensure, page, repository, rounds, texts_of, thorough, typed,
};

/// Returns the pages with their blocks, first the README. The sections of three pages need their own tables and settings, so other
/// tests run them.
fn pages() -> Vec<(PathBuf, Vec<CodeBlock>)> {
    let own = ["docs/migration.md", "docs/pg_partman.md", "docs/time-ordered-keys.md"].map(Path::new);
    let mut texts = texts_of(&["README.md", "docs"], ".md");
    texts.retain(|(path, _)| !own.contains(&path.as_path()));
    texts.into_iter().map(|(path, text)| (path, code_blocks(&text))).collect()
}

#[test]
fn every_sql_block_does_what_the_page_says() {
    let pages = pages();
    let configuration = pages[0].1.iter().find(|block| block.language == "conf").expect("the README configures");
    let mut builder = Cluster::builder("readme").unset("shared_preload_libraries").unset("snowflake_pg.worker_id");
    for (name, value) in cluster::settings(&configuration.text) {
        builder = builder.set(name, value);
    }
    // A page shows the default.
    let server = builder.unset("snowflake_pg.witness_directory").start();
    let _removed = DefaultWitness::of(&server);
    let mut session = server.connect();
    let (mut run, introduction) = (0, &pages[0].1);
    for (number, (path, blocks)) in pages.iter().enumerate() {
        // The reader of one page has also followed the README, but no other page.
        let database = format!("page_{number}");
        session.batch_execute(&format!("CREATE DATABASE {database}")).expect("a new database");
        let first = if number == 0 { &[][..] } else { introduction };
        let mut typing = first.iter().chain(blocks).peekable();
        while let Some(block) = typing.next() {
            let answer = typing.next_if(|next| next.language == "text" && next.follows);
            if block.language != "sql" {
                continue;
            }
            let mut psql = server.psql();
            psql.args(["-d", &database]);
            let place = format!("{}:\n{}", path.display(), block.text);
            let printed = typed(psql, &block.text).unwrap_or_else(|said| panic!("{said}\n{place}"));
            assert!(answer.is_none_or(|answer| answer.text == printed), "{printed}\nis printed by {place}");
            run += 1;
        }
    }
    assert!(run >= 2, "the pages have {run} SQL blocks");
}

/// The witness of a server with the default directory, which is removed even if the test fails.
struct DefaultWitness(String);

impl DefaultWitness {
    fn of(server: &Cluster) -> DefaultWitness {
        DefaultWitness(server.connect().one("SELECT 'snowflake_pg.1.' || system_identifier FROM pg_control_system()"))
    }
}

impl Drop for DefaultWitness {
    fn drop(&mut self) {
        let files = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let own = files.filter(|file| file.file_name().to_string_lossy().starts_with(&self.0));
        own.for_each(|file| drop(fs::remove_file(file.path())));
    }
}

/// The name that `make run` and `make run-fleet` give their servers here, so that the user's servers continue to run.
const RUN: &str = "readme-run";

/// Stops the servers of `make run` and `make run-fleet` and removes their data, even if the test fails.
struct Stopped;

impl Drop for Stopped {
    fn drop(&mut self) {
        // This is not an assertion, because it runs while a failed test unwinds.
        let stopped = command("make").arg("stop").current_dir(repository()).env("SNOWFLAKE_RUN", RUN).status();
        if !stopped.is_ok_and(|status| status.success()) {
            eprintln!("the servers of make run were not stopped");
        }
        let fleet = ["registry", "standby", "1", "2", "3", "4"].map(|part| format!("-fleet-{part}"));
        for part in fleet.iter().map(String::as_str).chain([""]) {
            let name = format!("{RUN}{part}-pg{}", cluster::major());
            let _ = fs::remove_dir_all(Host::get().socket_dir(&name));
            let _ = fs::remove_dir_all(Host::get().dir(&name));
        }
    }
}

/// The commands that demonstrate the extension, which every run of the tests types. The others build for long.
const SHORT: [&str; 2] = ["make run", "make run-fleet"];

/// Returns the commands of the pages, without duplicates. Commands that run the tests are left out, because they would run these
/// tests again.
fn commands(benchmarks: bool) -> Vec<String> {
    let pages = pages();
    let blocks = pages.iter().flat_map(|(_, blocks)| blocks).filter(|block| block.language == "sh");
    let mut commands: Vec<String> = blocks.flat_map(|block| block.text.lines()).map(String::from).collect();
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.iter().any(|command| command == "make test"), "{commands:?}");
    // The blocks of other commands need servers of their own, so they have a name that the test of their page uses.
    assert!(commands.iter().all(|command| command.starts_with("make ")), "{commands:?}");
    commands.retain(|command| !["make check", "make test"].contains(&command.as_str()));
    commands.retain(|command| command.starts_with("make bench") == benchmarks);
    commands
}

#[test]
fn every_command_works() {
    let mut commands = commands(false);
    assert!(SHORT.iter().all(|short| commands.iter().any(|command| command == short)), "{commands:?}");
    // `tests/packages` builds the packages in every run, with the script that `make package` calls.
    commands.retain(|command| thorough() || SHORT.contains(&command.as_str()));
    let _stopped = Stopped;
    for command in commands {
        // The demonstrations also work if the data of an earlier run exists.
        let runs: Vec<String> = (0..rounds(2, 1)).map(|_| shell(&command)).collect();
        let printed = &runs[0];
        if command == "make run" {
            assert!(runs.iter().all(|printed| printed.ends_with("run: ok, the server goes on running\n")), "{runs:?}");
            assert!(printed.contains("duplicates    0"), "{printed}");
            assert!(printed.contains("using orders_pkey") && printed.contains("Index Cond"), "{printed}");
            let connect = printed.lines().find_map(|line| line.strip_prefix("To connect:")).expect("how to connect");
            let orders = shell(&format!("{connect} -Atc 'SELECT count(*) > 1000000 FROM orders'"));
            assert_eq!(orders, "t\n");
        }
        if command == "make run-fleet" {
            runs.iter().try_for_each(|printed| check_fleet(printed)).unwrap();
            let connect = printed.lines().find_map(|line| line.strip_prefix("The registry:")).expect("how to connect");
            let live =
                "SELECT worker_id FROM snowflake_registry.servers WHERE state = 'live' AND worker_id < 3 ORDER BY 1";
            assert_eq!(shell(&format!("{connect} -Atc \"{live}\"")), "0\n1\n2\n");
        }
    }
}

/// Checks what `make run-fleet` prints.
fn check_fleet(printed: &str) -> Result<(), String> {
    for expected in [
        " | live  | readme-run-fleet-3-",
        "\n    all sessions of the 3 servers took orders without an error while a standby became the registry\n",
        "\n    a new server got worker ID 768, ",
        "\nworker ID 768   ",
        "\nduplicates    0 among ",
        ", and the copy has worker ID 769\n",
        "\n    ERROR:  a copy of this server uses worker ID ",
        "\n    the server itself continues with worker ID ",
    ] {
        ensure!(printed.contains(expected), "no {expected:?} in:\n{printed}");
    }
    ensure!(printed.ends_with("\nrun-fleet: ok, the registry and 4 servers go on running\n"), "{printed}");
    Ok(())
}

/// Because this test builds the library of a different revision, `make test` does not run it, but `make ci` does.
#[test]
fn every_benchmark_works() {
    let commands = commands(true);
    assert!(commands.len() >= 3, "{commands:?}");
    let parts = page("bench/src/report.rs");
    let mut selected = 0;
    for command in commands {
        // `make bench` runs all parts, so one of them is enough to show that a part can be selected.
        if let Some((_, part)) = command.split_once("PART=") {
            assert!(parts.contains(&format!("    \"{part}\",\n")), "{command}: there is no such part");
            selected += 1;
            if selected > 1 {
                continue;
            }
        }
        shell(&command);
    }
}

#[test]
fn what_contributing_names_is_there() {
    let (text, targets) = (page("CONTRIBUTING.md"), page("Makefile"));
    let word = |rest: &str| {
        let word = rest.split(|c: char| !c.is_alphanumeric() && !"_-.:".contains(c)).next()?;
        Some(word.trim_end_matches(['.', ':']).to_string())
    };
    let after = |mark: &str| text.split(mark).skip(1).filter_map(word).collect::<Vec<_>>();
    let areas: Vec<_> =
        fs::read_dir(repository().join("tests")).expect("tests/").map(|area| area.unwrap().path()).collect();
    let named = after("cargo nextest run -p tests ");
    assert!(named.len() > 10, "{named:?}");
    for module in named.iter().filter(|word| !word.starts_with("--")) {
        let file = format!("{module}.rs");
        assert!(areas.iter().any(|area| area.join(&file).exists()), "there is no test {module}");
    }
    for area in after("-p tests --test ") {
        assert!(areas.iter().any(|known| known.ends_with(&area)), "there are no tests {area}");
    }
    for target in after("`make ").into_iter().chain(after("\nmake ")) {
        assert!(targets.contains(&format!("\n{target}:")) || targets.contains(&format!(" {target} ")), "make {target}");
    }
    for script in after("scripts/").into_iter().filter(|script| !script.is_empty()) {
        assert!(repository().join("scripts").join(&script).exists(), "scripts/{script}");
    }
}

#[test]
fn continuous_integration_runs_one_command_and_nothing_else() {
    let script = page(".ci/run");
    let commands: Vec<&str> =
        script.lines().filter(|line| !line.starts_with('#') && !line.starts_with("set ")).collect();
    assert_eq!(commands, ["cd \"$(dirname \"$0\")/..\"", "exec make ci"]);
}

/// Runs a command in the repository, with a server that is not the user's and with little load, and returns what it prints.
fn shell(line: &str) -> String {
    let mut shell = command("sh");
    shell.args(["-c", line]).current_dir(repository()).env("SNOWFLAKE_RUN", RUN);
    shell.envs([("SECONDS_OF_LOAD", "1"), ("ROUNDS", "1"), ("SCALE", "100")]);
    let output = shell.output().expect("sh is installed");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{line}:\n{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    printed
}
