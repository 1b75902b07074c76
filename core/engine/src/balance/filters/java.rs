//! Numbers as Java's library makes them: they decide which part of a list a client of Spring uses.

/// `String.hashCode`, without its sign bit.
fn text_hash(text: &str) -> u32 {
    let hash = text.encode_utf16().fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()));
    hash & 0x7fff_ffff
}

/// `java.util.Random`.
struct Random(u64);

impl Random {
    const MASK: u64 = (1 << 48) - 1;

    fn new(seed: u64) -> Self {
        Self((seed ^ 0x5_deec_e66d) & Self::MASK)
    }

    fn next31(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & Self::MASK;
        (self.0 >> 17) as u32
    }

    /// Below `bound`, which is 1 to 2^31 - 1.
    fn below(&mut self, bound: u32) -> u32 {
        if bound.is_power_of_two() {
            return ((u64::from(bound) * u64::from(self.next31())) >> 31) as u32;
        }
        loop {
            let bits = self.next31();
            let value = bits % bound;
            // What Java sees as an overflow would favour small numbers.
            if bits - value + (bound - 1) <= 0x7fff_ffff {
                return value;
            }
        }
    }
}

/// The part of `list` that the client `id` uses, `size` entries of it; a list that is no longer is used whole.
pub(super) fn part<T: Copy>(list: &[T], size: u32, id: &str) -> Vec<T> {
    let (n, size) = (list.len(), size.max(1) as usize);
    if n <= size {
        return list.to_vec();
    }
    let hash = text_hash(id) as usize;
    let parts = n / size;
    let mut random = Random::new((hash / parts) as u64);
    let mut list = list.to_vec();
    for k in (2..=n).rev() {
        list.swap(k - 1, random.below(k as u32) as usize);
    }
    let first = hash % parts * size;
    list[first..first + size].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_is_that_of_java() {
        // new Random(42): nextInt(10), ten times, is documented all over the web.
        let mut random = Random::new(42);
        assert_eq!([10; 10].map(|bound| random.below(bound)), [0, 3, 8, 4, 0, 5, 5, 8, 9, 3]);
        assert_eq!(text_hash("hello"), 99_162_322);
    }

    #[test]
    fn a_short_list_is_used_whole() {
        assert_eq!(part(&[1, 2, 3], 3, "x"), [1, 2, 3]);
        assert_eq!(part(&[1, 2, 3, 4], 1, "x").len(), 1);
    }
}
