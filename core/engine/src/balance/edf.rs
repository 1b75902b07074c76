//! Earliest deadline first: the schedule behind every weighted choice (section 10).

/// Added to each weight while a schedule is moved on, so that the share of a host is never a whole number.
const NUDGE: f64 = 1e-13;

/// More initial picks than this are never made; seeds are reduced by it.
const MOST_INITIAL_PICKS: u32 = 429_496_729;

/// An item and when its turn is.
#[derive(Clone, Copy)]
struct Entry {
    /// Bits of a number that is never negative, so they order as it does.
    deadline: u64,
    /// Grows with each insertion: of equal deadlines the older one is first.
    order: u64,
    item: u32,
}

impl Entry {
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.deadline) << 64 | u128::from(self.order)
    }
}

/// Items by deadline. Picking takes the earliest, ties go to the entry that was inserted first.
pub(super) struct Edf {
    /// A binary heap, the earliest entry first.
    entries: Vec<Entry>,
    now: f64,
    next_order: u64,
}

impl Edf {
    /// A schedule that has already made the picks of a seed, of which only the low 32 bits count.
    ///
    /// Most of those picks are made by arithmetic; only the order of equal deadlines differs from making them
    /// one by one, and it differs as it does in Envoy.
    pub(super) fn with_picks(items: &[u32], seed: u64, weight: impl Fn(u32) -> f64) -> Self {
        let picks = seed as u32 % MOST_INITIAL_PICKS;
        let wanted = f64::from(picks);
        let weights: Vec<f64> = items.iter().map(|item| weight(*item) + NUDGE).collect();
        let sum = weights.iter().fold(0.0, |sum, weight| sum + weight);
        let mut now: f64 = 0.0;
        let mut made = 0_u64;
        let mut entries = Vec::with_capacity(items.len());
        for (order, (item, weight)) in items.iter().zip(weights).enumerate() {
            let mut floor = (weight * wanted / sum) as u32;
            // An item never runs ahead of the whole schedule.
            if floor > 0 && f64::from(floor) / weight >= wanted / sum {
                floor -= 1;
            }
            made += u64::from(floor);
            let deadline = f64::from(floor.wrapping_add(1)) / weight;
            entries.push(Entry { deadline: deadline.to_bits(), order: order as u64, item: *item });
            now = now.max(f64::from(floor) / weight);
        }
        // Sorted entries are a heap.
        entries.sort_unstable_by_key(Entry::key);
        let next_order = entries.len() as u64;
        let mut schedule = Self { entries, now, next_order };
        for _ in made..u64::from(picks) {
            schedule.pick(&weight);
        }
        schedule
    }

    /// The item whose turn it is; it is inserted again with the weight it has now.
    pub(super) fn pick(&mut self, weight: impl Fn(u32) -> f64) -> Option<u32> {
        let first = self.entries.first_mut()?;
        let chosen = first.item;
        self.now = f64::from_bits(first.deadline);
        first.deadline = (self.now + 1.0 / weight(chosen)).to_bits();
        first.order = self.next_order;
        self.next_order += 1;
        self.sink_first();
        Some(chosen)
    }

    /// Restores the heap after the first entry got later. It mostly belongs near the end, so the gap goes all the
    /// way down without looking at it, which takes no branch that is hard to foresee, and then up a little.
    fn sink_first(&mut self) {
        let entries = &mut self.entries[..];
        let Some(&moved) = entries.first() else { return };
        let mut gap = 0;
        loop {
            let left = 2 * gap + 1;
            let Some([one, other]) = entries.get(left..left + 2) else { break };
            let child = left + usize::from(other.key() < one.key());
            entries[gap] = entries[child];
            gap = child;
        }
        if let Some(&only) = entries.get(2 * gap + 1) {
            entries[gap] = only;
            gap = 2 * gap + 1;
        }
        while gap > 0 {
            let parent = (gap - 1) / 2;
            if entries[parent].key() <= moved.key() {
                break;
            }
            entries[gap] = entries[parent];
            gap = parent;
        }
        entries[gap] = moved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(weights: &[f64], seed: u64, picks: usize) -> Vec<u32> {
        let items: Vec<u32> = (0..weights.len() as u32).collect();
        let weight = |item: u32| weights[item as usize];
        let mut edf = Edf::with_picks(&items, seed, weight);
        (0..picks).filter_map(|_| edf.pick(weight)).collect()
    }

    #[test]
    fn nothing_to_pick() {
        assert_eq!(Edf::with_picks(&[], 7, |_| 1.0).pick(|_| 1.0), None);
    }

    #[test]
    fn a_weight_of_nothing_waits_for_ever() {
        assert_eq!(order(&[0.0, 1.0], 0, 4), [1, 1, 1, 1]);
    }

    #[test]
    fn equal_weights_take_turns() {
        let expect: Vec<u32> = (0..128).chain(0..128).collect();
        assert_eq!(order(&[1.0; 128], 0, 256), expect);
    }

    proptest! {
        #[test]
        fn shares_are_kept(weights in prop::collection::vec(1_u32..50, 1..20), seed: u64) {
            let floats: Vec<f64> = weights.iter().map(|weight| f64::from(*weight)).collect();
            let sum: u32 = weights.iter().sum();
            let picks = order(&floats, seed, sum as usize);
            for (item, weight) in weights.iter().enumerate() {
                let count = picks.iter().filter(|pick| **pick == item as u32).count();
                // The seed may start inside a round, where sums of fractions round either way.
                prop_assert!(count.abs_diff(*weight as usize) <= 1, "{item} of {weights:?}: {count}");
            }
        }
    }
}
