//! The protocol of the mark as a small model, explored in every order: a server that issues numbers below its ceiling, its mark on
//! the way to the disk and to a synchronous standby, sessions that are cancelled, crashes, and a promotion while the old primary
//! continues.
//!
//! The model shows why the steps and their order are needed. It does not show that the code takes them; the tests on real servers
//! do. Each part of the protocol is left out once, and the exploration must find the number that is then issued twice.

use std::collections::{HashMap, VecDeque};

/// The largest count of numbers that a reservation covers.
const WINDOW: u8 = 2;

/// What the model leaves out or does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProtocolFault {
    None,
    /// Publishes a mark that is written and not flushed.
    PublishBeforeFlush,
    /// Publishes a mark that is flushed when the wait for the standby is cancelled.
    PublishAfterCancel,
    /// Writes the mark at the last number instead of ahead of it.
    MarkBehind,
    /// Begins at the clock after a crash.
    MarkNotLoaded,
    /// Publishes a mark that this server has flushed, even if the standby has not.
    StandbyIgnored,
    /// Issues at the clock even if the last number is above it.
    ClockTrusted,
}

/// The options of a run of the model.
#[derive(Clone, Copy, Debug)]
struct ModelOptions {
    /// The count of numbers, from 0.
    numbers: u8,
    synchronous: bool,
    promotion: bool,
    fault: ProtocolFault,
}

/// A session that extends the reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ExtendingSession {
    /// The ceiling that it will publish, 0 for a session that does not extend.
    ceiling: u8,
    /// The mark that it has written.
    mark: u8,
}

/// A server, with the state that a crash loses and the state that it keeps. Numbers below a mark may have been issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct ModelServer {
    loaded: bool,
    /// The number after the last one issued.
    next: u8,
    ceiling: u8,
    sessions: [ExtendingSession; 2],
    written: u8,
    flushed: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ModelWorld {
    primary: ModelServer,
    /// The mark on the standby's disk.
    replicated: u8,
    /// The mark that the primary has seen acknowledged.
    acknowledged: u8,
    /// The standby after its promotion.
    promoted: Option<ModelServer>,
    /// A bit for each number that a client has received.
    issued: u8,
}

/// The server, its action, and the number if there is one.
type Transition = (&'static str, &'static str, Option<u8>);

/// The world after an action, or the number that was issued twice.
type Reached = (Transition, Result<ModelWorld, u8>);

impl ModelServer {
    /// A server starts with nothing but the mark on its disk.
    fn at_mark(mark: u8) -> ModelServer {
        ModelServer { written: mark, flushed: mark, ..ModelServer::default() }
    }

    /// Adds each step that the server can take. `seen` is the highest mark that is known to be safe on the standby.
    fn steps(self, rules: ModelOptions, seen: u8, mut add: impl FnMut(&'static str, Option<u8>, ModelServer)) {
        // A crash of the machine or of a backend loses shared memory and the WAL that is not flushed.
        add("crashes", None, ModelServer::at_mark(self.flushed));
        if self.written > self.flushed {
            add("flushes", None, ModelServer { flushed: self.written, ..self });
        }
        if !self.loaded {
            let next = if rules.fault == ProtocolFault::MarkNotLoaded { 0 } else { self.flushed };
            return add("loads", Some(next), ModelServer { loaded: true, next, ..self });
        }
        // The clock can show any time, and step back.
        for clock in 0..rules.numbers {
            let number = if rules.fault == ProtocolFault::ClockTrusted { clock } else { self.next.max(clock) };
            if number < self.ceiling {
                add("issues", Some(number), ModelServer { next: number + 1, ..self });
            }
        }
        for (place, session) in self.sessions.into_iter().enumerate() {
            let with = |session: ExtendingSession| {
                let mut server = self;
                server.sessions[place] = session;
                // The order of the sessions makes no difference.
                server.sessions.sort();
                server
            };
            if session.ceiling == 0 {
                for ceiling in self.next + 1..=rules.numbers.min(self.next + WINDOW) {
                    let mark = if rules.fault == ProtocolFault::MarkBehind { self.next } else { ceiling };
                    // Advancing is monotonic.
                    let written = self.written.max(mark);
                    add(
                        "writes a mark for",
                        Some(ceiling),
                        ModelServer { written, ..with(ExtendingSession { ceiling, mark }) },
                    );
                }
                continue;
            }
            let published =
                ModelServer { ceiling: self.ceiling.max(session.ceiling), ..with(ExtendingSession::default()) };
            let flushed = self.flushed >= session.mark;
            if (flushed || rules.fault == ProtocolFault::PublishBeforeFlush) && seen >= session.mark {
                add("publishes", Some(session.ceiling), published);
            }
            if flushed && rules.fault == ProtocolFault::PublishAfterCancel {
                add("is cancelled and publishes", Some(session.ceiling), published);
            }
            add("is cancelled", None, with(ExtendingSession::default()));
        }
    }
}

impl ModelWorld {
    /// A cluster in which nothing was ever issued.
    fn new() -> ModelWorld {
        ModelWorld { primary: ModelServer::default(), replicated: 0, acknowledged: 0, promoted: None, issued: 0 }
    }

    fn next(self, rules: ModelOptions) -> Vec<Reached> {
        let mut next: Vec<Reached> = Vec::new();
        let ignored = !rules.synchronous || rules.fault == ProtocolFault::StandbyIgnored;
        let seen = if ignored { rules.numbers } else { self.acknowledged };
        self.primary.steps(rules, seen, |what, number, primary| {
            let world = ModelWorld { primary, ..self };
            next.push((("primary", what, number), world.after(what, number)));
        });
        if let Some(server) = self.promoted {
            // The old primary may continue as long as it finds numbers below its ceiling, but its marks are not acknowledged any
            // more.
            server.steps(rules, rules.numbers, |what, number, promoted| {
                let world = ModelWorld { promoted: Some(promoted), ..self };
                next.push((("promoted", what, number), world.after(what, number)));
            });
            return next;
        }
        let mut standby = |what, world| next.push((("standby", what, None), Ok(world)));
        // Only flushed WAL is sent. It can be on the standby's disk for a while before the primary knows.
        if self.replicated < self.primary.flushed {
            standby("flushes", ModelWorld { replicated: self.primary.flushed, ..self });
        }
        if self.acknowledged < self.replicated {
            standby("acknowledges", ModelWorld { acknowledged: self.replicated, ..self });
        }
        if rules.promotion {
            standby("is promoted", ModelWorld { promoted: Some(ModelServer::at_mark(self.replicated)), ..self });
        }
        next
    }

    /// The world after an action, which gives a number to a client if it issues one.
    fn after(self, what: &str, number: Option<u8>) -> Result<ModelWorld, u8> {
        match number {
            Some(number) if what == "issues" => match 1 << number {
                bit if self.issued & bit != 0 => Err(number),
                bit => Ok(ModelWorld { issued: self.issued | bit, ..self }),
            },
            _ => Ok(self),
        }
    }
}

fn describe((who, what, number): Transition) -> String {
    format!("{who} {what}{}", number.map(|number| format!(" {number}")).unwrap_or_default())
}

/// Explores every possible world. Returns the number of worlds, or the shortest way to a number issued twice.
fn explore(rules: ModelOptions) -> Result<usize, Vec<String>> {
    let begin = ModelWorld::new();
    let mut reached: HashMap<ModelWorld, Option<(ModelWorld, Transition)>> = HashMap::from([(begin, None)]);
    let mut queue = VecDeque::from([begin]);
    while let Some(world) = queue.pop_front() {
        for (what, next) in world.next(rules) {
            match next {
                Err(number) => {
                    let mut way = vec![format!("{}: a client has {number} already", describe(what))];
                    let mut at = world;
                    while let Some((before, what)) = &reached[&at] {
                        way.push(describe(*what));
                        at = *before;
                    }
                    way.reverse();
                    return Err(way);
                }
                Ok(next) if !reached.contains_key(&next) => {
                    reached.insert(next, Some((world, what)));
                    queue.push_back(next);
                }
                Ok(_) => {}
            }
        }
    }
    Ok(reached.len())
}

const ALONE: ModelOptions =
    ModelOptions { numbers: 6, synchronous: false, promotion: false, fault: ProtocolFault::None };
const FAILOVER: ModelOptions =
    ModelOptions { numbers: 4, synchronous: true, promotion: true, fault: ProtocolFault::None };

#[track_caller]
fn caught(rules: ModelOptions) {
    match explore(rules) {
        Ok(worlds) => panic!("{rules:?}: no number is issued twice in {worlds} worlds"),
        Err(way) => println!("{rules:?}: {}", way.join("; ")),
    }
}

#[track_caller]
fn holds(rules: ModelOptions) {
    match explore(rules) {
        // The exploration is meaningful only if it reaches many worlds, in which numbers are issued and servers crash.
        Ok(worlds) => {
            println!("{rules:?}: {worlds} worlds");
            assert!(worlds > 10_000, "only {worlds} worlds");
        }
        Err(way) => panic!("{rules:?}: {}", way.join("; ")),
    }
}

#[test]
fn no_number_is_issued_twice_across_crashes_without_a_standby() {
    holds(ALONE);
}

#[test]
fn no_number_is_issued_twice_across_crashes_and_a_promotion_with_a_synchronous_standby() {
    holds(FAILOVER);
}

#[test]
fn a_promotion_without_synchronous_replication_issues_numbers_twice() {
    // The documentation says so, and the model shows it.
    caught(ModelOptions { synchronous: false, ..FAILOVER });
}

#[test]
fn each_part_of_the_protocol_is_needed_on_a_single_server() {
    for fault in [
        ProtocolFault::PublishBeforeFlush,
        ProtocolFault::MarkBehind,
        ProtocolFault::MarkNotLoaded,
        ProtocolFault::ClockTrusted,
    ] {
        caught(ModelOptions { fault, ..ALONE });
    }
}

#[test]
fn each_part_of_the_protocol_is_needed_with_a_synchronous_standby() {
    for fault in [ProtocolFault::PublishAfterCancel, ProtocolFault::StandbyIgnored] {
        caught(ModelOptions { fault, ..FAILOVER });
        // The fault does no harm where nobody is promoted, so it is caught for the right reason.
        holds(ModelOptions { fault, promotion: false, numbers: 5, ..FAILOVER });
    }
    for fault in [ProtocolFault::MarkBehind, ProtocolFault::MarkNotLoaded] {
        caught(ModelOptions { fault, ..FAILOVER });
    }
}
