//! Randomness comes in from outside: one 64-bit word per draw (`spec/load-balancing.md` section 4).

/// A source of uniform 64-bit words; one per worker.
pub trait Random: Send {
    /// The next word.
    fn next_u64(&mut self) -> u64;
}

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The first word of splitmix64 from this state: a mix of all its bits.
#[inline]
pub(crate) const fn split_mix(state: u64) -> u64 {
    let mut x = state.wrapping_add(GOLDEN);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A word as a number from 0 to below 1.
#[inline]
pub(crate) fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1_u64 << 53) as f64
}

/// xoshiro256++, seeded through splitmix64: same seed, same words, for ever.
#[derive(Clone, Debug)]
pub struct Xoshiro256 {
    state: [u64; 4],
}

impl Xoshiro256 {
    /// The generator of worker `worker` (1-based) of an engine with this seed.
    pub fn seeded(seed: u64, worker: u64) -> Self {
        let mut z = seed ^ worker.wrapping_mul(GOLDEN);
        let mut split = || {
            let word = split_mix(z);
            z = z.wrapping_add(GOLDEN);
            word
        };
        Self { state: [split(), split(), split(), split()] }
    }
}

impl Random for Xoshiro256 {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }
}

/// Words given in advance, then zeros for ever: for exact tests.
#[derive(Clone, Debug, Default)]
pub struct Draws {
    words: Vec<u64>,
    next: usize,
}

impl Draws {
    /// Hands out `words` in order.
    pub fn new(words: Vec<u64>) -> Self {
        Self { words, next: 0 }
    }

    /// How many words were asked for, zeros included.
    pub fn taken(&self) -> usize {
        self.next
    }
}

impl Random for Draws {
    fn next_u64(&mut self) -> u64 {
        let word = self.words.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        word
    }
}

/// A worker's source: the common generator without indirection, or any other.
pub enum Source {
    /// The default.
    Xoshiro(Xoshiro256),
    /// Given words.
    Draws(Draws),
    /// The embedder's own.
    Custom(Box<dyn Random>),
}

impl Source {
    /// Where the words are now; `None` for the embedder's own.
    pub(crate) fn mark(&self) -> Option<Self> {
        match self {
            Self::Xoshiro(source) => Some(Self::Xoshiro(source.clone())),
            Self::Draws(source) => Some(Self::Draws(source.clone())),
            Self::Custom(_) => None,
        }
    }

    /// The words that were taken since a mark, 64 at most.
    pub(crate) fn words_since(&self, mark: &Self) -> Vec<u64> {
        const MOST: usize = 64;
        let Some(mut at) = mark.mark() else { return Vec::new() };
        let same = |at: &Self| match (at, self) {
            (Self::Xoshiro(at), Self::Xoshiro(now)) => at.state == now.state,
            (Self::Draws(at), Self::Draws(now)) => at.next == now.next,
            _ => true,
        };
        let mut words = Vec::new();
        while words.len() < MOST && !same(&at) {
            words.push(at.next_u64());
        }
        words
    }
}

impl Random for Source {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        match self {
            Self::Xoshiro(source) => source.next_u64(),
            Self::Draws(source) => source.next_u64(),
            Self::Custom(source) => source.next_u64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_end_in_zeros() {
        let mut draws = Draws::new(vec![7, 9]);
        assert_eq!([draws.next_u64(), draws.next_u64(), draws.next_u64()], [7, 9, 0]);
        assert_eq!(draws.taken(), 3);
    }

    #[test]
    fn xoshiro_is_the_published_one() {
        // First word of xoshiro256++ from the state 1, 2, 3, 4.
        let mut generator = Xoshiro256 { state: [1, 2, 3, 4] };
        assert_eq!(generator.next_u64(), 41_943_041);
        assert_eq!(generator.next_u64(), 58_720_359);
    }

    #[test]
    fn workers_differ_and_repeat() {
        let word = |seed, worker| Xoshiro256::seeded(seed, worker).next_u64();
        assert_eq!(word(1, 1), word(1, 1));
        assert_ne!(word(1, 1), word(1, 2));
        assert_ne!(word(1, 1), word(2, 1));
    }
}
