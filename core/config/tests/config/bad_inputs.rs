//! Documents of other systems that are wrong, each with its place and reason.

use super::{complaint, read};
use nexthop_engine::spec::Value;

const HEAD: &str = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\n";

#[test]
fn rules_that_are_wrong() {
    for (text, sentences) in [
        (format!("{HEAD}spec: {{}}\n"), &["test.yaml:", "host"][..]),
        (format!("{HEAD}spec: {{host: ''}}\n"), &["test.yaml:3", "host"]),
        (format!("{HEAD}spec: {{host: [a.b]}}\n"), &["test.yaml:3", "host"]),
        (format!("{HEAD}spec: [host]\n"), &["test.yaml:3", "spec"]),
        (
            format!("{HEAD}spec: {{host: a.b, trafficPolicy: {{connectionPool: 7}}}}\n"),
            &["test.yaml:3", "connectionPool"],
        ),
        (HEAD.replace("DestinationRule", "DestinationRul") + "spec: {host: a.b}\n", &["DestinationRul"]),
        (format!("{HEAD}spec:\n\thost: a.b\n"), &["test.yaml:4", "tab"]),
    ] {
        let found = complaint(&text);
        for sentence in sentences {
            assert!(found.to_lowercase().contains(&sentence.to_lowercase()), "{text}: {found}");
        }
    }
}

#[test]
fn several_documents_anchors_and_repeated_keys() {
    let service = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: s}\nspec:\n  hosts: [a.b]\n  \
        ports: [{number: 80, name: http, protocol: HTTP}]\n  resolution: STATIC\n  endpoints: [{address: 10.0.0.1}]\n";
    let rule = |pool: &str| {
        format!(
            "{HEAD}metadata: {{name: r}}\nspec:\n  host: a.b\n  trafficPolicy:\n    connectionPool: {pool}\n"
        )
    };
    let requests = |text: &str| {
        let loaded = read(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(loaded.specs.clusters.len(), 1);
        loaded.specs.clusters[0].breakers.thresholds[0].max_requests
    };
    let anchored = rule("&pool {http: {http2MaxRequests: 7}}\n  subsets: []\n  x-again: *pool");
    assert_eq!(requests(&format!("{service}---\n{anchored}")), 7);
    let repeated = rule("{http: {http2MaxRequests: 7, http2MaxRequests: 9}}");
    assert_eq!(requests(&format!("{service}---\n{repeated}")), 9, "the last one counts");
}

#[test]
fn ten_thousand_instances_with_holes() {
    let instance = |n: usize| match n % 5 {
        0 => format!("{{\"ip\": \"10.0.{}.{}\", \"port\": 80}}", n / 250, n % 250),
        1 => format!("{{\"ip\": \"10.0.{}.{}\"}}", n / 250, n % 250),
        2 => "{\"port\": 80}".to_owned(),
        3 => "{}".to_owned(),
        _ => format!("{{\"ip\": \"10.0.{}.{}\", \"port\": 80, \"weight\": 0}}", n / 250, n % 250),
    };
    let list: Vec<String> = (0..10_000).map(instance).collect();
    let loaded = read(&format!("{{\"name\": \"g@@web\", \"hosts\": [{}]}}", list.join(","))).unwrap();
    let hosts: usize =
        loaded.specs.clusters[0].endpoints.localities.iter().map(|group| group.endpoints.len()).sum();
    assert_eq!(hosts, 2000);
    let left_out = loaded.report.entries.iter().filter(|entry| entry.text.contains("left out")).count();
    assert_eq!(left_out, 8000);
}

#[test]
fn weights_that_are_none_and_addresses_that_are_wrong() {
    let list = |fields: &str| format!("[{{\"host\": \"10.0.0.1\", \"port\": 80, {fields}}}]");
    for (fields, weight) in [
        ("\"metadata\": {\"nacos.weight\": \"NaN\", \"nacos.healthy\": \"true\"}", 1.0),
        ("\"metadata\": {\"nacos.weight\": \"heavy\", \"nacos.healthy\": \"true\"}", 1.0),
        ("\"metadata\": {\"nacos.healthy\": \"true\"}", 1.0),
        ("\"metadata\": {\"weight\": \"Infinity\"}", f64::INFINITY),
    ] {
        let loaded = read(&list(fields)).unwrap();
        assert!(loaded.findings.to_human().contains("W-BAD-WEIGHT"), "{fields}");
        let host = &loaded.specs.clusters[0].endpoints.localities[0].endpoints[0];
        assert_eq!(host.metadata.0["nexthop"]["weight"], Value::Number(weight), "{fields}");
    }
    for text in ["fd00::1", "[fd00::1]"] {
        let loaded = read(&format!("[{{\"host\": \"{text}\", \"port\": 80}}]")).unwrap();
        let host = &loaded.specs.clusters[0].endpoints.localities[0].endpoints[0];
        assert_eq!(host.address, "[fd00::1]:80", "with brackets and without");
    }
    for (text, sentence) in [
        ("[{\"host\": \"10.0.0.1/8\", \"port\": 80}]", "expected an IP address or a name"),
        ("[{\"host\": \"a b\", \"port\": 80}]", "expected an IP address or a name"),
        ("[{\"host\": \"[10.0.0.1]\", \"port\": 80}]", "expected an IP address or a name"),
        ("[{\"host\": \"[::1\", \"port\": 80}]", "expected an IP address or a name"),
        ("[{\"host\": \"10.0.0.1\", \"port\": 65536}]", "from 0 to 65535"),
        ("[{\"host\": \"10.0.0.1\", \"port\": \"http\"}]", "from 0 to 65535"),
        ("{\"hosts\": [{\"ip\": \"::1\", \"port\": -1}]}", "from 0 to 65535"),
    ] {
        let found = complaint(text);
        assert!(found.contains(sentence) && found.contains("test.yaml:1"), "{text}: {found}");
    }
}
