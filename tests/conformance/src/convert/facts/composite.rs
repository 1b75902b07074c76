//! Composite and aggregate clusters.

use super::{bootstrap, cluster};
use crate::json::Json;
use crate::object;

fn names(names: &[&str]) -> Json {
    Json::List(names.iter().map(|name| object! {"name" => *name}).collect())
}

fn outer(kind: &str, config: Json) -> Json {
    let mut typed =
        object! {"@type" => format!("type.googleapis.com/envoy.extensions.clusters.{kind}.v3.ClusterConfig")};
    for (key, value) in config.entries() {
        typed.set(key, value.clone());
    }
    object! {
        "name" => "X",
        "connect_timeout" => "1s",
        "lb_policy" => "CLUSTER_PROVIDED",
        "cluster_type" => object! {"name" => format!("envoy.clusters.{kind}"), "typed_config" => typed},
    }
}

fn policy(name: &str, kind: &str) -> Json {
    let typed = object! {
        "@type" => format!("type.googleapis.com/envoy.extensions.load_balancing_policies.{kind}"),
    };
    let extension =
        object! {"name" => format!("envoy.load_balancing_policies.{name}"), "typed_config" => typed};
    object! {"policies" => Json::List(vec![object! {"typed_extension_config" => extension}])}
}

/// What the outer cluster has of its own.
fn own(outer: &mut Json, id: &str) -> Result<(), String> {
    let detail = |key: &str| cluster("X").get(key).clone();
    match id {
        "own load_assignment" => outer.set("load_assignment", detail("load_assignment")),
        "own health_checks" => {
            let check = object! {
                "timeout" => "1s", "interval" => "1s", "unhealthy_threshold" => 2, "healthy_threshold" => 2,
                "tcp_health_check" => object! {},
            };
            outer.set("health_checks", Json::List(vec![check]));
        }
        "own outlier_detection" => outer.set("outlier_detection", object! {}),
        "own lb_subset_config" | "lb_subset_config" => {
            let selector = object! {"keys" => Json::List(vec!["a".into()])};
            outer.set("lb_subset_config", object! {"subset_selectors" => Json::List(vec![selector])});
        }
        "lb_policy ROUND_ROBIN or unset" => outer.set("lb_policy", "ROUND_ROBIN".into()),
        "lb_policy ROUND_ROBIN, LEAST_REQUEST or unset" => outer.set("lb_policy", "LEAST_REQUEST".into()),
        "load_balancing_policy round_robin" => {
            outer.set("lb_policy", "ROUND_ROBIN".into());
            outer.set("load_balancing_policy", policy("round_robin", "round_robin.v3.RoundRobin"));
        }
        "load_balancing_policy cluster_provided" => {
            outer.set("lb_policy", "ROUND_ROBIN".into());
            outer.set(
                "load_balancing_policy",
                policy("cluster_provided", "cluster_provided.v3.ClusterProvided"),
            );
        }
        other => return Err(format!("no document for {other}")),
    }
    Ok(())
}

pub(super) fn composite(id: &str) -> Result<Vec<Json>, String> {
    let three = || object! {"clusters" => names(&["A", "B", "C"])};
    let config = match id {
        "clusters empty" => object! {"clusters" => names(&[])},
        "clusters [{name:\"\"}]" => object! {"clusters" => names(&[""])},
        "clusters as plain strings" => object! {"clusters" => Json::List(vec!["A".into(), "B".into()])},
        "references an unknown cluster" => object! {"clusters" => names(&["A", "nosuch"])},
        "same cluster listed twice" => object! {"clusters" => names(&["A", "A", "B"])},
        "references itself" => object! {"clusters" => names(&["X", "A"])},
        _ => three(),
    };
    let mut outer = outer("composite", config);
    let set = |outer: &mut Json, key: &str, value: Json| {
        outer.get_mut("cluster_type").get_mut("typed_config").set(key, value);
    };
    match id {
        "draft field mode" => set(&mut outer, "mode", "RETRY".into()),
        "draft field sub_clusters" => set(&mut outer, "sub_clusters", names(&["A"])),
        "draft field retry_config" => set(&mut outer, "retry_config", object! {}),
        "draft field overflow_behavior" => set(&mut outer, "overflow_behavior", "FAIL".into()),
        "draft field name" => set(&mut outer, "name", "composite".into()),
        "draft message type CompositeCluster" => {
            let kind = "type.googleapis.com/envoy.extensions.clusters.composite.v3.CompositeCluster";
            set(&mut outer, "@type", kind.into());
        }
        id if id.starts_with("clusters ") || id.starts_with("references ") || id.starts_with("same ") => {}
        other => own(&mut outer, other)?,
    }
    Ok(vec![bootstrap(vec![cluster("A"), cluster("B"), cluster("C"), outer])])
}

pub(super) fn aggregate(id: &str) -> Result<Vec<Json>, String> {
    let list = |names: &[&str]| Json::List(names.iter().map(|name| Json::from(*name)).collect());
    if id == "STATIC cluster with lb_policy CLUSTER_PROVIDED" {
        let mut cluster = cluster("X");
        cluster.set("lb_policy", "CLUSTER_PROVIDED".into());
        return Ok(vec![bootstrap(vec![cluster])]);
    }
    let clusters = match id {
        "clusters empty" => list(&[]),
        "clusters [\"\"]" => list(&[""]),
        "references an unknown cluster" => list(&["A", "nosuch"]),
        "same cluster listed twice" => list(&["A", "A", "B"]),
        "references itself" => list(&["X", "A"]),
        _ => list(&["A", "B", "C"]),
    };
    let mut outer = outer("aggregate", object! {"clusters" => clusters});
    let given =
        |id: &str| id.starts_with("clusters ") || id.starts_with("references ") || id.starts_with("same ");
    if !given(id) {
        own(&mut outer, id)?;
    }
    Ok(vec![bootstrap(vec![cluster("A"), cluster("B"), cluster("C"), outer])])
}
