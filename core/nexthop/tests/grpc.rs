//! Local replies to gRPC requests are gRPC statuses.

use nexthop::{Action, Choice, Clock, Engine, Outcome, RequestHead, raw};

const DOCUMENT: &str = r#"
static_resources:
  clusters:
  - {name: none}
  - name: one
    load_assignment: {cluster_name: one, endpoints: [{lb_endpoints: [
      {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}
---
name: routes
virtual_hosts:
- name: all
  domains: ["*"]
  routes:
  - match: {path: /direct}
    direct_response: {status: 403, body: {inline_string: "no 100% é"}}
  - match: {path: /none}
    route: {cluster: none}
  - match: {path: /one}
    route: {cluster: one}
"#;

/// Status of the decision or verdict, then status, headers and body of the local reply.
fn told(path: &str, content_type: &str) -> (u16, u16, Vec<String>, String) {
    let mesh = Engine::builder().text(DOCUMENT).clock(Clock::Manual).seed(1).build().unwrap();
    let (want, names) = mesh.wanted(0).unwrap();
    let index = names.iter().position(|name| &**name == "content-type").unwrap() as u16;
    let mut block = Vec::new();
    block.extend(index.to_le_bytes());
    block.extend([0, 0]);
    block.extend((content_type.len() as u32).to_le_bytes());
    block.extend(content_type.as_bytes());
    let head = RequestHead { path, authority: "a", headers: &block, want, ..RequestHead::default() };
    let mut call = mesh.request(&head, mesh.now());
    let status = match call.choose_host(mesh.now()).unwrap() {
        Choice::Refused(refusal) => refusal.status,
        Choice::Attempt(attempt) => {
            let outcome = Outcome::failed(raw::failure::CONNECT_FAILURE);
            let verdict = attempt.complete(&outcome, mesh.now()).unwrap();
            assert_eq!(verdict.action, Action::Forward);
            verdict.status
        }
        Choice::Wait(_) => panic!("nothing to wait for"),
    };
    let reply = call.local_reply().unwrap();
    let headers = reply.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    (status, reply.status, headers, reply.body)
}

fn grpc(status: &str, message: &str) -> Vec<String> {
    let mut headers = vec!["content-type: application/grpc".to_owned(), format!("grpc-status: {status}")];
    if !message.is_empty() {
        headers.push(format!("grpc-message: {message}"));
    }
    headers
}

#[test]
fn local_replies_are_grpc_statuses() {
    for content_type in ["application/grpc", "application/grpc+proto"] {
        assert_eq!(
            told("/direct", content_type),
            (200, 200, grpc("7", "no 100%25 %C3%A9"), String::new()),
            "{content_type}"
        );
        assert_eq!(told("/none", content_type), (200, 200, grpc("14", "no healthy upstream"), String::new()));
        let reset = "upstream connect error or disconnect/reset before headers. reset reason: remote connection failure";
        assert_eq!(told("/one", content_type), (200, 200, grpc("14", reset), String::new()));
        assert_eq!(told("/nothing", content_type), (200, 200, grpc("12", ""), String::new()));
    }
}

#[test]
fn others_get_http() {
    for content_type in ["application/grpc-web", "text/plain"] {
        let (status, reply, headers, body) = told("/direct", content_type);
        assert_eq!((status, reply, body.as_str()), (403, 403, "no 100% é"));
        assert_eq!(headers, ["content-type: text/plain"]);
        assert_eq!(told("/nothing", content_type).0, 404);
    }
}
