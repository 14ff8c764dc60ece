//! Servers that outlive the process that started them, for demonstrations.

use crate::server::stop_stale;
use crate::{Builder, Cluster, Host, Stop};

impl Builder {
    /// Returns the cluster of an earlier run with its data, or a new cluster, for a server that outlives this process. If the
    /// server is running, it is stopped first.
    pub fn open(self) -> Cluster {
        let dir = Host::get().dir(&self.name);
        if !dir.join("PG_VERSION").exists() {
            return self.open_new();
        }
        stop_stale(&dir, Stop::Fast);
        let mut cluster = self.into_cluster(dir, None);
        cluster.kept = true;
        cluster
    }

    /// Returns a new cluster for a server that outlives this process. It replaces the cluster of an earlier run.
    pub fn open_new(self) -> Cluster {
        let mut cluster = self.create();
        cluster.kept = true;
        cluster
    }

    /// Stops the server that an earlier run left running. Returns false if no server was running.
    pub fn stop(self) -> bool {
        stop_stale(&Host::get().dir(&self.name), Stop::Fast)
    }
}

impl Cluster {
    /// Creates and starts a streaming standby of this server, with the settings of `builder`, that outlives this process. It replaces the
    /// cluster of an earlier run.
    pub fn kept_standby(&self, builder: Builder) -> Cluster {
        let mut standby = self.standby_copy(self.socket(), builder);
        standby.kept = true;
        standby.start();
        standby
    }
}
