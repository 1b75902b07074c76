//! Judge of `health/eds_status`.

use super::{Judge, same, sound};
use crate::json::Json;

/// `first`: port of the first host; the others follow.
pub fn judge(expect: Json, first: i64, hosts: usize) -> Judge {
    Box::new(move |traces| {
        let Some(trace) = traces.first() else { return vec!["nothing was played".to_owned()] };
        let mut out = sound(trace);
        let stat = |name: &str| {
            let stats = trace.stats.get("end");
            stats.and_then(|stats| stats.get(&format!("cluster.c.{name}"))).copied().unwrap_or(0.0) as i64
        };
        let mut counts = vec![0_i64; hosts];
        let mut refused = 0;
        for seen in &trace.requests {
            let port = seen.attempts.first().and_then(|attempt| attempt.host.rsplit_once(':'));
            match port.and_then(|(_, port)| port.parse::<i64>().ok()) {
                Some(port) => counts[(port - first) as usize] += 1,
                None => refused += 1,
            }
        }
        let numbers = |list: &Json| list.items().iter().filter_map(Json::i64).collect::<Vec<i64>>();
        for (key, wanted) in expect.entries() {
            match key.as_str() {
                "panic" => {
                    let all = if wanted.bool() == Some(true) { trace.requests.len() as i64 } else { 0 };
                    same(&mut out, "lb_healthy_panic", &all, &stat("lb_healthy_panic"));
                }
                "requests_per_host" => same(&mut out, key, &numbers(wanted), &counts),
                "used_hosts" => {
                    let used =
                        (0..).zip(&counts).filter(|(_, count)| **count > 0).map(|(at, _)| at).collect();
                    same(&mut out, key, &numbers(wanted), &used);
                }
                "membership" => {
                    for (name, wanted) in wanted.entries() {
                        let got = stat(&format!("membership_{name}"));
                        same(&mut out, name, &wanted.i64().unwrap_or(-1), &got);
                    }
                }
                "membership_excluded" => {
                    same(&mut out, key, &wanted.i64().unwrap_or(-1), &stat("membership_excluded"));
                }
                "no_host" => same(&mut out, key, &wanted.i64().unwrap_or(-1), &refused),
                "healthy_load_percent" => {
                    let (n, share) = (trace.requests.len() as f64, wanted.f64().unwrap_or(0.0) / 100.0);
                    let got = counts.last().copied().unwrap_or(0) as f64;
                    if (got - n * share).abs() > 4.5 * (n * share * (1.0 - share)).sqrt() {
                        out.push(format!("healthy load: expected about {}, got {got}", n * share));
                    }
                }
                // A sample of the share above; texts; flags are seen in what they do.
                "measured_requests_per_host" | "note" | "flags" | "admin_status" => {}
                other => out.push(format!("{other} is not judged")),
            }
        }
        out
    })
}
