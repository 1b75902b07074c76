//! Every finding in Envoy's form and the short form: a document that has it, and one nearly the same that has not.

use crate::read;
use nexthop_config::{Finding, Severity};
use std::collections::BTreeSet;
use std::path::Path;

fn findings(text: &str) -> Vec<Finding> {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}")).findings.iter().cloned().collect()
}

fn found(text: &str, code: &str) -> Vec<Finding> {
    findings(text).into_iter().filter(|finding| finding.code == code).collect()
}

/// Finds the code in the first document, at that path, and not in the second.
fn tells(code: &str, severity: Severity, path: &str, with: &str, without: &str) -> Finding {
    let all = found(with, code);
    let [one] = all.as_slice() else { panic!("{code}: {:?}\n{with}", findings(with)) };
    assert_eq!((one.path.as_str(), one.severity), (path, severity), "{one:?}");
    assert!(one.line > 0 && one.column > 0 && !one.effect.is_empty() && !one.advice.is_empty());
    assert!(!one.effect.ends_with('.') && !one.advice.ends_with('.'), "{one:?}");
    assert_eq!(found(without, code), [], "{without}");
    one.clone()
}

/// The codes of `docs/lints.md`.
pub(crate) fn documented() -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lints.md");
    std::fs::read_to_string(page)
        .unwrap()
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next())
        .filter(|code| code.contains('-') && !code.starts_with('-'))
        .map(str::to_owned)
        .collect()
}

/// Every code that is told is explained in `docs/lints.md`, and the other way round; those of this page have a pair of
/// documents here.
#[test]
fn every_code_is_documented_and_has_a_pair() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documented = documented();
    let tests = [include_str!("lints.rs"), include_str!("contradictions.rs")];
    for code in documented.iter().filter(|code| code.starts_with("NX-")) {
        let quoted = format!("\"{code}\"");
        assert!(tests.iter().any(|page| page.contains(&quoted)), "{code} has no test");
    }
    let mut told = BTreeSet::new();
    for folder in ["istio", "lint", "instances"] {
        for entry in std::fs::read_dir(root.join("src").join(folder)).unwrap() {
            let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let source = source.split("#[cfg(test)]").next().unwrap().to_owned();
            for part in source.split('"') {
                let code = ["DR-", "VS-", "NX-"].iter().find_map(|kind| part.strip_prefix(kind));
                if code.is_some_and(|number| number.len() == 3 && number.bytes().all(|b| b.is_ascii_digit()))
                    || part == "W-BAD-WEIGHT"
                {
                    told.insert(part.to_owned());
                }
            }
        }
    }
    assert!(told.len() > 70, "{told:?}");
    assert_eq!(told, documented);
}

/// A cluster of so many hosts with more fields.
fn cluster(hosts: usize, fields: &str) -> String {
    let host =
        |n| format!("{{endpoint: {{address: {{socket_address: {{address: 10.0.0.{n}, port_value: 80}}}}}}}}");
    let hosts: Vec<String> = (1..=hosts).map(host).collect();
    format!(
        "{{name: web, {fields}, load_assignment: {{cluster_name: web, endpoints: [{{lb_endpoints: [{}]}}]}}}}",
        hosts.join(", ")
    )
}

fn outlier(hosts: usize, fields: &str, more: &str) -> String {
    format!("[{}]", cluster(hosts, &format!("outlier_detection: {{{fields}}}, {more} connect_timeout: 1s")))
}

#[test]
fn ejection() {
    use Severity::{Note, Warning};
    let percent = "[0].outlier_detection.max_ejection_percent";
    let one = tells(
        "NX-001",
        Warning,
        percent,
        &outlier(3, "max_ejection_percent: 33", ""),
        &outlier(3, "max_ejection_percent: 34", ""),
    );
    assert_eq!(one.effect, "with 3 hosts and 33 percent no host can ever be ejected");
    assert_eq!(one.advice, "set max_ejection_percent to at least 34, or always_eject_one_host");
    assert_eq!(found(&outlier(3, "always_eject_one_host: true", ""), "NX-001"), []);
    let one = tells(
        "NX-002",
        Warning,
        percent,
        &outlier(3, "max_ejection_percent: 70", ""),
        &outlier(3, "max_ejection_percent: 70", "common_lb_config: {healthy_panic_threshold: {value: 30}},"),
    );
    assert!(
        one.effect.starts_with("when 2 of 3 hosts are ejected, 33 percent are healthy"),
        "{}",
        one.effect
    );
    let calm = "common_lb_config: {healthy_panic_threshold: {value: 0}},";
    tells(
        "NX-035",
        Note,
        percent,
        &outlier(2, "max_ejection_percent: 100", calm),
        &outlier(2, "max_ejection_percent: 50", calm),
    );
    tells(
        "NX-034",
        Note,
        "[0].outlier_detection.interval",
        &outlier(9, "interval: 40s", ""),
        &outlier(9, "interval: 30s", ""),
    );
    let gateway = "[0].outlier_detection.consecutive_gateway_failure";
    tells(
        "NX-039",
        Warning,
        gateway,
        &outlier(9, "consecutive_gateway_failure: 5, enforcing_consecutive_gateway_failure: 100", ""),
        &outlier(9, "consecutive_gateway_failure: 4, enforcing_consecutive_gateway_failure: 100", ""),
    );
    tells(
        "NX-040",
        Warning,
        gateway,
        &outlier(9, "consecutive_gateway_failure: 4", ""),
        &outlier(9, "consecutive_gateway_failure: 4, enforcing_consecutive_gateway_failure: 1", ""),
    );
    tells(
        "NX-003",
        Warning,
        "[0].outlier_detection.success_rate_minimum_hosts",
        &outlier(3, "enforcing_success_rate: 100, success_rate_minimum_hosts: 4", ""),
        &outlier(4, "enforcing_success_rate: 100, success_rate_minimum_hosts: 4", ""),
    );
    tells(
        "NX-003",
        Warning,
        "[0].outlier_detection.enforcing_success_rate",
        &outlier(4, "enforcing_success_rate: 100", ""),
        &outlier(4, "enforcing_success_rate: 0, success_rate_request_volume: 10", ""),
    );
    tells(
        "NX-004",
        Warning,
        "[0].outlier_detection.failure_percentage_threshold",
        &outlier(2, "failure_percentage_threshold: 50", ""),
        &outlier(5, "failure_percentage_threshold: 50", ""),
    );
}

#[test]
fn limits_and_weights() {
    use Severity::{Note, Warning};
    let limits = |fields: &str| {
        format!("[{}]", cluster(2, &format!("circuit_breakers: {{thresholds: [{{{fields}}}]}}")))
    };
    let first = "[0].circuit_breakers.thresholds[0]";
    tells(
        "NX-017",
        Note,
        "[0].circuit_breakers",
        &limits("max_requests: 5"),
        &limits("track_remaining: true"),
    );
    let retries = format!("{first}.max_retries");
    tells(
        "NX-006",
        Warning,
        &retries,
        &limits("max_retries: 5, retry_budget: {}"),
        &limits("retry_budget: {}"),
    );
    let zero = format!("{first}.max_requests");
    let requests =
        tells("NX-042", Warning, &zero, &limits("max_requests: 0"), &limits("max_pending_requests: 0"));
    assert!(requests.effect.contains("requests are refused with 503 UO"), "{requests:?}");
    let zero = format!("{first}.max_connections");
    let connections =
        tells("NX-042", Warning, &zero, &limits("max_connections: 0"), &limits("max_connections: 1"));
    assert!(connections.effect.contains("each host still gets one connection"), "{connections:?}");
    let http2 = |fields: &str| {
        let fields =
            format!("http2_protocol_options: {{}}, circuit_breakers: {{thresholds: [{{{fields}}}]}}");
        format!("[{}]", cluster(2, &fields))
    };
    let connections = format!("{first}.max_connections");
    let both = http2("max_connections: 5, max_requests: 9");
    tells("NX-038", Warning, &connections, &http2("max_connections: 5"), &both);
    let short = "clusters: {web: {hosts: [10.0.0.1:80], limits: {connections: 5}}}";
    tells("NX-017", Note, "clusters.web.limits", short, "clusters: {web: {hosts: [10.0.0.1:80]}}");
    tells(
        "NX-036",
        Warning,
        "clusters.web.policy",
        "clusters: {web: {policy: random, hosts: [10.0.0.1:80, {address: 10.0.0.2:80, weight: 2}]}}",
        "clusters: {web: {policy: round_robin, hosts: [10.0.0.1:80, {address: 10.0.0.2:80, weight: 2}]}}",
    );
    let weighted = |fields: &str| {
        let group = |n: u32| {
            format!(
                "{{locality: {{zone: z{n}}}, load_balancing_weight: {n}, lb_endpoints: [{{endpoint: {{address: \
                 {{socket_address: {{address: 10.0.0.{n}, port_value: 80}}}}}}}}]}}"
            )
        };
        format!(
            "[{{name: web, lb_policy: ROUND_ROBIN, {fields} load_assignment: {{cluster_name: web, endpoints: [{}, {}]}}}}]",
            group(1),
            group(2)
        )
    };
    let asked = weighted("common_lb_config: {locality_weighted_lb_config: {}},");
    tells("NX-037", Warning, "[0].lb_policy", &weighted(""), &asked);
    tells("NX-029", Note, "[0]", "[{name: web, type: STATIC}]", "[{name: web, type: EDS}]");
}

/// A route table with one route to a cluster `web`.
fn routed(hosts: usize, fields: &str, route: &str) -> String {
    format!(
        "{}\n---\nvirtual_hosts:\n- name: all\n  domains: ['*']\n  routes:\n  - match: {{prefix: /}}\n    route: {{cluster: \
         web, {route}}}\n",
        cluster(hosts, &format!("connect_timeout: 0.1s, {fields}"))
    )
}

const ROUTE: &str = "virtual_hosts[0].routes[0].route";

#[test]
fn retries() {
    use Severity::{Note, Warning};
    let way = |route: &str| routed(3, "lb_policy: ROUND_ROBIN", route);
    let policy = |fields: &str| way(&format!("retry_policy: {{{fields}}}"));
    let hosts = |count: usize| routed(count, "type: STATIC", "retry_policy: {retry_on: reset}");
    tells("NX-046", Warning, &format!("{ROUTE}.retry_policy"), &hosts(0), &hosts(1));
    let at = |field: &str| format!("{ROUTE}.retry_policy.{field}");
    let good = policy("retry_on: connect-failure, per_try_timeout: 1s");
    tells("NX-012", Warning, &at("per_try_timeout"), &policy("retry_on: reset, per_try_timeout: 15s"), &good);
    let five = policy("retry_on: reset, per_try_timeout: 4s, num_retries: 4");
    tells("NX-013", Note, &at("per_try_timeout"), &five, &good);
    tells("NX-014", Note, &format!("{ROUTE}.retry_policy"), &policy("retry_on: reset"), &good);
    tells(
        "NX-020",
        Warning,
        &format!("{ROUTE}.timeout"),
        &way("timeout: 0s, retry_policy: {retry_on: reset}"),
        &good,
    );
    tells("NX-024", Warning, &format!("{ROUTE}.retry_policy"), &policy("num_retries: 2"), &good);
    let codes = policy("retry_on: '5xx', retriable_status_codes: [429]");
    let both = policy("retry_on: 'retriable-status-codes', retriable_status_codes: [429]");
    tells("NX-025", Warning, &at("retriable_status_codes"), &codes, &both);
    tells("NX-026", Note, &at("retry_on"), &policy("retry_on: retriable-status-codes"), &both);
    let headers = policy("retry_on: reset, retriable_headers: [{name: x-again}]");
    tells("NX-025", Warning, &at("retriable_headers"), &headers, &good);
    tells("NX-027", Note, &at("retry_on"), &policy("retry_on: '5xx'"), &good);
    let limited = "rate_limited_retry_back_off: {reset_headers: [{name: retry-after}], max_interval: 9s}";
    let one = tells(
        "NX-023",
        Note,
        &at("rate_limited_retry_back_off.max_interval"),
        &policy(&format!("retry_on: reset, {limited}")),
        &policy("retry_on: reset, retry_back_off: {base_interval: 1s, max_interval: 9s}"),
    );
    assert!(one.effect.contains("above 9s is dropped"), "{}", one.effect);
    tells(
        "NX-018",
        Note,
        &format!("{ROUTE}.retry_policy"),
        &good,
        &routed(3, "circuit_breakers: {thresholds: [{max_retries: 3}]}", "retry_policy: {retry_on: reset}"),
    );
    let slow = |connect: &str| {
        format!(
            "{}\n---\nvirtual_hosts: [{{name: v, domains: ['*'], retry_policy: {{retry_on: reset, per_try_timeout: 2s}}, \
                 routes: [{{match: {{prefix: /}}, route: {{cluster: web}}}}]}}]",
            cluster(2, &format!("connect_timeout: {connect}"))
        )
    };
    tells("NX-015", Note, "virtual_hosts[0].retry_policy.per_try_timeout", &slow("2s"), &slow("1s"));
}

#[test]
fn tried_hosts_and_hashes() {
    use Severity::{Note, Warning};
    let predicate = "retry_host_predicate: [{name: p, typed_config: {'@type': \
        type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate}}]";
    let avoiding = |hosts, fields: &str, attempts: u32| {
        let retry = format!("{predicate}, retry_on: reset, host_selection_retry_max_attempts: {attempts}");
        routed(
            hosts,
            fields,
            &format!("hash_policy: [{{header: {{header_name: a}}}}], retry_policy: {{{retry}}}"),
        )
    };
    let attempts = format!("{ROUTE}.retry_policy.host_selection_retry_max_attempts");
    tells(
        "NX-007",
        Warning,
        &attempts,
        &avoiding(1, "lb_policy: RANDOM", 9),
        &avoiding(2, "lb_policy: RANDOM", 9),
    );
    let one = tells(
        "NX-008",
        Warning,
        &attempts,
        &avoiding(2, "lb_policy: RANDOM", 1),
        &avoiding(2, "lb_policy: RANDOM", 6),
    );
    assert!(one.effect.starts_with("about 25 percent of the first retries"), "{}", one.effect);
    assert_eq!(one.advice, "set host_selection_retry_max_attempts to at least 6");
    assert_eq!(found(&avoiding(2, "lb_policy: ROUND_ROBIN", 1), "NX-008"), []);
    let policy = format!("{ROUTE}.retry_policy");
    let ring = "lb_policy: RING_HASH";
    let plain = "hash_policy: [{header: {header_name: a}}]";
    let same = routed(2, ring, &format!("{plain}, retry_policy: {{retry_on: reset}}"));
    tells("NX-009", Warning, &policy, &same, &avoiding(2, ring, 5));
    tells("NX-010", Note, &policy, &avoiding(2, ring, 5), &same);
    tells(
        "NX-011",
        Warning,
        &format!("{ROUTE}.cluster"),
        &routed(2, ring, "timeout: 1s"),
        &routed(2, ring, plain),
    );
    let high = "priority: HIGH";
    let limits = |more: &str| format!("circuit_breakers: {{thresholds: [{{max_requests: 5}}{more}]}}");
    let both = limits(", {priority: HIGH, max_requests: 5}");
    tells(
        "NX-019",
        Warning,
        &format!("{ROUTE}.priority"),
        &routed(2, &limits(""), high),
        &routed(2, &both, high),
    );
}

#[test]
fn clusters_that_a_composite_does_not_walk_past() {
    let text = |panic: u32, chain: &str| {
        format!(
            "clusters: {{a: {{hosts: [10.0.0.1:80, 10.0.0.2:80], panic: {panic}, outlier: {{consecutive_5xx: 3}}}}, \
             b: {{hosts: [10.0.1.1:80]}}, outer: {{composite: {chain}}}}}"
        )
    };
    let path = "clusters.a.panic";
    tells("NX-047", Severity::Note, path, &text(50, "[a, b]"), &text(0, "[a, b]"));
    // Behind the last one there is nobody to walk to.
    tells("NX-047", Severity::Note, path, &text(50, "[a, b]"), &text(50, "[b, a]"));
}

#[test]
fn clusters_that_an_aggregate_cannot_use() {
    let text = |kind: &str| {
        format!(
            "clusters: {{a: {{hosts: [10.0.0.1:80]}}, inner: {{{kind}}}, outer: {{aggregate: [a, inner]}}}}"
        )
    };
    for kind in ["composite: [a]", "aggregate: [a]"] {
        let one = tells(
            "NX-044",
            Severity::Warning,
            "clusters.outer.aggregate[1]",
            &text(kind),
            &text("hosts: [10.0.0.2:80]"),
        );
        assert!(one.effect.starts_with("inner gets no request from outer"), "{}", one.effect);
    }
}

#[test]
fn composites_need_as_many_tries() {
    let chain = |retry: &str| {
        format!(
            "clusters: {{a: {{hosts: [10.0.0.1:80]}}, b: {{hosts: [10.0.0.2:80]}}, chain: {{composite: [a, b]{retry}}}}}"
        )
    };
    let path = "clusters.chain.retry.times";
    let good = chain(", retry: {on: [5xx], times: 1}");
    let few = tells("NX-016", Severity::Warning, "clusters.chain", &chain(""), &good);
    assert_eq!(few.effect, "only the first 1 of the 2 clusters of chain are ever used");
    let many = tells("NX-016", Severity::Warning, path, &chain(", retry: {on: [5xx], times: 2}"), &good);
    assert_eq!(many.effect, "attempts after the 2. to chain find no cluster: the answer is 503 UH");
    assert_eq!(many.advice, "set num_retries to 1");
    // The retries of a route that leads there are those of requests that name the cluster.
    let routed = |retry: &str| format!("{{{}, routes: [{{path: /, cluster: chain{retry}}}]}}", chain(""));
    let few = routed(", retry: {on: [5xx], times: 3}");
    tells(
        "NX-016",
        Severity::Warning,
        "routes[0].retry.times",
        &few,
        &routed(", retry: {on: [5xx], times: 1}"),
    );
    tells("NX-016", Severity::Warning, "clusters.chain", &routed(""), &good);
}

#[test]
fn route_tables() {
    use Severity::{Error, Note, Warning};
    let table = |routes: &str| {
        format!(
            "{}\n---\nvalidate_clusters: false\nvirtual_hosts: [{{name: v, domains: ['*'], routes: [{routes}]}}]",
            cluster(2, "type: STATIC")
        )
    };
    let all = "{match: {prefix: /}, route: {cluster: web}}";
    let some = "{match: {prefix: /a}, route: {cluster: web}}";
    let second = "virtual_hosts[0].routes[1]";
    tells("NX-030", Warning, second, &table(&format!("{all}, {some}")), &table(&format!("{some}, {all}")));
    let wrong = table("{match: {prefix: /}, route: {cluster: wep}}");
    tells("NX-028", Error, &format!("{ROUTE}.cluster"), &wrong, &table(all));
    let shares = |n: u32| {
        let entries = format!("{{name: web, weight: 1}}, {{name: web, weight: {n}}}");
        table(&format!("{{match: {{prefix: /}}, route: {{weighted_clusters: {{clusters: [{entries}]}}}}}}"))
    };
    tells("NX-031", Note, &format!("{ROUTE}.weighted_clusters"), &shares(0), &shares(1));
    let groups = |again: &str| {
        let kind = "type.googleapis.com/envoy.extensions.router.cluster_specifiers.priority_group.v3.PriorityGroupClusterSpecifier";
        let group = |name: &str| format!("{{name: {name}, clusters: [{{cluster_name: web, weight: 1}}]}}");
        let list = format!("{}, {}", group("a"), group("b"));
        let plugin = format!(
            "{{extension: {{name: p, typed_config: {{\"@type\": {kind}, priority_groups: [{list}]}}}}}}"
        );
        let retry = format!("retry_policy: {{retry_on: reset, {again}}}");
        table(&format!(
            "{{match: {{prefix: /}}, route: {{inline_cluster_specifier_plugin: {plugin}, {retry}}}}}"
        ))
    };
    let path = format!("{ROUTE}.inline_cluster_specifier_plugin");
    tells("NX-045", Warning, &path, &groups("num_retries: 1"), &groups("refresh_cluster_on_retry: true"));
    let other = "{match: {prefix: /a}, route: {cluster: web, timeout: 1s}}";
    let differ = table(&format!("{other}, {all}"));
    tells("NX-032", Note, &format!("{second}.route.cluster"), &differ, &table(&format!("{some}, {all}")));
    let short = "clusters: {web: {hosts: [10.0.0.1:80, 10.0.0.2:80]}}\nroutes:\n- {host: a.b, cluster: web}\n- {cluster: web}\n\
                 - {host: a.b, path: /x, cluster: web, retry: {on: [reset], per_try: 20s}}\n";
    let one = &found(short, "NX-030")[0];
    assert_eq!((one.path.as_str(), one.line), ("routes[2]", 5));
    assert_eq!(found(short, "NX-012")[0].path, "routes[2].retry.per_try");
}

#[test]
fn keys_that_stand_twice() {
    use Severity::Error;
    let short = |second: &str| {
        format!("clusters:\n  a: {{hosts: [\"10.0.0.1:1\"]}}\n  {second}: {{hosts: [\"10.0.0.2:2\"]}}\n")
    };
    let one = tells("NX-043", Error, "clusters.a", &short("a"), &short("b"));
    assert_eq!((one.line, one.column), (2, 3), "{one:?}");
    assert!(one.effect.contains("line 3"), "{one:?}");
    let json = |key: &str| format!(r#"{{"name": "c", "connect_timeout": "1s", "{key}": "2s"}}"#);
    tells("NX-043", Error, "connect_timeout", &json("connect_timeout"), &json("cleanup_interval"));
    // Many keys take the other way; each dropped value is told, and the same through an alias once.
    let many = |twice: &str| {
        let keys: String = (0..40).map(|n| format!("k{n}: 1, ")).collect();
        format!("name: c\nmetadata: {{filter_metadata: {{x: &m {{{keys}{twice}: 1, {twice}: 2}}, y: *m}}}}\n")
    };
    assert_eq!(found(&many("k7"), "NX-043").len(), 2);
    assert_eq!(found(&many("other"), "NX-043").len(), 1);
}

#[test]
fn addresses_of_hosts() {
    use Severity::{Note, Warning};
    let short = |hosts: &str| format!("clusters: {{web: {{hosts: [{hosts}]}}}}");
    let right = short("10.0.0.1:80, '[::1]:80', 'name:80', 'a.1b:80', '10.0.0.1:81'");
    for (address, words) in [
        ("999.0.0.1:80", "ends in a number"),
        ("'web.1:80'", "ends in a number"),
        ("'😀:80'", "letters"),
        ("'10.0.0.2:0'", "port 0"),
    ] {
        let one = tells("NX-048", Warning, "clusters.web.hosts", &short(address), &right);
        assert!(one.effect.contains(words), "{one:?}");
    }
    tells("NX-049", Note, "clusters.web.hosts", &short("10.0.0.1:80, 'b:1', 10.0.0.1:80"), &right);
    let pipe = |path: &str| {
        format!(
            "name: web\nload_assignment: {{cluster_name: web, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{pipe: \
             {{path: {path}}}}}}}}}]}}]}}"
        )
    };
    assert_eq!(found(&pipe("/run/a:0"), "NX-048"), []);
}

#[test]
fn one_host_is_one() {
    let one = "clusters: {a: {hosts: [10.0.0.1:80], outlier: {consecutive_5xx: 5, max_percent: 50}}}";
    let two = one.replace("[10.0.0.1:80]", "[10.0.0.1:80, 10.0.0.2:80]");
    let effects: Vec<String> = findings(one).iter().map(|finding| finding.effect.clone()).collect();
    assert!(effects.iter().any(|effect| effect.starts_with("with 1 host and 50 percent")), "{effects:?}");
    assert!(findings(&two).iter().all(|finding| !finding.effect.starts_with("with ")), "{two}");
}
