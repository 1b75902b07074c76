//! Hosts that requests name, and weights that hosts report, through the Rust face on a clock moved by hand.

use nexthop::raw::{Document, document_kind};
use nexthop::{Attempt, Choice, Clock, Engine, HeaderBlock, Outcome, Request, RequestHead, Stat};
use std::collections::BTreeMap;
use std::time::Duration;

fn mesh(text: &str) -> Engine {
    let built = Engine::builder().text(text).workers(1).seed(7).clock(Clock::Manual).build();
    built.unwrap_or_else(|error| panic!("{error}"))
}

fn block(mesh: &Engine, set: Option<u32>, headers: &[(&str, &str)]) -> HeaderBlock {
    let values = |name: &str, take: &mut dyn FnMut(&[u8])| {
        headers.iter().filter(|(key, _)| *key == name).for_each(|(_, value)| take(value.as_bytes()));
    };
    match set {
        None => HeaderBlock::of_request(mesh, values),
        Some(set) => HeaderBlock::over(mesh, set, values),
    }
}

fn attempt<'e>(call: &mut Request<&'e Engine>, mesh: &Engine) -> Attempt<&'e Engine> {
    match call.choose_host(mesh.now()) {
        Ok(Choice::Attempt(attempt)) => attempt,
        other => panic!("expected an attempt, got {other:?}"),
    }
}

/// Hosts of a typed policy, on route `/`.
fn document(policy: &str, filters: &str, hosts: &str) -> String {
    format!(
        r#"
static_resources:
  listeners:
  - name: in
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: in
          http_filters: [{filters}]
          route_config:
            name: r
            virtual_hosts:
            - name: v
              domains: ["*"]
              routes:
              - match: {{prefix: /none}}
                route: {{cluster: c}}
                typed_per_filter_config: {{envoy.filters.http.stateful_session: {{"@type": type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute, disabled: true}}}}
              - match: {{prefix: /}}
                route: {{cluster: c, retry_policy: {{retry_on: 5xx, num_retries: 2, retry_back_off: {{base_interval: 0.001s}}}}}}
  clusters:
  - name: c
    {policy}
    load_assignment: {{cluster_name: c, endpoints: [{{lb_endpoints: [{hosts}]}}]}}
"#
    )
}

fn hosts(count: u32) -> String {
    (0..count)
        .map(|at| {
            format!(
                "{{endpoint: {{address: {{socket_address: {{address: 10.0.0.{at}, port_value: 80}}}}}}}}, "
            )
        })
        .collect()
}

const SESSION: &str = "type.googleapis.com/envoy.extensions.http.stateful_session";

fn session(state: &str) -> String {
    format!(
        "{{name: envoy.filters.http.stateful_session, typed_config: {{\"@type\": \
         type.googleapis.com/envoy.extensions.filters.http.stateful_session.v3.StatefulSession, \
         session_state: {{name: s, typed_config: {{{state}}}}}}}}}"
    )
}

#[test]
fn a_session_in_a_cookie() {
    let state = format!(
        "\"@type\": {SESSION}.cookie.v3.CookieBasedSessionState, cookie: {{name: at, ttl: 60s, path: /shop}}"
    );
    let mesh = mesh(&document("lb_policy: RANDOM", &session(&state), &hosts(5)));
    let visit = |path: &str, cookie: Option<&str>| {
        let headers: Vec<(&str, &str)> = cookie.iter().map(|value| ("cookie", *value)).collect();
        let block = block(&mesh, None, &headers);
        let head = RequestHead {
            path,
            authority: "x",
            want: block.set(),
            headers: block.bytes(),
            ..RequestHead::default()
        };
        let mut call = mesh.request(&head, mesh.now());
        let attempt = attempt(&mut call, &mesh);
        let host = attempt.host().address.clone();
        attempt.complete(&Outcome::status(200), mesh.now()).unwrap();
        let told = call.response_headers().into_iter().find(|(name, _)| name == "set-cookie");
        (host, told.map(|(_, value)| value))
    };
    let (first, told) = visit("/shop/a", None);
    let told = told.expect("a new session is told");
    assert!(told.starts_with("at=\"") && told.ends_with("; Max-Age=60; Path=/shop; HttpOnly"), "{told}");
    let cookie = told.split(';').next().unwrap().to_owned();
    for _ in 0..10 {
        assert_eq!(visit("/shop", Some(&cookie)), (first.clone(), None));
    }
    // Elsewhere, and where the filter is off, there is no session.
    assert!((0..30).any(|_| visit("/shopping", Some(&cookie)).0 != first));
    assert!((0..30).all(|_| visit("/none", Some(&cookie)).1.is_none()));
    // The cookie says its end.
    mesh.advance(Duration::from_secs(61)).unwrap();
    assert!((0..30).any(|_| visit("/shop", Some(&cookie)).0 != first));
}

#[test]
fn a_list_of_hosts_for_each_attempt() {
    let policy = "load_balancing_policy: {policies: [{typed_extension_config: {name: p, typed_config: {\
        \"@type\": type.googleapis.com/envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost, \
        override_host_sources: [{header: x-to}, {metadata: {key: app, path: [{key: hosts}]}}], \
        fallback_policy: {policies: [{typed_extension_config: {name: q, typed_config: {\
        \"@type\": type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin}}}]}}}}]}";
    let mesh = mesh(&document(policy, "", &hosts(5)));
    let block = block(&mesh, None, &[("x-to", "10.0.0.4:80, 10.9.9.9:80")]);
    let head = RequestHead {
        path: "/",
        authority: "x",
        want: block.set(),
        headers: block.bytes(),
        filter_metadata: r#"{"app": {"hosts": "10.0.0.2:80"}}"#,
        ..RequestHead::default()
    };
    let mut call = mesh.request(&head, mesh.now());
    let mut met = Vec::new();
    for _ in 0..3 {
        let attempt = match call.choose_host(mesh.now()).unwrap() {
            Choice::Attempt(attempt) => attempt,
            Choice::Wait(wait) => {
                mesh.advance(wait.after.unwrap()).unwrap();
                attempt(&mut call, &mesh)
            }
            other => panic!("{other:?}"),
        };
        met.push(attempt.host().address.clone());
        attempt.complete(&Outcome::status(503), mesh.now()).unwrap();
    }
    assert_eq!(met[..2], ["10.0.0.4:80", "10.0.0.2:80"]);
    let bad = RequestHead { filter_metadata: "[1]", ..head };
    let mut refused = mesh.request(&bad, mesh.now());
    assert!(refused.choose_host(mesh.now()).is_err());
}

/// Shares of 1,000 requests, each answered at once.
fn shares(mesh: &Engine) -> BTreeMap<String, u32> {
    let mut shares = BTreeMap::new();
    for _ in 0..1000 {
        let head = RequestHead { path: "/", authority: "x", ..RequestHead::default() };
        let mut call = mesh.request(&head, mesh.now());
        let attempt = attempt(&mut call, mesh);
        *shares.entry(attempt.host().address.clone()).or_default() += 1;
        attempt.complete(&Outcome::status(200), mesh.now()).unwrap();
    }
    shares
}

/// One answer of each host, with a report of its own.
fn report(mesh: &Engine, trailers: bool, of: impl Fn(&str) -> String) {
    for _ in 0..200 {
        let head = RequestHead { path: "/", authority: "x", ..RequestHead::default() };
        let mut call = mesh.request(&head, mesh.now());
        let mut attempt = attempt(&mut call, mesh);
        let value = of(&attempt.host().address);
        let headers = block(mesh, Some(attempt.plan().want_ok), &[("endpoint-load-metrics", &value)]);
        let told = Outcome { headers: headers.bytes(), ..Outcome::status(200) };
        if trailers {
            attempt.on_headers(&Outcome::status(200), mesh.now()).unwrap();
            attempt.end(&told, mesh.now()).unwrap();
        } else {
            attempt.complete(&told, mesh.now()).unwrap();
        }
    }
}

fn typed(x: &str, message: &str, fields: &str) -> String {
    format!(
        "{{policies: [{{typed_extension_config: {{name: p, typed_config: {{\"@type\": \
         type.googleapis.com/envoy.extensions.load_balancing_policies.{x}.v3.{message}, {fields}}}}}}}]}}"
    )
}

fn text_document(text: &str) -> Document<'_> {
    Document { kind: document_kind::TEXT, dialect: "", name: "", text: text.as_bytes() }
}

#[test]
fn weights_that_hosts_report() {
    for trailers in [false, true] {
        let policy =
            typed("client_side_weighted_round_robin", "ClientSideWeightedRoundRobin", "blackout_period: 2s");
        let text = document(&format!("load_balancing_policy: {policy}"), "", &hosts(2));
        let mesh = mesh(&text);
        let busy = |address: &str| if address == "10.0.0.0:80" { "0.2" } else { "0.8" };
        report(&mesh, trailers, |address| {
            format!("TEXT rps_fractional=100,cpu_utilization={}", busy(address))
        });
        // Not before the blackout is over, and only in a period.
        assert_eq!(shares(&mesh)["10.0.0.0:80"], 500);
        mesh.advance(Duration::from_secs(2)).unwrap();
        report(&mesh, trailers, |address| {
            format!("JSON {{\"rps_fractional\": 100, \"cpu_utilization\": {}}}", busy(address))
        });
        mesh.advance(Duration::from_secs(1)).unwrap();
        let share = shares(&mesh)["10.0.0.0:80"];
        assert!(share.abs_diff(800) <= 1, "{share}");
        // Under another policy the configured weights are back, and later the reported ones.
        let plain = document("lb_policy: ROUND_ROBIN", "", &hosts(2));
        mesh.update(&[text_document(&plain)]).unwrap();
        assert_eq!(shares(&mesh)["10.0.0.0:80"], 500);
        mesh.update(&[text_document(&text)]).unwrap();
        let share = shares(&mesh)["10.0.0.0:80"];
        assert!(share.abs_diff(800) <= 1, "{share}");
        // Without news the weights end.
        mesh.advance(Duration::from_secs(200)).unwrap();
        let share = shares(&mesh)["10.0.0.0:80"];
        assert!(share.abs_diff(500) <= 1, "{share}");
    }
}

#[test]
fn localities_by_their_load() {
    let child = typed("round_robin", "RoundRobin", "");
    let policy = typed(
        "load_aware_locality",
        "LoadAwareLocality",
        &format!("remote_probe_fraction: 0.1, endpoint_picking_policy: {child}"),
    );
    let group = |zone: &str, at: u32| {
        format!(
            "{{locality: {{zone: {zone}}}, lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 10.0.0.{at}, port_value: 80}}}}}}}}]}}"
        )
    };
    let text = document(&format!("load_balancing_policy: {policy}"), "", "").replace(
        "endpoints: [{lb_endpoints: []}]",
        &format!("endpoints: [{}, {}]", group("a", 1), group("b", 2)),
    );
    let mesh = mesh(&format!("node: {{id: n, cluster: n, locality: {{zone: b}}}}\n{text}"));
    let own = shares(&mesh)["10.0.0.2:80"];
    assert!((860..940).contains(&own), "{own}");
    report(&mesh, false, |address| {
        format!("TEXT application_utilization={}", if address == "10.0.0.2:80" { "0.9" } else { "0.1" })
    });
    mesh.advance(Duration::from_secs(1)).unwrap();
    let own = shares(&mesh)["10.0.0.2:80"];
    assert!((60..150).contains(&own), "{own}");
    let mut seen = BTreeMap::new();
    mesh.stats(&mut |name, value| {
        let (Stat::Counter(value) | Stat::Gauge(value)) = value;
        if let Some(leaf) = name.strip_prefix("cluster.c.load_aware_locality.") {
            seen.insert(leaf.to_owned(), value);
        }
    });
    assert_eq!(seen["recompute_total"], 2);
    assert_eq!(seen["spill_active_total"], 1);
}

#[test]
fn clusters_of_clusters_have_no_host_to_ask_for() {
    let mesh = mesh(
        "clusters: {a: {hosts: [10.0.0.1:80, 10.0.0.2:80]}, b: {hosts: [10.0.0.3:80]}, chain: {composite: [a, b]}, \
         pool: {aggregate: [a, b]}}",
    );
    for cluster in ["a", "chain", "pool"] {
        let met = |wanted: &str| -> Vec<String> {
            let target = mesh.resolve(cluster).unwrap();
            let head = RequestHead { target, override_host: wanted, ..RequestHead::default() };
            let choose = |_| {
                let mut call = mesh.request(&head, mesh.now());
                match call.choose_host(mesh.now()).unwrap() {
                    Choice::Attempt(attempt) => attempt.host().address.clone(),
                    Choice::Refused(refused) => {
                        format!("{} {}", refused.status, call.local_reply().unwrap().details)
                    }
                    Choice::Wait(wait) => panic!("{wait:?}"),
                }
            };
            let mut met: Vec<String> = (0..6).map(choose).collect();
            met.sort();
            met.dedup();
            met
        };
        // As recorded of Envoy: such a cluster looks among its own hosts, of which there are none.
        let (asked, strict) = match cluster {
            "a" => (vec!["10.0.0.2:80"], vec!["10.0.0.2:80"]),
            _ => (vec!["10.0.0.1:80", "10.0.0.2:80"], vec!["503 no_healthy_upstream"]),
        };
        assert_eq!(
            (met("10.0.0.2:80"), met("!10.0.0.2:80")),
            (to_texts(&asked), to_texts(&strict)),
            "{cluster}"
        );
    }
}

fn to_texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}
