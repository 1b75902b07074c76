//! Instance lists as documents of an engine, and as endpoints of a running cluster.

use nexthop::raw::{self, Document, HostChange, Options, document_kind, host_op};

const NACOS: &str =
    r#"{"name": "g@@orders", "hosts": [{"ip": "10.0.0.1", "port": 80}, {"ip": "10.0.0.2", "port": 80}]}"#;

fn addresses(engine: u64) -> Vec<String> {
    let hosts: serde_json::Value = serde_json::from_str(&raw::text(engine, 10, "orders").unwrap()).unwrap();
    hosts.as_array().unwrap().iter().map(|host| host["address"].as_str().unwrap().to_owned()).collect()
}

fn apply(engine: u64, text: &str, dialect: &str, options: &str) -> Result<u64, raw::Error> {
    let change = HostChange {
        op: host_op::ENDPOINTS,
        metadata: text,
        address: dialect,
        hostname: options,
        ..HostChange::default()
    };
    raw::apply(engine, "orders", &[change])
}

#[test]
fn a_list_is_a_document_and_a_change() {
    let document = Document { kind: document_kind::TEXT, dialect: "", name: "", text: NACOS.as_bytes() };
    let engine = raw::engine_new(&Options::default(), &[document]).unwrap();
    assert_eq!(addresses(engine), ["10.0.0.1:80", "10.0.0.2:80"]);
    let consul = r#"[{"Node": {}, "Service": {"Address": "10.0.0.2", "Port": 80}}]"#;
    apply(engine, consul, "", "").unwrap();
    assert_eq!(addresses(engine), ["10.0.0.2:80"]);
    let slice = "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, ports: [{name: a, port: 1}, {name: b, port: 2}], \
        endpoints: [{addresses: [10.0.0.3]}]}";
    apply(engine, slice, "kubernetes", "port_name=b").unwrap();
    assert_eq!(addresses(engine), ["10.0.0.3:2"]);
    apply(engine, "[]", "spring", "").unwrap();
    assert!(addresses(engine).is_empty());
    for (text, dialect, options, sentence) in [
        ("[]", "springs", "", "unknown dialect \"springs\"; there are auto, envoy"),
        (slice, "", "port=b", "unknown option \"port=b\""),
        (slice, "", "port_name=c", "unknown port `c`"),
        ("[{\"host\": 1, \"port\": 99999}]", "", "", "expected a whole number from 0 to 65535"),
    ] {
        let error = apply(engine, text, dialect, options).unwrap_err().to_string();
        assert!(error.contains(sentence), "{error}");
    }
    raw::engine_free(engine).unwrap();
}

/// Lists in files beside a document of clusters, read again by whoever's loop it is.
#[test]
fn files_of_instances_are_watched() {
    let folder = std::env::temp_dir().join(format!("nexthop-instances-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (clusters, list) = (folder.join("clusters.yaml"), folder.join("orders.json"));
    std::fs::write(&clusters, "[{name: orders, type: EDS, lb_policy: ROUND_ROBIN, connect_timeout: 1s}]")
        .unwrap();
    std::fs::write(&list, NACOS).unwrap();
    let document = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (clusters, at) = (document(&clusters), document(&list));
    let documents = [&clusters, &at].map(|path| Document {
        kind: document_kind::PATH,
        dialect: "",
        name: "",
        text: path.as_bytes(),
    });
    let engine = raw::engine_new(&Options::default(), &documents).unwrap();
    assert_eq!(addresses(engine), ["10.0.0.1:80", "10.0.0.2:80"]);
    assert!(!raw::reload(engine).unwrap().0, "nothing changed");

    let more = NACOS.replace("10.0.0.2", "10.0.0.7").replace("]}", r#", {"ip": "10.0.0.3", "port": 80}]}"#);
    std::fs::write(&list, &more).unwrap();
    assert!(raw::reload(engine).unwrap().0);
    assert_eq!(addresses(engine), ["10.0.0.1:80", "10.0.0.7:80", "10.0.0.3:80"]);

    let events = || std::iter::from_fn(|| raw::poll_event(engine).unwrap()).collect::<Vec<_>>().join("\n");
    events();
    // Half a file, as a writer that is not done leaves it; then none at all.
    std::fs::write(&list, &more[..40]).unwrap();
    assert!(!raw::reload(engine).unwrap().0);
    let told = events();
    assert!(told.contains("config_rejected") && told.contains("orders.json"), "{told}");
    std::fs::remove_file(&list).unwrap();
    assert!(!raw::reload(engine).unwrap().0);
    assert_eq!(addresses(engine), ["10.0.0.1:80", "10.0.0.7:80", "10.0.0.3:80"]);
    std::fs::write(&list, NACOS).unwrap();
    assert!(raw::reload(engine).unwrap().0);
    assert_eq!(addresses(engine), ["10.0.0.1:80", "10.0.0.2:80"]);
    raw::engine_free(engine).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
