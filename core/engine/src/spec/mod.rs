//! What the engine is built from: typed, defaults filled in, ranges already checked by whoever reads documents.
//!
//! `nexthop-config` turns documents into these; a Rust program may also build them by hand. The engine trusts
//! the ranges stated on each field and checks what spans clusters ([`check`]).

mod admission;
mod cluster;
mod endpoint;
mod filters;
mod health;
mod opt_in;
mod outlier;
mod policy;
mod retry;
mod route;
mod session;
mod subset;
mod value;

pub use admission::{AdmissionSpec, ConcurrencySpec, GateSpec, MinRtt, Switch, Tunable};
pub use cluster::{
    Breakers, ClusterKind, ClusterSpec, ConnectionStyle, Protocol, RetryBudget, RoutingPriority, Thresholds,
};
pub use endpoint::{
    Endpoint, EndpointChecks, EndpointSpec, Endpoints, HealthStatus, Locality, LocalityEndpoints,
};
pub use filters::{
    FilterPick, FilterSpec, HostKey, MatchRule, NoMatch, RequestValue, StageRule, StageSpec, WhenAbsent,
};
pub use health::{HealthCheckSpec, HttpProbe, Probe};
pub use opt_in::{
    ClassMatch, ClassName, ClassNext, ClusterOptions, CoolDown, DeadlineFirst, FailureClass, HalfOpen,
    Idempotency, Layers, OutcomeAt, PreferBelowLimit, RetryAfter, RetryOptions,
};
pub use outlier::{ErrorMatch, OutlierSpec};
pub use policy::{
    Aperture, ClientWeights, ConsistentHashing, HashFunction, HashPolicySpec, HashSource, LoadAware,
    LocalityBalancing, OverrideSource, OverrideSpec, PeakEwma, PolicySpec, RegexRewrite, SelectionMethod,
    SlowStart, ZoneAware,
};
pub use retry::{BackOffSpec, RateLimitedSpec, ResetFormat, RetryOn, RetrySpec};
pub use route::{
    ClusterSource, ForwardSpec, HeaderMatch, MatchSpec, PathMatch, PriorityGroup, PriorityGroups, QueryMatch,
    RedirectSpec, RouteAction, RouteSpec, RouteTableSpec, StringMatch, VirtualHostSpec, WeightedCluster,
    WordSource,
};
pub use session::{SessionSpec, SessionState};
pub use subset::{SelectorFallback, SubsetFallback, SubsetSelector, SubsetSpec};
pub use value::{Metadata, Value};

/// Everything one engine serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Specs {
    /// Clusters in document order; names are unique.
    pub clusters: Vec<ClusterSpec>,
    /// Route tables in document order; their names may be empty.
    pub route_tables: Vec<RouteTableSpec>,
    /// Runtime values, flattened: `a.b.c` to its value.
    pub runtime: Vec<(String, Value)>,
    /// Where this node is; `None` = nowhere, no locality is the local one.
    pub locality: Option<Locality>,
    /// The cluster that this node belongs to, of which zone-aware routing needs to know; `None` = none.
    pub local_cluster: Option<String>,
}

impl Specs {
    /// Every retry policy, wherever it stands.
    fn retries(&self) -> impl Iterator<Item = &RetrySpec> {
        let hosts = self.route_tables.iter().flat_map(|table| &table.virtual_hosts);
        let of_hosts = hosts.clone().filter_map(|host| host.retry.as_ref());
        let of_routes = hosts.flat_map(|host| &host.routes).filter_map(|route| match &route.action {
            RouteAction::Forward(forward) => forward.retry.as_ref(),
            RouteAction::Direct { .. } | RouteAction::Redirect(_) => None,
        });
        let of_clusters = self.clusters.iter().flat_map(|cluster| {
            let defaults = cluster.defaults.as_ref().and_then(|forward| forward.retry.as_ref());
            [cluster.retry.as_ref(), defaults].into_iter().flatten()
        });
        of_hosts.chain(of_routes).chain(of_clusters)
    }

    /// Whether the classes of some retry policy set hosts aside.
    pub(crate) fn set_hosts_aside(&self) -> bool {
        let mut classes = self.retries().flat_map(|retry| &retry.options.classes);
        classes.any(|class| class.cool_down.is_some() && !class.dry_run)
    }
}

/// A fault that only shows when all specs are seen together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// Two clusters have one name.
    #[error("cluster name {0:?} is used twice")]
    DuplicateCluster(String),
    /// A composite cluster reaches itself; the names are the way round.
    #[error("composite clusters form a cycle: {}", .0.join(" -> "))]
    CompositeCycle(Vec<String>),
    /// `load_balancing_policy.drop_overload_limit` is above 100 percent, and an assignment asks for it.
    #[error(
        "load_balancing_policy.drop_overload_limit runtime key config {0} is invalid. The valid range is 0~100"
    )]
    DropLimit(u64),
    /// A regular expression does not compile.
    #[error("bad regular expression {pattern:?}: {reason}")]
    Regex {
        /// The expression as written.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Checks what spans clusters: unique names, no composite cycle, runtime values that assignments read. Names that do not exist are legal
/// (`spec/composite-and-aggregate.md` A1: resolved at each selection).
pub fn check(specs: &Specs) -> Result<(), SpecError> {
    let mut index = std::collections::BTreeMap::new();
    for (i, cluster) in specs.clusters.iter().enumerate() {
        if index.insert(cluster.name.as_str(), i).is_some() {
            return Err(SpecError::DuplicateCluster(cluster.name.clone()));
        }
    }
    let drops = specs.clusters.iter().any(|cluster| cluster.endpoints.drop_ratio > 0.0);
    let limit = crate::snapshot::Runtime::read(&specs.runtime).drop_limit;
    if let Some(limit) = limit.filter(|limit| drops && *limit > 100) {
        return Err(SpecError::DropLimit(limit));
    }
    match composite_cycle(&specs.clusters) {
        Some(way) => Err(SpecError::CompositeCycle(way)),
        None => Ok(()),
    }
}

/// The names along the first composite cycle, the first one repeated at the end.
pub fn composite_cycle(clusters: &[ClusterSpec]) -> Option<Vec<String>> {
    let index: std::collections::BTreeMap<&str, usize> =
        clusters.iter().enumerate().map(|(i, c)| (c.name.as_str(), i)).collect();
    // 0 = not seen, 1 = on the present way, 2 = done. An explicit stack: documents may nest deeply.
    let mut seen = vec![0u8; clusters.len()];
    for start in 0..clusters.len() {
        if seen[start] != 0 {
            continue;
        }
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        seen[start] = 1;
        while let Some(&mut (at, ref mut next)) = way.last_mut() {
            let child = match &clusters[at].kind {
                ClusterKind::Composite(names) => names.get(*next),
                // The priorities of an aggregate's sub-clusters are read, never those below them: no way on.
                ClusterKind::Hosts | ClusterKind::Aggregate(_) => None,
            };
            let Some(name) = child else {
                seen[at] = 2;
                way.pop();
                continue;
            };
            *next += 1;
            let Some(&to) = index.get(name.as_str()) else { continue };
            match seen[to] {
                0 => {
                    seen[to] = 1;
                    way.push((to, 0));
                }
                1 => {
                    let from = way.iter().position(|&(i, _)| i == to).unwrap_or(0);
                    let mut names: Vec<String> =
                        way[from..].iter().map(|&(i, _)| clusters[i].name.clone()).collect();
                    names.push(clusters[to].name.clone());
                    return Some(names);
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composite(name: &str, subs: &[&str]) -> ClusterSpec {
        ClusterSpec {
            name: name.into(),
            kind: ClusterKind::Composite(subs.iter().map(|s| (*s).to_owned()).collect()),
            ..ClusterSpec::default()
        }
    }

    #[test]
    fn finds_cycles_of_any_length_and_only_those() {
        assert_eq!(composite_cycle(&[composite("x", &["x"])]), Some(vec!["x".into(), "x".into()]));
        let three = [composite("a", &["z", "b"]), composite("b", &["c"]), composite("c", &["b"])];
        assert_eq!(composite_cycle(&three), Some(vec!["b".into(), "c".into(), "b".into()]));
        let diamond = [composite("a", &["b", "c"]), composite("b", &["d", "d"]), composite("c", &["d"])];
        assert_eq!(composite_cycle(&diamond), None);
        let deep: Vec<_> = (0..100_000).map(|i| composite(&i.to_string(), &[&(i + 1).to_string()])).collect();
        assert_eq!(composite_cycle(&deep), None);
    }

    #[test]
    fn names_are_unique() {
        let specs = Specs { clusters: vec![composite("a", &["b"]), composite("a", &[])], ..Specs::default() };
        assert_eq!(check(&specs), Err(SpecError::DuplicateCluster("a".into())));
    }
}
