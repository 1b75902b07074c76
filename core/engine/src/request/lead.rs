//! Which cluster a request goes to, and where its retries go when they may leave it (`spec/retry-and-timeouts.md`
//! section 11).

use super::Walk;
use super::state::State;
use crate::balance::Criteria;
use crate::hash::policy::GeneratedCookie;
use crate::leads::{Leads, Named, Shares};
use crate::outcome::{Head, head_bits};
use crate::policies::{Policies, RequestPolicy};
use crate::random::{Random, Source};
use crate::route::RequestView;
use crate::spec::{Value, WordSource};
use std::collections::BTreeMap;
use std::sync::Arc;
use twox_hash::XxHash64;

/// Where a request goes first.
pub(super) struct Led {
    pub(super) cluster: u32,
    /// The cluster of attempt 1: of a stateless retry another one than `cluster`, perhaps.
    pub(super) home: u32,
    /// What to match there, in place of the route's.
    pub(super) criteria: Option<Arc<Criteria>>,
    /// By which a retry chooses anew.
    pub(super) again: Again,
}

/// What a retry chooses its cluster by.
#[derive(Default)]
pub(crate) struct Again {
    /// The same for all attempts.
    word: u64,
    /// Clusters used already.
    used: Vec<u32>,
    /// Groups that the request named.
    named: Named,
}

/// Why a route leads to no cluster.
pub(super) enum Answer {
    Direct(u16),
    /// Status and name, if it came from the request.
    NoCluster(u16, String),
}

impl RequestPolicy {
    /// The word that chooses among several clusters. `word`: the request's own, once it was drawn.
    pub(crate) fn word(
        &self,
        head: &Head<'_>,
        view: &RequestView<'_>,
        word: &mut Option<u64>,
        random: &mut Source,
    ) -> u64 {
        let given = match &self.word {
            WordSource::Drawn => None,
            WordSource::Header(name) => header_word(name, view),
            WordSource::HashPolicy => self.hash.of_request(&head.hash_input(view)),
        };
        given.unwrap_or_else(|| *word.get_or_insert_with(|| random.next_u64()))
    }
}

/// The header must have one value.
fn header_word(name: &str, view: &RequestView<'_>) -> Option<u64> {
    let pseudo = view.pseudo(name).map(str::as_bytes);
    let mut values = pseudo.into_iter().chain(view.headers.values(name));
    let value = values.next().filter(|_| values.next().is_none())?;
    std::str::from_utf8(value).ok()?.trim_ascii().parse().ok()
}

impl<'a> Walk<'a> {
    /// Where the route leads. `number`: which attempt of a stateless request it is.
    #[expect(clippy::too_many_arguments, reason = "what a request brings")]
    #[inline]
    pub(super) fn lead(
        &mut self,
        policies: &Policies,
        at: u32,
        head: &Head<'_>,
        view: &RequestView<'_>,
        number: u32,
        word: &mut Option<u64>,
        namespaces: &BTreeMap<String, Value>,
    ) -> Result<Led, Answer> {
        let policy = &policies.list[at as usize];
        let exists = |index: &u32| policies.cluster(*index).is_some();
        let only = |cluster| Led { cluster, home: cluster, criteria: None, again: Again::default() };
        match &policy.leads {
            Leads::Cluster(index) if exists(index) => Ok(only(*index)),
            Leads::Cluster(_) => Err(Answer::NoCluster(policy.missing, String::new())),
            Leads::Header(name) => {
                let value = view.headers.first(name).unwrap_or(b"");
                let name = std::str::from_utf8(value).unwrap_or("");
                let index = policies.names.get(name).copied().filter(exists);
                index.map(only).ok_or_else(|| Answer::NoCluster(policy.missing, name.to_owned()))
            }
            Leads::Direct { status, .. } => Err(Answer::Direct(*status)),
            leads => {
                let word = policy.word(head, view, word, self.random);
                let mut again = Again::new(policies, leads, word, namespaces);
                let missing = || Answer::NoCluster(policy.missing, String::new());
                let (home, mut criteria) =
                    again.choose(leads, 1).filter(|(c, _)| exists(c)).ok_or_else(missing)?;
                let mut cluster = home;
                let moves = matches!(leads, Leads::Groups(_)) && policies.retry_of(at, home).refresh_cluster;
                if number > 1 && moves {
                    (cluster, criteria) =
                        again.choose(leads, number).filter(|(c, _)| exists(c)).ok_or_else(missing)?;
                }
                Ok(Led { cluster, home, criteria, again })
            }
        }
    }

    /// With `refresh_cluster_on_retry` each of the weighted clusters has its turn before one comes again, and each
    /// attempt its priority group. The word that chose the first one chooses them all. Whether that cluster exists; if
    /// not, the request stays where it is.
    #[cold]
    pub(super) fn choose_cluster_again(&mut self, policies: &Policies, st: &mut State) -> bool {
        let policy = policies.request(st);
        let number = st.number;
        let Some(again) = st.rare.as_deref_mut().and_then(|rare| rare.again.as_mut()) else { return true };
        let Some((cluster, criteria)) = again.choose(&policy.leads, number) else { return true };
        let there = self.snapshot.clusters.get(cluster as usize);
        if there.is_none_or(|entry| entry.view.is_none()) {
            return false;
        }
        st.course.cluster = cluster;
        let route = criteria.as_ref().or(policy.criteria.as_ref());
        let rare = st.rare();
        rare.criteria = Criteria::both(route, rare.own_criteria.as_ref());
        true
    }

    /// What the request brings to clusters that a retry may go to: hashes, values of filters, lists of hosts.
    #[cold]
    pub(super) fn prepare_others(
        &mut self,
        policies: &Policies,
        st: &mut State,
        head: &Head<'_>,
        view: &RequestView<'_>,
        context: Option<&Criteria>,
        namespaces: &BTreeMap<String, Value>,
    ) {
        let policy = policies.request(st);
        let mut done = vec![st.cluster];
        let hashed = policies.cluster(st.cluster).is_some_and(|own| own.hashes);
        for cluster in policy.leads.chosen_among() {
            let Some(own) = policies.cluster(cluster).filter(|_| !done.contains(&cluster)) else { continue };
            done.push(cluster);
            if own.hashes {
                if head.bits & head_bits::HASH != 0 {
                    st.hash = Some(head.hash);
                } else if let Some(key) = head.key {
                    st.hash = Some(XxHash64::oneshot(0, key));
                } else {
                    let mut cookie: Option<GeneratedCookie> = None;
                    let hash = own.hash_policies(policy).evaluate(&head.hash_input(view), &mut cookie);
                    let rare = st.rare();
                    rare.own_hashes.push((cluster, hash));
                    // The list of the route, which the first cluster goes by, too, generated it already.
                    if let Some(cookie) = cookie.filter(|_| !hashed && rare.cookies.is_empty()) {
                        rare.cookies = std::iter::once(cookie.set_cookie).chain(cookie.others).collect();
                    }
                }
            }
            if own.filtered() {
                let before = st.rare().brought.take();
                self.bring(st, own, view, context);
                if let (Some(before), Some(brought)) = (before, st.rare().brought.as_mut()) {
                    brought.told = before.told;
                    brought.values.extend(before.values);
                }
            }
            if !own.overrides.is_empty() && st.rare().overrides.is_none() {
                Self::overrides(st, &own.overrides, context, namespaces, view);
            }
        }
    }
}

impl Again {
    /// By this word, and what the request's metadata says of groups.
    pub(crate) fn new(
        policies: &Policies,
        leads: &Leads,
        word: u64,
        namespaces: &BTreeMap<String, Value>,
    ) -> Self {
        let named = match leads {
            Leads::Groups(groups) => groups.named(namespaces, &|name| policies.names.get(name).copied()),
            _ => Named::new(),
        };
        Self { word, used: Vec::new(), named }
    }

    /// The cluster of attempt `number`, and what to match there.
    pub(crate) fn choose(&mut self, leads: &Leads, number: u32) -> Option<(u32, Option<Arc<Criteria>>)> {
        let share = match leads {
            Leads::Weighted(shares) => shares.unused(self.word, &mut self.used)?,
            Leads::Groups(groups) => groups.of_attempt(number, &self.named)?.1.at(self.word)?,
            _ => return None,
        };
        Some((share.cluster, share.criteria.clone()))
    }

    /// What attempt `number` chooses among, and its name if it is a group.
    pub(crate) fn group<'s>(&'s self, leads: &'s Leads, number: u32) -> Option<(&'s str, &'s Shares)> {
        match leads {
            Leads::Weighted(shares) => Some(("", shares)),
            Leads::Groups(groups) => groups.of_attempt(number, &self.named),
            _ => None,
        }
    }
}
