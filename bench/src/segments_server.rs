//! A server of segments that are measured.

use std::time::Duration;

use cluster::{Answer, Builder, Cluster, Host, within};

use crate::server::timed;

/// The steps of the segment `bench` are so large that neither a fetch nor the limit of a tag is in the way. The segment `crash` has
/// the default steps.
const SET_UP: &str = "
    SELECT snowflake_registry.create_segment('bench', step => 10000000, max_step => 100000000);
    SELECT snowflake_registry.create_segment('crash');
    CREATE SEQUENCE segments_1;
    CREATE SEQUENCE segments_32 CACHE 32;
    CREATE SEQUENCE segments_1000 CACHE 1000;";

/// Starts a server whose registry is in its own database, with everything that the rivals need. The configuration is of a server of this
/// name.
pub fn start(name: &str, configure: impl Fn(&str) -> Builder) -> Cluster {
    let builder = configure(name);
    let name = format!("bench-{name}-pg{}", cluster::major());
    let registry = format!("host={} dbname=postgres user=postgres", Host::get().socket_dir(&name).display());
    let server = builder.unset("snowflake_pg.worker_id").set("snowflake_pg.registry", &registry).start();
    let layout: String = server.connect().one("SHOW snowflake_pg.layout");
    server.create_fleet(&layout);
    let mut client = server.session();
    timed(&mut client, "SELECT pg_reload_conf()");
    let assigned = within(Duration::from_secs(60), || client.batch_execute("SELECT snowflake_nextval()").is_ok());
    assert!(assigned, "no worker ID:\n{}", server.log());
    timed(&mut client, SET_UP);
    server
}
