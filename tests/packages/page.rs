//! What docs/installing.md tells a reader to type, and what is seen then.

use cluster::{blocks, major, page};

use crate::build::VERSION;

/// A page's commands of a kind, for the version of PostgreSQL that is tested.
pub fn typed(kind: &str) -> Vec<String> {
    let commands = blocks(&page("docs/installing.md"), kind);
    assert!(!commands.is_empty(), "docs/installing.md has no block {kind}");
    commands.iter().map(|text| text.replace("-15-", &format!("-{}-", major())).replace("pg15", &pg())).collect()
}

/// The version of PostgreSQL as packages have it in their names.
pub fn pg() -> String {
    format!("pg{}", major())
}

/// The settings of the page, which are those of INSTALL and README.Debian.
pub fn settings() -> String {
    typed("conf").concat()
}

/// A table, and rows in it.
pub const ORDERS: &str = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n integer);
    INSERT INTO orders (n) SELECT generate_series(1, 1000)";

/// What its IDs are.
pub const LOOK: &str = "SELECT concat_ws(' ', count(*), count(DISTINCT id), min(worker_id), max(worker_id),
        bool_and(created_at BETWEEN now() - interval '1 minute' AND now() + interval '1 minute'), snowflake_version())
    FROM orders, snowflake_decode(id)";

/// What [`LOOK`] shows where all is well.
pub fn seen() -> String {
    format!("1000 1000 7 7 t {VERSION}")
}
