//! Every rule of Istio's validation.

use crate::read;

pub(crate) fn rule(spec: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: r}}\nspec: {{host: a.b, {spec}}}\n"
    )
}

pub(crate) fn policy(policy: &str) -> String {
    rule(&format!("trafficPolicy: {{{policy}}}"))
}

pub(crate) fn service(http: &str) -> String {
    format!(
        "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: v}}\nspec: {{hosts: [a.b], http: [{http}]}}\n"
    )
}

pub(crate) const TO: &str = "route: [{destination: {host: a.b}}]";

fn refuses(code: &str, text: &str) {
    match read(text) {
        Ok(_) => panic!("{code}: accepted\n{text}"),
        Err(error) => assert!(error.message.contains(&format!("[{code}]")), "{code}: {error}\n{text}"),
    }
}

fn accepts(text: &str) {
    assert!(read(text).is_ok(), "{:?}\n{text}", read(text).err());
}

#[test]
fn validation_of_policies() {
    for (code, with, without) in [
        (
            "E-PORT-EMPTY",
            "portLevelSettings: [{port: {number: 1}}]",
            "portLevelSettings: [{port: {number: 1}, tls: {}}]",
        ),
        ("E-PORT-NUMBER", "portLevelSettings: [{tls: {}}]", "portLevelSettings: []"),
        (
            "E-NEG-REQUESTS",
            "connectionPool: {http: {http2MaxRequests: -1}}",
            "connectionPool: {http: {http2MaxRequests: 0}}",
        ),
        (
            "E-NEG-REQS-PER-CONN",
            "connectionPool: {http: {maxRequestsPerConnection: -1}}",
            "connectionPool: {http: {}}",
        ),
        ("E-NEG-STREAMS", "connectionPool: {http: {maxConcurrentStreams: -1}}", "connectionPool: {tcp: {}}"),
        (
            "E-PING-INTERVAL",
            "connectionPool: {http: {http2KeepAlive: {timeout: 1s}}}",
            "connectionPool: {http: {http2KeepAlive: {timeout: 1s, interval: 1s}}}",
        ),
        (
            "E-PING-TIMEOUT",
            "connectionPool: {http: {http2KeepAlive: {interval: 1s}}}",
            "connectionPool: {tcp: {idleTimeout: 0s}}",
        ),
        (
            "E-DURATION-RANGE",
            "connectionPool: {http: {idleTimeout: 0s}}",
            "connectionPool: {http: {idleTimeout: 1ms}}",
        ),
        (
            "E-DURATION-RANGE",
            "outlierDetection: {baseEjectionTime: -1s}",
            "outlierDetection: {baseEjectionTime: 1h}",
        ),
        (
            "E-COOKIE-ATTR-EMPTY",
            "loadBalancer: {consistentHash: {httpCookie: {name: c, attributes: [{value: v}]}}}",
            "loadBalancer: {consistentHash: {httpCookie: {name: c, ttl: 1us}}}",
        ),
        (
            "E-COOKIE-ATTR-DUP",
            "loadBalancer: {consistentHash: {httpCookie: {name: c, attributes: [{name: a}, {name: a}]}}}",
            "loadBalancer: {consistentHash: {httpCookie: {name: c, attributes: [{name: a}]}}}",
        ),
        (
            "E-MAGLEV-UNSET",
            "loadBalancer: {consistentHash: {maglev: {}}}",
            "loadBalancer: {consistentHash: {maglev: {tableSize: 11}}}",
        ),
        (
            "E-MAGLEV-LARGE",
            "loadBalancer: {consistentHash: {maglev: {tableSize: 5000011}}}",
            "loadBalancer: {consistentHash: {maglev: {tableSize: 4999999}}}",
        ),
        (
            "E-LOCALITY-AND-ZONE",
            "loadBalancer: {localityLbSetting: {}, zoneAwareLbSetting: {}}",
            "loadBalancer: {zoneAwareLbSetting: {}}",
        ),
        (
            "E-FAILOVER-AND-TOPOLOGY",
            "outlierDetection: {}, loadBalancer: {localityLbSetting: {failover: [{from: a, to: b}], failoverPriority: [topology.kubernetes.io/zone]}}",
            "outlierDetection: {}, loadBalancer: {localityLbSetting: {failover: [{from: a, to: b}], failoverPriority: [topology.kubernetes.io/zone=z]}}",
        ),
        (
            "E-ZONE-TOPOLOGY",
            "loadBalancer: {zoneAwareLbSetting: {failoverPriority: [topology.istio.io/subzone]}}",
            "loadBalancer: {zoneAwareLbSetting: {failoverPriority: [rack]}}",
        ),
        (
            "E-LOCALITY-WEIGHT",
            "loadBalancer: {localityLbSetting: {distribute: [{from: a, to: {a: 0, b: 100}}]}}",
            "loadBalancer: {localityLbSetting: {distribute: [{from: a, to: {a: 1, b: 99}}]}}",
        ),
        (
            "E-LOCALITY-OVERLAP",
            "loadBalancer: {localityLbSetting: {distribute: [{from: a, to: {a/b: 50, a/*: 50}}]}}",
            "loadBalancer: {localityLbSetting: {distribute: [{from: a, to: {a/b: 50, a/c: 50}}]}}",
        ),
        (
            "E-LOCALITY-OVERLAP",
            "loadBalancer: {localityLbSetting: {distribute: [{from: '*', to: {a: 100}}, {from: b, to: {a: 100}}]}}",
            "loadBalancer: {localityLbSetting: {distribute: [{from: b, to: {a: 100}}, {from: '*', to: {a: 100}}]}}",
        ),
        (
            "E-LOCALITY-WILDCARD",
            "loadBalancer: {localityLbSetting: {distribute: [{from: '*/b', to: {a: 100}}]}}",
            "loadBalancer: {localityLbSetting: {distribute: [{from: 'b/*', to: {a: 100}}]}}",
        ),
        (
            "E-LOCALITY-EMPTY",
            "loadBalancer: {localityLbSetting: {distribute: [{from: a//c, to: {a: 100}}]}}",
            "loadBalancer: {localityLbSetting: {distribute: []}}",
        ),
        (
            "E-FAILOVER-SAME",
            "loadBalancer: {localityLbSetting: {failover: [{from: a, to: a}]}}",
            "loadBalancer: {localityLbSetting: {failover: [{from: a, to: b}]}}",
        ),
        (
            "E-FAILOVER-NOT-REGION",
            "loadBalancer: {localityLbSetting: {failover: [{from: a, to: b/c}]}}",
            "loadBalancer: {localityLbSetting: {failover: []}}",
        ),
        (
            "E-FAILOVER-WILDCARD",
            "loadBalancer: {localityLbSetting: {failover: [{from: a, to: 'b*'}]}}",
            "loadBalancer: {localityLbSetting: {}}",
        ),
        ("E-WARMUP-DURATION", "loadBalancer: {warmup: {}}", "loadBalancer: {warmup: {duration: 1s}}"),
        (
            "E-WARMUP-MIN",
            "loadBalancer: {warmup: {duration: 1s, minimumPercent: 101}}",
            "loadBalancer: {warmup: {duration: 1s, minimumPercent: 100}}",
        ),
        (
            "E-WARMUP-AGGRESSION",
            "loadBalancer: {warmup: {duration: 1s, aggression: 0}}",
            "loadBalancer: {warmup: {duration: 1s, aggression: 0.1}}",
        ),
    ] {
        refuses(code, &policy(with));
        accepts(&policy(without));
    }
}

#[test]
fn validation_of_rules_and_routes() {
    let host = |host: &str| rule("").replace("host: a.b", &format!("host: {host:?}"));
    for bad in ["a_b.c", "a..b", "**.b", "a.*", "-a.b", "*.", ""] {
        refuses("E-HOST", &host(bad));
    }
    for good in ["*.b", "*", "*a.b", "*-a.b", "a.b.", "short"] {
        accepts(&host(good));
    }
    refuses("E-SUBSET-LABEL", &rule("subsets: [{name: s, labels: {'a b': c}}]"));
    refuses("E-SUBSET-LABEL", &rule("subsets: [{name: s, labels: {a: 'c d'}}]"));
    accepts(&rule("subsets: [{name: s, labels: {app.kubernetes.io/name: c_d}}]"));
    refuses("E-SELECTOR-EXPORT", &rule("workloadSelector: {matchLabels: {a: b}}, exportTo: ['*']"));
    accepts(&rule("workloadSelector: {matchLabels: {a: b}}, exportTo: ['.']"));
    let warned = read(&rule("workloadSelector: {}")).unwrap().report.entries;
    assert!(warned.iter().any(|entry| entry.text.contains("[W-SELECTOR-EMPTY]")), "{warned:?}");
    refuses("E-RETRY-NEG", &service(&format!("{{{TO}, retries: {{attempts: -1}}}}")));
    refuses("E-RETRY-ON", &service(&format!("{{{TO}, retries: {{attempts: 1, retryOn: '5xx,299'}}}}")));
    accepts(&service(&format!("{{{TO}, retries: {{attempts: 1, retryOn: '5xx,226'}}}}")));
    refuses("E-WEIGHT-NEG", &service("{route: [{destination: {host: a.b}, weight: -1}]}"));
    let two = |weight: u32| {
        service(&format!(
            "{{route: [{{destination: {{host: a.b}}}}, {{destination: {{host: a.c}}, weight: {weight}}}]}}"
        ))
    };
    refuses("E-WEIGHT-ZERO", &two(0));
    accepts(&two(1));
}
