//! Every section of a page whose blocks are typed on servers of their own has a test that types them.

use cluster::{Recipe, assert_caught, ensure, texts_of};

/// The pages, each with the paths where the files of its tests begin. `pages.rs` types the blocks of the other pages.
const PAGES: [(&str, &[&str]); 10] = [
    ("docs/clients.md", &["tests/clients"]),
    ("docs/registry.md", &["tests/docs/fleet"]),
    ("docs/kubernetes.md", &["tests/engines/kubernetes", "tests/packages/image"]),
    ("docs/orders.md", &["tests/docs/fleet/tags", "tests/docs/fleet/lost", "tests/segments/embedded"]),
    ("docs/patroni.md", &["tests/engines/patroni"]),
    ("docs/pg_auto_failover.md", &["tests/engines/auto_failover"]),
    ("docs/pgbackrest.md", &["tests/engines/pgbackrest"]),
    ("docs/pglogical.md", &["tests/engines/pglogical"]),
    ("docs/sharding.md", &["tests/engines/sharding"]),
    ("docs/worker-ids.md", &["tests/docs/worker_ids"]),
];

/// Checks that the tests of a page name each of its sections that have blocks. A test that names a section types all of its blocks,
/// because [`Recipe::block`] returns them in order, and the test asserts at the end that none is left.
fn check(page: &str, sources: &[&str]) -> Result<(), String> {
    let texts = texts_of(&["tests"], ".rs");
    let own = |path: &str| sources.iter().any(|source| path.starts_with(source));
    let tests: String =
        texts.into_iter().filter(|(path, _)| own(&path.to_string_lossy())).map(|(_, text)| text).collect();
    let titles = Recipe::titles(page);
    ensure!(!titles.is_empty(), "{page} has no blocks");
    for title in titles {
        let named = tests.contains(&format!("\"{title}\""));
        ensure!(named, "no test in {sources:?} types the blocks of {title:?} of {page}");
    }
    Ok(())
}

#[test]
fn every_section_with_blocks_is_tested() {
    for (page, sources) in PAGES {
        check(page, sources).unwrap();
    }
    let reason = "types the blocks of \"The registry inside the cluster that it serves\"";
    assert_caught(check("docs/registry.md", &["tests/docs/fleet/setup"]), reason);
}
