//! docs/conceal.md for programs without the database: the method in Java computes the concealed IDs that the core computes, with Bouncy
//! Castle from Debian's package.

use cluster::{Chance, assert_caught, command, ensure, hex, page, repository, sections, typed};
use flake::Concealer;

use crate::page::check_parts;

/// The library of Debian's package.
const LIBRARY: &str = "/usr/share/java/bcprov.jar";

const PROGRAM: &str = "tests/clients/jvm/Conceal.java";

/// A call of the program with its arguments and with the result of the core.
struct ConcealCall {
    operation: &'static str,
    key: Vec<u8>,
    tweak: Vec<u8>,
    number: i64,
    expected: i64,
}

/// Returns calls with random numbers, and keys and tweaks of all lengths that AES and the functions accept.
fn calls() -> Vec<ConcealCall> {
    let mut chance = Chance::of("conceal_java");
    let bytes =
        |chance: &mut Chance, length: i64| (0..length).map(|_| chance.between(0, 255) as u8).collect::<Vec<u8>>();
    let calls = (0..300).map(|n| {
        let length = *chance.pick(&[16, 24, 32]);
        let key = bytes(&mut chance, length);
        let length = if chance.one_in(20) { 1_024 } else { chance.between(0, 40) };
        let tweak = bytes(&mut chance, length);
        let number = chance.between(0, i64::MAX) >> chance.between(0, 62);
        let concealer = Concealer::new(&key).expect("a key");
        let (operation, result) = match n % 2 {
            0 => ("conceal", concealer.conceal(number, &tweak)),
            _ => ("reveal", concealer.reveal(number, &tweak)),
        };
        ConcealCall { operation, key, tweak, number, expected: result.expect("a number that is not negative") }
    });
    calls.collect()
}

/// Checks that the program prints the results of the core.
fn check_results(calls: &[ConcealCall]) -> Result<(), String> {
    let line =
        |call: &ConcealCall| format!("{},{},{},{}\n", call.operation, hex(&call.key), hex(&call.tweak), call.number);
    let mut java = command("java");
    java.env_remove("JAVA_TOOL_OPTIONS").env_remove("JDK_JAVA_OPTIONS");
    java.args(["-cp", LIBRARY]).arg(repository().join(PROGRAM));
    let printed = typed(java, &calls.iter().map(line).collect::<String>())?;
    let results: Vec<&str> = printed.lines().collect();
    ensure!(results.len() == calls.len(), "{} results of {} calls", results.len(), calls.len());
    for (call, result) in calls.iter().zip(results) {
        ensure!(result == call.expected.to_string(), "{}{result}, not {}", line(call), call.expected);
    }
    Ok(())
}

#[test]
fn java_conceals_alike() {
    let mut calls = calls();
    check_results(&calls).unwrap();
    calls[7].tweak.push(0);
    assert_caught(check_results(&calls), ", not ");
}

#[test]
fn the_blocks_in_java_are_parts_of_the_program() {
    let blocks: Vec<(String, String)> = sections(&page("docs/conceal.md"))
        .into_iter()
        .flat_map(|section| section.blocks)
        .filter(|(language, _)| language == "java")
        .collect();
    assert_eq!(blocks.len(), 2);
    check_parts(&blocks, &page(PROGRAM)).unwrap();
    assert_caught(check_parts(&blocks, &page(PROGRAM).replace("62 - i", "i")), "does not contain this block");
}
