//! A machine whose clocks a test can run, suspend and set.

use flake::{ClockEvent, ClockRules, Disciplined, GeneratorClock, Nanos, OnRegression, Reading};

pub const MS: Nanos = 1_000_000;
pub const SECOND: Nanos = 1_000 * MS;
pub const HOUR: Nanos = 3_600 * SECOND;

/// The default settings.
pub const RULES: ClockRules = ClockRules { slack: 100 * MS, max_jump: HOUR, on_regression: OnRegression::Continue };
pub const HOLD: ClockRules = ClockRules { on_regression: OnRegression::Hold, ..RULES };

/// The clocks of a machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineClocks {
    pub monotonic: Nanos,
    pub boot: Nanos,
    pub wall: Nanos,
}

impl MachineClocks {
    /// In November 2023. The machine has been up for a day, and was suspended for an hour of it.
    pub fn new() -> MachineClocks {
        MachineClocks { monotonic: 23 * HOUR, boot: 24 * HOUR, wall: 1_700_000_000 * SECOND }
    }

    pub fn run(&mut self, time: Nanos) {
        self.slew(time, 0);
    }

    /// Time passes while NTP slews: the speed of all clocks differs by this many parts in a million.
    pub fn slew(&mut self, time: Nanos, ppm: i64) {
        let shown = time.strict_add_signed((i128::from(time) * i128::from(ppm) / 1_000_000) as i64);
        self.monotonic += shown;
        self.boot += shown;
        self.wall += shown;
    }

    pub fn suspend(&mut self, time: Nanos) {
        self.boot += time;
        self.wall += time;
    }

    /// Steps the wall clock.
    pub fn step(&mut self, by: i64) {
        self.wall = self.wall.strict_add_signed(by);
    }

    pub fn read(&mut self) -> Reading {
        self.read_busy([0; 3])
    }

    /// Loses the processor for these times: before the second read, before the third, and after it.
    pub fn read_busy(&mut self, lost: [Nanos; 3]) -> Reading {
        let monotonic = self.monotonic;
        self.run(lost[0]);
        let boot = self.boot;
        self.run(lost[1]);
        let wall = self.wall;
        self.run(lost[2]);
        Reading { monotonic, boot, wall, apart: lost.iter().sum() }
    }
}

/// A machine with a generator that compares its clocks.
#[derive(Clone, Copy, Debug)]
pub struct ClockedServer {
    pub machine: MachineClocks,
    pub clock: GeneratorClock,
    pub rules: ClockRules,
    /// The time of the last ID issued.
    pub issued: Nanos,
}

impl ClockedServer {
    /// A generator that has issued nothing yet.
    pub fn new(rules: ClockRules) -> ClockedServer {
        ClockedServer::started(rules, 0)
    }

    /// A generator that begins at its mark.
    pub fn started(rules: ClockRules, mark: Nanos) -> ClockedServer {
        let mut machine = MachineClocks::new();
        ClockedServer { clock: GeneratorClock::start(machine.read(), mark), machine, rules, issued: mark }
    }

    pub fn time(&self) -> Nanos {
        self.clock.time(self.machine.monotonic)
    }

    /// How far generator time is ahead of the wall clock.
    pub fn ahead(&self) -> i64 {
        self.time().wrapping_sub(self.machine.wall) as i64
    }

    pub fn compare(&mut self) -> Disciplined {
        self.compare_busy([0; 3])
    }

    pub fn compare_busy(&mut self, lost: [Nanos; 3]) -> Disciplined {
        let reading = self.machine.read_busy(lost);
        let disciplined = self.clock.discipline(reading, self.issued, &self.rules);
        self.clock = disciplined.clock;
        disciplined
    }

    /// Issues an ID at generator time.
    pub fn issue(&mut self) {
        self.issued = self.issued.max(self.time());
    }

    /// Issues and compares every `pause` for `time`, and returns the events. Checks that generator time always advances by at
    /// least nine tenths of the time.
    pub fn go_on(&mut self, time: Nanos, pause: Nanos) -> Vec<ClockEvent> {
        let mut events = Vec::new();
        for _ in 0..time / pause {
            let before = self.time();
            self.issue();
            self.machine.run(pause);
            events.extend(self.compare().event);
            let advanced = self.time().strict_sub(before);
            assert!(advanced >= pause - pause / 10, "{advanced} in {pause}: {self:?}");
        }
        events
    }
}
