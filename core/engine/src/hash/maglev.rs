//! The table of maglev (section 20).

use super::{Sizes, Structure, xxh64};

/// Slots of a table, a prime not below 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableSize(pub(crate) u64);

/// Slots that lead to hosts.
pub(crate) struct Table {
    shape: Shape,
    sizes: Sizes,
}

enum Shape {
    /// No host.
    Empty,
    /// One host, so every hash leads to it.
    Single,
    /// One entry a slot: the number of a host.
    Slots(Box<[u32]>),
}

const FREE: u32 = u32::MAX;

/// One host while the table is filled.
struct Filler {
    host: u32,
    weight: f64,
    /// The table may not have been given more than this share to the host before its next turn.
    target: f64,
    at: u64,
    skip: u64,
    count: u64,
}

impl Structure for Table {
    type Params = TableSize;

    fn build(&TableSize(slots): &TableSize, keys: &[&str], weights: &[f64]) -> Self {
        match keys {
            [] => return Self { shape: Shape::Empty, sizes: Sizes::default() },
            [_] => {
                let sizes = Sizes { size: slots, least_per_host: 1, most_per_host: 1 };
                return Self { shape: Shape::Single, sizes };
            }
            _ => {}
        }
        let most = weights.iter().copied().fold(0.0, f64::max);
        let mut fillers: Vec<Filler> = order(keys)
            .into_iter()
            .map(|host| {
                let (at, skip) = walk(keys[host as usize], slots);
                Filler { host, weight: weights[host as usize], target: 0.0, at, skip, count: 0 }
            })
            .collect();
        let mut table = vec![FREE; usize::try_from(slots).unwrap_or(usize::MAX)].into_boxed_slice();
        let mut left = table.len();
        let mut iteration = 0.0;
        // The heaviest host takes a slot nearly every round, so rounds are at most about as many as slots.
        while left > 0 {
            iteration += 1.0;
            for filler in &mut fillers {
                if left == 0 {
                    break;
                }
                if iteration * filler.weight < filler.target {
                    continue;
                }
                filler.target += most;
                while table[filler.at as usize] != FREE {
                    filler.step(slots);
                }
                table[filler.at as usize] = filler.host;
                filler.step(slots);
                filler.count += 1;
                left -= 1;
            }
        }
        let counts = fillers.iter().map(|filler| filler.count);
        let sizes = Sizes {
            size: slots,
            least_per_host: counts.clone().min().unwrap_or(0),
            most_per_host: counts.max().unwrap_or(0),
        };
        Self { shape: Shape::Slots(table), sizes }
    }

    #[inline]
    fn pick(&self, hash: u64, attempt: u32) -> Option<u32> {
        match &self.shape {
            Shape::Empty => None,
            Shape::Single => Some(0),
            Shape::Slots(table) => {
                // A retry complements the hash by its number, which moves it far over the table.
                let hash = if attempt == 0 { hash } else { hash ^ u64::from(attempt).wrapping_neg() };
                let slot = hash.checked_rem(table.len() as u64)?;
                table.get(slot as usize).copied()
            }
        }
    }

    fn find(&self, hash: u64, accept: &mut dyn FnMut(u32) -> bool) -> Option<u32> {
        match &self.shape {
            Shape::Empty => None,
            Shape::Single => Some(0).filter(|host| accept(*host)),
            Shape::Slots(table) => {
                let (before, after) = table.split_at(hash.checked_rem(table.len() as u64)? as usize);
                after.iter().chain(before).copied().find(|host| accept(*host))
            }
        }
    }

    fn sizes(&self) -> Option<Sizes> {
        (!matches!(self.shape, Shape::Empty)).then_some(self.sizes)
    }
}

impl Filler {
    #[inline]
    fn step(&mut self, slots: u64) {
        self.at += self.skip;
        if self.at >= slots {
            self.at -= slots;
        }
    }
}

/// Numbers of the hosts by ascending key, equal keys in their present order.
pub(crate) fn order(keys: &[&str]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.sort_by_key(|host| keys[*host as usize]);
    order
}

/// Where a key starts in a table and how far it goes on when a slot is taken.
pub(crate) fn walk(key: &str, slots: u64) -> (u64, u64) {
    // A table of fewer than two slots is refused where documents are read; `max` keeps the sum defined.
    let offset = xxh64(key.as_bytes(), 0) % slots.max(1);
    let skip = xxh64(key.as_bytes(), 1) % slots.saturating_sub(1).max(1) + 1;
    (offset, skip)
}

#[cfg(test)]
impl Table {
    /// The host of each slot, when there is a table.
    pub(crate) fn slots(&self) -> Option<&[u32]> {
        match &self.shape {
            Shape::Slots(table) => Some(table),
            Shape::Empty | Shape::Single => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degenerate_tables() {
        assert_eq!(Table::build(&TableSize(7), &[], &[]).pick(3, 0), None);
        assert_eq!(Table::build(&TableSize(7), &["a"], &[1.0]).pick(3, 9), Some(0));
        let none = Table::build(&TableSize(0), &["a", "b"], &[0.5, 0.5]);
        assert_eq!(none.pick(3, 1), None);
        let one = Table::build(&TableSize(1), &["b", "a"], &[0.5, 0.5]);
        assert_eq!(one.pick(3, 1), Some(1), "the only slot is the first key's");
    }

    #[test]
    fn more_hosts_than_slots_leave_the_last_keys_without() {
        let table = Table::build(&TableSize(2), &["c", "b", "a"], &[1.0 / 3.0; 3]);
        let mut hosts = table.slots().unwrap().to_vec();
        hosts.sort_unstable();
        assert_eq!(hosts, [1, 2]);
        assert_eq!(table.sizes(), Some(Sizes { size: 2, least_per_host: 0, most_per_host: 1 }));
    }
}
