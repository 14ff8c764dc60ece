//! Clients in Python.

use cluster::{assert_caught, command, repository};

use crate::client::{self, Printed, Table};

/// Runs the program of a client in the environment with the pinned packages. Python does not look for modules next to the program, which
/// has the name of a package.
fn run(section: &str, name: &str, table: Table) -> Printed {
    let program = format!("python/{name}.py");
    let mut python = command(repository().join("target/tools/clients/python/bin/python"));
    python.args(["-I", "-X", "utf8"]).arg(repository().join("tests/clients").join(&program));
    client::run(section, &[&program], table, false, python)
}

#[test]
fn psycopg() {
    let printed = run("psycopg 3", "psycopg", Table::Page);
    printed.check().unwrap();
    let (year, _) = &printed.step("decoded")[0];
    assert!((2026..2080).contains(&year.parse::<i32>().expect("a year")), "{year}");
    printed.exact("json").unwrap();
    assert_eq!((printed.step("json").len(), printed.step("browser").len()), (3, 3));
    assert_caught(printed.exact("browser"), "the table has no row with ID");
    printed.exact("large").unwrap();
    assert_eq!(printed.step("large").len(), 2);
    assert_eq!(printed.step("copied"), [("70000".to_string(), "rows".to_string())]);
    assert_caught(printed.exact("trap"), "the client does not know the ID of Tony");
}

#[test]
fn asyncpg() {
    let printed = run("asyncpg", "asyncpg", Table::Page);
    printed.check().unwrap();
    assert_caught(printed.exact("trap"), "the client does not know the ID of Niklaus");
}

/// The model in the trap makes a column of type `integer` with a sequence.
#[test]
fn sqlalchemy() {
    let printed = run("SQLAlchemy 2", "sqlalchemy", Table::Program);
    printed.check().unwrap();
    let counts = [("1", "returning"), ("1", "block"), ("2", "add_all")];
    assert_eq!(printed.step("statements"), counts.map(|(count, way)| (count.to_string(), way.to_string())));
    assert_caught(printed.exact("trap"), "the table has no row with ID 1 and name Tony");
}

#[test]
fn django() {
    let printed = run("Django 5", "django", Table::Program);
    printed.check().unwrap();
    // The migrations also ran in the database that Django created for its tests.
    assert_eq!(printed.step("extensions"), [("1".to_string(), "snowflake_pg".to_string())]);
    let (id, _) = &printed.step("tested")[0];
    assert!(id.parse::<i64>().is_ok_and(|id| id > 1 << 53), "{id}");
    // `create` knows the ID of a field with `db_default`.
    let (id, _) = &printed.step("created")[0];
    assert!(id.parse::<i64>().is_ok(), "{id}");
    assert_caught(printed.exact("trap"), "the client does not know the ID of Niklaus");
}

/// The trap loses the row, and not only the ID.
#[test]
fn peewee() {
    let printed = run("peewee", "peewee", Table::Page);
    printed.check().unwrap();
    assert_caught(printed.exact("trap"), "and name Tony");
}

#[test]
fn tortoise() {
    let printed = run("Tortoise ORM", "tortoise", Table::Page);
    printed.check_without_bulk().unwrap();
    assert_caught(printed.exact("trap"), "the client does not know the ID of Niklaus");
}
