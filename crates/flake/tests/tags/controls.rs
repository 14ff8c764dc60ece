//! Each rule is needed: without it, random worlds fail. `directed` has the rules that random worlds do not need often enough.

use crate::actions::WORLDS;
use crate::explore::{explore, run};
use crate::faults::Fault;
use crate::world::Setup;

/// Checks that worlds without one rule draw a number twice. The seed is fixed, so that the result is, too.
#[track_caller]
fn caught(fault: Fault, kinds: &[&str]) {
    let numbers: Vec<usize> =
        (0..WORLDS.len()).filter(|number| kinds.is_empty() || kinds.contains(&WORLDS[*number].0)).collect();
    match explore(fault, &numbers, 50_000, 1) {
        Ok(explored) => panic!("{fault:?}: nothing fails in {explored:?}"),
        Err(found) => {
            println!("{fault:?}: world {} fails: {:?} after {:?}", found.world, found.failure, found.trace);
            assert_eq!(found.failure.kind(), "duplicate", "{fault:?}: {found:?}");
            // The fault is the cause: with all rules, the same trace holds.
            let setup = Setup { fault: Fault::None, strict: true, ..found.setup };
            assert_eq!(run(setup, &found.trace).1, None, "{found:?}");
        }
    }
}

#[test]
fn a_life_without_a_skip_is_caught() {
    caught(Fault::Skip, &[]);
}

#[test]
fn a_skip_that_ignores_lost_lives_is_caught() {
    caught(Fault::Steps, &["failovers in a row", "backups"]);
}

#[test]
fn a_give_back_without_a_rule_is_caught() {
    caught(Fault::Nonce, &["undisturbed", "changes"]);
    caught(Fault::Span, &[]);
}

#[test]
fn a_generation_without_a_rule_is_caught() {
    caught(Fault::Generation, &["changes", "everything"]);
    caught(Fault::GenerationClock, &["everything"]);
}

#[test]
fn a_word_that_ends_all_skips_is_caught() {
    caught(Fault::OpenAll, &["opened", "everything"]);
}

#[test]
fn a_server_without_a_rule_is_caught() {
    caught(Fault::AnyAnswer, &[]);
    caught(Fault::OneNonce, &[]);
    caught(Fault::UsedAfter, &[]);
}

#[test]
fn a_tag_of_a_period_without_a_rule_is_caught() {
    caught(Fault::BeginSkip, &["periods", "periods and backups"]);
    caught(Fault::BeginEarly, &["periods", "periods and backups"]);
}
