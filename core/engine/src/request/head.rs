//! What a request's head says to routing, hashing and subsets: the same for requests and for questions about them.

use super::UNKNOWN_TARGET;
use crate::balance::Criteria;
use crate::engine::Core;
use crate::hash::HashInput;
use crate::hash::policy::HashPolicies;
use crate::headers::HeaderView;
use crate::outcome::{Head, Misuse};
use crate::policies::{ClusterPolicy, Policies, RequestPolicy};
use crate::random::Source;
use crate::route::RequestView;
use crate::spec::Value;
use std::collections::BTreeMap;

impl<'h> Head<'h> {
    /// What routing reads. `headers` are those of this head over its wanted names.
    #[inline]
    pub(crate) fn view(&self, headers: HeaderView<'h>) -> RequestView<'h> {
        RequestView {
            method: self.method,
            scheme: self.scheme,
            authority: self.authority,
            path: self.path,
            headers,
        }
    }

    /// What hash policies read.
    #[inline]
    pub(crate) fn hash_input(&self, view: &RequestView<'h>) -> HashInput<'h> {
        HashInput {
            headers: view.headers,
            method: view.method,
            scheme: view.scheme,
            authority: view.authority,
            path: view.path,
            source: self.source,
            local: self.local,
        }
    }
}

impl Policies {
    /// The policy that treats a request: of the route that matches, or of the target that its head names. `None`: there
    /// is no such route or cluster any more. `word`: what a runtime fraction drew; it chooses among clusters, too.
    #[inline]
    pub(crate) fn of_head(
        &self,
        head: &Head<'_>,
        view: &RequestView<'_>,
        word: &mut Option<u64>,
        random: &mut Source,
    ) -> Result<Option<u32>, Misuse> {
        Ok(match head.target {
            0 => self.tables.find_drawn(view, word, random).map(|route| self.by_route[route]),
            UNKNOWN_TARGET => None,
            target => {
                let known = self.targets.get(target as usize - 1).ok_or(Misuse::NotFound)?;
                known.as_ref().map(|target| target.policy)
            }
        })
    }
}

impl ClusterPolicy {
    /// The list that counts (section 17 of `spec/load-balancing.md`): the first that is not empty.
    #[inline]
    pub(crate) fn hash_policies<'p>(&'p self, policy: &'p RequestPolicy) -> &'p HashPolicies {
        match () {
            () if !self.own_hash.is_empty() => &self.own_hash,
            () if !self.hash.is_empty() => &self.hash,
            () => &policy.hash,
        }
    }
}

impl Core {
    /// The metadata that the head brings, for subsets; none when it is empty.
    ///
    /// # Errors
    /// It is no JSON object.
    pub(crate) fn own_criteria(&self, head: &Head<'_>) -> Result<Option<Criteria>, Misuse> {
        if head.metadata.is_empty() {
            return Ok(None);
        }
        let fields = (self.settings.read_json)(head.metadata).map_err(|_| Misuse::Invalid)?;
        Ok((!fields.is_empty()).then(|| Criteria::new(fields)))
    }

    /// Metadata of other namespaces that the head brings.
    ///
    /// # Errors
    /// It is no JSON object.
    pub(crate) fn namespaces(&self, head: &Head<'_>) -> Result<BTreeMap<String, Value>, Misuse> {
        match head.filter_metadata {
            "" => Ok(BTreeMap::new()),
            text => (self.settings.read_json)(text).map_err(|_| Misuse::Invalid),
        }
    }
}
