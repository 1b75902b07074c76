//! Traces against expectations.

pub mod compact;
mod counters;
pub mod figures;
pub mod gray;
pub mod live;
pub mod outlier;
pub mod sentences;
pub mod statuses;

use crate::trace::Trace;

/// Compares the traces of a case's variants with what the case expects; a sentence per difference.
pub type Judge = Box<dyn Fn(&[Trace]) -> Vec<String>>;

/// Whether documents are accepted or refused.
pub fn accept(wanted: bool) -> Judge {
    Box::new(move |traces| {
        let got = traces.first().and_then(|trace| trace.open);
        let word = |accepted: bool| if accepted { "accepted" } else { "refused" };
        if got == Some(wanted) {
            Vec::new()
        } else {
            vec![format!("expected {}, got {}", word(wanted), got.map_or("nothing", word))]
        }
    })
}

/// Notes a difference.
fn same<T: PartialEq + std::fmt::Debug>(out: &mut Vec<String>, what: &str, wanted: &T, got: &T) {
    if wanted != got {
        out.push(format!("{what}: expected {wanted:?}, got {got:?}"));
    }
}

/// The documents of a case that is about requests were accepted and nothing was misused.
fn sound(trace: &Trace) -> Vec<String> {
    let mut out = Vec::new();
    if trace.open != Some(true) {
        out.push("the documents were refused".to_owned());
    }
    if trace.refused_updates > 0 {
        out.push(format!("{} updates were refused", trace.refused_updates));
    }
    out.extend(trace.misuses.iter().map(|misuse| format!("misuse: {misuse}")));
    out
}

/// One of the variants has to fit: the differences of the best one otherwise.
fn any(traces: &[Trace], compare: impl Fn(&Trace) -> Vec<String>) -> Vec<String> {
    let mut best: Option<Vec<String>> = None;
    for trace in traces {
        let out = compare(trace);
        if out.is_empty() {
            return out;
        }
        if best.as_ref().is_none_or(|best| out.len() < best.len()) {
            best = Some(out);
        }
    }
    best.unwrap_or_else(|| vec!["nothing was played".to_owned()])
}
