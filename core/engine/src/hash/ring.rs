//! The ring of ring_hash (section 19): points sorted by hash, each leading to a host.

use super::{Sizes, Structure, murmur, xxh64};
use crate::spec::HashFunction;

/// What shapes a ring besides its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingParams {
    pub(crate) function: HashFunction,
    pub(crate) minimum: u64,
    pub(crate) maximum: u64,
}

/// Points in ascending order. Apart from the hosts so that a search touches nothing but hashes.
pub(crate) struct Ring {
    hashes: Vec<u64>,
    /// Of the same length: numbers of hosts.
    hosts: Vec<u32>,
    /// Bucket b holds the points `starts[b]..starts[b + 1]`: those whose highest bits are b.
    starts: Vec<u32>,
    /// Shifts a hash down to its bucket.
    shift: u32,
    sizes: Sizes,
}

impl Structure for Ring {
    type Params = RingParams;

    fn build(params: &RingParams, keys: &[&str], weights: &[f64]) -> Self {
        if keys.is_empty() {
            return Self::sorted(Vec::new(), Sizes::default());
        }
        let least = weights.iter().copied().fold(1.0, f64::min);
        let scale = ((least * params.minimum as f64).ceil() / least).min(params.maximum as f64);
        let mut points = Vec::with_capacity(scale.ceil().min(8_388_608.0) as usize);
        let mut sizes =
            Sizes { size: scale.ceil() as u64, least_per_host: u64::MAX, most_per_host: u64::MIN };
        // Both sums run on from host to host, so fractions of a point add up instead of being lost.
        let (mut current, mut target) = (0.0, 0.0);
        let mut text = Vec::new();
        for (host, (key, weight)) in keys.iter().zip(weights).enumerate() {
            target += scale * weight;
            text.clear();
            text.extend_from_slice(key.as_bytes());
            text.push(b'_');
            let stem = text.len();
            let mut count = 0_u64;
            while current < target {
                text.truncate(stem);
                push_decimal(&mut text, count);
                let hash = match params.function {
                    HashFunction::XxHash => xxh64(&text, 0),
                    HashFunction::MurmurHash2 => murmur::murmur2(&text, murmur::SEED),
                };
                points.push((hash, host as u32));
                count += 1;
                current += 1.0;
            }
            sizes.least_per_host = sizes.least_per_host.min(count);
            sizes.most_per_host = sizes.most_per_host.max(count);
        }
        Self::sorted(points, sizes)
    }

    #[inline]
    fn pick(&self, hash: u64, attempt: u32) -> Option<u32> {
        let at = self.first_at_or_after(hash);
        // Past the last point the ring begins again; retries go on point by point, not host by host.
        let at = if at == self.hosts.len() { 0 } else { at };
        let at = if attempt == 0 { at } else { (at + attempt as usize).checked_rem(self.hosts.len())? };
        self.hosts.get(at).copied()
    }

    fn find(&self, hash: u64, accept: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        let (before, after) = self.hosts.split_at(self.first_at_or_after(hash));
        after.iter().chain(before).copied().find(|host| accept(*host))
    }

    fn sizes(&self) -> Option<Sizes> {
        (self.sizes != Sizes::default()).then_some(self.sizes)
    }
}

impl Ring {
    /// Sorts points, equal hashes in order of insertion: distribution by the highest bits (hashes are uniform,
    /// so buckets hold a point or two), then each bucket by itself.
    fn sorted(points: Vec<(u64, u32)>, sizes: Sizes) -> Self {
        let bits = points.len().max(2).ilog2();
        let shift = u64::BITS - bits;
        let mut starts = vec![0_u32; (1 << bits) + 1];
        for (hash, _) in &points {
            starts[(hash >> shift) as usize + 1] += 1;
        }
        for bucket in 1..starts.len() {
            starts[bucket] += starts[bucket - 1];
        }
        let mut next = starts.clone();
        let mut placed = vec![(0_u64, 0_u32); points.len()];
        for point in points {
            let at = &mut next[(point.0 >> shift) as usize];
            placed[*at as usize] = point;
            *at += 1;
        }
        for bounds in starts.windows(2) {
            let bucket = &mut placed[bounds[0] as usize..bounds[1] as usize];
            if bucket.len() > 1 {
                bucket.sort_by_key(|point| point.0);
            }
        }
        let (hashes, hosts) = placed.into_iter().unzip();
        Self { hashes, hosts, starts, shift, sizes }
    }

    /// Position of the first point not below `hash`; the number of points when there is none.
    #[inline]
    fn first_at_or_after(&self, hash: u64) -> usize {
        let bucket = (hash >> self.shift) as usize;
        let (from, to) = (self.starts[bucket] as usize, self.starts[bucket + 1] as usize);
        from + self.hashes[from..to].partition_point(|point| *point < hash)
    }

    /// The points: hash and number of the host.
    #[cfg(test)]
    pub(crate) fn points(&self) -> impl Iterator<Item = (u64, u32)> {
        self.hashes.iter().copied().zip(self.hosts.iter().copied())
    }
}

/// Appends a number in decimal.
fn push_decimal(text: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(keys: &[&str], minimum: u64) -> Ring {
        let weights = vec![1.0 / keys.len() as f64; keys.len()];
        Ring::build(
            &RingParams { function: HashFunction::XxHash, minimum, maximum: 8_388_608 },
            keys,
            &weights,
        )
    }

    #[test]
    fn search_agrees_with_a_linear_one() {
        let keys: Vec<String> = (0..50).map(|i| format!("10.0.0.{i}:80")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        for minimum in [1, 2, 3, 1024] {
            let ring = ring(&keys, minimum);
            let points: Vec<_> = ring.points().collect();
            assert!(points.is_sorted_by_key(|point| point.0));
            let near = points.iter().flat_map(|point| [point.0 - 1, point.0, point.0 + 1]);
            for hash in near.chain([0, 1, u64::MAX, u64::MAX / 2]) {
                let expect = points.iter().find(|point| point.0 >= hash).unwrap_or(&points[0]).1;
                assert_eq!(ring.pick(hash, 0), Some(expect));
            }
        }
    }

    #[test]
    fn equal_points_keep_their_order() {
        let ring = ring(&["same", "same", "same"], 3);
        assert_eq!(ring.points().map(|point| point.1).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(ring.pick(0, 0), Some(0));
        assert_eq!(ring.pick(0, 5), Some(2));
    }

    #[test]
    fn no_points_no_host() {
        assert_eq!(ring(&[], 1024).pick(7, 0), None);
        assert_eq!(ring(&[], 1024).pick(7, 3), None);
        assert_eq!(ring(&[], 1024).sizes(), None);
        assert_eq!(ring(&["a"], 0).pick(7, 0), None);
        assert_eq!(ring(&["a"], 0).pick(u64::MAX, 1), None);
    }

    #[test]
    fn decimal_text() {
        let mut text = Vec::new();
        for number in [0, 9, 10, 1024, u64::MAX] {
            text.clear();
            push_decimal(&mut text, number);
            assert_eq!(text, number.to_string().as_bytes());
        }
    }
}
