//! Concealed IDs: each ID has one, which the key and the tweak reveal again, and which never changes.

mod common;

use std::collections::HashSet;

use common::{forall, ids};
use flake::{Concealer, InvalidKey, KEY_LENGTHS};
use proptest::collection::vec;
use proptest::prelude::*;

/// The tweaks and the IDs of [`FROZEN`].
const TWEAKS: [&[u8]; 3] = [b"", b"orders", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]];
const IDS: [i64; 5] = [0, 1, 1_541_815_603_606_036_480, 1_541_815_603_606_036_481, i64::MAX];

/// Concealed IDs that must never change: for each tweak, for each ID, with keys of 16, 24 and 32 bytes. The key is the bytes 0,
/// 1, 2 and so on. They were computed by a program that follows the text of SP 800-38G digit by digit and uses the AES of
/// OpenSSL.
const FROZEN: [[[i64; 3]; 5]; 3] = [
    [
        [6_851_524_406_231_690_879, 2_012_753_579_983_711_487, 8_644_528_584_386_371_073],
        [3_373_251_355_954_433_687, 1_653_220_174_412_529_428, 5_176_940_450_318_186_190],
        [8_684_110_301_830_119_334, 3_775_643_385_421_919_363, 6_467_605_951_157_813_666],
        [4_367_258_551_056_625_061, 1_350_807_734_559_546_015, 8_941_938_449_507_662_577],
        [3_637_629_429_729_561_053, 7_292_651_408_931_395_931, 4_244_600_280_903_827_775],
    ],
    [
        [3_600_749_431_916_019_212, 7_932_799_735_820_083_879, 6_432_511_827_321_561_684],
        [1_541_892_342_310_181_755, 177_883_415_750_122_017, 3_225_222_220_399_814_638],
        [1_015_805_449_848_187_201, 2_991_406_372_596_490_202, 2_273_933_634_932_179_949],
        [5_918_521_775_571_868_260, 3_811_256_069_319_282_188, 5_833_340_082_801_050_413],
        [5_735_283_039_704_491_447, 4_034_194_812_798_571_060, 2_934_272_710_623_533_476],
    ],
    [
        [7_856_839_922_363_898_623, 2_367_135_735_361_376_486, 4_205_737_226_777_845_826],
        [4_500_788_325_673_726_430, 5_356_859_940_540_610_361, 8_062_450_829_177_802_478],
        [633_452_205_249_835_038, 637_728_111_115_422_808, 2_641_616_084_195_818_812],
        [8_412_493_931_525_823_675, 1_711_919_586_229_546_926, 5_167_545_322_752_739_308],
        [8_631_850_945_810_159_524, 4_710_452_530_992_796_359, 4_625_190_480_460_902_890],
    ],
];

/// The longest key. The first bytes are a shorter one.
const BYTES: [u8; 32] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
    31,
];

fn concealer(key: &[u8]) -> Concealer {
    Concealer::new(key).expect("a key of a length that AES has")
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 16), vec(any::<u8>(), 24), vec(any::<u8>(), 32)]
}

fn tweaks() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..70)
}

#[test]
fn concealed_ids_never_change() {
    for (tweak, rows) in TWEAKS.into_iter().zip(FROZEN) {
        for (id, row) in IDS.into_iter().zip(rows) {
            for (length, concealed) in [16, 24, 32].into_iter().zip(row) {
                let concealer = concealer(&BYTES[..length]);
                assert_eq!(concealer.conceal(id, tweak), Some(concealed), "{length} {tweak:?} {id}");
                assert_eq!(concealer.reveal(concealed, tweak), Some(id), "{length} {tweak:?} {concealed}");
            }
        }
    }
}

#[test]
fn every_id_is_revealed_again() {
    forall(20_000, (keys(), tweaks(), ids()), |(key, tweak, id)| {
        let concealer = concealer(&key);
        let concealed = concealer.conceal(id, &tweak).expect("an ID");
        prop_assert!(concealed >= 0);
        prop_assert_eq!(concealer.reveal(concealed, &tweak), Some(id));
        // Every number from 0 is the concealed ID of some ID.
        let revealed = concealer.reveal(id, &tweak).expect("a concealed ID");
        prop_assert!(revealed >= 0);
        prop_assert_eq!(concealer.conceal(revealed, &tweak), Some(id));
        // A negative number is neither an ID nor a concealed ID.
        prop_assert_eq!((concealer.conceal(-1 - id, &tweak), concealer.reveal(-1 - id, &tweak)), (None, None));
        Ok(())
    });
}

#[test]
fn another_key_and_another_tweak_conceal_differently() {
    forall(5_000, (keys(), keys(), tweaks(), tweaks(), ids()), |(one, other, tweak, third, id)| {
        prop_assume!(one != other && tweak != third);
        let concealed = concealer(&one).conceal(id, &tweak);
        prop_assert_ne!(concealed, concealer(&other).conceal(id, &tweak));
        prop_assert_ne!(concealed, concealer(&one).conceal(id, &third));
        prop_assert_ne!(Some(id), concealer(&other).reveal(concealed.expect("an ID"), &tweak));
        Ok(())
    });
    // A tweak is not padded: a zero byte makes another tweak.
    let concealer = concealer(&BYTES[..16]);
    let padded: HashSet<_> = (0..40).map(|length| concealer.conceal(1, &vec![0; length])).collect();
    assert_eq!(padded.len(), 40);
}

#[test]
fn no_two_ids_have_the_same_concealed_id() {
    let concealer = concealer(&BYTES);
    // A server's consecutive IDs, and small numbers.
    let ids = (0..100_000).chain((0..100_000).map(|n| 1_541_815_603_606_036_480 + n));
    let concealed: HashSet<i64> = ids.map(|id| concealer.conceal(id, b"orders").expect("an ID")).collect();
    assert_eq!(concealed.len(), 200_000);
}

/// Each bit of the concealed IDs of consecutive IDs is set about half of the time, and changes with each bit of the ID about half
/// of the time.
#[test]
fn concealed_ids_show_nothing_of_their_order() {
    let concealer = concealer(&BYTES[..16]);
    let of = |id: i64| concealer.conceal(id, b"").expect("an ID");
    let first = 1_541_815_603_606_036_480;
    let (count, mut set, mut changed) = (10_000, [0; 63], [0; 63]);
    for id in first..first + count {
        let concealed = of(id);
        for bit in 0..63 {
            set[bit] += concealed >> bit & 1;
            changed[bit] += (concealed ^ of(id ^ 1 << bit)).count_ones();
        }
    }
    for bit in 0..63 {
        // Half of 10,000 is 5,000, and its standard deviation is 50.
        assert!((4_700..5_300).contains(&set[bit]), "bit {bit} is set {} times", set[bit]);
        // Half of 63 bits is 31.5.
        let mean = f64::from(changed[bit]) / count as f64;
        assert!((31.0..32.0).contains(&mean), "bit {bit} of an ID changes {mean} bits of the concealed ID");
    }
}

#[test]
fn a_key_has_the_length_of_a_key_of_aes() {
    for length in 0..100 {
        let key = Concealer::new(&vec![7; length]);
        match KEY_LENGTHS.contains(&length) {
            true => assert!(key.is_ok(), "{length}"),
            false => assert_eq!(key.err(), Some(InvalidKey::Length { length })),
        }
    }
}

#[test]
fn a_key_is_not_its_text_form() {
    let digits = *b"0123456789abcdefABCDEF0123456789";
    for length in KEY_LENGTHS {
        let key = &digits[..length];
        assert_eq!(Concealer::new(key).err(), Some(InvalidKey::Hexadecimal { length }));
        assert_eq!(Concealer::new(&key.to_ascii_uppercase()).err(), Some(InvalidKey::Hexadecimal { length }));
        // A single other byte, in any position, makes it a key. These are the neighbors of the digits in ASCII, and other bytes.
        for position in 0..length {
            for other in [b'/', b':', b'@', b'G', b'`', b'g', b' ', 0, 0x80, 0xff] {
                let mut key = key.to_vec();
                key[position] = other;
                assert!(Concealer::new(&key).is_ok(), "{other} at {position} of {length}");
            }
        }
    }
    // The length comes first, because another number of digits is not a key in any case.
    assert_eq!(Concealer::new(&digits[..20]).err(), Some(InvalidKey::Length { length: 20 }));
}
