//! Schedules in words.

use flake::fleet::RegistryRow;

use crate::invariants::FleetFailure;
use crate::server::IdChoice;
use crate::state::SearchState;
use crate::step::{Forgery, Step};
use crate::world::{FleetWorld, SECOND};

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

/// Returns the worker ID whose row has a new holder.
fn granted(before: &FleetWorld, after: &FleetWorld) -> Option<u32> {
    let holder = |row: &RegistryRow| row.holder;
    let changed =
        |(node, row): &(&flake::Node, &RegistryRow)| before.registry.rows.get(node).map(holder) != Some(row.holder);
    after.registry.rows.iter().find(changed).map(|(node, _)| node.worker)
}

/// Returns what happens to a server that had no worker ID.
fn claims(before: &FleetWorld, after: &FleetWorld, server: usize, renews: bool) -> String {
    let starts = before.servers[server].process.is_none();
    let verb = if starts { "starts" } else { "claims a worker ID" };
    match after.worker(server) {
        Some(worker) if renews => format!("{verb}, is granted worker ID {worker}, and immediately renews the grant."),
        Some(worker) => format!("{verb} and is granted worker ID {worker}."),
        None => {
            let process = after.servers[server].process.as_ref();
            let why =
                process.and_then(|process| process.member.refused()).map_or(String::new(), |why| format!(": {why}"));
            let verb = if starts { "starts and claims a worker ID" } else { verb };
            format!("{verb}. The registry refuses the claim{why}.")
        }
    }
}

/// Returns what happens to a server that had a worker ID.
fn renews(before: &FleetWorld, after: &FleetWorld, server: usize, how: &str) -> String {
    let held = before.worker(server).expect("the server has a worker ID");
    match after.worker(server) {
        Some(worker) if worker != held => {
            format!("gives back worker ID {held} and is granted worker ID {worker}{how}.")
        }
        Some(_) if after.failed() == Some(&FleetFailure::Refused) => {
            format!("tries to renew its grant for worker ID {held}{how}. The registry refuses the renewal.")
        }
        Some(_) => format!("renews its grant for worker ID {held}{how}."),
        None if after.servers[server].fenced() => {
            format!(
                "tries to renew its grant for worker ID {held}. The registry treats the server as a copy, so the \
                 server is fenced."
            )
        }
        None => format!("tries to renew its grant for worker ID {held}{how}, but loses the worker ID."),
    }
}

/// A schedule, and the position of one of its steps.
struct SchedulePlace<'a> {
    schedule: &'a [Step],
    at: usize,
}

impl SchedulePlace<'_> {
    /// Returns the state to which the registry returns, named after the step that kept it.
    fn kept(&self) -> String {
        let kept = self.schedule[..self.at]
            .iter()
            .rposition(|step| matches!(step, Step::Behind | Step::RestoreTables | Step::ChangeLayout));
        kept.map_or("the initial state".into(), |kept| format!("the state from step {}", kept + 1))
    }

    /// Returns how a state of the registry is kept, which depends on the step that uses it.
    fn keeps(&self) -> &'static str {
        let used = self.schedule[self.at..].iter().find_map(|step| match step {
            Step::Rebuild => Some("A backup of the registry is taken."),
            Step::RestoreTables => Some("A dump of the registry is made."),
            Step::SetBack(_) => Some("A snapshot of the registry's volume is taken."),
            Step::FailOverBehind => Some("A standby of the registry stops receiving changes."),
            _ => None,
        });
        used.unwrap_or("A standby of the registry stops receiving changes.")
    }
}

/// Returns one step as a sentence.
fn sentence(before: &FleetWorld, after: &FleetWorld, place: &SchedulePlace<'_>) -> String {
    let step = place.schedule[place.at];
    let kept = place.kept();
    let who = step.server().map_or_else(String::new, name);
    let text = match step {
        Step::Up(server) => format!("{who} {}", claims(before, after, server, true)),
        Step::Claim(server) => format!("{who} {}", claims(before, after, server, false)),
        Step::Renew(server) => format!("{who} {}", renews(before, after, server, "")),
        Step::Keep(server, hours) => {
            let how = format!(" every 25 minutes for {}", duration(hours * 3_600));
            format!("{who} {}", renews(before, after, server, &how))
        }
        Step::KeepAll(hours) => {
            format!("both servers renew their grants every 25 minutes for {}.", duration(hours * 3_600))
        }
        Step::Hello(server) if before.servers[server].process.is_none() => {
            format!("{who} starts and calls <code>hello()</code>. It does not claim a worker ID yet.")
        }
        Step::Hello(_) => format!("{who} calls <code>hello()</code>, and does nothing else."),
        Step::Lose(server) => match (before.worker(server), granted(before, after)) {
            (Some(worker), _) => format!("{who} renews its grant for worker ID {worker}, but the answer is lost."),
            (None, Some(worker)) => {
                format!("{who} claims a worker ID. The registry grants worker ID {worker}, but the answer is lost.")
            }
            (None, None) => {
                format!("{who} claims a worker ID. The registry refuses the claim, and the answer is lost.")
            }
        },
        Step::Double(_) => format!("{who} renews its grant. A second copy of the call is delayed."),
        Step::Arrive => "the delayed call arrives.".into(),
        Step::Restart(_) => format!("PostgreSQL restarts on {who}."),
        Step::Off(_) => format!("{who}'s machine stops, and its witness is lost."),
        Step::CloneDisk(_) => format!("{who}'s disk is copied to {}.", name(after.servers.len() - 1)),
        Step::CloneMemory(_) => {
            let copy = name(after.servers.len() - 1);
            format!("{who}'s machine is copied, including its memory. The copy is {copy}.")
        }
        Step::Backup(_) => format!("{who}'s data directory is backed up."),
        Step::Restore(server) => {
            let has_backup = before.servers[server].backup.is_some();
            let backup = if has_backup { "its backup" } else { "a backup that was taken before any ID was issued" };
            format!("{who}'s data directory is restored from {backup}, and PostgreSQL is restarted.")
        }
        Step::Issue(_, IdChoice::Highest) => format!("{who} issues the highest ID that it can issue."),
        Step::Issue(_, _) => format!("{who} issues the lowest ID that it can issue."),
        Step::Clock(_, ahead) => format!("{who}'s clock {}.", clock(ahead)),
        Step::Configure(_) => format!("{who} is configured with the fleet's layout."),
        Step::Pass(seconds) => format!("{} pass{}.", duration(seconds), if seconds == 1 { "es" } else { "" }),
        Step::RegistryClock(ahead) => format!("the clock on the registry's host {}.", clock(ahead)),
        Step::Behind => place.keeps().into(),
        Step::FailOver => "the registry fails over without losing any changes.".into(),
        Step::FailOverBehind => format!("the registry fails over to a standby that has {kept}."),
        Step::SetBack(server) => {
            let what = renews(before, after, server, "");
            let who = capital(&who);
            format!("the registry's volume is reverted to {kept}. No new timeline begins. {who} {what}")
        }
        Step::Rebuild => {
            format!("the registry is restored to {kept} in a PostgreSQL instance with a new system identifier.")
        }
        Step::RestoreTables => format!("the registry's tables are restored from a dump that contains {kept}."),
        Step::Open => "an administrator ends the quarantine with <code>open()</code>.".into(),
        Step::ChangeLayout if after.registry.fleet.format == after.formats[0] => "the layout is changed back.".into(),
        Step::ChangeLayout => "the fleet's layout is changed.".into(),
        Step::Upgrade => "the registry is upgraded from the version without slices.".into(),
        Step::Reserve => "the owner of the registry reserves worker ID 0 for a database without the extension.".into(),
        Step::Release => "this database stops issuing IDs, and the owner releases worker ID 0.".into(),
        Step::Forge(forgery) => {
            let what = match forgery {
                Forgery::Life => "The life in the renewal is higher than the fleet's life",
                Forgery::Start => "The start in the renewal is three days in the future",
                Forgery::Grant => "The grant in the renewal has just begun",
                Forgery::Bound => "The bound in the renewal is above all IDs",
                Forgery::Count => "The count in the renewal is 1,000,000,000,000",
            };
            format!("a role that can call the registry's functions forges a renewal for worker ID 0. {what}.")
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

/// Returns the steps of a schedule as sentences, and the sentence that describes its result.
pub fn sentences(states: &[SearchState], schedule: &[Step]) -> (Vec<String>, String) {
    let steps = (0..schedule.len())
        .map(|at| sentence(&states[at].world, &states[at + 1].world, &SchedulePlace { schedule, at }))
        .collect();
    let last = &states[schedule.len()];
    let server = schedule.last().and_then(|step| step.server()).map_or(String::new(), name);
    let result = match (last.failure(), last.world.failed()) {
        (Some("duplicate"), Some(FleetFailure::Duplicate { .. })) => {
            "The ID in the last step has already been issued.".into()
        }
        (Some("duplicate"), _) => {
            match last.world.worker(schedule.last().and_then(|step| step.server()).unwrap_or(0)) {
                Some(worker) => format!("Two holders of worker ID {worker} can issue the same IDs."),
                None => "Two holders of one worker ID can issue the same IDs.".into(),
            }
        }
        (Some("ahead of a clock"), _) => {
            "The grant begins at a time that the server's or the registry's clock has not reached yet.".into()
        }
        (Some("fenced without a copy"), _) => {
            format!("{} is fenced, although its memory was not copied.", capital(&server))
        }
        (Some("displaced"), _) => format!("{} has no worker ID, although its grant has not ended.", capital(&server)),
        (Some("a server has no worker ID"), _) => {
            format!("With the rule, {server} would have a worker ID at this point.")
        }
        (Some("two servers hold one worker ID"), _) => "Both the machine and its copy renew the same grant.".into(),
        (Some("a quarantine ends earlier"), _) => "The quarantine now ends earlier than before the last step.".into(),
        (Some("refused"), _) => "The registry refuses values that it returned in an earlier answer.".into(),
        (other, _) => panic!("{other:?}"),
    };
    (steps, result)
}
