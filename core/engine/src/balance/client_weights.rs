//! client_side_weighted_round_robin (section 23) and wrr_locality (section 24): round_robin by weights that hosts
//! report themselves. They take the place of the configured ones, in the host, at every update and in every period.

use crate::clock::{Time, nanos};
use crate::hosts::HostArena;
use crate::spec::ClientWeights;

/// Gives the hosts of one priority the weights in force now. Returns whether any changed.
pub(crate) fn reweigh(spec: &ClientWeights, list: &[u32], hosts: &HostArena, now: Time) -> bool {
    let (blackout, expiration) = (nanos(spec.blackout), nanos(spec.expiration));
    let reported: Vec<Option<u32>> = list
        .iter()
        .map(|slot| hosts.measured(*slot).and_then(|measured| measured.weight(now, blackout, expiration)))
        .collect();
    let default = median(reported.iter().flatten().copied().collect()).unwrap_or(1);
    let mut changed = false;
    for (slot, weight) in list.iter().zip(reported) {
        changed |= hosts.set_weight(*slot, weight.unwrap_or(default).max(1));
    }
    changed
}

/// The one in the middle, or the whole part of the mean of the two there; `None` of nothing.
fn median(mut weights: Vec<u32>) -> Option<u32> {
    weights.sort_unstable();
    let middle = weights.len() / 2;
    let upper = u64::from(*weights.get(middle)?);
    match weights.len() % 2 {
        1 => Some(upper as u32),
        _ => Some(((u64::from(weights[middle - 1]) + upper) / 2) as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::{TestCluster, TestHost, each_case};
    use crate::orca::{Report, Useless};
    use crate::spec::PolicySpec;
    use serde_json::Value;
    use std::sync::Arc;
    use std::time::Duration;

    fn report(given: &Value) -> Report {
        let number = |name: &str| given[name].as_f64().unwrap_or(0.0);
        let named = given["named_metrics"].as_object().into_iter().flatten();
        Report {
            cpu: number("cpu_utilization"),
            memory: number("mem_utilization"),
            application: number("application_utilization"),
            errors: number("eps"),
            requests: number("rps_fractional"),
            named: named
                .map(|(name, value)| (format!("named_metrics.{name}"), value.as_f64().unwrap()))
                .collect(),
        }
    }

    fn seconds(count: u64) -> Time {
        Time(count * 1_000_000_000)
    }

    #[test]
    fn orca_weights() {
        each_case("orca_weights", 18, &[], |name, given, expect| {
            let names: Vec<String> = given["metric_names"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|n| n.as_str().unwrap().to_owned())
                .collect();
            if given["report"].is_object() {
                let report = report(&given["report"]);
                let named_first =
                    given["orca_weight_manager_use_named_metrics_first"].as_bool().unwrap_or(true);
                let utilization = report.utilization(&names, named_first);
                if let Some(wanted) = expect["utilization"].as_f64() {
                    assert_eq!(utilization, wanted, "{name}");
                    return;
                }
                let weight = report.weight(utilization, given["error_utilization_penalty"].as_f64().unwrap());
                let text = |why| match why {
                    Useless::NoRequests => "QPS must be positive",
                    Useless::NoUtilization => "Utilization must be positive",
                };
                match expect["weight"].as_u64() {
                    Some(wanted) => assert_eq!(weight, Ok(wanted as u32), "{name}"),
                    None => {
                        assert_eq!(weight.map_err(text), Err(expect["error"].as_str().unwrap()), "{name}")
                    }
                }
            } else if let Some(weight) = given["weight"].as_u64() {
                let at = |key: &str| given[key].as_u64().unwrap();
                let measured = crate::measured::Measured::default();
                measured.weigh(weight as u32, seconds(at("non_empty_since_s")));
                measured.weigh(weight as u32, seconds(at("last_update_s")));
                // An instant after all that the case names.
                let now = seconds(100);
                let blackout = now.0 - seconds(at("now_minus_blackout_s")).0;
                let expiration = now.0 - seconds(at("now_minus_expiration_s")).0;
                let valid = measured.weight(now, blackout, expiration);
                assert_eq!(valid.is_some(), expect["valid"].as_bool().unwrap(), "{name}");
                assert_eq!(valid.map(u64::from), expect["weight"].as_u64(), "{name}");
                if let Some(reset) = expect["non_empty_since_reset"].as_bool() {
                    // Without its beginning even no blackout at all finds a weight.
                    assert_eq!(measured.weight(now, 0, now.0).is_none(), reset, "{name}");
                }
            } else {
                let valid: Vec<u32> = given["valid_weights"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|w| w.as_u64().unwrap() as u32)
                    .collect();
                let without = given["hosts_without"].as_u64().unwrap() as usize;
                let spec = ClientWeights { blackout: Duration::ZERO, ..ClientWeights::default() };
                let hosts = vec![TestHost::default(); valid.len() + without];
                let policy = PolicySpec::ClientSideWeighted(Arc::new(spec.clone()));
                let cluster = TestCluster::with_hosts(policy, &hosts, &[]);
                for (slot, weight) in cluster.slots.iter().zip(&valid) {
                    cluster.arena.measure(*slot);
                    cluster.arena.measured(*slot).unwrap().weigh(*weight, Time(0));
                }
                let changed = reweigh(&spec, &cluster.slots, &cluster.arena, Time(0));
                let got: Vec<u32> = cluster.slots.iter().map(|slot| cluster.arena.weight(*slot)).collect();
                assert_eq!(got[..valid.len()], valid, "{name}");
                let default = expect["default"].as_u64().map(|default| default as u32);
                assert!(got[valid.len()..].iter().all(|weight| Some(*weight) == default), "{name}: {got:?}");
                if let Some(wanted) = expect["changed"].as_bool() {
                    assert_eq!(changed, wanted, "{name}");
                }
                // Nothing new, nothing changed.
                assert!(!reweigh(&spec, &cluster.slots, &cluster.arena, Time(0)));
            }
        });
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![u32::MAX, u32::MAX]), Some(u32::MAX));
        assert_eq!(median(vec![3, 1, 2]), Some(2));
    }
}
