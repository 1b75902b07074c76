//! Live records of the `retry` folder that are told in sentences; the documents are written by hand.

use super::{Converted, LOCAL, SOURCE, compact, plan};
use crate::json::Json;
use crate::judge::sentences::{Said, said};
use crate::object;
use crate::script::Script;
use crate::vectors::Case;

/// One cluster X, one host, and what the route and the thresholds say.
struct Stage {
    route: Json,
    thresholds: Vec<Json>,
    kind: &'static str,
    hosts: usize,
}

impl Stage {
    fn new(retry: Json) -> Self {
        let mut retry = retry;
        retry.set("retry_back_off", object! {"base_interval" => "0.001s", "max_interval" => "0.001s"});
        Self {
            route: object! {"cluster" => "X", "timeout" => "60s", "retry_policy" => retry},
            thresholds: Vec::new(),
            kind: "plain",
            hosts: 1,
        }
    }

    /// Retries of a 500, as many, with these limits.
    fn limited(retries: i64, limits: Json) -> Self {
        let header = object! {"name" => "retry-after", "format" => "SECONDS"};
        let late = object! {"reset_headers" => Json::List(vec![header])};
        let mut stage = Self::new(object! {
            "retry_on" => "5xx", "num_retries" => retries, "rate_limited_retry_back_off" => late,
        });
        stage.thresholds = vec![limits];
        stage
    }

    fn documents(&self, script: &mut Script) {
        let cluster = |name: &str, port: i64| {
            let socket = object! {"address" => "127.0.0.1", "port_value" => port};
            let host = object! {"endpoint" => object! {"address" => object! {"socket_address" => socket}}};
            let group = object! {"lb_endpoints" => Json::List(vec![host; self.hosts])};
            let assignment = object! {"cluster_name" => name, "endpoints" => Json::List(vec![group])};
            object! {"name" => name, "connect_timeout" => "1s", "load_assignment" => assignment}
        };
        let mut clusters = vec![cluster("A", 27101), cluster("B", 27102)];
        let mut outer = cluster("X", 27101);
        if self.kind != "plain" {
            let entries = ["A", "B"].map(|name| match self.kind {
                "composite" => object! {"name" => name},
                _ => name.into(),
            });
            let typed = object! {
                "@type" => format!("type.googleapis.com/envoy.extensions.clusters.{}.v3.ClusterConfig", self.kind),
                "clusters" => Json::List(entries.to_vec()),
            };
            outer = object! {
                "name" => "X",
                "connect_timeout" => "1s",
                "lb_policy" => "CLUSTER_PROVIDED",
                "cluster_type" => object! {"name" => format!("envoy.clusters.{}", self.kind), "typed_config" => typed},
            };
        }
        if !self.thresholds.is_empty() {
            outer.set("circuit_breakers", object! {"thresholds" => Json::List(self.thresholds.clone())});
        }
        clusters.push(outer);
        let bootstrap = object! {"static_resources" => object! {"clusters" => Json::List(clusters)}};
        let route = object! {"match" => object! {"prefix" => "/"}, "route" => self.route.clone()};
        let host = object! {
            "name" => "v",
            "domains" => Json::List(vec!["*".into()]),
            "routes" => Json::List(vec![route]),
            "include_attempt_count_in_response" => true,
        };
        let routes = object! {"name" => "routes", "virtual_hosts" => Json::List(vec![host])};
        script.add(["doc", &bootstrap.to_string()]);
        script.add(["doc", &routes.to_string()]);
    }

    fn open(&self) -> Script {
        let mut script = Script::default();
        self.documents(&mut script);
        script.add(["open", "1", ""]);
        script
    }
}

/// What a backend does with the attempts of a path; attempt 0 stands for all others.
fn backend(script: &mut Script, path: &str, attempts: &[(u32, &str)]) -> Result<(), String> {
    for (attempt, words) in attempts {
        plan::rule(script, "", &attempt.to_string(), path, "last", &[plan::backend(words)?])?;
    }
    Ok(())
}

fn request(script: &mut Script, path: &str, more: &[&str]) {
    let words = ["request", "authority", "x", "path", path, "source", SOURCE, "local", LOCAL];
    script.add(words.into_iter().chain(more.iter().copied()));
}

fn burst(script: &mut Script, path: &str, count: i64, stagger_ms: u64, wait: &str) {
    for _ in 0..count {
        request(script, path, &[]);
    }
    script.add(["run", "0", "0", &(stagger_ms * 1_000_000).to_string(), wait]);
}

fn sleep(script: &mut Script, ms: u64) {
    script.add(["sleep", &(ms * 1_000_000).to_string()]);
}

pub(super) fn headers(case: &Case) -> Result<Converted, String> {
    let given = case.given();
    let internal = ["internal", "1"];
    let once = |retries: i64| Stage::new(object! {"retry_on" => "5xx", "num_retries" => retries});
    let timed = |timeout: &str, retry: Json| {
        let mut stage = Stage::new(retry);
        stage.route.set("timeout", timeout.into());
        stage
    };
    match case.id.split(':').next().unwrap_or("") {
        "default internal-address config" | "use_remote_address with a loopback client is external" => {
            let mut script = once(1).open();
            backend(&mut script, "", &[(0, "500")])?;
            let headers = given.get("request_headers").entries().iter();
            let headers: Vec<String> =
                headers.flat_map(|(name, value)| [format!("h:{name}"), value.text()]).collect();
            request(&mut script, "/", &headers.iter().map(String::as_str).collect::<Vec<_>>());
            script.add(["run", "1", "0", "0", "wait"]);
            let begun = case.expect().get("attempts").i64();
            Ok((vec![script], said(vec![vec![Said { begun, ..Said::status(500) }]], object! {})))
        }
        "number syntax of x-envoy-max-retries" => {
            let mut script = once(given.get("policy_num_retries").i64().unwrap_or(0)).open();
            backend(&mut script, "", &[(0, "500")])?;
            for value in given.get("header_values").items() {
                let value = value.text();
                let more = [&internal[..], &["h:x-envoy-max-retries", &value]].concat();
                request(&mut script, "/", &more);
            }
            script.add(["run", "1", "0", "0", "wait"]);
            let begun = case.expect().get("attempts").items().iter();
            let wanted = begun.map(|begun| Said { begun: begun.i64(), ..Said::status(500) }).collect();
            Ok((vec![script], said(vec![wanted], object! {})))
        }
        "x-envoy-upstream-rq-timeout-ms 0 means no global timeout"
        | "x-envoy-upstream-rq-per-try-timeout-ms 0 switches the policy value off" => {
            let (stage, name) = if given.has("policy_per_try") {
                let retry =
                    object! {"retry_on" => "5xx", "per_try_timeout" => given.get("policy_per_try").clone()};
                (timed(&given.get("route_timeout").text(), retry), "h:x-envoy-upstream-rq-per-try-timeout-ms")
            } else {
                let retry = object! {"retry_on" => "5xx"};
                (timed(&given.get("route_timeout").text(), retry), "h:x-envoy-upstream-rq-timeout-ms")
            };
            let mut script = stage.open();
            backend(&mut script, "", &[(0, &given.get("backend").text())])?;
            request(&mut script, "/", &[&internal[..], &[name, &given.get("header").text()]].concat());
            script.add(["run", "1", "0", "0", "wait"]);
            let told = case.expect().get("expected_timeout_header").str().map(str::to_owned);
            let wanted = Said {
                begun: Some(1),
                header: Some(("x-envoy-expected-rq-timeout-ms", told)),
                ..Said::status(case.expect().get("status").i64().unwrap_or(0))
            };
            Ok((vec![script], said(vec![vec![wanted]], object! {})))
        }
        "gRPC local answers" => {
            let (mut scripts, mut wanted) = (Vec::new(), Vec::new());
            let expect = case.expect();
            for (at, what) in given.items().iter().enumerate() {
                let mut stage = match what.str() {
                    Some("global timeout") => timed("0.2s", object! {"retry_on" => "5xx"}),
                    Some("per-try timeout") => timed(
                        "2s",
                        object! {"retry_on" => "reset", "num_retries" => 0, "per_try_timeout" => "0.1s"},
                    ),
                    Some("no host") => once(1),
                    _ => return Err(format!("an unknown answer {what}")),
                };
                stage.hosts = usize::from(what.str() != Some("no host"));
                let mut script = stage.open();
                backend(&mut script, "", &[(0, "hang")])?;
                request(&mut script, "/", &["method", "POST", "h:content-type", "application/grpc"]);
                script.add(["run", "1", "0", "0", "wait"]);
                scripts.push(script);
                wanted.push(vec![Said {
                    reply: Some(("grpc-status", expect.get("grpc_status").items()[at].text())),
                    ..Said::status(expect.get("http_status").items()[at].i64().unwrap_or(0))
                }]);
            }
            Ok((scripts, said(wanted, object! {})))
        }
        other => Err(format!("no document for {other}")),
    }
}

/// `previous_priorities` over sub-clusters of different height, in the compact form.
pub(super) fn priorities(case: &Case) -> Result<Converted, String> {
    let given = case.given();
    let port = |cluster: &str, priority: i64| {
        28_001 + priority + 10 * i64::from(cluster.bytes().next().unwrap_or(b'A') - b'A')
    };
    let mut clusters = Vec::new();
    for name in ["A", "B", "C"] {
        let mut priorities = Vec::new();
        for (priority, text) in (0..).zip(given.get(name).text().split(',').map(str::trim)) {
            let mut host = object! {"port" => port(name, priority)};
            if text.ends_with("unhealthy") {
                host.set("health", "UNHEALTHY".into());
            }
            priorities.push(object! {"priority" => priority, "hosts" => Json::List(vec![host])});
        }
        clusters.push(object! {"name" => name, "type" => "static", "priorities" => Json::List(priorities)});
    }
    let names = ["A", "B", "C"].map(Json::from).to_vec();
    clusters.push(object! {"name" => "X", "type" => "composite", "clusters" => Json::List(names)});
    let typed = object! {"@type" => "PreviousPrioritiesConfig", "update_frequency" => given.get("update_frequency").clone()};
    let plugin = object! {"name" => "envoy.retry_priorities.previous_priorities", "typed_config" => typed};
    let retry = object! {
        "retry_on" => "5xx", "num_retries" => given.get("num_retries").clone(), "retry_priority" => plugin,
        "retry_back_off" => object! {"base_interval" => "0.001s", "max_interval" => "0.001s"},
    };
    let world = object! {
        "clusters" => Json::List(clusters),
        "route" => object! {"cluster" => "X", "retry_policy" => retry},
        "plan" => object! {"*" => "500"},
    };
    let attempts = case.expect().get("sequence").items().iter().zip(1..).map(|(place, attempt)| {
        let place = place.text();
        let (name, priority) = place.split_once(".P").unwrap_or((&place, "0"));
        object! {"port" => port(name, priority.parse().unwrap_or(0)), "attempt" => attempt}
    });
    let expect = object! {"status" => 500, "upstream_attempts" => Json::List(attempts.collect())};
    compact::convert_as(case, &world, &expect)
}

/// Which of several failing requests are retried.
/// `breakers/retry_live.json`: requests that are sent at once and fail at every attempt.
pub(super) fn failing(case: &Case) -> Result<Converted, String> {
    let (given, expect) = (case.given(), case.expect());
    let mut limits = given.get("thresholds").clone();
    if limits.has("retry_budget") {
        let mut budget = object! {};
        for (key, value) in limits.get("retry_budget").entries() {
            match key.as_str() {
                "budget_percent" => budget.set(key, object! {"value" => value.clone()}),
                "budget_interval_ms" => {
                    budget.set("budget_interval", format!("{}s", value.i64().unwrap_or(0) / 1000).into());
                }
                _ => budget.set(key, value.clone()),
            }
        }
        limits.set("retry_budget", budget);
    }
    let retries = given.get("num_retries").i64().ok_or("no number of retries")?;
    let looks_back = limits.get("retry_budget").has("budget_interval");
    let mut stage = Stage::limited(retries, limits);
    if given.get("thresholds").entries().is_empty() {
        stage.thresholds.clear();
    }
    let every = given.get("every_attempt").text();
    let ms = every.split(' ').rev().nth(1).and_then(|ms| ms.parse::<u32>().ok()).ok_or("no delay")?;
    // Recorded with a back-off of a second; and where the limit counts what began lately, all decided before the first
    // retry began.
    let slow = given.get("retry_back_off_ms").i64().is_none() || looks_back;
    let told = if slow { "hdr:retry-after=1," } else { "" };
    let mut script = stage.open();
    backend(&mut script, "", &[(0, &format!("sleep={},{told}503", f64::from(ms) / 1000.0))])?;
    burst(&mut script, "/", given.get("simultaneous_requests").i64().unwrap_or(0), 0, "wait");
    script.add(["stats", "end"]);
    let count = |key: &str| expect.get(key).i64().unwrap_or(0);
    let [spent, refused] =
        ["upstream_rq_retry_limit_exceeded", "upstream_rq_retry_overflow"].map(|key| count(key) as usize);
    let mut wanted = vec![Said { begun: Some(1 + retries), flags: Some("URX"), ..Said::status(503) }; spent];
    wanted.extend(vec![Said { begun: Some(1), flags: Some("UO"), ..Said::status(503) }; refused]);
    let mut counters = object! {};
    for (key, value) in expect.entries().iter().filter(|(key, _)| key.starts_with("upstream_rq_")) {
        counters.set(&format!("end X.{key}"), value.clone());
    }
    Ok((vec![script], said(vec![wanted], counters)))
}

pub(super) fn breaker(case: &Case) -> Result<Converted, String> {
    let (given, expect) = (case.given(), case.expect());
    let budget = |percent: i64, least: i64| {
        let percent = object! {"value" => percent};
        object! {"max_retries" => 0, "retry_budget" => object! {"budget_percent" => percent, "min_retry_concurrency" => least}}
    };
    let refused = || Said { begun: Some(1), flags: Some("UO"), ..Said::status(500) };
    let retried = || Said { begun: Some(2), flags: Some("-"), ..Said::status(200) };
    // So many retried, then so many refused: all of them fail once, in this order.
    let some = |stage: Stage, yes: i64, no: i64| -> Result<Converted, String> {
        let mut script = stage.open();
        backend(&mut script, "", &[(1, "500"), (0, "sleep=0.5,200")])?;
        burst(&mut script, "/", yes + no, 0, "on");
        sleep(&mut script, 100);
        script.add(["stats", "mid"]);
        sleep(&mut script, 2_000);
        script.add(["stats", "end"]);
        let mut wanted = vec![retried(); yes as usize];
        wanted.extend(vec![refused(); no as usize]);
        let counters = object! {
            "end X.upstream_rq_retry" => yes, "end X.upstream_rq_retry_overflow" => no,
        };
        Ok((vec![script], said(vec![wanted], counters)))
    };
    let [yes, no] = ["retried", "refused"].map(|key| expect.get(key).i64().unwrap_or(0));
    match case.id.as_str() {
        "default max_retries is 3" => {
            let mut stage = Stage::limited(1, object! {});
            stage.thresholds.clear();
            let (scripts, judge) = some(stage, yes, no)?;
            let gauge = object! {"mid X.circuit_breakers.default.rq_retry_open" => expect.get("rq_retry_open_gauge").clone()};
            let open = said(vec![Vec::new()], gauge);
            Ok((scripts, Box::new(move |traces| [judge(traces), open(traces)].concat())))
        }
        "slot held while the retry attempt is in flight"
        | "slot held during back-off"
        | "slot freed at response headers, not at end of body" => {
            let mut script = Stage::limited(1, object! {"max_retries" => 1}).open();
            let (first, second) = match case.id.as_str() {
                "slot held while the retry attempt is in flight" => ("500", "sleep=0.4,200"),
                "slot held during back-off" => ("hdr:retry-after=1,500", "200"),
                _ => ("500", "200,sleep=0.6"),
            };
            let freed = case.id.starts_with("slot freed");
            backend(&mut script, "/one", &[(1, first), (0, second)])?;
            backend(&mut script, "/two", &[(1, "500"), (0, "200")])?;
            burst(&mut script, "/one", 1, 0, "on");
            sleep(&mut script, if freed { 200 } else { 100 });
            burst(&mut script, "/two", 1, 0, "wait");
            sleep(&mut script, 3_000);
            burst(&mut script, "/two", 1, 0, "wait");
            let second = if freed { retried() } else { refused() };
            Ok((vec![script], said(vec![vec![retried(), second, retried()]], object! {})))
        }
        "thresholds are per routing priority" => {
            let mut stage = Stage::limited(1, Json::Null);
            stage.thresholds = given.get("thresholds").items().to_vec();
            stage.route.set("priority", given.get("route_priority").clone());
            some(stage, 1, 0)
        }
        "budget 60 %, min 1: failing attempt counts itself" | "budget_interval counts recent requests" => {
            let mut limits = object! {"max_retries" => 0};
            let mut spec = object! {};
            for (key, value) in given.get("retry_budget").entries() {
                let wrapped = key == "budget_percent";
                spec.set(
                    key,
                    if wrapped {
                        object! {"value" => value.clone()}
                    } else {
                        value.clone()
                    },
                );
            }
            limits.set("retry_budget", spec);
            let mut script = Stage::limited(1, limits).open();
            backend(&mut script, "/hold", &[(0, "sleep=30,200")])?;
            backend(&mut script, "/ok", &[(0, "200")])?;
            backend(&mut script, "/fail", &[(1, "hdr:retry-after=2,500"), (0, "200")])?;
            let held = given.get("active_long_requests").i64().unwrap_or(0);
            let before = given.get("ok_requests_just_before").i64().unwrap_or(0);
            burst(&mut script, "/hold", held, 1, "on");
            sleep(&mut script, 20);
            burst(&mut script, "/ok", before, 0, "wait");
            burst(&mut script, "/fail", yes + no, 10, "on");
            sleep(&mut script, 40_000);
            let plain = Said { begun: Some(1), ..Said::status(200) };
            let mut wanted = vec![plain; (held + before) as usize];
            wanted.extend(vec![retried(); yes as usize]);
            wanted.extend(vec![refused(); no as usize]);
            Ok((vec![script], said(vec![wanted], object! {})))
        }
        "budget 20 %, default min 3" => {
            let percent = object! {"value" => 20};
            let limits =
                object! {"max_retries" => 0, "retry_budget" => object! {"budget_percent" => percent}};
            some(Stage::limited(1, limits), yes, no)
        }
        "empty retry_budget message = 20 % / 3" => {
            some(Stage::limited(1, object! {"max_retries" => 0, "retry_budget" => object! {}}), yes, no)
        }
        "budget 0 %, min 0 forbids retries" => some(Stage::limited(1, budget(0, 0)), yes, no),
        "unit: budget overrides max_retries 0" => some(Stage::limited(1, budget(20, 3)), 1, 0),
        "unit: budget 0/0 overrides max_retries 5" => {
            let mut limits = budget(0, 0);
            limits.set("max_retries", 5.into());
            some(Stage::limited(1, limits), 0, 1)
        }
        "unit: minimum concurrency ladder" => {
            let mut script = Stage::limited(1, budget(20, 3)).open();
            backend(&mut script, "/hold", &[(0, "sleep=30,200")])?;
            backend(&mut script, "/fail", &[(1, "hdr:retry-after=20,500"), (0, "200")])?;
            burst(&mut script, "/fail", 4, 1, "on");
            sleep(&mut script, 10);
            burst(&mut script, "/hold", 20, 0, "on");
            sleep(&mut script, 10);
            burst(&mut script, "/fail", 2, 1, "on");
            sleep(&mut script, 10);
            Stage::limited(1, budget(100, 3)).documents(&mut script);
            script.add(["update"]);
            burst(&mut script, "/fail", 1, 1, "on");
            sleep(&mut script, 60_000);
            let plain = Said { begun: Some(1), ..Said::status(200) };
            let steps = expect.get("status").items().iter().map(|status| match status.str() {
                Some("Yes") => retried(),
                _ => refused(),
            });
            let steps: Vec<Said> = steps.collect();
            let mut wanted = vec![retried(); 2];
            wanted.extend_from_slice(&steps[..2]);
            wanted.extend(vec![plain; 20]);
            wanted.extend_from_slice(&steps[2..]);
            Ok((vec![script], said(vec![wanted], object! {})))
        }
        "outer budget over composite sees no active requests"
        | "outer budget over aggregate sees no active requests"
        | "control: same budget on a plain cluster" => {
            let limits =
                if given.has("threshold") { given.get("threshold") } else { given.get("outer_threshold") };
            let mut limits = limits.clone();
            let percent = limits.get("retry_budget").get("budget_percent").clone();
            limits.get_mut("retry_budget").set("budget_percent", object! {"value" => percent});
            let mut stage = Stage::limited(2, limits);
            stage.kind = match given.get("outer").text().split(' ').next() {
                Some("composite") => "composite",
                Some("aggregate") => "aggregate",
                _ => "plain",
            };
            let mut script = stage.open();
            backend(&mut script, "", &[(0, "500")])?;
            burst(&mut script, "/", 1, 0, "wait");
            script.add(["stats", "end"]);
            let flags = if yes == 0 { "UO" } else { "URX" };
            let wanted = Said { begun: Some(1 + yes), flags: Some(flags), ..Said::status(500) };
            let mut counters = object! {"end X.upstream_rq_retry" => yes};
            for key in ["upstream_rq_retry_overflow", "upstream_rq_retry_limit_exceeded"] {
                if expect.has(key) {
                    counters.set(&format!("end X.{key}"), expect.get(key).clone());
                }
            }
            Ok((vec![script], said(vec![vec![wanted]], counters)))
        }
        other => Err(format!("no document for {other}")),
    }
}
