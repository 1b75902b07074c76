//! Remainders by a number that seldom changes, without the slow division of 64-bit words.

/// A divisor with its reciprocal. Exact for every 64-bit dividend.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Modulus {
    divisor: u64,
    /// (2^64 - 1) / divisor: the estimated quotient is then too small by 1 at most.
    reciprocal: u64,
}

impl Modulus {
    /// Remainders by the length of a list. Without members every remainder lies outside of it.
    pub(super) fn new(length: usize) -> Self {
        let divisor = length as u64;
        Self { divisor, reciprocal: u64::MAX.checked_div(divisor).unwrap_or(0) }
    }

    /// `dividend` modulo the divisor.
    #[inline]
    pub(super) fn of(self, dividend: u64) -> usize {
        let quotient = (u128::from(dividend) * u128::from(self.reciprocal)) >> 64;
        let rest = dividend.wrapping_sub((quotient as u64).wrapping_mul(self.divisor));
        let rest = if rest >= self.divisor { rest - self.divisor } else { rest };
        rest as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges() {
        for length in [1, 2, 3, 7, 100, 65_537, u32::MAX as usize, usize::MAX] {
            let modulus = Modulus::new(length);
            let near = length as u64;
            for dividend in [0, 1, near - 1, near, near.wrapping_add(1), u64::MAX - 1, u64::MAX] {
                assert_eq!(modulus.of(dividend) as u64, dividend % near, "{dividend} mod {length}");
            }
        }
        assert_eq!([0, 7].map(|dividend| Modulus::new(0).of(dividend)), [0, 7]);
    }

    proptest! {
        #[test]
        fn agrees_with_division(length in 1_usize.., dividend: u64) {
            prop_assert_eq!(Modulus::new(length).of(dividend) as u64, dividend % length as u64);
            let short = length % 1000 + 1;
            prop_assert_eq!(Modulus::new(short).of(dividend) as u64, dividend % short as u64);
        }
    }
}
