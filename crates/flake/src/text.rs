//! IDs as strings: 13 digits of Crockford's base 32 (<https://www.crockford.com/base32.html>), most significant digit
//! first.
//!
//! The string for an ID always has 13 characters. The strings sort in the same order as the IDs, as long as
//! digits sort before letters and letters sort alphabetically. The strings contain no letters that look like digits,
//! because people read them. They contain no punctuation, because they are used in URLs.

use core::error::Error;
use core::fmt;

/// The number of digits. Each digit has 5 bits and an ID has 63 bits, so the first digit is at most `7`.
pub const TEXT_LENGTH: usize = 13;

/// Crockford's alphabet. It does not contain I, L and O, which look like digits, and it does not contain U.
const ALPHABET: [u8; 32] = *b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The number of bits in a digit.
const DIGIT_BITS: u32 = 5;

/// The reason why a string is not an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// The string is too short.
    Short {
        /// The length of the string in bytes.
        length: usize,
    },
    /// The string is too long.
    Long,
    /// The string contains a character that is not a digit in upper or lower case, and that does not look like a digit.
    Digit {
        /// The position of the character, counted from 1. All earlier characters are digits, so the position is correct
        /// in every encoding.
        position: usize,
        /// The character, or its first byte if the character is not ASCII.
        byte: u8,
    },
    /// The number has more than 63 bits, because its first digit is above `7`.
    TooLarge,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TextError::Short { length } => {
                write!(f, "the text has {length} characters, but the text of an ID has {TEXT_LENGTH}")
            }
            TextError::Long => write!(f, "the text has more than {TEXT_LENGTH} characters"),
            TextError::Digit { position, byte } if byte.is_ascii_graphic() => {
                write!(f, "character {position} is \"{}\", which is not a base-32 digit", char::from(byte))
            }
            TextError::Digit { position, .. } => write!(f, "character {position} is not a base-32 digit"),
            TextError::TooLarge => {
                f.write_str("the number has more than 63 bits, because the first character is above \"7\"")
            }
        }
    }
}

impl Error for TextError {}

/// Returns the string for an ID, or `None` if the number is negative.
pub fn to_text(id: i64) -> Option<[u8; TEXT_LENGTH]> {
    let mut rest = u64::try_from(id).ok()?;
    let mut text = [0; TEXT_LENGTH];
    for digit in text.iter_mut().rev() {
        *digit = ALPHABET[(rest % ALPHABET.len() as u64) as usize];
        rest >>= DIGIT_BITS;
    }
    Some(text)
}

/// Returns the ID for a string in any ASCII-based encoding. Upper-case and lower-case letters are equivalent, `I` and
/// `L` are read as 1, and `O` is read as 0. Any other character is an error.
pub fn from_text(text: &[u8]) -> Result<i64, TextError> {
    let mut id = 0u128;
    for (before, &byte) in text.iter().enumerate() {
        if before == TEXT_LENGTH {
            return Err(TextError::Long);
        }
        let value = value(byte).ok_or(TextError::Digit { position: before + 1, byte })?;
        // 13 digits have 65 bits. This type is wider, so that numbers that are too large are detected.
        id = id << DIGIT_BITS | u128::from(value);
    }
    match text.len() {
        TEXT_LENGTH => i64::try_from(id).map_err(|_| TextError::TooLarge),
        length => Err(TextError::Short { length }),
    }
}

/// Returns the value of a character that represents a digit, or `None` if it does not represent one.
fn value(byte: u8) -> Option<u64> {
    let digit = match byte.to_ascii_uppercase() {
        b'I' | b'L' => b'1',
        b'O' => b'0',
        upper => upper,
    };
    ALPHABET.iter().position(|known| *known == digit).map(|value| value as u64)
}
