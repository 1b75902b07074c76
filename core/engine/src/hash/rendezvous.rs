//! Rendezvous hashing: every host has a score for a hash, the highest one wins. A host that comes or goes moves its
//! own keys alone, at the price of looking at every host.

use super::{Sizes, Structure, xxh64};
use crate::random::split_mix;

/// The hosts of one priority and their keys' hashes.
pub(crate) struct Scores {
    seeds: Vec<u64>,
    /// Of the same length; `None` while all weigh the same.
    weights: Option<Vec<f64>>,
}

impl Structure for Scores {
    type Params = ();

    fn build(_: &(), keys: &[&str], weights: &[f64]) -> Self {
        let seeds = keys.iter().map(|key| xxh64(key.as_bytes(), 0)).collect();
        let differ = weights.windows(2).any(|pair| pair[0] != pair[1]);
        Self { seeds, weights: differ.then(|| weights.to_vec()) }
    }

    /// Attempt N: the host with the N-th highest score, and so on from the highest again.
    fn pick(&self, hash: u64, attempt: u32) -> Option<u32> {
        let hosts = 0..self.seeds.len() as u32;
        if attempt == 0 {
            return self.best(hosts, hash);
        }
        let place = attempt.checked_rem(self.seeds.len() as u32)? as usize;
        let mut order: Vec<u32> = hosts.collect();
        let (_, host, _) = order.select_nth_unstable_by(place, |a, b| {
            self.score(*b, hash).total_cmp(&self.score(*a, hash)).then(a.cmp(b))
        });
        Some(*host)
    }

    fn find(&self, hash: u64, accept: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        self.best((0..self.seeds.len() as u32).filter(|host| accept(*host)), hash)
    }

    fn sizes(&self) -> Option<Sizes> {
        None
    }
}

impl Scores {
    /// The first one of the highest score.
    fn best(&self, hosts: impl Iterator<Item = u32>, hash: u64) -> Option<u32> {
        let mut best: Option<(f64, u32)> = None;
        for host in hosts {
            let score = self.score(host, hash);
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, host));
            }
        }
        best.map(|(_, host)| host)
    }

    /// -weight / ln(u) of a number u between 0 and 1 that host and hash decide: a host's chance to be the highest is its
    /// share of the weights. Equal weights need no logarithm.
    #[inline]
    fn score(&self, host: u32, hash: u64) -> f64 {
        let mixed = split_mix(hash ^ self.seeds.get(host as usize).copied().unwrap_or(0));
        let share = ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        match &self.weights {
            None => share,
            Some(weights) => -weights.get(host as usize).copied().unwrap_or(0.0) / share.ln(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(weights: &[f64]) -> Scores {
        let keys: Vec<String> = (0..weights.len()).map(|host| format!("10.0.0.{host}:80")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        Scores::build(&(), &keys, weights)
    }

    #[test]
    fn shares_follow_weights() {
        let scores = scores(&[0.1, 0.2, 0.7]);
        let mut counts = [0_u32; 3];
        for key in 0..30_000_u64 {
            counts[scores.pick(xxh64(&key.to_le_bytes(), 0), 0).unwrap() as usize] += 1;
        }
        for (count, weight) in counts.iter().zip([0.1, 0.2, 0.7]) {
            assert!((f64::from(*count) / 30_000.0 - weight).abs() < 0.015, "{counts:?}");
        }
    }

    #[test]
    fn attempts_walk_down_the_scores() {
        for weights in [&[0.2; 5][..], &[0.1, 0.3, 0.2, 0.25, 0.15]] {
            let scores = scores(weights);
            for hash in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
                let order: Vec<u32> = (0..5).map(|attempt| scores.pick(hash, attempt).unwrap()).collect();
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, [0, 1, 2, 3, 4]);
                assert_eq!(scores.pick(hash, 5), Some(order[0]));
                let values: Vec<f64> = order.iter().map(|host| scores.score(*host, hash)).collect();
                assert!(values.is_sorted_by(|a, b| a >= b), "{values:?}");
                assert_eq!(scores.find(hash, &mut |host| host != order[0]), Some(order[1]));
            }
        }
    }

    #[test]
    fn no_hosts() {
        assert_eq!([0, 1, 7].map(|attempt| scores(&[]).pick(3, attempt)), [None; 3]);
        assert_eq!(scores(&[1.0]).find(3, &mut |_| false), None);
    }
}
