//! Whole requests against recorded facts that no language's player can show.

use crate::clock::{MILLI, Time};
use crate::engine::{Core, Settings};
use crate::headers::pack;
use crate::inspect::Stat;
use crate::outcome::{
    Decision, Head, Outcome, Verdict, action, failure, finish, flags, kind, note, outcome_bits, reason,
    refusal, wait,
};
use crate::request::Report;
use crate::spec::{
    BackOffSpec, ClusterSource, ClusterSpec, Endpoint, EndpointSpec, Endpoints, ForwardSpec,
    LocalityEndpoints, OutlierSpec, PolicySpec, RateLimitedSpec, ResetFormat, RetryOn, RetrySpec, Specs,
    Thresholds,
};
use crate::worker::Worker;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

mod hedging;
mod lifecycle;

/// An engine over one cluster `c`, whose requests are treated as `forward` says.
struct Mesh {
    core: Core,
    worker: Worker,
    now: Time,
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn group(priority: u32, hosts: &[&str]) -> LocalityEndpoints {
    let endpoints =
        hosts.iter().map(|address| EndpointSpec { address: (*address).into(), ..Default::default() });
    LocalityEndpoints { priority, endpoints: endpoints.map(Endpoint::from).collect(), ..Default::default() }
}

fn cluster(name: &str, hosts: &[&str]) -> ClusterSpec {
    let endpoints = Endpoints { localities: vec![group(0, hosts)], ..Endpoints::default() };
    ClusterSpec { name: name.into(), endpoints, ..ClusterSpec::default() }
}

fn retry(on: &str, num_retries: u32) -> RetrySpec {
    RetrySpec {
        on: RetryOn::parse(on).0,
        num_retries,
        back_off: Some(BackOffSpec { base_ms: 1, max_ms: 1 }),
        ..RetrySpec::default()
    }
}

fn forward(name: &str, timeout: u64, retry: Option<RetrySpec>) -> ForwardSpec {
    ForwardSpec {
        cluster: ClusterSource::Name(name.into()),
        timeout: ms(timeout),
        retry,
        ..ForwardSpec::default()
    }
}

impl Mesh {
    fn new(cluster: ClusterSpec, forward: ForwardSpec) -> Self {
        Self::with(cluster, forward, Settings::default())
    }

    fn with(cluster: ClusterSpec, forward: ForwardSpec, settings: Settings) -> Self {
        let cluster = ClusterSpec { defaults: Some(forward), ..cluster };
        let specs = Specs { clusters: vec![cluster], ..Specs::default() };
        let core = Core::new(&specs, settings, Time(0)).unwrap();
        let worker = core.worker(Time(0));
        Self { core, worker, now: Time(MILLI) }
    }

    fn pass(&mut self, ms: u64) {
        self.now = self.now.plus(ms * MILLI);
    }

    fn begin(&mut self, head: &Head<'_>) -> Decision {
        let mut out = Decision::default();
        let head = Head { target: self.core.resolve("c").unwrap(), ..*head };
        self.core.begin(&mut self.worker, &head, None, self.now, &mut out).unwrap();
        out
    }

    fn choose(&mut self, request: u64) -> Decision {
        let mut out = Decision::default();
        self.core.choose(&mut self.worker, request, self.now, &mut out).unwrap();
        out
    }

    /// The attempt that comes when its wait is over.
    fn next(&mut self, request: u64) -> Decision {
        let mut out = self.choose(request);
        while out.kind == kind::WAIT {
            self.now = self.now.plus(out.wait);
            out = self.choose(request);
        }
        out
    }

    fn report(&mut self, attempt: u64, outcome: &Outcome<'_>, how: Report) -> Verdict {
        self.core.report(&mut self.worker, attempt, outcome, how, self.now).into()
    }

    fn complete(&mut self, attempt: u64, status: u16) -> Verdict {
        self.report(attempt, &Outcome::status(status), Report::Whole)
    }

    fn fail(&mut self, attempt: u64, why: u8) -> Verdict {
        self.report(attempt, &Outcome::failed(why), Report::Fail)
    }

    fn end(&mut self, attempt: u64, outcome: &Outcome<'_>) {
        let verdict: Verdict = self.core.end(&mut self.worker, attempt, outcome, self.now).into();
        assert_eq!(verdict.code, 0);
    }

    /// A block of headers over a wanted set; what nobody wants is left out.
    fn block(&self, set: u32, pairs: &[(&str, &str)]) -> Vec<u8> {
        let (_, names) = self.core.want(set).unwrap();
        let mut block = Vec::new();
        for (name, value) in pairs {
            if let Some(at) = names.iter().position(|wanted| **wanted == **name) {
                pack(&mut block, at as u16, value.as_bytes());
            }
        }
        block
    }

    /// An answer with headers.
    fn answer(&mut self, go: &Decision, status: u16, pairs: &[(&str, &str)], how: Report) -> Verdict {
        let set = if status < 400 { go.want_ok } else { go.want_err };
        let block = self.block(u32::from(set), pairs);
        let set_free = Outcome { headers: &block, ..Outcome::status(status) };
        self.report(go.attempt, &set_free, how)
    }

    /// Counters and gauges that are not zero, below `cluster.c.`
    fn stats(&self) -> BTreeMap<String, u64> {
        let mut stats = BTreeMap::new();
        self.core.stats(&mut |name, stat| {
            let (Stat::Counter(n) | Stat::Gauge(n)) = stat;
            if let Some(name) = name.strip_prefix("cluster.c.").filter(|_| n != 0) {
                stats.insert(name.to_owned(), n);
            }
        });
        stats
    }
}

fn vectors(file: &str, count: usize) -> nexthop_vectors::Cases {
    nexthop_vectors::read(&format!("retry/{file}.json"), count)
}

/// The listed counters of X, and no retry counter that is not listed.
fn same_counters(mesh: &Mesh, delta: &Value, id: &str) {
    let stats = mesh.stats();
    for (name, value) in delta.as_object().unwrap() {
        if let Some(name) = name.strip_prefix("X.") {
            assert_eq!(stats.get(name).copied(), value.as_u64(), "{id}: {name}");
        }
    }
    for (name, value) in stats.iter().filter(|(name, _)| name.contains("retry") && !name.ends_with("xx")) {
        let known = delta.get(format!("X.{name}")).is_some() || name == "retry.upstream_rq_completed";
        assert!(known, "{id}: {name} is {value}");
    }
}

/// Answers that name the end of a limit by the clock on the wall.
#[test]
fn resets_by_the_time_of_day() {
    let mut ran = 0;
    let cases = vectors("backoff_idle_duration_grpc_live", 33);
    for row in &cases.list {
        let id = row["id"].as_str().unwrap();
        // When the answer came, in seconds before the instant that its header names: the recorded delay of the
        // retry, from one to one and a half times that, leaves one whole number in both cases.
        let before = match id {
            "RL unix now+2" | "RL two headers first too long, second ok" => 3,
            _ => continue,
        };
        ran += 1;
        let policy = &row["given"]["route"]["retry_policy"]["rate_limited_retry_back_off"];
        let plan = row["given"]["plan"]["#1"].as_str().unwrap();
        let sent: Vec<(&str, &str)> =
            plan.split(',').filter_map(|word| word.strip_prefix("hdr:")?.split_once('=')).collect();
        let stamp: u64 = sent.last().unwrap().1.parse().unwrap();
        let header = |header: &Value| {
            let format = match header["format"].as_str().unwrap() {
                "SECONDS" => ResetFormat::Seconds,
                _ => ResetFormat::UnixTimestamp,
            };
            (header["name"].as_str().unwrap().to_owned(), format)
        };
        let reset_headers = policy["reset_headers"].as_array().unwrap().iter().map(header).collect();
        let max_ms = policy["max_interval"].as_str().map_or(300_000, |_| 3_000);
        let limited =
            RetrySpec { rate_limited: Some(RateLimitedSpec { reset_headers, max_ms }), ..retry("5xx", 1) };
        let settings = Settings { unix_base: (stamp - before) * 1_000_000_000, ..Settings::default() };
        let mut mesh =
            Mesh::with(cluster("c", &["127.0.0.1:1"]), forward("c", 15_000, Some(limited)), settings);
        let go = mesh.begin(&Head::default());
        let verdict = mesh.answer(&go, 503, &sent, Report::Whole);
        assert_eq!((verdict.action, verdict.reason), (action::RETRY, reason::BACKOFF_RATELIMITED), "{id}");
        let (least, most) = (before as u32 * 1000, before as u32 * 1500);
        assert!((least..most).contains(&verdict.after_ms), "{id}: {}", verdict.after_ms);
        let recorded = row["expect"]["requests"][0]["approx_ms"].as_u64().unwrap() as u32;
        assert!((least..most + 15).contains(&recorded), "{id}: recorded {recorded}");
        let again = mesh.next(go.request);
        assert_eq!((again.kind, again.number), (kind::GO, 2));
        mesh.complete(again.attempt, 200);
        same_counters(&mesh, &row["expect"]["stats_delta"], id);
    }
    assert!(!cases.ours || ran == 2);
}

/// Requests that are answered, retried or given up while their body still arrives.
#[test]
fn bodies_that_still_arrive() {
    let mut ran = 0;
    let cases = vectors("policy_hosts_body_live", 33);
    for row in &cases.list {
        let id = row["id"].as_str().unwrap();
        let early = id.starts_with("early 500") || id.starts_with("timeout .5s; attempt1");
        if !early {
            continue;
        }
        ran += 1;
        let late = Some(RetrySpec {
            back_off: Some(BackOffSpec { base_ms: 5_000, max_ms: 5_000 }),
            ..retry("5xx", 1)
        });
        let (policy, timeout) = match id {
            _ if id.ends_with("507") => (late, 15_000),
            _ if id.ends_with("no retry policy") => (None, 15_000),
            _ if id.contains("timeout 1s") => (Some(retry("5xx", 1)), 1_000),
            _ => (Some(RetrySpec { previous_priorities: Some(1), ..retry("5xx", 1) }), 500),
        };
        let mut spec = cluster("c", &["127.0.0.1:1"]);
        spec.endpoints.localities.push(group(1, &["127.0.0.1:2"]));
        let mut mesh = Mesh::new(spec, forward("c", timeout, policy));
        // What arrives is kept, so it can be sent again.
        let head =
            Head { body: 3, bits: crate::outcome::head_bits::REPLAY, method: "POST", ..Head::default() };
        let go = mesh.begin(&head);
        assert_eq!(go.remaining, crate::outcome::NEVER, "the global limit starts with the complete request");
        mesh.pass(50);
        let verdict = mesh.complete(go.attempt, 500);
        let (status, flag, details);
        match id {
            _ if id.ends_with("507") => {
                assert_eq!(verdict.action, action::RETRY);
                mesh.pass(20);
                mesh.core.note(&mut mesh.worker, go.request, note::RETRY_ABANDONED, mesh.now).unwrap();
                let no = mesh.choose(go.request);
                assert_eq!((no.kind, no.refusal), (kind::REFUSED, refusal::BODY_TOO_LARGE));
                let reply = mesh.core.reply(go.request).unwrap().unwrap();
                assert_eq!(reply.body, row["expect"]["requests"][0]["body"].as_str().unwrap());
                (status, flag, details) = (no.status, no.flags, reply.details);
            }
            _ if id.ends_with("no retry policy") => {
                assert_eq!(verdict.action, action::FORWARD);
                (status, flag, details) = (verdict.status, verdict.flags, "via_upstream".to_owned());
            }
            _ if id.contains("timeout 1s") => {
                assert_eq!(verdict.action, action::RETRY);
                let again = mesh.next(go.request);
                mesh.pass(100);
                mesh.core.note(&mut mesh.worker, go.request, note::BODY_COMPLETE, mesh.now).unwrap();
                mesh.pass(50);
                let verdict = mesh.complete(again.attempt, 500);
                assert_eq!(verdict.action, action::FORWARD);
                (status, flag, details) = (verdict.status, verdict.flags, "via_upstream".to_owned());
            }
            _ => {
                assert_eq!(verdict.action, action::RETRY);
                // Envoy forgets the limit when the body ends during the back-off; here it starts then.
                mesh.core.note(&mut mesh.worker, go.request, note::BODY_COMPLETE, mesh.now).unwrap();
                let again = mesh.next(go.request);
                let address = mesh.core.host(again.host, 0).unwrap().1.address.clone();
                assert_eq!(address, "127.0.0.1:2", "the other priority");
                mesh.now = mesh.now.plus(again.remaining);
                let verdict = mesh.fail(again.attempt, failure::TIMEOUT);
                assert_eq!(verdict.action, action::FORWARD);
                let reply = mesh.core.reply(go.request).unwrap().unwrap();
                (status, flag, details) = (verdict.status, verdict.flags, reply.details);
            }
        }
        let wanted = &row["expect"]["requests"][0];
        assert_eq!(u64::from(status), wanted["status"].as_u64().unwrap(), "{id}");
        assert_eq!(flags::text(flag), wanted["response_flags"].as_str().unwrap(), "{id}");
        assert_eq!(details, wanted["details"].as_str().unwrap(), "{id}");
        same_counters(&mesh, &row["expect"]["stats_delta"], id);
    }
    assert!(!cases.ours || ran == 4);
}

/// Random hosts with `previous_hosts`: the kinds of sequence that were recorded, as often as drawing makes them.
#[test]
fn random_choices() {
    const REQUESTS: usize = 3_000;
    // Which attempts meet a host that was met before, and which one.
    let kind_of = |hosts: &[u64]| -> Vec<usize> {
        hosts.iter().map(|host| hosts.iter().position(|other| other == host).unwrap()).collect()
    };
    let mut ran = 0;
    let cases = vectors("policy_hosts_body_live", 33);
    for row in &cases.list {
        let id = row["id"].as_str().unwrap();
        if !id.contains("RANDOM") {
            continue;
        }
        ran += 1;
        let draws =
            row["given"]["route"]["retry_policy"]["host_selection_retry_max_attempts"].as_u64().unwrap_or(1);
        let policy = RetrySpec {
            previous_hosts: true,
            host_selection_retry_max_attempts: draws as u32,
            ..retry("5xx", 2)
        };
        let spec = ClusterSpec {
            policy: PolicySpec::Random { locality: Default::default() },
            ..cluster("c", &["h:1", "h:2", "h:3"])
        };
        let mut mesh = Mesh::new(spec, forward("c", 15_000, Some(policy)));
        let mut seen: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        for _ in 0..REQUESTS {
            let mut hosts = Vec::new();
            let mut go = mesh.begin(&Head::default());
            loop {
                hosts.push(u64::from(go.host));
                if mesh.complete(go.attempt, 500).action != action::RETRY {
                    break;
                }
                go = mesh.next(go.request);
            }
            assert_eq!(hosts.len(), 3, "{id}");
            *seen.entry(kind_of(&hosts)).or_default() += 1;
        }
        for request in row["expect"]["requests"].as_array().unwrap() {
            let attempts = request["upstream_attempts"].as_array().unwrap();
            let ports: Vec<u64> = attempts.iter().map(|attempt| attempt["port"].as_u64().unwrap()).collect();
            assert!(seen.contains_key(&kind_of(&ports)), "{id}: {ports:?} in {seen:?}");
        }
        // All of the draws of the second attempt meet the first host.
        let again: usize = seen.iter().filter(|(kind, _)| kind[1] == 0).map(|(_, count)| count).sum();
        let chance = (1.0_f64 / 3.0).powi(draws as i32 + 1);
        let wanted = chance * REQUESTS as f64;
        let error = 4.5 * (wanted * (1.0 - chance)).sqrt() + 1.0;
        assert!((again as f64 - wanted).abs() <= error, "{id}: {again} of about {wanted}");
    }
    assert!(!cases.ours || ran == 2);
}

/// What each outcome tells outlier detection and the host's own counters.
#[test]
fn reports_to_outlier_detection() {
    for row in &vectors("outlier_reports_live", 52).list {
        let (id, given, expect) = (row["id"].as_str().unwrap(), &row["given"], &row["expect"]);
        let outcome = given["outcome"].as_str().unwrap();
        let mut spec = ClusterSpec {
            outlier: Some(OutlierSpec {
                consecutive_5xx: 1,
                enforcing_consecutive_5xx: 0,
                consecutive_gateway_failure: 1,
                enforcing_consecutive_gateway_failure: 0,
                split_external_local_origin_errors: given["split_external_local_origin_errors"]
                    .as_bool()
                    .unwrap(),
                consecutive_local_origin_failure: 1,
                enforcing_consecutive_local_origin_failure: 0,
                ..OutlierSpec::default()
            }),
            ..cluster("c", &["127.0.0.1:1"])
        };
        let mut policy = retry("5xx", 0);
        let mut head = Head::default();
        let mut timeout = 1_000;
        match outcome {
            "500 x3 attempts (n2)" => policy.num_retries = 2,
            "per-try timeout" => policy.per_try_timeout = ms(200),
            "per-try idle timeout" => policy.per_try_idle_timeout = ms(200),
            "hedge: soft timeout then 200" => policy.per_try_timeout = ms(200),
            "overflow" => {
                let none = Thresholds { max_requests: 0, ..Thresholds::default() };
                spec.breakers.thresholds[0] = none;
            }
            "cluster max_stream_duration" => spec.max_stream_duration = ms(100),
            "global timeout, alt response 204" => timeout = 300,
            _ if outcome.starts_with("h2") => spec.protocol = crate::spec::Protocol::Http2,
            _ => {}
        }
        let mut route = forward("c", timeout, Some(policy));
        route.hedge = Some(outcome.starts_with("hedge"));
        let mut mesh = Mesh::new(spec, route);
        let mut block = Vec::new();
        if outcome.contains("alt response") {
            let (set, _) = mesh.core.want(0).unwrap();
            block = mesh.block(set, &[("x-envoy-upstream-rq-timeout-alt-response", "1")]);
            head.want = set;
            head.bits = crate::outcome::head_bits::INTERNAL;
        }
        if outcome.starts_with("grpc") {
            let (set, _) = mesh.core.want(0).unwrap();
            block = mesh.block(set, &[("content-type", "application/grpc")]);
            head.want = set;
        }
        head.headers = &block;
        let go = mesh.begin(&head);
        let status = |verdict: Verdict| Some(u64::from(verdict.status));
        let got = match outcome {
            "500 x3 attempts (n2)" => {
                let mut go = go;
                while mesh.complete(go.attempt, 500).action == action::RETRY {
                    go = mesh.next(go.request);
                }
                Some(500)
            }
            "connect refused" => status(mesh.fail(go.attempt, failure::CONNECT_FAILURE)),
            "closed before response" => status(mesh.fail(go.attempt, failure::CONNECTION_TERMINATION)),
            "h2 refused" => status(mesh.fail(go.attempt, failure::REFUSED_STREAM)),
            "closed after headers" | "h2 RST 2 after headers" | "global timeout after headers" => {
                let verdict = mesh.report(go.attempt, &Outcome::status(200), Report::Headers);
                mesh.pass(100);
                let why = match outcome {
                    "closed after headers" => failure::CONNECTION_TERMINATION,
                    "h2 RST 2 after headers" => failure::REMOTE_RESET,
                    _ => failure::TIMEOUT,
                };
                if why == failure::TIMEOUT {
                    mesh.pass(900);
                }
                mesh.fail(go.attempt, why);
                status(verdict)
            }
            "global timeout" | "global timeout, alt response 204" => {
                mesh.pass(timeout);
                status(mesh.fail(go.attempt, failure::TIMEOUT))
            }
            "per-try timeout" => {
                mesh.now = mesh.now.plus(go.try_timeout);
                status(mesh.fail(go.attempt, failure::TIMEOUT))
            }
            "per-try idle timeout" => {
                mesh.pass(200);
                status(mesh.fail(go.attempt, failure::PER_TRY_IDLE_TIMEOUT))
            }
            "hedge: soft timeout then 200" => {
                mesh.now = mesh.now.plus(go.wait);
                let no = mesh.choose(go.request);
                assert_eq!((no.kind, no.refusal), (kind::WAIT, wait::ATTEMPTS), "{id}");
                mesh.pass(100);
                status(mesh.complete(go.attempt, 200))
            }
            "overflow" => {
                assert_eq!((go.kind, go.refusal), (kind::REFUSED, refusal::OVERFLOW), "{id}");
                Some(u64::from(go.status))
            }
            "cluster max_stream_duration" => {
                mesh.pass(100);
                status(mesh.fail(go.attempt, failure::TIMEOUT))
            }
            "client disconnect" => {
                mesh.pass(100);
                mesh.core.finish(&mut mesh.worker, go.request, finish::CLIENT_GONE, mesh.now);
                None
            }
            "grpc real trailers 14" => {
                let verdict = mesh.report(go.attempt, &Outcome::status(200), Report::Headers);
                mesh.end(go.attempt, &Outcome { grpc_status: 14, ..Outcome::default() });
                status(verdict)
            }
            "x-envoy-degraded 200" => {
                status(mesh.answer(&go, 200, &[("x-envoy-degraded", "1")], Report::Whole))
            }
            _ => match outcome.strip_prefix("grpc trailers-only ") {
                Some(number) => {
                    let answer = Outcome { grpc_status: number.parse().unwrap(), ..Outcome::status(200) };
                    status(mesh.report(go.attempt, &answer, Report::Whole))
                }
                None => status(mesh.complete(go.attempt, outcome[..3].parse().unwrap())),
            },
        };
        assert_eq!(got, expect["downstream_status"].as_u64(), "{id}");
        let stats = mesh.stats();
        for (detector, name) in [
            ("5xx", "consecutive_5xx"),
            ("gateway_failure", "consecutive_gateway_failure"),
            ("local_origin_failure", "consecutive_local_origin_failure"),
        ] {
            let key = format!("outlier_detection.ejections_detected_{name}");
            let got = stats.get(&key).copied().unwrap_or(0);
            match &expect["detected"][detector] {
                Value::String(least) => assert!(least == ">=1" && got >= 1, "{id}: {detector} is {got}"),
                wanted => assert_eq!(got, wanted.as_u64().unwrap_or(0), "{id}: {detector}"),
            }
        }
        let host = &mesh.core.host_states("c")[0];
        let wanted = |name: &str| expect["host_counters"][name].as_str().unwrap().parse::<u64>().unwrap();
        assert_eq!(host.rq_success, wanted("rq_success"), "{id}: rq_success");
        assert_eq!(u64::from(host.rq_error), wanted("rq_error"), "{id}: rq_error");
        assert_eq!(u64::from(host.rq_timeout), wanted("rq_timeout"), "{id}: rq_timeout");
        assert_eq!(host.active, 0, "{id}");
    }
}

/// A limit on the whole request that its caller watches over: the connection manager's answer, without a flag.
#[test]
fn the_duration_of_a_request_ends_it() {
    let mut route = forward("c", 1_000, None);
    route.max_stream_duration = Some(ms(100));
    let mut mesh = Mesh::new(cluster("c", &["127.0.0.1:1"]), route);
    let go = mesh.begin(&Head::default());
    assert_eq!(go.remaining, 100 * MILLI);
    mesh.pass(100);
    let verdict: Verdict =
        mesh.core.finish(&mut mesh.worker, go.request, finish::MAX_DURATION, mesh.now).into();
    assert_eq!((verdict.status, verdict.flags), (504, 0));
    let reply = mesh.core.reply(go.request).unwrap().unwrap();
    assert_eq!((reply.details.as_str(), reply.status), ("max_duration_timeout", 504));
    assert_eq!(mesh.stats().get("upstream_rq_504"), None);
    // While the request still arrives it is the client who is late.
    let go = mesh.begin(&Head { body: 3, ..Head::default() });
    let verdict: Verdict =
        mesh.core.finish(&mut mesh.worker, go.request, finish::MAX_DURATION, mesh.now).into();
    assert_eq!(verdict.status, 408);
}

/// An answer cut short is told in its own words.
#[test]
fn a_cut_body_is_a_closed_connection() {
    let mut mesh = Mesh::new(cluster("c", &["127.0.0.1:1"]), forward("c", 1_000, None));
    let go = mesh.begin(&Head::default());
    mesh.report(go.attempt, &Outcome::status(200), Report::Headers);
    mesh.end(go.attempt, &Outcome { bits: outcome_bits::CUT, ..Outcome::default() });
    assert_eq!(mesh.stats().get("upstream_rq_active"), None);
}
