//! `tests/vectors/gray`: instance lists and the hosts they become.

use super::{Condition, Instance, ListOptions, lists};
use crate::dialect::Dialect;
use crate::front::parse;
use crate::read::{At, Doc, Sink};
use nexthop_vectors::{Document, documents};
use serde_json::{Value, json};
use std::cell::RefCell;

fn told(instance: &Instance) -> Value {
    let mut host = json!({
        "id": instance.id,
        "address": instance.address,
        "port": instance.port,
        "weight": instance.weight,
        "health": match instance.health {
            Condition::Healthy => "healthy",
            Condition::Unhealthy => "unhealthy",
            Condition::Draining => "draining",
        },
        "zone": instance.zone,
        "metadata": instance.metadata,
    });
    if instance.secure {
        host["secure"] = true.into();
    }
    host
}

/// Weights as doubles: 1 and 1.0 are one.
fn hosts(list: &Value) -> Vec<Value> {
    let mut hosts = list.as_array().unwrap().clone();
    for host in &mut hosts {
        host["weight"] = json!(host["weight"].as_f64());
    }
    hosts
}

#[test]
fn instance_lists() {
    let is_map = |document: &Document| document.text.contains("\"instance_map\"");
    for document in documents("gray", "json", 5, is_map) {
        let case: Value = serde_json::from_str(&document.text).unwrap();
        assert_eq!(case["kind"], "instance_map");
        let input = &case["input"];
        let dialect = match input["format"].as_str().unwrap() {
            "nacos" => Dialect::Nacos,
            "spring" => Dialect::Spring,
            "consul-health" => Dialect::Consul,
            "eureka-apps" => Dialect::Eureka,
            "endpointslice" => Dialect::Kubernetes,
            other => panic!("{other}"),
        };
        let given = &input["options"];
        let options = ListOptions {
            port_name: given["port_name"].as_str().unwrap_or_default().to_owned(),
            only_passing: given["only_passing"].as_bool().unwrap_or_default(),
            ip_address: given["address"] == "ipAddr",
        };
        let text = input["document"].to_string();
        let sink = RefCell::new(Sink::default());
        let doc = Doc { file: "list", sink: &sink, made: false };
        let nodes = parse(text.as_bytes()).unwrap();
        let read = lists(&At::root(&nodes[0], &doc), dialect, &options).unwrap();
        let found: Vec<Value> = read.iter().flat_map(|list| &list.hosts).map(told).collect();
        assert_eq!(hosts(&json!(found)), hosts(&case["expect"]["hosts"]), "{}", document.name);
        let skipped: Vec<Value> = read
            .iter()
            .flat_map(|list| &list.skipped)
            .map(|skipped| json!({"id": skipped.id, "reason": skipped.reason}))
            .collect();
        assert_eq!(json!(skipped), case["expect"]["skipped"], "{}", document.name);
    }
}
