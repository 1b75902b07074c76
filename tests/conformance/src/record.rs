//! One long recorded script that every language has to reproduce word for word.

use crate::json::Json;
use crate::object;
use crate::script::{Act, Script};
use std::path::Path;

/// Name of the recorded script, also in reports.
pub const NAME: &str = "recorded/script.jsonl";
const SCRIPT: &str = "tests/conformance/recorded/script.jsonl";
const EXPECTED: &str = "tests/conformance/recorded/expected.jsonl";

/// Calls made over the whole script, at least.
const CALLS: usize = 1_000;

/// The script and what has to come out.
pub fn read(root: &Path) -> Result<(String, Vec<String>), String> {
    let text =
        |path: &str| std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"));
    let script = text(SCRIPT)?;
    if script != generate() {
        return Err(format!(
            "{SCRIPT} is not what the generator makes; run with --record and look at the change"
        ));
    }
    Ok((script, text(EXPECTED)?.lines().map(str::to_owned).collect()))
}

/// The first difference.
pub fn compare(expected: &[String], got: &[String]) -> Option<String> {
    let at = expected.iter().zip(got).position(|(a, b)| a != b);
    let at = at.or_else(|| (expected.len() != got.len()).then(|| expected.len().min(got.len())))?;
    let line = |lines: &[String]| lines.get(at).map_or("the end", String::as_str).to_owned();
    Some(format!("line {at}: expected {}, got {}", line(expected), line(got)))
}

/// Writes the script anew and what the Rust runner makes of it.
pub fn write(root: &Path) -> Result<(), String> {
    let script = generate();
    let traces = crate::run::play(root, "rust", &[(NAME.to_owned(), script.clone())])?;
    let lines = traces.get(NAME).ok_or("nothing was played")?;
    let calls =
        lines.iter().filter(|line| !line.starts_with("[\"stat\"") && !line.starts_with("[\"done\"")).count();
    if calls < CALLS {
        return Err(format!("{calls} calls were made, {CALLS} wanted"));
    }
    let save =
        |path: &str, text: String| std::fs::write(root.join(path), text).map_err(|error| error.to_string());
    save(SCRIPT, script)?;
    save(EXPECTED, lines.join("\n") + "\n")
}

/// A small generator of its own, so that the script never changes with a dependency.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

const CLUSTERS: [(&str, &str); 5] = [
    ("rr", "ROUND_ROBIN"),
    ("lr", "LEAST_REQUEST"),
    ("ring", "RING_HASH"),
    ("mag", "MAGLEV"),
    ("rnd", "RANDOM"),
];

fn endpoint(port: u64, weight: u64, health: &str) -> Json {
    let socket = object! {"address" => "10.0.0.1", "port_value" => port as i64};
    object! {
        "endpoint" => object! {"address" => object! {"socket_address" => socket}},
        "load_balancing_weight" => weight as i64,
        "health_status" => health,
    }
}

fn assignment(dice: &mut Dice, name: &str, base: u64) -> Json {
    let mut groups = Vec::new();
    for priority in 0..2 {
        let hosts = (0..2 + dice.roll(4)).map(|i| {
            let health = ["HEALTHY", "HEALTHY", "HEALTHY", "UNHEALTHY", "DEGRADED"][dice.roll(5) as usize];
            endpoint(base + 10 * priority + i, 1 + dice.roll(3), health)
        });
        groups.push(object! {"priority" => priority as i64, "lb_endpoints" => Json::List(hosts.collect())});
    }
    object! {"cluster_name" => name, "endpoints" => Json::List(groups)}
}

fn documents(dice: &mut Dice) -> [Json; 2] {
    let mut clusters = Vec::new();
    for (i, (name, policy)) in CLUSTERS.iter().enumerate() {
        let limits = object! {"max_requests" => 6, "max_connections" => 4, "max_pending_requests" => 3, "max_retries" => 2};
        clusters.push(object! {
            "name" => *name,
            "connect_timeout" => "0.5s",
            "lb_policy" => *policy,
            "load_assignment" => assignment(dice, name, 1000 + 100 * i as u64),
            "circuit_breakers" => object! {"thresholds" => Json::List(vec![limits])},
            "outlier_detection" => object! {
                "consecutive_5xx" => 3, "interval" => "1s", "base_ejection_time" => "2s", "max_ejection_percent" => 50,
            },
        });
    }
    let subs = ["rr", "nosuch", "lr", "ring"].map(|name| object! {"name" => name}).to_vec();
    let typed = object! {
        "@type" => "type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig",
        "clusters" => Json::List(subs),
    };
    clusters.push(object! {
        "name" => "all",
        "connect_timeout" => "0.5s",
        "lb_policy" => "CLUSTER_PROVIDED",
        "cluster_type" => object! {"name" => "envoy.clusters.composite", "typed_config" => typed},
    });
    let mut routes = Vec::new();
    for (i, (name, _)) in CLUSTERS.iter().chain(&[("all", "")]).enumerate() {
        let previous = object! {
            "name" => "envoy.retry_host_predicates.previous_hosts",
            "typed_config" => object! {
                "@type" => "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
            },
        };
        let policy = object! {
            "retry_on" => "5xx,connect-failure,reset,retriable-4xx",
            "num_retries" => 3,
            "per_try_timeout" => "0.25s",
            "retry_back_off" => object! {"base_interval" => "0.02s"},
            "retry_host_predicate" => Json::List(if i % 2 == 0 { vec![previous] } else { Vec::new() }),
            "host_selection_retry_max_attempts" => 3,
        };
        let key = object! {"header" => object! {"header_name" => "x-key"}};
        routes.push(object! {
            "name" => *name,
            "match" => object! {"prefix" => format!("/{name}")},
            "route" => object! {
                "cluster" => *name, "timeout" => "1s", "retry_policy" => policy, "hash_policy" => Json::List(vec![key]),
            },
        });
    }
    let host = object! {
        "name" => "v",
        "domains" => Json::List(vec!["*".into()]),
        "routes" => Json::List(routes),
        "include_request_attempt_count" => true,
        "include_attempt_count_in_response" => true,
    };
    [
        object! {"static_resources" => object! {"clusters" => Json::List(clusters)}},
        object! {"name" => "routes", "virtual_hosts" => Json::List(vec![host])},
    ]
}

fn plans(script: &mut Script) -> Vec<String> {
    let status = |after: u64, status: &str| vec![Act::new(after * 1_000_000, ["complete", status, ""])];
    let fail = |after: u64, failure: &str| vec![Act::new(after * 1_000_000, ["fail", failure])];
    let stream = |after: u64, end: Act| vec![Act::new(after * 1_000_000, ["headers", "200", ""]), end];
    [
        status(0, "200"),
        status(5, "200"),
        status(40, "200"),
        status(3, "503"),
        status(1, "500"),
        status(2, "409"),
        status(2, "404"),
        fail(1, "connect_failure"),
        fail(7, "connection_termination"),
        fail(7, "remote_reset"),
        stream(4, Act::new(30_000_000, ["end", ""])),
        stream(4, Act::new(9_000_000, ["fail", "remote_reset"])),
        vec![Act::new(400_000_000, ["complete", "200", ""])],
        vec![Act::new(100_000_000, ["gone"])],
    ]
    .iter()
    .map(|acts| script.plan(acts))
    .collect()
}

/// The script, always the same.
pub fn generate() -> String {
    let mut dice = Dice(0x005e_ed0f_4e47_0b57);
    let mut script = Script::default();
    script.add(["case", NAME]);
    let documents = documents(&mut dice);
    for document in &documents {
        script.add(["doc", &document.to_string()]);
    }
    script.add(["open", "20261", ""]);
    let plans = plans(&mut script);
    for cluster in 0..CLUSTERS.len() as u64 {
        for port in (0..2).flat_map(|priority| (0..6).map(move |i| 1000 + 100 * cluster + 10 * priority + i))
        {
            let good = dice.roll(3) > 0;
            let turns: Vec<String> = (0..3 + dice.roll(4))
                .map(|_| {
                    plans[if good && dice.roll(4) > 0 { dice.roll(3) } else { dice.roll(plans.len() as u64) }
                        as usize]
                        .clone()
                })
                .collect();
            let host = format!("10.0.0.1:{port}");
            script.add(["rule", &host, "0", "", "cycle"].into_iter().chain(turns.iter().map(String::as_str)));
        }
    }
    for round in 0..30 {
        for _ in 0..12 {
            let (name, _) =
                CLUSTERS.iter().chain(&[("all", "")]).nth(dice.roll(6) as usize).expect("six names");
            let path = format!("/{name}/{}", dice.roll(100));
            let key = format!("k{}", dice.roll(50));
            script.add(["request", "authority", "x", "path", &path, "h:x-key", &key]);
        }
        let (clients, stagger) = if round % 3 == 0 { ("0", dice.roll(8) * 1_000_000) } else { ("3", 0) };
        script.add(["run", clients, &(dice.roll(5) * 1_000_000).to_string(), &stagger.to_string(), "wait"]);
        script.add(["sleep", &(dice.roll(900) * 1_000_000).to_string()]);
        if round % 4 == 1 {
            let cluster = dice.roll(CLUSTERS.len() as u64);
            let name = CLUSTERS[cluster as usize].0;
            let text = assignment(&mut dice, name, 1000 + 100 * cluster).to_string();
            script.add(["endpoints", name, &text]);
        }
        if round == 17 {
            for document in &documents {
                script.add(["doc", &document.to_string()]);
            }
            script.add(["update"]);
        }
    }
    script.add(["request", "authority", "x", "path", "/nowhere"]);
    script.add(["request", "cluster", "rr", "path", "/named"]);
    script.add(["run", "1", "0", "0", "wait"]);
    script.add(["stats", "end"]);
    script.add(["events", "end"]);
    script.lines.join("\n") + "\n"
}
