//! Each rule is needed: without it, random worlds fail. `directed` has the rules that random worlds do not need often enough.

use crate::faults::Fault;
use crate::world::World;
use crate::worlds;

#[track_caller]
fn caught(fault: Fault, kinds: &[&str], expected: &str) {
    worlds::caught::<World>(fault, kinds, expected);
}

#[test]
fn a_claim_without_a_rule_is_caught() {
    caught(Fault::ClaimMargin, &[], "ahead of a clock");
    caught(Fault::ClaimClock, &[], "ahead of a clock");
    caught(Fault::RingFloor, &[], "duplicate");
    caught(Fault::SparesFloor, &[], "duplicate");
    caught(Fault::SpareSeen, &[], "duplicate");
}

#[test]
fn a_renewal_without_a_rule_is_caught() {
    caught(Fault::Repeated, &[], "fenced without a copy");
    caught(Fault::GivenAway, &[], "duplicate");
    caught(Fault::Copied, &[], "two servers hold one worker ID");
    // After a failover that loses its row, a server with a bound above every lease is refused, unless it does not call.
    caught(Fault::Wanted, &["failovers"], "refused");
    caught(Fault::Wanted, &["edges"], "duplicate");
    caught(Fault::Wanted, &["clocks"], "a worker ID is lost");
    caught(Fault::Expired, &["failovers in a row"], "duplicate");
}

#[test]
fn an_adoption_without_a_rule_is_caught() {
    caught(Fault::AdoptLower, &[], "fenced without a copy");
    caught(Fault::AdoptAbsent, &[], "displaced");
    caught(Fault::AdoptLater, &[], "displaced");
    // A forged call would use the missing rule to displace a server.
    caught(Fault::AdoptAny, &["failovers", "failovers in a row", "bursts"], "duplicate");
}

#[test]
fn a_discontinuity_without_a_rule_is_caught() {
    caught(Fault::Source, &[], "duplicate");
    caught(Fault::Quarantine, &[], "duplicate");
    caught(Fault::Far, &[], "duplicate");
    caught(Fault::Jump, &[], "duplicate");
    caught(Fault::Stale, &[], "duplicate");
    caught(Fault::OpenAll, &[], "duplicate");
    caught(Fault::Before, &["opened"], "duplicate");
    caught(Fault::LayoutFloor, &[], "duplicate");
    caught(Fault::LayoutQuarantine, &[], "duplicate");
    caught(Fault::LayoutBack, &["layouts"], "duplicate");
}

#[test]
fn a_spare_worker_id_without_a_rule_is_caught() {
    let all = &["bursts", "bursts and backups"];
    caught(Fault::SpareLease, all, "duplicate");
    caught(Fault::Near, all, "duplicate");
    caught(Fault::NearFloor, all, "duplicate");
    caught(Fault::SliceFixed, all, "duplicate");
    caught(Fault::SliceWindow, all, "duplicate");
    caught(Fault::Calm, all, "duplicate");
    caught(Fault::SliceSeen, all, "duplicate");
    caught(Fault::SliceLater, all, "duplicate");
    caught(Fault::SystemSettled, all, "duplicate");
    let upgrades = &["upgrades", "upgrades and backups"];
    caught(Fault::UpgradeNear, upgrades, "duplicate");
    caught(Fault::UpgradeSettled, upgrades, "duplicate");
    caught(Fault::UpgradeOpen, upgrades, "duplicate");
    caught(Fault::UpgradeUnnoticed, upgrades, "duplicate");
}

#[test]
fn a_restore_of_tables_without_a_rule_is_caught() {
    let all = &["dumps", "dumps and backups"];
    caught(Fault::Tables, all, "duplicate");
    caught(Fault::TablesOpen, all, "duplicate");
    caught(Fault::TablesSettled, all, "duplicate");
}

#[test]
fn a_reservation_without_a_rule_is_caught() {
    caught(Fault::Reserved, &["reservations"], "duplicate");
    caught(Fault::ReservedOnce, &["reservations", "reservations and bursts"], "duplicate");
}

#[test]
fn a_forged_call_without_a_rule_is_caught() {
    caught(Fault::ForgedStart, &["forged calls"], "displaced");
    caught(Fault::ForgedBound, &["forged calls"], "a worker ID is lost");
    caught(Fault::ForgedCount, &["forged calls and failovers", "forged calls and bursts"], "refused");
    caught(Fault::Late, &["forged calls and failovers", "forged calls and bursts"], "duplicate");
}

#[test]
fn a_server_without_a_rule_is_caught() {
    caught(Fault::PendingChanged, &[], "fenced without a copy");
    caught(Fault::PendingNotStored, &[], "fenced without a copy");
    caught(Fault::Bound, &[], "duplicate");
    caught(Fault::Start, &[], "duplicate");
    caught(Fault::Used, &["machines"], "duplicate");
    caught(Fault::WitnessOnDisk, &[], "fenced without a copy");
}
