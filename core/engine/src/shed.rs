//! What is turned away before any host is chosen: maintenance mode and `drop_overloads` (`spec/load-balancing.md`
//! section 2.3). Retries are not asked.

use crate::outcome::{flags, refusal};
use crate::random::Random;

/// Requests of one cluster that are turned away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sheds {
    /// `upstream.maintenance_mode.<name>`: percent of requests, 0..=100.
    maintenance: u8,
    /// Share that `drop_overloads` drops, 0..=1.
    drops: f32,
}

/// How a request was turned away: a number of [`refusal`] and the response flag.
pub(crate) type Shed = (u8, u32);

impl Sheds {
    /// `ratio` is the assignment's, `limit` the percent that the runtime lowers it to. `None` = nobody is turned away.
    pub(crate) fn new(maintenance: u8, ratio: f32, limit: Option<u64>) -> Option<Self> {
        let most = limit.unwrap_or(100).min(100) as f32 / 100.0;
        let sheds = Self { maintenance: maintenance.min(100), drops: ratio.clamp(0.0, 1.0).min(most) };
        (sheds.maintenance > 0 || sheds.drops > 0.0).then_some(sheds)
    }

    /// Whether a request is turned away; draws one word for each mechanism that leaves it to chance.
    #[cold]
    pub(crate) fn turn_away(&self, is_retry: bool, random: &mut impl Random) -> Option<Shed> {
        if self.maintenance >= 100
            || (self.maintenance > 0 && random.next_u64() % 100 < u64::from(self.maintenance))
        {
            return Some((refusal::MAINTENANCE, flags::UO));
        }
        if is_retry || self.drops <= 0.0 {
            return None;
        }
        if self.drops >= 1.0 {
            return Some((refusal::UNCONDITIONAL_DROP_OVERLOAD, flags::UDO));
        }
        // The bound is cut in single precision, as Envoy cuts it.
        let bound = (self.drops * u64::MAX as f32) as u64;
        (random.next_u64() < bound).then_some((refusal::DROP_OVERLOAD, flags::DO))
    }

    /// What an attempt is told: the refusal that all get (0 = chance decides), and a sentence for people.
    pub(crate) fn why(&self, is_retry: bool) -> Option<(u8, String)> {
        let drops = if is_retry { 0.0 } else { self.drops };
        let mut told = Vec::new();
        if self.maintenance > 0 {
            told.push(format!("maintenance mode turns {} % of its requests away", self.maintenance));
        }
        if drops > 0.0 {
            told.push(format!("drop_overloads turns {} % of its first attempts away", drops * 100.0));
        }
        let all = match self.maintenance {
            100 => refusal::MAINTENANCE,
            _ if drops >= 1.0 => refusal::UNCONDITIONAL_DROP_OVERLOAD,
            _ => 0,
        };
        (!told.is_empty()).then(|| (all, told.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Draws;

    fn shed(sheds: Option<Sheds>, is_retry: bool, words: &[u64]) -> (Option<u8>, usize) {
        let mut draws = Draws::new(words.iter().copied().chain([7]).collect());
        let shed = sheds.and_then(|sheds| sheds.turn_away(is_retry, &mut draws));
        let mut used = 0;
        while draws.next_u64() != 7 {
            used += 1;
        }
        (shed.map(|(why, _)| why), words.len() - used)
    }

    #[test]
    fn one_word_decides() {
        let half = Sheds::new(0, 0.5, None);
        let bound = 1 << 63;
        assert_eq!(shed(half, false, &[bound - 1]), (Some(refusal::DROP_OVERLOAD), 1));
        assert_eq!(shed(half, false, &[bound]), (None, 1));
        assert_eq!(shed(half, true, &[0]), (None, 0));
        let all = Sheds::new(0, 1.0, None);
        assert_eq!(shed(all, false, &[0]), (Some(refusal::UNCONDITIONAL_DROP_OVERLOAD), 0));
        assert_eq!(shed(all, true, &[0]), (None, 0));
    }

    #[test]
    fn the_bound_is_a_single_precision_number() {
        let bound = (0.3_f32 * 18_446_744_073_709_551_616.0_f32) as u64;
        assert_eq!(bound, 10_066_330 << 39);
        let third = Sheds::new(0, 0.3, None);
        assert_eq!(shed(third, false, &[bound - 1]).0, Some(refusal::DROP_OVERLOAD));
        assert_eq!(shed(third, false, &[bound]).0, None);
    }

    #[test]
    fn the_runtime_only_lowers() {
        assert_eq!(Sheds::new(0, 0.5, Some(20)), Sheds::new(0, 0.2, None));
        assert_eq!(Sheds::new(0, 0.5, Some(80)), Sheds::new(0, 0.5, None));
        assert_eq!(Sheds::new(0, 1.0, Some(0)), None);
        assert_eq!(Sheds::new(0, 0.0, Some(100)), None);
    }

    #[test]
    fn maintenance_comes_first() {
        let both = Sheds::new(50, 1.0, None);
        assert_eq!(shed(both, false, &[49]), (Some(refusal::MAINTENANCE), 1));
        assert_eq!(shed(both, false, &[50]), (Some(refusal::UNCONDITIONAL_DROP_OVERLOAD), 1));
    }
}
