//! Regular expressions that explode, wherever a document has one: refused when they are loaded, with their place and a
//! reason, or matched in time that grows with the text.

use nexthop::raw::head_bits;
use nexthop::{Choice, Clock, Engine, HeaderBlock, Outcome, RequestHead};
use std::time::{Duration, Instant};

/// Where a document has an expression: its path, and what stands around it.
const PLACES: [(&str, &str, &str); 9] = [
    (
        "[1].virtual_hosts[0].routes[0].match.safe_regex.regex",
        "{match: {safe_regex: {regex: 'HERE'}}, route: {cluster: c}}",
        "",
    ),
    (
        "[1].virtual_hosts[0].routes[0].match.headers[0].string_match.safe_regex.regex",
        "{match: {prefix: /, headers: [{name: x, string_match: {safe_regex: {regex: 'HERE'}}}]}, route: {cluster: c}}",
        "",
    ),
    (
        "[1].virtual_hosts[0].routes[0].match.headers[0].safe_regex_match.regex",
        "{match: {prefix: /, headers: [{name: x, safe_regex_match: {regex: 'HERE'}}]}, route: {cluster: c}}",
        "",
    ),
    (
        "[1].virtual_hosts[0].routes[0].match.query_parameters[0].string_match.safe_regex.regex",
        "{match: {prefix: /, query_parameters: [{name: x, string_match: {safe_regex: {regex: 'HERE'}}}]}, route: {cluster: c}}",
        "",
    ),
    (
        "[1].virtual_hosts[0].routes[0].route.regex_rewrite.pattern.regex",
        "{match: {prefix: /}, route: {cluster: c, regex_rewrite: {pattern: {regex: 'HERE'}, substitution: b}}}",
        "",
    ),
    (
        "[1].virtual_hosts[0].routes[0].redirect.regex_rewrite.pattern.regex",
        "{match: {prefix: /}, redirect: {regex_rewrite: {pattern: {regex: 'HERE'}, substitution: b}}}",
        "",
    ),
    (
        "[1].virtual_hosts[0].routes[0].route.hash_policy[0].header.regex_rewrite.pattern.regex",
        "{match: {prefix: /}, route: {cluster: c, hash_policy: [{header: {header_name: x, regex_rewrite: {pattern: {regex: 'HERE'}, substitution: b}}}]}}",
        "lb_policy: RING_HASH, ",
    ),
    (
        "[1].virtual_hosts[0].routes[0].route.retry_policy.retriable_headers[0].string_match.safe_regex.regex",
        "{match: {prefix: /}, route: {cluster: c, retry_policy: {retry_on: retriable-headers, retriable_headers: [{name: x, string_match: {safe_regex: {regex: 'HERE'}}}]}}}",
        "",
    ),
    (
        "[1].virtual_hosts[0].routes[0].route.retry_policy.retriable_request_headers[0].string_match.safe_regex.regex",
        "{match: {prefix: /}, route: {cluster: c, retry_policy: {retry_on: 5xx, retriable_request_headers: [{name: x, string_match: {safe_regex: {regex: 'HERE'}}}]}}}",
        "",
    ),
];

fn document(route: &str, cluster: &str, regex: &str) -> String {
    format!(
        "- {{name: c, {cluster}load_assignment: {{cluster_name: c, endpoints: [{{lb_endpoints: [{{endpoint: {{address: \
         {{socket_address: {{address: 10.0.0.1, port_value: 80}}}}}}}}]}}]}}}}\n\
         - {{virtual_hosts: [{{name: v, domains: ['*'], routes: [{}]}}]}}",
        route.replace("HERE", regex)
    )
}

fn build(text: &str) -> Result<Engine, nexthop::Error> {
    Engine::builder().text(text).workers(1).seed(7).clock(Clock::Manual).build()
}

/// Nothing here takes longer, on a slow machine without optimisation.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn refused_where_they_stand() {
    let nested = "(?:".repeat(3000) + "a" + &")".repeat(3000);
    let huge = "[a-z]{1000}".repeat(600);
    for (regex, reason) in [
        ("(a{1000}){1000}", "invalid repetition size"),
        ("((a{100}){100}){100}", "invalid repetition size"),
        ("x{1001}", "invalid repetition size"),
        ("(x+){2}{1000}", "bad repetition operator"),
        ("(a", "missing )"),
        ("a(?=b)", "invalid perl operator"),
        (nested.as_str(), "nest"),
        (huge.as_str(), "size limit"),
    ] {
        for (path, route, cluster) in PLACES {
            let begun = Instant::now();
            let error = match build(&document(route, cluster, regex)) {
                Ok(_) => panic!("{path}: loaded {}", &regex[..regex.len().min(40)]),
                Err(error) => error.to_string(),
            };
            assert!(error.contains(path) && error.contains(reason), "{error}");
            assert!(begun.elapsed() < SOON, "{path}: {:?}", begun.elapsed());
        }
    }
}

#[test]
fn matched_in_linear_time() {
    let text = "a".repeat(50 * 1024);
    let path = format!("/{text}?x={}", &text[..8 * 1024]);
    for regex in [
        "(a+)+c",
        "(a|aa)+c",
        "(a|a?)+c",
        "(.*a){20}c",
        "(a?){900}a{900}c",
        "([a-z]+)*[0-9]",
        "a*a*a*a*a*a*c",
    ] {
        for (place, route, cluster) in PLACES {
            let mesh = build(&document(route, cluster, regex)).unwrap_or_else(|error| panic!("{error}"));
            let begun = Instant::now();
            let long = if place.contains("match.safe_regex") || place.contains("regex_rewrite.pattern") {
                &*path
            } else {
                "/a?x=aaaa"
            };
            let value = if long.len() > 100 { "aaa" } else { &text[..] };
            let give = |name: &str, take: &mut dyn FnMut(&[u8])| {
                if name == "x" {
                    take(value.as_bytes());
                }
            };
            let block = HeaderBlock::of_request(&mesh, give);
            let head = RequestHead {
                bits: head_bits::INTERNAL,
                authority: "a",
                path: if long.len() + value.len() > 59 * 1024 { &long[..50 * 1024] } else { long },
                want: block.set(),
                headers: block.bytes(),
                ..RequestHead::default()
            };
            let mut call = mesh.request(&head, mesh.now());
            if let Choice::Attempt(attempt) = call.choose_host(mesh.now()).unwrap() {
                let answer = HeaderBlock::over(&mesh, attempt.plan().want_err, give);
                let outcome = Outcome { headers: answer.bytes(), ..Outcome::status(503) };
                attempt.complete(&outcome, mesh.now()).unwrap();
            }
            assert!(begun.elapsed() < SOON, "{regex} at {place}: {:?}", begun.elapsed());
        }
    }
}
