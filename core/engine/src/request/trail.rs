//! The reason trail of requests whose head asks for it.

use super::Walk;
use super::state::State;
use crate::explain::{Beside, Explanation, route_why};
use crate::outcome::{refusal, resource};
use crate::policies::Policies;
use crate::random::Source;

/// What is kept of each decision.
pub(crate) struct Trail {
    /// The route was matched, not named.
    pub(crate) matched: bool,
    /// One entry per choice.
    pub(crate) list: Vec<Explanation>,
}

/// Choices that one request keeps.
const MOST: usize = 64;

/// Whether a request keeps its trail.
pub(super) fn is_kept(st: &State) -> bool {
    st.has_rare && st.rare.as_deref().is_some_and(|rare| rare.trail.is_some())
}

impl Walk<'_> {
    /// Keeps why a host was chosen, or none. `mark`: the words before the choice.
    #[cold]
    pub(super) fn keep_trail(
        &self,
        policies: &Policies,
        st: &mut State,
        mark: Option<&Source>,
        slot: Option<u32>,
    ) {
        let mut why = Explanation::default();
        let Some(rare) = st.rare.as_deref() else { return };
        let beside = Beside {
            criteria: rare.criteria.as_deref(),
            values: rare.brought.as_ref().map_or(&[][..], |own| &own.values),
            named: &rare.tried,
            avoid: &rare.opted.avoid,
            now: self.now,
        };
        self.core.explain_state(self.snapshot, policies, st, &beside, &mut why);
        let matched = rare.trail.as_ref().is_some_and(|trail| trail.matched);
        why.route = route_why(policies, policies.request(st), matched);
        why.hash = st.hash;
        why.draws = mark.map_or_else(Vec::new, |mark| self.random.words_since(mark));
        let info = slot.and_then(|slot| self.core.hosts.info(slot));
        if let Some((_, info)) = info {
            why.chosen.clone_from(&info.address);
            (why.refusal, why.resource) = (0, resource::NONE);
            let mut candidates = why.hosts.iter().flat_map(|hosts| &hosts.candidates);
            let chosen = candidates.find(|host| host.address == why.chosen);
            // Beside others a refused attempt is only one less.
            if let Some(host) =
                chosen.filter(|host| host.closed_by != resource::NONE && st.attempts.is_empty())
            {
                (why.refusal, why.resource) = (refusal::OVERFLOW, host.closed_by);
            }
            // By now it has this attempt: a probe under way, a place less.
            let candidates = why.hosts.iter_mut().flat_map(|hosts| &mut hosts.candidates);
            candidates.filter(|host| host.at_last && host.address == why.chosen).for_each(|host| {
                host.left_out.clear();
                host.at_last = false;
            });
        }
        let trail = st.rare().trail.get_or_insert_with(|| Box::new(Trail { matched, list: Vec::new() }));
        if trail.list.len() < MOST {
            trail.list.push(why);
        }
    }
}
