//! Experiments whose figures were published, and one that has to come out the same however close the requests are.

use crate::convert::live_phases;
use crate::json::Json;
use crate::trace::Trace;

/// Success in percent and backend requests per client request of the three phases, as published for Envoy 1.39.3
/// with an unknown pattern of failures.
const PUBLISHED: [(f64, f64); 3] = [(75.5, 1.00), (100.0, 1.28), (94.0, 1.25)];

/// What to print beside an experiment with published figures.
pub fn beside(value: &Json, trace: &Trace) -> Vec<String> {
    let name = value.get("name").text();
    if !name.starts_with("experiment_retry_half_failing_host") {
        return Vec::new();
    }
    let mut lines = Vec::new();
    for ((label, start, count), (success, attempts)) in live_phases(value).iter().zip(PUBLISHED) {
        let seen = trace.requests.get(*start..*start + *count).unwrap_or(&[]);
        let good = seen.iter().filter(|seen| seen.status == 200).count() as f64;
        let tries = seen.iter().map(|seen| seen.attempts.len()).sum::<usize>() as f64;
        let n = *count as f64;
        lines.push(format!(
            "{name} {label}: {:.1} % success, {:.2} backend requests per request (published: {success:.1} %, {attempts:.2})",
            100.0 * good / n,
            tries / n
        ));
    }
    lines
}

/// A 2 + 2 breaker serves 4 of 20 requests and refuses 16, be they 5 ms apart or at once.
pub(super) fn two_plus_two(value: &Json, trace: &Trace) -> Vec<String> {
    let mut out = Vec::new();
    if value.get("name").str() != Some("experiment_breaker_2_plus_2") {
        return out;
    }
    for (label, start, count) in live_phases(value).iter().filter(|(label, ..)| label.starts_with("b_")) {
        let seen = trace.requests.get(*start..*start + *count).unwrap_or(&[]);
        let served = seen.iter().filter(|seen| seen.status == 200).count();
        let refused = seen.iter().filter(|seen| seen.status == 503 && seen.flags == "UO").count();
        super::same(&mut out, &format!("{label} served and refused"), &(4, 16), &(served, refused));
    }
    out
}
