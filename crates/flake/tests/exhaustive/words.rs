//! Schedules in words.

use flake::fleet::{MemberStanding, RegistryRow};

use crate::checks::FleetFailure;
use crate::server::IdChoice;
use crate::state::SearchState;
use crate::step::{Forgery, Step};
use crate::world::FleetWorld;

const SECOND: i64 = 1_000_000;

fn name(server: usize) -> String {
    format!("server {}", char::from(b'A' + server as u8))
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Returns a list of words, separated by commas and a last "and".
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns a number with commas between groups of three digits.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

fn duration(seconds: i64) -> String {
    let parts = [(seconds / 3_600, "hour"), (seconds / 60 % 60, "minute"), (seconds % 60, "second")];
    let words = parts.iter().filter(|(number, _)| *number > 0);
    let words: Vec<_> =
        words.map(|(number, unit)| format!("{number} {unit}{}", if *number > 1 { "s" } else { "" })).collect();
    list(&words)
}

fn clock(ahead: i64) -> String {
    match ahead {
        0 => "is correct again".into(),
        1.. => format!("is now {} ahead", duration(ahead / SECOND)),
        _ => format!("is now {} behind", duration(-ahead / SECOND)),
    }
}

fn fenced(world: &FleetWorld, server: usize) -> bool {
    let process = world.servers[server].process.as_ref();
    process.is_some_and(|process| matches!(process.member.standing(), MemberStanding::Fenced { .. }))
}

/// The worker ID whose row has a new holder.
fn granted(before: &FleetWorld, after: &FleetWorld) -> Option<u32> {
    let holder = |row: &RegistryRow| row.holder;
    let changed =
        |(node, row): &(&flake::Node, &RegistryRow)| before.registry.rows.get(node).map(holder) != Some(row.holder);
    after.registry.rows.iter().find(changed).map(|(node, _)| node.worker)
}

/// What a server that had no worker ID gets.
fn claims(before: &FleetWorld, after: &FleetWorld, server: usize, renews: bool) -> String {
    let starts = before.servers[server].process.is_none();
    let verb = if starts { "starts and" } else { "claims a worker ID and" };
    match after.worker(server) {
        Some(worker) if renews => format!("{verb} is granted worker ID {worker}, which it renews at once."),
        Some(worker) => format!("{verb} is granted worker ID {worker}."),
        None => {
            let process = after.servers[server].process.as_ref();
            let why = process
                .and_then(|process| process.member.refused())
                .map_or(String::new(), |why| format!(", because {why}"));
            format!("{verb} is refused{}{why}.", if starts { " a worker ID" } else { "" })
        }
    }
}

/// What becomes of a server that had a worker ID.
fn renews(before: &FleetWorld, after: &FleetWorld, server: usize, how: &str) -> String {
    let held = before.worker(server).expect("the server has a worker ID");
    match after.worker(server) {
        Some(worker) if worker != held => {
            format!("gives worker ID {held} back and is granted worker ID {worker}{how}.")
        }
        Some(_) if after.failed() == Some(&FleetFailure::Refused) => {
            format!("tries to renew its grant of worker ID {held}{how}, and is refused.")
        }
        Some(_) => format!("renews its grant of worker ID {held}{how}."),
        None if fenced(after, server) => {
            format!("tries to renew its grant of worker ID {held}. The registry takes it for a copy, and it is fenced.")
        }
        None => format!("tries to renew its grant of worker ID {held}{how}, and loses it."),
    }
}

/// Returns what a schedule looked like before one of its steps.
struct SchedulePlace<'a> {
    schedule: &'a [Step],
    at: usize,
}

impl SchedulePlace<'_> {
    /// The state to which the registry goes back, by the step that kept it.
    fn kept(&self) -> String {
        let kept = self.schedule[..self.at]
            .iter()
            .rposition(|step| matches!(step, Step::Behind | Step::RestoreTables | Step::ChangeLayout));
        kept.map_or("the beginning".into(), |kept| format!("step {}", kept + 1))
    }

    /// What keeps a state of the registry, by the step that uses it.
    fn keeps(&self) -> &'static str {
        let used = self.schedule[self.at..].iter().find_map(|step| match step {
            Step::Rebuild => Some("A backup of the registry is made."),
            Step::RestoreTables => Some("A dump of the registry is made."),
            Step::SetBack(_) => Some("A snapshot of the registry's volume is made."),
            Step::FailOverBehind => Some("A standby of the registry falls behind: it receives no further changes."),
            _ => None,
        });
        used.unwrap_or("A standby of the registry falls behind.")
    }
}

/// Returns one step as a sentence.
fn sentence(before: &FleetWorld, after: &FleetWorld, place: &SchedulePlace<'_>) -> String {
    let step = place.schedule[place.at];
    let kept = place.kept();
    let text = match step {
        Step::Up(server) => format!("{} {}", name(server), claims(before, after, server, true)),
        Step::Claim(server) => format!("{} {}", name(server), claims(before, after, server, false)),
        Step::Renew(server) => format!("{} {}", name(server), renews(before, after, server, "")),
        Step::Keep(server, hours) => {
            let how = format!(" every 25 minutes for {}", duration(hours * 3_600));
            format!("{} {}", name(server), renews(before, after, server, &how))
        }
        Step::KeepAll(hours) => {
            format!("both servers renew their grants every 25 minutes for {}.", duration(hours * 3_600))
        }
        Step::Hello(server) if before.servers[server].process.is_none() => {
            format!("{} starts and says hello to the registry. It claims nothing yet.", name(server))
        }
        Step::Hello(server) => format!("{} says hello to the registry, and does nothing else.", name(server)),
        Step::Lose(server) => match (before.worker(server), granted(before, after)) {
            (Some(worker), _) => {
                format!("{} renews its grant of worker ID {worker}. The answer is lost.", name(server))
            }
            (None, Some(worker)) => {
                format!(
                    "{} claims a worker ID. The registry grants worker ID {worker}, but the answer is lost.",
                    name(server)
                )
            }
            (None, None) => {
                format!("{} claims a worker ID. The registry refuses, and the answer is lost.", name(server))
            }
        },
        Step::Double(server) => format!("{} renews its grant. A second copy of the call is delayed.", name(server)),
        Step::Arrive => "the delayed call arrives.".into(),
        Step::Restart(server) => format!("PostgreSQL restarts on {}.", name(server)),
        Step::Off(server) => format!("the machine of {} stops, and its witness is lost.", name(server)),
        Step::CloneDisk(server) => {
            format!("the disk of {} is copied to {}.", name(server), name(after.servers.len() - 1))
        }
        Step::CloneMemory(server) => {
            format!(
                "the machine of {} is copied with its memory. The copy is {}.",
                name(server),
                name(after.servers.len() - 1)
            )
        }
        Step::Backup(server) => format!("the data directory of {} is backed up.", name(server)),
        Step::Restore(server) => {
            let backup = if before.servers[server].backup.is_some() { "its backup" } else { "a backup without any ID" };
            let name = name(server);
            format!("the data directory of {name} is restored from {backup}, and PostgreSQL starts again.")
        }
        Step::Issue(server, IdChoice::Highest) => format!("{} issues the highest ID that it can issue.", name(server)),
        Step::Issue(server, _) => format!("{} issues the lowest ID that it can issue.", name(server)),
        Step::Clock(server, ahead) => format!("the clock of {} {}.", name(server), clock(ahead)),
        Step::Configure(server) => format!("{} is configured with the layout of the fleet.", name(server)),
        Step::Pass(seconds) => format!("{} pass{}.", duration(seconds), if seconds == 1 { "es" } else { "" }),
        Step::RegistryClock(ahead) => format!("the clock of the registry's host {}.", clock(ahead)),
        Step::Behind => place.keeps().into(),
        Step::FailOver => "the registry fails over and loses nothing.".into(),
        Step::FailOverBehind => format!("the registry fails over to a standby with the state of {kept}."),
        Step::SetBack(server) => {
            let what = renews(before, after, server, "");
            format!(
                "the registry's volume is set back to the state of {kept}, without a new timeline. {} {what}",
                capital(&name(server))
            )
        }
        Step::Rebuild => format!(
            "the registry is restored with the state of {kept}, in a PostgreSQL instance with a new system identifier."
        ),
        Step::RestoreTables => format!("the registry's tables are restored from a dump with the state of {kept}."),
        Step::Open => "an administrator ends the quarantine with <code>open()</code>.".into(),
        Step::ChangeLayout if after.registry.fleet.format == after.formats[0] => "the layout is changed back.".into(),
        Step::ChangeLayout => "the layout of the fleet is changed.".into(),
        Step::Upgrade => "the registry is upgraded from the version without slices.".into(),
        Step::Reserve => {
            "the owner of the registry reserves worker ID 0 for a database that the registry does not know.".into()
        }
        Step::Release => "this database issues no more IDs, and the owner releases worker ID 0.".into(),
        Step::Forge(forgery) => {
            let what = match forgery {
                Forgery::Life => "a life above that of the fleet",
                Forgery::Start => "a start in three days",
                Forgery::Grant => "a grant that has just begun",
                Forgery::Bound => "a bound above all IDs",
                Forgery::Count => "a count of 1,000,000,000,000",
            };
            format!("a role that may call the functions forges a renewal of worker ID 0 with {what}.")
        }
    };
    let begun = match step {
        Step::SetBack(_) => before.history[0].1.fleet.life,
        _ => before.registry.fleet.life,
    };
    let noticed = after.registry.fleet.life > begun && !matches!(step, Step::ChangeLayout);
    let noticed =
        if noticed { format!(" The registry begins life {}.", after.registry.fleet.life) } else { String::new() };
    capital(&(text + &noticed)).replace("<code>", "`").replace("</code>", "`")
}

/// Returns the steps of a schedule as sentences. The last one is what it leads to.
pub fn sentences(states: &[SearchState], schedule: &[Step]) -> (Vec<String>, String) {
    let steps = (0..schedule.len())
        .map(|at| sentence(&states[at].world, &states[at + 1].world, &SchedulePlace { schedule, at }))
        .collect();
    let last = &states[schedule.len()];
    let server = schedule.last().and_then(|step| step.server()).map_or(String::new(), name);
    let result = match (last.failure(), last.world.failed()) {
        (Some("duplicate"), Some(FleetFailure::Duplicate { .. })) => "The ID was issued before.".into(),
        (Some("duplicate"), _) => {
            match last.world.worker(schedule.last().and_then(|step| step.server()).unwrap_or(0)) {
                Some(worker) => format!("Two holders of worker ID {worker} can issue the same IDs."),
                None => "Two holders of one worker ID can issue the same IDs.".into(),
            }
        }
        (Some("ahead of a clock"), _) => "The grant begins above the time that a clock shows.".into(),
        (Some("fenced without a copy"), _) => format!("{} is fenced although it has no copy.", capital(&server)),
        (Some("displaced"), _) => format!("{} has no worker ID, although its bound has not passed.", capital(&server)),
        (Some("a server has no worker ID"), _) => format!("With the rule, {server} has a worker ID now."),
        (Some("two servers hold one worker ID"), _) => "The machine and its copy both renew the same grant.".into(),
        (Some("a quarantine ends earlier"), _) => "The quarantine now ends earlier than before.".into(),
        (Some("refused"), _) => "The registry refuses what it has answered itself.".into(),
        (other, _) => panic!("{other:?}"),
    };
    (steps, result)
}
