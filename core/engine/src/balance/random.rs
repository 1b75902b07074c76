//! random (section 15): the word that chose the priority chooses the host, too.

use super::routing::Routing;
use super::{Policy, Selection, View};
use crate::clock::Time;
use crate::random::{Random as _, Source};
use crate::spec::{LocalityBalancing, PolicySpec};

/// The policy; ignores weights.
pub(super) struct Random {
    routing: Routing,
}

impl Policy for Random {
    fn new(view: View<'_>, random: &mut Source, _: Time) -> Self {
        let balancing = match view.policy {
            PolicySpec::Random { locality } => locality,
            _ => &LocalityBalancing::None,
        };
        Self { routing: Routing::new(balancing, view, random) }
    }

    fn refresh(&mut self, view: View<'_>, random: &mut Source, _: Time) {
        self.routing.refresh(view, random);
    }

    #[inline(never)]
    fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        selection.examine(|selection, _| {
            let word = selection.random.next_u64();
            let (priority, list) = self.routing.list(view, selection, word)?;
            let list = list.of(view.sets.get(priority as usize)?);
            let at = word.checked_rem(list.len() as u64)?;
            list.get(at as usize).copied()
        })
    }

    fn routing(&self) -> Option<&Routing> {
        Some(&self.routing)
    }
}
