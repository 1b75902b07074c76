//! Instance lists of registries as documents, and as the hosts of one cluster.

use crate::{noted, read};
use nexthop_config::{Dialect, ListOptions, Loaded, Source, What, load, load_hosts, translate};
use nexthop_engine::spec::{EndpointSpec, Endpoints, HealthStatus, Value};

const NACOS: &str = r#"{"name": "DEFAULT_GROUP@@orders", "cacheMillis": 10000, "hosts": [
    {"instanceId": "a", "ip": "10.0.0.1", "port": 80, "weight": 0.5, "metadata": {"zone": "z1", "version": "2"}},
    {"instanceId": "b", "ip": "10.0.0.2", "port": 80, "weight": 2.0, "healthy": false, "metadata": {"secure": "true"}},
    {"instanceId": "c", "ip": "10.0.0.3", "port": 80, "enabled": false},
    {"instanceId": "d", "ip": "10.0.0.4", "port": 80, "metadata": {"zone": "z1", "nacos.weight": "much"}}]}"#;

fn named(name: &str, text: &str) -> Result<Loaded, nexthop_config::ConfigError> {
    load(&[Source { name, text: text.as_bytes(), dialect: Dialect::Auto }])
}

fn hosts(endpoints: &Endpoints) -> Vec<&EndpointSpec> {
    endpoints.localities.iter().flat_map(|group| &group.endpoints).map(|host| &**host).collect()
}

#[test]
fn a_list_makes_a_cluster_in_its_order() {
    let loaded = named("lists/x.json", NACOS).unwrap();
    let cluster = &loaded.specs.clusters[0];
    assert_eq!((cluster.name.as_str(), cluster.secure), ("orders", false));
    let found: Vec<_> = hosts(&cluster.endpoints)
        .iter()
        .map(|host| (host.address.as_str(), host.weight, host.health))
        .collect();
    let (healthy, unhealthy) = (HealthStatus::Healthy, HealthStatus::Unhealthy);
    assert_eq!(
        found,
        [("10.0.0.1:80", 50, healthy), ("10.0.0.2:80", 200, unhealthy), ("10.0.0.4:80", 100, healthy)]
    );
    let zones: Vec<_> =
        cluster.endpoints.localities.iter().map(|g| g.locality.as_ref().map(|l| l.zone.as_str())).collect();
    assert_eq!(zones, [Some("z1"), None, Some("z1")]);
    let first = hosts(&cluster.endpoints)[0];
    assert_eq!(first.metadata.lb("version"), Some(&Value::String("2".into())));
    assert_eq!(first.metadata.0["nexthop"]["id"], Value::String("a".into()));
    assert_eq!(first.metadata.0["nexthop"]["weight"], Value::Number(0.5));
    let texts: Vec<_> = loaded.report.entries.iter().map(|entry| entry.text.as_str()).collect();
    assert_eq!(
        texts,
        ["the instance c is left out: disabled", "the cluster orders is made with Envoy's defaults"]
    );
    let codes: Vec<_> = loaded.findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["W-BAD-WEIGHT"]);
}

#[test]
fn a_list_finds_its_cluster() {
    let names = |name: &str, text: &str| -> Vec<String> {
        named(name, text).unwrap().specs.clusters.iter().map(|cluster| cluster.name.clone()).collect()
    };
    assert_eq!(names("checkout", NACOS), ["checkout"], "the name of the source");
    let spring = r#"[{"host": "10.0.0.1", "port": 80}]"#;
    assert_eq!(names("dir/spring.list.json", spring), ["spring"], "the file's name");
    let both = [
        Source {
            name: "a.yaml",
            text: b"{name: web, type: EDS, eds_cluster_config: {service_name: orders}}",
            dialect: Dialect::Auto,
        },
        Source { name: "b.json", text: NACOS.as_bytes(), dialect: Dialect::Auto },
    ];
    let loaded = load(&both).unwrap();
    assert_eq!(loaded.specs.clusters.len(), 1);
    assert_eq!(hosts(&loaded.specs.clusters[0].endpoints).len(), 3);
    let full = [
        Source {
            name: "a.yaml",
            text: b"clusters: {orders: {hosts: [10.0.0.9:80]}}",
            dialect: Dialect::Auto,
        },
        both[1],
    ];
    assert_eq!(
        load(&full).unwrap_err().to_string(),
        "b.json:1:1: the cluster `orders` has its hosts from a.yaml:1"
    );
    let empty = [
        Source {
            name: "a.yaml",
            text: b"clusters: {orders: {hosts: [], policy: random}}",
            dialect: Dialect::Auto,
        },
        both[1],
    ];
    assert_eq!(hosts(&load(&empty).unwrap().specs.clusters[0].endpoints).len(), 3);
}

#[test]
fn slices_of_a_service_are_one_list() {
    let slice = |address: &str, ports: &str| {
        format!(
            "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{labels: {{kubernetes.io/service-name: \
             orders}}}}\nports: {ports}\nendpoints: [{{addresses: [{address}], zone: a}}, {{addresses: []}}]\n"
        )
    };
    let text = slice("10.0.0.1", "[{port: 80}]")
        + &slice("10.0.0.2", "[{name: metrics, port: 9}, {name: http, port: 8080}]")
        + &slice("10.0.0.1", "[{port: 80}]");
    let loaded = read(&text).unwrap();
    let addresses: Vec<_> =
        hosts(&loaded.specs.clusters[0].endpoints).iter().map(|host| host.address.clone()).collect();
    assert_eq!(addresses, ["10.0.0.1:80", "10.0.0.2:8080"]);
    assert!(noted(&text, What::Default).contains(&"ports".to_owned()));
    let list =
        format!("[{}]", r#"{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "endpoints": []}"#);
    assert_eq!(named("k8s", &list).unwrap().specs.clusters[0].name, "k8s");
}

#[test]
fn every_registry_is_recognised() {
    let consul = r#"[{"Node": {"Address": "10.0.0.1"}, "Service": {"Service": "web", "Port": 80}}]"#;
    let eureka = r#"{"applications": {"application": [{"name": "WEB", "instance":
        {"hostName": "h1", "port": {"$": 80, "@enabled": true}, "status": "UP"}}, {"name": "API", "instance": []}]}}"#;
    let one = r#"{"application": {"name": "WEB", "instance": [{"hostName": "h1", "securePort": {"$": 443, "@enabled":
        "true"}, "status": "UP"}]}}"#;
    let v3 = r#"{"code": 0, "message": "success", "data": []}"#;
    let names = |text: &str| -> Vec<(String, usize, bool)> {
        let clusters = named("f", text).unwrap().specs.clusters;
        clusters.iter().map(|c| (c.name.clone(), hosts(&c.endpoints).len(), c.secure)).collect()
    };
    assert_eq!(names(consul), [("f".to_owned(), 1, false)]);
    assert_eq!(names(eureka), [("api".to_owned(), 0, false), ("web".to_owned(), 1, false)]);
    assert_eq!(names(one), [("f".to_owned(), 1, true)]);
    assert_eq!(names(v3), [("f".to_owned(), 0, false)]);
    let empty = [Source { name: "f", text: b"[]", dialect: Dialect::Consul }];
    assert_eq!(load(&empty).unwrap().specs.clusters[0].name, "f", "announced, and nothing there");
    let wrong = [Source { name: "f", text: consul.as_bytes(), dialect: Dialect::Nacos }];
    let error = load(&wrong).unwrap_err().to_string();
    assert!(error.ends_with("a Nacos document was announced, recognised as a Consul document"), "{error}");
    let pods = r#"{"apiVersion": "v1", "kind": "Pod", "spec": {}}"#;
    assert!(named("f", pods).unwrap_err().message.starts_with("unknown kind `Pod`"));
}

#[test]
fn hosts_of_one_cluster_in_any_dialect() {
    let with = |text: &str, options: &ListOptions, service: &str| {
        load_hosts(&Source { name: "h", text: text.as_bytes(), dialect: Dialect::Auto }, options, service)
            .map(|(_, hosts)| hosts)
    };
    let plain = ListOptions::default();
    assert_eq!(hosts(&with(NACOS, &plain, "any").unwrap()).len(), 3);
    let assignment = "{cluster_name: x, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 1.1.1.1, port_value: 1}}}}]}]}";
    assert_eq!(hosts(&with(assignment, &plain, "any").unwrap()).len(), 1);
    let apps = r#"{"applications": {"application": [{"name": "A", "instance": []}, {"name": "B", "instance":
        [{"hostName": "h", "ipAddr": "10.0.0.1", "port": {"$": 80}, "status": "OUT_OF_SERVICE"}]}]}}"#;
    let addresses = ListOptions { ip_address: true, ..ListOptions::default() };
    let found = with(apps, &addresses, "b").unwrap();
    assert_eq!(hosts(&found)[0].address, "10.0.0.1:80");
    assert_eq!(hosts(&found)[0].health, HealthStatus::Draining);
    assert!(with(apps, &plain, "c").unwrap_err().message.starts_with("unknown service `c`"));
    let consul = r#"[{"Node": {}, "Service": {"Address": "10.0.0.1", "Port": 80}, "Checks": [{"Status": "warning"}]}]"#;
    let strict = ListOptions { only_passing: true, ..ListOptions::default() };
    assert_eq!(hosts(&with(consul, &plain, "").unwrap())[0].health, HealthStatus::Healthy);
    assert_eq!(hosts(&with(consul, &strict, "").unwrap())[0].health, HealthStatus::Unhealthy);
    let bad = r#"[{"host": "a b", "port": 80}]"#;
    assert!(with(bad, &plain, "").unwrap_err().message.contains("expected an IP address or a name"));
}

#[test]
fn lists_in_envoys_form() {
    let text =
        translate(&[Source { name: "x.json", text: NACOS.as_bytes(), dialect: Dialect::Auto }]).unwrap();
    let cluster = named("x.yaml", &text).unwrap().specs.clusters.remove(0);
    let (name, found) = (cluster.name, cluster.endpoints);
    assert_eq!(name, "orders");
    let direct = named("x.json", NACOS).unwrap().specs.clusters.remove(0).endpoints;
    let told = |endpoints: &Endpoints| -> Vec<_> {
        hosts(endpoints).into_iter().map(|host| (host.address.clone(), host.weight, host.health)).collect()
    };
    assert_eq!(told(&found), told(&direct));
    let zones = |endpoints: &Endpoints| -> Vec<_> {
        endpoints.localities.iter().map(|group| group.locality.clone()).collect()
    };
    assert_eq!(zones(&found), zones(&direct));
    assert_eq!(hosts(&found)[0].metadata.0["envoy.lb"], hosts(&direct)[0].metadata.0["envoy.lb"]);
}

#[test]
fn what_a_list_becomes_is_read_again() {
    let lists = [
        r#"[{"Node": {"Address": "10.0.0.1"}, "Service": {"Service": "orders", "Port": 80}}]"#,
        r#"[{"serviceId": "orders", "host": "orders.internal", "port": 80}]"#,
        r#"{"application": {"name": "ORDERS", "instance": {"hostName": "h1", "port": {"$": 80}, "status": "UP"}}}"#,
        "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {labels: {kubernetes.io/service-name: \
         orders}}, ports: [{port: 80}], endpoints: [{addresses: [10.0.0.1]}]}",
        NACOS,
    ];
    for list in lists {
        let direct = named("x.json", list).unwrap().specs.clusters.remove(0);
        let source = Source { name: "x.json", text: list.as_bytes(), dialect: Dialect::Auto };
        let text = translate(&[source]).unwrap();
        let again = named("x.yaml", &text).unwrap().specs.clusters.remove(0);
        let told = |endpoints: &Endpoints| -> Vec<_> {
            hosts(endpoints).into_iter().map(|host| (host.address.clone(), host.hostname.clone())).collect()
        };
        assert_eq!(told(&again.endpoints), told(&direct.endpoints), "{text}");
        assert_eq!((again.name, again.policy), ("orders".to_owned(), direct.policy), "{text}");
        let waits = Source { name: "w.yaml", text: b"{name: orders, type: EDS}", dialect: Dialect::Auto };
        assert!(translate(&[waits, source]).unwrap().starts_with("cluster_name"), "an EDS cluster waits");
    }
}

#[test]
fn one_entry_is_enough_to_know_a_list() {
    let lists = [
        (r#"{"hosts":[{"port":80},{"ip":"10.0.0.1","port":80}]}"#, 1),
        (r#"{"name":"g@@orders","hosts":[{"port":80},{"ip":"10.0.0.1","port":80}]}"#, 1),
        (r#"{"name":"g@@orders","hosts":[{"port":80}]}"#, 1),
        (r#"{"code":0,"data":[{"port":80},{"ip":"10.0.0.1","port":80}]}"#, 1),
        (r#"[{"port":80},{"host":"10.0.0.1","port":80}]"#, 1),
        (r#"[{"instanceId":"x","host":"10.0.0.1"},{"host":"10.0.0.1","port":80}]"#, 1),
        (r#"[{"Node":{"Node":"n"}},{"Node":{"Address":"10.0.0.1"},"Service":{"ID":"a","Port":80}}]"#, 1),
        (r#"{"name":"orders","hosts":[]}"#, 0),
        (r#"{"hosts":[]}"#, 0),
        ("[]", 0),
    ];
    for (text, left_out) in lists {
        let source = Source { name: "orders", text: text.as_bytes(), dialect: Dialect::Auto };
        let (_, endpoints) = load_hosts(&source, &ListOptions::default(), "").unwrap();
        if text == "[]" {
            // As a document of its own it may be anything.
            assert!(load(&[source]).is_err());
            continue;
        }
        let loaded = load(&[source]).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(loaded.specs.clusters[0].endpoints, endpoints, "{text}");
        let reasons =
            loaded.report.entries.iter().filter(|entry| entry.text.contains("left out: no_")).count();
        assert_eq!(reasons, left_out, "{text}");
        let some = text.contains("10.0.0.1") as usize;
        assert_eq!(hosts(&endpoints).len(), some, "{text}");
    }
    let short = named("x", "{name: x, hosts: [10.0.0.1:80]}").unwrap_err().to_string();
    assert!(short.contains("belongs to the short form"), "{short}");
}

#[test]
fn what_is_left_out_or_wrong_has_its_place() {
    let text = "{\"name\": \"orders\", \"hosts\": [\n{\"port\": 80},\n{\"port\": 80},\n{\"ip\": \"10.0.0.1\", \"port\": 80},\n\
                {\"ip\": \"10.0.0.1\", \"port\": 80},\n{\"ip\": \"10.0.0.2\"}]}";
    let loaded = named("big.json", text).unwrap();
    let told: Vec<_> =
        loaded.report.entries.iter().map(|e| (e.line, e.path.as_str(), e.text.as_str())).collect();
    assert_eq!(
        told,
        [
            (2, "hosts[0]", "the instance is left out: no_address"),
            (3, "hosts[1]", "the instance is left out: no_address"),
            (6, "hosts[4]", "the instance 10.0.0.2:0 is left out: no_port"),
            (5, "hosts[3].ip", "10.0.0.1:80 is listed twice; the first entry counts"),
            (1, "", "the cluster orders is made with Envoy's defaults"),
        ]
    );
    let bad = "{\"hosts\": [{\"ip\": \"10.0.0.1\", \"port\": 80},\n{\"ip\": \"bad addr!\", \"port\": 80}]}";
    let error = named("ba.json", bad).unwrap_err();
    assert_eq!((error.line, error.path.as_str()), (2, "hosts[1].ip"), "{error}");
}

#[test]
fn weights_that_are_no_numbers_count_as_one() {
    let lists = [
        r#"{"hosts": [{"ip": "10.0.0.1", "port": 80, "weight": "abc"}, {"ip": "10.0.0.2", "port": 80, "weight": 3}]}"#,
        r#"{"hosts": [{"ip": "10.0.0.1", "port": 80, "weight": [7]}, {"ip": "10.0.0.2", "port": 80, "weight": 3}]}"#,
        r#"[{"host": "10.0.0.1", "port": 80, "weight": "😀"}, {"host": "10.0.0.2", "port": 80, "weight": 3}]"#,
        r#"[{"Node": {}, "Service": {"Address": "10.0.0.1", "Port": 80, "Weights": {"Passing": "much"}}},
            {"Node": {}, "Service": {"Address": "10.0.0.2", "Port": 80, "Weights": {"Passing": 3}}}]"#,
    ];
    for text in lists {
        let loaded = named("orders", text).unwrap();
        let weights: Vec<_> =
            hosts(&loaded.specs.clusters[0].endpoints).iter().map(|host| host.weight).collect();
        assert_eq!(weights, [1, 3], "{text}");
        let codes: Vec<_> = loaded.findings.iter().map(|finding| finding.code).collect();
        assert_eq!(codes, ["W-BAD-WEIGHT"], "{text}");
    }
}

#[test]
fn weights_of_a_list_fit_together() {
    for huge in ["1e300", "4294967295", "1e10"] {
        let text = format!(
            r#"{{"hosts": [{{"ip": "10.0.0.1", "port": 80, "weight": {huge}}}, {{"ip": "10.0.0.2", "port": 80}}]}}"#
        );
        let loaded = named("orders", &text).unwrap();
        let found = hosts(&loaded.specs.clusters[0].endpoints);
        let sum: u64 = found.iter().map(|host| u64::from(host.weight)).sum();
        assert!(sum <= u64::from(u32::MAX) && found[0].weight > 4_000_000_000, "{huge}: {sum}");
        let source = Source { name: "orders", text: text.as_bytes(), dialect: Dialect::Auto };
        named("x.yaml", &translate(&[source]).unwrap()).unwrap();
    }
    let infinite = r#"{"hosts": [{"ip": "10.0.0.1", "port": 80, "metadata": {"nacos.weight": "Infinity"}}]}"#;
    let source = Source { name: "orders", text: infinite.as_bytes(), dialect: Dialect::Auto };
    let text = translate(&[source]).unwrap();
    assert!(text.contains("weight: \"Infinity\"") || text.contains("weight: Infinity"), "{text}");
    assert!(!text.contains(": inf\n"), "{text}");
}
