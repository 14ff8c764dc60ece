//! The steps of `portable/draw.sql` and `portable/advance.sql`, with every interleaving of three sessions: no ID is
//! issued twice, wherever a statement is cancelled, the server crashes or the clock is set. Each fault is a schedule that repeats an ID.

use std::collections::{BTreeSet, HashSet};

/// The IDs of a tick. Their counters are 1 up to this number.
const IDS: u8 = 1;

/// The values of a tick: its IDs, one value that each of three sessions discards, and the value of a push.
const VALUES: u8 = IDS + 4;

/// The clock shows a tick from 1 to this one, and the state is followed up to one tick more.
const LAST: u8 = 2;

/// How many ticks a flush of the mark reserves.
const WINDOW: u8 = 1;

/// What the function does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortableFault {
    None,
    /// A session draws without a look at the counter, so that cancelled statements use up the values of the tick.
    NoLook,
    /// A push takes no lock.
    NoLock,
    /// A push reads the state before it has the lock.
    ReadBeforeLock,
    /// The mark counts before it is flushed.
    EarlyMark,
    /// After a crash, the state begins at the clock.
    StartAtClock,
    /// A crash leaves the state as it was flushed last, as a logged sequence does.
    Logged,
}

/// What a session does next. It holds the lock from `ReadClock` to `SetState`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Next {
    #[default]
    Call,
    Draw,
    /// Compares the drawn value with the clock.
    Compare,
    /// Takes the lock and reads the state.
    Lock,
    ReadClock,
    SetMark,
    Flush,
    SetFlushed,
    /// Moves the state, and releases the lock.
    SetState,
    /// The function returns the value.
    Return,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Session {
    next: Next,
    /// The value that it has drawn and can return.
    drawn: Option<u8>,
    /// Whether the lock was waited for, so that the next value is returned whatever the clock shows.
    pushed: bool,
    /// The call is snowflake_reserve(1).
    reserves: bool,
    read: Option<u8>,
    tick: u8,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct PortableServer {
    state: Option<u8>,
    flushed: Option<u8>,
    mark: u8,
    /// The mark and the state as the WAL on disk has them.
    durable: (u8, Option<u8>),
    clock: u8,
    locked: bool,
    /// The ticks whose ID was issued.
    issued: u8,
    sessions: [Session; 3],
}

/// Returns the counter of a value.
fn counter(value: u8) -> u8 {
    value % VALUES
}

impl PortableServer {
    /// Lets a session do its next step, and returns the states that follow. `Err` is a repeated ID.
    fn step(&self, who: usize, fault: PortableFault) -> Result<Vec<PortableServer>, u8> {
        let mut after = self.clone();
        let mut reserving = None;
        let early = |_: &u8| fault == PortableFault::ReadBeforeLock;
        let session = &mut after.sessions[who];
        match session.next {
            Next::Call => {
                let mut reserve = self.clone();
                reserve.sessions[who] =
                    Session { next: Next::Lock, reserves: true, read: self.state.filter(early), ..Session::default() };
                reserving = (*session == Session::default()).then_some(reserve);
                let draws = self.state.is_some_and(|state| counter(state) < IDS || fault == PortableFault::NoLook);
                session.next = if draws { Next::Draw } else { Next::Lock };
                session.read = self.state.filter(early);
                session.tick = 0;
            }
            Next::Draw => {
                let value = self.state.expect("a crash ends sessions") + 1;
                after.state = Some(value);
                let valid = (1..=IDS).contains(&counter(value));
                session.drawn = valid.then_some(value);
                session.next = match (valid, session.pushed) {
                    (true, true) => Next::Return,
                    (true, false) => Next::Compare,
                    (false, _) => Next::Lock,
                };
            }
            Next::Compare => {
                let tick = session.drawn.expect("a valid value") / VALUES;
                // A tick behind the clock, the session does not wait for the lock.
                session.next = match self.clock.saturating_sub(tick) {
                    0 => Next::Return,
                    1 if self.locked => Next::Return,
                    _ => Next::Lock,
                };
            }
            Next::Lock if self.locked && fault != PortableFault::NoLock => return Ok(Vec::new()),
            Next::Lock => {
                after.locked = true;
                session.pushed = true;
                if fault != PortableFault::ReadBeforeLock {
                    session.read = self.state;
                }
                session.next = Next::ReadClock;
            }
            Next::ReadClock => {
                let least = match session.read {
                    None if fault == PortableFault::StartAtClock => 0,
                    None => self.mark,
                    Some(state) => state / VALUES + u8::from(session.reserves || counter(state) >= IDS),
                };
                session.tick = self.clock.max(least);
                let moves = session.read.is_none_or(|state| session.tick != state / VALUES);
                let reserved = session.read.is_some() && self.flushed.is_some_and(|flushed| session.tick < flushed);
                session.next = match (moves, reserved) {
                    (false, _) => Next::Call,
                    (true, true) => Next::SetState,
                    (true, false) => Next::SetMark,
                };
                if !moves {
                    after.locked = false;
                }
            }
            Next::SetMark => {
                // A tick that is used up, so that a cancelled session does not raise the mark again.
                if self.state.is_none() {
                    after.state = Some((session.tick - 1) * VALUES + IDS + 1);
                }
                after.mark = self.mark.max(session.tick + WINDOW);
                session.next = if fault == PortableFault::EarlyMark { Next::SetFlushed } else { Next::Flush };
            }
            Next::Flush => {
                after.durable = (self.mark, self.state);
                session.next = if fault == PortableFault::EarlyMark { Next::SetState } else { Next::SetFlushed };
            }
            Next::SetFlushed => {
                after.flushed = Some(session.tick + WINDOW);
                session.next = if fault == PortableFault::EarlyMark { Next::Flush } else { Next::SetState };
            }
            Next::SetState => {
                let value = session.tick * VALUES + u8::from(session.reserves);
                after.state = Some(value);
                session.drawn = session.reserves.then_some(value);
                session.next = if session.reserves { Next::Return } else { Next::Call };
                after.locked = false;
            }
            Next::Return => {
                let tick = session.drawn.expect("a value to return") / VALUES;
                if self.issued >> tick & 1 == 1 {
                    return Err(tick);
                }
                *session = Session::default();
                after.issued |= 1 << tick;
            }
        }
        Ok([Some(after), reserving].into_iter().flatten().collect())
    }

    /// Returns the states that follow an event from outside.
    fn events(&self, fault: PortableFault) -> Vec<PortableServer> {
        let mut after = Vec::new();
        for clock in (1..=LAST).filter(|clock| *clock != self.clock) {
            after.push(PortableServer { clock, ..self.clone() });
        }
        for who in 0..3 {
            let mut cancelled = self.clone();
            let holds = (Next::ReadClock..=Next::SetState).contains(&self.sessions[who].next);
            cancelled.locked &= !holds;
            cancelled.sessions[who] = Session::default();
            after.push(cancelled);
        }
        // A crash keeps what was flushed. Any commit can have flushed all.
        let logged = |_: &u8| fault == PortableFault::Logged;
        for (mark, state) in [self.durable, (self.mark, self.state)] {
            let (state, flushed) = (state.filter(logged), self.flushed.filter(logged));
            after.push(PortableServer {
                state,
                flushed,
                mark,
                durable: (mark, state),
                locked: false,
                sessions: [Session::default(); 3],
                ..self.clone()
            });
        }
        after
    }

    /// Sessions are alike, so that their order does not matter.
    fn in_order(mut self) -> PortableServer {
        self.sessions.sort_unstable();
        self
    }
}

/// Follows all schedules, and returns the number of states, or the tick of an ID that was issued twice.
fn explore(fault: PortableFault) -> Result<(usize, BTreeSet<u8>), u8> {
    let new = PortableServer { clock: 1, ..PortableServer::default() };
    let (mut known, mut open) = (HashSet::from([new.clone()]), vec![new]);
    let mut issued = BTreeSet::new();
    while let Some(server) = open.pop() {
        issued.insert(server.issued);
        let mut after = server.events(fault);
        for who in 0..3 {
            after.extend(server.step(who, fault)?);
        }
        for server in after.into_iter().map(PortableServer::in_order) {
            let beyond = server.state.is_some_and(|state| state / VALUES > LAST + 1) || server.mark > LAST + 1 + WINDOW;
            if !beyond && known.insert(server.clone()) {
                open.push(server);
            }
        }
    }
    Ok((known.len(), issued))
}

#[test]
fn three_sessions_never_issue_an_id_twice() {
    let (states, issued) = explore(PortableFault::None).expect("no ID comes twice");
    assert!(states > 100_000, "{states} states");
    // Every tick was reached, alone and with all others.
    assert!((1..=LAST).all(|tick| issued.contains(&(1 << tick))), "{issued:?}");
    assert!(issued.contains(&((2 << LAST) - 2)), "{issued:?}");
}

#[test]
fn each_fault_repeats_an_id_and_is_caught() {
    let faults = [
        PortableFault::NoLook,
        PortableFault::NoLock,
        PortableFault::ReadBeforeLock,
        PortableFault::EarlyMark,
        PortableFault::StartAtClock,
        PortableFault::Logged,
    ];
    for fault in faults {
        assert!(explore(fault).is_err(), "{fault:?} repeats no ID");
    }
}
