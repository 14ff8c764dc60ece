//! Servers that issue only a few IDs a second, without gaps, so that IDs that are issued again are found for certain.

use crate::{Answer, Builder, Client};

/// How many IDs a sparse server issues in a second.
pub const SPARSE_PER_SECOND: u32 = 16;

impl Builder {
    /// Lets the server issue [`SPARSE_PER_SECOND`] IDs a second, up to ten seconds ahead of its clock, which tests can step.
    pub fn sparse(self) -> Builder {
        self.set("snowflake_pg.layout", "31:28:4@1s").set("snowflake_pg.max_ahead", "10s").clock("+0")
    }
}

/// Draws from a sparse server until the IDs of five seconds are above the mark `from`.
pub fn draw_above(session: &mut Client, from: i64) -> Vec<i64> {
    let mut ids = Vec::new();
    let until = last_to_draw(session, from);
    while ids.last() <= Some(&until) {
        ids.extend(session.batch(SPARSE_PER_SECOND));
    }
    ids
}

/// Returns the last ID of the five seconds that follow the mark `from`.
pub fn last_to_draw(session: &mut Client, from: i64) -> i64 {
    session.one(&format!("SELECT snowflake_max_id(snowflake_timestamp({from}) + interval '5 s')"))
}
