//! The waits after a server has started: for the background worker that creates the origin, and for a worker ID.

use std::time::Duration;

use crate::{Answer, Client, Cluster, PATIENCE, within};

/// How long to wait for the background worker. The wait has a limit because some tests block the background worker or its log
/// lines.
const MOMENT: Duration = Duration::from_secs(2);

/// The possible last messages of the background worker.
const SAID: [&str; 2] = ["snowflake_pg: started with ", "snowflake_pg: the high-water mark is missing"];

impl Cluster {
    /// Waits until the background worker, if there is one, has done its work. A request for an ID would also wait for the
    /// background worker, but some tests read only the log and the views.
    pub(crate) fn wait_ready(&self, client: &mut Client) {
        let has_worker = client.one::<bool>(
            "SELECT current_setting('shared_preload_libraries') LIKE '%snowflake_pg%' AND NOT pg_is_in_recovery()
                AND coalesce(current_setting('snowflake_pg.worker_id', true), '') NOT IN ('', '-1')",
        );
        if has_worker {
            within(MOMENT, || SAID.iter().any(|said| self.log().contains(said)));
        }
    }
    /// Creates the extension if necessary, and waits until the server issues IDs. A registry needs a moment to assign a worker ID.
    pub fn wait_for_ids(&self) {
        let mut session = self.session();
        let issues = within(PATIENCE, || session.code("SELECT snowflake_nextval()").is_none());
        assert!(issues, "no IDs:\n{}", self.log());
    }
}
