//! Concealed IDs, for cases in which readers must not be able to learn from an ID when and where it was issued.
//!
//! A concealed ID is the encryption of an ID. Like the ID, it is a number of 63 bits, so it fits into a positive
//! `bigint`. Two different IDs never have the same concealed ID.

use crate::conceal_key::{InvalidKey, check_not_hexadecimal};
use crate::ff1::Ff1;
use crate::layout::Layout;

/// A permutation of the numbers from 0 to 2<sup>63</sup> - 1, which is selected by a key.
///
/// The permutation is FF1 of NIST SP 800-38G in base 2 with 63 digits, most significant bit first. A *tweak* selects a
/// different permutation for the same key. The tweak is not a secret. It consists of any number of bytes, including
/// none.
///
/// ```
/// use flake::Concealer;
///
/// let concealer = Concealer::new(b"sixteen-byte-key").unwrap();
/// let concealed = concealer.conceal(1_541_815_603_606_036_480, b"orders").unwrap();
/// assert_eq!(concealer.reveal(concealed, b"orders"), Some(1_541_815_603_606_036_480));
/// assert_ne!(concealer.reveal(concealed, b"invoices"), Some(1_541_815_603_606_036_480));
/// assert_eq!(concealer.conceal(-1, b"orders"), None);
/// ```
pub struct Concealer(Ff1<2, { Layout::MAX_BITS as usize }>);

impl Concealer {
    /// Returns the permutation for a key of 16, 24 or 32 bytes.
    ///
    /// A key that consists only of hexadecimal digits in ASCII is an error, because it is probably the text form of the
    /// key.
    pub fn new(key: &[u8]) -> Result<Concealer, InvalidKey> {
        let cipher = Ff1::new(key)?;
        check_not_hexadecimal(key)?;
        Ok(Concealer(cipher))
    }

    /// Returns the concealed ID for an ID, or `None` if the number is negative.
    pub fn conceal(&self, id: i64, tweak: &[u8]) -> Option<i64> {
        self.0.encrypt(tweak, u128::try_from(id).ok()?).and_then(|number| i64::try_from(number).ok())
    }

    /// Returns the ID for a concealed ID, or `None` if the number is negative.
    ///
    /// Every other number is the concealed ID of some ID. If the key or the tweak is wrong, the result is a different
    /// ID, not an error.
    pub fn reveal(&self, concealed: i64, tweak: &[u8]) -> Option<i64> {
        self.0.decrypt(tweak, u128::try_from(concealed).ok()?).and_then(|number| i64::try_from(number).ok())
    }
}
