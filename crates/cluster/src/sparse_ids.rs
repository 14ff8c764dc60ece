//! Servers that issue only a few IDs a second, without gaps, so that IDs that are issued again are found for certain.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::{Answer, Builder, Client, Cluster};

/// How many IDs a sparse server issues in a second.
pub const SPARSE_PER_SECOND: u32 = 16;

/// The layout of a sparse server.
pub const SPARSE_LAYOUT: &str = "31:28:4@1s";

/// How many bits of the ID of a sparse server are below its time.
pub const SPARSE_BELOW_TIME: u32 = 28 + 4;

/// The time of ID 0, which is the default of `snowflake_pg.epoch`, in milliseconds since 1970.
const EPOCH_MS: i64 = 1_288_834_974_657;

/// How many seconds [`Cluster::set_clock_behind`] leaves a server to start. A server that knows of the IDs can still continue after
/// them, because it issues IDs up to ten seconds ahead of its clock.
const BEHIND: i64 = 8;

impl Builder {
    /// Lets the server issue [`SPARSE_PER_SECOND`] IDs a second, up to ten seconds ahead of its clock, which tests can step.
    pub fn sparse(self) -> Builder {
        self.set("snowflake_pg.layout", SPARSE_LAYOUT).set("snowflake_pg.max_ahead", "10s").clock("+0")
    }
}

impl Cluster {
    /// Steps the clock of a sparse server to eight seconds before the latest of these IDs. If the server does not know of them, it
    /// issues some of them again, however much time has passed since they were drawn.
    pub fn set_clock_behind(&self, ids: &[i64]) {
        let latest = ids.iter().max().expect("IDs were drawn");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis();
        let now = i64::try_from(now).expect("the time fits");
        let ahead = (EPOCH_MS + (latest >> SPARSE_BELOW_TIME) * 1_000 - now).div_euclid(1_000);
        self.set_clock(&format!("{:+}", ahead - BEHIND));
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

/// Lets two sparse servers issue IDs for the same five seconds.
pub fn draw_beside(one: &mut Client, other: &mut Client) -> Vec<i64> {
    let mut ids = one.batch(SPARSE_PER_SECOND);
    // The second server then is ahead of the clock, so that the first server issues for the same time.
    ids.extend(draw_above(other, ids[ids.len() - 1]));
    let second = |ids: &[i64]| ids[ids.len() - 1] >> SPARSE_BELOW_TIME;
    let (until, before) = (second(&ids), ids.len());
    while second(&ids) <= until {
        ids.extend(one.batch(SPARSE_PER_SECOND));
    }
    assert!(second(&ids[..=before]) < until, "the servers issued at different times, which shows nothing");
    ids
}

/// Returns the last ID of the five seconds that follow the mark `from`.
pub fn last_to_draw(session: &mut Client, from: i64) -> i64 {
    session.one(&format!("SELECT snowflake_max_id(snowflake_timestamp({from}) + interval '5 s')"))
}
