//! Servers with the registry of a fleet.

use crate::{Answer, Builder, Cluster};

impl Builder {
    /// Starts the server without the library, and creates the registry of a fleet with this layout in the database `postgres`.
    pub fn start_registry(self, layout: &str) -> Cluster {
        let server = self.unset("shared_preload_libraries").start();
        server.create_fleet(layout);
        server
    }
}

impl Cluster {
    /// Creates the registry of a fleet with this layout in the database `postgres` of a running server.
    pub fn create_fleet(&self, layout: &str) {
        let mut client = self.connect();
        client.batch_execute("CREATE EXTENSION snowflake_registry").expect("the extension is installed");
        client.one::<String>(&format!("SELECT snowflake_registry.create_fleet('{layout}')::text"));
    }
}
