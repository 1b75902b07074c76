//! Which response headers outlier detection, active checks and policies read, by the name that a request is sent to: the
//! sub-clusters of a composite or aggregate count as well.

use super::Rules;
use crate::health::IMMEDIATE_FAIL;
use crate::spec::{ClusterSource, ClusterSpec, OutcomeAt};
use std::collections::{BTreeMap, BTreeSet};

/// Header names by cluster; only clusters that look at more than the status.
pub(crate) struct DetectorWants<'s> {
    names: BTreeMap<&'s str, BTreeSet<String>>,
    /// Of answers of 400 and above, for cool-downs.
    errors: BTreeMap<&'s str, BTreeSet<String>>,
    /// Clusters that have a say in plain successes.
    judges: BTreeMap<&'s str, BTreeSet<String>>,
    /// Clusters that count what the host did apart from what its answers say.
    split: BTreeMap<&'s str, BTreeSet<String>>,
}

/// Response headers that are wanted besides those of the retry policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) always: Vec<String>,
    /// Of answers of 400 and above.
    pub(crate) errors: Vec<String>,
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
        let mut judges: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut split: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for cluster in clusters {
            let outlier = cluster.outlier.as_ref();
            let matches = outlier.is_some_and(|spec| spec.error_matcher.is_some());
            let learns = cluster.policy.learns_from().is_some();
            if matches || learns || cluster.options.outcome_at == OutcomeAt::End {
                judges.entry(&cluster.name).or_default();
            }
            if outlier.is_some_and(|spec| spec.split_external_local_origin_errors) {
                split.entry(&cluster.name).or_default();
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
        for cluster in clusters.iter().filter(|cluster| cluster.options.outcome_at == OutcomeAt::End) {
            names.entry(&cluster.name).or_default().insert("grpc-status".to_owned());
        }
        let cools = |cluster: &'s ClusterSpec| Some((&cluster.name, cluster.options.cool_down.as_ref()?));
        let mut errors: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (name, cool) in clusters.iter().filter_map(cools) {
            errors.insert(name, cool.from_headers.iter().cloned().collect());
        }
        spread(clusters, &mut names);
        for wanted in [&mut errors, &mut judges, &mut split] {
            spread(clusters, wanted);
        }
        Self { names, errors, judges, split }
    }

    /// Whether even a success without any wanted header has to be looked at.
    pub(crate) fn judges(&self, cluster: &str) -> bool {
        self.judges.contains_key(cluster)
    }

    /// Whether successes count as the host's own, too.
    pub(crate) fn splits(&self, cluster: &str) -> bool {
        self.split.contains_key(cluster)
    }

    /// The headers of one cluster.
    pub(crate) fn of(&self, cluster: &str) -> Wanted {
        Wanted { always: of(&self.names, cluster), errors: of(&self.errors, cluster) }
    }

    /// The headers of whatever a route can reach.
    pub(crate) fn of_route(&self, source: &ClusterSource) -> Wanted {
        let reached = |names: &BTreeMap<&str, BTreeSet<String>>| -> Vec<String> {
            let names: BTreeSet<String> = match source.is_open() {
                true => names.values().flatten().cloned().collect(),
                false => source.names().into_iter().flat_map(|cluster| of(names, cluster)).collect(),
            };
            names.into_iter().collect()
        };
        Wanted { always: reached(&self.names), errors: reached(&self.errors) }
    }
}

fn of(names: &BTreeMap<&str, BTreeSet<String>>, cluster: &str) -> Vec<String> {
    names.get(cluster).into_iter().flatten().cloned().collect()
}

/// What sub-clusters want, their composites want too. These contain no cycles: as many rounds as they are deep.
fn spread<'s>(clusters: &'s [ClusterSpec], names: &mut BTreeMap<&'s str, BTreeSet<String>>) {
    let mut grew = !names.is_empty();
    while grew {
        grew = false;
        for cluster in clusters {
            let subs = cluster.kind.subs();
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
}
