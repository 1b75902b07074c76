//! What an experiment told, and whether it is what Envoy does.

use serde_json::Value;
use std::collections::BTreeMap;

/// One experiment of one language.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) experiment: String,
    pub(crate) requests: u64,
    pub(crate) success: u64,
    pub(crate) retries: u64,
    pub(crate) backend_requests: u64,
    pub(crate) us_per_attempt: f64,
    /// Attempt number of the last answer, address, count.
    pub(crate) answered_by: BTreeMap<u32, BTreeMap<String, u64>>,
}

impl Run {
    /// Reads a line.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let bad = |what: &str| format!("{what} is missing in the line {line:?}");
        let json: Value =
            serde_json::from_str(line).map_err(|error| format!("{error} in the line {line:?}"))?;
        let number = |name: &str| json[name].as_u64().ok_or_else(|| bad(name));
        let mut answered_by = BTreeMap::new();
        for (attempt, hosts) in json["answered_by"].as_object().ok_or_else(|| bad("answered_by"))? {
            let attempt: u32 = attempt.parse().map_err(|_| bad("an attempt number"))?;
            let hosts = hosts.as_object().ok_or_else(|| bad("a host"))?;
            let counts =
                hosts.iter().map(|(host, count)| (host.clone(), count.as_u64().unwrap_or(0))).collect();
            answered_by.insert(attempt, counts);
        }
        Ok(Self {
            experiment: json["experiment"].as_str().ok_or_else(|| bad("experiment"))?.to_owned(),
            requests: number("requests")?,
            success: number("success")?,
            retries: number("retries")?,
            backend_requests: number("backend_requests")?,
            us_per_attempt: json["us_per_attempt"].as_f64().ok_or_else(|| bad("us_per_attempt"))?,
            answered_by,
        })
    }

    /// Share of requests that succeeded, in percent.
    pub(crate) fn success_rate(&self) -> f64 {
        100.0 * self.success as f64 / self.requests as f64
    }

    /// Backend requests per client request.
    pub(crate) fn amplification(&self) -> f64 {
        self.backend_requests as f64 / self.requests as f64
    }

    /// Whether this is what a recorded Envoy 1.40 did with one request at a time and a backend that fails every
    /// second request: 75 % without retry, 100 % with either retry, and every third request retried. Of the chain
    /// the documents say it: attempt N goes to sub-cluster N.
    ///
    /// Compared in whole percent: a runtime that moves the caller between threads (Go) uses the cursors of several
    /// workers, as an Envoy with several does.
    pub(crate) fn as_envoy(&self) -> bool {
        let percent = |part: u64| (100 * part + self.requests / 2) / self.requests;
        match self.experiment.as_str() {
            "a" => percent(self.success) == 75 && self.retries == 0,
            "b" | "c" => self.success == self.requests && (32..=34).contains(&percent(self.retries)),
            "chain" => {
                let third = self.requests / 3;
                let by =
                    |attempt: u32| self.answered_by.get(&attempt).map_or(0, |hosts| hosts.values().sum());
                self.success == self.requests && (1..=3).all(|attempt| by(attempt) == third)
            }
            _ => false,
        }
    }

    /// What [`as_envoy`](Self::as_envoy) expects, in words.
    pub(crate) fn expected(experiment: &str) -> &'static str {
        match experiment {
            "a" => "75 % succeed",
            "chain" => "100 % succeed, a third of them on each attempt",
            _ => "100 % succeed, every third after a retry",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: &str = r#"{"lang":"x","experiment":"chain","requests":60,"success":60,"attempts":120,"retries":60,
        "backend_requests":120,"us_per_attempt":1.5,
        "answered_by":{"1":{"h1":20},"2":{"h2":20},"3":{"h3":20}}}"#;

    #[test]
    fn judges() {
        let chain = Run::parse(CHAIN).unwrap();
        assert!(chain.as_envoy() && chain.amplification() == 2.0);
        let mut other = chain.clone();
        other.answered_by.remove(&3);
        assert!(!other.as_envoy());
        let a = |success| Run { experiment: "a".into(), requests: 400, success, retries: 0, ..chain.clone() };
        assert!(a(300).as_envoy() && a(299).as_envoy() && !a(297).as_envoy() && !a(400).as_envoy());
        let b = |success, retries| Run {
            experiment: "b".into(),
            requests: 400,
            success,
            retries,
            ..chain.clone()
        };
        assert!(b(400, 133).as_envoy() && b(400, 131).as_envoy());
        assert!(!b(399, 133).as_envoy() && !b(400, 0).as_envoy() && !b(400, 200).as_envoy());
    }

    #[test]
    fn says_what_is_missing() {
        assert!(Run::parse("{}").unwrap_err().starts_with("answered_by is missing"));
        assert!(Run::parse("nonsense").is_err());
    }
}
