//! Local replies of gRPC requests, with the numbers that decisions and verdicts carry: what a real Envoy 1.40 answered to
//! the same routes.

use nexthop::raw::{failure, flags};
use nexthop::{Choice, Clock, Engine, HeaderBlock, LocalReply, Outcome, RequestHead, Text};
use serde_json::Value;

const MESH: &str = "
- name: c
  load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}
- {name: empty}
- name: full
  circuit_breakers: {thresholds: [{max_requests: 0, max_pending_requests: 0, max_connections: 0}]}
  load_assignment: {cluster_name: full, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}]}]}
- validate_clusters: false
  virtual_hosts:
  - name: v
    domains: [web]
    routes:
    - {match: {prefix: /direct}, direct_response: {status: 403, body: {inline_string: 'no'}}}
    - {match: {prefix: /d200}, direct_response: {status: 200, body: {inline_string: hi}}}
    - {match: {prefix: /d204}, direct_response: {status: 204}}
    - {match: {prefix: /red}, redirect: {host_redirect: h}}
    - {match: {prefix: /miss}, route: {cluster: gone}}
    - {match: {prefix: /empty}, route: {cluster: empty}}
    - {match: {prefix: /full}, route: {cluster: full}}
    - {match: {prefix: /dead}, route: {cluster: c}}
    - {match: {prefix: /slow}, route: {cluster: c, timeout: 0.2s}}
    - {match: {prefix: /try}, route: {cluster: c, timeout: 3s, retry_policy: {per_try_timeout: 0.1s}}}
";

struct Told {
    /// Of the decision or verdict that ended the request.
    status: u16,
    flags: u32,
    reply: LocalReply,
}

fn told(mesh: &Engine, path: &str, content: &str, authority: &str) -> Told {
    let block = HeaderBlock::of_request(mesh, |name, take: &mut dyn FnMut(&[u8])| {
        if name == "content-type" {
            take(content.as_bytes());
        }
    });
    let head =
        RequestHead { authority, path, want: block.set(), headers: block.bytes(), ..RequestHead::default() };
    let mut call = mesh.request(&head, mesh.now());
    let (status, flags) = match call.choose_host(mesh.now()).unwrap() {
        Choice::Refused(refused) => (refused.status, refused.flags),
        Choice::Attempt(attempt) => {
            let failure = if path == "/dead" { failure::CONNECT_FAILURE } else { failure::TIMEOUT };
            if let Some(limit) = attempt.plan().timeout.filter(|_| path != "/dead") {
                mesh.advance(limit).unwrap();
            }
            let verdict = attempt.complete(&Outcome::failed(failure), mesh.now()).unwrap();
            (verdict.status, verdict.flags)
        }
        Choice::Wait(wait) => panic!("{wait:?}"),
    };
    Told { status, flags: flags.0, reply: call.local_reply().unwrap() }
}

#[test]
fn two_hundred_with_the_status_in_a_header() {
    let overflow = "upstream connect error or disconnect/reset before headers. reset reason: overflow";
    let refused =
        "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure";
    for (path, plain, grpc, message, flag, details) in [
        ("/direct", 403, 7, "no", 0, "direct_response"),
        ("/d200", 200, 2, "hi", 0, "direct_response"),
        ("/d204", 204, 2, "", 0, "direct_response"),
        ("/red/a", 301, 2, "", 0, "direct_response"),
        ("/miss", 503, 14, "", flags::NC, "cluster_not_found"),
        ("/empty", 503, 14, "no healthy upstream", flags::UH, "no_healthy_upstream"),
        ("/full", 503, 14, overflow, flags::UO, "upstream_reset_before_response_started{overflow}"),
        (
            "/dead",
            503,
            14,
            refused,
            flags::UF,
            "upstream_reset_before_response_started{remote_connection_failure}",
        ),
        ("/slow", 504, 14, "upstream request timeout", flags::UT, "response_timeout"),
        ("/try", 504, 14, "upstream request timeout", flags::UT, "upstream_per_try_timeout"),
        ("/none", 404, 12, "", flags::NR, "route_not_found"),
    ] {
        let mesh = Engine::builder().text(MESH).workers(1).seed(7).clock(Clock::Manual).build().unwrap();
        for (content, status) in
            [("text/plain", plain), ("application/grpc", 200), ("application/grpc+proto", 200)]
        {
            let told = told(&mesh, path, content, "web");
            let reply = &told.reply;
            assert_eq!((told.status, reply.status), (status, status), "{path} {content}");
            assert_eq!(
                (told.flags, reply.flags, reply.details.as_str()),
                (flag, flag, details),
                "{path} {content}"
            );
            let header = |name: &str| {
                reply.headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str())
            };
            let overloaded = if path == "/full" { "true" } else { "" };
            let location = if path == "/red/a" { "http://h/red/a" } else { "" };
            assert_eq!((header("x-envoy-overloaded"), header("location")), (overloaded, location), "{path}");
            if content == "text/plain" {
                assert_eq!((header("grpc-status"), reply.body.as_str()), ("", message), "{path}");
            } else {
                let headers = (header("grpc-status"), header("grpc-message"), header("content-type"));
                assert_eq!(headers, (grpc.to_string().as_str(), message, "application/grpc"), "{path}");
                assert_eq!(reply.body, "", "{path}");
            }
        }
        // Counters count the HTTP status that a reply stands for.
        let stats: Value = serde_json::from_str(&mesh.text(Text::Stats).unwrap()).unwrap();
        let cluster = match path {
            "/empty" | "/full" => &path[1..],
            "/dead" | "/slow" | "/try" => "c",
            _ => continue,
        };
        assert_eq!(stats[format!("cluster.{cluster}.upstream_rq_{plain}")], 3, "{path}");
    }
}

#[test]
fn a_host_nobody_serves_and_other_contents() {
    let mesh = Engine::builder().text(MESH).workers(1).seed(7).clock(Clock::Manual).build().unwrap();
    let nowhere = told(&mesh, "/", "application/grpc", "other");
    assert_eq!(
        (nowhere.status, nowhere.flags, nowhere.reply.details.as_str()),
        (200, flags::NR, "route_not_found")
    );
    // Parameters, and gRPC for browsers, are something else.
    for content in ["application/grpc;x=1", "application/grpc-web", "application/grpcx", ""] {
        assert_eq!(told(&mesh, "/empty", content, "web").status, 503, "{content}");
    }
}
