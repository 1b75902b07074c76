//! Istio's objects as a whole: services, rules and routes together, and what is said about them.

use crate::{complaint, noted, read};
use nexthop_config::{Dialect, Source};
use nexthop_config::{Severity, What, translate};
use nexthop_engine::spec::{ClusterSource, ForwardSpec, PathMatch, PolicySpec, Protocol, RouteAction, Specs};
use std::time::Duration;

const SHOP: &str = r#"
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: orders, namespace: shop}
spec:
  hosts: [orders.example.com]
  ports: [{number: 80, name: web, protocol: HTTP, targetPort: 8080}, {number: 90, name: rpc, protocol: GRPC}]
  resolution: STATIC
  workloadSelector: {labels: {app: orders}}
  endpoints:
  - {address: 10.0.0.1, ports: {rpc: 9999}, labels: {app: orders, version: v1}, locality: north/n1, weight: 3}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: one, namespace: shop, labels: {app: orders}}
spec: {address: "2001:db8::5", labels: {version: v2}, locality: south/s1}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: other, namespace: elsewhere, labels: {app: orders}}
spec: {address: 10.9.9.9}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: orders, namespace: shop}
spec:
  host: "*.example.com"
  trafficPolicy: {outlierDetection: {maxEjectionPercent: 100}}
  subsets:
  - {name: v1, labels: {version: v1}}
  - {name: v2, labels: {version: v2}, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: orders, namespace: shop}
spec:
  hosts: [orders.example.com]
  http:
  - name: canary
    match:
    - {uri: {exact: /pay}, method: {exact: POST}, headers: {x-canary: {}}, withoutHeaders: {x-old: {prefix: a}}}
    - {uri: {regex: "/p[0-9]+"}, queryParams: {v: {exact: "2"}}, ignoreUriCase: true}
    timeout: 2s
    rewrite: {uri: /v2, authority: two.example.com}
    route: [{destination: {host: orders.example.com, subset: v2, port: {number: 80}}}]
  - match: [{uri: {prefix: /old}}]
    redirect: {scheme: https, authority: new.example.com, uri: /new, redirectCode: 308}
  - route:
    - {destination: {host: orders.example.com, subset: v1}, weight: 3}
    - {destination: {host: orders.example.com, subset: v2}, weight: 1}
---
kind: ClientContext
spec: {proxy: {locality: south/s1/r9}}
"#;

fn forward(specs: &Specs, host: usize, route: usize) -> &ForwardSpec {
    match &specs.route_tables[0].virtual_hosts[host].routes[route].action {
        RouteAction::Forward(forward) => forward,
        other => panic!("a route to a cluster, found {other:?}"),
    }
}

#[test]
fn services_rules_and_routes_together() {
    let loaded = read(SHOP).unwrap();
    let specs = loaded.specs;
    let names: Vec<&str> = specs.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    let all: Vec<String> = ["80||", "80|v1|", "80|v2|", "90||", "90|v1|", "90|v2|"]
        .iter()
        .map(|part| format!("outbound|{part}orders.example.com"))
        .collect();
    assert_eq!(names, all);
    let hosts = |at: usize| -> Vec<(u32, &str)> {
        let groups = &specs.clusters[at].endpoints.localities;
        groups.iter().flat_map(|g| g.endpoints.iter().map(|e| (g.priority, e.address.as_str()))).collect()
    };
    assert_eq!(hosts(0), [(1, "10.0.0.1:8080"), (0, "[2001:db8::5]:8080")]);
    assert_eq!(hosts(1), [(0, "10.0.0.1:8080")]);
    assert_eq!(hosts(3), [(1, "10.0.0.1:9999"), (0, "[2001:db8::5]:90")]);
    assert_eq!(hosts(5), [(0, "[2001:db8::5]:90")]);
    let cluster = &specs.clusters[2];
    assert_eq!((cluster.connect_timeout, cluster.panic_threshold), (Duration::from_secs(10), 0));
    assert!(matches!(cluster.policy, PolicySpec::RoundRobin { .. }));
    assert_eq!(cluster.breakers.thresholds[0].max_requests, u32::MAX);
    assert_eq!(cluster.breakers.thresholds[1].max_requests, 1024);
    assert_eq!((specs.clusters[3].protocol, specs.clusters[0].protocol), (Protocol::Http2, Protocol::Http1));

    let hosts = &specs.route_tables[0].virtual_hosts;
    assert_eq!(hosts.len(), 1);
    assert_eq!(hosts[0].name, "shop/orders");
    assert_eq!(hosts[0].domains, ["orders.example.com", "orders.example.com:80", "orders.example.com:90"]);
    let routes = &hosts[0].routes;
    assert_eq!(routes.len(), 4);
    assert_eq!(routes[0].matcher.path, PathMatch::Exact("/pay".into()));
    assert_eq!(routes[0].matcher.headers.len(), 3);
    assert!(routes[0].matcher.headers[2].invert && routes[0].matcher.headers[2].treat_missing_as_empty);
    assert_eq!(routes[1].matcher.path, PathMatch::Regex("/p[0-9]+".into()));
    assert!(routes[1].matcher.case_insensitive);
    let canary = forward(&specs, 0, 1);
    assert_eq!(canary.cluster, ClusterSource::Name("outbound|80|v2|orders.example.com".into()));
    assert_eq!((canary.prefix_rewrite.as_str(), canary.host_rewrite.as_str()), ("/v2", "two.example.com"));
    assert_eq!(canary.timeout, Duration::from_secs(2));
    assert_eq!(canary.retry.as_ref().unwrap().num_retries, 2);
    assert!(matches!(&routes[2].action, RouteAction::Redirect(to) if to.status == 308));
    let weighted = forward(&specs, 0, 3);
    let ClusterSource::Weighted(clusters) = &weighted.cluster else { panic!("{weighted:?}") };
    assert_eq!((clusters[0].weight, clusters[1].weight), (3, 1));
    assert_eq!(weighted.timeout, Duration::ZERO);
}

#[test]
fn services_without_rules_or_routes_have_istios_defaults() {
    let text = r#"
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: api}
spec: {hosts: [api.example.com], ports: [{number: 443, name: tls, protocol: TLS}], resolution: DNS}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: short, namespace: shop}
spec: {host: orders}
"#;
    let specs = read(text).unwrap().specs;
    assert_eq!(specs.clusters[0].endpoints.localities[0].endpoints[0].address, "api.example.com:443");
    assert_eq!(specs.clusters[1].name, "outbound|8080||orders.shop.svc.cluster.local");
    assert!(matches!(specs.clusters[1].policy, PolicySpec::LeastRequest { .. }));
    let hosts = &specs.route_tables[0].virtual_hosts;
    assert_eq!(hosts[0].domains, ["api.example.com", "api.example.com:443"]);
    let short = ["orders.shop.svc.cluster.local", "orders.shop.svc", "orders.shop", "orders"];
    let all: Vec<String> = short.iter().flat_map(|n| [(*n).to_owned(), format!("{n}:8080")]).collect();
    assert_eq!(hosts[1].domains, all);
    assert_eq!(forward(&specs, 1, 0).retry.as_ref().unwrap().num_retries, 2);
    let codes: Vec<_> = read(text).unwrap().findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["DR-025"]);
    assert_eq!(noted(text, What::Default), ["spec"]);
}

const RULE: &str = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec:\n  host: a.b\n";

#[test]
fn errors_name_code_and_place() {
    let text =
        format!("{RULE}  trafficPolicy:\n    outlierDetection: {{maxEjectionPercent: 101, interval: 1us}}\n");
    assert_eq!(
        complaint(&text),
        "test.yaml:6:59: spec.trafficPolicy.outlierDetection.interval: expected a duration of at least 1ms, found \
         `1us` [E-DURATION-RANGE]; 1 more: test.yaml:6: expected a percentage from 0 to 100, found 101 [E-PERCENT]"
    );
    let text = complaint("apiVersion: networking.istio.io/v1\nkind: DestinationRul\nspec: {}");
    assert!(text.contains("did you mean `DestinationRule`?"), "{text}");
    let text = complaint(&format!("{RULE}  trafficPolicy: {{loadBalancer: {{simple: ROUND_ROBBIN}}}}"));
    assert!(text.contains("did you mean `ROUND_ROBIN`?"), "{text}");
    let two = "{simple: RANDOM, consistentHash: {}}";
    assert!(
        complaint(&format!("{RULE}  trafficPolicy: {{loadBalancer: {two}}}")).contains("exclude each other")
    );
}

#[test]
fn dropped_fields_are_told_with_the_nearest_name() {
    let pool = "tcp: {maxConnection: 1}, http: {maxPendingRequests: 5}";
    let text =
        format!("{RULE}  trafficPolicy:\n    connectionPool: {{{pool}}}\n    outlier_detection: {{}}\n");
    let loaded = read(&text).unwrap();
    let dropped: Vec<_> = loaded.findings.iter().filter(|finding| finding.code == "DR-031").collect();
    assert_eq!(dropped.len(), 2);
    assert_eq!((dropped[0].line, dropped[0].column, dropped[0].severity), (6, 28, Severity::Error));
    assert_eq!(dropped[0].path, "spec.trafficPolicy.connectionPool.tcp.maxConnection");
    assert_eq!(dropped[0].advice, "write `maxConnections`, or remove the field");
    assert_eq!(dropped[1].advice, "write `http1MaxPendingRequests`, or remove the field");
    assert!(loaded.specs.clusters[0].outlier.is_some(), "the name with underscores is the same field");
    assert_eq!(loaded.report.entries.iter().filter(|entry| entry.text.contains("Istio drops it")).count(), 2);
}

#[test]
fn rules_for_one_host_are_merged() {
    let rule = |name: &str, created: &str, spec: &str| {
        format!(
            "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: {name}, \
             creationTimestamp: \"{created}\"}}\nspec: {{host: a.b, {spec}}}\n"
        )
    };
    let text = rule(
        "new",
        "2024-02-01T00:00:00Z",
        "trafficPolicy: {loadBalancer: {simple: RANDOM}}, subsets: [{name: xx, labels: {a: b}}]",
    ) + &rule(
        "old",
        "2024-01-01T00:00:00Z",
        "trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}, subsets: [{name: yy, labels: {a: c}}]",
    );
    let loaded = read(&text).unwrap();
    let names: Vec<&str> = loaded.specs.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    assert_eq!(names, ["outbound|8080||a.b", "outbound|8080|yy|a.b", "outbound|8080|xx|a.b"]);
    for cluster in &loaded.specs.clusters {
        assert!(matches!(cluster.policy, PolicySpec::RoundRobin { .. }));
    }
    let merged: Vec<_> = loaded.findings.iter().filter(|finding| finding.code == "DR-024").collect();
    assert_eq!((merged.len(), merged[0].line), (1, 5));
}

#[test]
fn other_kinds_and_what_is_missing() {
    let gateway = "apiVersion: networking.istio.io/v1\nkind: Gateway\nspec: {selector: {}}";
    assert_eq!(noted(gateway, What::NotUsed), [""]);
    let text = format!("{RULE}  trafficPolicy: {{loadBalancer: {{simple: PASSTHROUGH}}}}");
    assert!(noted(&text, What::NotAvailable).contains(&"outbound|8080||a.b".to_owned()));
    let lost = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {host: \"*.b\"}";
    assert!(read(lost).unwrap().specs.clusters.is_empty());
    assert_eq!(noted(lost, What::NotUsed), ["spec"]);
}

#[test]
fn translations_need_something_to_translate() {
    let source = [Source { name: "x.yaml", text: b"name: web", dialect: Dialect::Auto }];
    let error = translate(&source).unwrap_err();
    assert_eq!(
        error.to_string(),
        "x.yaml:1:1: there is nothing to translate: no Istio object with clusters or routes, no instance list"
    );
}

#[test]
fn services_of_kubernetes_tell_ports_and_protocols() {
    let text = r#"
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: orders, namespace: shop, uid: x}
  spec:
    selector: {app: orders}
    clusterIP: 10.96.0.1
    ports:
    - {name: http-web, port: 80, targetPort: 8080}
    - {name: grpc, port: 90}
    - {name: any, port: 91, appProtocol: kubernetes.io/h2c}
- apiVersion: v1
  kind: Service
  metadata: {name: direct, namespace: shop}
  spec: {clusterIP: None, ports: [{name: http, port: 80}]}
- apiVersion: networking.istio.io/v1
  kind: DestinationRule
  metadata: {name: orders, namespace: shop}
  spec: {host: orders, trafficPolicy: {connectionPool: {http: {http2MaxRequests: 7}}}}
"#;
    let specs = read(text).unwrap().specs;
    let found: Vec<_> = specs
        .clusters
        .iter()
        .map(|c| (c.name.as_str(), c.protocol, c.breakers.thresholds[0].max_requests))
        .collect();
    let orders = |port: u32| format!("outbound|{port}||orders.shop.svc.cluster.local");
    assert_eq!(
        found,
        [
            (orders(80).as_str(), Protocol::Http1, 7),
            (orders(90).as_str(), Protocol::Http2, 7),
            (orders(91).as_str(), Protocol::Http2, 7),
            ("outbound|80||direct.shop.svc.cluster.local", Protocol::Http1, u32::MAX),
        ]
    );
    assert_eq!(noted(text, What::NotAvailable).iter().filter(|path| path.contains("direct")).count(), 1);
}
