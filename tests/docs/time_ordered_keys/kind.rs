//! The kinds of keys on docs/time-ordered-keys.md, with keys that well-kept libraries make.

use cluster::hex;
use fastrand::Rng;
use svix_ksuid::{Ksuid, KsuidLike};
use ulid::Ulid;
use uuid::Builder;

use crate::time_ordered_keys::block_of;

/// The first second of KSUIDs, in seconds since 1970.
pub const KSUID_EPOCH: u64 = 1_400_000_000;

/// The form of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Ulid,
    Uuidv7,
    Ksuid,
    ObjectId,
}

/// A form of key in a column type, in the order of the functions on the page.
#[derive(Clone, Copy, Debug)]
pub struct KeyKind {
    pub format: Format,
    /// The type of the column.
    pub column: &'static str,
}

/// All kinds, in the order of the page.
pub const KINDS: [KeyKind; 8] = [
    KeyKind { format: Format::Ulid, column: "text" },
    KeyKind { format: Format::Ulid, column: "uuid" },
    KeyKind { format: Format::Ulid, column: "bytea" },
    KeyKind { format: Format::Uuidv7, column: "uuid" },
    KeyKind { format: Format::Ksuid, column: "text" },
    KeyKind { format: Format::Ksuid, column: "bytea" },
    KeyKind { format: Format::ObjectId, column: "text" },
    KeyKind { format: Format::ObjectId, column: "bytea" },
];

impl KeyKind {
    /// Returns the kind with this format and column type.
    pub fn of(format: Format, column: &str) -> KeyKind {
        KINDS.into_iter().find(|kind| kind.format == format && kind.column == column).expect("a kind of the page")
    }

    /// Returns the page's function for this kind.
    pub fn function(self) -> String {
        let title = match self.format {
            Format::Ulid => "ULID",
            Format::Uuidv7 => "UUIDv7",
            Format::Ksuid => "KSUID",
            Format::ObjectId => "ObjectId",
        };
        block_of(title, &format!("key_time(key {})", self.column))
    }

    /// Returns the number of milliseconds in which the key counts time.
    pub fn unit(self) -> u64 {
        if matches!(self.format, Format::Ulid | Format::Uuidv7) { 1 } else { 1_000 }
    }

    /// Returns the first and the last time that a key can contain, in milliseconds since 1970.
    pub fn range(self) -> (u64, u64) {
        let seconds = u64::from(u32::MAX);
        match self.format {
            Format::Ulid | Format::Uuidv7 => (0, (1 << 48) - 1),
            Format::Ksuid => (KSUID_EPOCH * 1_000, (KSUID_EPOCH + seconds) * 1_000),
            Format::ObjectId => (0, seconds * 1_000),
        }
    }

    /// Returns a key of this time, in milliseconds since 1970, as text that PostgreSQL reads. `rest` is the rest of the key.
    pub fn key(self, ms: u64, rest: u128) -> String {
        let seconds = |epoch: u64| u32::try_from(ms / 1_000 - epoch).expect("a time that the key can contain");
        let random = rest.to_be_bytes();
        match (self.format, self.column) {
            (Format::Ulid, "text") => Ulid::from_parts(ms, rest).to_string(),
            (Format::Ulid, "uuid") => hex(&Ulid::from_parts(ms, rest).to_bytes()),
            (Format::Ulid, _) => format!("\\x{}", hex(&Ulid::from_parts(ms, rest).to_bytes())),
            (Format::Uuidv7, _) => {
                let random = random[..10].try_into().expect("ten bytes");
                Builder::from_unix_timestamp_millis(ms, random).into_uuid().to_string()
            }
            (Format::Ksuid, "text") => Ksuid::new_raw(seconds(KSUID_EPOCH), Some(&random)).to_string(),
            (Format::Ksuid, _) => format!("\\x{}", hex(Ksuid::new_raw(seconds(KSUID_EPOCH), Some(&random)).bytes())),
            (Format::ObjectId, column) => {
                let prefix = if column == "text" { "" } else { "\\x" };
                format!("{prefix}{}{}", hex(&seconds(0).to_be_bytes()), hex(&random[..8]))
            }
        }
    }

    /// Returns a random key of this time.
    pub fn random(self, ms: u64, random: &mut Rng) -> String {
        self.key(ms, random.u128(..))
    }

    /// Returns keys that are malformed, as text that PostgreSQL reads.
    pub fn malformed(self) -> Vec<String> {
        let usual = self.key(1_700_000_000_000, u128::MAX / 3);
        let shorter = usual[..usual.len() - 2].to_string();
        let mut malformed = match self.column {
            "text" => {
                let other = |place: usize, letter: &str| format!("{}{letter}{}", &usual[..place], &usual[place + 1..]);
                let mut all =
                    vec![String::new(), usual.clone() + "0", usual.clone() + "\n", other(3, "-"), other(3, "ü")];
                match self.format {
                    // No ULID begins with a digit above 7, and no KSUID is above the last.
                    Format::Ulid => all.extend(["I", "L", "O", "U", "i", "l", "o", "u"].map(|letter| other(3, letter))),
                    Format::Ksuid => all.push("aWgEPTl1tmebfsQzFP4bxwgy80W".into()),
                    _ => all.push(other(3, "g")),
                }
                if self.format == Format::Ulid {
                    all.push(other(0, "8"));
                }
                all.push(shorter);
                all
            }
            "bytea" => vec!["\\x".into(), usual.clone() + "00", shorter],
            _ => Vec::new(),
        };
        if self.format == Format::Uuidv7 {
            malformed.extend(
                ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"].map(String::from),
            );
            malformed.extend([usual.replacen("-7", "-4", 1), usual.replacen("-7", "-1", 1)]);
        }
        malformed
    }
}
