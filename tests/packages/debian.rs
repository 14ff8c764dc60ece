//! The Debian package can be installed and removed as docs/installing.md says.

use std::path::Path;

use cluster::{command, ensure, major, output, repository};

use crate::debian_root::Tree;
use crate::page::{LOOK, ORDERS, seen, typed};

/// Runs SQL in database `postgres` of the tree's server.
fn sql(tree: &Tree, text: &str) -> Result<String, String> {
    tree.write("/tmp/sql", text);
    let psql = "psql --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --file=/tmp/sql";
    tree.run(&format!("su - postgres -c '{psql}'"))
}

/// Whether the tree's server issues and decodes IDs.
pub fn check_session(tree: &Tree) -> Result<(), String> {
    sql(tree, "CREATE EXTENSION IF NOT EXISTS snowflake_pg")?;
    sql(tree, ORDERS)?;
    let found = sql(tree, LOOK)?;
    ensure!(found.trim() == seen(), "{found} is not {}", seen());
    Ok(())
}

/// Installs the package as the page says while a server runs, and checks that it works.
pub fn check(tree: &Tree, package: &Path, settings: &str) -> Result<(), String> {
    tree.run(&format!("pg_ctlcluster {} main start", major()))?;
    tree.put(package, &format!("/root/{}", package.file_name().expect("a file").display()));
    for (number, command) in typed("sh debian").iter().enumerate() {
        // The page has the settings between the first block and the second.
        if number == 1 {
            tree.write(&format!("/etc/postgresql/{}/main/conf.d/snowflake_pg.conf", major()), settings);
        }
        tree.run(command)?;
    }
    check_session(tree)
}

/// Removes the package as the page says, and checks that none of its files is left and that the server runs.
pub fn check_removal(tree: &Tree) -> Result<(), String> {
    sql(tree, "DROP TABLE orders")?;
    for command in typed("sh debian-remove") {
        tree.run(&command)?;
    }
    check_nothing_left(tree)?;
    sql(tree, "SELECT 1").map(drop)
}

/// Runs the script that tries a package.
pub fn check_try(tree: &Tree, package: &Path) -> Result<(), String> {
    for script in ["try", "postgresql"] {
        tree.put(&repository().join("packaging").join(script), &format!("/root/{script}"));
    }
    let name = package.file_name().expect("a file").display().to_string();
    tree.put(package, &format!("/root/{name}"));
    let printed = tree.run(&format!("bash try {name}"))?;
    ensure!(printed.ends_with("try: ok\n"), "it ends with\n{printed}");
    Ok(())
}

/// Puts into the tree what `debian/tests` needs of the source package, and installs the package.
pub fn prepare_tests(tree: &Tree, package: &Path) -> Result<(), String> {
    let sources = repository().join("target/debian/sources.tar");
    let mut tar = command("tar");
    tar.arg("-cf").arg(&sources).arg("-C").arg(repository());
    output(tar.args(["Cargo.toml", "debian", "scripts", "tests/pg_regress"]));
    tree.put(&sources, "/root/sources.tar");
    tree.put(package, "/root/package.deb");
    tree.run("apt-get install ./package.deb && mkdir sources && tar -xf sources.tar -C sources").map(drop)
}

/// Runs `debian/tests` as autopkgtest does: in the directory of the sources, with the packages that are installed.
pub fn check_tests(tree: &Tree) -> Result<(), String> {
    let printed = tree.run("cd sources && sh debian/tests/installcheck")?;
    ensure!(printed.contains(" tests passed."), "they end with\n{printed}");
    Ok(())
}

/// Whether no file of the extension is left anywhere.
pub fn check_nothing_left(tree: &Tree) -> Result<(), String> {
    let left = tree.run("find / -xdev -path /root -prune -o -name '*snowflake*' -print")?;
    ensure!(left.is_empty(), "still there:\n{left}");
    Ok(())
}
