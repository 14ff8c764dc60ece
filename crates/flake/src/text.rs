//! IDs as text: 13 digits of Crockford's base 32 (<https://www.crockford.com/base32.html>), most significant first.
//!
//! Always 13, so that texts of equal length sort like the numbers wherever digits come before letters and letters in the
//! order of the alphabet. For people and URLs: no letter that looks like a digit, no punctuation, and no JavaScript number.

/// Digits of a text: enough of 5 bits for the 63 of an ID, the first of them being at most `7`.
pub const TEXT_LENGTH: usize = 13;

/// Crockford's alphabet: no I, L and O, which look like digits, and no U.
const ALPHABET: [u8; 32] = *b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Bits of a digit.
const DIGIT_BITS: u32 = 5;

/// Why a text is not an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextError {
    /// It ends too early.
    Short {
        /// Its length in bytes.
        length: usize,
    },
    /// It goes on after the last digit.
    Long,
    /// A character that is no digit, upper or lower case, and looks like none.
    Digit {
        /// Where it stands, the first being 1. Those before it are digits, so this counts characters in any encoding.
        position: usize,
        /// The character, or the first byte of one that is not ASCII.
        byte: u8,
    },
    /// The number has more than 63 bits, for its first digit is above `7`.
    TooLarge,
}

/// The text of an ID; `None` for a negative number, which is none.
pub fn to_text(id: i64) -> Option<[u8; TEXT_LENGTH]> {
    let mut rest = u64::try_from(id).ok()?;
    let mut text = [0; TEXT_LENGTH];
    for digit in text.iter_mut().rev() {
        *digit = ALPHABET[(rest % ALPHABET.len() as u64) as usize];
        rest >>= DIGIT_BITS;
    }
    Some(text)
}

/// The ID of a text in any ASCII-based encoding. Lower case is as good as upper, `I` and `L` are read as 1 and `O` as 0;
/// anything else is an error.
pub fn from_text(text: &[u8]) -> Result<i64, TextError> {
    let mut id = 0u128;
    for (before, &byte) in text.iter().enumerate() {
        if before == TEXT_LENGTH {
            return Err(TextError::Long);
        }
        let value = value(byte).ok_or(TextError::Digit { position: before + 1, byte })?;
        // Wider than the 65 bits of 13 digits, so that what is too large shows.
        id = id << DIGIT_BITS | u128::from(value);
    }
    match text.len() {
        TEXT_LENGTH => i64::try_from(id).map_err(|_| TextError::TooLarge),
        length => Err(TextError::Short { length }),
    }
}

/// What a character stands for as a digit.
fn value(byte: u8) -> Option<u64> {
    let digit = match byte.to_ascii_uppercase() {
        b'I' | b'L' => b'1',
        b'O' => b'0',
        upper => upper,
    };
    ALPHABET.iter().position(|known| *known == digit).map(|value| value as u64)
}
