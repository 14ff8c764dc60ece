//! The server's side of the protocol.

use core::time::Duration;

use crate::{IdFormat, Mark, Node, Stamp};

use super::{
    Call, ClaimRequest, Loss, Point, Record, RegistryAnswer, RegistryRefusal, RegistryRequest, RenewRequest, Scale,
    Uuid,
};

/// What a server knows about itself before it contacts the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemberIdentity {
    /// The fleet that the server belongs to, or `None` if the server joins the fleet of the first registry that
    /// answers.
    pub fleet: Option<Uuid>,
    /// The layout and the epoch.
    pub format: IdFormat,
    /// The datacenter ID, or 0 if the layout has no datacenter field.
    pub datacenter: u32,
}

/// The server's side of the protocol. Only the [`Record`] is persistent. Everything else is lost when the process
/// exits, and is not needed afterwards.
///
/// The driver takes these steps, once when the server starts and then in each heartbeat:
///
/// 1. Call [`Member::request`].
/// 2. If the record has changed, store [`Member::record`] in the witness before the next step. A server that forgets
///    the nonce that it has sent cannot be distinguished from a copy of itself.
/// 3. Send the call and pass the answer to [`Member::answer`]. If there is no answer, start again at step 1.
/// 4. Store the record again, or void the witness if there is no record. Then do what the [`Effect`] requires.
///
/// A heartbeat consists of two calls: `hello`, and then the claim or the renewal. It ends with an effect other than
/// [`Effect::Continue`] and [`Effect::Ignored`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    identity: MemberIdentity,
    /// The fleet of the registry that has answered since the server started. Before the first answer, this is the fleet
    /// in the record or in the identity.
    fleet: Option<Uuid>,
    state: MemberState,
    hello: Hello,
    refused: Option<RegistryRefusal>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum MemberState {
    /// The server has no worker ID. The life and the nonce come from the last `hello`.
    Seeking { ready: Option<(u64, Uuid)> },
    /// The server has a worker ID. The life and the nonce come from the last `hello`.
    Holding {
        record: Record,
        ready: Option<(u64, Uuid)>,
        leave: Leave,
        /// True if the registry's clock has passed the bound, although the server's clock has not. The registry renews
        /// the grant only if its clock is set back.
        expired: bool,
    },
    /// A copy of this server holds the worker ID.
    Fenced { seen: Point },
}

/// Whether a server with a spare worker ID or an expired grant claims a worker ID from the ring. It keeps its grant until
/// the claim is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Leave {
    No,
    /// The next call after `hello` is a claim.
    Next,
    /// The claim with this nonce has been sent. It is sent only once, so that the server continues with renewals.
    Claimed(Uuid),
}

/// The last `hello` call. Its answer is accepted only once. If a nonce were used twice, a late copy of an old renewal
/// would look like a new renewal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Hello {
    serial: u64,
    awaited: bool,
}

impl Hello {
    fn next(&mut self) -> RegistryRequest {
        self.serial += 1;
        self.awaited = true;
        RegistryRequest::Hello { serial: self.serial }
    }

    fn takes(&mut self, serial: u64) -> bool {
        serial == self.serial && core::mem::take(&mut self.awaited)
    }
}

/// Whether a server has a worker ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberStanding {
    /// The server has no worker ID, and requests one.
    Seeking,
    /// The server has a worker ID.
    Holding(Grant),
    /// A copy of the server has renewed the grant. This server issues no IDs until it restarts.
    Fenced {
        /// The time on the registry's clock at which the copy made its last renewal.
        seen: Point,
    },
}

/// What an answer has changed, and what the server must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing has changed. The answer belongs to an earlier call, or contradicts the layout.
    Ignored,
    /// The server can send the next call now.
    Continue,
    /// The server has a worker ID. If it had one before, the new one replaces it. Unload the generator, and load it
    /// from [`Grant::begin`].
    Assigned,
    /// The bound has been raised.
    Renewed,
    /// The server has lost its worker ID. Unload the generator, and send a new claim.
    Lost(Loss),
    /// A copy of the server has renewed the grant. Unload the generator.
    Fenced,
    /// The registry has refused the call. If the server has a grant, the grant stays valid up to its bound.
    Refused(RegistryRefusal),
}

/// The IDs that a server may issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The datacenter ID and the worker ID.
    pub node: Node,
    /// The lowest ID that the server may issue.
    pub start: Point,
    /// The highest ID that the server may issue.
    pub bound: Point,
    /// The server has not issued an ID at or above this mark under this grant.
    pub used: Mark,
}

impl Grant {
    /// Returns the mark at which the server begins to issue IDs after it has started. `mark` is the mark in the
    /// server's data directory. It can be older or newer than the witness.
    pub fn begin(&self, mark: Mark) -> Mark {
        let start = Mark::stored(self.start.id() as u64).unwrap_or(Mark::NOTHING_ISSUED);
        mark.max(start).max(self.used)
    }

    /// Returns the first word that `stamp` turns into an ID above the bound, or the word after `last_word` if there is
    /// no such word. No reservation may exceed this word.
    pub fn ceiling(&self, stamp: &Stamp, last_word: u64) -> u64 {
        Mark::stored(self.bound.id() as u64 + 1).map_or(0, |above| above.first_word(stamp, last_word))
    }
}

impl Member {
    /// Returns a server that has just started, with the record in its witness. The record is void if it belongs to a
    /// different fleet, layout, epoch or datacenter. It is also void if its bound and one margin have passed at
    /// `clock`, the time of the server's wall clock.
    pub fn start(identity: MemberIdentity, record: Option<Record>, clock: Point) -> Member {
        let margin = Scale::new(identity.format).margin();
        let record = record.filter(|record| {
            identity.fleet.is_none_or(|fleet| fleet == record.fleet)
                && record.format == identity.format
                && record.node.datacenter == identity.datacenter
                && !record.bound.plus(margin).passed(clock)
        });
        let fleet = identity.fleet.or(record.map(|record| record.fleet));
        let state = record.map_or(MemberState::Seeking { ready: None }, |record| MemberState::Holding {
            record,
            ready: None,
            leave: Leave::No,
            expired: false,
        });
        Member { identity, fleet, state, hello: Hello { serial: 0, awaited: false }, refused: None }
    }

    /// Returns the member for a registrar that was restarted while the server was fenced. The server stays fenced
    /// until it restarts.
    pub const fn fenced(identity: MemberIdentity, seen: Point) -> Member {
        Member {
            identity,
            fleet: identity.fleet,
            state: MemberState::Fenced { seen },
            hello: Hello { serial: 0, awaited: false },
            refused: None,
        }
    }

    /// Returns the record that the witness must contain, or `None` if the witness must be void.
    pub const fn record(&self) -> Option<&Record> {
        if let MemberState::Holding { record, .. } = &self.state { Some(record) } else { None }
    }

    /// Returns whether the server has a worker ID, and which IDs it may issue.
    pub fn standing(&self) -> MemberStanding {
        match &self.state {
            MemberState::Seeking { .. } => MemberStanding::Seeking,
            MemberState::Fenced { seen } => MemberStanding::Fenced { seen: *seen },
            MemberState::Holding { record: Record { node, start, bound, used, .. }, .. } => {
                MemberStanding::Holding(Grant { node: *node, start: *start, bound: *bound, used: *used })
            }
        }
    }

    /// Returns the fleet that the server belongs to, or `None` if it is not known yet.
    pub const fn fleet(&self) -> Option<Uuid> {
        self.fleet
    }

    /// Returns the reason why the registry refused the last call, or `None` if it did not refuse it.
    pub const fn refused(&self) -> Option<RegistryRefusal> {
        self.refused
    }

    /// Records that IDs below `mark` may be issued. Store the record in the witness before these IDs can be issued. If
    /// other processes raise the number in the witness directly, pass the number from the witness before you store the
    /// record.
    pub fn use_below(&mut self, mark: Mark) {
        if let MemberState::Holding { record, .. } = &mut self.state {
            record.used = record.used.max(mark);
        }
    }

    /// Returns the next call, or `None` if the server is fenced. `clock` is the time of the server's wall clock, and
    /// `lease` is the lease that the server requests. This function can change the record, which must then be stored
    /// before the call is sent.
    pub fn request(&mut self, clock: Point, lease: Duration) -> Option<Call> {
        let datacenter = self.identity.datacenter;
        let request = match &mut self.state {
            MemberState::Fenced { .. } => return None,
            MemberState::Seeking { ready: None } => self.hello.next(),
            // The nonce also serves as the identity of the holder. It is unique because the registry has generated it.
            MemberState::Seeking { ready: Some((life, nonce)) } => RegistryRequest::Claim(ClaimRequest {
                datacenter,
                holder: *nonce,
                life: *life,
                nonce: *nonce,
                clock,
                lease,
            }),
            MemberState::Holding { ready, leave: leave @ Leave::Next, .. } => match ready.take() {
                Some((life, nonce)) => {
                    *leave = Leave::Claimed(nonce);
                    RegistryRequest::Claim(ClaimRequest { datacenter, holder: nonce, life, nonce, clock, lease })
                }
                None => self.hello.next(),
            },
            MemberState::Holding { record, ready, .. } => {
                record.pending = record.pending.or_else(|| ready.take().map(|(_, nonce)| nonce));
                match record.pending {
                    None => self.hello.next(),
                    Some(next_nonce) => RegistryRequest::Renew(RenewRequest {
                        datacenter,
                        worker: record.node.worker,
                        holder: record.holder,
                        count: record.count,
                        life: record.life,
                        nonce: record.nonce,
                        next_nonce,
                        start: record.start,
                        bound: record.bound,
                        clock,
                        lease,
                    }),
                }
            }
        };
        Some(Call { fleet: self.fleet, format: self.identity.format, request })
    }

    /// Processes the answer to a call that this server has sent. An answer can arrive late or twice.
    pub fn answer(&mut self, call: &Call, answer: &RegistryAnswer) -> Effect {
        let effect = match (&call.request, answer) {
            (RegistryRequest::Hello { serial }, RegistryAnswer::Hello { fleet, life, nonce })
                if self.hello.takes(*serial) =>
            {
                self.greeted(*fleet, *life, *nonce)
            }
            (RegistryRequest::Claim(claim), RegistryAnswer::Claimed { .. }) => self.claimed(claim, answer),
            (RegistryRequest::Renew(renew), RegistryAnswer::Renewed { nonce, .. }) if *nonce == renew.next_nonce => {
                self.renewed(answer)
            }
            (RegistryRequest::Renew(renew), RegistryAnswer::Lost(loss)) if self.awaits(renew) => {
                self.lost(renew, *loss)
            }
            (RegistryRequest::Renew(renew), RegistryAnswer::Conflict { seen }) if self.awaits(renew) => {
                self.state = MemberState::Fenced { seen: *seen };
                Effect::Fenced
            }
            (request, RegistryAnswer::Refused(refusal)) => self.refused_by(request, *refusal),
            _ => Effect::Ignored,
        };
        match effect {
            Effect::Ignored => {}
            Effect::Refused(refusal) => self.refused = Some(refusal),
            _ => self.refused = None,
        }
        effect
    }

    /// Returns true if the server awaits the answer to this renewal.
    fn awaits(&self, renew: &RenewRequest) -> bool {
        self.record().is_some_and(|record| record.holder == renew.holder && record.pending == Some(renew.next_nonce))
    }

    fn greeted(&mut self, fleet: Uuid, life: u64, nonce: Uuid) -> Effect {
        if self.fleet.is_some_and(|known| known != fleet) {
            return Effect::Ignored;
        }
        match &mut self.state {
            MemberState::Seeking { ready } if ready.is_none() => *ready = Some((life, nonce)),
            MemberState::Holding { record, ready, leave, .. } if record.pending.is_none() || *leave == Leave::Next => {
                *ready = Some((life, nonce));
            }
            _ => return Effect::Ignored,
        }
        self.fleet = Some(fleet);
        Effect::Continue
    }

    fn claimed(&mut self, claim: &ClaimRequest, answer: &RegistryAnswer) -> Effect {
        let (
            RegistryAnswer::Claimed { worker, nonce, count, life, start, bound },
            Some(fleet),
            MemberState::Seeking { ready: Some((_, ready)) }
            | MemberState::Holding { leave: Leave::Claimed(ready), .. },
        ) = (*answer, self.fleet, &self.state)
        else {
            return Effect::Ignored;
        };
        let node = Node { datacenter: claim.datacenter, worker };
        if nonce != claim.nonce || nonce != *ready || self.identity.format.layout.stamp(node).is_err() {
            return Effect::Ignored;
        }
        let format = self.identity.format;
        let (holder, pending, used) = (claim.holder, None, Mark::NOTHING_ISSUED);
        let record = Record { fleet, format, node, holder, nonce, pending, count, life, start, bound, used };
        self.state = MemberState::Holding { record, ready: None, leave: Leave::No, expired: false };
        Effect::Assigned
    }

    fn renewed(&mut self, answer: &RegistryAnswer) -> Effect {
        let RegistryAnswer::Renewed { nonce, count, life, bound, leave } = *answer else { return Effect::Ignored };
        let MemberState::Holding { record, leave: next, expired, .. } = &mut self.state else { return Effect::Ignored };
        if record.pending != Some(nonce) {
            return Effect::Ignored;
        }
        *record = Record { nonce, pending: None, count, life, bound: record.bound.max(bound), ..*record };
        *next = if leave { Leave::Next } else { Leave::No };
        *expired = false;
        Effect::Renewed
    }

    /// Gives up the grant. However, if only the registry's clock has passed the bound, the server keeps the grant and
    /// claims a worker ID. No other server is granted IDs up to the bound, and the registry's clock may be wrong. The
    /// nonce stays pending, because the registry might accept a copy of the renewal after its clock is corrected.
    fn lost(&mut self, renew: &RenewRequest, loss: Loss) -> Effect {
        match &mut self.state {
            MemberState::Holding { leave, expired, .. }
                if loss == Loss::Expired && !renew.bound.passed(renew.clock) =>
            {
                *leave = Leave::Next;
                *expired = true;
                Effect::Continue
            }
            state => {
                *state = MemberState::Seeking { ready: None };
                Effect::Lost(loss)
            }
        }
    }

    fn refused_by(&mut self, request: &RegistryRequest, refusal: RegistryRefusal) -> Effect {
        let awaited = match (request, &self.state) {
            (RegistryRequest::Hello { .. }, _) => true,
            (RegistryRequest::Claim(claim), MemberState::Seeking { ready: Some((_, nonce)) })
            | (RegistryRequest::Claim(claim), MemberState::Holding { leave: Leave::Claimed(nonce), .. }) => {
                *nonce == claim.nonce
            }
            (RegistryRequest::Renew(renew), _) => self.awaits(renew),
            (RegistryRequest::Claim(_), _) => false,
        };
        if !awaited {
            return Effect::Ignored;
        }
        match (request, &mut self.state) {
            // A server whose claim was refused calls `hello` again.
            (RegistryRequest::Claim(_), MemberState::Seeking { ready }) => *ready = None,
            // The server keeps its worker ID and renews the grant.
            (RegistryRequest::Claim(_), MemberState::Holding { leave, expired, .. }) => {
                *leave = Leave::No;
                if !*expired {
                    return Effect::Continue;
                }
            }
            // A refused renewal is repeated unchanged, because the registry may have answered an earlier copy of it.
            _ => {}
        }
        Effect::Refused(refusal)
    }
}
