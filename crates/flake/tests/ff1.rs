//! FF1 against the examples that NIST has published, and against the strings of digits in crate `fpe`.

mod common;

use aes::{Aes128, Aes256};
use common::forall;
use flake::Ff1;
use fpe::ff1::{FF1, FlexibleNumeralString};
use proptest::collection::vec;
use proptest::prelude::*;

/// The key of the examples with AES-256. The keys of the other examples are its first 16 and 24 bytes.
const KEY: [u8; 32] = [
    0x2B, 0x7E, 0x15, 0x16, 0x28, 0xAE, 0xD2, 0xA6, 0xAB, 0xF7, 0x15, 0x88, 0x09, 0xCF, 0x4F, 0x3C, 0xEF, 0x43, 0x59,
    0xD8, 0xD5, 0x80, 0xAA, 0x4F, 0x7F, 0x03, 0x6D, 0x6F, 0x04, 0xFC, 0x6A, 0x94,
];

/// The tweaks of the examples: none, one for ten decimal digits, and one for 19 digits in base 36.
const TWEAKS: [&[u8]; 3] = [b"", b"9876543210", b"7777pqrs777"];

/// What NIST calls samples 1 to 9: length of the key, and the results for these tweaks. The texts are 0123456789 twice, and
/// 0123456789abcdefghi. Source: "FF1samples.pdf" among the examples of
/// <https://csrc.nist.gov/projects/cryptographic-standards-and-guidelines/example-values>.
const SAMPLES: [(usize, [&str; 3]); 3] = [
    (16, ["2433477484", "6124200773", "a9tv40mll9kdu509eum"]),
    (24, ["2830668132", "2496655549", "xbj3kv35jrawxv32ysr"]),
    (32, ["6657667009", "1001623463", "xs8a0azh2avyalyzuwd"]),
];

/// Encrypts and decrypts one of NIST's texts, which are numbers with `LENGTH` digits in base `RADIX`.
fn check_sample<const RADIX: u32, const LENGTH: usize>(key: &[u8], tweak: &[u8], text: &str, expected: &str) {
    let number = |text: &str| {
        assert_eq!(text.len(), LENGTH);
        u128::from_str_radix(text, RADIX).expect("a number")
    };
    let ff1 = Ff1::<RADIX, LENGTH>::new(key).expect("a key");
    assert_eq!(ff1.encrypt(tweak, number(text)), Some(number(expected)), "{expected}");
    assert_eq!(ff1.decrypt(tweak, number(expected)), Some(number(text)), "{expected}");
}

#[test]
fn the_examples_of_nist_are_met() {
    for (length, [plain, tweaked, letters]) in SAMPLES {
        let key = &KEY[..length];
        check_sample::<10, 10>(key, TWEAKS[0], "0123456789", plain);
        check_sample::<10, 10>(key, TWEAKS[1], "0123456789", tweaked);
        check_sample::<36, 19>(key, TWEAKS[2], "0123456789abcdefghi", letters);
    }
}

/// The digits of a number, most significant digit first.
fn digits(number: u128, radix: u128, length: usize) -> Vec<u16> {
    (0..length as u32).rev().map(|place| (number / radix.pow(place) % radix) as u16).collect()
}

/// Compares with the strings of digits in `fpe`, which know nothing of numbers.
fn check_digits<const RADIX: u32, const LENGTH: usize>(cases: u32) {
    let radix = u128::from(RADIX);
    let numbers = 0..radix.pow(LENGTH as u32);
    forall(cases, (vec(any::<u8>(), 32), vec(any::<u8>(), 0..40), numbers), |(key, tweak, number)| {
        let string = FlexibleNumeralString::from(digits(number, radix, LENGTH));
        for length in [16, 32] {
            let key = &key[..length];
            let ff1 = Ff1::<RADIX, LENGTH>::new(key).expect("a key");
            let (encrypted, decrypted) = match length {
                16 => {
                    let other = FF1::<Aes128>::new(key, RADIX).expect("a base");
                    (other.encrypt(&tweak, &string), other.decrypt(&tweak, &string))
                }
                _ => {
                    let other = FF1::<Aes256>::new(key, RADIX).expect("a base");
                    (other.encrypt(&tweak, &string), other.decrypt(&tweak, &string))
                }
            };
            let written = |number: Option<u128>| digits(number.expect("as many digits"), radix, LENGTH);
            prop_assert_eq!(written(ff1.encrypt(&tweak, number)), Vec::from(encrypted.expect("digits")));
            prop_assert_eq!(written(ff1.decrypt(&tweak, number)), Vec::from(decrypted.expect("digits")));
        }
        Ok(())
    });
}

#[test]
fn numbers_are_encrypted_like_strings_of_digits() {
    check_digits::<2, 63>(2_000);
    check_digits::<2, 64>(300);
    check_digits::<2, 20>(300);
    check_digits::<3, 41>(300);
    check_digits::<10, 19>(300);
    check_digits::<36, 7>(300);
    check_digits::<65_536, 5>(300);
}

#[test]
fn a_number_with_more_digits_is_refused() {
    let ff1 = Ff1::<10, 6>::new(&KEY).expect("a key");
    assert!(ff1.encrypt(b"", 999_999).is_some() && ff1.decrypt(b"", 999_999).is_some());
    assert_eq!((ff1.encrypt(b"", 1_000_000), ff1.decrypt(b"", 1_000_000)), (None, None));
    // The standard requires a million numbers.
    let few = Ff1::<10, 5>::new(&KEY).expect("a key");
    assert_eq!((few.encrypt(b"", 1), few.decrypt(b"", 1)), (None, None));
}
