//! Judges of `outlier/outcome_mapping` and `outlier/panic`.

use super::{Judge, same, sound};
use crate::json::Json;
use crate::trace::Trace;
use std::collections::BTreeMap;

/// What one attempt (or its retries) should do in one mode.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Successes of each window in order: of answers, and of this side.
    samples: [Vec<bool>; 2],
    increments: Vec<String>,
    resets: Vec<String>,
    attempts: usize,
}

/// What a script shows.
pub enum Seen {
    /// Consecutive detectors with threshold 2; whether local errors are split.
    Counters(Tried, bool),
    /// Failure percentage with this threshold and request volume.
    Window(Tried, u32, usize),
}

impl Tried {
    /// From one mode's expectation.
    pub fn new(expect: &Json, given: &Json) -> Self {
        let list = |name: &str| expect.get(name).items().iter().map(Json::text).collect::<Vec<_>>();
        let samples = |name: &str| list(name).iter().map(|sample| sample == "success").collect::<Vec<bool>>();
        Self {
            samples: [samples("external_success_rate_samples"), samples("local_success_rate_samples")],
            increments: list("increments"),
            resets: list("resets"),
            attempts: given.get("attempts").i64().map_or(1, |n| n as usize),
        }
    }

    /// The failures of a window in percent; `None` = it is empty.
    fn failed(&self, side: usize) -> Option<f64> {
        let all = &self.samples[side];
        let bad = all.iter().filter(|good| !**good).count();
        (!all.is_empty()).then(|| 100.0 * bad as f64 / all.len() as f64)
    }

    /// Thresholds and volumes that together tell the rate and size of both windows.
    pub fn probes(&self) -> Vec<(u32, usize)> {
        let mut probes = vec![(0, 1)];
        for side in 0..2 {
            if let Some(failed) = self.failed(side) {
                let failed = failed as u32;
                let size = self.samples[side].len();
                probes.extend([(failed, 1), (failed + 1, 1), (0, size), (0, size + 1)]);
            }
        }
        probes.sort_unstable();
        probes.dedup();
        probes.retain(|(threshold, _)| *threshold <= 100);
        probes
    }

    /// Detections of one counter that began at 1: by the attempt, and by one more failure after it.
    fn detections(&self, counter: &str) -> [u64; 2] {
        let named = |list: &[String]| list.iter().any(|name| name == counter);
        let (mut count, mut detected) = (u64::from(!named(&self.resets)), 0);
        let mut raise = || {
            count += 1;
            if count == 2 {
                count = 0;
                detected += 1;
            }
            detected
        };
        let mut mid = 0;
        if named(&self.increments) {
            for _ in 0..self.attempts {
                mid = raise();
            }
        }
        [mid, raise()]
    }
}

fn stat(trace: &Trace, label: &str, name: &str) -> u64 {
    let stats = trace.stats.get(label);
    stats.and_then(|stats| stats.get(&format!("cluster.c.{name}"))).copied().unwrap_or(0.0) as u64
}

/// Every script shows what it should.
pub fn outcome(scripts: Vec<Seen>) -> Judge {
    Box::new(move |traces| {
        let mut out = Vec::new();
        same(&mut out, "scripts played", &scripts.len(), &traces.len());
        for (script, trace) in scripts.iter().zip(traces) {
            out.extend(sound(trace));
            let detected = |label: &str, name: &str| {
                stat(trace, label, &format!("outlier_detection.ejections_detected_{name}"))
            };
            match script {
                Seen::Counters(tried, split) => {
                    let local = "consecutive_local_origin_failure";
                    for counter in ["consecutive_5xx", "consecutive_gateway_failure", local] {
                        let wanted =
                            if counter == local && !split { [0, 0] } else { tried.detections(counter) };
                        let got = [detected("mid", counter), detected("end", counter)];
                        same(&mut out, &format!("{counter}, split {split}"), &wanted, &got);
                    }
                }
                Seen::Window(tried, threshold, volume) => {
                    for (side, name) in
                        ["failure_percentage", "local_origin_failure_percentage"].iter().enumerate()
                    {
                        let failed = tried.failed(side).filter(|_| tried.samples[side].len() >= *volume);
                        let wanted = failed.is_some_and(|failed| failed >= f64::from(*threshold));
                        let what = format!("{name} from {threshold} % and {volume} requests on");
                        same(&mut out, &what, &u64::from(wanted), &detected("end", name));
                    }
                }
            }
        }
        out
    })
}

/// Where the last requests went. `names`: hosts by port; `ejected`: how many hosts are out.
pub fn panic(expect: Json, names: BTreeMap<String, String>, ejected: usize, requests: usize) -> Judge {
    Box::new(move |traces| {
        let Some(trace) = traces.first() else { return vec!["nothing was played".to_owned()] };
        let mut out = sound(trace);
        same(
            &mut out,
            "ejected",
            &(ejected as u64),
            &stat(trace, "end", "outlier_detection.ejections_active"),
        );
        let last = trace.requests.get(trace.requests.len().saturating_sub(requests)..).unwrap_or(&[]);
        same(&mut out, "requests", &requests, &last.len());
        let mut counts: BTreeMap<&str, u64> = names.values().map(|name| (name.as_str(), 0)).collect();
        let mut refused = 0;
        for seen in last {
            let host = seen.attempts.first().and_then(|attempt| attempt.host.rsplit_once(':'));
            match host.and_then(|(_, port)| names.get(port)) {
                Some(name) => *counts.entry(name).or_default() += 1,
                None => refused += 1,
            }
            if let Some(status) = expect.get("status").i64() {
                same(&mut out, "status", &status, &i64::from(seen.status));
            }
            if let Some(body) = expect.get("body").str() {
                same(&mut out, "body", &body, &seen.body.as_str());
            }
        }
        same(&mut out, "without a host", &expect.get("no_host").i64().unwrap_or(0), &refused);
        for (name, wanted) in expect.get("requests_per_host").entries() {
            let among: Vec<u64> =
                name.split("_or_").map(|name| counts.get(name).copied().unwrap_or(0)).collect();
            // Of several hosts one was still in use.
            let got = among.iter().copied().max().unwrap_or(0);
            same(&mut out, &format!("requests to {name}"), &wanted.i64().unwrap_or(-1), &(got as i64));
            same(
                &mut out,
                &format!("hosts of {name}"),
                &usize::from(got > 0),
                &among.iter().filter(|n| **n > 0).count(),
            );
        }
        if let Some(wanted) = expect.get("requests_total").i64() {
            same(&mut out, "requests in all", &wanted, &(counts.values().sum::<u64>() as i64));
        }
        if expect.get("all_hosts_used").bool() == Some(true) && counts.values().any(|count| *count == 0) {
            out.push(format!("a host was not used: {counts:?}"));
        }
        let calm = expect.get("in_panic").bool() == Some(false);
        let wanted = expect.get("lb_healthy_panic").i64().unwrap_or(if calm { 0 } else { -1 });
        let panics = |label: &str| stat(trace, label, "lb_healthy_panic");
        same(&mut out, "lb_healthy_panic", &wanted, &(panics("end").saturating_sub(panics("before")) as i64));
        let unknown = |key: &str| {
            ![
                "in_panic",
                "requests_per_host",
                "lb_healthy_panic",
                "requests_total",
                "all_hosts_used",
                "no_host",
                "status",
                "body",
                "note",
            ]
            .contains(&key)
        };
        out.extend(
            expect
                .entries()
                .iter()
                .filter(|(key, _)| unknown(key))
                .map(|(key, _)| format!("{key} is not judged")),
        );
        out
    })
}
