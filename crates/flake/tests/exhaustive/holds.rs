//! With all rules, no state violates the invariants in `crates/flake/tests/fleet/invariants.rs`. The environment variable
//! `FLEET_DEPTH` adds steps to every search.

use crate::bounds::{
    BACKUPS, Bounds, CLOCKS, CUT, ENDS, FAILOVERS, FORGERIES, HOSTS, LATER, LAYOUTS, LOST_FORGERIES, MESSAGES, NUMBERS,
    OPENS, RESERVATIONS, ROWS, SERVERS, SLICES, SNAPSHOTS, SPARES, UPGRADES,
};
use crate::page;

fn thorough() -> bool {
    std::env::var("THOROUGH").is_ok_and(|value| value == "1")
}

#[track_caller]
fn hold(all: &[&Bounds]) {
    let more = std::env::var("FLEET_DEPTH").ok().map(|steps| steps.parse::<usize>().expect("FLEET_DEPTH is a number"));
    for bounds in all {
        let depth = if thorough() { bounds.thorough } else { bounds.depth };
        let extent = page::hold(bounds, depth + more.unwrap_or(0));
        if thorough() && more.is_none() {
            page::compare_row(bounds, extent);
        }
    }
}

#[test]
fn states_with_failovers_hold() {
    hold(&[&FAILOVERS, &ROWS]);
}

#[test]
fn states_with_spare_worker_ids_hold() {
    hold(&[&SPARES]);
}

#[test]
fn states_with_slices_hold() {
    hold(&[&SLICES, &LATER, &ENDS]);
}

#[test]
fn states_with_lost_and_delayed_messages_hold() {
    hold(&[&MESSAGES]);
}

#[test]
fn states_with_wrong_clocks_hold() {
    hold(&[&CLOCKS, &CUT, &HOSTS]);
}

#[test]
fn states_with_copied_and_restored_servers_hold() {
    hold(&[&SERVERS]);
}

#[test]
fn states_with_forged_calls_and_reservations_hold() {
    hold(&[&FORGERIES, &LOST_FORGERIES, &RESERVATIONS]);
}

#[test]
fn states_with_restored_registries_hold() {
    hold(&[&SNAPSHOTS, &BACKUPS]);
}

#[test]
fn states_with_an_administrator_hold() {
    hold(&[&OPENS]);
}

#[test]
fn states_with_changed_layouts_and_upgrades_hold() {
    hold(&[&LAYOUTS, &UPGRADES]);
}

#[test]
fn states_with_one_worker_id_for_each_server_hold() {
    hold(&[&NUMBERS]);
}
