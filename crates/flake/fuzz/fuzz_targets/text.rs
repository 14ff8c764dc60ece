//! Any bytes are an ID or refused, and equal IDs have equal texts.
#![no_main]

use flake::{TEXT_LENGTH, from_text, to_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(id) = from_text(bytes) else { return };
    assert_eq!(bytes.len(), TEXT_LENGTH);
    let text = to_text(id).expect("what is read is not negative");
    assert_eq!(from_text(&text), Ok(id));
    // In upper case it differs only where a letter is read as the digit that it resembles.
    for (read, written) in bytes.to_ascii_uppercase().into_iter().zip(text) {
        assert!(read == written || matches!((read, written), (b'I' | b'L', b'1') | (b'O', b'0')));
    }
});
