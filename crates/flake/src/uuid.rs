//! IDs as UUIDs of version 8 (RFC 9562, <https://www.rfc-editor.org/rfc/rfc9562#section-5.8>), for programs that require UUIDs.
//!
//! Version 8 leaves all bits to the application, except those of the version and the variant. The 63 bits of an ID are the first
//! of these bits, and the other 59 are 0, so UUIDs sort in the same order as the IDs.

use core::error::Error;
use core::fmt;

/// The bytes of a UUID.
pub type UuidBytes = [u8; 16];

/// The version, in the upper half of byte 6.
const VERSION: u128 = 8;
/// The variant of RFC 9562, in the upper two bits of byte 8.
const VARIANT: u128 = 0b10;

/// Where the lowest bit of the version and of the variant are, counted from the lowest bit of the UUID.
const VERSION_SHIFT: u32 = 76;
const VARIANT_SHIFT: u32 = 62;

/// How many bits of the ID are before the version, between the version and the variant, and after the variant.
const BITS: [u32; 3] = [48, 12, 3];
/// Where the lowest of these bits are in the UUID.
const SHIFTS: [u32; 3] = [80, 64, 59];

/// The reason why a UUID is not an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UuidError {
    /// The UUID does not have the variant of RFC 9562.
    Variant,
    /// The UUID has another version.
    Version {
        /// The version, from 0 to 15.
        version: u8,
    },
    /// A bit after the ID is not 0.
    Rest,
}

impl fmt::Display for UuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UuidError::Variant => f.write_str("the UUID does not have the variant of RFC 9562"),
            UuidError::Version { version } => {
                write!(f, "the UUID has version {version}, but the UUID of an ID has version {VERSION}")
            }
            UuidError::Rest => write!(f, "the last {} bits of the UUID are not 0", SHIFTS[2]),
        }
    }
}

impl Error for UuidError {}

/// Returns the UUID of an ID, or `None` for a negative number, which is not an ID.
pub fn to_uuid(id: i64) -> Option<UuidBytes> {
    let mut rest = u128::try_from(id).ok()?;
    let mut uuid = VERSION << VERSION_SHIFT | VARIANT << VARIANT_SHIFT;
    for (bits, shift) in BITS.into_iter().zip(SHIFTS).rev() {
        uuid |= (rest & mask(bits)) << shift;
        rest >>= bits;
    }
    Some(uuid.to_be_bytes())
}

/// Returns the ID of a UUID that [`to_uuid`] returned. Any other UUID is an error.
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
    // Together, these are 63 bits.
    Ok(BITS.into_iter().zip(SHIFTS).fold(0, |id, (bits, shift)| id << bits | (uuid >> shift & mask(bits)) as i64))
}

/// Returns a number whose lowest `bits` bits are 1, and whose other bits are 0.
const fn mask(bits: u32) -> u128 {
    (1 << bits) - 1
}
