//! JDBC, from Debian's packages.

use cluster::{assert_caught, command, repository};

use crate::client::{Table, run};

/// The driver of Debian's package.
const DRIVER: &str = "/usr/share/java/postgresql.jar";

/// The driver cannot use Unix sockets.
#[test]
fn jdbc() {
    let mut java = command("java");
    java.env_remove("JAVA_TOOL_OPTIONS").env_remove("JDK_JAVA_OPTIONS");
    java.args(["-cp", DRIVER]).arg(repository().join("tests/clients/jvm/Jdbc.java"));
    let printed = run("JDBC", &["jvm/Jdbc.java"], Table::Page, true, java);
    printed.check().unwrap();
    assert_eq!(printed.step("refused"), [("22003".to_string(), "Ada".to_string())]);
    assert_caught(printed.exact("trap"), "the table has no row with ID");
}
