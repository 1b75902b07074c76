//! Small numbers for scripts that no decision depends on.

/// A generator of its own: what it rolls never changes with the engine.
#[derive(Debug)]
pub struct Dice(
    /// Where it stands; not 0.
    pub u64,
);

impl Dice {
    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }
}
