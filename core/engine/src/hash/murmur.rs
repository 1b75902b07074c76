//! `MURMUR_HASH_2`: 64-bit MurmurHash2 as libstdc++ hashes bytes (section 17.5).

/// Seed of libstdc++'s `std::hash` for strings.
pub(crate) const SEED: u64 = 0xc70f_6907;

const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// The hash of some bytes.
pub(crate) fn murmur2(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let k = mix(u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
        hash = (hash ^ k).wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        let rest = tail.iter().rev().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
        hash = (hash ^ rest).wrapping_mul(MULTIPLIER);
    }
    mix(mix(hash).wrapping_mul(MULTIPLIER))
}

const fn mix(word: u64) -> u64 {
    word ^ word >> SHIFT
}
