//! Judge of `envoy-live` cases: what the recording calls exact is compared exactly, the rest as it says.

use super::{Judge, any, same, sound};
use crate::convert::live_phases;
use crate::coverage::glob;
use crate::json::Json;
use crate::trace::{Seen, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// Recorded times are those of a real machine.
const TOLERANCE_MS: f64 = 40.0;

/// Judges one case.
pub fn judge(value: Json) -> Judge {
    let facts = Facts::new(value);
    Box::new(move |traces| {
        let fitting: Vec<Trace> =
            traces.iter().filter(|trace| facts.starts_as_recorded(trace)).cloned().collect();
        if fitting.is_empty() {
            let sound: Vec<String> = traces.first().map(sound).unwrap_or_default();
            return if sound.is_empty() {
                vec!["no seed gives the recorded first picks".to_owned()]
            } else {
                sound
            };
        }
        any(&fitting, |trace| facts.compare(trace))
    })
}

pub(super) struct Facts {
    pub(super) value: Json,
    names: BTreeMap<String, String>,
    phases: Vec<(String, usize, usize)>,
}

impl Facts {
    fn new(value: Json) -> Self {
        let hosts = value.get("hosts").entries();
        let names = hosts.iter().map(|(name, address)| (address.text(), name.clone())).collect();
        let phases = live_phases(&value);
        Self { value, names, phases }
    }

    fn determinism(&self) -> &Json {
        self.value.get("determinism")
    }

    fn statistical(&self) -> bool {
        self.determinism().get("class").str() == Some("statistical")
    }

    /// Whether a facet is a fact that can be compared one to one.
    pub(super) fn exact(&self, facet: &str) -> bool {
        let fits = |list: &Json| {
            list.items()
                .iter()
                .filter_map(Json::str)
                .any(|pattern| glob(pattern.split(':').next().unwrap_or(pattern), facet))
        };
        if self.statistical() {
            fits(self.determinism().get("exact"))
        } else {
            !fits(self.determinism().get("varies"))
        }
    }

    pub(super) fn host(&self, address: &str) -> String {
        self.names.get(address).cloned().unwrap_or_else(|| address.to_owned())
    }

    fn first(&self, seen: Option<&Seen>) -> Option<String> {
        seen.and_then(|seen| seen.attempts.first()).map(|attempt| self.host(&attempt.host))
    }

    fn starts_as_recorded(&self, trace: &Trace) -> bool {
        let Some(first) = self.determinism().get("first_pick").str() else { return true };
        let picks = self.determinism().get("picks").entries();
        self.first(trace.requests.first()).as_deref() == Some(first)
            && picks.iter().all(|(place, host)| {
                let (label, k) = place.trim_end_matches(']').split_once('[').unwrap_or((place, "0"));
                let start = self.phases.iter().find(|(l, ..)| l == label).map_or(0, |(_, start, _)| *start);
                self.first(trace.requests.get(start + k.parse().unwrap_or(0))).as_deref() == host.str()
            })
    }

    fn compare(&self, trace: &Trace) -> Vec<String> {
        let mut out = sound(trace);
        for recorded in self.value.get("result").get("phases").items() {
            let label = recorded.get("step").text();
            let Some((_, start, count)) = self.phases.iter().find(|(l, ..)| *l == label) else {
                out.push(format!("no step {label}"));
                continue;
            };
            same(&mut out, &format!("{label} requests"), &recorded.get("n").i64(), &Some(*count as i64));
            let seen = trace.requests.get(*start..*start + *count).unwrap_or(&[]);
            same(&mut out, &format!("{label} requests played"), count, &seen.len());
            if let Some(unfinished) = seen.iter().position(|seen| seen.ended.is_none()) {
                out.push(format!("{label} request {unfinished} never ended"));
            }
            self.order(&mut out, &label, recorded, seen);
            self.rows(&mut out, &label, recorded, seen);
            self.counts(&mut out, &label, recorded, seen);
            self.waits(&mut out, &label, recorded, seen);
        }
        self.stats(&mut out, "", self.value.get("result").get("stats"), trace, "end");
        for snapshot in self.value.get("result").get("snapshots").items() {
            let label = snapshot.get("label").text();
            if snapshot.has("stats") && self.exact(&format!("snapshots.{label}")) {
                self.stats(&mut out, &label, snapshot.get("stats"), trace, &label);
            }
        }
        self.events(&mut out, trace);
        out.extend(super::figures::two_plus_two(&self.value, trace));
        out
    }

    fn order(&self, out: &mut Vec<String>, label: &str, recorded: &Json, seen: &[Seen]) {
        let Some(order) = recorded.get("order").str() else { return };
        let wanted: Vec<String> = order.split(' ').map(str::to_owned).collect();
        let got: Vec<String> = seen.iter().map(|seen| self.first(Some(seen)).unwrap_or_default()).collect();
        for (i, seen) in seen.iter().enumerate() {
            if seen.attempts.len() != 1 || seen.status != 200 {
                out.push(format!(
                    "{label} request {i}: expected one attempt and 200, got {} and {}",
                    seen.attempts.len(),
                    seen.status
                ));
            }
        }
        let rotation = self.determinism().get("rotation");
        let fits = match rotation.get("kind").str() {
            Some("index") => {
                let cycle: Vec<String> = rotation.get("order").items().iter().map(Json::text).collect();
                (0..cycle.len()).any(|start| {
                    got.iter().enumerate().all(|(i, host)| *host == cycle[(start + i) % cycle.len()])
                })
            }
            Some("shift") => (0..=wanted.len() / 2).any(|shift| {
                let kept = wanted.len() - shift;
                got.get(shift..) == Some(&wanted[..kept]) || got.get(..kept) == Some(&wanted[shift..])
            }),
            _ => !self.exact(&format!("{label}.hosts")) || got == wanted,
        };
        if !fits {
            out.push(format!("{label} order: expected {order}, got {}", got.join(" ")));
        }
    }

    fn rows(&self, out: &mut Vec<String>, label: &str, recorded: &Json, seen: &[Seen]) {
        let rows = match recorded.get("rows").items() {
            [] => recorded.get("rows_of_one_run").items(),
            rows => rows,
        };
        let exact = |facet: &str| self.exact(&format!("{label}.{facet}"));
        // What answers bring besides: cookies, and the headers that any row names.
        let mut names: BTreeSet<String> = BTreeSet::from(["set-cookie".to_owned()]);
        names
            .extend(rows.iter().flat_map(|row| row.get("rh").items()).map(|header| header.items()[0].text()));
        names.remove("x-envoy-overloaded");
        for (i, (row, seen)) in rows.iter().zip(seen).enumerate() {
            let what = format!("{label} request {i}");
            let listed: Vec<(String, String)> = row.get("at").items().iter().map(pair).collect();
            let mut got: Vec<(String, String)> =
                seen.attempts.iter().map(|attempt| (self.host(&attempt.host), attempt.outcome())).collect();
            let refused = seen.refusal.as_ref().is_some_and(|(refusal, _)| refusal == "overflow");
            if refused {
                // Which host a limit refused is not told by every face.
                got.push((listed.last().map_or_else(|| "-".into(), |(host, _)| host.clone()), "UO".into()));
            }
            let hosts =
                |list: &[(String, String)]| list.iter().map(|(host, _)| host.clone()).collect::<Vec<_>>();
            let outcomes = |list: &[(String, String)]| {
                list.iter().map(|(_, outcome)| outcome.clone()).collect::<Vec<_>>()
            };
            if exact("hosts") {
                same(out, &format!("{what} hosts"), &hosts(&listed), &hosts(&got));
            }
            if exact("outcomes") {
                same(out, &format!("{what} outcomes"), &outcomes(&listed), &outcomes(&got));
            }
            if exact("attempts") {
                same(
                    out,
                    &format!("{what} attempts"),
                    &row.get("n").i64().unwrap_or(listed.len() as i64),
                    &(seen.begun() as i64),
                );
            }
            if exact("status") {
                same(
                    out,
                    &format!("{what} status"),
                    &row.get("st").i64().unwrap_or(200),
                    &seen.status.into(),
                );
            }
            if exact("flags") {
                same(
                    out,
                    &format!("{what} flags"),
                    &set(row.get("fl").str().unwrap_or("-")),
                    &set(&seen.flags),
                );
            }
            if exact("details") {
                same(
                    out,
                    &format!("{what} details"),
                    &said(row.get("det").str().unwrap_or("via_upstream")),
                    &said(&seen.details),
                );
            }
            if exact("clusters") && row.has("at_cl") {
                let wanted: Vec<String> = row.get("at_cl").items().iter().map(Json::text).collect();
                let got: Vec<String> = seen.attempts.iter().map(|attempt| attempt.cluster.clone()).collect();
                same(out, &format!("{what} clusters"), &wanted, &got);
            }
            if let Some(answer) = row.get("answer").str().filter(|_| exact("hosts")) {
                let winner = seen.attempts.iter().find(|attempt| attempt.action == "forward");
                same(
                    out,
                    &format!("{what} answer"),
                    &Some(answer.to_owned()),
                    &winner.map(|winner| self.host(&winner.host)),
                );
            }
            if exact("response_headers") {
                let listed = |name: &str| {
                    let header =
                        row.get("rh").items().iter().find(|header| header.items()[0].str() == Some(name));
                    header.map(|header| header.items()[1].text())
                };
                let got = |headers: &[(String, String)], name: &str| {
                    headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone())
                };
                if refused {
                    let name = "x-envoy-overloaded";
                    same(out, &format!("{what} {name}"), &listed(name), &got(&seen.reply_headers, name));
                }
                for name in &names {
                    same(out, &format!("{what} {name}"), &listed(name), &got(&seen.headers, name));
                }
            }
            if self.short_waits() && exact("outcomes") {
                self.times(out, &what, row, seen);
            }
        }
    }

    /// Whether every back-off is so short that recorded times can be compared.
    fn short_waits(&self) -> bool {
        let text = self.value.get("config").get("virtual_host").to_string();
        let bases = text.matches("\"base_interval\"").count();
        bases > 0
            && bases == text.matches("\"base_interval\":\"0.002s\"").count()
            && bases == text.matches("\"retry_policy\"").count()
            && !text.contains("rate_limited")
    }

    fn times(&self, out: &mut Vec<String>, what: &str, row: &Json, seen: &Seen) {
        let Some(start) = seen.attempts.first().map(|attempt| attempt.sent) else { return };
        for (k, (time, attempt)) in row.get("t").items().iter().zip(&seen.attempts).enumerate() {
            let got = (attempt.sent - start) as f64 / 1e6;
            let slack = TOLERANCE_MS + 20.0 * k as f64;
            if (time.f64().unwrap_or(0.0) - got).abs() > slack {
                out.push(format!("{what} attempt {}: expected at {time} ms, got {got}", attempt.number));
            }
        }
        if let (Some(ms), Some(end)) = (row.get("ms").f64(), seen.ended) {
            let got = (end - start) as f64 / 1e6;
            if (ms - got).abs() > TOLERANCE_MS + 20.0 * seen.attempts.len() as f64 {
                out.push(format!("{what}: expected to end at {ms} ms, got {got}"));
            }
        }
    }

    fn counts(&self, out: &mut Vec<String>, label: &str, recorded: &Json, seen: &[Seen]) {
        for (kind, listed) in recorded.get("counts").entries() {
            let facet = match kind.as_str() {
                "first" | "attempts_at" => "hosts",
                other => other,
            };
            let exact = self.exact(&format!("{label}.{facet}"));
            if !exact && !self.statistical() {
                continue;
            }
            let mut got: BTreeMap<String, i64> = BTreeMap::new();
            let one_host = self.value.get("hosts").entries().len() == 1;
            for seen in seen {
                let refused = seen.attempts.is_empty().then(|| match &seen.refusal {
                    Some((_, resource)) if resource == "requests" && one_host => {
                        self.value.get("hosts").entries()[0].0.clone()
                    }
                    Some((refusal, _)) if refusal == "overflow" => "-".to_owned(),
                    _ => String::new(),
                });
                let keys: Vec<String> = match kind.as_str() {
                    "first" => vec![refused.or_else(|| self.first(Some(seen))).unwrap_or_default()],
                    "attempts_at" => seen.attempts.iter().map(|attempt| self.host(&attempt.host)).collect(),
                    "attempts" => vec![seen.begun().to_string()],
                    "status" => vec![seen.status.to_string()],
                    "flags" => vec![seen.flags.clone()],
                    "clusters" => seen.attempts.iter().map(|attempt| attempt.cluster.clone()).collect(),
                    other => return out.push(format!("{label}: unknown count {other}")),
                };
                for key in keys.into_iter().filter(|key| !key.is_empty()) {
                    *got.entry(key).or_insert(0) += 1;
                }
            }
            let names: BTreeSet<&str> = got
                .keys()
                .map(String::as_str)
                .chain(listed.entries().iter().map(|(name, _)| name.as_str()))
                .collect();
            let n = recorded.get("n").f64().unwrap_or(1.0);
            let tolerance =
                listed.entries().iter().filter_map(|(_, share)| share.get("tol").f64()).fold(0.0, f64::max);
            for name in names {
                let (wanted, got) = (listed.get(name), got.get(name).copied().unwrap_or(0));
                let what = format!("{label} {kind} {name}");
                if exact {
                    let wanted =
                        if wanted.has("runs") { wanted.get("runs").items()[0].i64() } else { wanted.i64() };
                    same(out, &what, &wanted.unwrap_or(0), &got);
                    continue;
                }
                let share = wanted.get("share").f64().unwrap_or(0.0);
                let tolerance = wanted.get("tol").f64().unwrap_or(tolerance);
                if (got as f64 / n - share).abs() > tolerance {
                    out.push(format!(
                        "{what}: expected a share of {share} +- {tolerance}, got {}",
                        got as f64 / n
                    ));
                }
            }
        }
    }

    /// Base and greatest back-off of the step's route in milliseconds.
    fn back_off(&self, label: &str) -> Option<(f64, f64)> {
        let ms = |span: &Json| span.str().map(|text| crate::script::span(text) as f64 / 1e6);
        let steps = self.value.get("script").items();
        let path = steps
            .iter()
            .find(|step| step.get("label").str() == Some(label))?
            .get("path")
            .str()
            .unwrap_or("/");
        let routes = self.value.get("config").get("virtual_host").get("routes").items();
        let fits = |route: &&Json| {
            route.get("match").get("prefix").str().is_some_and(|prefix| path.starts_with(prefix))
        };
        let policy = routes.iter().find(fits)?.get("route").get("retry_policy");
        if policy.has("rate_limited_retry_back_off") {
            return None;
        }
        let base = ms(policy.get("retry_back_off").get("base_interval")).unwrap_or(25.0);
        Some((base, ms(policy.get("retry_back_off").get("max_interval")).unwrap_or(base * 10.0)))
    }

    /// Wait k of a request lies below min(base * 2^(k-1), max); the recorded ones tell how many there are.
    fn waits(&self, out: &mut Vec<String>, label: &str, recorded: &Json, seen: &[Seen]) {
        let recorded = recorded.get("waits_ms").items();
        let Some((base, most)) = self.back_off(label).filter(|_| !recorded.is_empty()) else { return };
        for (i, seen) in seen.iter().enumerate() {
            let retried = |attempt: &&crate::trace::Attempt| attempt.action == "retry";
            let waits: Vec<u64> = seen.attempts.iter().filter(retried).map(|attempt| attempt.after).collect();
            same(out, &format!("{label} request {i} retries"), &recorded.len(), &waits.len());
            for (k, wait) in waits.iter().enumerate() {
                let bound = (base * f64::from(1_u32 << k.min(20))).min(most);
                if *wait as f64 >= bound {
                    out.push(format!(
                        "{label} request {i} wait {}: expected below {bound} ms, got {wait}",
                        k + 1
                    ));
                }
            }
        }
    }
}

/// Flags without their order: the proxy shows them as they were set, a set of bits has none.
pub(super) fn set(flags: &str) -> BTreeSet<&str> {
    flags.split(',').collect()
}

/// Details without what the operating system said.
pub(super) fn said(details: &str) -> String {
    match details.split_once('|') {
        Some((head, _)) => format!("{head}}}"),
        None => details.to_owned(),
    }
}

fn pair(at: &Json) -> (String, String) {
    let text = at.text();
    text.split_once(' ').map_or_else(
        || (text.clone(), String::new()),
        |(host, outcome)| (host.to_owned(), outcome.to_owned()),
    )
}
