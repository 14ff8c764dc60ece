//! Format-preserving encryption: FF1 with AES, as specified in NIST SP 800-38G
//! (<https://doi.org/10.6028/NIST.SP.800-38G>).
//!
//! FF1 encrypts a string of digits as a different string with the same number of digits. The crate `fpe` implements the
//! rounds of FF1, and the crate `aes` implements the block cipher. This file passes numbers to `fpe` as strings of
//! digits. It does not use the string types in `fpe`: one of them allocates memory in every round, and the other one
//! accepts only whole bytes, but an ID has 63 bits.

use aes::{Aes128Enc, Aes192Enc, Aes256Enc};
use fpe::ff1::{FF1, NumeralString, NumeralStringError, Operations};

use crate::conceal_key::{InvalidKey, check_length};

/// A permutation of the numbers that have `LENGTH` digits in base `RADIX`. A key selects the permutation.
///
/// `RADIX` must be between 2 and 65,536, and half of the digits must fit into 64 bits. The compiler checks both
/// conditions:
///
/// ```compile_fail
/// flake::Ff1::<65_537, 5>::new(&[0; 16]).unwrap();
/// ```
///
/// ```compile_fail
/// flake::Ff1::<65_536, 8>::new(&[0; 16]).unwrap();
/// ```
///
/// The standard requires at least a million different numbers.
///
/// ```
/// let ff1 = flake::Ff1::<65_536, 5>::new(&[0; 16]).unwrap();
/// assert_eq!(ff1.encrypt(b"", 1).and_then(|number| ff1.decrypt(b"", number)), Some(1));
/// ```
pub struct Ff1<const RADIX: u32, const LENGTH: usize>(Cipher);

/// The rounds of FF1. The key length determines the block cipher. FF1 only encrypts blocks, even when it decrypts a
/// number.
enum Cipher {
    Aes128(FF1<Aes128Enc>),
    Aes192(FF1<Aes192Enc>),
    Aes256(FF1<Aes256Enc>),
}

impl<const RADIX: u32, const LENGTH: usize> Ff1<RADIX, LENGTH> {
    /// Returns the permutation for a key of 16, 24 or 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self, InvalidKey> {
        const {
            // `fpe` checks the base only together with the key, so an invalid base would look like a key of the wrong
            // length.
            assert!(RADIX >= 2 && RADIX <= 1 << 16, "the base must be from 2 to 65,536");
            // The right half is the larger one. If its numbers need more than 64 bits, compilation fails here.
            let _ = Digits::<RADIX, LENGTH>::RIGHT_NUMBERS;
        }
        check_length(key)?;
        let cipher = match key.len() {
            16 => FF1::new(key, RADIX).map(Cipher::Aes128),
            24 => FF1::new(key, RADIX).map(Cipher::Aes192),
            _ => FF1::new(key, RADIX).map(Cipher::Aes256),
        };
        cipher.map(Ff1).map_err(|_| InvalidKey::Length { length: key.len() })
    }

    /// Encrypts a number. Returns `None` if the number has more than `LENGTH` digits.
    pub fn encrypt(&self, tweak: &[u8], number: u128) -> Option<u128> {
        let digits = Digits::<RADIX, LENGTH>::of(number)?;
        number_of(match &self.0 {
            Cipher::Aes128(ff1) => ff1.encrypt(tweak, &digits),
            Cipher::Aes192(ff1) => ff1.encrypt(tweak, &digits),
            Cipher::Aes256(ff1) => ff1.encrypt(tweak, &digits),
        })
    }

    /// Decrypts a number. Returns `None` if the number has more than `LENGTH` digits.
    pub fn decrypt(&self, tweak: &[u8], number: u128) -> Option<u128> {
        let digits = Digits::<RADIX, LENGTH>::of(number)?;
        number_of(match &self.0 {
            Cipher::Aes128(ff1) => ff1.decrypt(tweak, &digits),
            Cipher::Aes192(ff1) => ff1.decrypt(tweak, &digits),
            Cipher::Aes256(ff1) => ff1.decrypt(tweak, &digits),
        })
    }
}

/// Returns the number that a string of digits represents, or `None` if there are fewer numbers than the standard
/// requires.
fn number_of<const RADIX: u32, const LENGTH: usize>(
    digits: Result<Digits<RADIX, LENGTH>, NumeralStringError>,
) -> Option<u128> {
    digits.ok().map(|digits| digits.0)
}

/// A string of `LENGTH` digits, stored as the number that it represents.
struct Digits<const RADIX: u32, const LENGTH: usize>(u128);

impl<const RADIX: u32, const LENGTH: usize> Digits<RADIX, LENGTH> {
    /// The number of digits in the left half.
    const LEFT: usize = LENGTH / 2;
    /// The number of digits in the right half.
    const RIGHT: usize = LENGTH - Self::LEFT;
    /// How many different numbers the left half can represent. If this value needs more than 64 bits, compilation
    /// fails.
    const LEFT_NUMBERS: u64 = (RADIX as u64).pow(Self::LEFT as u32);
    /// How many different numbers the right half can represent.
    const RIGHT_NUMBERS: u64 = (RADIX as u64).pow(Self::RIGHT as u32);
    /// How many different numbers all digits together can represent.
    const NUMBERS: u128 = Self::LEFT_NUMBERS as u128 * Self::RIGHT_NUMBERS as u128;

    /// Returns the digits of a number, or `None` if the number has more than `LENGTH` digits.
    fn of(number: u128) -> Option<Self> {
        (number < Self::NUMBERS).then_some(Digits(number))
    }
}

impl<const RADIX: u32, const LENGTH: usize> NumeralString for Digits<RADIX, LENGTH> {
    type Ops = Half<RADIX, LENGTH>;

    fn is_valid(&self, radix: u32) -> bool {
        radix == RADIX
    }

    fn numeral_count(&self) -> usize {
        LENGTH
    }

    fn split(&self) -> (Self::Ops, Self::Ops) {
        let numbers = u128::from(Self::RIGHT_NUMBERS);
        let half = |number, digits| Half { number: number as u64, digits };
        (half(self.0 / numbers, Self::LEFT), half(self.0 % numbers, Self::RIGHT))
    }

    fn concat(left: Self::Ops, right: Self::Ops) -> Self {
        Digits(u128::from(left.number) * u128::from(Self::RIGHT_NUMBERS) + u128::from(right.number))
    }
}

/// One half of a string of `LENGTH` digits.
struct Half<const RADIX: u32, const LENGTH: usize> {
    /// The number that the digits of this half represent.
    number: u64,
    /// The number of digits in this half.
    digits: usize,
}

impl<const RADIX: u32, const LENGTH: usize> Half<RADIX, LENGTH> {
    /// Replaces the number with the result of `change`. The arguments of `change` are the number, the output of a
    /// round, and how many different numbers the digits can represent. The output is reduced modulo the last argument,
    /// and so is the result.
    fn changed(self, output: impl Iterator<Item = u8>, change: impl Fn(u128, u128, u128) -> u128) -> Self {
        // The output has at most 12 bytes: up to 8 bytes for the half, plus 4.
        let output = output.fold(0u128, |number, byte| number << 8 | u128::from(byte));
        let within = |numbers: u64| {
            let numbers = u128::from(numbers);
            (change(u128::from(self.number), output % numbers, numbers) % numbers) as u64
        };
        // In each branch, the divisor is a constant. In base 2, the compiler replaces the division with a bit mask.
        let number = match self.digits == Digits::<RADIX, LENGTH>::LEFT {
            true => within(Digits::<RADIX, LENGTH>::LEFT_NUMBERS),
            false => within(Digits::<RADIX, LENGTH>::RIGHT_NUMBERS),
        };
        Half { number, ..self }
    }
}

impl<const RADIX: u32, const LENGTH: usize> Operations for Half<RADIX, LENGTH> {
    type Bytes = Bytes;

    fn numeral_count(&self) -> usize {
        self.digits
    }

    fn to_be_bytes(&self, _: u32, length: usize) -> Bytes {
        Bytes { all: self.number.to_be_bytes(), length }
    }

    fn add_mod_exp(self, output: impl Iterator<Item = u8>, _: u32, _: usize) -> Self {
        self.changed(output, |number, output, _| number + output)
    }

    fn sub_mod_exp(self, output: impl Iterator<Item = u8>, _: u32, _: usize) -> Self {
        self.changed(output, |number, output, numbers| number + numbers - output)
    }
}

/// The last `length` bytes of a number, big-endian.
struct Bytes {
    all: [u8; 8],
    length: usize,
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.all[self.all.len() - self.length..]
    }
}
