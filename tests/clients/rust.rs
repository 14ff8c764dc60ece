//! Clients in Rust. They are in one program, so that it is built once.

use cluster::{command, repository};

use crate::client::{self, Table};

/// Runs the part of the program for a client. Each client refuses what would lose digits or rows.
fn run(section: &str, name: &str, refuses: &str) {
    let mut cargo = command("cargo");
    cargo
        .args(["run", "--quiet", "--locked", "--manifest-path"])
        .arg(repository().join("tests/clients/rust/Cargo.toml"));
    cargo.arg("--target-dir").arg(repository().join("target/tools/clients/rust")).arg(name);
    let printed = client::run(section, &[&format!("rust/src/{name}.rs")], Table::Page, false, cargo);
    printed.check().unwrap();
    assert_eq!(printed.step("refused"), [("true".to_string(), refuses.to_string())]);
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
