//! Format-preserving encryption: FF1 with AES, as in NIST SP 800-38G (<https://doi.org/10.6028/NIST.SP.800-38G>).
//!
//! FF1 encrypts a string of digits as another string with the same number of digits. The crate `fpe` contains the rounds of FF1,
//! and the crate `aes` contains the block cipher. This file presents numbers to `fpe` as strings of digits. It does not use the
//! strings in `fpe`, because one of them allocates memory in every round, and the other one accepts only whole bytes, whereas an ID
//! has 63 bits.

use core::error::Error;
use core::fmt;

use aes::{Aes128Enc, Aes192Enc, Aes256Enc};
use fpe::ff1::{FF1, NumeralString, NumeralStringError, Operations};

/// The lengths that a key can have, in bytes: those of AES-128, AES-192 and AES-256.
pub const KEY_LENGTHS: [usize; 3] = [16, 24, 32];

/// The reason why bytes are not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidKey {
    /// The length of the key is not one of [`KEY_LENGTHS`].
    Length {
        /// The length of the key in bytes.
        length: usize,
    },
    /// Every byte of the key is a hexadecimal digit in ASCII, so the key is probably the text form of a shorter key. [`Ff1`]
    /// accepts such a key, as the standard does, and [`Concealer`](crate::Concealer) does not.
    Hexadecimal {
        /// The length of the key in bytes, which is the number of digits.
        length: usize,
    },
}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidKey::Length { length } => {
                let [short, middle, long] = KEY_LENGTHS;
                write!(f, "the key has {length} bytes, but a key has {short}, {middle} or {long} bytes")
            }
            InvalidKey::Hexadecimal { length } => {
                write!(f, "the key consists of {length} hexadecimal digits instead of the bytes that they represent")
            }
        }
    }
}

impl Error for InvalidKey {}

/// A permutation of the numbers that have `LENGTH` digits in base `RADIX`. A key selects the permutation.
///
/// `RADIX` is between 2 and 65,536, and half of the digits fit into 64 bits. The compiler checks both:
///
/// ```compile_fail
/// flake::Ff1::<65_537, 5>::new(&[0; 16]).unwrap();
/// ```
///
/// ```compile_fail
/// flake::Ff1::<65_536, 8>::new(&[0; 16]).unwrap();
/// ```
///
/// The standard requires at least a million numbers.
///
/// ```
/// let ff1 = flake::Ff1::<65_536, 5>::new(&[0; 16]).unwrap();
/// assert_eq!(ff1.encrypt(b"", 1).and_then(|number| ff1.decrypt(b"", number)), Some(1));
/// ```
pub struct Ff1<const RADIX: u32, const LENGTH: usize>(Cipher);

/// The rounds with the block cipher that the length of the key selects. FF1 only encrypts blocks, even to decrypt a number.
enum Cipher {
    Aes128(FF1<Aes128Enc>),
    Aes192(FF1<Aes192Enc>),
    Aes256(FF1<Aes256Enc>),
}

impl<const RADIX: u32, const LENGTH: usize> Ff1<RADIX, LENGTH> {
    /// Returns the permutation that a key of 16, 24 or 32 bytes selects.
    pub fn new(key: &[u8]) -> Result<Self, InvalidKey> {
        const {
            // `fpe` reports an invalid base only together with the key, so the error would look like a key of the wrong
            // length.
            assert!(RADIX >= 2 && RADIX <= 1 << 16, "the base must be from 2 to 65,536");
            // The larger half. The value does not exist if it needs more than 64 bits.
            let _ = Digits::<RADIX, LENGTH>::RIGHT_NUMBERS;
        }
        let invalid = InvalidKey::Length { length: key.len() };
        let cipher = match key.len() {
            16 => FF1::new(key, RADIX).map(Cipher::Aes128),
            24 => FF1::new(key, RADIX).map(Cipher::Aes192),
            32 => FF1::new(key, RADIX).map(Cipher::Aes256),
            _ => return Err(invalid),
        };
        cipher.map(Ff1).map_err(|_| invalid)
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

/// Returns the number of a string of digits, or `None` if there are fewer numbers than the standard requires.
fn number_of<const RADIX: u32, const LENGTH: usize>(
    digits: Result<Digits<RADIX, LENGTH>, NumeralStringError>,
) -> Option<u128> {
    digits.ok().map(|digits| digits.0)
}

/// A string of `LENGTH` digits, as the number that it represents.
struct Digits<const RADIX: u32, const LENGTH: usize>(u128);

impl<const RADIX: u32, const LENGTH: usize> Digits<RADIX, LENGTH> {
    /// How many digits the left half has.
    const LEFT: usize = LENGTH / 2;
    /// How many digits the right half has.
    const RIGHT: usize = LENGTH - Self::LEFT;
    /// How many numbers a left half can represent. The compiler evaluates this, and fails if the number has more than 64 bits.
    const LEFT_NUMBERS: u64 = (RADIX as u64).pow(Self::LEFT as u32);
    /// How many numbers a right half can represent.
    const RIGHT_NUMBERS: u64 = (RADIX as u64).pow(Self::RIGHT as u32);
    /// How many numbers all digits can represent.
    const NUMBERS: u128 = Self::LEFT_NUMBERS as u128 * Self::RIGHT_NUMBERS as u128;

    /// Returns the digits of a number, or `None` if it has more digits.
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
    /// How many digits this half has.
    digits: usize,
}

impl<const RADIX: u32, const LENGTH: usize> Half<RADIX, LENGTH> {
    /// Replaces the number by the result of `change`, which gets the number, the output of a round, and how many numbers the
    /// digits can represent. The output is reduced to these numbers.
    fn changed(self, output: impl Iterator<Item = u8>, change: impl Fn(u128, u128, u128) -> u128) -> Self {
        // At most 12 bytes: 4 more than a half needs, which has at most 8.
        let output = output.fold(0u128, |number, byte| number << 8 | u128::from(byte));
        let within = |numbers: u64| {
            let numbers = u128::from(numbers);
            (change(u128::from(self.number), output % numbers, numbers) % numbers) as u64
        };
        // In each branch, the divisor is a constant. With base 2, the compiler replaces the division by a bit mask.
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

/// The last bytes of a number.
struct Bytes {
    all: [u8; 8],
    length: usize,
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.all[self.all.len() - self.length..]
    }
}
