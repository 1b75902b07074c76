//! Judges of cases that are told in sentences.

use super::{Judge, same, sound};
use crate::json::Json;

/// What became of one request; what is not said is not looked at.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// To the client.
    pub status: i64,
    /// Comma list, `-` for none.
    pub flags: Option<&'static str>,
    /// Attempts begun.
    pub begun: Option<i64>,
    /// A header of its first attempt, and its value if it is there.
    pub header: Option<(&'static str, Option<String>)>,
    /// A header of the local reply.
    pub reply: Option<(&'static str, String)>,
}

impl Said {
    /// A request answered with this status.
    pub fn status(status: i64) -> Self {
        Self { status, ..Self::default() }
    }
}

/// The requests of each script in order (an empty list: any), and counters as `LABEL CLUSTER.NAME`.
pub fn said(wanted: Vec<Vec<Said>>, counters: Json) -> Judge {
    Box::new(move |traces| {
        let mut out = Vec::new();
        same(&mut out, "scripts played", &wanted.len(), &traces.len());
        for (wanted, trace) in wanted.iter().zip(traces) {
            out.extend(sound(trace));
            if !wanted.is_empty() {
                same(&mut out, "requests", &wanted.len(), &trace.requests.len());
            }
            for (i, (wanted, seen)) in wanted.iter().zip(&trace.requests).enumerate() {
                let what = format!("request {i}");
                same(&mut out, &format!("{what} status"), &wanted.status, &i64::from(seen.status));
                if let Some(flags) = wanted.flags {
                    same(&mut out, &format!("{what} flags"), &flags, &seen.flags.as_str());
                }
                if let Some(begun) = wanted.begun {
                    same(&mut out, &format!("{what} attempts"), &begun, &(seen.begun() as i64));
                }
                if let Some((name, value)) = &wanted.header {
                    let headers = seen.attempts.first().map_or(&[][..], |attempt| &attempt.headers);
                    let got = headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.clone());
                    same(&mut out, &format!("{what} {name}"), value, &got.filter(|value| !value.is_empty()));
                }
                if let Some((name, value)) = &wanted.reply {
                    let got = seen.reply_headers.iter().find(|(n, _)| n == name).map(|(_, value)| value);
                    same(&mut out, &format!("{what} {name}"), &Some(value), &got);
                }
            }
            for (name, wanted) in counters.entries() {
                let (label, name) = name.split_once(' ').unwrap_or(("end", name));
                let stats = trace.stats.get(label);
                let got = stats.and_then(|stats| stats.get(&format!("cluster.{name}"))).copied();
                same(&mut out, name, &wanted.f64(), &Some(got.unwrap_or(0.0)));
            }
        }
        out
    })
}
