//! What a runner wrote, put back together per request.

use crate::script::words;
use std::collections::BTreeMap;

/// Everything seen in one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Whether the documents were accepted; `None` when the runner never came there.
    pub open: Option<bool>,
    /// Updates refused.
    pub refused_updates: usize,
    /// Requests in the order of the script.
    pub requests: Vec<Seen>,
    /// Counters by label.
    pub stats: BTreeMap<String, BTreeMap<String, f64>>,
    /// Events with an action.
    pub events: Vec<Event>,
    /// Calls that were answered with a misuse, in words.
    pub misuses: Vec<String>,
}

/// One request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Attempts in order.
    pub attempts: Vec<Attempt>,
    /// Waits: reason, nanoseconds if told, instant.
    pub waits: Vec<(String, Option<u64>, u64)>,
    /// Refusal and resource.
    pub refusal: Option<(String, String)>,
    /// Status to the client, 0 while there is none.
    pub status: u16,
    /// Flags to the client.
    pub flags: String,
    /// Details.
    pub details: String,
    /// Body of a local reply.
    pub body: String,
    /// Headers of a local reply.
    pub reply_headers: Vec<(String, String)>,
    /// Headers to add for the client.
    pub headers: Vec<(String, String)>,
    /// The instant of its end.
    pub ended: Option<u64>,
    /// The client gave up.
    pub gone: bool,
}

/// One attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempt {
    /// Its number.
    pub number: u32,
    /// `ip:port`.
    pub host: String,
    /// Owner of the host.
    pub cluster: String,
    /// When it was chosen.
    pub sent: u64,
    /// Limits: to headers, whole, idle, until a hedge.
    pub limits: [Option<u64>; 4],
    /// Headers to add.
    pub headers: Vec<(String, String)>,
    /// What was reported first: a status, or a failure.
    pub report: String,
    /// The verdict on it.
    pub action: String,
    /// Why.
    pub reason: String,
    /// Back-off in milliseconds.
    pub after: u64,
    /// Age at the report.
    pub age: u64,
}

/// An ejection or its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Cluster.
    pub cluster: String,
    /// `ip:port`.
    pub host: String,
    /// `EJECT`, `UNEJECT` ...
    pub action: String,
    /// Detector.
    pub kind: String,
    /// How many times.
    pub ejections: String,
    /// `true` or `false`.
    pub enforced: String,
}

impl Attempt {
    /// In the words of the recordings: a status, or Envoy's flag.
    pub fn outcome(&self) -> String {
        let report = self.report.trim_end_matches('+');
        let timeout = || {
            let limit = self.limits[1].is_some_and(|whole| self.age >= whole);
            if limit { "cancelled" } else { "UT" }
        };
        match report {
            "" => "cancelled",
            "connect_failure" | "connect_timeout" | "local_connect_failure" => "UF",
            "connection_termination" => "UC",
            "remote_reset" | "refused_stream" => "UR",
            "protocol_error" => "UPE",
            "timeout" | "per_try_timeout" => timeout(),
            "per_try_idle_timeout" => "SI",
            other => other,
        }
        .to_owned()
    }
}

impl Seen {
    /// Attempts begun: those sent, and the one that found no host or no permit.
    pub fn begun(&self) -> usize {
        let queued = self.waits.last().is_some_and(|(reason, ..)| reason == "queue");
        let chosen = |(what, _): &(String, String)| match what.as_str() {
            "no_healthy_upstream" | "overflow" => true,
            // The attempt waited for its connection until the request's time was over.
            "timeout" => queued && self.attempts.is_empty(),
            _ => false,
        };
        self.attempts.len() + usize::from(self.refusal.as_ref().is_some_and(chosen))
    }
}

fn pairs(words: &[String]) -> Vec<(String, String)> {
    words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

/// Splits a runner's output into the lines of each case.
pub fn cases(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut cases: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if line.starts_with("[\"case\",") {
            name = words(line).ok().and_then(|words| words.into_iter().nth(1)).unwrap_or_default();
        }
        cases.entry(name.clone()).or_default().push(as_double(line));
    }
    cases
}

/// A statistic above 2^53 as the nearest double: numbers of Node's are doubles.
fn as_double(line: &str) -> String {
    let number = |line: &str| -> Option<String> {
        let (start, end) = line.strip_prefix("[\"stat\",")?.rsplit_once(",\"")?;
        let value: u64 = end.strip_suffix("\"]")?.parse().ok()?;
        (value > 1 << 53).then(|| format!("[\"stat\",{start},\"{}\"]", value as f64))
    };
    number(line).unwrap_or_else(|| line.to_owned())
}

impl Trace {
    /// Reads the lines of one case.
    pub fn read(lines: &[String]) -> Result<Self, String> {
        let mut trace = Self::default();
        for line in lines {
            trace.line(&words(line)?).ok_or_else(|| format!("not a trace line: {line}"))?;
        }
        Ok(trace)
    }

    fn line(&mut self, words: &[String]) -> Option<()> {
        let word = |at: usize| words.get(at).cloned();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let kind = words.first()?.as_str();
        if matches!(
            kind,
            "go" | "wait" | "refused" | "verdict" | "reply" | "end" | "gone" | "done" | "misuse"
        ) {
            let index = number(1)? as usize;
            if self.requests.len() <= index {
                self.requests.resize(index + 1, Seen::default());
            }
            if kind == "misuse" {
                self.misuses.push(words[1..].join(" "));
            }
            return self.requests[index].line(kind, words);
        }
        match kind {
            "case" => {}
            "open" => self.open = Some(word(1)? == "ok"),
            "endpoints" | "update" => self.refused_updates += usize::from(word(1)? != "ok"),
            "stat" => {
                let value = word(3)?.parse().ok()?;
                self.stats.entry(word(1)?).or_default().insert(word(2)?, value);
            }
            "event" => self.events.push(Event {
                cluster: word(2)?,
                host: word(3)?,
                action: word(4)?,
                kind: word(5)?,
                ejections: word(6)?,
                enforced: word(7)?,
            }),
            _ => return None,
        }
        Some(())
    }
}

impl Seen {
    fn line(&mut self, kind: &str, words: &[String]) -> Option<()> {
        let word = |at: usize| words.get(at).cloned();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        match kind {
            "go" => self.attempts.push(Attempt {
                number: number(2)? as u32,
                host: word(3)?,
                cluster: word(4)?,
                sent: number(5)?,
                limits: [number(6), number(7), number(8), number(9)],
                headers: pairs(words.get(10..)?),
                ..Attempt::default()
            }),
            "wait" => self.waits.push((word(2)?, number(3), number(4)?)),
            "refused" => {
                self.refusal = Some((word(2)?, word(3)?));
                self.local(words.get(5..)?)?;
            }
            "verdict" => {
                let of = number(2)? as u32;
                let attempt = self.attempts.iter_mut().find(|attempt| attempt.number == of)?;
                if attempt.report.is_empty() {
                    attempt.report = word(3)?;
                    attempt.age = number(10)?;
                }
                attempt.action = word(4)?;
                attempt.reason = word(5)?;
                attempt.after = number(6).unwrap_or(0);
                // A body that broke has no status of its own; a limit tells which one it was.
                let limit = match word(3)?.as_str() {
                    "per_try_idle_timeout" => "upstream_per_try_idle_timeout",
                    "timeout" => "response_timeout",
                    _ => "",
                };
                if self.status != 0 && number(7)? == 0 && !limit.is_empty() {
                    (self.details, self.flags) = (limit.into(), word(8)?);
                }
                if attempt.action == "forward" && (self.status == 0 || number(7)? != 0) {
                    self.status = number(7)? as u16;
                    self.flags = word(8)?;
                    self.details = "via_upstream".into();
                }
            }
            "reply" => self.local(words.get(2..)?)?,
            "gone" => self.gone = true,
            "done" => {
                self.ended = number(2);
                self.headers = pairs(words.get(3..)?);
            }
            _ => {}
        }
        Some(())
    }

    fn local(&mut self, words: &[String]) -> Option<()> {
        let [status, flags, details, body, headers @ ..] = words else { return None };
        self.status = status.parse().ok()?;
        self.flags.clone_from(flags);
        self.details.clone_from(details);
        self.body.clone_from(body);
        self.reply_headers = pairs(headers);
        Some(())
    }
}
