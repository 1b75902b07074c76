//! MT19937: the generator that orders the probes of bounded load (section 21).

const SIZE: usize = 624;
const MIDDLE: usize = 397;

/// The 32-bit Mersenne Twister, as C++'s `std::mt19937`.
pub(crate) struct Twister {
    state: [u32; SIZE],
    next: usize,
}

impl Twister {
    /// Seeds by the generator's own linear rule.
    pub(crate) fn new(seed: u32) -> Self {
        let mut state = [seed; SIZE];
        for i in 1..SIZE {
            let before = state[i - 1];
            state[i] = 1_812_433_253_u32.wrapping_mul(before ^ before >> 30).wrapping_add(i as u32);
        }
        Self { state, next: SIZE }
    }

    /// The next word.
    pub(crate) fn word(&mut self) -> u32 {
        if self.next == SIZE {
            self.turn();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    fn turn(&mut self) {
        for i in 0..SIZE {
            let both = self.state[i] & 0x8000_0000 | self.state[(i + 1) % SIZE] & 0x7fff_ffff;
            let odd = if both & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + MIDDLE) % SIZE] ^ both >> 1 ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_standard_one() {
        // The C++ standard states the 10,000th word of the default seed.
        let mut twister = Twister::new(5489);
        assert_eq!(twister.word(), 3_499_211_612);
        let last = (1..10_000).map(|_| twister.word()).last();
        assert_eq!(last, Some(4_123_659_995));
    }
}
