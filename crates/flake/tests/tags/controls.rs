//! Each rule is needed: without it, random worlds fail. `directed` has the rules that random worlds do not need often enough.

use crate::faults::Fault;
use crate::world::World;
use crate::worlds;

/// Checks that worlds without one rule draw a number twice.
#[track_caller]
fn caught(fault: Fault, kinds: &[&str]) {
    worlds::caught::<World>(fault, kinds, "duplicate");
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
    caught(Fault::AnyGeneration, &["changes", "everything"]);
}

#[test]
fn a_tag_of_a_period_without_a_rule_is_caught() {
    caught(Fault::BeginSkip, &["periods", "periods and backups"]);
    caught(Fault::BeginEarly, &["periods", "periods and backups"]);
}
