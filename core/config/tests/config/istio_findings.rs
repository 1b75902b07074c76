//! Every finding in Istio's documents: one that has it, and one nearly the same that has not.

use crate::istio_rules::{TO, policy, rule, service};
use crate::read;
use std::collections::BTreeSet;

fn codes(text: &str) -> Vec<&'static str> {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}")).findings.iter().map(|f| f.code).collect()
}

/// What surrounds a rule: service, endpoints, mesh.
fn context(fields: &str) -> String {
    format!("---\nkind: ClientContext\nspec: {{{fields}}}\n")
}

const OUTLIER: &str = "outlierDetection: {maxEjectionPercent: 50}";
const HASH: &str = "consistentHash: {httpHeaderName: x}";

/// A rule's outlier detection with these fields.
fn outlier(fields: &str) -> String {
    policy(&format!("outlierDetection: {{{fields}}}"))
}

fn balancer(fields: &str) -> String {
    policy(&format!("loadBalancer: {{{fields}}}"))
}

fn near(fields: &str) -> String {
    policy(&format!("{OUTLIER}, loadBalancer: {{{fields}}}"))
}

fn pool(http: &str) -> String {
    policy(&format!("connectionPool: {{http: {{{http}}}}}"))
}

fn port(settings: &str, above: &str) -> String {
    policy(&format!("{above}, portLevelSettings: [{{port: {{number: 80}}, {settings}}}]"))
        + &context("service: {ports: [{port: 80, protocol: HTTP}]}")
}

fn subset(whole: &str, part: &str) -> String {
    rule(&format!(
        "trafficPolicy: {{outlierDetection: {{{whole}}}}}, subsets: [{{name: s, labels: {{a: b}}, trafficPolicy: \
         {{outlierDetection: {{{part}}}}}}}]"
    ))
}

fn endpoints(number: u32) -> String {
    let all: Vec<String> = (1..=number).map(|n| format!("{{address: '10.0.0.{n}:80'}}")).collect();
    context(&format!("endpoints: [{}]", all.join(", ")))
}

fn distributed(share: u32, simple: &str) -> String {
    let rest = if share < 100 { format!(", 'c/*': {}", 100 - share) } else { String::new() };
    balancer(&format!(
        "simple: {simple}, localityLbSetting: {{distribute: [{{from: 'a/*', to: {{'b/*': {share}{rest}}}}}]}}"
    ))
}

/// A rule and a route to it.
fn retries(fields: &str) -> String {
    rule("") + &service(&format!("{{{TO}, {fields}}}"))
}

type Pair = (&'static str, String, String);

fn of_policies() -> Vec<Pair> {
    let grpc = context("service: {ports: [{port: 50051, protocol: GRPC}]}");
    let tcp = |more: &str| policy(&format!("connectionPool: {{tcp: {{maxConnections: 3}}{more}}}"));
    let streams = pool("maxConcurrentStreams: 64");
    let failover = "localityLbSetting: {failover: [{from: north, to: south}]}";
    let warm = "warmup: {duration: 1s}";
    let idle =
        |http: &str| policy(&format!("connectionPool: {{tcp: {{idleTimeout: 5s}}, http: {{{http}}}}}"));
    vec![
        (
            "DR-001",
            subset("interval: 7s, consecutive5xxErrors: 3", "interval: 8s"),
            subset("interval: 7s", "interval: 8s"),
        ),
        ("DR-002", port("loadBalancer: {simple: RANDOM}", OUTLIER), port(OUTLIER, OUTLIER)),
        ("DR-003", port(OUTLIER, "retryBudget: {percent: 10}"), port(OUTLIER, OUTLIER)),
        (
            "DR-004",
            outlier("maxEjectionPercent: 33") + &endpoints(3),
            outlier("maxEjectionPercent: 34") + &endpoints(3),
        ),
        ("DR-004", outlier("maxEjectionPercent: 49"), outlier("maxEjectionPercent: 50")),
        ("DR-005", outlier("maxEjectionPercent: 100"), outlier("maxEjectionPercent: 99")),
        (
            "DR-005",
            outlier("maxEjectionPercent: 100"),
            outlier("maxEjectionPercent: 100, minHealthPercent: 1"),
        ),
        ("DR-006", outlier("minHealthPercent: 1"), outlier("minHealthPercent: 0")),
        ("DR-007", balancer(failover), near(failover)),
        ("DR-008", near("simple: RANDOM"), near("simple: RANDOM, localityLbSetting: {enabled: false}")),
        ("DR-009", near(HASH), near(&format!("{HASH}, localityLbSetting: {{enabled: false}}"))),
        (
            "DR-011",
            balancer("consistentHash: {useSourceIp: false}"),
            balancer("consistentHash: {useSourceIp: true}"),
        ),
        ("DR-012", outlier("consecutiveErrors: 1"), outlier("consecutiveErrors: 0")),
        ("DR-013", outlier("consecutiveGatewayErrors: 5"), outlier("consecutiveGatewayErrors: 4")),
        (
            "DR-014",
            outlier("consecutiveGatewayErrors: 4"),
            outlier("consecutiveGatewayErrors: 4, consecutive5xxErrors: 0"),
        ),
        (
            "DR-015",
            outlier("splitExternalLocalOriginErrors: true, consecutiveLocalOriginFailures: 0"),
            outlier("splitExternalLocalOriginErrors: true, consecutiveLocalOriginFailures: 1"),
        ),
        (
            "DR-016",
            outlier("splitExternalLocalOriginErrors: true"),
            outlier("splitExternalLocalOriginErrors: false"),
        ),
        ("DR-017", pool("http2MaxRequests: 0"), pool("http2MaxRequests: 1")),
        ("DR-017", outlier("maxEjectionPercent: 0"), outlier("maxEjectionPercent: 1")),
        ("DR-018", tcp(""), policy("connectionPool: {tcp: {connectTimeout: 3s}}")),
        ("DR-019", tcp("") + &grpc, tcp(", http: {http2MaxRequests: 9}") + &grpc),
        ("DR-019", tcp("") + &grpc, tcp("")),
        ("DR-020", streams.clone(), streams + &grpc),
        ("DR-026", balancer("simple: PASSTHROUGH"), balancer("simple: RANDOM")),
        (
            "DR-027",
            balancer(&format!("simple: RANDOM, {warm}")),
            balancer(&format!("simple: ROUND_ROBIN, {warm}")),
        ),
        ("DR-028", near(warm), balancer(warm)),
        ("DR-029", distributed(70, "LEAST_REQUEST"), distributed(70, "ROUND_ROBIN")),
        ("DR-030", distributed(100, "RANDOM"), distributed(99, "RANDOM")),
        ("DR-031", outlier("intervall: 1s"), outlier("interval: 1s")),
        ("DR-032", outlier("interval: 31s"), outlier("interval: 30s")),
        ("DR-033", outlier("baseEjectionTime: 5m"), outlier("baseEjectionTime: 299s")),
        (
            "DR-034",
            balancer("consistentHash: {httpHeaderName: x, minimumRingSize: 9}"),
            balancer("consistentHash: {httpHeaderName: x, ringHash: {minimumRingSize: 9}}"),
        ),
        ("DR-035", idle("idleTimeout: 6s"), idle("")),
        ("DR-036", policy("tls: {mode: DISABLE}"), policy("tunnel: null, outlierDetection: {}")),
    ]
}

fn of_subsets_and_hosts() -> Vec<Pair> {
    let subsets =
        rule("subsets: [{name: s, labels: {a: b}, trafficPolicy: {loadBalancer: {simple: RANDOM}}}]");
    let to = |subset: &str| service(&format!("{{route: [{{destination: {{host: a.b{subset}}}}}]}}"));
    let wide = subsets.replace("a.b", "\"*.b\"");
    let split = |second: u32| {
        service(&format!(
            "{{route: [{{destination: {{host: a.b, subset: s}}, weight: 70}}, {{destination: {{host: a.b, subset: t}}, \
             weight: {second}}}]}}"
        ))
    };
    let hashed = rule(&format!(
        "trafficPolicy: {{loadBalancer: {{{HASH}}}}}, subsets: [{{name: s, labels: {{a: b}}}}, {{name: t, labels: {{a: c}}}}]"
    ));
    let other = |host: &str| rule(OUTLIER_RULE).replace("a.b", host).replace("name: r", "name: q");
    vec![
        ("DR-010", hashed.clone() + &split(30), hashed + &to(", subset: s")),
        ("DR-021", subsets.clone() + &to(""), subsets.clone() + &to(", subset: s")),
        ("DR-021", wide.clone() + &to(""), wide + &to(", subset: s")),
        ("DR-022", subsets.clone() + &to(", subset: t"), subsets.clone() + &to(", subset: s")),
        ("DR-022", subsets.clone() + &split(30), subsets + &split(0)),
        ("DR-023", rule("subsets: [{name: s}]"), rule("subsets: [{name: s, labels: {a: b}}]")),
        (
            "DR-024",
            format!("{}---\n{}", rule(OUTLIER_RULE), other("a.b")),
            format!("{}---\n{}", rule(OUTLIER_RULE), other("a.c")),
        ),
        ("DR-025", rule("").replace("host: a.b", "host: a"), rule("")),
    ]
}

const OUTLIER_RULE: &str = "trafficPolicy: {outlierDetection: {maxEjectionPercent: 50}}";

fn of_routes() -> Vec<Pair> {
    let ten = |fields: &str| retries(&format!("timeout: 10s, {fields}"));
    let tries = |fields: &str| ten(&format!("retries: {{attempts: 2, perTryTimeout: 3s, {fields}}}"));
    let bounded = policy("connectionPool: {http: {maxRetries: 3}}")
        + &service(&format!("{{{TO}, retries: {{attempts: 1}}}}"));
    let slow = |connect: &str| {
        policy(&format!("connectionPool: {{tcp: {{connectTimeout: {connect}}}}}"))
            + &service(&format!("{{{TO}, retries: {{attempts: 1, perTryTimeout: 2s}}}}"))
    };
    let sticky =
        |fields: &str| balancer(HASH) + &service(&format!("{{{TO}, retries: {{attempts: 1, {fields}}}}}"));
    vec![
        ("DR-037", retries("retries: {attempts: 1}"), bounded),
        (
            "VS-001",
            ten("retries: {attempts: 1, perTryTimeout: 10s}"),
            ten("retries: {attempts: 1, perTryTimeout: 9s}"),
        ),
        ("VS-002", ten("retries: {attempts: 1}"), ten("retries: {attempts: 1, perTryTimeout: 1s}")),
        (
            "VS-003",
            ten("retries: {attempts: 4, perTryTimeout: 3s}"),
            ten("retries: {attempts: 2, perTryTimeout: 3s}"),
        ),
        ("VS-004", tries("retryOn: 'connect-failure,5xx'"), tries("retryOn: 'connect-failure,429'")),
        ("VS-005", tries("retryOn: '429,409'"), tries("retryOn: '429,connect-failure'")),
        ("VS-008", sticky(""), sticky("retryIgnorePreviousHosts: true")),
        ("VS-009", slow("3s"), slow("2s")),
        ("VS-010", retries("timeout: 1s"), retries("retries: {attempts: 0}")),
        ("VS-012", ten("fault: {}, retries: {attempts: 1}"), ten("fault: {}, retries: {attempts: 0}")),
    ]
}

#[test]
fn each_has_a_document_with_it_and_a_twin_without() {
    let pairs: Vec<Pair> = [of_policies(), of_subsets_and_hosts(), of_routes()].concat();
    let mut told = BTreeSet::new();
    for (code, with, without) in pairs {
        assert!(codes(&with).contains(&code), "{code}: {:?}\n{with}", codes(&with));
        assert!(!codes(&without).contains(&code), "{code}: {:?}\n{without}", codes(&without));
        told.insert(code.to_owned());
    }
    let documented = crate::lints::documented();
    assert_eq!(
        told,
        documented.into_iter().filter(|code| code.starts_with("DR-") || code.starts_with("VS-")).collect()
    );
}
