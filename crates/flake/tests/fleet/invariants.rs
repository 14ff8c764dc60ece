//! The invariants that the random worlds and the exhaustive search check after each step: for example, no two servers issue the same ID.

use std::collections::{BTreeMap, BTreeSet};

use flake::Node;
use flake::fleet::{Call, Grant, Moment, Point, RegistryAnswer, RegistryRequest, Uuid};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FleetFailure {
    /// Two servers issued this ID.
    Duplicate { id: i64 },
    /// Two servers could issue the same IDs, if their clocks showed these times.
    Overlap { first: HolderSpan, second: HolderSpan },
    /// A server without a copy was fenced.
    Fenced,
    /// A server lost its worker ID before its bound had passed.
    Displaced,
    /// The registry takes what a server says for what no answer can have contained.
    Refused,
    /// A worker ID was granted from a point that a clock has not reached.
    Ahead,
    /// A server is stuck although everything works again.
    Stuck(&'static str),
}

impl FleetFailure {
    /// The kind of the failure, which a shorter trace must share.
    pub fn kind(&self) -> &'static str {
        match self {
            FleetFailure::Duplicate { .. } | FleetFailure::Overlap { .. } => "duplicate",
            FleetFailure::Fenced => "fenced without a copy",
            FleetFailure::Displaced => "displaced",
            FleetFailure::Refused => "refused",
            FleetFailure::Ahead => "ahead of a clock",
            FleetFailure::Stuck(what) => what,
        }
    }
}

/// The IDs that a holder could issue so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HolderSpan {
    holder: Uuid,
    /// True for IDs of the second layout.
    second: bool,
    node: Node,
    start: i64,
    bound: i64,
}

/// Who issued an ID. A server without a holder can issue nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IssuedBy {
    pub server: usize,
    pub holder: Option<Uuid>,
}

#[derive(Clone, Default, Hash)]
pub struct Checks {
    pub failure: Option<FleetFailure>,
    issued: BTreeMap<i64, IssuedBy>,
    spans: Vec<HolderSpan>,
    /// The holders whose memory was copied.
    pub copied: BTreeSet<Uuid>,
    pub grants: usize,
    /// The claims that were answered.
    claims: BTreeSet<(Uuid, u64)>,
}

impl Checks {
    pub fn fail(&mut self, failure: FleetFailure) {
        self.failure.get_or_insert(failure);
    }

    pub fn issued(&mut self, id: i64, issuer: IssuedBy) {
        if let Some(other) = self.issued.insert(id, issuer) {
            // Two copies of a memory can issue the same IDs until they meet the registry.
            let copies = other.holder == issuer.holder
                && other.server != issuer.server
                && issuer.holder.is_some_and(|holder| self.copied.contains(&holder));
            if !copies {
                self.fail(FleetFailure::Duplicate { id });
            }
        }
    }

    pub fn granted(&mut self, holder: Uuid, second: bool, grant: &Grant) {
        self.grants += 1;
        let span = HolderSpan { holder, second, node: grant.node, start: grant.start.id(), bound: grant.bound.id() };
        let place = self
            .spans
            .iter()
            .position(|other| other.holder == holder && other.second == second && other.node == grant.node);
        // IDs of different layouts have their nodes in different positions, so these spans must not overlap at all.
        let overlap = self.spans.iter().find(|other| {
            other.holder != holder
                && (other.second != second || other.node == grant.node)
                && other.start <= span.bound
                && span.start <= other.bound
        });
        if let Some(first) = overlap.copied() {
            self.fail(FleetFailure::Overlap { first, second: span });
        }
        match place {
            Some(place) => self.spans[place] = HolderSpan { bound: span.bound.max(self.spans[place].bound), ..span },
            None => self.spans.push(span),
        }
    }

    /// A database with a reserved worker ID issues no more IDs.
    pub fn ended(&mut self, holder: Uuid, now: Point) {
        for span in self.spans.iter_mut().filter(|span| span.holder == holder) {
            span.bound = span.start.max(now.id());
        }
    }

    pub fn fenced(&mut self, holder: Option<Uuid>) {
        if !holder.is_some_and(|holder| self.copied.contains(&holder)) {
            self.fail(FleetFailure::Fenced);
        }
    }

    /// A server has lost its grant. `now` is later than any clock of the registry.
    pub fn lost(&mut self, holder: Option<Uuid>, grant: &Grant, floor: Point, now: Point) {
        let copied = holder.is_some_and(|holder| self.copied.contains(&holder));
        if !copied && grant.start >= floor && !grant.bound.passed(now) {
            self.fail(FleetFailure::Displaced);
        }
    }

    pub fn answer(&mut self, moment: &Moment, call: &Call, answer: &RegistryAnswer) {
        if let (RegistryRequest::Claim(claim), RegistryAnswer::Claimed { start, count, .. }) = (&call.request, answer) {
            // A repeated claim gets the same answer, and can show another clock.
            let first = self.claims.insert((claim.nonce, *count));
            if first && !(start.passed(moment.now) && start.passed(claim.clock)) {
                self.fail(FleetFailure::Ahead);
            }
        }
    }
}
