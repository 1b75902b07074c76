//! Which response headers outlier detection, active checks and policies read, by the name that a request is sent to: the
//! sub-clusters of a composite count as well.

use super::Rules;
use crate::health::IMMEDIATE_FAIL;
use crate::spec::{ClusterKind, ClusterSource, ClusterSpec};
use std::collections::{BTreeMap, BTreeSet};

/// Header names by cluster; only clusters that look at more than the status.
pub(crate) struct DetectorWants<'s> {
    names: BTreeMap<&'s str, BTreeSet<String>>,
}

impl<'s> DetectorWants<'s> {
    /// `active_checks`: somebody performs them.
    pub(crate) fn new(clusters: &'s [ClusterSpec], active_checks: bool) -> Self {
        let mut names: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for cluster in clusters {
            if let Some(spec) = cluster.outlier.as_ref().filter(|spec| !Rules::is_plain(spec)) {
                let wanted = names.entry(&cluster.name).or_default();
                Rules::wanted_headers(spec, &mut |name| {
                    wanted.insert(name.to_owned());
                });
            }
        }
        for cluster in clusters.iter().filter(|cluster| active_checks && !cluster.health_checks.is_empty()) {
            names.entry(&cluster.name).or_default().insert(IMMEDIATE_FAIL.to_owned());
        }
        for cluster in clusters {
            if let Some(learnt) = cluster.policy.learns_from() {
                let wanted = names.entry(&cluster.name).or_default();
                wanted.extend(learnt.iter().map(|name| (*name).to_owned()));
            }
        }
        // Composites contain no cycles: as many rounds as they are deep.
        let mut grew = !names.is_empty();
        while grew {
            grew = false;
            for cluster in clusters {
                let ClusterKind::Composite(subs) = &cluster.kind else { continue };
                let below: Vec<_> = subs.iter().filter_map(|sub| names.get(sub.as_str()).cloned()).collect();
                if below.is_empty() {
                    continue;
                }
                grew |= !names.contains_key(cluster.name.as_str());
                let wanted = names.entry(&cluster.name).or_default();
                for name in below.into_iter().flatten() {
                    grew |= wanted.insert(name);
                }
            }
        }
        Self { names }
    }

    /// Whether answers of this cluster have to be told of one by one.
    pub(crate) fn judges(&self, cluster: &str) -> bool {
        self.names.contains_key(cluster)
    }

    /// The headers of one cluster.
    pub(crate) fn of(&self, cluster: &str) -> Vec<String> {
        self.names.get(cluster).into_iter().flatten().cloned().collect()
    }

    /// The headers of whatever a route can reach.
    pub(crate) fn of_route(&self, source: &ClusterSource) -> Vec<String> {
        let names: BTreeSet<String> = match source {
            ClusterSource::Name(name) => return self.of(name),
            ClusterSource::Weighted(list) => list.iter().flat_map(|entry| self.of(&entry.name)).collect(),
            ClusterSource::Header(_) => self.names.values().flatten().cloned().collect(),
        };
        names.into_iter().collect()
    }
}
