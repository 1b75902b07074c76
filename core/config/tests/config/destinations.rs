//! Instance lists of hosts that Istio's objects are about.

use nexthop_config::{ConfigError, Dialect, Loaded, Source, load, load_in_detail, translate};
use nexthop_engine::spec::ClusterSpec;

const HOST: &str = "orders.shop.svc.cluster.local";
const RULE: &str = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: orders, namespace: shop}\n\
    spec:\n  host: orders.shop.svc.cluster.local\n  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: \
    {version: v2}}, {name: both, labels: {}}]\n";
const TWO: &str = r#"{"hosts": [{"ip": "10.0.0.1", "port": 8080, "metadata": {"version": "v1", "tier": "a"}},
    {"ip": "10.0.0.2", "port": 8080, "metadata": {"version": "v2"}}]}"#;

fn with(documents: &[(&str, &str)]) -> Result<Loaded, ConfigError> {
    load(&sources(documents))
}

fn sources<'a>(documents: &[(&'a str, &'a str)]) -> Vec<Source<'a>> {
    let source =
        |&(name, text): &(&'a str, &'a str)| Source { name, text: text.as_bytes(), dialect: Dialect::Auto };
    documents.iter().map(source).collect()
}

/// The hosts of each cluster: the last number of the address, and the port when it is not 8080.
fn told(loaded: &Loaded) -> Vec<(&str, String)> {
    let hosts = |cluster: &ClusterSpec| {
        let hosts = cluster.endpoints.localities.iter().flat_map(|group| &group.endpoints);
        let name = |address: &str| address.trim_start_matches("10.0.0.").trim_end_matches(":8080").to_owned();
        hosts.map(|host| name(&host.address)).collect::<Vec<_>>().join(" ")
    };
    loaded.specs.clusters.iter().map(|cluster| (cluster.name.as_str(), hosts(cluster))).collect()
}

fn split() -> Vec<(&'static str, String)> {
    vec![
        ("outbound|8080||orders.shop.svc.cluster.local", "1 2".to_owned()),
        ("outbound|8080|v1|orders.shop.svc.cluster.local", "1".to_owned()),
        ("outbound|8080|v2|orders.shop.svc.cluster.local", "2".to_owned()),
        ("outbound|8080|both|orders.shop.svc.cluster.local", "1 2".to_owned()),
    ]
}

#[test]
fn subsets_hold_what_carries_their_labels() {
    let names =
        ["orders", "orders.shop", "orders.shop.svc", HOST, "g@@orders", "g@@orders.shop.svc.cluster.local"];
    for name in names {
        let list = TWO.replacen('{', &format!("{{\"name\": \"{name}\", "), 1);
        for order in
            [[("dr.yaml", RULE), ("x.json", list.as_str())], [("x.json", list.as_str()), ("dr.yaml", RULE)]]
        {
            assert_eq!(told(&with(&order).unwrap()), split(), "{name}");
        }
    }
    for source in ["orders", HOST, "dir/orders.json", "outbound|8080||orders.shop.svc.cluster.local"] {
        assert_eq!(told(&with(&[("dr.yaml", RULE), (source, TWO)]).unwrap()), split(), "{source}");
    }
    let subset = "outbound|8080|v2|orders.shop.svc.cluster.local";
    let loaded = with(&[("dr.yaml", RULE), (subset, TWO)]).unwrap();
    let found: Vec<_> = told(&loaded).into_iter().filter(|(_, hosts)| !hosts.is_empty()).collect();
    assert_eq!(found, [(subset, "2".to_owned())]);
}

#[test]
fn every_registry_fills_destinations() {
    let lists = [
        r#"[{"serviceId": "orders", "host": "10.0.0.1", "port": 8080, "metadata": {"version": "v1"}},
            {"serviceId": "orders", "host": "10.0.0.2", "port": 8080, "metadata": {"version": "v2"}}]"#,
        r#"[{"Node": {}, "Service": {"Service": "orders", "Address": "10.0.0.1", "Port": 8080, "Meta": {"version": "v1"}}},
            {"Node": {}, "Service": {"Service": "orders", "Address": "10.0.0.2", "Port": 8080, "Meta": {"version": "v2"}}}]"#,
        r#"{"application": {"name": "ORDERS", "instance": [
            {"hostName": "10.0.0.1", "port": {"$": 8080}, "status": "UP", "metadata": {"version": "v1"}},
            {"hostName": "10.0.0.2", "port": {"$": 8080}, "status": "UP", "metadata": {"version": "v2"}}]}}"#,
    ];
    for list in lists {
        assert_eq!(told(&with(&[("dr.yaml", RULE), ("x.json", list)]).unwrap()), split(), "{list}");
    }
    let slice = "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: shop, labels: \
                 {kubernetes.io/service-name: orders}}, ports: [{port: 8080}], endpoints: [{addresses: [10.0.0.1]}]}";
    let loaded = with(&[("dr.yaml", RULE), ("x.yaml", slice)]).unwrap();
    let hosts: Vec<_> = told(&loaded).into_iter().map(|(_, hosts)| hosts).collect();
    assert_eq!(hosts, ["1", "", "", "1"], "a slice tells no labels");
    let entries = loaded.report.entries.iter().filter(|entry| entry.text.contains("gets no host"));
    let texts: Vec<_> = entries.map(|entry| entry.text.as_str()).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts[0].contains("no instance on its port carries version=v1"), "{}", texts[0]);
    let other = slice.replace("namespace: shop", "namespace: web");
    let loaded = with(&[("dr.yaml", RULE), ("x.yaml", &other)]).unwrap();
    assert_eq!(
        told(&loaded).last().unwrap(),
        &("orders", "1".to_owned()),
        "another namespace is another host"
    );
}

#[test]
fn ports_keep_their_instances() {
    let entry = |ports: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: orders, namespace: shop}}\nspec: {{ports: {ports}}}\n---\n{RULE}"
        )
    };
    let hosts = |service: &str, list: &str| -> Vec<(String, String)> {
        let loaded = with(&[("s.yaml", service), ("x.json", list)]).unwrap();
        let whole = told(&loaded).into_iter().filter(|(name, _)| name.contains("||"));
        whole.map(|(name, hosts)| (name[9..12].trim_end_matches('|').to_owned(), hosts)).collect()
    };
    let pair = |a: &str, b: &str| vec![("80".to_owned(), a.to_owned()), ("81".to_owned(), b.to_owned())];
    let service =
        entry("[{name: http, port: 80, targetPort: 8080}, {name: grpc, port: 81, targetPort: 9090}]");
    let nacos = r#"{"name": "g@@orders", "hosts": [{"ip": "10.0.0.1", "port": 8080}, {"ip": "10.0.0.2", "port": 9090},
        {"ip": "10.0.0.3", "port": 80}, {"ip": "10.0.0.4", "port": 7}]}"#;
    assert_eq!(hosts(&service, nacos), pair("1 3:80 4:7", "2:9090 4:7"));
    let slice = "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {labels: {kubernetes.io/service-name: \
                 orders}}, ports: [{name: http, port: 8080}, {name: grpc, port: 9090}], endpoints: [{addresses: [10.0.0.1]}]}";
    assert_eq!(hosts(&service, slice), pair("1", "1:9090"));
    let named = entry("[{name: http, port: 80, targetPort: web}, {name: grpc, port: 81, targetPort: rpc}]");
    assert_eq!(hosts(&named, slice), pair("1", "1:9090"));
}

#[test]
fn what_is_not_clear_is_said() {
    let web = RULE.replace("shop", "web");
    let both = format!("{RULE}---\n{web}");
    let list = TWO.replacen('{', "{\"name\": \"orders\", ", 1);
    let error = with(&[("dr.yaml", &both), ("x.json", &list)]).unwrap_err().to_string();
    assert_eq!(
        error,
        "x.json:1:1: the list `orders` may be for orders.shop.svc.cluster.local or orders.web.svc.cluster.local; write \
         its host in full"
    );
    let entry = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: o, namespace: shop}\nspec: {hosts: \
                 [orders.shop.svc.cluster.local], ports: [{number: 8080, name: http, protocol: HTTP}], resolution: STATIC";
    let empty = format!("{entry}}}\n---\n{RULE}");
    assert_eq!(told(&with(&[("se.yaml", &empty), ("x.json", &list)]).unwrap()), split());
    let full = format!("{entry}, endpoints: [{{address: 10.0.0.9}}]}}\n---\n{RULE}");
    let error = with(&[("se.yaml", &full), ("x.json", &list)]).unwrap_err().to_string();
    assert!(error.contains("are already given at"), "{error}");
    let own = "clusters: {orders: {hosts: [], policy: random}}";
    let loaded = with(&[("dr.yaml", RULE), ("c.yaml", own), ("x.json", &list)]).unwrap();
    assert_eq!(
        told(&loaded).iter().find(|(name, _)| *name == "orders").unwrap(),
        &("orders", "1 2".to_owned()),
        "a cluster of that very name comes first"
    );
}

#[test]
fn faults_of_instances_are_told_once() {
    let list = r#"{"name": "orders", "hosts": [{"ip": "10.0.0.1", "port": 8080}, {"ip": "10.0.0.1", "port": 8080},
        {"port": 8080}]}"#;
    let loaded = with(&[("dr.yaml", RULE), ("x.json", list)]).unwrap();
    let texts = |part: &str| loaded.report.entries.iter().filter(|entry| entry.text.contains(part)).count();
    assert_eq!((texts("listed twice"), texts("left out")), (1, 1));
}

#[test]
fn a_translation_has_the_hosts_of_subsets() {
    let list = TWO.replacen('{', "{\"name\": \"orders\", ", 1);
    let text = translate(&sources(&[("dr.yaml", RULE), ("x.json", &list)])).unwrap();
    assert_eq!(told(&with(&[("t.yaml", &text)]).unwrap()), split());
    let detail = load_in_detail(&sources(&[("dr.yaml", RULE), ("x.json", &list)])).unwrap();
    assert_eq!(told(&detail), split());
}
