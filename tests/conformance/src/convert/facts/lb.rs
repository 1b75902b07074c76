//! Load-balancing policies, subsets and endpoints.

use super::{bootstrap, cluster, endpoint, percents};
use crate::json::Json;
use crate::object;

fn extension(name: &str, message: &str, fields: &Json) -> Json {
    let mut typed = object! {"@type" => format!("type.googleapis.com/envoy.extensions.load_balancing_policies.{name}.v3.{message}")};
    for (key, value) in fields.entries() {
        typed.set(key, value.clone());
    }
    let policy = object! {"name" => format!("envoy.load_balancing_policies.{name}"), "typed_config" => typed};
    object! {"typed_extension_config" => policy}
}

fn policies(list: Vec<Json>) -> Json {
    object! {"policies" => Json::List(list)}
}

/// The policy of a name in the vectors, with these fields.
fn named(name: &str, fields: &Json) -> Json {
    match name {
        "round_robin" => extension(name, "RoundRobin", fields),
        "least_request" => extension(name, "LeastRequest", fields),
        "ring_hash" => extension(name, "RingHash", fields),
        "maglev" => extension(name, "Maglev", fields),
        "random" => extension(name, "Random", fields),
        "subset" => extension(name, "Subset", fields),
        "override_host" => extension(name, "OverrideHost", fields),
        "cluster_provided" => extension(name, "ClusterProvided", fields),
        "load_aware_locality" => extension(name, "LoadAwareLocality", fields),
        "wrr_locality" => extension(name, "WrrLocality", fields),
        "client_side_weighted_round_robin" => extension(name, "ClientSideWeightedRoundRobin", fields),
        other => {
            let typed = object! {
                "@type" => "type.googleapis.com/xds.type.v3.TypedStruct",
                "type_url" => format!("type.googleapis.com/{other}"),
                "value" => object! {},
            };
            object! {"typed_extension_config" => object! {"name" => other, "typed_config" => typed}}
        }
    }
}

fn with_policy(policy: Json) -> Json {
    let mut cluster = cluster("c");
    cluster.set("load_balancing_policy", policies(vec![policy]));
    cluster
}

/// Legacy fields name the policy they belong to.
fn legacy(fields: &Json) -> Json {
    let mut cluster = cluster("c");
    for (key, value) in fields.entries() {
        cluster.set(key, value.clone());
        let policy = match key.as_str() {
            "least_request_lb_config" => "LEAST_REQUEST",
            "ring_hash_lb_config" => "RING_HASH",
            "maglev_lb_config" => "MAGLEV",
            _ => continue,
        };
        cluster.set("lb_policy", policy.into());
    }
    cluster
}

pub(super) fn documents(id: &str, given: &Json) -> Result<Vec<Json>, String> {
    let given = &percents(given);
    let fallback = || policies(vec![named("round_robin", &object! {})]);
    let child = |policy: Json| object! {"endpoint_picking_policy" => policies(vec![policy])};
    let aware = |key: &str, value: Json| {
        let mut fields = child(named("round_robin", &object! {}));
        fields.set(key, value);
        with_policy(named("load_aware_locality", &fields))
    };
    let group = |hosts: Vec<Json>| object! {"lb_endpoints" => Json::List(hosts)};
    let assigned = |groups: Vec<Json>, policy: Json| {
        let mut assignment = object! {"cluster_name" => "c", "endpoints" => Json::List(groups)};
        if !policy.is_null() {
            assignment.set("policy", policy);
        }
        let mut cluster = cluster("c");
        cluster.set("load_assignment", assignment);
        cluster
    };
    let weighted = |port: i64, weight: i64| {
        let mut host = endpoint(port);
        host.set("load_balancing_weight", weight.into());
        host
    };
    let heavy = || {
        let mut cluster =
            assigned(vec![group(vec![weighted(80, 4_294_967_295), weighted(81, 4_294_967_295)])], Json::Null);
        cluster.set("lb_policy", "RING_HASH".into());
        cluster
    };
    let cluster = match id {
        "lb_subset_config with CLUSTER_PROVIDED" => {
            let mut cluster = cluster("c");
            let selector = object! {"keys" => Json::List(vec!["a".into()])};
            cluster.set("lb_policy", "CLUSTER_PROVIDED".into());
            cluster.set("lb_subset_config", object! {"subset_selectors" => Json::List(vec![selector])});
            cluster
        }
        "load_balancing_policy + lb_subset_config" => {
            let mut cluster = with_policy(named("round_robin", &object! {}));
            let selector = object! {"keys" => Json::List(vec!["a".into()])};
            cluster.set("lb_subset_config", object! {"subset_selectors" => Json::List(vec![selector])});
            cluster
        }
        "load_balancing_policy + common zone/locality/hash fields" => {
            let mut cluster = with_policy(named("round_robin", &object! {}));
            cluster.set("common_lb_config", object! {"zone_aware_lb_config" => object! {}});
            cluster
        }
        "LOAD_BALANCING_POLICY_CONFIG without load_balancing_policy" => {
            let mut cluster = cluster("c");
            cluster.set("lb_policy", "LOAD_BALANCING_POLICY_CONFIG".into());
            cluster
        }
        "unknown name, known config type" => {
            let mut policy = named("round_robin", &object! {});
            policy.get_mut("typed_extension_config").set("name", "nope".into());
            with_policy(policy)
        }
        "override source with both" => {
            let both = object! {"header" => "x-host", "metadata" => object! {"key" => "envoy.lb", "path" => Json::List(vec![object! {"key" => "host"}])}};
            with_policy(named(
                "override_host",
                &object! {"override_host_sources" => Json::List(vec![both]), "fallback_policy" => fallback()},
            ))
        }
        "override source empty" => with_policy(named(
            "override_host",
            &object! {"override_host_sources" => Json::List(vec![object! {}]), "fallback_policy" => fallback()},
        )),
        "override without sources" => {
            with_policy(named("override_host", &object! {"fallback_policy" => fallback()}))
        }
        "override without fallback" | "override unknown fallback" => {
            let source = object! {"header" => "x-host"};
            let mut fields = object! {"override_host_sources" => Json::List(vec![source])};
            if id == "override unknown fallback" {
                fields.set("fallback_policy", policies(vec![named("nope", &Json::Null)]));
            }
            with_policy(named("override_host", &fields))
        }
        "load_aware_locality period 50ms" => aware("weight_update_period", "0.05s".into()),
        "variance 1.5" => aware("utilization_variance_threshold", Json::Number("1.5".into())),
        "probe 1.0" => aware("remote_probe_fraction", Json::Number("1.0".into())),
        "smoothing 0s" => aware("smoothing_time_constant", "0s".into()),
        "no child" => with_policy(named("load_aware_locality", &object! {})),
        "self child" => {
            let inner = named("load_aware_locality", &child(named("round_robin", &object! {})));
            with_policy(named("load_aware_locality", &child(inner)))
        }
        "cluster_provided child" => {
            with_policy(named("load_aware_locality", &child(named("cluster_provided", &object! {}))))
        }
        "wrr_locality child round_robin" => {
            with_policy(named("wrr_locality", &child(named("round_robin", &object! {}))))
        }
        "cswrr error_utilization_penalty -1" => with_policy(named(
            "client_side_weighted_round_robin",
            &object! {"error_utilization_penalty" => Json::Number("-1".into())},
        )),
        "endpoint weight 0" => assigned(vec![group(vec![weighted(80, 0)])], Json::Null),
        "locality weight 0" | "priority 129" => {
            let mut group = group(vec![endpoint(80)]);
            let (key, value) =
                if id == "priority 129" { ("priority", 129) } else { ("load_balancing_weight", 0) };
            group.set(key, value.into());
            assigned(vec![group], Json::Null)
        }
        "overprovisioning_factor 0" => {
            assigned(vec![group(vec![endpoint(80)])], object! {"overprovisioning_factor" => 0})
        }
        "priorities 0 and 2 only" => {
            let mut second = group(vec![endpoint(81)]);
            second.set("priority", 2.into());
            assigned(vec![group(vec![endpoint(80)]), second], Json::Null)
        }
        "host weights sum over 2^32-1 with a hashing policy" => heavy(),
        "same with round_robin" => {
            let mut cluster = heavy();
            cluster.set("lb_policy", "ROUND_ROBIN".into());
            cluster
        }
        "hash policy without specifier inside consistent_hashing_lb_config" => {
            let hash = object! {"hash_policy" => Json::List(vec![object! {}])};
            with_policy(named("ring_hash", &object! {"consistent_hashing_lb_config" => hash}))
        }
        "cluster_provided on a STATIC cluster" => with_policy(named("cluster_provided", &object! {})),
        _ if given.has("selector") => {
            let subset = object! {"subset_selectors" => Json::List(vec![given.get("selector").clone()])};
            legacy(&object! {"lb_subset_config" => subset})
        }
        _ if given.get("endpoint").has("policy") => {
            assigned(vec![group(vec![endpoint(80)])], given.get("endpoint").get("policy").clone())
        }
        _ if !given.get("legacy").entries().is_empty() => legacy(given.get("legacy")),
        _ if !given.get("typed").entries().is_empty() => {
            let (name, fields) = &given.get("typed").entries()[0];
            with_policy(named(name, fields))
        }
        _ if !given.get("typed").items().is_empty() => {
            let list = given.get("typed").items().iter().map(|name| named(&name.text(), &object! {}));
            let mut cluster = cluster("c");
            cluster.set("load_balancing_policy", policies(list.collect()));
            cluster
        }
        other => return Err(format!("no document for {other}")),
    };
    Ok(vec![bootstrap(vec![cluster])])
}
