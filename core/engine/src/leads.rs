//! Where requests of a route go: to one cluster, to one that a header names, to one of several that a word chooses,
//! or to none.

use crate::balance::Criteria;
use crate::policies::Names;
use crate::spec::{ClusterSource, ForwardSpec, Metadata, Value, WeightedCluster};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Index of a cluster that no document ever named.
pub(crate) const UNKNOWN_CLUSTER: u32 = u32::MAX;

/// Where a request goes.
pub(crate) enum Leads {
    Cluster(u32),
    Header(Box<str>),
    Weighted(Shares),
    Groups(Groups),
    Direct { status: u16, body: String },
}

/// Several clusters and their weights.
pub(crate) struct Shares {
    pub(crate) list: Vec<Share>,
    total: u64,
}

/// One of several clusters.
pub(crate) struct Share {
    pub(crate) cluster: u32,
    pub(crate) weight: u64,
    /// In place of the route's: both together.
    pub(crate) criteria: Option<Arc<Criteria>>,
}

/// Groups of clusters, one an attempt (`priority_group`).
pub(crate) struct Groups {
    pub(crate) list: Vec<(Box<str>, Shares)>,
    /// Namespace of the metadata by which a request names its groups; empty = none.
    namespace: Box<str>,
}

/// The groups that a request names: in place of the first, the second, ... of its route. `None` = what was said of
/// that one cannot be read, so the route's own counts.
pub(crate) type Named = Vec<Option<NamedGroup>>;

/// A group that a request names.
pub(crate) enum NamedGroup {
    /// With its clusters.
    Whole(Box<str>, Shares),
    /// One of the route's.
    Known(usize),
}

impl Leads {
    pub(crate) fn new(forward: &ForwardSpec, names: &mut Names) -> Self {
        match &forward.cluster {
            ClusterSource::Name(name) => Self::Cluster(names.cluster(name)),
            ClusterSource::Header(name) => Self::Header(name.as_str().into()),
            ClusterSource::Weighted(list) => Self::Weighted(Shares::named(list, forward, names)),
            ClusterSource::Groups(groups) => Self::Groups(Groups {
                list: groups
                    .list
                    .iter()
                    .map(|group| (group.name.as_str().into(), Shares::named(&group.clusters, forward, names)))
                    .collect(),
                namespace: groups.override_namespace.as_str().into(),
            }),
        }
    }

    /// Whether a word chooses the cluster.
    pub(crate) const fn by_word(&self) -> bool {
        matches!(self, Self::Weighted(_) | Self::Groups(_))
    }

    /// Every cluster that a word may choose.
    pub(crate) fn chosen_among(&self) -> impl Iterator<Item = u32> + '_ {
        let (weighted, groups) = match self {
            Self::Weighted(shares) => (Some(shares), None),
            Self::Groups(groups) => (None, Some(groups)),
            _ => (None, None),
        };
        let groups = groups.into_iter().flat_map(|groups| groups.list.iter().map(|(_, shares)| shares));
        weighted.into_iter().chain(groups).flat_map(|shares| &shares.list).map(|share| share.cluster)
    }
}

impl Shares {
    fn new(list: Vec<Share>) -> Self {
        let total = list.iter().map(|share| share.weight).sum();
        Self { list, total }
    }

    fn named(list: &[WeightedCluster], forward: &ForwardSpec, names: &mut Names) -> Self {
        let route = lb_fields(forward.metadata_match.as_ref());
        let share = |entry: &WeightedCluster| Share {
            cluster: names.cluster(&entry.name),
            weight: u64::from(entry.weight),
            criteria: criteria(entry.metadata_match.as_ref()).map(|own| Arc::new(own.over(&route))),
        };
        Self::new(list.iter().map(share).collect())
    }

    /// The cluster in whose part of the weights the word lies.
    pub(crate) fn at(&self, word: u64) -> Option<&Share> {
        at(self.list.iter(), word % self.total.max(1))
    }

    /// The same among those that were not used yet; when all were, every one may be used again.
    pub(crate) fn unused(&self, word: u64, used: &mut Vec<u32>) -> Option<&Share> {
        if self.list.iter().all(|share| share.weight == 0 || used.contains(&share.cluster)) {
            used.clear();
        }
        let left = || self.list.iter().filter(|share| !used.contains(&share.cluster));
        let total: u64 = left().map(|share| share.weight).sum();
        let chosen = at(left(), word % total.max(1))?;
        used.push(chosen.cluster);
        Some(chosen)
    }
}

fn at<'s>(mut shares: impl Iterator<Item = &'s Share>, mut rest: u64) -> Option<&'s Share> {
    shares.find(|share| {
        let here = rest < share.weight;
        rest = rest.saturating_sub(share.weight);
        here
    })
}

impl Groups {
    /// The group that attempt `number` chooses in: later attempts stay with the last one.
    pub(crate) fn of_attempt<'s>(
        &'s self,
        number: u32,
        named: &'s [Option<NamedGroup>],
    ) -> Option<(&'s str, &'s Shares)> {
        let own = match named.get(position(number, named.len())) {
            Some(Some(NamedGroup::Whole(name, shares))) => return Some((name, shares)),
            Some(Some(NamedGroup::Known(at))) => *at,
            _ => position(number, self.list.len()),
        };
        self.list.get(own).map(|(name, shares)| (&**name, shares))
    }

    /// What a request's metadata says of its groups. `cluster`: the index of a name.
    pub(crate) fn named(
        &self,
        namespaces: &BTreeMap<String, Value>,
        cluster: &dyn Fn(&str) -> Option<u32>,
    ) -> Named {
        let Some(Value::Struct(fields)) = namespaces.get(&*self.namespace) else { return Vec::new() };
        let Some(Value::List(list)) = fields.get("priority_groups") else { return Vec::new() };
        list.iter().map(|group| self.named_group(group, cluster)).collect()
    }

    fn named_group(&self, group: &Value, cluster: &dyn Fn(&str) -> Option<u32>) -> Option<NamedGroup> {
        let Value::Struct(group) = group else { return None };
        let name = filled(group.get("name")?)?;
        let clusters = match group.get("clusters") {
            None => &[][..],
            Some(Value::List(list)) => list,
            Some(_) => return None,
        };
        let share = |entry: &Value| {
            let Value::Struct(entry) = entry else { return None };
            let to = filled(entry.get("cluster_name")?)?;
            let Value::Number(weight) = *entry.get("weight")? else { return None };
            if !(1.0..=f64::from(u32::MAX)).contains(&weight) {
                return None;
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just checked")]
            let weight = weight as u64;
            Some(Share { cluster: cluster(to).unwrap_or(UNKNOWN_CLUSTER), weight, criteria: None })
        };
        let shares: Vec<Share> = clusters.iter().map(share).collect::<Option<_>>()?;
        if !shares.is_empty() {
            return Some(NamedGroup::Whole(name.into(), Shares::new(shares)));
        }
        self.list.iter().position(|(known, _)| **known == *name).map(NamedGroup::Known)
    }
}

/// The position of attempt `number` in a list of this length.
fn position(number: u32, length: usize) -> usize {
    (number.max(1) as usize - 1).min(length.saturating_sub(1))
}

fn filled(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

fn lb_fields(metadata: Option<&Metadata>) -> BTreeMap<String, Value> {
    metadata.and_then(|metadata| metadata.0.get("envoy.lb")).cloned().unwrap_or_default()
}

/// What a `metadata_match` asks for; nothing is no criteria.
pub(crate) fn criteria(metadata: Option<&Metadata>) -> Option<Criteria> {
    let fields = lb_fields(metadata);
    (!fields.is_empty()).then(|| Criteria::new(fields))
}
