//! Events that happen to a server from outside: its processes are killed or frozen. Signals are sent by process ID, and only to
//! processes that this harness started.

use std::fs;
use std::time::Duration;

use crate::patience::PATIENCE;
use crate::server::{pids, signal, works_in};
use crate::{Answer, Cluster, within};

/// Random choices from a seed. Each run prints its seed. If the environment variable `SEED` contains the seed of an earlier run,
/// the choices of this run are repeated.
pub struct Chance(fastrand::Rng);

impl Chance {
    /// Returns the random choices of the test called `name`.
    pub fn of(name: &str) -> Chance {
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
        // Tests print only when they fail, or with --nocapture.
        println!("{name}: SEED={seed} replays this run");
        Chance(fastrand::Rng::with_seed(seed))
    }

    /// Returns a number from `from` to `to`, both included.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        self.0.i64(from..=to)
    }

    /// Returns one of these choices.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.0.usize(..choices.len())]
    }

    /// Returns true in one of `times` cases on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.0.usize(..times) == 0
    }

    /// Returns a duration of up to this many milliseconds.
    pub fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.0.u64(..=most))
    }

    /// Returns a step of a clock in milliseconds. Most steps go back a short way, to times that the clock showed before an outage
    /// of this length. The other steps are up to an hour, back or forward.
    pub fn step(&mut self, outage: Duration) -> i64 {
        if self.one_in(3) {
            self.between(-3_600_000, 3_600_000)
        } else {
            self.between(-1_500, 300) - outage.as_millis() as i64
        }
    }

    /// Returns independent random choices for a concurrent activity.
    pub fn fork(&mut self) -> Chance {
        Chance(self.0.fork())
    }
}

/// A logging collector that does not run until this value goes out of scope.
pub struct FrozenLogger(u32);

impl Drop for FrozenLogger {
    fn drop(&mut self) {
        signal(self.0, "CONT");
    }
}

impl Cluster {
    /// Kills the postmaster with SIGKILL, and waits until all of its processes have ended.
    pub fn kill_postmaster(&mut self) {
        let Some(mut postmaster) = self.postmaster.take() else {
            return;
        };
        let children = children_of(postmaster.id());
        let _ = postmaster.kill();
        let _ = postmaster.wait();
        let alive = |pid: &u32| works_in(*pid, self.dir());
        if !within(Duration::from_secs(5), || !children.iter().any(alive)) {
            // A process that is computing does not check whether its postmaster is alive.
            children.iter().filter(|pid| alive(pid)).for_each(|pid| signal(*pid, "KILL"));
        }
        assert!(within(PATIENCE, || !children.iter().any(alive)), "processes of {} survive", self.dir().display());
    }

    /// Kills one of the sessions with SIGKILL. The postmaster then ends all sessions and restarts. Returns false if
    /// there is no session.
    pub fn kill_session(&self, chance: &mut Chance) -> bool {
        let Ok(mut client) = self.config("postgres").connect(postgres::NoTls) else {
            return false;
        };
        let pids: Vec<i32> = client.all(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
             ORDER BY pid",
        );
        if pids.is_empty() {
            return false;
        }
        signal(chance.pick(&pids).unsigned_abs(), "KILL");
        // The postmaster ends this connection when it detects the crash.
        within(PATIENCE, || client.simple_query("SELECT 1").is_err())
    }

    /// Stops all processes with SIGSTOP, until [`Cluster::thaw`].
    pub fn freeze(&self) {
        self.all_processes().iter().for_each(|pid| signal(*pid, "STOP"));
    }

    /// Lets the frozen processes continue.
    pub fn thaw(&self) {
        self.all_processes().iter().for_each(|pid| signal(*pid, "CONT"));
    }

    /// Stops the process that writes the log files with SIGSTOP, until the returned value goes out of scope. The postmaster does
    /// not wait for this process when it shuts down. Requires `logging_collector`.
    pub fn frozen_logger(&self) -> FrozenLogger {
        let is_logger = |pid: &u32| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"postgres: logger"))
        };
        let pid = self.all_processes().into_iter().find(is_logger).expect("the server has a logging collector");
        signal(pid, "STOP");
        FrozenLogger(pid)
    }

    /// Waits until the server answers again after the postmaster has ended all sessions.
    pub fn wait_until_back(&self) {
        let alive = || {
            let client = self.config("postgres").connect(postgres::NoTls);
            client.and_then(|mut client| client.simple_query("SELECT 1").map(|_| ())).is_ok()
        };
        assert!(within(PATIENCE, alive), "the server did not come back:\n{}", self.log());
    }

    fn all_processes(&self) -> Vec<u32> {
        let Some(postmaster) = &self.postmaster else {
            return Vec::new();
        };
        let mut pids = children_of(postmaster.id());
        pids.push(postmaster.id());
        pids
    }
}

/// Returns the child processes of this process.
pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let parent = |child: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        // The file contains `pid (name) state parent`, and the name may contain any character.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    pids().filter(|child| parent(*child) == Some(pid)).collect()
}
