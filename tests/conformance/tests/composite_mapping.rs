//! `composite/mapping`: attempt number to sub-cluster, over stateless picks.

use nexthop::raw;

/// An engine with a composite of so many one-host clusters; the host of sub-cluster i has port 1000 + i.
fn engine(clusters: i64) -> (u64, u32) {
    let names: Vec<String> = (0..clusters).map(|i| format!("{{name: s{i}}}")).collect();
    let mut text = format!(
        "static_resources:\n  clusters:\n  - name: x\n    connect_timeout: 1s\n    lb_policy: CLUSTER_PROVIDED\n    \
         cluster_type:\n      name: envoy.clusters.composite\n      typed_config:\n        \"@type\": \
         type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig\n        clusters: [{}]\n",
        names.join(", ")
    );
    for i in 0..clusters {
        text += &format!(
            "  - name: s{i}\n    connect_timeout: 1s\n    load_assignment: {{cluster_name: s{i}, endpoints: \
             [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {}}}}}}}}}]}}]}}\n",
            1000 + i
        );
    }
    let document = raw::Document { kind: 0, dialect: "", name: "", text: text.as_bytes() };
    let options = raw::Options { workers: 1, seed: 1, clock: raw::clock::MANUAL, ..raw::Options::default() };
    let engine = raw::engine_new(&options, &[document]).expect("a document");
    (engine, raw::resolve(engine, "x").expect("the composite"))
}

fn pick(engine: u64, target: u32, number: u32) -> raw::Decision {
    let mut decision = raw::Decision::default();
    raw::with_local(|local| raw::pick(local, engine, target, number, None, raw::NOW, &mut decision))
        .expect("a pick");
    decision
}

#[test]
fn mapping() {
    for case in nexthop_vectors::cases("composite/mapping.json", 9) {
        let (given, expect) = (&case["given"], &case["expect"]);
        let Some(number) = given["attempt"].as_i64() else {
            // Who knows no attempt number asks with none; who knows it, with it.
            let known = given.as_str().expect("a sentence").ends_with("attempt 2");
            let (engine, target) = engine(2);
            let decision = pick(engine, target, if known { 2 } else { 0 });
            let seen =
                if decision.resource == raw::resource::NO_ATTEMPT_NUMBER { 0 } else { decision.number };
            assert_eq!(i64::from(seen), expect["attempt"].as_i64().expect("a number"), "{case}");
            raw::engine_free(engine).expect("an engine");
            continue;
        };
        let (engine, target) = engine(given["clusters"].as_i64().expect("a number"));
        let decision = pick(engine, target, u32::try_from(number).expect("small"));
        let found = (decision.kind == raw::kind::GO).then(|| {
            i64::from(raw::host(engine, decision.host, decision.host_version).expect("a host").1.port) - 1000
        });
        assert_eq!(found, expect["index"].as_i64(), "{case}");
        raw::engine_free(engine).expect("an engine");
    }
}
