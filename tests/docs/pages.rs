//! What README.md and docs/ tell a reader to type, typed.

use std::fs;

use cluster::{Cluster, Host, code_blocks, command, repository, typed};

/// A block, and the text of a `text` block that follows it directly: what it prints.
struct Block {
    language: String,
    text: String,
    answer: Option<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    for block in code_blocks(page) {
        match found.last_mut() {
            Some(last) if block.language == "text" && block.follows => last.answer = Some(block.text),
            _ => found.push(Block { language: block.language, text: block.text, answer: None }),
        }
    }
    found
}

fn pages() -> Vec<(String, Vec<Block>)> {
    let docs = fs::read_dir(repository().join("docs")).expect("docs/ can be read").map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    // Its sections need tables and settings of their own: `migration.rs` runs it.
    paths.retain(|path| !path.ends_with("docs/migration.md"));
    paths.sort();
    paths.insert(0, repository().join("README.md"));
    let page = |path: std::path::PathBuf| {
        let text = fs::read_to_string(&path).expect("a page can be read");
        (path.file_name().expect("a file").to_string_lossy().into_owned(), blocks(&text))
    };
    paths.into_iter().map(page).collect()
}

#[test]
fn every_sql_block_does_what_the_page_says() {
    let pages = pages();
    let configuration = pages[0].1.iter().find(|block| block.language == "conf").expect("the README configures");
    let mut builder = Cluster::builder("readme").unset("shared_preload_libraries").unset("snowflake_pg.worker_id");
    for (name, value) in cluster::settings(&configuration.text) {
        builder = builder.set(name, value);
    }
    let server = builder.start();
    let mut session = server.connect();
    let (mut run, introduction) = (0, &pages[0].1);
    for (number, (page, blocks)) in pages.iter().enumerate() {
        // A reader of one page has followed the README, and no other page.
        let database = format!("page_{number}");
        session.batch_execute(&format!("CREATE DATABASE {database}")).expect("a new database");
        let first = if number == 0 { &[][..] } else { introduction };
        for block in first.iter().chain(blocks).filter(|block| block.language == "sql") {
            let mut psql = server.psql();
            psql.args(["-d", &database]);
            let printed = typed(psql, &block.text).unwrap_or_else(|said| panic!("{page}:\n{said}\n{}", block.text));
            if let Some(answer) = &block.answer {
                assert_eq!(*answer, printed, "{page}:\n{}", block.text);
            }
            run += 1;
        }
    }
    assert!(run >= 2, "the pages have {run} SQL blocks");
}

/// What the server of `make run` is called here, so that the user's goes on running.
const RUN: &str = "readme-run";

/// Stops the server of `make run` and removes its data, also when the test fails.
struct Stopped;

impl Drop for Stopped {
    fn drop(&mut self) {
        // Not an assertion: this runs while a failed test unwinds.
        let stopped = command("make").arg("stop").current_dir(repository()).env("SNOWFLAKE_RUN", RUN).status();
        if !stopped.is_ok_and(|status| status.success()) {
            eprintln!("the server of make run was not stopped");
        }
        let name = format!("{RUN}-pg{}", cluster::major());
        let _ = fs::remove_dir_all(Host::get().socket_dir(&name));
        let _ = fs::remove_dir_all(Host::get().dir(&name));
    }
}

/// The commands of the pages, each once. Those that run the tests are left out, because these tests run inside of them.
fn commands(benchmarks: bool) -> Vec<String> {
    let pages = pages();
    let blocks = pages.iter().flat_map(|(_, blocks)| blocks).filter(|block| block.language == "sh");
    let mut commands: Vec<String> = blocks.flat_map(|block| block.text.lines()).map(String::from).collect();
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.iter().any(|command| command == "make test"), "{commands:?}");
    commands.retain(|command| !["make check", "make test"].contains(&command.as_str()));
    commands.retain(|command| command.starts_with("make bench") == benchmarks);
    commands
}

#[test]
fn every_command_works() {
    let commands = commands(false);
    assert!(commands.iter().any(|command| command == "make run"), "{commands:?}");
    let _stopped = Stopped;
    for command in commands {
        let printed = shell(&command);
        if command == "make run" {
            assert!(printed.ends_with("run: ok, the server goes on running\n"), "{printed}");
            assert!(printed.contains("duplicates    0"), "{printed}");
            assert!(printed.contains("using orders_pkey") && printed.contains("Index Cond"), "{printed}");
            let connect = printed.lines().find_map(|line| line.strip_prefix("To connect:")).expect("how to connect");
            let orders = shell(&format!("{connect} -Atc 'SELECT count(*) > 1000000 FROM orders'"));
            assert_eq!(orders, "t\n");
            // Once more, over what is there.
            assert!(shell(&command).ends_with("run: ok, the server goes on running\n"));
        }
    }
}

/// Builds the library of another revision, so `make test` leaves it to `make ci`.
#[test]
fn every_benchmark_works() {
    let commands = commands(true);
    assert!(commands.len() >= 3, "{commands:?}");
    for command in commands {
        shell(&command);
    }
}

#[test]
fn what_contributing_names_is_there() {
    let text = fs::read_to_string(repository().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md can be read");
    let targets = fs::read_to_string(repository().join("Makefile")).expect("the Makefile can be read");
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
    let script = fs::read_to_string(repository().join(".ci/run")).expect(".ci/run can be read");
    let commands: Vec<&str> =
        script.lines().filter(|line| !line.starts_with('#') && !line.starts_with("set ")).collect();
    assert_eq!(commands, ["cd \"$(dirname \"$0\")/..\"", "exec make ci"]);
}

/// What a command prints, in the repository, on a server that is not the user's, and in short.
fn shell(line: &str) -> String {
    let output = command("sh")
        .args(["-c", line])
        .current_dir(repository())
        .env("SNOWFLAKE_RUN", RUN)
        .env("SECONDS_OF_LOAD", "1")
        .env("ROUNDS", "1")
        .env("SCALE", "100")
        .output()
        .expect("sh can be run");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{line}:\n{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    printed
}
