//! IDs as UUIDs: each ID has one UUID of version 8, which sorts like the ID. Any other UUID is refused with the reason.

mod common;

use common::{digits, forall, ids};
use flake::{UuidError, from_uuid, to_uuid};
use proptest::prelude::*;

fn uuid(id: i64) -> [u8; 16] {
    to_uuid(id).expect("an ID has a UUID")
}

/// The UUID of an ID, bit by bit as RFC 9562 draws version 8: 48 bits, the version, 12 bits, the variant, and 62 bits.
fn drawn(id: i64) -> u128 {
    let bits = digits(id as u64, 63);
    let text = format!("{}1000{}10{}{}", &bits[..48], &bits[48..60], &bits[60..], "0".repeat(59));
    u128::from_str_radix(&text, 2).expect("128 bits")
}

#[test]
fn an_id_is_a_uuid_of_version_8_and_comes_back() {
    forall(20_000, ids(), |id| {
        prop_assert_eq!(u128::from_be_bytes(uuid(id)), drawn(id));
        prop_assert_eq!(from_uuid(uuid(id)), Ok(id));
        // A negative number has no UUID.
        prop_assert_eq!(to_uuid(-1 - id), None);
        Ok(())
    });
    // These never change.
    assert_eq!(u128::from_be_bytes(uuid(0)), 0x0000_0000_0000_8000_8000_0000_0000_0000);
    assert_eq!(u128::from_be_bytes(uuid(1_541_815_603_606_036_480)), 0x2acb_423e_c42f_8400_8000_0000_0000_0000);
    assert_eq!(u128::from_be_bytes(uuid(i64::MAX)), 0xffff_ffff_ffff_8fff_b800_0000_0000_0000);
}

#[test]
fn uuids_sort_like_their_ids() {
    forall(20_000, (ids(), ids()), |(one, other)| {
        for (one, other) in [(one, other), (one, one.saturating_add(1))] {
            prop_assert_eq!(uuid(one).cmp(&uuid(other)), one.cmp(&other));
        }
        Ok(())
    });
}

#[test]
fn every_other_uuid_is_refused() {
    forall(20_000, any::<u128>(), |bits| {
        let other = bits.to_be_bytes();
        prop_assert!(from_uuid(other).is_ok_and(|id| uuid(id) == other) || from_uuid(other).is_err());
        Ok(())
    });
    forall(2_000, (ids(), 0..128u32), |(id, bit)| {
        let other = u128::from_be_bytes(uuid(id)) ^ 1 << bit;
        let read = from_uuid(other.to_be_bytes());
        match bit {
            62 | 63 => prop_assert_eq!(read, Err(UuidError::Variant)),
            76..80 => prop_assert_eq!(read, Err(UuidError::Version { version: 8 ^ 1 << (bit - 76) })),
            0..59 => prop_assert_eq!(read, Err(UuidError::Rest)),
            _ => prop_assert!(read.is_ok_and(|read| read != id)),
        }
        Ok(())
    });
}
