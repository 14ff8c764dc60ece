//! Pseudorandom numbers for offsets and rests.

use crate::Nanos;

/// Spreads nearby times over all 64 bits. This is the finalizer of SplitMix64 (Steele, Lea, Flood 2014). It distributes
/// the low bits of an ID evenly, and is cheap enough for the hot path. The result is not a secret.
pub(crate) const fn scatter(now: Nanos) -> u64 {
    let mut x = now;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
