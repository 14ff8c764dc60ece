//! Clients in Go, from Debian's packages.

use cluster::{assert_caught, command, repository};

use crate::client::{Table, run};

#[test]
fn pgx() {
    let mut go = command("go");
    go.arg("run").arg(repository().join("tests/clients/go/pgx.go"));
    // Debian's packages are in a GOPATH, and have no modules.
    go.envs([("GO111MODULE", "off"), ("GOPATH", "/usr/share/gocode"), ("GOFLAGS", "")]);
    go.env("GOCACHE", repository().join("target/tools/clients/go"));
    let printed = run("pgx", &["go/pgx.go"], Table::Page, false, go);
    printed.check().unwrap();
    assert_caught(printed.exact("trap"), "the table has no row with ID");
}
