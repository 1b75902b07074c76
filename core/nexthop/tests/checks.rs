//! Active checks through the Rust face: by hand on a manual clock, and performed by the ready-made loop.

use nexthop::{
    Action, Check, CheckProtocol, CheckResult, Choice, Clock, Engine, HeaderBlock, Misuse, Outcome,
    RequestHead, Text, document_kind, failure, host_op, last_error,
};
use nexthop::{Document, HostChange};
use std::time::Duration;

const WEB: &str = "http_health_check: {path: /health}";

fn document(probe: &str, hosts: &[&str]) -> String {
    let host = |address: &&str| {
        let (ip, port) = address.rsplit_once(':').unwrap();
        format!("{{endpoint: {{address: {{socket_address: {{address: {ip}, port_value: {port}}}}}}}}}")
    };
    let hosts: Vec<String> = hosts.iter().map(host).collect();
    format!(
        "clusters: [{{name: web, common_lb_config: {{healthy_panic_threshold: {{value: 0}}}}, \
         typed_extension_protocol_options: {{envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {{'@type': \
         type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: \
         {{http2_protocol_options: {{}}}}}}}}, \
         load_assignment: {{cluster_name: web, endpoints: [{{lb_endpoints: [{}]}}]}}, \
         health_checks: [{{timeout: 5s, interval: 0.02s, no_traffic_interval: 0.02s, unhealthy_threshold: 2, \
         healthy_threshold: 1, {probe}}}]}}]",
        hosts.join(", ")
    )
}

fn manual(probe: &str, hosts: &[&str]) -> Engine {
    Engine::builder().text(&document(probe, hosts)).clock(Clock::Manual).workers(1).build().unwrap()
}

fn flags(mesh: &Engine) -> Vec<String> {
    let hosts: serde_json::Value = serde_json::from_str(&mesh.text(Text::Hosts("web")).unwrap()).unwrap();
    let hosts = hosts.as_array().or_else(|| hosts["hosts"].as_array()).expect("a list of hosts");
    hosts.iter().map(|host| host["health_flags"].as_str().unwrap().to_owned()).collect()
}

fn due(mesh: &Engine) -> Vec<Check<&Engine>> {
    std::iter::from_fn(|| mesh.poll_check(mesh.now())).collect()
}

#[test]
fn without_a_question_nobody_is_checked() {
    let mesh = manual(WEB, &["10.0.0.1:80"]);
    mesh.advance(Duration::from_secs(3600)).unwrap();
    assert_eq!((mesh.checks_deadline(mesh.now()), flags(&mesh)), (None, vec!["healthy".into()]));
}

#[test]
fn answers_are_judged_and_results_taken() {
    let mesh = manual(WEB, &["10.0.0.1:80", "10.0.0.2:80"]);
    let checks = due(&mesh);
    assert_eq!(checks.len(), 2);
    assert_eq!(mesh.checks_deadline(mesh.now()), Some(Duration::from_secs(5)));
    let mut checks = checks.into_iter();
    let (first, second) = (checks.next().unwrap(), checks.next().unwrap());
    assert_eq!(
        (first.protocol(), first.method(), first.path(), first.authority(), first.cluster(), first.name()),
        (CheckProtocol::Http, "GET", "/health", "web", "web", "")
    );
    assert_eq!((first.timeout(), first.body_limit(), first.payload()), (Duration::from_secs(5), 0, &[][..]));
    assert_eq!(
        (first.headers(), first.secure(), first.may_reuse()),
        (vec![("user-agent", "Envoy/HC")], false, true)
    );
    assert_eq!(first.host().unwrap().address, first.address());
    let block = HeaderBlock::over(&mesh, first.want(), |name, take| {
        if name == "x-envoy-immediate-health-check-fail" {
            take(b"1");
        }
    });
    let outcome = Outcome { headers: block.bytes(), ..Outcome::status(503) };
    first.answer(&outcome, b"", mesh.now()).unwrap();
    second.result(CheckResult::Success { degraded: true }, mesh.now()).unwrap();
    assert_eq!(
        flags(&mesh),
        ["/failed_active_hc/excluded_via_immediate_hc_fail".to_owned(), "/degraded_active_hc".to_owned()]
    );
    let events: Vec<String> = std::iter::from_fn(|| mesh.poll_event()).collect();
    assert!(events[0].contains("\"health_check_failure_event\""), "{events:?}");
    assert!(events.iter().any(|event| event.contains("\"degraded_healthy_host\"")), "{events:?}");
    let mut stats = Vec::new();
    mesh.stats(&mut |name, _| {
        stats.extend(name.strip_prefix("cluster.web.health_check.").map(str::to_owned))
    });
    assert!(["attempt", "success", "failure", "healthy"].iter().all(|name| stats.iter().any(|s| s == name)));
}

#[test]
fn what_is_not_reported_has_timed_out_and_wrong_use_is_told() {
    let mesh = manual(WEB, &["10.0.0.1:80"]);
    let check = due(&mesh).pop().unwrap();
    let number = check.id();
    mesh.advance(Duration::from_secs(5)).unwrap();
    assert_eq!(flags(&mesh), ["/failed_active_hc/active_hc_timeout"]);
    assert_eq!(check.fail(failure::TIMEOUT, mesh.now()), Err(Misuse::Ended));
    assert_eq!(
        last_error(),
        format!(
            "check {number} is over: it was reported, its time has run out, or its host has left; nothing has changed"
        )
    );
    mesh.advance(Duration::from_millis(20)).unwrap();
    let check = due(&mesh).pop().unwrap();
    let raw = |id, result, outcome: &Outcome<'_>| {
        nexthop::raw::with_local(|local| {
            nexthop::raw::check_result(local, mesh.id(), id, result, outcome, b"", 0)
        })
    };
    for (id, result, outcome, sentence) in [
        (0, 1, Outcome::default(), "no check 0 was handed out"),
        (99, 1, Outcome::default(), "no check 99 was handed out"),
        (check.id(), 8, Outcome::default(), "the result is 8; there are 0 to 7"),
        (check.id(), 0, Outcome::default(), "its status is 0"),
        (check.id(), 0, Outcome { headers: b"x", ..Outcome::status(200) }, "no block over the set"),
    ] {
        let error = raw(id, result, &outcome).unwrap_err();
        assert!(error.status() == -1 && error.to_string().contains(sentence), "{error}");
    }
    check.answer(&Outcome::status(200), b"", mesh.now()).unwrap();
    assert_eq!(flags(&mesh), ["healthy"]);
}

#[test]
fn bytes_decide_when_they_are_all_there() {
    let mesh = manual(
        "tcp_health_check: {send: {text: '50'}, receive: [{text: '6f'}, {text: '6b'}]}",
        &["10.0.0.1:80"],
    );
    let check = due(&mesh).pop().unwrap();
    assert_eq!((check.protocol(), check.payload(), check.method()), (CheckProtocol::Tcp, &b"P"[..], ""));
    assert_eq!(check.data(b"", mesh.now()), Ok(false));
    assert_eq!(check.data(b"xo", mesh.now()), Ok(false));
    assert_eq!(check.data(b"xo k", mesh.now()), Ok(true));
    assert_eq!(check.data(b"xo k", mesh.now()), Err(Misuse::Ended));
}

#[test]
fn grpc_is_judged_by_its_trailers() {
    let mesh = manual("grpc_health_check: {service_name: s}", &["10.0.0.1:80"]);
    for (status, message, healthy) in [("0", 1, true), ("0", 2, false), ("0", 1, true), ("12", 1, false)] {
        let check = due(&mesh).pop().unwrap();
        assert_eq!((check.protocol(), check.method()), (CheckProtocol::Grpc, "POST"));
        assert_eq!(
            (check.path(), check.payload()),
            ("/grpc.health.v1.Health/Check", &[0, 0, 0, 0, 3, 10, 1, b's'][..])
        );
        let block = HeaderBlock::over(&mesh, check.want(), |name, take| {
            if name == "grpc-status" {
                take(status.as_bytes());
            }
        });
        let outcome = Outcome { headers: block.bytes(), ..Outcome::status(200) };
        check.answer(&outcome, &[0, 0, 0, 0, 2, 8, message], mesh.now()).unwrap();
        assert_eq!(flags(&mesh) == ["healthy"], healthy, "{status} {message}");
        mesh.advance(Duration::from_millis(20)).unwrap();
    }
}

#[test]
fn an_answer_to_a_request_takes_its_host_out_once_checks_began() {
    let mesh = manual(WEB, &["10.0.0.1:80"]);
    let head = RequestHead { target: mesh.resolve("web").unwrap(), ..RequestHead::default() };
    let answer = |expected: usize| {
        let mut call = mesh.request(&head, mesh.now());
        let Choice::Attempt(attempt) = call.choose_host(mesh.now()).unwrap() else { panic!("no attempt") };
        let block = HeaderBlock::over(&mesh, attempt.plan().want_ok, |_, take| take(b"true"));
        assert_eq!(mesh.wanted(attempt.plan().want_ok).unwrap().1.len(), expected);
        let outcome = Outcome { headers: block.bytes(), ..Outcome::status(200) };
        assert_eq!(attempt.complete(&outcome, mesh.now()).unwrap().action, Action::Forward);
    };
    answer(0);
    assert_eq!(flags(&mesh), ["healthy"]);
    due(&mesh).pop().unwrap().result(CheckResult::Success { degraded: false }, mesh.now()).unwrap();
    answer(1);
    assert_eq!(flags(&mesh), ["/failed_active_hc/excluded_via_immediate_hc_fail"]);
}

/// Hosts and clusters come and go while threads hold their checks: nothing is lost, nothing counted for another host.
#[test]
fn hosts_leave_and_clusters_are_replaced_while_checks_are_out() {
    let mesh = manual(WEB, &["10.0.0.1:80"]);
    let both = [document(WEB, &["10.0.0.1:80", "10.0.0.2:80"]), document(WEB, &["10.0.0.1:80"])];
    let other = document("tcp_health_check: {}", &["10.0.0.2:80", "10.0.0.3:80"]);
    let none = "clusters: []".to_owned();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut held = std::collections::VecDeque::new();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    held.extend(mesh.poll_check(mesh.now()));
                    if held.len() > 3 {
                        let check = held.pop_front().unwrap();
                        let passed = CheckResult::Success { degraded: false };
                        assert!(matches!(check.result(passed, mesh.now()), Ok(()) | Err(Misuse::Ended)));
                    }
                }
            });
        }
        for round in 0..180 {
            let text = match round % 6 {
                0 | 2 => &both[0],
                1 | 3 => &both[1],
                4 => &other,
                _ => &none,
            };
            let update = Document { kind: document_kind::TEXT, dialect: "", name: "", text: text.as_bytes() };
            mesh.update(&[update]).unwrap();
            if round % 6 < 4 {
                let add = HostChange { op: host_op::ADD, address: "10.0.0.9:80", ..HostChange::default() };
                let remove = HostChange { op: host_op::REMOVE, ..add.clone() };
                mesh.apply("web", &[add]).unwrap();
                mesh.advance(Duration::from_millis(7)).unwrap();
                mesh.apply("web", &[remove]).unwrap();
            }
            mesh.advance(Duration::from_millis(13)).unwrap();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let last = Document { kind: document_kind::TEXT, dialect: "", name: "", text: both[0].as_bytes() };
    mesh.update(&[last]).unwrap();
    // Whoever is still out runs out of time; then everybody passes again.
    mesh.advance(Duration::from_secs(6)).unwrap();
    for _ in 0..2 {
        for check in due(&mesh) {
            check.result(CheckResult::Success { degraded: false }, mesh.now()).unwrap();
        }
        mesh.advance(Duration::from_millis(20)).unwrap();
    }
    assert_eq!(flags(&mesh), ["healthy", "healthy"]);
    assert_eq!(nexthop::raw::engine_info(mesh.id()).unwrap().panics, 0);
}

#[cfg(feature = "checks")]
mod performed {
    use super::{WEB, document, flags};
    use bytes::Bytes;
    use http_body_util::{BodyExt, Full};
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use hyper::{HeaderMap, Request, Response};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use nexthop::{CheckProtocol, CheckResult, Checker, Engine};
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::sync::{Arc, Mutex};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::Semaphore;
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    type Answers = VecDeque<(u16, Vec<u8>)>;

    /// Tells what was asked, and answers in order, each when it may; the last one for ever.
    #[derive(Clone)]
    struct Script {
        answers: Arc<Mutex<Answers>>,
        seen: UnboundedSender<String>,
        may: Arc<Semaphore>,
    }

    impl Script {
        fn new(answers: &[(u16, &[u8])]) -> (Self, UnboundedReceiver<String>) {
            let answers = answers.iter().map(|(status, body)| (*status, body.to_vec())).collect();
            let (seen, asked) = unbounded_channel();
            let script =
                Self { answers: Arc::new(Mutex::new(answers)), seen, may: Arc::new(Semaphore::new(0)) };
            (script, asked)
        }

        async fn next(&self, asked: String) -> (u16, Vec<u8>) {
            // The test may be over.
            let _ = self.seen.send(asked);
            self.may.acquire().await.unwrap().forget();
            let mut list = self.answers.lock().unwrap();
            let first = list.pop_front().unwrap();
            if list.is_empty() {
                list.push_back(first.clone());
            }
            first
        }
    }

    async fn listen() -> (TcpListener, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        (listener, address)
    }

    fn seen_as(request: &Request<Incoming>) -> String {
        let text = |name| request.headers().get(name).map_or("", |value| value.to_str().unwrap());
        let authority =
            request.uri().authority().map_or_else(|| text("host").to_owned(), ToString::to_string);
        format!(
            "{} {} {authority} {} {:?}",
            request.method(),
            request.uri().path(),
            text("user-agent"),
            request.version()
        )
    }

    async fn serve_http(listener: TcpListener, http2: bool, script: Script, connections: Arc<AtomicUsize>) {
        while let Ok((stream, _)) = listener.accept().await {
            connections.fetch_add(1, Relaxed);
            let script = script.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let script = script.clone();
                async move {
                    let head = seen_as(&request);
                    let sent = request.into_body().collect().await?.to_bytes();
                    let (status, body) = script.next(format!("{head} {sent:?}")).await;
                    let response = Response::builder().status(status);
                    let mut trailers = HeaderMap::new();
                    trailers.insert("grpc-status", "0".parse().unwrap());
                    let body = Full::new(Bytes::from(body)).with_trailers(async move { Some(Ok(trailers)) });
                    Ok::<_, hyper::Error>(response.body(body).unwrap())
                }
            });
            tokio::spawn(async move {
                let stream = TokioIo::new(stream);
                if http2 {
                    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    drop(server.serve_connection(stream, service).await);
                } else {
                    let server = hyper::server::conn::http1::Builder::new();
                    drop(server.serve_connection(stream, service).await);
                }
            });
        }
    }

    fn mesh(probe: &str, address: &str) -> Arc<Engine> {
        let mesh = Engine::builder().text(&document(probe, &[address])).clock(nexthop::Clock::Precise);
        Arc::new(mesh.build().unwrap())
    }

    /// Lets the check that is out be answered; the flags after it. The next one begins when its result is known.
    async fn judged(mesh: &Engine, may: &Semaphore, asked: &mut UnboundedReceiver<String>) -> Vec<String> {
        may.add_permits(1);
        asked.recv().await.unwrap();
        flags(mesh)
    }

    /// The first answer fails the host, the second brings it back, over one connection.
    async fn over(probe: &str, http2: bool, answers: &[(u16, &[u8])], line: &str) {
        let (listener, address) = listen().await;
        let (script, mut asked) = Script::new(answers);
        let (may, connections) = (Arc::clone(&script.may), Arc::new(AtomicUsize::new(0)));
        tokio::spawn(serve_http(listener, http2, script, Arc::clone(&connections)));
        let mesh = mesh(probe, &address);
        let checks = tokio::spawn(Checker::new(Arc::clone(&mesh)).run());
        assert_eq!(asked.recv().await.unwrap(), line);
        assert_eq!(judged(&mesh, &may, &mut asked).await, ["/failed_active_hc"]);
        assert_eq!(judged(&mesh, &may, &mut asked).await, ["healthy"]);
        assert_eq!(connections.load(Relaxed), 1);
        checks.abort();
    }

    #[tokio::test]
    async fn http() {
        over(WEB, false, &[(503, b""), (200, b"")], r#"GET /health web Envoy/HC HTTP/1.1 b"""#).await;
        let probe = "http_health_check: {path: /h, method: PUT, send: {text: '6869'}, receive: [{text: '6f6b'}], \
                     response_buffer_size: 4, host: other.example}";
        let answers: [(u16, &[u8]); 2] = [(200, b"12345ok"), (200, b"1ok456789")];
        over(probe, false, &answers, r#"PUT /h other.example Envoy/HC HTTP/1.1 b"hi""#).await;
    }

    #[tokio::test]
    async fn http2_and_grpc() {
        let probe = "http_health_check: {path: /h, codec_client_type: HTTP2}";
        over(probe, true, &[(500, b""), (200, b"")], r#"GET /h web Envoy/HC HTTP/2.0 b"""#).await;
        let answers: [(u16, &[u8]); 2] = [(200, &[0, 0, 0, 0, 2, 8, 2]), (200, &[0, 0, 0, 0, 2, 8, 1])];
        let line = r#"POST /grpc.health.v1.Health/Check web Envoy/HC HTTP/2.0 b"\0\0\0\0\x03\n\x01s""#;
        over("grpc_health_check: {service_name: s}", true, &answers, line).await;
    }

    #[tokio::test]
    async fn tcp() {
        let (listener, address) = listen().await;
        let (script, mut seen) = Script::new(&[(0, b""), (0, b"xPONGx")]);
        let may = Arc::clone(&script.may);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut asked = [0; 4];
                stream.read_exact(&mut asked).await.unwrap();
                let (_, answer) = script.next(format!("{asked:?}")).await;
                for part in answer.chunks(3) {
                    stream.write_all(part).await.unwrap();
                    stream.flush().await.unwrap();
                }
            }
        });
        let probe = "tcp_health_check: {send: {text: '50494e47'}, receive: [{text: '504f4e47'}]}";
        let mesh = mesh(probe, &address);
        let checks = tokio::spawn(Checker::new(Arc::clone(&mesh)).run());
        assert_eq!(seen.recv().await.unwrap(), format!("{:?}", b"PING"));
        assert_eq!(judged(&mesh, &may, &mut seen).await, ["/failed_active_hc"]);
        assert_eq!(judged(&mesh, &may, &mut seen).await, ["healthy"]);
        checks.abort();
    }

    #[tokio::test]
    async fn what_the_loop_cannot_do_is_handed_on() {
        let custom = "custom_health_check: {name: envoy.health_checkers.redis}";
        let mesh = mesh(custom, "127.0.0.1:1");
        let (tell, mut seen) = unbounded_channel();
        let checker = Checker::new(Arc::clone(&mesh)).others(move |check| {
            let tell = tell.clone();
            async move {
                assert_eq!(
                    (check.protocol(), check.extension()),
                    (CheckProtocol::Custom, "envoy.health_checkers.redis")
                );
                let now = check.engine().now();
                check.result(CheckResult::Failed { retriable: false }, now).unwrap();
                tell.send(()).unwrap();
            }
        });
        let checks = tokio::spawn(checker.run());
        seen.recv().await.unwrap();
        assert_eq!(flags(&mesh), ["/failed_active_hc"]);
        checks.abort();
        // Nobody there for it: the host fails as one without connection does, and an event says why, once.
        let alone = self::mesh(custom, "127.0.0.1:1");
        let checks = tokio::spawn(Checker::new(Arc::clone(&alone)).run());
        let mut events = Vec::new();
        while events.len() < 2 {
            events.extend(alone.poll_event());
            tokio::task::yield_now().await;
        }
        let told = events.iter().filter(|event| event.contains("\"nexthop.check_not_performed\"")).count();
        assert_eq!((told, flags(&alone)), (1, vec!["/failed_active_hc".to_owned()]));
        checks.abort();
    }
}
