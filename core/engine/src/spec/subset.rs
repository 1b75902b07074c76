//! Subsets of a cluster's hosts (`spec/load-balancing.md` section 22).

use super::{PolicySpec, Value};
use std::collections::BTreeMap;

/// `lb_subset_config`, or the policy `Subset`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubsetSpec {
    /// For requests that no subset fits. Defaults to none.
    pub fallback: SubsetFallback,
    /// What hosts of the default subset have; empty = every host.
    pub default_subset: BTreeMap<String, Value>,
    /// Which keys make subsets.
    pub selectors: Vec<SubsetSelector>,
    /// A request may ask for more keys than a selector has. Defaults to false.
    pub allow_redundant_keys: bool,
    /// Subsets keep the weights of localities. Defaults to false: they have none.
    pub locality_weight_aware: bool,
    /// These weights shrink with the part of a locality's hosts that a subset has. Defaults to false.
    pub scale_locality_weight: bool,
    /// Where the fallback finds no host, any host. Defaults to false.
    pub panic_mode_any: bool,
    /// Each element of a list counts as a value. Defaults to false.
    pub list_as_any: bool,
    /// `fallback_list` of a request is a list of criteria to try in order. Defaults to false.
    pub fallback_list: bool,
    /// How each subset chooses.
    pub child: PolicySpec,
}

/// One selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubsetSelector {
    /// Sorted, each once.
    pub keys: Vec<String>,
    /// A subset is its first host. Defaults to false.
    pub single_host: bool,
    /// For requests with these keys that no subset fits; `None` = the policy's own.
    pub fallback: Option<SelectorFallback>,
}

/// `fallback_policy` of the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubsetFallback {
    /// No host.
    #[default]
    None,
    /// Any host.
    Any,
    /// A host of the default subset.
    Default,
}

/// `fallback_policy` of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectorFallback {
    /// No host.
    None,
    /// Any host.
    Any,
    /// A host of the default subset.
    Default,
    /// As if only these keys were asked for: some of the selector's, sorted.
    Keys(Vec<String>),
}
