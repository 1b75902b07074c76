//! Ids of requests and attempts: generational, so that a stale one is recognised, never followed.
//!
//! Bit 63 is 0 (ids stay positive in languages without unsigned numbers); then 10 bits engine, 22 bits slot,
//! 20 bits generation, 11 bits attempt (0 = the request itself).

const ATTEMPT: u32 = 11;
const GENERATION: u32 = 20;
const SLOT: u32 = 22;
const ENGINE: u32 = 10;

/// Requests that can be live at once.
pub const MAX_REQUESTS: u32 = 1 << SLOT;
/// Engines that can be alive at once (index 0 is never used).
pub const MAX_ENGINES: u32 = (1 << ENGINE) - 1;
/// Generations of a slot.
pub(crate) const GENERATIONS: u32 = 1 << GENERATION;

/// The parts of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) engine: u32,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    pub(crate) attempt: u32,
}

impl Id {
    #[inline]
    pub(crate) fn pack(self) -> u64 {
        debug_assert!(self.engine < 1 << ENGINE && self.slot < 1 << SLOT && self.generation < GENERATIONS);
        (u64::from(self.engine) << (SLOT + GENERATION + ATTEMPT))
            | (u64::from(self.slot) << (GENERATION + ATTEMPT))
            | (u64::from(self.generation) << ATTEMPT)
            | u64::from(self.attempt)
    }

    #[inline]
    pub(crate) fn unpack(id: u64) -> Self {
        Self {
            engine: engine_of(id),
            slot: (id >> (GENERATION + ATTEMPT)) as u32 & ((1 << SLOT) - 1),
            generation: (id >> ATTEMPT) as u32 & (GENERATIONS - 1),
            attempt: id as u32 & ((1 << ATTEMPT) - 1),
        }
    }
}

/// Index of the engine that gave out an id; 0 or over [`MAX_ENGINES`] = never given out.
#[inline]
pub fn engine_of(id: u64) -> u32 {
    (id >> (SLOT + GENERATION + ATTEMPT)) as u32
}

/// The request that an id belongs to.
#[inline]
pub fn request_of(id: u64) -> u64 {
    id & !((1 << ATTEMPT) - 1)
}

/// Whether an id is an attempt's, not a request's.
#[inline]
pub fn is_attempt(id: u64) -> bool {
    id & ((1 << ATTEMPT) - 1) != 0
}

/// The in-request mark of attempt `number`: 1..=2047, repeating.
#[inline]
pub(crate) fn attempt_mark(number: u32) -> u32 {
    const MARKS: u32 = (1 << ATTEMPT) - 1;
    // Most requests have few attempts: no division for them.
    if (1..=MARKS).contains(&number) { number } else { number.wrapping_sub(1) % MARKS + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let id = Id { engine: 1023, slot: MAX_REQUESTS - 1, generation: GENERATIONS - 1, attempt: 2047 };
        assert_eq!(Id::unpack(id.pack()), id);
        assert!(id.pack() < 1 << 63);
        assert_eq!(Id::unpack(request_of(id.pack())).attempt, 0);
        assert!(is_attempt(id.pack()) && !is_attempt(request_of(id.pack())));
        assert_eq!((attempt_mark(1), attempt_mark(2047), attempt_mark(2048)), (1, 2047, 1));
    }
}
