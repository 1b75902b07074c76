//! What is printed keeps to `docs/schemas`.

use nexthop::{Choice, Clock, Engine, Outcome, Text};
use serde_json::{Value, json};

/// The part of JSON Schema that our schemas use. A keyword that is not known here is a mistake in the schema.
fn check(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    if value.is_null() && types.contains(&"null") {
        return Ok(());
    }
    for (keyword, wanted) in schema.as_object().ok_or("a schema is an object")? {
        let ok = match keyword.as_str() {
            "$schema" | "title" | "description" => true,
            "type" => types.iter().any(|name| match *name {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_u64() || value.is_i64(),
                "number" => value.is_number(),
                _ => false,
            }),
            "minimum" => value.as_f64() >= wanted.as_f64(),
            "enum" => wanted.as_array().is_some_and(|all| all.contains(value)),
            "required" => {
                let names = wanted.as_array().ok_or("required is a list")?;
                names.iter().filter_map(Value::as_str).all(|name| value.get(name).is_some())
            }
            "properties" => {
                for (name, schema) in wanted.as_object().ok_or("properties is an object")? {
                    if let Some(value) = value.get(name) {
                        check(schema, value, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if schema["properties"].get(name).is_none() {
                        if *wanted == json!(false) {
                            return Err(format!("{at}.{name} is not in the schema"));
                        }
                        check(wanted, value, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "items" => {
                for (i, value) in value.as_array().into_iter().flatten().enumerate() {
                    check(wanted, value, &format!("{at}[{i}]"))?;
                }
                true
            }
            other => return Err(format!("the keyword {other} is not known")),
        };
        if !ok {
            return Err(format!("{at}: {value} breaks {keyword} {wanted}"));
        }
    }
    Ok(())
}

fn keeps_to(text: &str, schema: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas");
    let schema = std::fs::read_to_string(format!("{folder}/{schema}.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let value: Value = serde_json::from_str(text).unwrap();
    check(&schema, &value, "$").unwrap_or_else(|error| panic!("{error}"));
    value
}

const ENVOY: &str = r#"
static_resources:
  clusters:
    - name: web
      connect_timeout: 1s
      upstream_connection_options: { tcp_keepalive: {} }
      outlier_detection: {}
      load_assignment:
        cluster_name: web
        endpoints:
          - locality: { region: r, zone: z }
            lb_endpoints:
              - endpoint: { address: { socket_address: { address: 10.0.0.1, port_value: 80 } } }
                metadata: { filter_metadata: { envoy.lb: { version: 1, canary: true } } }
              - endpoint: { address: { socket_address: { address: 10.0.0.2, port_value: 80 } } }
                health_status: DEGRADED
"#;

#[test]
fn texts_keep_to_their_schemas() {
    let mesh = Engine::builder().text(ENVOY).workers(1).seed(7).clock(Clock::Manual).build().unwrap();
    let web = mesh.resolve("web").unwrap();
    let Ok(Choice::Attempt(attempt)) = mesh.pick(web, 1, None, mesh.now()) else { panic!("a host is there") };

    let line = nexthop::raw::text(mesh.id(), 9, &attempt.id().to_string()).unwrap();
    assert!(keeps_to(&line, "explain")["line"].as_str().unwrap().starts_with("cluster web: attempt 1"));
    attempt.complete(&Outcome::status(503), mesh.now()).unwrap();
    let why = keeps_to(&mesh.text(Text::Explain("{\"cluster\": \"web\"}")).unwrap(), "explain");
    assert_eq!(why["clusters"][0]["cluster"], "web");
    assert_eq!(keeps_to(&mesh.text(Text::Effective("web")).unwrap(), "effective")["kind"], "cluster");
    keeps_to(&mesh.text(Text::LoadReportWhole).unwrap(), "load_report");

    let stats = keeps_to(&mesh.text(Text::Stats).unwrap(), "stats");
    assert_eq!(stats["cluster.web.upstream_rq_503"], 1);

    let metrics = keeps_to(&mesh.text(Text::Metrics).unwrap(), "metrics");
    let of = |name: &str| {
        let all = metrics.as_array().unwrap();
        all.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    };
    let answers = of("cluster.upstream_rq");
    assert_eq!((&answers["type"], &answers["value"]), (&json!("counter"), &json!(1)));
    assert_eq!(answers["attributes"], json!({"envoy.response_code": "503", "envoy.cluster_name": "web"}));
    assert_eq!(of("cluster.membership_total")["type"], "gauge");
    let mut seen = 0;
    mesh.metrics(&mut |metric| seen += usize::from(metric.counter || metric.name != "cluster.upstream_rq"));
    assert_eq!(seen, metrics.as_array().unwrap().len());

    let prometheus = mesh.text(Text::Prometheus).unwrap();
    exposition(&prometheus);
    let line = "envoy_cluster_upstream_rq{envoy_response_code=\"503\",envoy_cluster_name=\"web\"} 1";
    assert!(prometheus.lines().any(|other| other == line), "{prometheus}");

    let report = keeps_to(&mesh.text(Text::LoadReport).unwrap(), "load_report");
    assert!(!report["entries"].as_array().unwrap().is_empty(), "keep-alive means nothing without a socket");

    let lint = keeps_to(&mesh.text(Text::LintJson).unwrap(), "lint");
    assert_eq!(lint["findings"][0]["code"], "NX-001", "two hosts and ten percent: {lint}");
    assert!(
        mesh.text(Text::Lint)
            .unwrap()
            .contains("warning NX-001: static_resources.clusters[0].outlier_detection")
    );
    let sarif: Value = serde_json::from_str(&mesh.text(Text::LintSarif).unwrap()).unwrap();
    assert_eq!(
        (&sarif["version"], &sarif["runs"][0]["results"][0]["ruleId"]),
        (&json!("2.1.0"), &json!("NX-001"))
    );

    let hosts = keeps_to(&mesh.text(Text::Hosts("web")).unwrap(), "hosts");
    assert_eq!(hosts[0]["metadata"]["envoy.lb"]["version"], 1);
    assert_eq!(hosts[1]["health"], "degraded");
    let one = mesh.text(Text::Host("10.0.0.2:80")).unwrap();
    keeps_to(&format!("[{one}]"), "hosts");
}

/// Prometheus' text format: each family's type once and before its samples, names and labels of legal letters, no
/// sample twice.
fn exposition(text: &str) {
    let name = |text: &str| {
        let first = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        first && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut families = std::collections::BTreeSet::new();
    let mut samples = std::collections::BTreeSet::new();
    let mut family = String::new();
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (of, kind) = declared.split_once(' ').unwrap();
            assert!(name(of) && ["counter", "gauge"].contains(&kind), "{line}");
            assert!(families.insert(of.to_owned()), "{of} comes twice");
            family = of.to_owned();
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        value.parse::<u64>().unwrap();
        assert!(samples.insert(series.to_owned()), "{series} comes twice");
        let of = series.split('{').next().unwrap();
        assert_eq!(of, family, "{line}");
        if let Some((_, labels)) = series.split_once('{') {
            for label in labels.strip_suffix('}').unwrap().split("\",") {
                let (label, value) = label.split_once("=\"").unwrap();
                assert!(name(label) && !value.trim_end_matches('"').contains('"'), "{line}");
            }
        }
    }
    assert!(text.ends_with('\n') && !samples.is_empty());
}

#[test]
fn the_check_itself_finds_faults() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "required": ["a"],
        "additionalProperties": false});
    assert!(check(&schema, &json!({"a": 1}), "$").is_ok());
    for wrong in [json!([]), json!({}), json!({"a": 0}), json!({"a": "1"}), json!({"a": 1, "b": 2})] {
        assert!(check(&schema, &wrong, "$").is_err(), "{wrong}");
    }
}
