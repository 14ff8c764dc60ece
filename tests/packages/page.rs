//! The commands that docs/installing.md gives to a reader, and their result.

use cluster::{blocks, major, page};

use crate::build::VERSION;

/// The page's commands of a kind, for the version of PostgreSQL that is tested.
pub fn typed(kind: &str) -> Vec<String> {
    let commands = blocks(&page("docs/installing.md"), kind);
    assert!(!commands.is_empty(), "docs/installing.md has no block {kind}");
    commands.iter().map(|text| text.replace("-15-", &format!("-{}-", major())).replace("pg15", &pg())).collect()
}

/// The version of PostgreSQL, as it appears in the names of packages.
pub fn pg() -> String {
    format!("pg{}", major())
}

/// The settings on the page, which INSTALL and README.Debian repeat.
pub fn settings() -> String {
    typed("conf").concat()
}

/// A table with rows.
pub const ORDERS: &str = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n integer);
    INSERT INTO orders (n) SELECT generate_series(1, 1000)";

/// A query that describes the IDs in it.
pub const LOOK: &str = "SELECT concat_ws(' ', count(*), count(DISTINCT id), min(worker_id), max(worker_id),
        bool_and(created_at BETWEEN now() - interval '1 minute' AND now() + interval '1 minute'), snowflake_version())
    FROM orders, snowflake_decode(id)";

/// The result of [`LOOK`] if the extension works.
pub fn seen() -> String {
    format!("1000 1000 7 7 t {VERSION}")
}
