//! Kinds of documents, streams of them, and complaints with places.

use crate::{complaint, read};
use nexthop_config::{ConfigError, Dialect, Source, load};
use nexthop_engine::spec::Value;

fn sources(texts: &[(&str, &str)]) -> Result<nexthop_config::Loaded, ConfigError> {
    let sources: Vec<Source<'_>> = texts
        .iter()
        .map(|(name, text)| Source { name, text: text.as_bytes(), dialect: Dialect::Auto })
        .collect();
    load(&sources)
}

#[test]
fn a_bootstrap() {
    let text = r#"
node: {id: n, cluster: c, locality: {zone: a}}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}
cluster_manager: {local_cluster_name: web}
layered_runtime:
  layers:
  - {name: base, static_layer: {a: {b: 1, share: {numerator: 5, denominator: HUNDRED}}, "d.e": true, f: x}}
  - {name: over, static_layer: {a: {b: 2}}}
static_resources:
  clusters:
  - {name: web, connect_timeout: 0.25s}
  listeners:
  - name: in
    address: {socket_address: {address: 127.0.0.1, port_value: 80}}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: x
          route_config: {name: r, virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: web}}]}]}
          http_filters:
          - {name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
          - {name: cors, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors}}
"#;
    let loaded = read(text).unwrap();
    assert_eq!(loaded.specs.clusters[0].name, "web");
    assert_eq!(loaded.specs.route_tables[0].name, "r");
    let runtime = &loaded.specs.runtime;
    let value = |key: &str| runtime.iter().find(|(name, _)| name == key).map(|(_, value)| value);
    assert_eq!(value("a.b"), Some(&Value::Number(2.0)));
    assert_eq!(value("d.e"), Some(&Value::Bool(true)));
    assert!(matches!(value("a.share"), Some(Value::Struct(_))));
    let paths: Vec<&str> = loaded.report.entries.iter().map(|entry| entry.path.as_str()).collect();
    assert!(paths.iter().any(|path| path.ends_with("http_filters[1]")), "{paths:?}");
    assert!(!paths.iter().any(|path| path.ends_with("http_filters[0]")));

    let unknown_local = text.replace("local_cluster_name: web", "local_cluster_name: wed");
    let error = read(&unknown_local).unwrap_err();
    assert_eq!(
        (error.path.as_str(), error.nearest.as_deref()),
        ("cluster_manager.local_cluster_name", Some("web"))
    );
}

#[test]
fn runtime_values() {
    let layers = |layers: &str| read(&format!("layered_runtime: {{layers: [{layers}]}}"));
    assert!(layers("{name: a, static_layer: {a: null}}").is_err());
    assert!(layers("{name: a, static_layer: {a: {b: [1]}}}").is_err());
    assert!(layers("{static_layer: {}}").is_err());
    assert!(layers("{name: a, static_layer: {}}, {name: a, static_layer: {}}").is_err());
    assert!(layers("{name: a, admin_layer: {}}, {name: b, static_layer: 1}").is_err());
}

#[test]
fn kinds_of_documents() {
    let names = |text: &str| -> Vec<String> {
        read(text).unwrap().specs.clusters.into_iter().map(|cluster| cluster.name).collect()
    };
    assert_eq!(names("name: a\nlb_policy: RANDOM"), ["a"]);
    assert_eq!(names("name: a"), ["a"]);
    assert_eq!(names("- name: a\n- name: b"), ["a", "b"]);
    assert_eq!(names("name: a\n---\n# nothing\n---\nname: b\n..."), ["a", "b"]);
    assert_eq!(names("clusters: [{name: a}, {name: b}]"), ["a", "b"]);
    assert_eq!(names("staticResources: {clusters: [{name: a}]}"), ["a"]);
    assert_eq!(names("\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\nname: a"), ["a"]);
    assert_eq!(
        names(
            "version_info: \"1\"\nresources: [{\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: a}]"
        ),
        ["a"]
    );
    assert_eq!(names("- static_resources: {clusters: [{name: a}]}\n- virtual_hosts: []"), ["a"]);
    assert_eq!(read("virtual_hosts: []").unwrap().specs.route_tables.len(), 1);
}

#[test]
fn none_is_said_in_so_many_words() {
    for text in ["clusters: []", "clusters: {}", "static_resources: {}", "static_resources: {clusters: []}"] {
        assert!(read(text).unwrap().specs.clusters.is_empty(), "{text}");
    }
    for text in ["[]", "clusters: []\n---\n[]"] {
        assert!(complaint(text).contains("an empty list holds no documents"), "{text}");
    }
    assert!(complaint("{}").contains("not recognised"));
}

#[test]
fn unknown_documents() {
    let text = complaint("foo: 1\nbar: 2");
    assert!(text.contains("not recognised from its keys [foo, bar]; looked for static_resources"), "{text}");
    assert!(complaint("static_resources: {}\nvirtual_hosts: []").contains("several kinds of document"));
    assert_eq!(read("static_resource: {}").unwrap_err().nearest.as_deref(), Some("static_resources"));
    assert!(complaint("- [a]").contains("expected a document"));
}

#[test]
fn announced_dialects() {
    assert_eq!(Dialect::from_name("Envoy"), Some(Dialect::Envoy));
    assert_eq!(Dialect::from_name("xml"), None);
    assert_eq!(Dialect::Nacos.name(), "nacos");
    let with = |dialect, text: &str| load(&[Source { name: "x", text: text.as_bytes(), dialect }]);
    assert!(with(Dialect::Envoy, "name: a").is_ok());
    assert!(with(Dialect::Nexthop, "clusters: {a: {hosts: []}}").is_ok());
    assert!(with(Dialect::Envoy, "clusters: {a: {hosts: []}}").is_err());
    assert!(with(Dialect::Nexthop, "name: a").is_err());
    assert!(with(Dialect::Istio, "name: a").unwrap_err().message.contains("an Istio document was announced"));
}

#[test]
fn names_are_unique_over_all_documents() {
    let error = sources(&[("a.yaml", "name: web"), ("b.yaml", "\n- name: x\n- name: web")]).unwrap_err();
    assert_eq!(error.to_string(), "b.yaml:3:3: [1]: the cluster name `web` is already used at a.yaml:1");
}

#[test]
fn documents_complete_each_other() {
    let routes =
        "virtual_hosts: [{name: v, domains: [\"*\"], routes: [{match: {prefix: /}, route: {cluster: web}}]}]";
    assert!(sources(&[("r.yaml", routes), ("c.yaml", "name: web")]).is_ok());
    let error = sources(&[("r.yaml", routes), ("c.yaml", "name: wep")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "r.yaml:1:90: virtual_hosts[0].routes[0].route.cluster: unknown cluster `web`; did you mean `wep`?"
    );
}

#[test]
fn errors_say_where_what_and_what_else() {
    let text = "static_resources:\n  clusters:\n  - name: a\n  - name: b\n    outlier_detection:\n      interval: 5ms\n";
    let error = read(text).unwrap_err();
    assert_eq!(
        error,
        ConfigError {
            file: "test.yaml".into(),
            line: 6,
            column: 17,
            path: "static_resources.clusters[1].outlier_detection.interval".into(),
            found: "5ms".into(),
            allowed: "a duration such as \"0.25s\" (seconds, at most nine decimals, then `s`)".into(),
            nearest: None,
            message: "expected a duration such as \"0.25s\" (seconds, at most nine decimals, then `s`), found `5ms`".into(),
        }
    );
    let error = read("static_resources: {clusters: [{name: a, conect_timeout: 1s}]}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "test.yaml:1:41: static_resources.clusters[0].conect_timeout: unknown field `conect_timeout`; did you mean \
         `connect_timeout`? (in Cluster)"
    );
    let error = read("static_resources: {clusters: [{}]}").unwrap_err();
    assert_eq!(
        error.to_string(),
        "test.yaml:1:31: static_resources.clusters[0]: the field `name` is required"
    );
    assert!(std::error::Error::source(&error).is_none());
}
