//! What the load report says of Istio's fields that do nothing, and what is no field or word of Istio's.

use crate::complaint;
use nexthop_config::{Dialect, ReportEntry, Source, What, load_in_detail};

fn object(kind: &str, spec: &str) -> String {
    format!("apiVersion: networking.istio.io/v1\nkind: {kind}\nmetadata: {{name: r}}\nspec: {{{spec}}}\n")
}

fn entries(text: &str) -> Vec<ReportEntry> {
    let source = Source { name: "x.yaml", text: text.as_bytes(), dialect: Dialect::Auto };
    load_in_detail(&[source]).unwrap_or_else(|error| panic!("{error}")).report.entries
}

#[test]
fn what_does_nothing_is_not_used_and_told_once() {
    let rule = object(
        "DestinationRule",
        "host: a.b.c, exportTo: [\".\"], workloadSelector: {matchLabels: {a: b}}, trafficPolicy: {tls: {mode: SIMPLE}, \
         tunnel: {protocol: CONNECT}, proxyProtocol: {version: V1}, outlierDetection: {consecutiveErrors: 3}, \
         portLevelSettings: [{port: {number: 80}, tls: {mode: SIMPLE}}]}",
    );
    let routes = object(
        "VirtualService",
        "hosts: [a.b.c], exportTo: [\".\"], gateways: [g], http: [{route: [{destination: {host: a.b.c}, headers: {}}], \
         mirror: {host: z}, corsPolicy: {}, headers: {request: {set: {a: b}}}, fault: {delay: {fixedDelay: 1s}}}], \
         tcp: [{route: [{destination: {host: a.b.c}}]}], tls: []",
    );
    let entries = entries(&format!("{rule}---\n{routes}"));
    let paths = [
        "spec.exportTo",
        "spec.workloadSelector",
        "spec.workloadSelector.matchLabels",
        "spec.trafficPolicy.tls",
        "spec.trafficPolicy.tunnel",
        "spec.trafficPolicy.proxyProtocol",
        "spec.trafficPolicy.outlierDetection.consecutiveErrors",
        "spec.trafficPolicy.portLevelSettings[0].tls",
        "spec.gateways",
        "spec.http[0].route[0].headers",
        "spec.http[0].mirror",
        "spec.http[0].corsPolicy",
        "spec.http[0].headers",
        "spec.http[0].fault",
        "spec.tcp",
        "spec.tls",
    ];
    for path in paths {
        let here: Vec<_> = entries.iter().filter(|entry| entry.path == path).collect();
        let whats: Vec<_> = here.iter().map(|entry| entry.what).collect();
        let times = if path == "spec.exportTo" { 2 } else { 1 };
        assert_eq!(whats, vec![What::NotUsed; times], "{path}: {here:?}");
    }
    let errors = entries.iter().find(|entry| entry.path.ends_with("consecutiveErrors")).unwrap();
    assert_eq!(errors.text, "consecutiveErrors is ignored since Istio 1.7 [W-CONSECUTIVE-ERRORS]");
    let used = entries.iter().find(|entry| entry.path == "spec.host").unwrap();
    assert_eq!((used.what, used.text.as_str()), (What::Used, "used: a.b.c"));
}

#[test]
fn a_dropped_key_is_in_the_report() {
    let entries = entries("{name: a, name: b, connect_timeout: 1s}");
    let dropped: Vec<_> = entries.iter().filter(|entry| entry.text.contains("stands again")).collect();
    assert_eq!(dropped.len(), 1, "{entries:?}");
    assert_eq!((dropped[0].what, dropped[0].path.as_str()), (What::NotUsed, "name"));
    assert_eq!(dropped[0].text, "not used: the key `name` stands again at line 1");
}

#[test]
fn words_and_versions_have_one_spelling() {
    let rule = |policy: &str| object("DestinationRule", &format!("host: a.b.c, trafficPolicy: {{{policy}}}"));
    for (policy, word) in [
        ("loadBalancer: {simple: round_robin}", "ROUND_ROBIN"),
        ("loadBalancer: {simple: Random}", "RANDOM"),
        ("connectionPool: {http: {h2UpgradePolicy: upgrade}}", "UPGRADE"),
    ] {
        let error = complaint(&rule(policy));
        assert!(
            error.contains("unknown value") && error.contains(&format!("did you mean `{word}`")),
            "{error}"
        );
    }
    let entry = "hosts: [a.b.c], ports: [{number: 80, name: http, protocol: HTTP}], resolution: ";
    assert!(complaint(&object("ServiceEntry", &format!("{entry}Static"))).contains("did you mean `STATIC`"));
    let right = rule("loadBalancer: {simple: ROUND_ROBIN}, connectionPool: {http: {h2UpgradePolicy: 2}}");
    for version in ["v1", "v1beta1", "v1alpha3"] {
        entries(&right.replace("io/v1", &format!("io/{version}")));
    }
    for version in ["networking.istio.io/v2", "security.istio.io/v1", "networking.istio.io/v1alpha1"] {
        let error = complaint(&right.replace("networking.istio.io/v1", version));
        assert!(error.contains(&format!("unknown apiVersion `{version}`")), "{error}");
    }
}
