//! Renewals.

use core::time::Duration;

use crate::Node;

use crate::fleet::{
    COUNT_SLACK, Loss, Point, PointSpan, RegistryAnswer, RegistryRefusal, RenewRequest, Ring, SPARE_LEASE,
};

use super::{Registry, RegistryRow};

impl Registry {
    pub(super) fn renew(&mut self, now: Point, renew: &RenewRequest) -> RegistryAnswer {
        let node = Node { datacenter: renew.datacenter, worker: renew.worker };
        let row = self.rows.get(&node).copied();
        if renew.start < self.fleet.floor {
            // After this grant began, the layout was changed and then changed back. In the meantime, other servers were
            // granted the IDs above the grant's bound.
            return RegistryAnswer::Lost(Loss::GivenAway);
        }
        let own = row.filter(|row| row.holder == renew.holder);
        let matching = own.filter(|row| row.nonce == renew.nonce || row.nonce == renew.next_nonce);
        if matching.is_none() && self.implausible(now, renew) {
            return RegistryAnswer::Refused(RegistryRefusal::Implausible);
        }
        // A request with the row's nonce is always renewed, whatever other values it contains. The count is taken from
        // the row, and a bound that no server can have is lowered.
        let renew = RenewRequest {
            bound: renew.bound.min(self.latest_bound(now)),
            count: matching.map_or(renew.count, |row| row.count),
            ..*renew
        };
        if self.knows_more(&renew, row.as_ref()) {
            self.begin_life(now, self.fleet.source);
        }
        let life = self.fleet.life;
        let scale = self.scale();
        let margin = scale.margin();
        let adopted = row.is_none_or(|row| match row.holder == renew.holder {
            true => row.count < renew.count || (row.life < life && row.count == renew.count),
            false => row.life < life && row.bound.plus(margin) <= renew.start,
        });
        if matching.is_none() && !adopted {
            let conflict = |row: RegistryRow| RegistryAnswer::Conflict { seen: row.seen };
            return own.map_or(RegistryAnswer::Lost(Loss::GivenAway), conflict);
        }
        // A claim of this worker ID by a different server may have been lost if an earlier clock of the registry was
        // above the bound and one margin. That clock may be one margin ahead of this one, so the margin is already used
        // up. The bound in the row of a different holder does not limit this grant.
        let expired = match row {
            Some(row) if row.life == life => row.bound.max(renew.bound).plus(margin),
            _ => own.map_or(Point::ZERO, |row| row.bound).max(renew.bound),
        };
        if expired.passed(now) {
            return RegistryAnswer::Lost(Loss::Expired);
        }
        let lease = self.lease(renew.worker, renew.lease);
        let wanted = renew.clock.plus(lease).min(now.plus(lease).plus(margin));
        let repeated = matching.filter(|row| row.nonce == renew.next_nonce);
        // A forged call may have raised the count in the row of a different holder.
        let counted = row.map_or(0, |row| own.map_or(row.count.min(self.highest_count(now)), |own| own.count));
        let row = RegistryRow {
            holder: renew.holder,
            nonce: renew.next_nonce,
            count: repeated.map_or_else(|| counted.max(renew.count).saturating_add(1), |row| row.count),
            life,
            start: matching.map_or(renew.start, |row| row.start),
            bound: row.map_or(Point::ZERO, |row| row.bound).max(renew.bound).max(wanted),
            seen: now,
        };
        self.rows.insert(node, row);
        let leave = self.is_spare(renew.worker) && !self.in_quarantine(now);
        RegistryAnswer::Renewed { nonce: row.nonce, count: row.count, life, bound: row.bound, leave }
    }

    /// Returns how far above the server's clock a renewal can raise the bound of a worker ID. The lease of a spare worker
    /// ID is short so that its quarantine is short.
    pub(super) fn lease(&self, worker: u32, lease: Duration) -> PointSpan {
        self.scale().span(if self.is_spare(worker) { lease.min(SPARE_LEASE) } else { lease })
    }

    fn is_spare(&self, worker: u32) -> bool {
        worker >= Ring::of(&self.fleet.format.layout).spare
    }

    /// Returns true if a renewal shows that the registry has lost changes. A renewal of an earlier life does not show
    /// this, because the loss is already known.
    fn knows_more(&self, renew: &RenewRequest, row: Option<&RegistryRow>) -> bool {
        let life = self.fleet.life;
        let newer = |row: &RegistryRow| row.life < life || row.count < renew.count;
        renew.life > life || (renew.life == life && row.is_none_or(newer))
    }

    /// Returns true if no answer of this registry, including lost answers, can have contained the values in a renewal.
    /// Without this check, a forged call could take over the row of a running server, or make a worker ID unusable
    /// forever.
    fn implausible(&self, now: Point, renew: &RenewRequest) -> bool {
        !renew.start.passed(now.plus(self.scale().margin()))
            || self.latest_bound(now).passed(renew.bound)
            // The clock may have been set back by one margin since the claim.
            || renew.count > self.highest_count(now).saturating_add(COUNT_SLACK)
    }

    /// Returns the latest bound that can have been granted if the clock was one margin ahead.
    fn latest_bound(&self, now: Point) -> Point {
        now.plus(self.scale().far()).plus(self.scale().margin())
    }

    /// Returns the highest count that a worker ID can have reached: one for each second since the epoch, plus a reserve
    /// for clocks that differ.
    pub(super) fn highest_count(&self, now: Point) -> u64 {
        let seconds = (self.scale().time(now) - self.scale().time(Point::ZERO)) / 1_000_000;
        u64::try_from(seconds).unwrap_or(0).saturating_add(COUNT_SLACK)
    }
}
