//! Each rule is needed: without it, random worlds fail. `directed` has the rules that random worlds do not need often enough.

use crate::faults::FleetFault;
use crate::world::FleetWorld;
use crate::worlds;

#[track_caller]
fn caught(fault: FleetFault, kinds: &[&str], expected: &str) {
    worlds::caught::<FleetWorld>(fault, kinds, expected);
}

#[test]
fn a_claim_without_a_rule_is_caught() {
    caught(FleetFault::ClaimMargin, &[], "ahead of a clock");
    caught(FleetFault::ClaimClock, &[], "ahead of a clock");
    caught(FleetFault::RingFloor, &[], "duplicate");
    caught(FleetFault::SparesFloor, &[], "duplicate");
    caught(FleetFault::SpareSeen, &[], "duplicate");
}

#[test]
fn a_renewal_without_a_rule_is_caught() {
    caught(FleetFault::Repeated, &[], "fenced without a copy");
    caught(FleetFault::GivenAway, &[], "duplicate");
    caught(FleetFault::Copied, &[], "two servers hold one worker ID");
    // After a failover that loses its row, a server with a bound above every lease is refused, unless it does not call.
    caught(FleetFault::Wanted, &["failovers"], "refused");
    caught(FleetFault::Wanted, &["edges"], "duplicate");
    caught(FleetFault::Wanted, &["clocks"], "a worker ID is lost");
    caught(FleetFault::Expired, &["failovers in a row"], "duplicate");
}

#[test]
fn an_adoption_without_a_rule_is_caught() {
    caught(FleetFault::AdoptLower, &[], "fenced without a copy");
    caught(FleetFault::AdoptAbsent, &[], "displaced");
    caught(FleetFault::AdoptLater, &[], "displaced");
    // A forged call would use the missing rule to displace a server.
    caught(FleetFault::AdoptAny, &["failovers", "failovers in a row", "bursts"], "duplicate");
}

#[test]
fn a_discontinuity_without_a_rule_is_caught() {
    caught(FleetFault::Source, &[], "duplicate");
    caught(FleetFault::Quarantine, &[], "duplicate");
    caught(FleetFault::Far, &[], "duplicate");
    caught(FleetFault::Jump, &[], "duplicate");
    caught(FleetFault::Stale, &[], "duplicate");
    caught(FleetFault::OpenAll, &[], "duplicate");
    caught(FleetFault::Before, &["opened"], "duplicate");
    caught(FleetFault::LayoutFloor, &[], "duplicate");
    caught(FleetFault::LayoutQuarantine, &[], "duplicate");
    caught(FleetFault::LayoutBack, &["layouts"], "duplicate");
}

#[test]
fn a_spare_worker_id_without_a_rule_is_caught() {
    let all = &["bursts", "bursts and backups"];
    caught(FleetFault::SpareLease, all, "duplicate");
    caught(FleetFault::Near, all, "duplicate");
    caught(FleetFault::NearFloor, all, "duplicate");
    caught(FleetFault::SliceFixed, all, "duplicate");
    caught(FleetFault::SliceWindow, all, "duplicate");
    caught(FleetFault::Calm, all, "duplicate");
    caught(FleetFault::SliceSeen, all, "duplicate");
    caught(FleetFault::SliceLater, all, "duplicate");
    caught(FleetFault::SystemSettled, all, "duplicate");
    let upgrades = &["upgrades", "upgrades and backups"];
    caught(FleetFault::UpgradeNear, upgrades, "duplicate");
    caught(FleetFault::UpgradeSettled, upgrades, "duplicate");
    caught(FleetFault::UpgradeOpen, upgrades, "duplicate");
    caught(FleetFault::UpgradeUnnoticed, upgrades, "duplicate");
}

#[test]
fn a_restore_of_tables_without_a_rule_is_caught() {
    let all = &["dumps", "dumps and backups"];
    caught(FleetFault::Tables, all, "duplicate");
    caught(FleetFault::TablesOpen, all, "duplicate");
    caught(FleetFault::TablesSettled, all, "duplicate");
}

#[test]
fn a_reservation_without_a_rule_is_caught() {
    caught(FleetFault::Reserved, &["reservations"], "duplicate");
    caught(FleetFault::ReservedOnce, &["reservations", "reservations and bursts"], "duplicate");
}

#[test]
fn a_forged_call_without_a_rule_is_caught() {
    caught(FleetFault::ForgedStart, &["forged calls"], "displaced");
    caught(FleetFault::ForgedBound, &["forged calls"], "a worker ID is lost");
    caught(FleetFault::ForgedCount, &["forged calls and failovers", "forged calls and bursts"], "refused");
    caught(FleetFault::Late, &["forged calls and failovers", "forged calls and bursts"], "duplicate");
}

#[test]
fn a_server_without_a_rule_is_caught() {
    caught(FleetFault::PendingChanged, &[], "fenced without a copy");
    caught(FleetFault::PendingNotStored, &[], "fenced without a copy");
    caught(FleetFault::Bound, &[], "duplicate");
    caught(FleetFault::Start, &[], "duplicate");
    caught(FleetFault::Used, &["machines"], "duplicate");
    caught(FleetFault::WitnessOnDisk, &[], "fenced without a copy");
}
