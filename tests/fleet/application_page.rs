//! docs/application.md: its commands run as they are written, and its code is the code of the examples.

use std::process::Stdio;

use cluster::{Scratch, block_with, blocks, code_blocks, command, output, page, repository, typed};
use flake::IdFormat;

use crate::fleet::{LAYOUT, registry, string};

const PAGE: &str = "docs/application.md";

/// Returns a command of the page with another text in the place of a part.
fn with(line: &str, part: &str, replacement: &str) -> String {
    assert!(line.contains(part), "no {part:?} in {line}");
    line.replace(part, replacement)
}

/// Runs commands in the repository, and returns what they print.
fn shell(line: &str) -> String {
    output(command("bash").args(["-ec", line]).current_dir(repository()).stdin(Stdio::null()))
}

/// Checks that a command prints as many IDs as the page shows, and that all of them have this worker ID.
fn check_ids(printed: &str, shown: &str, worker: u32) {
    let format = IdFormat::parse(LAYOUT).expect("a layout");
    let workers = |text: &str| {
        let id = |line: &str| format.split(line.parse().expect("an ID")).expect("an ID").node.worker;
        text.lines().map(id).collect::<Vec<_>>()
    };
    assert_eq!(workers(printed), workers(shown));
    assert!(workers(shown).iter().all(|of_id| *of_id == worker), "{shown}");
}

#[test]
fn an_application_gets_a_worker_id_as_the_page_says() {
    let text = page(PAGE);
    let registry = registry("application_page");
    let sql = blocks(&text, "sql application");
    let [role, servers] = sql.as_slice() else { panic!("{sql:?}") };
    typed(registry.psql(), role).unwrap_or_else(|said| panic!("{said}"));
    let string = string(&registry).replace("user=postgres", "user=shop");
    let shown = "host=registry.example user=shop password=example-secret dbname=fleet";
    let printed = shell(&with(&block_with(blocks(&text, "sh fleet"), "registry"), shown, &string));
    let view = typed(registry.psql(), servers).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(view, block_with(blocks(&text, "text"), "worker_id"));
    // The worker ID in the view is 0.
    assert!(view.lines().nth(2).is_some_and(|row| row.trim_start().starts_with("0 |")), "{view}");
    check_ids(&printed, &block_with(blocks(&text, "text fleet"), ""), 0);
}

#[test]
fn an_application_keeps_its_mark_in_a_file_as_the_page_says() {
    let (text, scratch) = (page(PAGE), Scratch::new("application_page_mark"));
    let file = scratch.0.join("shop.mark").display().to_string();
    let printed = shell(&with(&block_with(blocks(&text, "sh mark"), "mark_file"), "shop.mark", &file));
    let shown = block_with(blocks(&text, "text mark"), "");
    check_ids(&printed, &shown, 900);
}

#[test]
fn another_program_can_depend_on_the_crate() {
    let (text, scratch) = (page(PAGE), Scratch::new("application_page_crate"));
    let crates = repository().join("crates/flake").display().to_string();
    let add = block_with(blocks(&text, "sh dependency"), "cargo add");
    let add = with(&add, "snowflake_pg/crates/flake", &crates);
    shell(&format!("cd '{}' && cargo init --quiet --name shop . && {add}", scratch.0.display()));
    let manifest = std::fs::read_to_string(scratch.0.join("Cargo.toml")).expect("cargo writes it");
    assert!(manifest.contains("flake = { ") && manifest.contains(&crates), "{manifest}");
}

/// A program that uses the copied example, without its `main` and `run`.
const PROGRAM: &str = "mod registry;
fn main() {
    let format = flake::IdFormat::parse(\"41:10:12\").unwrap();
    let ids = registry::Ids::start(\"host=registry.example\".parse().unwrap(), format).unwrap();
    ids.next_id().unwrap();
}
";

/// What the program does with the IDs, and what it does with them if `next_id` is async.
const USE: [&str; 2] = [
    "ids.next_id().unwrap();\n}",
    "send(async move { ids.next_id().await.unwrap() });\n}\nfn send(_: impl Future + Send) {}",
];

#[test]
fn the_example_can_be_copied_into_another_program() {
    let (text, scratch) = (page(PAGE), Scratch::new("application_page_copy"));
    let crates = repository().join("crates/flake").display().to_string();
    // Without the network, and with the versions of this repository.
    let start = format!(
        "cd '{}' && cargo init --quiet --name shop . && cp '{}' . && cargo add --offline --path '{crates}'\n",
        scratch.0.display(),
        repository().join("Cargo.lock").display()
    );
    let copy = with(&block_with(blocks(&text, "sh copy"), "cp "), "snowflake_pg/crates/flake", &crates);
    shell(&format!("{start}{}", with(&copy, "cargo add", "cargo add --offline")));
    let copied = scratch.0.join("src/registry.rs");
    let example = std::fs::read_to_string(&copied).expect("the file was copied");
    let end = |start: usize| start + example[start..].find("\n}\n").expect("the end of a function") + 3;
    let [main, run] = ["fn main()", "fn run()"].map(|name| example.find(name).expect("a function"));
    let without = format!("{}{}{}", &example[..main], &example[end(main)..run], &example[end(run)..]);
    // In an async service, the future must be able to move between threads.
    let is_async = with(&without, "pub fn next_id", "pub async fn next_id");
    let is_async = with(&is_async, "thread::sleep(pause)", "std::future::ready(thread::sleep(pause)).await");
    let target = repository().join("target/copied");
    let check = format!("cargo check --quiet --offline --target-dir '{}'", target.display());
    for (module, main) in [(without, PROGRAM.to_owned()), (is_async, with(PROGRAM, USE[0], USE[1]))] {
        std::fs::write(&copied, module).expect("the file can be written");
        std::fs::write(scratch.0.join("src/main.rs"), main).expect("the file can be written");
        shell(&format!("cd '{}' && {check}", scratch.0.display()));
    }
}

#[test]
fn the_code_is_the_code_of_the_examples() {
    let text = page(PAGE);
    let lines = |text: &str| text.lines().map(|line| format!("{}\n", line.trim())).collect::<String>();
    let mut compared = 0;
    for block in code_blocks(&text) {
        if let Some(name) = block.language.strip_prefix("rust ") {
            let example = page(&format!("crates/flake/examples/{name}.rs"));
            assert!(lines(&example).contains(&lines(&block.text)), "not in {name}.rs:\n{}", block.text);
            compared += 1;
        }
        let known =
            ["sh dependency", "sh copy", "sql application", "sh fleet", "text fleet", "text", "sh mark", "text mark"];
        assert!(known.contains(&block.language.as_str()) || block.language.starts_with("rust "), "{}", block.language);
    }
    assert_eq!(compared, 3);
}
