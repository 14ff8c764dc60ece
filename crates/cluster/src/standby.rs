//! A physical standby of a server.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::patience::PATIENCE;
use crate::server::{Builder, signal};
use crate::{Answer, Cluster, Proxy, within};

/// A server whose processes are stopped until this value goes out of scope. A frozen server cannot be shut down.
pub struct Frozen<'a>(&'a Cluster);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.0.thaw();
    }
}

impl Cluster {
    /// Creates and starts a streaming standby of this server, with the settings of `builder`.
    pub fn standby(&self, builder: Builder) -> Cluster {
        self.standby_at(self.socket(), builder)
    }

    /// Creates and starts a streaming standby whose connection to this server goes through a proxy. The proxy can delay the
    /// standby's acknowledgements.
    pub fn standby_through(&self, proxy: &Proxy, builder: Builder) -> Cluster {
        self.standby_at(proxy.socket(), builder)
    }

    /// Creates a cluster with the settings of `builder` from a base backup of this server, which is running. If the cluster is
    /// started, it recovers as after a crash.
    pub fn backup(&self, builder: Builder) -> Cluster {
        self.backup_from(self.socket(), builder, &[])
    }

    fn backup_from(&self, socket: &Path, builder: Builder, flags: &[&str]) -> Cluster {
        let cluster = builder.empty();
        let backup = self
            .program("pg_basebackup")
            .env("PGHOST", socket)
            .args(["--checkpoint=fast", "--wal-method=stream", "--no-sync", "-D"])
            .arg(cluster.dir())
            .args(flags)
            .output()
            .expect("pg_basebackup can be run");
        assert!(backup.status.success(), "pg_basebackup failed: {}", String::from_utf8_lossy(&backup.stderr));
        cluster
    }

    /// Creates a streaming standby of the server at this socket, and does not start it.
    pub(crate) fn standby_copy(&self, socket: &Path, builder: Builder) -> Cluster {
        // pg_basebackup configures the standby to connect to the host to which pg_basebackup itself connects.
        self.backup_from(socket, builder, &["--write-recovery-conf"])
    }

    fn standby_at(&self, socket: &Path, builder: Builder) -> Cluster {
        let mut standby = self.standby_copy(socket, builder);
        standby.start();
        standby
    }

    /// Makes a standby follow another server than before.
    pub fn follow(&self, primary: &Cluster) {
        // A line in another file would not count, because pg_basebackup and pg_rewind write to postgresql.auto.conf.
        let conninfo = format!("host={} user=postgres", primary.socket().display());
        let follow = format!("ALTER SYSTEM SET primary_conninfo = '{conninfo}'");
        self.connect().batch_execute(&follow).expect("a superuser may");
        self.reload();
    }

    /// Promotes a standby, and waits until it is a primary.
    pub fn promote(&self) {
        // A statement that waits for the end of recovery can conflict with the WAL that is replayed, and is then cancelled.
        let mut client = self.connect();
        assert!(client.one::<bool>("SELECT pg_promote(false)"), "the standby cannot be promoted:\n{}", self.log());
        let promoted = within(PATIENCE, || !client.one::<bool>("SELECT pg_is_in_recovery()"));
        assert!(promoted, "the standby was not promoted:\n{}", self.log());
    }

    /// Makes replication to the connected standby synchronous, and waits until it has replayed all earlier WAL.
    pub fn rely_on_standby(&mut self) {
        self.set("synchronous_standby_names", "*");
        self.reload();
        // A new connection has the setting only after the postmaster has signalled all processes. The setting takes effect when
        // the checkpointer processes the signal. The checkpointer does so before it makes the checkpoint for which this code
        // waits.
        assert!(within(PATIENCE, || self.connect().one::<String>("SHOW synchronous_standby_names") == "*"));
        let mut client = self.connect();
        client.batch_execute("CHECKPOINT").expect("a superuser may");
        let written: String = client.one("SELECT pg_logical_emit_message(true, 'tests', '')::text");
        let replayed = format!(
            "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync' AND replay_lsn >= '{written}')"
        );
        assert!(within(PATIENCE, || client.one(&replayed)), "the standby does not follow:\n{}", self.log());
    }

    /// Returns the high-water mark as PostgreSQL shows it, whether or not the library is loaded. On a standby, this is the mark
    /// that was replayed.
    pub fn shown_mark(&self) -> i64 {
        self.connect().one(
            "SELECT (remote_lsn - '0/0')::bigint FROM pg_replication_origin_status WHERE external_id = 'snowflake_pg'",
        )
    }

    /// Stops all processes until the returned value goes out of scope.
    pub fn frozen(&self) -> Frozen<'_> {
        let frozen = Frozen(self);
        self.freeze();
        frozen
    }

    /// Freezes a standby of this server for longer than a window under load. The standby does not receive the marks that are
    /// written during this time, because they follow more WAL than the connection between the servers can hold.
    pub fn leave_behind<'a>(&self, standby: &'a Cluster) -> Frozen<'a> {
        let frozen = standby.frozen();
        let filler = "SELECT pg_logical_emit_message(false, 'tests', repeat('x', 8000000))";
        self.connect().batch_execute(filler).expect("a superuser may write what it likes to WAL");
        thread::sleep(Duration::from_millis(1_100));
        frozen
    }

    /// Stops all processes of a standby, and returns its mark. The standby has not acknowledged a higher mark. The WAL receiver,
    /// which acknowledges WAL, is stopped first, and the mark is queried afterwards.
    pub fn frozen_at_mark(&self) -> (Frozen<'_>, i64) {
        let frozen = Frozen(self);
        let mut client = self.connect();
        let receiver = client.one::<i32>("SELECT pid FROM pg_stat_wal_receiver").unsigned_abs();
        signal(receiver, "STOP");
        let stopped =
            || fs::read_to_string(format!("/proc/{receiver}/stat")).is_ok_and(|stat| stat.contains("(postgres) T"));
        assert!(within(PATIENCE, stopped), "process {receiver} goes on");
        // The received WAL may end within a record. In this case, recovery waits for the rest of the record.
        let replayed = "SELECT pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()";
        let waiting = "SELECT EXISTS (SELECT FROM pg_stat_activity
                       WHERE backend_type = 'startup' AND wait_event = 'RecoveryWalStream')";
        let caught_up = within(Duration::from_secs(1), || client.one(replayed))
            || within(PATIENCE, || client.one(replayed) || client.one(waiting));
        assert!(caught_up, "the standby does not replay what it has received:\n{}", self.log());
        let mark = self.shown_mark();
        // The connection is closed before the freeze, because closing a connection waits for the server.
        drop(client);
        self.freeze();
        (frozen, mark)
    }
}
