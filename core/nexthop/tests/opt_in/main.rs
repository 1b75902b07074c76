//! Mechanisms beyond Envoy (`docs/beyond-envoy.md`), from document to decision, on a clock moved by hand.

mod aside;
mod classes;
mod half_open;
mod life;
mod limits;
mod retries;

use nexthop::raw::{
    self, Decision, Document, Head, Options, Outcome, Verdict, bits, clock, document_kind, kind,
};
use nexthop_engine::headers::pack;
use serde_json::Value;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

struct Mesh(u64);

/// What an upstream answers.
#[derive(Clone, Copy, Default)]
struct Answer<'a> {
    status: u16,
    headers: &'a [(&'a str, &'a str)],
    detail: &'a str,
}

fn status(status: u16) -> Answer<'static> {
    Answer { status, ..Answer::default() }
}

fn with<'a>(status: u16, headers: &'a [(&'a str, &'a str)]) -> Answer<'a> {
    Answer { status, headers, ..Answer::default() }
}

impl Mesh {
    fn new(yaml: &str) -> Self {
        let options = Options { workers: 1, seed: 7, clock: clock::MANUAL, ..Options::default() };
        let document = Document { kind: document_kind::TEXT, dialect: "", name: "", text: yaml.as_bytes() };
        Self(raw::engine_new(&options, &[document]).unwrap_or_else(|error| panic!("{error}")))
    }

    fn block(&self, set: u32, headers: &[(&str, &str)]) -> (u32, Vec<u8>) {
        let (number, names) = raw::want(self.0, set).unwrap();
        let mut block = Vec::new();
        for (name, value) in headers {
            if let Some(at) = names.iter().position(|wanted| **wanted == **name) {
                pack(&mut block, at as u16, value.as_bytes());
            }
        }
        (number, block)
    }

    fn begin(&self, cluster: &str) -> Decision {
        self.request(cluster, "GET", &[])
    }

    fn request(&self, cluster: &str, method: &str, headers: &[(&str, &str)]) -> Decision {
        let (want, block) = self.block(0, headers);
        let target = raw::resolve(self.0, cluster).unwrap();
        self.begin_head(&Head { target, method, want, headers: &block, ..Head::default() })
    }

    fn begin_head(&self, head: &Head<'_>) -> Decision {
        let mut out = Decision::default();
        raw::with_local(|local| raw::begin(local, self.0, head, 0, &mut out)).unwrap();
        out
    }

    fn choose(&self, request: u64) -> Decision {
        let mut out = Decision::default();
        raw::with_local(|local| raw::choose(local, request, 0, &mut out)).unwrap();
        out
    }

    /// The next attempt, after whatever wait there is.
    fn next(&self, request: u64) -> Decision {
        let mut out = self.choose(request);
        while out.kind == kind::WAIT {
            self.advance(out.wait.max(1));
            out = self.choose(request);
        }
        out
    }

    fn outcome<'o>(&self, of: &Decision, answer: &Answer<'o>, block: &'o mut Vec<u8>) -> Outcome<'o> {
        let set = if answer.status < 400 { of.want_ok } else { of.want_err };
        *block = self.block(set.into(), answer.headers).1;
        Outcome { headers: block, detail: answer.detail, ..Outcome::status(answer.status) }
    }

    fn complete(&self, of: &Decision, answer: Answer<'_>) -> Verdict {
        let mut block = Vec::new();
        let outcome = self.outcome(of, &answer, &mut block);
        raw::with_local(|local| raw::complete(local, of.attempt, &outcome, 0))
    }

    fn headers(&self, of: &Decision, answer: Answer<'_>) -> Verdict {
        let mut block = Vec::new();
        let outcome = self.outcome(of, &answer, &mut block);
        raw::with_local(|local| raw::headers(local, of.attempt, &outcome, 0))
    }

    fn end(&self, of: &Decision, outcome: &Outcome<'_>) -> Verdict {
        raw::with_local(|local| raw::end(local, of.attempt, Some(outcome), 0))
    }

    fn fail(&self, of: &Decision, failure: u8) -> Verdict {
        raw::with_local(|local| raw::fail(local, of.attempt, failure.into(), 0))
    }

    fn cancel(&self, of: &Decision) {
        raw::with_local(|local| raw::cancel(local, of.attempt, 0));
    }

    fn advance(&self, ns: u64) {
        raw::advance(self.0, ns).unwrap();
    }

    fn address(&self, decision: &Decision) -> String {
        assert_eq!(decision.kind, kind::GO, "{decision:?}");
        raw::host(self.0, decision.host, decision.host_version).unwrap().1.address.clone()
    }

    /// A whole request that is answered with this status; where it went.
    fn visit(&self, cluster: &str, answer: Answer<'_>) -> String {
        let decision = self.begin(cluster);
        let address = self.address(&decision);
        self.complete(&decision, answer);
        address
    }

    /// Zero when nothing was counted.
    fn stat(&self, name: &str) -> u64 {
        let stats: Value = serde_json::from_str(&raw::text(self.0, 1, "").unwrap()).unwrap();
        stats[name].as_u64().unwrap_or(0)
    }

    /// What the hosts text says of a host.
    fn host(&self, address: &str) -> Value {
        serde_json::from_str(&raw::text(self.0, 11, address).unwrap()).unwrap()
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        let lines = std::iter::from_fn(|| raw::poll_event(self.0).unwrap());
        let events = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
        events.filter(|event| event["type"] == kind).collect()
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        raw::engine_free(self.0).unwrap();
    }
}

fn is_probe(decision: &Decision) -> bool {
    decision.bits & bits::PROBE != 0
}
