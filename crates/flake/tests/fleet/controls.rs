//! Each kind of random worlds detects a missing rule, and each kind of failure is detected. The exhaustive search has a control
//! for every rule.

use crate::faults::FleetFault;
use crate::world::FleetWorld;
use crate::worlds;

#[track_caller]
fn caught(fault: FleetFault, kinds: &[&str], expected: &str) {
    worlds::caught::<FleetWorld>(fault, kinds, expected);
}

#[test]
fn worlds_of_all_kinds_without_a_rule_are_caught() {
    caught(FleetFault::ClaimMargin, &[], "ahead of a clock");
    caught(FleetFault::Repeated, &[], "fenced without a copy");
    caught(FleetFault::Copied, &[], "two servers hold one worker ID");
    caught(FleetFault::AdoptAbsent, &[], "displaced");
    caught(FleetFault::Quarantine, &[], "duplicate");
}

#[test]
fn worlds_of_one_kind_without_a_rule_are_caught() {
    caught(FleetFault::Used, &["machines"], "duplicate");
    // After a failover that loses its row, a server with a bound above every lease is refused, unless it does not call.
    caught(FleetFault::Wanted, &["failovers"], "refused");
    caught(FleetFault::Wanted, &["edges"], "duplicate");
    caught(FleetFault::Wanted, &["clocks"], "a worker ID is lost");
    caught(FleetFault::Expired, &["failovers in a row"], "duplicate");
    caught(FleetFault::Before, &["opened"], "duplicate");
    caught(FleetFault::LayoutBack, &["layouts"], "duplicate");
}

#[test]
fn bursts_upgrades_and_dumps_without_a_rule_are_caught() {
    caught(FleetFault::SliceSeen, &["bursts", "bursts and backups"], "duplicate");
    caught(FleetFault::SystemSettled, &["bursts", "bursts and backups"], "duplicate");
    caught(FleetFault::UpgradeUnnoticed, &["upgrades", "upgrades and backups"], "duplicate");
    caught(FleetFault::TablesSettled, &["dumps", "dumps and backups"], "duplicate");
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
