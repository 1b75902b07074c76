//! Explanations, what is in force, and the whole load report.

use nexthop::raw::head_bits;
use nexthop::{Choice, Clock, Engine, Outcome, RequestHead, Text};
use serde_json::{Value, json};

const MESH: &str = "
clusters:
  web:
    hosts:
    - {address: 10.0.0.1:80, metadata: {version: '1'}}
    - {address: 10.0.0.2:80, metadata: {version: '2'}}
    - {address: 10.0.0.3:80, metadata: {version: '2'}}
    retry: {on: [5xx], times: 2, avoid_tried: true}
    limits: {connections: 7}
    timeout: 3s
    nexthop: {filters: [{match: {header: version, metadata: version}}]}
  spare: {hosts: [10.0.1.1:80]}
  chain: {composite: [web, spare]}
routes:
- {host: shop.example, path: /pay, cluster: web}
- {host: shop.example, path: /split, cluster: {web: 3, spare: 1}}
";

fn mesh(text: &str) -> Engine {
    Engine::builder().text(text).workers(1).seed(7).clock(Clock::Manual).build().unwrap()
}

fn explain(mesh: &Engine, head: &Value) -> Value {
    serde_json::from_str(&mesh.text(Text::Explain(&head.to_string())).unwrap()).unwrap()
}

fn left_out(why: &Value) -> Vec<String> {
    let hosts = why["hosts"]["candidates"].as_array().unwrap().iter();
    hosts.map(|host| host["left_out"].as_str().unwrap_or("-").to_owned()).collect()
}

#[test]
fn a_head_that_only_asks() {
    let mesh = mesh(MESH);
    let before = mesh.text(Text::Stats).unwrap();
    let head = json!({"authority": "shop.example", "path": "/pay/now", "headers": {"Version": "2"}});
    let why = explain(&mesh, &head);
    assert_eq!(why["refusal"], Value::Null);
    assert!(why["route"]["why"].as_str().unwrap().contains("path begins with \"/pay\""), "{why}");
    assert_eq!(why["clusters"][0]["cluster"], "web");
    let filter = json!({"stage": "version", "value": "2", "outcome": "matched", "left": 2});
    assert_eq!(why["hosts"]["filters"], json!([filter]));
    assert_eq!(left_out(&why), ["the filter version left it out", "-", "-"]);
    assert_eq!(why["limits"][0], json!({"name": "connections", "used": 0, "max": 7}));
    assert_eq!(why["times"]["timeout"], 3.0);
    assert_eq!((&why["on_failure"]["on"], &why["on_failure"]["left"]), (&json!(["5xx"]), &2.into()));
    assert!(why["text"].as_str().unwrap().contains("host       10.0.0.2:80"), "{why}");
    assert_eq!(mesh.text(Text::Stats).unwrap(), before, "nothing is counted");

    let split = explain(&mesh, &json!({"authority": "shop.example", "path": "/split"}));
    assert_eq!(
        split["route"]["weighted"],
        json!([{"cluster": "web", "weight": 3}, {"cluster": "spare", "weight": 1}])
    );
    let second = explain(&mesh, &json!({"cluster": "chain", "attempt": 2}));
    assert_eq!(second["clusters"][1]["cluster"], "spare", "{second}");
    let third = explain(&mesh, &json!({"cluster": "chain", "attempt": 3}));
    assert_eq!(third["refusal"], "no_healthy_upstream");
    let nowhere = explain(&mesh, &json!({"authority": "other.example"}));
    assert_eq!((&nowhere["refusal"], &nowhere["hosts"]), (&"no_route".into(), &Value::Null));

    for (head, sentence) in [
        ("[]", "a head is a JSON object"),
        ("{\"cluter\": \"web\"}", "a head has no field \"cluter\""),
        ("{\"cluster\": \"wbe\"}", "did you mean \"web\"?"),
        ("{\"timeout\": -1}", "not negative"),
        ("{\"headers\": {\"version\": 1}}", "header version is text"),
    ] {
        let error = mesh.text(Text::Explain(head)).unwrap_err().to_string();
        assert!(error.contains(sentence), "{head}: {error}");
    }
}

#[test]
fn health_and_priorities_speak_against_hosts() {
    let text = "
static_resources:
  clusters:
  - name: web
    load_assignment:
      cluster_name: web
      endpoints:
      - lb_endpoints:
        - {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}
        - {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}
        - {endpoint: {address: {socket_address: {address: 10.0.0.3, port_value: 80}}}, health_status: UNHEALTHY}
        - {endpoint: {address: {socket_address: {address: 10.0.0.4, port_value: 80}}}, health_status: DEGRADED}
      - priority: 1
        lb_endpoints:
        - {endpoint: {address: {socket_address: {address: 10.0.0.5, port_value: 80}}}}
";
    let why = explain(&mesh(text), &json!({"cluster": "web"}));
    let reasons = left_out(&why);
    assert_eq!(reasons[..2], ["-", "-"]);
    assert_eq!(reasons[2], "unhealthy: /failed_eds_health");
    assert!(reasons[3].starts_with("degraded") || reasons[3] == "-", "{reasons:?}");
    assert_eq!(why["hosts"]["priorities"].as_array().unwrap().len(), 2);
    assert_eq!(why["hosts"]["priorities"][0]["healthy"], 2);
}

/// Hosts that are healthy and passed over: while another can be chosen, or for good.
#[test]
fn what_answers_and_limits_speak_against() {
    let text = |block: &str, more: &str| {
        mesh(&format!(
            "clusters: {{web: {{hosts: [10.0.0.1:80, 10.0.0.2:80], policy: round_robin, {more} nexthop: {{{block}}}}}}}"
        ))
    };
    let answer = |mesh: &Engine, status: u16| {
        let head = RequestHead { target: mesh.resolve("web").unwrap(), ..RequestHead::default() };
        let mut call = mesh.request(&head, mesh.now());
        let Ok(Choice::Attempt(attempt)) = call.choose_host(mesh.now()) else { panic!("a host is there") };
        let address = attempt.host().address.to_string();
        attempt.complete(&Outcome::status(status), mesh.now()).unwrap();
        address
    };
    let why = |mesh: &Engine, address: &str| -> (Value, Value, Value) {
        let why = explain(mesh, &json!({"cluster": "web"}));
        let mut hosts = why["hosts"]["candidates"].as_array().unwrap().iter();
        let host = hosts.find(|host| host["address"] == address).unwrap();
        (host["left_out"].clone(), host["at_last"].clone(), why["refusal"].clone())
    };
    let cooling = text("cool_down: {default: 4s}", "");
    let first = answer(&cooling, 429);
    let words = "set aside for another 4.0 s: its answer asked for it";
    assert_eq!(why(&cooling, &first), (words.into(), false.into(), Value::Null));
    let second = answer(&cooling, 429);
    assert_eq!(why(&cooling, &second), (words.into(), false.into(), "cooling".into()));
    cooling.advance(std::time::Duration::from_secs(5)).unwrap();
    assert_eq!(why(&cooling, &first), (Value::Null, false.into(), Value::Null));

    let outlier = "outlier: {consecutive_5xx: 1, max_percent: 50, eject: 1s, interval: 1s}, panic: 0,";
    let half = text("half_open: {interval: 9s}", outlier);
    let first = answer(&half, 500);
    assert_eq!(why(&half, &first).0, "unhealthy: /failed_outlier_check");
    half.advance(std::time::Duration::from_secs(3)).unwrap();
    half.maintain(half.now());
    // The first probe is due at once; while it is under way, nobody else goes there.
    assert_eq!(why(&half, &first), (Value::Null, false.into(), Value::Null));
    let probe = (0..4).find(|_| answer(&half, 500) == first);
    assert!(probe.is_some(), "nobody probed");
    half.advance(std::time::Duration::from_secs(3)).unwrap();
    half.maintain(half.now());
    let words = "half open after an ejection: only probes go there";
    assert_eq!(why(&half, &first), (words.into(), true.into(), Value::Null));

    let full = text("prefer_below_limit: true", "limits: {connections: 1},");
    let head = RequestHead { target: full.resolve("web").unwrap(), ..RequestHead::default() };
    let mut call = full.request(&head, full.now());
    let Ok(Choice::Attempt(open)) = call.choose_host(full.now()) else { panic!("a host is there") };
    let words = "no place is free there: others come first";
    assert_eq!(why(&full, &open.host().address), (words.into(), true.into(), Value::Null));
    open.complete(&Outcome::status(200), full.now()).unwrap();
    let free = why(&full, "10.0.0.1:80");
    assert_eq!(free, (Value::Null, false.into(), Value::Null));
}

/// What explain says and what a stateless attempt with the same head gets.
fn both(mesh: &Engine, head: &Value) -> (Value, Result<String, (String, String)>) {
    let attempt = head["attempt"].as_u64().unwrap_or(1) as u32;
    let tried = head["tried"].as_str().unwrap_or("").to_owned();
    let target = mesh.resolve(head["cluster"].as_str().unwrap()).unwrap();
    let asked = RequestHead { target, number: attempt, tried: &tried, ..RequestHead::default() };
    let chosen = match mesh.pick_for(&asked, mesh.now()).unwrap() {
        Choice::Attempt(attempt) => Ok(attempt.host().address.clone()),
        Choice::Refused(why) => Err((why.kind.name().to_owned(), why.resource.name().to_owned())),
        Choice::Wait(wait) => panic!("{wait:?}"),
    };
    (explain(mesh, head), chosen)
}

#[test]
fn limits_that_refuse_are_the_refusal() {
    let limited = |limits: &str, more: &str| {
        mesh(&format!("clusters: {{web: {{hosts: [10.0.0.1:80], limits: {{{limits}}}, {more}}}}}"))
    };
    let refused = |mesh: &Engine, head: &Value, resource: &str| {
        let (why, chosen) = both(mesh, head);
        assert_eq!(chosen, Err(("overflow".to_owned(), resource.to_owned())), "{why}");
        assert_eq!((&why["refusal"], &why["resource"]), (&"overflow".into(), &resource.into()), "{why}");
        assert!(why["line"].as_str().unwrap().contains(&format!("overflow ({resource})")), "{why}");
        assert!(
            why["text"].as_str().unwrap().contains(&format!("refused    overflow ({resource})")),
            "{why}"
        );
    };
    let web = json!({"cluster": "web"});
    refused(&limited("requests: 0, connections: 0", ""), &web, "requests");
    let retry = "retry: {on: [5xx], times: 3}";
    let second = json!({"cluster": "web", "attempt": 2});
    refused(&limited("retries: 0", retry), &second, "retries");
    // No connection at all is no refusal: a pool without any gets one.
    let (why, chosen) = both(&limited("connections: 0", ""), &web);
    assert_eq!((&why["refusal"], chosen), (&Value::Null, Ok("10.0.0.1:80".to_owned())), "{why}");

    // Reached limits, while a request is under way.
    for (limits, resource) in [("requests: 1", "requests"), ("connections: 1, pending: 0", "pending")] {
        let full = limited(limits, "");
        let head = RequestHead { target: full.resolve("web").unwrap(), ..RequestHead::default() };
        let mut call = full.request(&head, full.now());
        let Ok(Choice::Attempt(open)) = call.choose_host(full.now()) else { panic!("a host is there") };
        refused(&full, &web, resource);
        open.complete(&Outcome::status(200), full.now()).unwrap();
        assert_eq!(explain(&full, &web)["refusal"], Value::Null, "{resource} is free again");
    }
}

#[test]
fn the_text_says_what_is_explained_and_who_decides() {
    let mesh = mesh(
        "clusters:\n  off: {hosts: [10.0.0.1:80]}\n  on: {hosts: [10.0.0.2:80, {address: 10.0.0.3:80, metadata: \
         {tag: x}}], policy: ring_hash, hash: [header: x-user], nexthop: {filters: [{match: {header: tag, metadata: \
         tag}, when_absent: require_absent}]}}\nroutes: [{path: /, cluster: {off: 0, on: 100}}]",
    );
    let why = explain(&mesh, &json!({"path": "/", "headers": {"x-user": "ann"}}));
    let text = why["text"].as_str().unwrap();
    for line in [
        "weight 0: off (a draw decides)\n",
        "weight 100: on (a draw decides; this one is explained)\n",
        "it decides among hosts that may be chosen\n",
        "filter     tag \"\": matched the hosts without a value, 1 left\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_named_cluster_has_what_its_route_says() {
    let mesh = mesh(
        "clusters: {a: {hosts: [10.0.0.1:80]}}\n\
         routes: [{path: /, cluster: a, timeout: 7s, retry: {on: [connect-failure], times: 4}}]",
    );
    let named = explain(&mesh, &json!({"cluster": "a"}));
    assert_eq!(
        (&named["times"]["timeout"], &named["on_failure"]["left"]),
        (&7.0.into(), &4.into()),
        "{named}"
    );
    assert_eq!(named["times"], explain(&mesh, &json!({"path": "/"}))["times"]);
    let head = RequestHead { target: mesh.resolve("a").unwrap(), ..RequestHead::default() };
    let mut call = mesh.request(&head, mesh.now());
    let Ok(Choice::Attempt(attempt)) = call.choose_host(mesh.now()) else { panic!("a host is there") };
    assert_eq!(attempt.plan().remaining, Some(std::time::Duration::from_secs(7)));
    attempt.complete(&Outcome::status(200), mesh.now()).unwrap();
}

#[test]
fn tried_hosts_are_left_out_as_choices_leave_them_out() {
    let text = |block: &str| {
        mesh(&format!("clusters: {{web: {{hosts: [10.0.0.1:80, 10.0.0.2:80], nexthop: {{{block}}}}}}}"))
    };
    for (block, words, at_last) in [
        ("exclude_tried: true", "this request tried it; taken again only when there is no other", true),
        ("filters: [{preset: spring-retry}]", "the filter avoid_previous left it out", false),
    ] {
        let mesh = text(block);
        for tried in ["10.0.0.1:80", "10.0.0.2:80"] {
            let head = json!({"cluster": "web", "attempt": 2, "tried": tried});
            for _ in 0..8 {
                let (why, chosen) = both(&mesh, &head);
                for host in why["hosts"]["candidates"].as_array().unwrap() {
                    let was = host["address"] == tried;
                    let left_out = if was { Value::from(words) } else { Value::Null };
                    assert_eq!(
                        (&host["left_out"], &host["at_last"]),
                        (&left_out, &(was && at_last).into()),
                        "{why}"
                    );
                    assert_eq!(
                        chosen.as_ref().is_ok_and(|chosen| host["address"] == **chosen),
                        !was,
                        "{why}"
                    );
                }
            }
        }
        // A first attempt leaves nobody out.
        let (why, _) = both(&mesh, &json!({"cluster": "web"}));
        assert_eq!(left_out(&why), ["-", "-"], "{block}");
    }
}

#[test]
fn a_request_that_wants_to_know_keeps_its_trail() {
    let mesh = mesh(MESH);
    let head = RequestHead {
        target: mesh.resolve("web").unwrap(),
        bits: head_bits::EXPLAIN,
        ..RequestHead::default()
    };
    let mut call = mesh.request(&head, mesh.now());
    let Ok(Choice::Attempt(first)) = call.choose_host(mesh.now()) else { panic!("a host is there") };
    let id = first.id();
    let address = first.host().address.clone();
    let told = |id| -> Value { serde_json::from_str(&mesh.text(Text::ExplainAttempt(id)).unwrap()).unwrap() };
    assert_eq!(told(id)["chosen"], *address);
    assert!(first.complete(&Outcome::status(503), mesh.now()).unwrap().action == nexthop::Action::Retry);
    mesh.advance(std::time::Duration::from_secs(1)).unwrap();
    let Ok(Choice::Attempt(second)) = call.choose_host(mesh.now()) else { panic!("a retry") };
    let why = told(second.id());
    assert_eq!((&why["attempt"], &why["chosen"]), (&2.into(), &json!(second.host().address)));
    assert_eq!(why["earlier"][0]["chosen"], *address);
    let tried =
        why["hosts"]["candidates"].as_array().unwrap().iter().find(|host| host["address"] == *address);
    assert!(tried.unwrap()["left_out"].as_str().unwrap().contains("tried"), "{why}");
    second.complete(&Outcome::status(200), mesh.now()).unwrap();

    // Without the wish there is one line.
    let plain = RequestHead { bits: 0, ..head };
    let mut call = mesh.request(&plain, mesh.now());
    let Ok(Choice::Attempt(attempt)) = call.choose_host(mesh.now()) else { panic!("a host is there") };
    let line = told(attempt.id());
    assert!(line["line"].as_str().unwrap().contains("attempt 1") && line.get("hosts").is_none(), "{line}");
}

fn row(told: &Value, field: &str) -> Value {
    let rows = told["values"].as_array().unwrap();
    rows.iter().find(|row| row["field"] == field).unwrap_or_else(|| panic!("no {field} in {told}")).clone()
}

#[test]
fn every_number_in_force_and_where_it_came_from() {
    let mesh = mesh(MESH);
    let told: Value = serde_json::from_str(&mesh.text(Text::Effective("web")).unwrap()).unwrap();
    let limit = row(&told, "circuit_breakers.default.max_connections");
    assert_eq!((&limit["value"], &limit["from"], &limit["line"]), (&7.into(), &"document".into(), &9.into()));
    assert_eq!(limit["path"], "clusters.web.limits.connections");
    let default = row(&told, "circuit_breakers.default.max_requests");
    assert_eq!(
        (&default["value"], &default["from"], &default["whose"]),
        (&1024.into(), &"default".into(), &"Envoy".into())
    );
    assert_eq!(row(&told, "route.timeout")["value"], 3.0);
    assert_eq!(row(&told, "retry.num_retries")["path"], "clusters.web.retry.times");
    let route: Value = serde_json::from_str(&mesh.text(Text::Effective("route:/pay")).unwrap_or_default())
        .unwrap_or_default();
    assert!(route.is_null() || route["kind"] == "route");
    assert!(mesh.text(Text::Effective("wbe")).unwrap_err().to_string().contains("did you mean \"web\"?"));

    let envoy = "
static_resources:
  clusters:
  - name: web
    connect_timeout: 1s
    common_lb_config: {healthy_panic_threshold: {value: 10}}
    circuit_breakers:
      thresholds:
      - {priority: HIGH, max_requests: 3}
      - {max_requests: 5}
    outlier_detection: {interval: 7s}
layered_runtime: {layers: [{name: s, static_layer: {upstream.healthy_panic_threshold: 20}}]}
";
    let told: Value = serde_json::from_str(&self::mesh(envoy).text(Text::Effective("web")).unwrap()).unwrap();
    assert_eq!(row(&told, "connect_timeout")["value"], 1.0);
    for (name, value, line) in [("high", 3, 9), ("default", 5, 10)] {
        let limit = row(&told, &format!("circuit_breakers.{name}.max_requests"));
        assert_eq!((&limit["value"], &limit["line"]), (&value.into(), &line.into()), "{limit}");
    }
    let panic = row(&told, "panic_threshold");
    assert_eq!((&panic["value"], &panic["from"]), (&json!(20.0), &"runtime".into()));
    assert_eq!(row(&told, "outlier_detection.interval")["line"], 11);
    assert_eq!(row(&told, "outlier_detection.base_ejection_time")["from"], "default");
}

#[test]
fn the_report_field_by_field() {
    let mesh = mesh(MESH);
    let brief: Value = serde_json::from_str(&mesh.text(Text::LoadReport).unwrap()).unwrap();
    let whole: Value = serde_json::from_str(&mesh.text(Text::LoadReportWhole).unwrap()).unwrap();
    let what = |report: &Value, path: &str| {
        let entries = report["entries"].as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["path"] == path).unwrap_or_else(|| panic!("no {path}"));
        (entry["what"].as_str().unwrap().to_owned(), entry["text"].as_str().unwrap().to_owned())
    };
    assert_eq!(what(&whole, "clusters.web.timeout"), ("used".into(), "used: 3s".into()));
    assert_eq!(what(&whole, "clusters.web.panic").0, "default");
    assert!(what(&whole, "clusters.web.nexthop.policy").1.contains("nexthop's default"));
    assert!(brief["entries"].as_array().unwrap().iter().all(|entry| entry["what"] != "default"));
}
