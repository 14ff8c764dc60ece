//! A physical standby of a server.

use crate::Cluster;
use crate::server::Builder;

impl Cluster {
    /// A streaming standby of this server, started, with the settings of `builder`.
    pub fn standby(&self, builder: Builder) -> Cluster {
        let dir = builder.prepare();
        let backup = self
            .program("pg_basebackup")
            .args(["--checkpoint=fast", "--write-recovery-conf", "--wal-method=stream", "--no-sync", "-D"])
            .arg(&dir)
            .output()
            .expect("pg_basebackup can be run");
        assert!(backup.status.success(), "pg_basebackup failed: {}", String::from_utf8_lossy(&backup.stderr));
        let mut standby = builder.into_cluster(dir);
        standby.start();
        standby
    }

    /// Makes a standby a primary.
    pub fn promote(&self) {
        let promoted: bool =
            self.connect().query_one("SELECT pg_promote(true, 60)", &[]).expect("a superuser may promote").get(0);
        assert!(promoted, "the standby was not promoted:\n{}", self.log());
    }
}
