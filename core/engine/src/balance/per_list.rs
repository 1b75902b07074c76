//! What a policy arranges for each list of hosts by itself, anew when a list's priority changed.

use super::View;
use super::routing::List;

/// One `T` for every list of every priority.
pub(super) struct PerList<T> {
    priorities: Vec<Made<T>>,
}

struct Made<T> {
    /// Of the set that the lists come from.
    version: u64,
    /// By [`List::number`].
    lists: Vec<T>,
}

impl<T> PerList<T> {
    /// For the hosts of each list, `make` is asked.
    pub(super) fn new(view: View<'_>, make: impl Fn(&[u32]) -> T) -> Self {
        let mut all = Self { priorities: Vec::new() };
        all.refresh(view, make);
        all
    }

    pub(super) fn refresh(&mut self, view: View<'_>, make: impl Fn(&[u32]) -> T) {
        self.priorities.truncate(view.sets.len());
        for (priority, set) in view.sets.iter().enumerate() {
            if self.priorities.get(priority).is_some_and(|made| made.version == set.version) {
                continue;
            }
            let lists = List::each(set).map(|list| make(list.of(set))).collect();
            let made = Made { version: set.version, lists };
            match self.priorities.get_mut(priority) {
                Some(old) => *old = made,
                None => self.priorities.push(made),
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, priority: u32, list: List) -> Option<&T> {
        self.priorities.get(priority as usize)?.lists.get(list.number())
    }
}
