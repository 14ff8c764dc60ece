//! What can happen to a server from outside: its processes are killed or frozen. Only processes that this harness started
//! are touched, by their numbers.

use std::fs;
use std::time::Duration;

use crate::server::{PATIENCE, signal};
use crate::{Answer, Cluster, within};

/// Seeded chance: `SEED` of the environment replays a run, and each run prints its own.
pub struct Chance(fastrand::Rng);

impl Chance {
    /// The chance of the test called `name`.
    pub fn of(name: &str) -> Chance {
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
        // Tests print only when they fail, or with --nocapture.
        println!("{name}: SEED={seed} replays this run");
        Chance(fastrand::Rng::with_seed(seed))
    }

    /// A number from `from` to `to`, both included.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        self.0.i64(from..=to)
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.0.usize(..choices.len())]
    }

    /// True in one of `times` cases.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.0.usize(..times) == 0
    }

    /// A time up to this many milliseconds.
    pub fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.0.u64(..=most))
    }

    /// A step of a clock in milliseconds: mostly a short way back, to times that were seen before an outage that takes this
    /// long, the rest up to an hour.
    pub fn step(&mut self, outage: Duration) -> i64 {
        if self.one_in(3) {
            self.between(-3_600_000, 3_600_000)
        } else {
            self.between(-1_500, 300) - outage.as_millis() as i64
        }
    }

    /// A chance of its own for something that runs beside.
    pub fn fork(&mut self) -> Chance {
        Chance(self.0.fork())
    }
}

impl Cluster {
    /// Kills the postmaster by force, and waits until all its processes have noticed.
    pub fn kill_postmaster(&mut self) {
        let Some(mut postmaster) = self.postmaster.take() else {
            return;
        };
        let children = children_of(postmaster.id());
        let _ = postmaster.kill();
        let _ = postmaster.wait();
        let alive = |pid: &u32| works_in(*pid, self.dir());
        if !within(Duration::from_secs(5), || !children.iter().any(alive)) {
            // One that computes does not look after its postmaster.
            children.iter().filter(|pid| alive(pid)).for_each(|pid| signal(*pid, "KILL"));
        }
        assert!(within(PATIENCE, || !children.iter().any(alive)), "processes of {} survive", self.dir().display());
    }

    /// Kills one of the sessions by force, whereupon the postmaster ends all and starts anew. False where there is none.
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
        // This connection ends when the postmaster has noticed.
        within(PATIENCE, || client.simple_query("SELECT 1").is_err())
    }

    /// Stops all processes where they are, until [`Cluster::thaw`].
    pub fn freeze(&self) {
        self.all_processes().iter().for_each(|pid| signal(*pid, "STOP"));
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        self.all_processes().iter().for_each(|pid| signal(*pid, "CONT"));
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

/// The processes whose parent this is.
fn children_of(pid: u32) -> Vec<u32> {
    let parent = |child: u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        // "pid (name) state parent": a name may hold anything.
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let processes = fs::read_dir("/proc").expect("a Linux system").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|child| parent(*child) == Some(pid)).collect()
}

/// True while a process works in this directory, as all of a server do.
fn works_in(pid: u32, dir: &std::path::Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == dir)
}
