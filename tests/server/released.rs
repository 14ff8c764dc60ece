//! The base scripts of released versions stay as they were released: `scripts/freeze-sql` keeps them, with their checksums.

use std::fs;

use cluster::{command, repository};

use crate::upgrade::{CURRENT, releases, script};

#[test]
fn released_scripts_are_not_changed() {
    let check = ["--check", "--strict", "released.sha256"];
    let checked = command("sha256sum").args(check).current_dir(repository().join("sql")).status();
    assert!(checked.expect("sha256sum can be run").success(), "a released script was changed");
    let listed = fs::read_to_string(repository().join("sql/released.sha256")).expect("the list can be read");
    for release in releases() {
        assert!(listed.contains(&format!("  snowflake_pg--{release}.sql\n")), "{release} is not in the list");
    }
    // After a release, nothing can change until the next version begins, except comment lines and the order.
    let frozen = repository().join(format!("sql/snowflake_pg--{CURRENT}.sql"));
    if let Ok(frozen) = fs::read_to_string(frozen) {
        let statements = |script: &str| {
            let mut lines: Vec<String> =
                script.lines().filter(|line| !line.starts_with("--")).map(String::from).collect();
            lines.sort();
            lines
        };
        assert_eq!(statements(&frozen), statements(&script(CURRENT)), "{CURRENT} is released: begin the next version");
    }
}
