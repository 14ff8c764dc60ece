//! The moment after a server has come up, in which the mark gets its place.

use std::time::Duration;

use crate::{Answer, Client, Cluster, within};

/// How long the background worker may take. Some tests keep it from its work, or the log from telling of it.
const MOMENT: Duration = Duration::from_secs(2);

/// What it says last.
const SAID: [&str; 2] = ["snowflake_pg: started with worker ID", "snowflake_pg: the high-water mark is missing"];

impl Cluster {
    /// Waits until the background worker has done its work, where there is one: what asks for an ID waits, too, but tests look
    /// into the log and the views.
    pub(crate) fn settle(&self, client: &mut Client) {
        let has_keeper = client.one::<bool>(
            "SELECT current_setting('shared_preload_libraries') LIKE '%snowflake_pg%' AND NOT pg_is_in_recovery()
                AND coalesce(current_setting('snowflake_pg.worker_id', true), '') NOT IN ('', '-1')",
        );
        if has_keeper {
            within(MOMENT, || SAID.iter().any(|said| self.log().contains(said)));
        }
    }
}
