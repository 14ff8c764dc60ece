//! Clients in Rust. They are in one program, so that it is built once.

use cluster::{command, repository};

use crate::client::{Client, Printed, Table};

/// Runs the part of the program for a client. Each client refuses what would lose digits or rows.
fn run(section: &'static str, name: &str, refuses: &str) {
    let printed = printed(section, name);
    printed.check().unwrap();
    assert_eq!(printed.step("refused"), [("true".to_string(), refuses.to_string())]);
}

fn printed(section: &'static str, name: &str) -> Printed {
    let mut cargo = command("cargo");
    cargo
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(repository().join("tests/clients/rust/Cargo.toml"));
    cargo.arg("--target-dir").arg(repository().join("target/tools/clients/rust")).arg(name);
    Client::new(section, &format!("rust/src/{name}.rs"), Table::Page).run(cargo)
}

#[test]
fn tokio_postgres() {
    run("tokio-postgres", "tokio_postgres", "Ada");
}

#[test]
fn sqlx() {
    run("SQLx", "sqlx", "Ada");
}

#[test]
fn diesel() {
    run("Diesel", "diesel", "Ada");
}

/// The row that `save` does not insert is not lost silently.
#[test]
fn sea_orm() {
    run("SeaORM", "sea_orm", "Tony");
}
