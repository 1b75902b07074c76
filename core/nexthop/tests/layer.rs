//! The tower layer: hosts, retries, bodies that end attempts.
#![cfg(feature = "tower")]

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use nexthop::{Clock, Declined, Engine, NexthopLayer, Stat};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

type Seen = Arc<Mutex<Vec<String>>>;

/// A client that answers 503 from the first host and 200 from the others.
#[derive(Clone)]
struct Client(Seen);

impl Service<Request<Full<Bytes>>> for Client {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let count =
            request.headers().get("x-envoy-attempt-count").and_then(|v| v.to_str().ok()).unwrap_or("none");
        let uri = request.uri().to_string();
        self.0.lock().unwrap().push(format!("{uri} attempt {count}"));
        let status = if self.0.lock().unwrap().len() == 1 { 503 } else { 200 };
        let body = Full::from(format!("from {uri}"));
        std::future::ready(Ok(Response::builder().status(status).body(body).unwrap()))
    }
}

const DOCUMENT: &str = r#"
static_resources:
  listeners:
    - address: { socket_address: { address: 127.0.0.1, port_value: 1 } }
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: s
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
                route_config:
                  virtual_hosts:
                    - name: v
                      domains: [shop.example]
                      include_request_attempt_count: true
                      routes:
                        - match: { prefix: /api/ }
                          route:
                            cluster: web
                            prefix_rewrite: /
                            retry_policy:
                              retry_on: 5xx
                              num_retries: 1
                              retry_back_off: { base_interval: 0.001s }
                              host_selection_retry_max_attempts: 5
                              retry_host_predicate:
                                - name: envoy.retry_host_predicates.previous_hosts
                                  typed_config: { "@type": type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate }
  clusters:
    - name: web
      connect_timeout: 1s
      load_assignment:
        cluster_name: web
        endpoints:
          - lb_endpoints:
              - endpoint: { address: { socket_address: { address: 10.0.0.1, port_value: 8080 } } }
              - endpoint: { address: { socket_address: { address: 10.0.0.2, port_value: 8080 } } }
"#;

fn active(mesh: &Engine) -> u64 {
    let mut found = 0;
    mesh.stats(&mut |name, stat| {
        if let (Stat::Gauge(value), "cluster.web.upstream_rq_active") = (stat, name) {
            found = value;
        }
    });
    found
}

fn get(uri: &str) -> Request<Full<Bytes>> {
    Request::get(uri).body(Full::default()).unwrap()
}

#[tokio::test]
async fn routes_rewrites_retries_and_ends_with_the_body() {
    let mesh = Engine::builder().text(DOCUMENT).workers(1).seed(7).clock(Clock::Precise).build();
    let mesh = Arc::new(mesh.unwrap_or_else(|error| panic!("{error}")));
    let seen = Seen::default();
    let mut upstream = NexthopLayer::new(Arc::clone(&mesh)).layer(Client(Arc::clone(&seen)));

    let response = upstream.call(get("http://shop.example/api/cart?x=1")).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(active(&mesh), 1, "its body is not read yet");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(active(&mesh), 0);

    let seen = seen.lock().unwrap().clone();
    let hosts: Vec<&str> = seen.iter().map(|line| &line["http://".len()..]["10.0.0.".len()..][..1]).collect();
    assert!(seen.len() == 2 && hosts[0] != hosts[1], "{seen:?}");
    assert!(
        seen[0].ends_with(":8080/cart?x=1 attempt 1") && seen[1].ends_with(":8080/cart?x=1 attempt 2"),
        "{seen:?}"
    );
    assert_eq!(body, format!("from http://10.0.0.{}:8080/cart?x=1", hosts[1]));
}

#[tokio::test]
async fn a_body_that_is_dropped_gives_everything_back() {
    let mesh = Arc::new(Engine::from_text("clusters: {web: {hosts: [10.0.0.1:80]}}").unwrap());
    let seen = Seen::default();
    seen.lock().unwrap().push("so that the next answer is 200".into());
    let layer = NexthopLayer::new(Arc::clone(&mesh)).to(mesh.resolve("web").unwrap());
    let response = layer.layer(Client(seen)).call(get("/")).await.unwrap();
    assert_eq!(active(&mesh), 1);
    drop(response);
    assert_eq!(active(&mesh), 0);
}

#[tokio::test]
async fn what_no_route_leads_to_is_declined() {
    let mesh = Arc::new(Engine::from_text(DOCUMENT).unwrap());
    let declined =
        NexthopLayer::new(mesh).layer(Client(Seen::default())).call(get("http://other.example/")).await;
    let Err(Declined::Refused(refusal, reply)) = declined.map(|_| ()) else { panic!("there is no route") };
    assert_eq!((reply.status, reply.details.as_str()), (404, "route_not_found"));
    assert_eq!(refusal.kind, nexthop::RefusalKind::NO_ROUTE);
}
