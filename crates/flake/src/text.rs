//! IDs as text: 13 digits of Crockford's base 32 (<https://www.crockford.com/base32.html>), most significant first.
//!
//! A text always has 13 digits, so that texts sort like the numbers if digits sort before letters and letters in alphabetical
//! order. The text is for people, URLs and JavaScript: it has no letter that looks like a digit, and no punctuation.

/// The number of digits: each has 5 bits, and an ID has 63, so the first digit is at most `7`.
pub const TEXT_LENGTH: usize = 13;

/// Crockford's alphabet. It has no I, L and O, because they look like digits, and no U.
const ALPHABET: [u8; 32] = *b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Bits of a digit.
const DIGIT_BITS: u32 = 5;

/// Why a text is not an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// It is too short.
    Short {
        /// Its length in bytes.
        length: usize,
    },
    /// It is too long.
    Long,
    /// It contains a character that is not a digit in upper or lower case, and does not look like one.
    Digit {
        /// The position of the character, beginning with 1. All characters before it are digits, so the position is correct in any
        /// encoding.
        position: usize,
        /// The character, or the first byte of one that is not ASCII.
        byte: u8,
    },
    /// The number has more than 63 bits, because its first digit is above `7`.
    TooLarge,
}

/// The text of an ID. `None` for a negative number, which is not an ID.
pub fn to_text(id: i64) -> Option<[u8; TEXT_LENGTH]> {
    let mut rest = u64::try_from(id).ok()?;
    let mut text = [0; TEXT_LENGTH];
    for digit in text.iter_mut().rev() {
        *digit = ALPHABET[(rest % ALPHABET.len() as u64) as usize];
        rest >>= DIGIT_BITS;
    }
    Some(text)
}

/// The ID of a text in any ASCII-based encoding. Lower case is read like upper case, `I` and `L` are read as 1, and `O` is read as
/// 0. Any other character is an error.
pub fn from_text(text: &[u8]) -> Result<i64, TextError> {
    let mut id = 0u128;
    for (before, &byte) in text.iter().enumerate() {
        if before == TEXT_LENGTH {
            return Err(TextError::Long);
        }
        let value = value(byte).ok_or(TextError::Digit { position: before + 1, byte })?;
        // Wider than the 65 bits of 13 digits, so that numbers that are too large can be detected.
        id = id << DIGIT_BITS | u128::from(value);
    }
    match text.len() {
        TEXT_LENGTH => i64::try_from(id).map_err(|_| TextError::TooLarge),
        length => Err(TextError::Short { length }),
    }
}

/// The value of a character as a digit.
fn value(byte: u8) -> Option<u64> {
    let digit = match byte.to_ascii_uppercase() {
        b'I' | b'L' => b'1',
        b'O' => b'0',
        upper => upper,
    };
    ALPHABET.iter().position(|known| *known == digit).map(|value| value as u64)
}
