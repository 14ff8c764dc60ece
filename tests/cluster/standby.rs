//! A physical standby of a server.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::server::{Builder, PATIENCE, signal};
use crate::{Answer, Cluster, within};

/// A server whose processes are stopped where they are, until this goes out of scope: a frozen one could not be shut down.
pub struct Frozen<'a>(&'a Cluster);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.0.thaw();
    }
}

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

    /// Makes replication to the connected standby synchronous, and waits until it has replayed whatever was issued before.
    pub fn rely_on_standby(&mut self) {
        self.set("synchronous_standby_names", "*");
        self.reload();
        // A connection that finds the setting was made after the postmaster had told all processes. Of these the
        // checkpointer makes it count, before it makes the checkpoint that is waited for here.
        assert!(within(PATIENCE, || self.connect().one::<String>("SHOW synchronous_standby_names") == "*"));
        let mut client = self.connect();
        client.batch_execute("CHECKPOINT").expect("a superuser may");
        let written: String = client.one("SELECT pg_logical_emit_message(true, 'tests', '')::text");
        let replayed = format!(
            "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync' AND replay_lsn >= '{written}')"
        );
        assert!(within(PATIENCE, || client.one(&replayed)), "the standby does not follow:\n{}", self.log());
    }

    /// The high-water mark as PostgreSQL shows it, with our library or without; on a standby the one that was replayed.
    pub fn shown_mark(&self) -> i64 {
        self.connect().one(
            "SELECT (remote_lsn - '0/0')::bigint FROM pg_replication_origin_status WHERE external_id = 'snowflake_pg'",
        )
    }

    /// Stops all processes where they are.
    pub fn frozen(&self) -> Frozen<'_> {
        let frozen = Frozen(self);
        self.freeze();
        frozen
    }

    /// Freezes a standby of this server for longer than a window under load. The marks of this time it does not get, for
    /// before them comes more WAL than the connection between the two holds.
    pub fn leave_behind<'a>(&self, standby: &'a Cluster) -> Frozen<'a> {
        let frozen = standby.frozen();
        let filler = "SELECT pg_logical_emit_message(false, 'tests', repeat('x', 8000000))";
        self.connect().batch_execute(filler).expect("a superuser may write what it likes to WAL");
        thread::sleep(Duration::from_millis(1_100));
        frozen
    }

    /// Stops all processes of a standby where they are, and returns the mark it has: it will not have acknowledged a higher
    /// one. What receives WAL and acknowledges it is stopped first, so that the rest can be asked.
    pub fn frozen_at_mark(&self) -> (Frozen<'_>, i64) {
        let frozen = Frozen(self);
        let mut client = self.connect();
        let receiver = client.one::<i32>("SELECT pid FROM pg_stat_wal_receiver").unsigned_abs();
        signal(receiver, "STOP");
        let stopped =
            || fs::read_to_string(format!("/proc/{receiver}/stat")).is_ok_and(|stat| stat.contains("(postgres) T"));
        assert!(within(PATIENCE, stopped), "process {receiver} goes on");
        // What was received may end within a record: then recovery waits for the rest of it.
        let replayed = "SELECT pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()";
        let waiting = "SELECT EXISTS (SELECT FROM pg_stat_activity
                       WHERE backend_type = 'startup' AND wait_event = 'RecoveryWalStream')";
        let caught_up = within(Duration::from_secs(1), || client.one(replayed)) || client.one(waiting);
        assert!(caught_up, "the standby does not replay what it has received:\n{}", self.log());
        let mark = self.shown_mark();
        // The end of a connection waits for the server.
        drop(client);
        self.freeze();
        (frozen, mark)
    }
}
