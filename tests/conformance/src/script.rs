//! The small language that every runner speaks: one command a line, each a JSON list of strings.
//!
//! | command | arguments | the player |
//! |---|---|---|
//! | `case` | name | forgets everything, frees the engine |
//! | `doc` | text | keeps a document for the next `open` or `update` |
//! | `open` | seed, draws (comma list or empty) | makes an engine with one worker and a manual clock; a refused document skips the rest of the case |
//! | `plan` | name | begins what a backend does with one request |
//! | `act` | nanoseconds after the one before, kind, arguments | adds to the plan: `headers` or `complete` (status, grpc status or empty, name, value ...), `end` (grpc status or empty, name, value ...), `fail` (failure), `note` (what), `gone` |
//! | `drop` | host | forgets the host's rules |
//! | `rule` | host or empty, attempt or 0, path prefix, `last` or `cycle`, plan names ... | first rule that fits an attempt gives its plan: its k-th use takes the k-th name, then the last one or from the front |
//! | `request` | key, value ... | adds a request to the batch |
//! | `run` | clients, gap, stagger, `wait` or `on` | starts the batch: that many clients one after the other with a gap, or (0 clients) one each `stagger`; waits for all or goes on |
//! | `connect` | nanoseconds | a request that begins to wait in a queue notes `connected` so much later |
//! | `sleep` | nanoseconds | lets events of that time happen |
//! | `endpoints` | cluster, ClusterLoadAssignment | changes a cluster's endpoints |
//! | `update` | | replaces all documents by the kept ones |
//! | `stats`, `events` | label | writes counters, drains events |
//!
//! The player and its trace are described in `README.md`.

use crate::json::quote;

/// A script being written.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Commands, each a JSON list of strings.
    pub lines: Vec<String>,
    plans: Vec<Vec<Act>>,
}

/// One step of what a backend does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// Nanoseconds after the step before.
    pub after: u64,
    /// Kind and arguments.
    pub words: Vec<String>,
}

impl Act {
    /// A step `after` nanoseconds after the one before.
    pub fn new<S: AsRef<str>>(after: u64, words: impl IntoIterator<Item = S>) -> Self {
        Self { after, words: words.into_iter().map(|word| word.as_ref().to_owned()).collect() }
    }
}

impl Script {
    /// Adds a command.
    pub fn add<S: AsRef<str>>(&mut self, words: impl IntoIterator<Item = S>) {
        self.lines.push(line(words));
    }

    /// Name of a plan, written down when it is new.
    pub fn plan(&mut self, acts: &[Act]) -> String {
        if let Some(at) = self.plans.iter().position(|known| known == acts) {
            return at.to_string();
        }
        let name = self.plans.len().to_string();
        self.plans.push(acts.to_vec());
        self.add(["plan", &name]);
        for act in acts {
            let after = act.after.to_string();
            self.add(["act", &after].into_iter().chain(act.words.iter().map(String::as_str)));
        }
        name
    }
}

/// A JSON list of strings.
pub fn line<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| quote(word.as_ref())).collect();
    format!("[{}]", words.join(","))
}

/// Reads a JSON list of strings.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let value = crate::json::Json::parse(line)?;
    value
        .items()
        .iter()
        .map(|word| word.str().map(str::to_owned).ok_or_else(|| format!("no string: {word}")))
        .collect()
}

/// Nanoseconds of a span as people write it: `"0.5s"`, `"20ms"`, or a number of seconds.
pub fn span(text: &str) -> u64 {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e6),
        None => (text.trim_end_matches('s'), 1e9),
    };
    (number.parse::<f64>().unwrap_or_else(|_| panic!("a span wanted, found {text:?}")) * unit).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_lines() {
        assert_eq!(
            [span("0.5s"), span("20ms"), span("2"), span("0ms")],
            [500_000_000, 20_000_000, 2_000_000_000, 0]
        );
        let text = line(["a", "b\"\\\n", "\u{e9}"]);
        assert_eq!(text, "[\"a\",\"b\\\"\\\\\\n\",\"\u{e9}\"]");
        assert_eq!(words(&text).unwrap(), ["a", "b\"\\\n", "\u{e9}"]);
    }

    #[test]
    fn equal_plans_are_written_once() {
        let mut script = Script::default();
        let ok = [Act::new(5, ["complete", "200", ""])];
        assert_eq!(script.plan(&ok), script.plan(&ok));
        assert_eq!(script.lines, ["[\"plan\",\"0\"]", "[\"act\",\"5\",\"complete\",\"200\",\"\"]"]);
    }
}
