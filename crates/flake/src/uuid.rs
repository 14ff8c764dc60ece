//! IDs as version 8 UUIDs (RFC 9562, <https://www.rfc-editor.org/rfc/rfc9562#section-5.8>), for programs that
//! require UUIDs.
//!
//! In version 8, the application chooses all bits except those of the version and the variant. The first 63 of these
//! bits contain the ID, and the other 59 bits are 0, so the UUIDs sort in the same order as the IDs.

use core::error::Error;
use core::fmt;

/// The bytes of a UUID.
pub type UuidBytes = [u8; 16];

/// The version, in the upper half of byte 6.
const VERSION: u128 = 8;
/// The variant of RFC 9562, in the upper two bits of byte 8.
const VARIANT: u128 = 0b10;

/// The positions of the lowest bit of the version and of the variant, counted from the lowest bit of the UUID.
const VERSION_SHIFT: u32 = 76;
const VARIANT_SHIFT: u32 = 62;

/// The numbers of ID bits before the version, between the version and the variant, and after the variant.
const BITS: [u32; 3] = [48, 12, 3];
/// The positions of the lowest bits of these parts in the UUID.
const SHIFTS: [u32; 3] = [80, 64, 59];

/// The reason why a UUID is not an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UuidError {
    /// The UUID does not have the variant of RFC 9562.
    Variant,
    /// The UUID has a different version.
    Version {
        /// The version, from 0 to 15.
        version: u8,
    },
    /// A bit after the bits of the ID is not 0.
    Rest,
}

impl fmt::Display for UuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UuidError::Variant => f.write_str("the UUID does not have the variant that RFC 9562 defines"),
            UuidError::Version { version } => {
                write!(f, "the UUID has version {version}, but an ID in UUID form has version {VERSION}")
            }
            UuidError::Rest => write!(f, "the last {} bits of the UUID are not 0", SHIFTS[2]),
        }
    }
}

impl Error for UuidError {}

/// Returns the UUID for an ID, or `None` if the number is negative.
pub fn to_uuid(id: i64) -> Option<UuidBytes> {
    let mut rest = u128::try_from(id).ok()?;
    let mut uuid = VERSION << VERSION_SHIFT | VARIANT << VARIANT_SHIFT;
    for (bits, shift) in BITS.into_iter().zip(SHIFTS).rev() {
        uuid |= (rest & mask(bits)) << shift;
        rest >>= bits;
    }
    Some(uuid.to_be_bytes())
}

/// Returns the ID for a UUID from [`to_uuid`]. Any other UUID is an error.
pub fn from_uuid(uuid: UuidBytes) -> Result<i64, UuidError> {
    let uuid = u128::from_be_bytes(uuid);
    let version = (uuid >> VERSION_SHIFT & mask(4)) as u8;
    if uuid >> VARIANT_SHIFT & mask(2) != VARIANT {
        return Err(UuidError::Variant);
    }
    if u128::from(version) != VERSION {
        return Err(UuidError::Version { version });
    }
    if uuid & mask(SHIFTS[2]) != 0 {
        return Err(UuidError::Rest);
    }
    // The three parts together have 63 bits.
    Ok(BITS.into_iter().zip(SHIFTS).fold(0, |id, (bits, shift)| id << bits | (uuid >> shift & mask(bits)) as i64))
}

/// Returns a mask of the lowest `bits` bits.
const fn mask(bits: u32) -> u128 {
    (1 << bits) - 1
}
