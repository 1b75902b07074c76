//! Composite clusters: every recorded verdict of Envoy 1.40.0, and the cycles it does not survive.

use crate::{complaint, read};
use nexthop_engine::spec::{ClusterKind, PolicySpec};

const TYPE: &str = "\"@type\": type.googleapis.com/envoy.extensions.clusters.composite.v3";

/// A document with the composite cluster X: what its configuration says, and its other fields.
fn document(config: &str, fields: &str) -> String {
    format!(
        "static_resources: {{clusters: [{{name: A}}, {{name: B}}, {{name: C}}, {{name: X, {fields}, cluster_type: \
         {{name: envoy.clusters.composite, typed_config: {{{TYPE}.ClusterConfig, {config}}}}}}}]}}"
    )
}

const ABC: &str = "clusters: [{name: A}, {name: B}, {name: C}]";
const PROVIDED: &str = "lb_policy: CLUSTER_PROVIDED";

fn typed_policy(x: &str, message: &str) -> String {
    format!(
        "load_balancing_policy: {{policies: [{{typed_extension_config: {{name: p, typed_config: {{\"@type\": \
         type.googleapis.com/envoy.extensions.load_balancing_policies.{x}.v3.{message}}}}}}}]}}"
    )
}

/// The documents that a recorded sentence stands for.
fn documents(sentence: &str) -> Vec<String> {
    let provided = |extra: &str| document(ABC, &format!("{PROVIDED}, {extra}"));
    let draft = |field: &str| document(&format!("{ABC}, {field}"), PROVIDED);
    match sentence {
        "clusters [{name:A},{name:B},{name:C}], lb_policy CLUSTER_PROVIDED" => vec![document(ABC, PROVIDED)],
        "clusters empty" => vec![document("clusters: []", PROVIDED), document("clusters: null", PROVIDED)],
        "clusters [{name:\"\"}]" => vec![document("clusters: [{name: \"\"}]", PROVIDED)],
        "clusters as plain strings" => vec![document("clusters: [A, B]", PROVIDED)],
        "lb_policy ROUND_ROBIN or unset" => {
            vec![document(ABC, "lb_policy: ROUND_ROBIN"), document(ABC, "connect_timeout: 1s")]
        }
        "load_balancing_policy round_robin" => {
            vec![document(ABC, &typed_policy("round_robin", "RoundRobin"))]
        }
        "load_balancing_policy cluster_provided" => {
            vec![document(ABC, &typed_policy("cluster_provided", "ClusterProvided"))]
        }
        "references an unknown cluster" => vec![document("clusters: [{name: nobody}]", PROVIDED)],
        "same cluster listed twice" => vec![document("clusters: [{name: A}, {name: A}]", PROVIDED)],
        "references itself" => vec![document("clusters: [{name: A}, {name: X}]", PROVIDED)],
        "own load_assignment" => vec![provided(
            "load_assignment: {cluster_name: X, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: \
             {address: 1.2.3.4, port_value: 80}}}}]}]}",
        )],
        "own health_checks" => vec![provided(
            "health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, \
             tcp_health_check: {}}]",
        )],
        "own outlier_detection" => vec![provided("outlier_detection: {}")],
        "own lb_subset_config" => vec![provided("lb_subset_config: {subset_selectors: [{keys: [a]}]}")],
        "draft field mode" => vec![draft("mode: RETRY")],
        "draft field sub_clusters" => vec![draft("sub_clusters: [{cluster: A}]")],
        "draft field retry_config" => vec![draft("retry_config: {}")],
        "draft field overflow_behavior" => vec![draft("overflow_behavior: FAIL")],
        "draft field name" => vec![draft("name: X")],
        "draft message type CompositeCluster" => {
            vec![document(ABC, PROVIDED).replace(".ClusterConfig", ".CompositeCluster")]
        }
        other => panic!("no document for the case {other:?}"),
    }
}

#[test]
fn recorded_verdicts() {
    for case in nexthop_vectors::cases("composite/config_validation.json", 20) {
        let sentence = case["given"].as_str().unwrap();
        // Envoy accepts a composite that lists itself and dies on its first request.
        let accepted = case["expect"]["accepted"].as_bool().unwrap() && sentence != "references itself";
        for text in documents(sentence) {
            let result = read(&text);
            assert_eq!(result.is_ok(), accepted, "{sentence}: {text}\n{:?}", result.err());
        }
    }
}

#[test]
fn its_spec_holds_names_and_no_hosts() {
    let loaded = read(&documents("own load_assignment")[0]).unwrap();
    let x = &loaded.specs.clusters[3];
    assert_eq!(x.kind, ClusterKind::Composite(vec!["A".into(), "B".into(), "C".into()]));
    assert_eq!(x.policy, PolicySpec::ClusterProvided);
    assert!(x.endpoints.localities.is_empty());
    assert_eq!(loaded.report.entries[0].path, "static_resources.clusters[3].load_assignment");
}

#[test]
fn the_name_of_the_type_does_not_matter() {
    let text = document(ABC, PROVIDED).replace("name: envoy.clusters.composite", "name: anything");
    assert!(read(&text).is_ok());
    let text = document(ABC, PROVIDED).replace("type.googleapis.com/", "");
    assert!(read(&text).is_err());
}

#[test]
fn cycles_are_refused_with_the_way_round() {
    let composite = |name: &str, sub: &str| {
        format!(
            "- {{name: {name}, lb_policy: CLUSTER_PROVIDED, cluster_type: {{name: c, typed_config: \
             {{{TYPE}.ClusterConfig, clusters: [{{name: {sub}}}]}}}}}}\n"
        )
    };
    let text = composite("a", "b") + &composite("b", "c") + &composite("c", "b");
    assert_eq!(
        complaint(&text),
        "test.yaml:2:3: [1]: composite clusters lead back to themselves: b -> c -> b"
    );
    assert!(complaint(&composite("x", "x")).ends_with("x -> x"));
    assert!(read(&(composite("a", "b") + &composite("b", "c"))).is_ok());
}

#[test]
fn a_missing_sub_cluster_is_in_the_report() {
    let envoy = "- name: first\n  type: STATIC\n- name: x\n  lb_policy: CLUSTER_PROVIDED\n  cluster_type:\n    name: c\n    \
         typed_config:\n      \"@type\": type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig\n      \
         clusters: [{name: first}, {name: fisrt}]\n";
    let short = "clusters: {first: {hosts: []}, x: {composite: [first, fisrt]}}";
    let places = ["[1].cluster_type.typed_config.clusters[1].name", "clusters.x.composite[1]"];
    for (text, place) in [envoy, short].into_iter().zip(places) {
        let entries = read(text).unwrap().report.entries;
        let said: Vec<_> = entries.iter().map(|entry| (entry.path.as_str(), entry.text.as_str())).collect();
        let sentence = "there is no cluster `fisrt`; as in Envoy it is legal, and no attempt goes there; did you mean `first`?";
        assert_eq!(said, [(place, sentence)], "{text}");
    }
}

#[test]
fn neighbours() {
    let aggregate = |list: &str| {
        format!(
            "- {{name: X, lb_policy: CLUSTER_PROVIDED, cluster_type: {{name: envoy.clusters.aggregate, typed_config: \
             {{\"@type\": type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig, clusters: {list}}}}}}}"
        )
    };
    // Names are not looked at, not even its own; the empty one is a cluster that does not exist.
    let names = ["A", "A", "X", ""].map(str::to_owned).to_vec();
    let read_back = read(&aggregate("[A, A, X, \"\"]")).unwrap().specs.clusters[0].kind.clone();
    assert_eq!(read_back, ClusterKind::Aggregate(names));
    assert!(complaint(&aggregate("[]")).contains("an aggregate cluster needs at least one cluster"));
    assert!(complaint(&aggregate("[{name: A}]")).contains("text"), "entries are names");
    let other = aggregate("[A]").replace("lb_policy: CLUSTER_PROVIDED", "lb_policy: RANDOM");
    assert!(complaint(&other).contains("an aggregate cluster brings its own balancing"));
    assert!(complaint("- {name: X, lb_policy: CLUSTER_PROVIDED}").contains("brings its own balancing"));
    assert!(
        complaint("- {name: X, type: ORIGINAL_DST, lb_policy: CLUSTER_PROVIDED}").contains("not available")
    );
    let both = "- {name: X, type: STATIC, cluster_type: {name: a}}";
    assert!(complaint(both).contains("exclude each other"));
}
