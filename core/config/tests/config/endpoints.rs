//! Hosts: addresses, weights, localities, and assignments that come alone.

use crate::{cluster, complaint, noted, read};
use nexthop_config::{Dialect, Source, What, load_assignment};
use nexthop_engine::spec::{Endpoints, HealthStatus, Locality};

fn endpoint(address: &str, more: &str) -> String {
    format!("{{endpoint: {{address: {{socket_address: {{address: {address}, port_value: 80}}}}}}{more}}}")
}

fn assigned(kind: &str, endpoints: &str) -> Result<Endpoints, nexthop_config::ConfigError> {
    cluster(&format!("type: {kind}, load_assignment: {{cluster_name: x, endpoints: [{endpoints}]}}"))
        .map(|cluster| cluster.endpoints)
}

fn keys(endpoints: &Endpoints) -> Vec<&str> {
    endpoints.localities.iter().flat_map(|group| &group.endpoints).map(|host| host.address.as_str()).collect()
}

#[test]
fn addresses_are_canonical() {
    let hosts = ["1.2.3.4", "\"2001:DB8:0::1\"", "\"::1\""].map(|address| endpoint(address, "")).join(",");
    let endpoints = assigned("STATIC", &format!("{{lb_endpoints: [{hosts}]}}")).unwrap();
    assert_eq!(keys(&endpoints), ["1.2.3.4:80", "[2001:db8::1]:80", "[::1]:80"]);
    for address in ["web.local", "01.2.3.4", "\"[::1]\"", "\"\"", "1.2"] {
        assert!(
            assigned("STATIC", &format!("{{lb_endpoints: [{}]}}", endpoint(address, ""))).is_err(),
            "{address}"
        );
    }
    let endpoints =
        assigned("STRICT_DNS", &format!("{{lb_endpoints: [{}]}}", endpoint("web.local", ""))).unwrap();
    assert_eq!(endpoints.localities[0].endpoints[0].address, "web.local:80");
    assert_eq!(endpoints.localities[0].endpoints[0].hostname, "web.local");
    let pipe = "{lb_endpoints: [{endpoint: {hostname: h, address: {pipe: {path: /run/x.sock}}}}]}";
    let host = &assigned("STATIC", pipe).unwrap().localities[0].endpoints[0];
    assert_eq!((host.address.as_str(), host.port, host.hostname.as_str()), ("/run/x.sock", 0, "h"));
}

#[test]
fn malformed_addresses_are_refused() {
    for address in [
        "{}",
        "{socket_address: {address: 1.2.3.4}}",
        "{socket_address: {address: 1.2.3.4, port_value: 65536}}",
        "{socket_address: {address: 1.2.3.4, named_port: http}}",
        "{socket_address: {address: 1.2.3.4, port_value: 1, named_port: http}}",
        "{socket_address: {protocol: 7, address: 1.2.3.4, port_value: 1}}",
        "{pipe: {path: \"\"}}",
        "{pipe: {path: /x}, socket_address: {address: 1.2.3.4, port_value: 1}}",
        "{envoy_internal_address: {server_listener_name: x}}",
    ] {
        let endpoints = format!("{{lb_endpoints: [{{endpoint: {{address: {address}}}}}]}}");
        assert!(assigned("STATIC", &endpoints).is_err(), "{address}");
    }
    for item in ["{}", "{endpoint: {}}", "{endpoint_name: x}", "null"] {
        assert!(assigned("STATIC", &format!("{{lb_endpoints: [{item}]}}")).is_err(), "{item}");
    }
}

#[test]
fn weights_priorities_health() {
    let fields = ", load_balancing_weight: 3, health_status: draining, metadata: {filter_metadata: {envoy.lb: {a: b}}}";
    let group = format!(
        "{{priority: 128, load_balancing_weight: 7, locality: {{zone: z}}, lb_endpoints: [{}]}}",
        endpoint("1.2.3.4", fields)
    );
    let endpoints = assigned("STATIC", &group).unwrap();
    let group = &endpoints.localities[0];
    assert_eq!((group.priority, group.weight), (128, Some(7)));
    assert_eq!(group.locality, Some(Locality { zone: "z".into(), ..Locality::default() }));
    let host = &group.endpoints[0];
    assert_eq!((host.weight, host.health), (3, HealthStatus::Draining));
    assert_eq!(host.metadata.lb("a").and_then(|v| v.as_str()), Some("b"));

    let unlocated = assigned("STATIC", "{load_balancing_weight: 7}").unwrap();
    assert_eq!((unlocated.localities[0].weight, &unlocated.localities[0].locality), (None, &None));
    // Envoy takes any number for a health status.
    let odd =
        assigned("STATIC", &format!("{{lb_endpoints: [{}]}}", endpoint("1.2.3.4", ", health_status: 9")))
            .unwrap();
    assert_eq!(odd.localities[0].endpoints[0].health, HealthStatus::Unknown);
    for bad in ["{priority: 129}", "{load_balancing_weight: 0}", "{locality: {zones: z}}"] {
        assert!(assigned("STATIC", bad).is_err(), "{bad}");
    }
    assert!(
        assigned(
            "STATIC",
            &format!("{{lb_endpoints: [{}]}}", endpoint("1.2.3.4", ", load_balancing_weight: 0"))
        )
        .is_err()
    );
}

#[test]
fn policies_of_an_assignment() {
    let policy = |policy: &str| cluster(&format!("load_assignment: {{cluster_name: x, policy: {policy}}}"));
    let endpoints =
        policy("{overprovisioning_factor: 100, weighted_priority_health: true}").unwrap().endpoints;
    assert_eq!((endpoints.overprovisioning_factor, endpoints.weighted_priority_health), (100, true));
    let drop = |numerator: u32| format!("{{category: a, drop_percentage: {{numerator: {numerator}}}}}");
    let drops = |list: &str| policy(&format!("{{drop_overloads: [{list}]}}"));
    let ratio = |list: &str| drops(list).unwrap().endpoints.drop_ratio;
    assert_eq!((ratio(""), ratio("{category: a}"), ratio(&drop(0)), ratio(&drop(100))), (0.0, 0.0, 0.0, 1.0));
    let parts = |kind: &str| {
        ratio(&format!("{{category: a, drop_percentage: {{numerator: 1, denominator: {kind}}}}}"))
    };
    assert_eq!((parts("HUNDRED"), parts("TEN_THOUSAND"), parts("MILLION")), (0.01, 0.0001, 0.000_001));
    let why = |list: &str| drops(list).unwrap_err().message;
    // Envoy's sentences.
    assert_eq!(
        why(&drop(120)),
        "Cluster drop_overloads config is invalid. drop_ratio=1.2(Numerator 120 / Denominator 100). The valid range is \
         0~1."
    );
    let two = format!("{}, {}", drop(20), drop(120));
    assert_eq!(why(&two), "Cluster drop_overloads config has 2 categories. Envoy only support one.");
    assert!(drops("{drop_percentage: {numerator: 1}}").is_err());
    assert!(policy("{overprovisioning_factor: 0}").is_err());
    assert!(cluster("load_assignment: {cluster_name: \"\"}").is_err());
    assert!(cluster("load_assignment: {endpoints: []}").is_err());
}

#[test]
fn repeated_addresses() {
    let twice = format!(
        "{{lb_endpoints: [{}, {}]}}",
        endpoint("1.2.3.4", ", load_balancing_weight: 1"),
        endpoint("1.2.3.4", ", load_balancing_weight: 2")
    );
    assert_eq!(keys(&assigned("STATIC", &twice).unwrap()), ["1.2.3.4:80", "1.2.3.4:80"]);
    let endpoints = assigned("EDS", &twice).unwrap();
    assert_eq!(keys(&endpoints), ["1.2.3.4:80"]);
    assert_eq!(endpoints.localities[0].endpoints[0].weight, 1);
}

#[test]
fn dns_clusters() {
    assert!(cluster("type: STRICT_DNS").is_ok());
    assert!(cluster("type: LOGICAL_DNS").is_err());
    let one = format!("{{lb_endpoints: [{}]}}", endpoint("a.local", ""));
    assert!(assigned("LOGICAL_DNS", &one).is_ok());
    assert!(assigned("LOGICAL_DNS", &format!("{one}, {one}")).is_err());
}

#[test]
fn sums_of_weights_must_fit_hash_policies() {
    let heavy = format!(
        "load_assignment: {{cluster_name: x, endpoints: [{{lb_endpoints: [{}, {}]}}]}}",
        endpoint("1.2.3.4", ", load_balancing_weight: 4294967295"),
        endpoint("1.2.3.5", "")
    );
    assert!(cluster(&format!("lb_policy: ROUND_ROBIN, {heavy}")).is_ok());
    assert!(cluster(&format!("lb_policy: RING_HASH, {heavy}")).is_err());
    assert!(cluster(&format!("lb_policy: MAGLEV, {heavy}")).is_err());
    let localities = "load_assignment: {cluster_name: x, endpoints: [{locality: {zone: a}, load_balancing_weight: 4294967295}, {locality: {zone: b}, load_balancing_weight: 1}]}";
    assert!(cluster(&format!("lb_policy: MAGLEV, {localities}")).is_err());
    assert!(cluster(localities).is_ok());
}

#[test]
fn bare_assignments() {
    let text = format!(
        "cluster_name: web\nendpoints: [{{lb_endpoints: [{}, {}]}}]",
        endpoint("1.2.3.4", ""),
        endpoint("web.local", "")
    );
    let source = |text| Source { name: "eds.yaml", text, dialect: Dialect::Auto };
    let (name, endpoints) = load_assignment(&source(text.as_bytes())).unwrap();
    assert_eq!((name.as_str(), keys(&endpoints)), ("web", vec!["1.2.3.4:80", "web.local:80"]));
    let error = load_assignment(&source(b"cluster_name: web\nendpoint: []")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "eds.yaml:2:1: endpoint: unknown field `endpoint`; did you mean `endpoints`? (in ClusterLoadAssignment)"
    );
    for bad in ["", "[]", "cluster_name: a\n---\ncluster_name: b", "{}"] {
        assert!(load_assignment(&source(bad.as_bytes())).is_err(), "{bad}");
    }

    // Beside the cluster that waits for it, under its service name.
    let eds = "name: web\ntype: EDS\neds_cluster_config: {service_name: svc}\n---\n";
    let loaded = read(&format!("{eds}{}", text.replace("cluster_name: web", "cluster_name: svc"))).unwrap();
    assert_eq!(keys(&loaded.specs.clusters[0].endpoints).len(), 2);
    assert!(complaint(&format!("{eds}{text}")).contains("no EDS cluster waits for the hosts of `web`"));
    assert!(
        complaint(&format!("name: web\ntype: EDS\n---\n{text}\n---\n{text}"))
            .contains("already given at test.yaml:4")
    );
    assert_eq!(read(eds).unwrap().specs.clusters[0].endpoints, Endpoints::default());
}

#[test]
fn fields_of_sockets_are_noted() {
    let text = "- {name: a, load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {additional_addresses: [], address: {socket_address: {address: 1.2.3.4, port_value: 1, ipv4_compat: true}}}}]}]}}";
    let base = "[0].load_assignment.endpoints[0].lb_endpoints[0].endpoint";
    assert_eq!(
        noted(text, What::NotUsed),
        [format!("{base}.additional_addresses"), format!("{base}.address.socket_address.ipv4_compat")]
    );
}
