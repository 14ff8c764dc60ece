//! `tests/vectors.json`: IDs with their parts, as the core reads them, and input that it refuses. The SQL functions and
//! `decoder/snowflake.mjs` are compared with this file. `UPDATE=1 cargo nextest run -p flake --test vectors` writes it.

#[path = "vectors/generate.rs"]
mod generate;
#[path = "common/random.rs"]
mod random;

use std::fs;

/// The committed file.
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors.json");

/// Other tests, and readers, load the whole file.
const LARGEST_FILE: usize = 200_000;

/// Checks that a file has what the core makes.
fn check(committed: &str) -> Result<(), String> {
    let made = generate::file();
    for (number, (committed, made)) in committed.lines().zip(made.lines()).enumerate() {
        if committed != made {
            return Err(format!(
                "line {} differs.\nThe file has {committed}\nThe core has {made}\nUPDATE=1 cargo nextest run -p flake \
                 --test vectors writes the file",
                number + 1
            ));
        }
    }
    match committed == made {
        true => Ok(()),
        false => Err("the file has more or fewer lines than the core makes".into()),
    }
}

#[test]
fn the_committed_vectors_are_those_of_the_core() {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(PATH, generate::file()).expect("the file can be written");
    }
    let committed = fs::read_to_string(PATH).expect("the file can be read");
    assert!(committed.len() < LARGEST_FILE, "the file has {} bytes", committed.len());
    check(&committed).unwrap();
}

#[test]
fn a_wrong_vector_is_caught() {
    let file = generate::file();
    let id = "1541815603606036480\",\"created_at\"";
    assert_eq!(file.matches(id).count(), 1);
    let wrong = file.replace(id, "1541815603606036481\",\"created_at\"");
    assert!(check(&wrong).unwrap_err().contains("1541815603606036481"));
    let (without_end, _) = file.trim_end().rsplit_once('\n').unwrap();
    assert!(check(without_end).unwrap_err().contains("fewer lines"));
}
