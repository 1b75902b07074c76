//! What each port does.

use hyper::HeaderMap;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// How a port answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Always 200.
    Good,
    /// 500 on every second request.
    HalfFailing,
    /// 500 when the header `x-fail` is this number or more; `None` never fails.
    Provider(Option<u32>),
}

/// The ports as the examples' documents write them.
pub const PORTS: [(u16, Behaviour); 5] = [
    (18101, Behaviour::Good),
    (18102, Behaviour::HalfFailing),
    (18111, Behaviour::Provider(Some(1))),
    (18112, Behaviour::Provider(Some(2))),
    (18113, Behaviour::Provider(None)),
];

/// What one request is answered with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// `None` = close the connection.
    pub(crate) status: Option<u16>,
    pub(crate) delay: Duration,
}

/// Requests each port got since the last reset, by the number written in the documents.
#[derive(Default)]
pub(crate) struct Counts(Mutex<BTreeMap<u16, u64>>);

impl Counts {
    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeMap<u16, u64>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Counts one request and returns its number, from 1.
    pub(crate) fn next(&self, port: u16) -> u64 {
        let mut counts = self.locked();
        let count = counts.entry(port).or_default();
        *count += 1;
        *count
    }

    pub(crate) fn reset(&self) {
        self.locked().clear();
    }

    /// `{"18101": 3, ...}`, every port named.
    pub(crate) fn json(&self) -> String {
        let counts = self.locked();
        let all: serde_json::Map<String, serde_json::Value> = PORTS
            .iter()
            .map(|(port, _)| (port.to_string(), counts.get(port).copied().unwrap_or(0).into()))
            .collect();
        serde_json::Value::Object(all).to_string()
    }
}

impl Behaviour {
    /// The answer to the `number`-th request (from 1) with these headers.
    pub(crate) fn answer(self, number: u64, headers: &HeaderMap) -> Answer {
        let asked = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u32>().ok();
        let fails = match self {
            Self::Good => false,
            Self::HalfFailing => number.is_multiple_of(2),
            Self::Provider(from) => from.is_some_and(|from| asked("x-fail").is_some_and(|fail| fail >= from)),
        };
        let own = if fails { 500 } else { 200 };
        let wanted = asked("x-status").and_then(|status| u16::try_from(status).ok());
        let status = wanted.filter(|status| (200..1000).contains(status)).unwrap_or(own);
        let close = asked("x-close").is_some_and(|flag| flag != 0);
        Answer {
            status: (!close).then_some(status),
            delay: Duration::from_millis(asked("x-delay").unwrap_or(0).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect::<HeaderMap>()
    }

    fn status(behaviour: Behaviour, number: u64, pairs: &[(&'static str, &'static str)]) -> Option<u16> {
        behaviour.answer(number, &headers(pairs)).status
    }

    #[test]
    fn patterns() {
        let half: Vec<_> = (1..=4).map(|n| status(Behaviour::HalfFailing, n, &[]).unwrap()).collect();
        assert_eq!(half, [200, 500, 200, 500]);
        for (fail, answers) in [("0", [200, 200, 200]), ("1", [500, 200, 200]), ("2", [500, 500, 200])] {
            let got: Vec<_> =
                PORTS[2..].iter().map(|p| status(p.1, 1, &[("x-fail", fail)]).unwrap()).collect();
            assert_eq!(got, answers, "x-fail {fail}");
        }
    }

    #[test]
    fn options() {
        assert_eq!(status(Behaviour::Good, 1, &[("x-status", "429")]), Some(429));
        assert_eq!(status(Behaviour::Good, 1, &[("x-status", "7")]), Some(200));
        assert_eq!(status(Behaviour::Good, 1, &[("x-close", "1")]), None);
        let late = Behaviour::Good.answer(1, &headers(&[("x-delay", "30")]));
        assert_eq!((late.status, late.delay), (Some(200), Duration::from_millis(30)));
    }

    #[test]
    fn counts_name_every_port() {
        let counts = Counts::default();
        counts.next(18102);
        assert_eq!(counts.next(18102), 2);
        assert_eq!(counts.json(), r#"{"18101":0,"18102":2,"18111":0,"18112":0,"18113":0}"#);
        counts.reset();
        assert_eq!(counts.next(18102), 1);
    }
}
