//! Subsets: `lb_subset_config` and the policy `Subset`.

use super::policy::load_balancing_policy;
use crate::error::Result;
use crate::read::{At, Fields, Msg, struct_of};
use nexthop_engine::spec::{PolicySpec, SelectorFallback, SubsetFallback, SubsetSelector, SubsetSpec};
use std::sync::Arc;

const LEGACY: Fields = Fields::of(
    "LbSubsetConfig",
    &[
        "fallback_policy",
        "default_subset",
        "subset_selectors",
        "locality_weight_aware",
        "scale_locality_weight",
        "panic_mode_any",
        "list_as_any",
        "metadata_fallback_policy",
    ],
);
const TYPED: Fields = Fields::of(
    "Subset",
    &[
        "fallback_policy",
        "default_subset",
        "subset_selectors",
        "allow_redundant_keys",
        "locality_weight_aware",
        "scale_locality_weight",
        "panic_mode_any",
        "list_as_any",
        "metadata_fallback_policy",
        "subset_lb_policy",
    ],
);
const SELECTOR: Fields = Fields::of(
    "LbSubsetSelector",
    &["keys", "single_host_per_subset", "fallback_policy", "fallback_keys_subset"],
);

const FALLBACKS: &[(&str, i32)] = &[("NO_FALLBACK", 0), ("ANY_ENDPOINT", 1), ("DEFAULT_SUBSET", 2)];
const SELECTOR_FALLBACKS: &[(&str, i32)] =
    &[("NOT_DEFINED", 0), ("NO_FALLBACK", 1), ("ANY_ENDPOINT", 2), ("DEFAULT_SUBSET", 3), ("KEYS_SUBSET", 4)];
const METADATA_FALLBACKS: &[(&str, i32)] = &[("METADATA_NO_FALLBACK", 0), ("FALLBACK_LIST", 1)];

/// Reads `lb_subset_config` around the cluster's policy; `None` = without selectors it does nothing.
pub(super) fn legacy(at: &At<'_>, child: PolicySpec) -> Result<Option<PolicySpec>> {
    let msg = at.message(&LEGACY)?;
    let spec = read(&msg, child, false)?;
    Ok((!spec.selectors.is_empty()).then(|| PolicySpec::Subset(Arc::new(spec))))
}

/// Whether subsets are to keep locality weights.
pub(super) fn wants_locality_weights(at: &At<'_>) -> Result<bool> {
    at.message(&LEGACY)?.or("locality_weight_aware", false, |flag| flag.bool())
}

/// Reads the typed policy.
pub(super) fn typed(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&TYPED)?;
    let child = load_balancing_policy(&msg.need("subset_lb_policy")?)?;
    if child == PolicySpec::ClusterProvided {
        return Err(at.fail("subsets need a policy that chooses among hosts, not CLUSTER_PROVIDED"));
    }
    Ok(PolicySpec::Subset(Arc::new(read(&msg, child, true)?)))
}

fn read(msg: &Msg<'_>, child: PolicySpec, typed: bool) -> Result<SubsetSpec> {
    let flag = |name| msg.or(name, false, |flag| flag.bool());
    let default_subset = msg.map("default_subset", |at| {
        struct_of(at.node).ok_or_else(|| at.expected("a mapping of metadata values"))
    })?;
    Ok(SubsetSpec {
        fallback: match msg.or("fallback_policy", 0, |f| f.enumeration(FALLBACKS))? {
            0 => SubsetFallback::None,
            1 => SubsetFallback::Any,
            _ => SubsetFallback::Default,
        },
        default_subset: default_subset.unwrap_or_default(),
        selectors: msg.repeated("subset_selectors", |item| selector(&item))?,
        allow_redundant_keys: typed && flag("allow_redundant_keys")?,
        locality_weight_aware: flag("locality_weight_aware")?,
        scale_locality_weight: flag("scale_locality_weight")?,
        panic_mode_any: flag("panic_mode_any")?,
        list_as_any: flag("list_as_any")?,
        fallback_list: msg.or("metadata_fallback_policy", 0, |f| f.enumeration(METADATA_FALLBACKS))? == 1,
        child,
    })
}

fn selector(at: &At<'_>) -> Result<SubsetSelector> {
    let msg = at.message(&SELECTOR)?;
    let sorted = |name| -> Result<Vec<String>> {
        let mut keys = msg.repeated(name, |key| key.text())?;
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    };
    let (keys, fallback_keys) = (sorted("keys")?, sorted("fallback_keys_subset")?);
    let fallback = match msg.or("fallback_policy", 0, |f| f.enumeration(SELECTOR_FALLBACKS))? {
        0 => None,
        1 => Some(SelectorFallback::None),
        2 => Some(SelectorFallback::Any),
        3 => Some(SelectorFallback::Default),
        _ => Some(SelectorFallback::Keys(fallback_keys.clone())),
    };
    let named = msg.get("fallback_keys_subset");
    let fail = |text: &str| Err(named.as_ref().unwrap_or(at).fail(text));
    if let Some(SelectorFallback::Keys(_)) = fallback {
        if fallback_keys.is_empty() {
            return fail("fallback_keys_subset cannot be empty");
        }
        if !fallback_keys.iter().all(|key| keys.contains(key)) {
            return fail("fallback_keys_subset must be a subset of the selector's keys");
        }
        if fallback_keys == keys {
            return fail("fallback_keys_subset cannot be equal to the selector's keys");
        }
    } else if !fallback_keys.is_empty() {
        return fail("fallback_keys_subset can be set only for the fallback policy KEYS_SUBSET");
    }
    Ok(SubsetSelector { keys, single_host: msg.or("single_host_per_subset", false, |f| f.bool())?, fallback })
}
