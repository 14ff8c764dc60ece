//! Each rule is needed: without it, random worlds fail. `directed` has the rules that random worlds do not need often enough.

use crate::faults::TagFault;
use crate::world::TagWorld;
use crate::worlds;

/// Checks that worlds without one rule draw a number twice.
#[track_caller]
fn caught(fault: TagFault, kinds: &[&str]) {
    worlds::caught::<TagWorld>(fault, kinds, "duplicate");
}

#[test]
fn a_life_without_a_skip_is_caught() {
    caught(TagFault::Skip, &[]);
}

#[test]
fn a_skip_that_ignores_lost_lives_is_caught() {
    caught(TagFault::Steps, &["failovers in a row", "backups"]);
}

#[test]
fn a_give_back_without_a_rule_is_caught() {
    caught(TagFault::Nonce, &["undisturbed", "changes"]);
    caught(TagFault::Span, &[]);
}

#[test]
fn a_generation_without_a_rule_is_caught() {
    caught(TagFault::Generation, &["changes", "everything"]);
    caught(TagFault::GenerationClock, &["everything"]);
}

#[test]
fn a_word_that_ends_all_skips_is_caught() {
    caught(TagFault::OpenAll, &["opened", "everything"]);
}

#[test]
fn a_server_without_a_rule_is_caught() {
    caught(TagFault::AnyAnswer, &[]);
    caught(TagFault::OneNonce, &[]);
    caught(TagFault::UsedAfter, &[]);
    caught(TagFault::AnyGeneration, &["changes", "everything"]);
}

#[test]
fn a_tag_of_a_period_without_a_rule_is_caught() {
    caught(TagFault::BeginSkip, &["periods", "periods and backups"]);
    caught(TagFault::BeginEarly, &["periods", "periods and backups"]);
}
