//! The portable functions give the results of all vectors of `tests/vectors.json`.

use cluster::{Answer, assert_caught};

use crate::compare::{check_sql, vectors};
use crate::server::{script, spoilt, twin};

#[test]
fn every_vector_is_right_without_the_library() {
    let (_server, mut session) = twin("vectors", &script("vectors"));
    assert_eq!(session.one::<String>("SHOW shared_preload_libraries"), "");
    check_sql(&mut session, &vectors()).unwrap();
}

/// Mistakes in the script, each with the comparison that finds it.
const MISTAKES: [((&str, &str), &str); 4] = [
    (("((id >> shift) & max)", "((id >> (shift + 1)) & max)"), "the parts of an ID"),
    (("bits := '41:5:5:12'; epoch := 1420070400000", "bits := '41:5:5:12'"), "the named layouts"),
    (("STVWXYZ', ((id", "STVWXZY', ((id"), "texts"),
    (("WHEN t NOT BETWEEN 1 AND 62", "WHEN t NOT BETWEEN 0 AND 62"), "errors"),
];

#[test]
fn a_wrong_function_is_caught() {
    for (n, (mistake, reason)) in MISTAKES.into_iter().enumerate() {
        let name = format!("vectors_mistake_{n}");
        let (_server, mut session) = twin(&name, &spoilt(&name, mistake));
        assert_caught(check_sql(&mut session, &vectors()), reason);
    }
}
