//! Concealed IDs on a server are those that the core computes, and the tweak counts.

use cluster::{Builder, Chance, Cluster, assert_caught, ensure};
use flake::{Concealer, to_text};

/// Compares each function with the core, for random IDs, keys and tweaks.
fn check_functions(builder: Builder, name: &str) -> Result<(), String> {
    let (server, mut chance) = (builder.start(), Chance::of(name));
    let mut session = server.session();
    let functions = session
        .prepare(
            "SELECT snowflake_conceal($1, $2, $3), snowflake_conceal_text($1, $2, $3)::text,
                    snowflake_reveal($1, $2, $3), snowflake_reveal_text(snowflake_to_text($1), $2, $3)",
        )
        .expect("functions");
    let bytes =
        |chance: &mut Chance, length: i64| (0..length).map(|_| chance.between(0, 255) as u8).collect::<Vec<u8>>();
    for _ in 0..2_000 {
        let length = *chance.pick(&[16, 24, 32]);
        let key = bytes(&mut chance, length);
        let length = if chance.one_in(20) { 1_024 } else { chance.between(0, 40) };
        let tweak = bytes(&mut chance, length);
        let id = chance.between(0, i64::MAX) >> chance.between(0, 62);
        let row = session.query_one(&functions, &[&id, &key, &tweak]).map_err(|e| format!("{id}: {e:?}"))?;
        let concealer = Concealer::new(&key).expect("a key");
        let (concealed, revealed) = (concealer.conceal(id, &tweak), concealer.reveal(id, &tweak));
        let text = concealed.and_then(to_text).map(|text| String::from_utf8_lossy(&text).into_owned());
        ensure!(Some(row.get(0)) == concealed, "{id} is concealed with another tweak or key: {key:?}, {tweak:?}");
        ensure!(Some(row.get(1)) == text, "{id} has another text");
        ensure!(Some(row.get(2)) == revealed && Some(row.get(3)) == revealed, "{id} is revealed as another ID");
    }
    Ok(())
}

#[test]
fn concealed_ids_are_those_of_the_core() {
    check_functions(Cluster::builder("conceal"), "conceal").unwrap();
}

#[test]
fn a_tweak_that_is_ignored_is_caught() {
    let builder = Cluster::builder("conceal_fault").fault("TweakIgnored");
    assert_caught(check_functions(builder, "conceal_fault"), "is concealed with another tweak or key");
}
