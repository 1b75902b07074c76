//! Judge of `gray`.

use super::{Judge, same, sound};
use crate::json::Json;
use crate::trace::Trace;
use std::collections::BTreeSet;

/// Warnings, and the stage whose fallback each of them tells.
const STAGES: [(&str, &str); 3] =
    [("W-VERSION-FALLBACK", "version"), ("W-TAG-FALLBACK", "tag"), ("W-UNTAGGED-FALLBACK", "tag")];

/// The first `given` requests are those of the case, the others meet whoever may be chosen.
pub fn judge(case: Json, given: usize) -> Judge {
    Box::new(move |traces| {
        let Some(trace) = traces.first() else { return vec!["nothing was played".to_owned()] };
        let mut out = sound(trace);
        let expected = |key: &str| match case.get("engine_expect").has(key) {
            true => case.get("engine_expect").get(key).clone(),
            false => case.get("expect").get(key).clone(),
        };
        let instances = case.get("input").get("instances").items();
        let address = |id: &str| -> String {
            let own = instances.iter().find(|instance| instance.get("id").str() == Some(id));
            own.map_or_else(String::new, |own| {
                format!("{}:{}", own.get("host").text(), own.get("port").text())
            })
        };
        let rewritten = expected("chosen_address");
        let port = |text: &str| text.rsplit_once(':').map(|(_, port)| port.to_owned()).unwrap_or_default();
        let met: Vec<String> = trace
            .requests
            .iter()
            .map(|seen| seen.attempts.first().map_or_else(|| "-".to_owned(), |attempt| attempt.host.clone()))
            .collect();
        let wanted: Vec<String> = expected("chosen")
            .items()
            .iter()
            .map(|id| match id.str() {
                Some(id) if !rewritten.is_null() => format!("{}:{}", rewritten.text(), port(&address(id))),
                Some(id) => address(id),
                None => "-".to_owned(),
            })
            .collect();
        same(&mut out, "chosen", &wanted, &met[..wanted.len().min(met.len())].to_vec());
        let list =
            if case.get("expect").has("eligible") { expected("eligible") } else { expected("candidates") };
        let all: BTreeSet<String> = list.items().iter().filter_map(Json::str).map(address).collect();
        let seen: BTreeSet<String> =
            met[given.min(met.len())..].iter().filter(|host| *host != "-").cloned().collect();
        match rewritten.is_null() {
            true => same(&mut out, "candidates", &all, &seen),
            false => same(&mut out, "candidates", &all.len(), &seen.len()),
        }
        warnings(trace, &expected("warnings"), &mut out);
        out
    })
}

/// Each request falls back at the stages that the case warns of.
fn warnings(trace: &Trace, wanted: &Json, out: &mut Vec<String>) {
    let told: Vec<&str> = wanted.items().iter().filter_map(Json::str).collect();
    for stage in ["version", "tag"] {
        let name = format!("cluster.web.nexthop.filters.{stage}.fallback");
        let Some(count) = trace.stats.get("end").and_then(|stats| stats.get(&name)) else { continue };
        let warned = STAGES.iter().any(|(code, of)| *of == stage && told.contains(code));
        let all = if warned { trace.requests.len() } else { 0 };
        same(out, &name, &all, &(*count as usize));
    }
}
