//! Routes that choose among clusters, by groups and by weights, and routes that send the client elsewhere: what a real
//! Envoy 1.40 did with the same documents.

use nexthop::{Choice, Clock, Engine, HeaderBlock, Outcome, RequestHead, Text};
use serde_json::{Value, json};

fn mesh(text: &str) -> Engine {
    let built = Engine::builder().text(text).workers(1).seed(7).clock(Clock::Manual).build();
    built.unwrap_or_else(|error| panic!("{error}"))
}

/// Clusters c1 to c4 of one host each (`10.0.0.N:80`), and routes; clusters need not exist.
fn table(routes: &str) -> String {
    let cluster = |n: u32| {
        format!(
            "- {{name: c{n}, load_assignment: {{cluster_name: c{n}, endpoints: [{{lb_endpoints: [{{endpoint: {{address: \
             {{socket_address: {{address: 10.0.0.{n}, port_value: 80}}}}}}}}]}}]}}}}\n"
        )
    };
    let clusters: String = (1..=4).map(cluster).collect();
    format!(
        "{clusters}- {{validate_clusters: false, virtual_hosts: [{{name: v, domains: ['*'], routes: [{routes}]}}]}}"
    )
}

fn groups(prefix: &str, groups: &str, more: &str, route: &str) -> String {
    format!(
        "{{match: {{prefix: {prefix}}}, route: {{inline_cluster_specifier_plugin: {{extension: {{name: p, typed_config: \
         {{'@type': type.googleapis.com/envoy.extensions.router.cluster_specifiers.priority_group.v3.PriorityGroupClusterSpecifier, \
         priority_groups: [{groups}]{more}}}}}}}, {route}}}}}, "
    )
}

const AGAIN: &str = "retry_policy: {retry_on: 5xx, num_retries: 4, refresh_cluster_on_retry: true, \
    retry_back_off: {base_interval: 0.001s}}";
const TWO: &str = "{name: near, clusters: [{cluster_name: c1, weight: 1}, {cluster_name: c2, weight: 3}]}, \
    {name: far, clusters: [{cluster_name: c3, weight: 2}]}";

/// Hosts of the attempts, each of which fails, and the status that ended it.
fn tries(mesh: &Engine, head: &RequestHead<'_>, headers: &[(&str, &str)]) -> (String, u16) {
    let block = HeaderBlock::of_request(mesh, |name, take: &mut dyn FnMut(&[u8])| {
        headers.iter().filter(|(key, _)| *key == name).for_each(|(_, value)| take(value.as_bytes()));
    });
    let head = RequestHead { want: block.set(), headers: block.bytes(), ..*head };
    let mut call = mesh.request(&head, mesh.now());
    let mut hosts = String::new();
    loop {
        match call.choose_host(mesh.now()).unwrap() {
            Choice::Attempt(attempt) => {
                let address = &attempt.host().address;
                hosts.push_str(&address["10.0.0.".len()..address.len() - 3]);
                let verdict = attempt.complete(&Outcome::status(503), mesh.now()).unwrap();
                if !verdict.retry() {
                    return (hosts, verdict.status);
                }
            }
            Choice::Wait(wait) => mesh.advance(wait.after.unwrap()).unwrap(),
            Choice::Refused(refused) => return (hosts, refused.status),
        }
    }
}

fn at(path: &str) -> RequestHead<'_> {
    RequestHead { path, authority: "x", ..RequestHead::default() }
}

#[test]
fn an_attempt_a_group() {
    let by_header = ", header_name: X-Rand";
    let keep = AGAIN.replace("refresh_cluster_on_retry: true", "refresh_cluster_on_retry: false");
    let hedge = format!("{AGAIN}, hedge_policy: {{hedge_on_per_try_timeout: true}}");
    let mesh = mesh(&table(
        &[
            groups("/again", TWO, by_header, AGAIN),
            groups("/keep", TWO, by_header, &keep),
            groups("/hedge", TWO, by_header, &hedge),
        ]
        .concat(),
    ));
    let with = |path, word| tries(&mesh, &at(path), &[("x-rand", word)]).0;
    for (word, first) in [("0", '1'), ("1", '2'), ("3", '2'), ("4", '1'), (" 7", '2'), ("+4", '1')] {
        assert_eq!(with("/again", word), format!("{first}3333"), "{word:?}");
        // Without the flag, and with hedging, every attempt stays.
        assert_eq!(with("/keep", word), first.to_string().repeat(5), "{word:?}");
        assert_eq!(with("/hedge", word), first.to_string().repeat(5), "{word:?}");
    }
    // What is no number, or comes twice, is drawn: both clusters have their share.
    for words in [&["-1"][..], &["abc"], &["18446744073709551616"], &["1.0"], &["0", "0"], &[]] {
        let headers: Vec<_> = words.iter().map(|word| ("x-rand", *word)).collect();
        let firsts: String = (0..40).map(|_| tries(&mesh, &at("/again"), &headers).0.remove(0)).collect();
        assert!(firsts.contains('1') && firsts.contains('2'), "{words:?}: {firsts}");
    }
}

#[test]
fn a_hash_chooses_without_making_cookies() {
    let by_hash = ", use_hash_policy: true";
    let header = format!("{AGAIN}, hash_policy: [{{header: {{header_name: x-h}}}}]");
    let cookie = format!("{AGAIN}, hash_policy: [{{cookie: {{name: ck, ttl: 10s}}}}]");
    let even = TWO.replace("weight: 3", "weight: 1");
    let mesh = mesh(&table(
        &[groups("/hash", &even, by_hash, &header), groups("/cookie", &even, by_hash, &cookie)].concat(),
    ));
    // As recorded of Envoy: XXH64 of the value, modulo the weights.
    for (value, first) in [("a", '2'), ("b", '2'), ("c", '2'), ("d", '1'), ("e", '1'), ("f", '2')] {
        assert_eq!(tries(&mesh, &at("/hash"), &[("x-h", value)]).0, format!("{first}3333"), "{value}");
    }
    assert_eq!(tries(&mesh, &at("/cookie"), &[("cookie", "ck=abc")]).0, "23333");
    let mut call = mesh.request(&at("/cookie"), mesh.now());
    assert!(matches!(call.choose_host(mesh.now()), Ok(Choice::Attempt(_))));
    assert_eq!(call.response_headers(), []);
}

#[test]
fn groups_that_a_request_names() {
    let more = ", header_name: x-rand, override_metadata_namespace: ns";
    let mesh = mesh(&table(&groups("/", TWO, more, AGAIN)));
    let with = |metadata: &str| {
        let head = RequestHead { filter_metadata: metadata, ..at("/") };
        tries(&mesh, &head, &[("x-rand", "0")])
    };
    assert_eq!(with("").0, "13333");
    let named = |list: &str| with(&format!("{{\"ns\": {{\"priority_groups\": {list}}}}}"));
    let four = r#"{"name": "x", "clusters": [{"cluster_name": "c4", "weight": 2}]}"#;
    // Attempts past the end stay with the last one.
    assert_eq!(named(&format!("[{four}]")).0, "44444");
    assert_eq!(
        named(&format!(r#"[{{"name": "far"}}, {four}, {{"name": "near", "clusters": []}}]"#)).0,
        "34111"
    );
    // What cannot be read, and an unknown name, leave it to the route.
    for odd in [
        r#"{"name": "nope"}"#,
        r#"{"name": ""}"#,
        r#"{"clusters": [{"cluster_name": "c4", "weight": 1}]}"#,
        r#"{"name": "x", "clusters": [{"cluster_name": "c4", "weight": 0.5}]}"#,
        r#"{"name": "x", "clusters": [{"cluster_name": "c4", "weight": 4294967296}]}"#,
        r#"{"name": "x", "clusters": [{"cluster_name": "c4", "weight": "1"}]}"#,
        r#"{"name": "x", "clusters": [{"cluster_name": "", "weight": 1}]}"#,
        r#"{"name": "x", "clusters": {}}"#,
        "7",
    ] {
        assert_eq!(named(&format!("[{odd}, {four}]")).0, "14444", "{odd}");
    }
    for odd in [r#"{"ns": {"priority_groups": {}}}"#, r#"{"ns": 1}"#, r#"{"other": {}}"#] {
        assert_eq!(with(odd).0, "13333", "{odd}");
    }
    let gone = r#"{"name": "z", "clusters": [{"cluster_name": "gone", "weight": 1}]}"#;
    assert_eq!(named(&format!("[{four}, {gone}]")), ("4".into(), 503));
    assert_eq!(named(&format!("[{gone}]")), (String::new(), 503));
}

#[test]
fn a_cluster_that_does_not_exist() {
    let there = "{name: a, clusters: [{cluster_name: c1, weight: 1}]}";
    let gone = "{name: b, clusters: [{cluster_name: gone, weight: 1}]}";
    let status = "cluster_not_found_response_code: NOT_FOUND";
    let mesh = mesh(&table(
        &[
            groups("/second", &format!("{there}, {gone}"), "", &format!("{AGAIN}, {status}")),
            groups("/first", &format!("{gone}, {there}"), "", &format!("{AGAIN}, {status}")),
            format!("{{match: {{prefix: /plain}}, route: {{cluster: gone, {status}}}}}, "),
            "{match: {prefix: /weighted}, route: {weighted_clusters: {clusters: [{name: gone, weight: 1}]}, \
             cluster_not_found_response_code: INTERNAL_SERVER_ERROR}}"
                .to_owned(),
        ]
        .concat(),
    ));
    let refused = |path: &str| {
        let mut call = mesh.request(&at(path), mesh.now());
        match call.choose_host(mesh.now()).unwrap() {
            Choice::Refused(refused) => (refused.status, call.local_reply().unwrap().details),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused("/first"), (404, "cluster_not_found".into()));
    assert_eq!(refused("/plain"), (404, "cluster_not_found".into()));
    assert_eq!(refused("/weighted"), (500, "cluster_not_found".into()));
    assert_eq!(tries(&mesh, &at("/second"), &[]), ("1".into(), 503));
    let stats: Value = serde_json::from_str(&mesh.text(Text::Stats).unwrap()).unwrap();
    for (name, count) in [
        ("upstream_rq_503", 1),
        ("retry.upstream_rq_503", 1),
        ("upstream_rq_retry", 0),
        ("upstream_cx_none_healthy", 0),
    ] {
        assert_eq!(stats[format!("cluster.c1.{name}")].as_u64().unwrap_or(0), count, "{name}");
    }
}

#[test]
fn stateless_attempts_and_questions_follow() {
    let mesh = mesh(&table(&format!("{}{}", groups("/", TWO, ", header_name: x-rand", AGAIN), "")));
    let block = HeaderBlock::of_request(&mesh, |name, take: &mut dyn FnMut(&[u8])| {
        if name == "x-rand" {
            take(b"1");
        }
    });
    for (number, host) in [(1, "10.0.0.2:80"), (2, "10.0.0.3:80"), (9, "10.0.0.3:80")] {
        let head = RequestHead { number, want: block.set(), headers: block.bytes(), ..at("/") };
        let mut call = mesh.request(&head, mesh.now());
        let Ok(Choice::Attempt(attempt)) = call.choose_host(mesh.now()) else { panic!("{number}") };
        assert_eq!(attempt.host().address, host, "{number}");
        let head = json!({"authority": "x", "path": "/", "attempt": number, "headers": {"x-rand": "1"}});
        let why: Value = serde_json::from_str(&mesh.text(Text::Explain(&head.to_string())).unwrap()).unwrap();
        assert_eq!(why["hosts"]["candidates"][0]["address"], host, "{why}");
        let group = if number == 1 { "\"near\"" } else { "\"far\"" };
        assert!(why["route"]["why"].as_str().unwrap().contains(group), "{why}");
        let among = match number {
            1 => json!([{"cluster": "c1", "weight": 1}, {"cluster": "c2", "weight": 3}]),
            _ => json!([{"cluster": "c3", "weight": 2}]),
        };
        assert_eq!(why["route"]["weighted"], among);
    }
}

#[test]
fn a_cluster_that_hashes_is_asked_by_hash_after_a_move() {
    let hashing = "- name: ring\n  lb_policy: RING_HASH\n  load_assignment: {cluster_name: ring, endpoints: [{lb_endpoints: [\
        {endpoint: {address: {socket_address: {address: 10.0.0.5, port_value: 80}}}}, \
        {endpoint: {address: {socket_address: {address: 10.0.0.6, port_value: 80}}}}, \
        {endpoint: {address: {socket_address: {address: 10.0.0.7, port_value: 80}}}}]}]}\n";
    let list = "{name: a, clusters: [{cluster_name: c1, weight: 1}]}, {name: b, clusters: [{cluster_name: ring, weight: 1}]}";
    let route = format!("{AGAIN}, hash_policy: [{{header: {{header_name: x-h}}}}]");
    let mesh = mesh(&format!("{hashing}{}", table(&groups("/", list, "", &route))));
    let mut met = std::collections::BTreeSet::new();
    for key in 0..20 {
        let key = key.to_string();
        let of_key = |_| tries(&mesh, &at("/"), &[("x-h", &key)]).0;
        let hosts: Vec<String> = (0..5).map(of_key).collect();
        assert!(hosts.iter().all(|same| *same == hosts[0]), "{key}: {hosts:?}");
        assert!(hosts[0].starts_with('1') && hosts[0][1..].bytes().all(|c| c == hosts[0].as_bytes()[1]));
        met.insert(hosts[0].clone());
    }
    assert!(met.len() > 1, "{met:?}");
}

/// Path and authority of a request, and where it was sent.
type Sent = (&'static str, &'static str, &'static str);

/// Match and fields of a redirect, then requests (path, authority) and where they were sent.
const REDIRECTS: [(&str, &str, &[Sent]); 16] = [
    ("prefix: /", "host_redirect: h.example", &[("/a?q=1", "w:80", "http://h.example/a?q=1")]),
    (
        "prefix: /",
        "https_redirect: true",
        &[
            ("/a?q", "w", "https://w/a?q"),
            ("/", "w:80", "https://w/"),
            ("/", "w:443", "https://w:443/"),
            ("/", "w:81", "https://w:81/"),
            ("/", "[::1]:80", "https://[::1]/"),
            ("/", "[::1]", "https://[::1]/"),
        ],
    ),
    ("prefix: /", "path_redirect: /new", &[("/a", "w", "http://w/new"), ("/a?q=1", "w", "http://w/new?q=1")]),
    ("prefix: /", "path_redirect: '/new?z=1', strip_query: true", &[("/a?q=1", "w", "http://w/new?z=1")]),
    ("prefix: /", "path_redirect: /new, strip_query: true", &[("/a?q=1", "w", "http://w/new")]),
    ("prefix: /r5", "prefix_rewrite: /pre", &[("/r5/a?q=1", "w", "http://w/pre/a?q=1")]),
    (
        "prefix: /r6",
        r"regex_rewrite: {pattern: {regex: '^/r6/(.*)$'}, substitution: '/x/\1/y'}",
        &[("/r6/a/b?q=1", "w", "http://w/x/a/b/y?q=1")],
    ),
    (
        "prefix: /",
        "strip_query: true, port_redirect: 8443",
        &[
            ("/a?q=1", "w", "http://w:8443/a"),
            ("/", "w:443", "http://w:8443/"),
            ("/", "[::1]:80", "http://[::1]:8443/"),
        ],
    ),
    (
        "prefix: /",
        "scheme_redirect: ftp",
        &[("/r8?x", "w", "ftp://w/r8?x"), ("/", "w:80", "ftp://w/"), ("/", "w:443", "ftp://w:443/")],
    ),
    ("prefix: /ra", "prefix_rewrite: /, strip_query: true", &[("/ra/b?q", "w", "http://w//b")]),
    ("prefix: /", "https_redirect: true, port_redirect: 443", &[("/rb/x", "w", "https://w:443/rb/x")]),
    (
        "prefix: /",
        "host_redirect: 'h.example:99', https_redirect: true",
        &[("/", "w", "https://h.example:99/")],
    ),
    ("safe_regex: {regex: '/rd.*'}", "prefix_rewrite: /z", &[("/rdq/x?y=1", "w", "http://w/z?y=1")]),
    ("path: /re", "prefix_rewrite: /z", &[("/re?y=1", "w", "http://w/z?y=1")]),
    ("path_separated_prefix: /rf", "prefix_rewrite: /z", &[("/rf/a/b?y=1", "w", "http://w/z/a/b?y=1")]),
    (
        "prefix: /",
        "scheme_redirect: http",
        &[("/rg?x", "w:80", "http://w:80/rg?x"), ("/", "w:443", "http://w:443/")],
    ),
];

#[test]
fn redirects() {
    let location = |mesh: &Engine, head: &RequestHead<'_>| {
        let mut call = mesh.request(head, mesh.now());
        let Choice::Refused(refused) = call.choose_host(mesh.now()).unwrap() else { panic!("{head:?}") };
        let reply = call.local_reply().unwrap();
        assert_eq!(refused.status, reply.status);
        assert_eq!((reply.details.as_str(), reply.body.as_str(), reply.flags), ("direct_response", "", 0));
        (reply.status, reply.headers)
    };
    let to = |to: &str| vec![("location".to_owned(), to.to_owned())];
    for (matcher, fields, requests) in REDIRECTS {
        let mesh = mesh(&table(&format!("{{match: {{{matcher}}}, redirect: {{{fields}}}}}")));
        for (path, authority, target) in requests {
            let head = RequestHead { path, authority, ..RequestHead::default() };
            assert_eq!(location(&mesh, &head), (301, to(target)), "{fields}: {path} {authority}");
            let head = json!({"authority": authority, "path": path});
            let why: Value =
                serde_json::from_str(&mesh.text(Text::Explain(&head.to_string())).unwrap()).unwrap();
            assert!(why["route"]["why"].as_str().unwrap().ends_with(&format!("location {target}")), "{why}");
        }
    }
    let mesh =
        mesh(&table("{match: {prefix: /}, redirect: {scheme_redirect: http, response_code: SEE_OTHER}}"));
    let head = RequestHead { scheme: "https", authority: "w:443", path: "/rg", ..RequestHead::default() };
    assert_eq!(location(&mesh, &head), (303, to("http://w/rg")));
}

#[test]
fn what_is_in_force_for_such_routes() {
    let named = |route: String| route.replacen("{match:", "{name: r, match:", 1);
    let values = |text: &str| {
        let mesh = mesh(text);
        let told: Value = serde_json::from_str(&mesh.text(Text::Effective("route:r")).unwrap()).unwrap();
        move |field: &str| {
            let rows = told["values"].as_array().unwrap();
            let row = rows.iter().find(|row| row["field"] == field);
            row.map_or(Value::Null, |row| json!([row["value"], row["from"]]))
        }
    };
    let of = values(&table(&named(groups("/", TWO, ", header_name: x-rand", AGAIN))));
    let near = json!({"group": "near", "clusters": [{"cluster": "c1", "weight": 1}, {"cluster": "c2", "weight": 3}]});
    let far = json!({"group": "far", "clusters": [{"cluster": "c3", "weight": 2}]});
    assert_eq!(of("cluster"), json!([[near, far], "document"]));
    assert_eq!(of("cluster.chosen"), json!(["by header x-rand", "document"]));
    assert_eq!(of("cluster.override_metadata_namespace"), json!([null, "default"]));
    let of =
        values(&table("{name: r, match: {prefix: /}, redirect: {https_redirect: true, strip_query: true}}"));
    assert_eq!(of("redirect.scheme"), json!(["https", "document"]));
    assert_eq!(of("redirect.host"), json!([null, "default"]));
    assert_eq!(of("redirect.response_code"), json!([301, "default"]));
    assert_eq!(of("redirect.strip_query"), json!([true, "document"]));
}
