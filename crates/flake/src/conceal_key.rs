//! Which keys [`Ff1`](crate::Ff1) and [`Concealer`](crate::Concealer) accept.

use core::error::Error;
use core::fmt;

/// The valid key lengths in bytes, for AES-128, AES-192 and AES-256.
pub const KEY_LENGTHS: [usize; 3] = [16, 24, 32];

/// The reason why a key is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidKey {
    /// The length of the key is not one of [`KEY_LENGTHS`].
    Length {
        /// The length of the key in bytes.
        length: usize,
    },
    /// All bytes of the key are ASCII hexadecimal digits, so the key is probably the text form of a shorter key.
    /// [`Ff1`](crate::Ff1) accepts such a key, as the standard does. [`Concealer`](crate::Concealer) does not.
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

/// Returns an error if the length of the key is not one of [`KEY_LENGTHS`].
pub fn check_length(key: &[u8]) -> Result<(), InvalidKey> {
    match KEY_LENGTHS.contains(&key.len()) {
        true => Ok(()),
        false => Err(InvalidKey::Length { length: key.len() }),
    }
}

/// Returns an error if the key consists only of ASCII hexadecimal digits. The caller has probably passed the text form
/// of the key, which would select a different permutation. Of the 256 values of a byte, 22 are such digits, so a random
/// key of 16 bytes is refused with probability (22 / 256)<sup>16</sup> = 8.8 * 10<sup>-18</sup>, which is below
/// 2<sup>-56</sup>. For a longer key, the probability is even lower.
pub fn check_not_hexadecimal(key: &[u8]) -> Result<(), InvalidKey> {
    match key.iter().all(u8::is_ascii_hexdigit) {
        true => Err(InvalidKey::Hexadecimal { length: key.len() }),
        false => Ok(()),
    }
}
