//! How long members wait for a worker ID, in weeks with failovers of the registry and restarts of machines.

use std::time::Duration;

use flake::fleet::{Effect, Member, MemberIdentity, MemberStanding, Moment, Registry, Scale, Source, Uuid};
use flake::{Epoch, IdFormat, Layout};

use crate::earlier;
use crate::faults::{self, FleetFault};
use crate::random::Random;

const MINUTE: i64 = 60_000_000;
const WEEK: i64 = 7 * 24 * 60;

/// Which rules the registry has.
#[derive(Clone, Copy, Debug)]
enum RegistryRules {
    All,
    /// The version before: no short leases of spare worker IDs, and no slices.
    Before,
}

struct Week {
    registry: Registry,
    source: Source,
    time: i64,
    nonces: u128,
    members: Vec<Member>,
    since: Vec<Option<i64>>,
    /// The states at the last minutes.
    states: Vec<Registry>,
    outcome: WeeksOutcome,
    primary: usize,
}

/// A member that has just started on a new machine.
fn member(format: IdFormat) -> Member {
    let identity = MemberIdentity { fleet: None, format, datacenter: 0 };
    Member::start(identity, None, Scale::new(format).point(0))
}

impl Week {
    fn new(rules: RegistryRules, layout: &str, members: usize) -> Week {
        let format = IdFormat { layout: Layout::parse(layout).unwrap(), epoch: Epoch::TWITTER };
        let source = Source { system: 1, timeline: 1, tables: 1 };
        let mut registry = Registry::new(Uuid(7), format, source);
        if let RegistryRules::Before = rules {
            earlier::downgrade(&mut registry, 0);
        }
        Week {
            registry,
            source,
            time: 1_700_000_000_000_000,
            nonces: 1_000,
            members: (0..members).map(|_| member(format)).collect(),
            since: vec![None; members],
            states: Vec::new(),
            outcome: WeeksOutcome::default(),
            primary: 0,
        }
    }

    fn beat(&mut self, member: usize) {
        for _ in 0..2 {
            let now = self.registry.scale().point(self.time);
            let Some(call) = self.members[member].request(now, Duration::from_hours(12)) else { return };
            self.nonces += 1;
            let moment = Moment { now, source: self.source, nonce: Uuid(self.nonces) };
            let answer = faults::call(FleetFault::None, &mut self.registry, &moment, &call);
            let effect = self.members[member].answer(&call, &answer);
            if matches!(effect, Effect::Lost(_)) {
                self.since[member] = Some(self.time);
            }
        }
        if matches!(self.members[member].standing(), MemberStanding::Holding(_))
            && let Some(since) = self.since[member].take()
        {
            self.outcome.longest = self.outcome.longest.max((self.time - since) / MINUTE);
        }
    }

    fn minute(&mut self) {
        self.time += MINUTE;
        for member in 0..self.members.len() {
            self.beat(member);
        }
        self.states.push(self.registry.clone());
        if self.states.len() > 4 {
            self.states.remove(0);
        }
    }

    fn reboot(&mut self, member: usize) {
        self.members[member] = self::member(self.registry.fleet.format);
        self.since[member].get_or_insert(self.time);
    }

    /// A new timeline, with the state of `lost` minutes ago, after `skipped` timelines that were lost.
    fn fail_over(&mut self, primary: usize, lost: usize, skipped: u32) {
        self.source.timeline += 1 + skipped;
        if lost > 0 && self.states.len() > lost {
            self.registry = self.states[self.states.len() - 1 - lost].clone();
            self.states.clear();
        }
        self.primary = primary;
        self.outcome.failovers += 1;
        let mute = self.since[primary].is_some_and(|since| since + MINUTE < self.time);
        self.outcome.mute += usize::from(mute);
    }

    /// A failover in which the old primary is restarted.
    fn crash(&mut self, random: &mut Random) {
        let old = self.primary;
        let new = (old + 1 + random.below(self.members.len() - 1)) % self.members.len();
        let lost = random.pick(&[0, 0, 1, 2]);
        let skipped = random.pick(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        self.reboot(old);
        self.fail_over(new, lost, skipped);
    }
}

/// What happens in a minute of a week.
type WeekPlan = fn(&mut Week, &mut Random, i64);

/// One failover each week, and each day a machine that is restarted.
fn quiet(week: &mut Week, random: &mut Random, minute: i64) {
    if minute == 3_000 {
        week.crash(random);
    }
    if random.below(24 * 60) == 0 {
        let member = random.below(week.members.len());
        week.reboot(member);
    }
}

/// Each day at 10:00 and on some days again at 10:40, every member is restarted, and the primary is switched over before.
fn updates(week: &mut Week, _: &mut Random, minute: i64) {
    let (day, of_day) = (minute / 1_440, minute % 1_440);
    for begin in [600, 640] {
        if begin == 640 && day % 2 == 0 {
            continue;
        }
        let at = of_day - begin;
        let old = week.primary;
        let count = week.members.len();
        if (0..count as i64 - 1).contains(&(at / 3)) && at % 3 == 0 {
            week.reboot((old + 1 + (at / 3) as usize) % count);
        } else if at == 3 * count as i64 {
            week.reboot(old);
            week.fail_over((old + 1) % count, 0, 0);
        }
    }
}

/// Each day, for six hours, the primary crashes every 5 to 90 minutes, and often another member is restarted, too.
fn bad(week: &mut Week, random: &mut Random, minute: i64) {
    if minute % 1_440 < 360 && random.below(48) == 0 {
        week.crash(random);
        if random.below(2) == 0 {
            let member = random.below(week.members.len());
            week.reboot(member);
        }
    }
}

/// Four failovers a day at any time.
fn four(week: &mut Week, random: &mut Random, _: i64) {
    if random.below(360) == 0 {
        week.crash(random);
    }
}

/// Each day, for six hours, the primary's container crashes every ten minutes and begins a new timeline with the same data.
fn looping(week: &mut Week, _: &mut Random, minute: i64) {
    if minute % 1_440 < 360 && minute % 10 == 0 {
        let primary = week.primary;
        week.reboot(primary);
        week.fail_over(primary, 0, 0);
    }
}

/// A registry on its own server: on two days, two failovers within 30 minutes, and 40 machines are restarted after each.
fn large(week: &mut Week, random: &mut Random, minute: i64) {
    let of_day = minute % 4_320;
    if of_day == 600 || of_day == 630 {
        week.fail_over(0, random.pick(&[0, 1, 2]), 0);
    }
    if (605..609).contains(&of_day) || (635..639).contains(&of_day) {
        for _ in 0..10 {
            let member = random.below(week.members.len());
            week.reboot(member);
        }
    }
}

/// What a number of weeks have shown.
#[derive(Debug, Default)]
struct WeeksOutcome {
    failovers: usize,
    /// The failovers in the week that had the fewest.
    fewest: usize,
    /// Failovers to a member that had no worker ID for a minute.
    mute: usize,
    /// The longest time that a member was without a worker ID, in minutes.
    longest: i64,
}

impl WeeksOutcome {
    /// The part of the failovers that met a member without a worker ID, in percent.
    fn mute(&self) -> f64 {
        100.0 * self.mute as f64 / self.failovers.max(1) as f64
    }
}

/// Runs weeks and prints what they have shown.
fn weeks(name: &str, rules: RegistryRules, layout: &str, members: usize, count: usize, plan: WeekPlan) -> WeeksOutcome {
    let mut outcome = WeeksOutcome { fewest: usize::MAX, ..WeeksOutcome::default() };
    for seed in 0..count {
        let mut random = Random(seed as u64 + 1);
        let mut week = Week::new(rules, layout, members);
        week.minute();
        for minute in 0..WEEK {
            week.minute();
            plan(&mut week, &mut random, minute);
        }
        let waiting = week.since.iter().flatten().map(|since| (week.time - since) / MINUTE);
        outcome.longest = waiting.fold(outcome.longest.max(week.outcome.longest), i64::max);
        outcome.failovers += week.outcome.failovers;
        outcome.fewest = outcome.fewest.min(week.outcome.failovers);
        outcome.mute += week.outcome.mute;
    }
    println!("{name}, {rules:?}: {outcome:?}");
    outcome
}

/// The number of weeks of each kind.
fn count() -> usize {
    if std::env::var_os("FLEET_WORLDS").is_some() { 20 } else { 2 }
}

/// A kind of week: its description, the number of members, the plan, and the fewest failovers that it has.
type WeekKind = (&'static str, usize, WeekPlan, usize);

const KINDS: [WeekKind; 4] = [
    ("one failover, and a machine is restarted every day", 3, quiet, 1),
    ("five members are restarted one after another every day, and twice a day on three days", 5, updates, 10),
    ("four failovers per day", 3, four, 15),
    ("a failover every 48 minutes, for six hours per day", 3, bad, 30),
];
/// The number of weeks of each kind. With fewer, some weeks with one failover are the same with the rules of the version before.
const WEEKS: usize = 20;

/// A row of the table in docs/fleet-rules.md.
fn row(name: &str, before: &WeeksOutcome, after: &WeeksOutcome) -> String {
    let wait = |minutes: i64| if minutes < 60 { format!("{minutes} min") } else { format!("{} h", minutes / 60) };
    let longest = (wait(before.longest), wait(after.longest));
    let (failovers, before, after) = (after.failovers, before.mute(), after.mute());
    format!("| {name} | {failovers} | {before:.0}% | {after:.0}% | {} | {} |", longest.0, longest.1)
}

#[test]
fn no_failover_meets_a_member_without_a_worker_id_caught() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fleet-rules.md");
    let page = std::fs::read_to_string(page).expect("the page exists");
    for (name, members, plan, fewest) in KINDS {
        let after = weeks(name, RegistryRules::All, "41:10:12", members, WEEKS, plan);
        let before = weeks(name, RegistryRules::Before, "41:10:12", members, WEEKS, plan);
        assert!(after.fewest >= fewest && before.fewest >= fewest, "{name}: {} failovers", after.fewest);
        assert!(after.mute == 0 && after.longest <= 15, "{name}: {} min", after.longest);
        // With the rules of the version before, members wait longer, and failovers meet them. A single failover meets none.
        assert!(before.longest > after.longest, "{name}: {} min", before.longest);
        assert!(before.mute > 0 || fewest == 1, "{name}: {} failovers", before.failovers);
        let row = row(name, &before, &after);
        assert!(page.lines().any(|line| line == row), "docs/fleet-rules.md does not contain the row\n{row}");
    }
}

#[test]
fn a_primary_that_crashes_all_the_time_is_rarely_without_a_worker_id() {
    let outcome = weeks("crash loop", RegistryRules::All, "41:10:12", 3, count(), looping);
    assert!(outcome.mute() < 15.0, "{}", outcome.mute());
}

#[test]
fn a_small_fleet_waits_at_most_for_the_spare_quarantine() {
    for (layout, limit) in [("41:6:12", 25.0), ("41:5:12", 60.0)] {
        let outcome = weeks(layout, RegistryRules::All, layout, 3, count(), bad);
        assert!(outcome.mute() < limit && outcome.longest < 600, "{layout}");
    }
}

#[test]
fn a_large_fleet_survives_two_failovers_with_forty_restarts_each() {
    let outcome = weeks("large", RegistryRules::All, "41:10:12", 300, count().div_ceil(10), large);
    assert!(outcome.longest <= 120, "{}", outcome.longest);
}
