//! How hosts are chosen.

use super::{Rows, seconds};
use crate::report::ReportEntry;
use nexthop_engine::explain::policy_name;
use nexthop_engine::spec::{
    ConsistentHashing, FilterPick, FilterSpec, HashFunction, LocalityBalancing, NoMatch, PolicySpec,
    SelectionMethod, SlowStart, StageRule, StageSpec, SubsetFallback, WhenAbsent,
};
use serde_json::json;

impl<'a> Rows<'a> {
    pub(super) fn policy(&mut self, policy: &PolicySpec) {
        let name = policy_name(policy);
        let ends = ["nexthop.policy", "load_balancing_policy", "lb_policy", ".policy"];
        let own = self.given(&ends);
        let given = match policy {
            // A preset may bring its own; what the cluster says itself does nothing then.
            PolicySpec::Filtered(_) if own.is_none_or(|own| !says(&own.text, name)) => {
                self.preset().or(own).or_else(|| self.of_defaults(&["nexthop.filters"]))
            }
            _ => own,
        };
        let given = given.cloned();
        self.row("policy", json!(name), given.as_ref());
        self.numbers(policy);
    }

    /// What the policy goes by, its children's numbers too.
    fn numbers(&mut self, policy: &PolicySpec) {
        match policy {
            PolicySpec::RoundRobin { locality, slow_start } => self.locality(locality, slow_start.as_ref()),
            PolicySpec::LeastRequest {
                choice_count,
                active_request_bias,
                selection,
                locality,
                slow_start,
            } => {
                self.put("policy.choice_count", json!(choice_count), &["choice_count"]);
                self.put(
                    "policy.active_request_bias",
                    json!(active_request_bias),
                    &["active_request_bias.default_value", "active_request_bias"],
                );
                let method = match selection {
                    SelectionMethod::NChoices => "N_CHOICES",
                    SelectionMethod::FullScan => "FULL_SCAN",
                };
                self.put("policy.selection_method", json!(method), &["selection_method"]);
                self.locality(locality, slow_start.as_ref());
            }
            PolicySpec::Random { locality } => self.locality(locality, None),
            PolicySpec::RingHash {
                hash_function,
                minimum_ring_size,
                maximum_ring_size,
                hashing,
                locality_weighted,
            } => {
                let function = match hash_function {
                    HashFunction::XxHash => "XX_HASH",
                    HashFunction::MurmurHash2 => "MURMUR_HASH_2",
                };
                self.put("policy.hash_function", json!(function), &["hash_function"]);
                self.put("policy.minimum_ring_size", json!(minimum_ring_size), &["minimum_ring_size"]);
                self.put("policy.maximum_ring_size", json!(maximum_ring_size), &["maximum_ring_size"]);
                self.hashing(hashing, *locality_weighted);
            }
            PolicySpec::Maglev { table_size, hashing, locality_weighted } => {
                self.put("policy.table_size", json!(table_size), &["table_size"]);
                self.hashing(hashing, *locality_weighted);
            }
            PolicySpec::PeakEwma(spec) => {
                let of = |name| format!("nexthop.policy.peak_ewma.{name}");
                for (name, value) in [
                    ("decay", seconds(spec.decay)),
                    ("default_rtt", seconds(spec.default_rtt)),
                    ("penalty", seconds(spec.penalty)),
                    ("choices", json!(spec.choices)),
                ] {
                    self.put(&of(name), value, &[&of(name), &format!("peak_ewma.{name}")]);
                }
            }
            PolicySpec::DeterministicAperture(spec) => {
                let of = |name| format!("nexthop.policy.deterministic_aperture.{name}");
                for (name, value) in [("size", spec.size), ("id", spec.id), ("peers", spec.peers)] {
                    let ends = [&*of(name), &format!("deterministic_aperture.{name}")];
                    self.put(&of(name), json!(value), &ends);
                }
            }
            PolicySpec::ClientSideWeighted(spec) => {
                for (name, value) in [
                    ("blackout_period", seconds(spec.blackout)),
                    ("weight_expiration_period", seconds(spec.expiration)),
                    ("weight_update_period", seconds(spec.period)),
                    ("error_utilization_penalty", json!(spec.error_penalty)),
                ] {
                    self.put(&format!("policy.{name}"), value, &[name]);
                }
                self.locality(&spec.locality, spec.slow_start.as_ref());
            }
            PolicySpec::LoadAwareLocality(spec) => {
                for (name, value) in [
                    ("weight_update_period", seconds(spec.period)),
                    ("utilization_variance_threshold", json!(spec.variance_threshold)),
                    ("ewma_time_constant", seconds(spec.smoothing)),
                    ("remote_probe_fraction", json!(spec.probe_fraction)),
                    ("weight_expiration_period", seconds(spec.expiration)),
                ] {
                    self.put(&format!("policy.{name}"), value, &[name]);
                }
                self.put("policy.child", json!(policy_name(&spec.child)), &["endpoint_picking_policy"]);
                self.numbers(&spec.child);
            }
            PolicySpec::OverrideHost(spec) => {
                self.put("policy.fallback", json!(policy_name(&spec.fallback)), &["fallback_policy"]);
                self.numbers(&spec.fallback);
            }
            PolicySpec::Subset(spec) => {
                let fallback = match spec.fallback {
                    SubsetFallback::None => "NO_FALLBACK",
                    SubsetFallback::Any => "ANY_ENDPOINT",
                    SubsetFallback::Default => "DEFAULT_SUBSET",
                };
                self.put("policy.subset.fallback_policy", json!(fallback), &["fallback_policy"]);
                let keys: Vec<_> = spec.selectors.iter().map(|selector| &selector.keys).collect();
                self.put("policy.subset.selectors", json!(keys), &["subset_selectors"]);
                for (name, value) in [
                    ("locality_weight_aware", spec.locality_weight_aware),
                    ("scale_locality_weight", spec.scale_locality_weight),
                    ("panic_mode_any", spec.panic_mode_any),
                    ("list_as_any", spec.list_as_any),
                    ("allow_redundant_keys", spec.allow_redundant_keys),
                ] {
                    self.put(&format!("policy.subset.{name}"), json!(value), &[name]);
                }
                self.numbers(&spec.child);
            }
            PolicySpec::Filtered(spec) => self.stages(spec),
            PolicySpec::RendezvousHash | PolicySpec::WeightedRandom | PolicySpec::ClusterProvided => {}
        }
    }

    fn stages(&mut self, spec: &FilterSpec) {
        let names: Vec<&str> = spec.stages.iter().map(|stage| stage.name.as_str()).collect();
        self.put("nexthop.filters", json!(names), &["nexthop.filters", "filters"]);
        self.put("nexthop.filters.ignore_health", json!(spec.ignore_health), &["nexthop.filters.preset"]);
        for (at, stage) in spec.stages.iter().enumerate() {
            self.stage(at, stage);
        }
        if let FilterPick::Policy(policy) = &spec.pick {
            self.numbers(policy);
        }
    }

    /// The first preset of the list that is in force: the cluster's own, or else that of the defaults.
    fn preset(&self) -> Option<&'a ReportEntry> {
        let end = ["nexthop.filters.preset"];
        let has_list = self.given(&["nexthop.filters"]).is_some();
        self.given(&end).or_else(|| self.of_defaults(&end).filter(|_| !has_list))
    }

    /// One stage's settings. Stages are counted as the list and its presets make them.
    fn stage(&mut self, at: usize, stage: &StageSpec) {
        let empty = match stage.no_match {
            NoMatch::Input => "skip",
            NoMatch::All => "all",
            NoMatch::Fail => "fail",
        };
        let mut rows = vec![("when_empty", json!(empty)), ("healthy_only", json!(stage.healthy_only))];
        match &stage.rule {
            StageRule::Match(rule) => {
                let absent = match rule.absent {
                    WhenAbsent::Skip => "skip",
                    WhenAbsent::RequireAbsent => "require_absent",
                };
                rows.push(("when_absent", json!(absent)));
                let compare = if rule.ignore_case { "ignore_case" } else { "exact" };
                rows.push(("compare", json!(compare)));
            }
            StageRule::Part { size, id } => {
                rows.push(("subset.size", json!(size)));
                rows.push(("subset.id", json!(id)));
            }
            StageRule::IpFamily { ipv6, rewrite } => {
                rows.push(("ip_family.ipv6", json!(ipv6)));
                rows.push(("ip_family.rewrite", json!(rewrite)));
            }
            StageRule::AvoidPrevious | StageRule::SameInstance | StageRule::CrossCluster => {}
        }
        let (preset, has_list) = (self.preset(), self.given(&["nexthop.filters"]).is_some());
        for (name, value) in rows {
            let exact = self.at(&self.path(&format!("nexthop.filters[{at}].{name}")));
            let end = format!("nexthop.filters.{name}");
            // What no field says, a preset does, if there is one.
            let of_list = self.given(&[&end]).filter(|_| preset.is_some());
            let of_defaults = self.of_defaults(&[&end]).filter(|_| !has_list);
            let given = exact.or(of_list).or(of_defaults).or(preset).cloned();
            self.row(&format!("nexthop.filters[{at}].{name}"), value, given.as_ref());
        }
    }

    fn locality(&mut self, locality: &LocalityBalancing, slow_start: Option<&SlowStart>) {
        match locality {
            LocalityBalancing::None => self.put("policy.locality", json!("none"), &[]),
            LocalityBalancing::Weighted => {
                self.put("policy.locality", json!("weighted"), &["locality_weighted_lb_config"]);
            }
            LocalityBalancing::ZoneAware(zone) => {
                self.put("policy.locality", json!("zone_aware"), &["zone_aware_lb_config"]);
                let (enabled, least) = (zone.routing_enabled, zone.min_cluster_size);
                self.put(
                    "policy.routing_enabled",
                    json!(enabled),
                    &["routing_enabled.value", "routing_enabled"],
                );
                self.put("policy.min_cluster_size", json!(least), &["min_cluster_size"]);
                self.put(
                    "policy.fail_traffic_on_panic",
                    json!(zone.fail_traffic_on_panic),
                    &["fail_traffic_on_panic"],
                );
                self.put(
                    "policy.force_local_zone.min_size",
                    json!(zone.force_local_zone),
                    &["force_local_zone.min_size", "force_local_zone", "force_locality_direct_routing"],
                );
            }
        }
        match slow_start {
            None => self.put("policy.slow_start_window", json!(null), &[]),
            Some(start) => {
                self.put("policy.slow_start_window", seconds(start.window), &["slow_start_window"]);
                self.put(
                    "policy.aggression",
                    json!(start.aggression),
                    &["aggression.default_value", "aggression"],
                );
                self.put(
                    "policy.min_weight_percent",
                    json!(start.min_weight * 100.0),
                    &["min_weight_percent.value", "min_weight_percent"],
                );
            }
        }
    }

    fn hashing(&mut self, hashing: &ConsistentHashing, locality_weighted: bool) {
        let locality = if locality_weighted { "weighted" } else { "none" };
        self.put("policy.locality", json!(locality), &["locality_weighted_lb_config"]);
        self.put(
            "policy.use_hostname_for_hashing",
            json!(hashing.use_hostname),
            &["use_hostname_for_hashing"],
        );
        let bound = (hashing.balance_factor != 0).then_some(hashing.balance_factor);
        self.put("policy.hash_balance_factor", json!(bound), &["hash_balance_factor"]);
    }
}

/// Whether the text of a field that was read names this policy, in the words of any form.
fn says(text: &str, name: &str) -> bool {
    text == "used" || text.to_ascii_lowercase().ends_with(&format!(" {name}"))
}
