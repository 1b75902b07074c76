//! The immutable view that one decision is made on.

use crate::balance::{Linear, ZoneRuntime};
use crate::cluster::{ClusterShared, ClusterView};
use crate::outlier::Rules;
use crate::policies::Policies;
use crate::shed::Sheds;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Clusters by index, policies, runtime values.
pub(crate) struct Snapshot {
    pub(crate) clusters: Vec<Entry>,
    pub(crate) policies: Arc<Policies>,
    pub(crate) runtime: Runtime,
}

/// One known cluster name.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) shared: Arc<ClusterShared>,
    /// `None` = no such cluster now.
    pub(crate) view: Option<Arc<ClusterView>>,
    /// Outlier detection as it acts now; `None` = none.
    pub(crate) outlier: Option<Arc<Rules>>,
    /// What an aggregate chooses by; `None` for all others.
    pub(crate) linear: Option<Arc<Linear>>,
    /// What is turned away before a host is chosen; `None` = nothing.
    pub(crate) sheds: Option<Box<Sheds>>,
}

/// Runtime values that decisions read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Runtime {
    /// `envoy.reloadable_features.composite_cluster_skip_clusters_without_hosts`
    pub(crate) composite_skip_empty: bool,
    /// `upstream.use_retry`, percent.
    pub(crate) use_retry: u64,
    /// `upstream.base_retry_backoff_ms`
    pub(crate) base_retry_backoff_ms: Option<u64>,
    /// `health_check.verify_cluster`, percent.
    pub(crate) verify_cluster: u64,
    /// `upstream.healthy_panic_threshold`
    pub(crate) healthy_panic_threshold: Option<u32>,
    /// `envoy.reloadable_features.skip_pending_overflow_count_on_active_rq` is off: a request refused by `max_requests`
    /// counts as pending overflow, too.
    pub(crate) both_overflows: bool,
    /// `load_balancing_policy.drop_overload_limit`, percent. Read with each assignment, as Envoy reads it.
    pub(crate) drop_limit: Option<u64>,
    /// `upstream.zone_routing.*`
    pub(crate) zone: ZoneRuntime,
}

impl Default for Runtime {
    fn default() -> Self {
        Self {
            composite_skip_empty: true,
            use_retry: 100,
            verify_cluster: 100,
            base_retry_backoff_ms: None,
            healthy_panic_threshold: None,
            both_overflows: false,
            drop_limit: None,
            zone: ZoneRuntime::default(),
        }
    }
}

impl Runtime {
    /// The values of a runtime layer; the last one of a key wins.
    pub(crate) fn read(values: &[(String, crate::spec::Value)]) -> Self {
        use crate::spec::Value;
        let mut runtime = Self::default();
        for (key, value) in values {
            let number = integer(value);
            let flag = match value {
                Value::Bool(flag) => Some(*flag),
                Value::String(text) => text.parse().ok(),
                _ => None,
            };
            match key.as_str() {
                "envoy.reloadable_features.composite_cluster_skip_clusters_without_hosts" => {
                    runtime.composite_skip_empty = flag.unwrap_or(runtime.composite_skip_empty);
                }
                "envoy.reloadable_features.skip_pending_overflow_count_on_active_rq" => {
                    runtime.both_overflows = flag.is_some_and(|skip| !skip);
                }
                "health_check.verify_cluster" => {
                    runtime.verify_cluster = number.unwrap_or(runtime.verify_cluster);
                }
                "upstream.use_retry" => runtime.use_retry = number.unwrap_or(runtime.use_retry),
                "upstream.base_retry_backoff_ms" => runtime.base_retry_backoff_ms = number,
                "upstream.healthy_panic_threshold" => {
                    runtime.healthy_panic_threshold = number.map(|n| n.min(100) as u32);
                }
                "load_balancing_policy.drop_overload_limit" => {
                    runtime.drop_limit = number;
                }
                "upstream.zone_routing.enabled" => runtime.zone.enabled = number,
                "upstream.zone_routing.min_cluster_size" => runtime.zone.min_cluster_size = number,
                "upstream.zone_routing.force_local_zone.min_size" => {
                    runtime.zone.force_local_zone = number.and_then(|n| u32::try_from(n).ok());
                }
                _ => {}
            }
        }
        runtime
    }
}

/// Clusters in maintenance, in percent.
pub(crate) fn maintenance(values: &[(String, crate::spec::Value)]) -> BTreeMap<String, u8> {
    let mut list = BTreeMap::new();
    for (key, value) in values {
        if let (Some(cluster), Some(percent)) =
            (key.strip_prefix("upstream.maintenance_mode."), integer(value))
        {
            list.insert(cluster.to_owned(), percent.min(100) as u8);
        }
    }
    list
}

/// A runtime value as a whole number. A fraction is none to Envoy: the default stays.
pub(crate) fn integer(value: &crate::spec::Value) -> Option<u64> {
    use crate::spec::Value;
    match value {
        Value::Number(number) if *number >= 0.0 && number.fract() == 0.0 => Some(*number as u64),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
