//! nexthop's id-level functions in the shape that the player wants: text in, text out.

use nexthop::raw;
use nexthop_conformance::json::Json;

/// What choosing answered.
pub(crate) enum Answer {
    Go(Go),
    Wait { reason: String, span: u64 },
    Refused { refusal: String, resource: String, reply: Vec<String> },
    Misuse,
}

/// An attempt.
pub(crate) struct Go {
    pub(crate) id: u64,
    pub(crate) number: u32,
    pub(crate) host: String,
    pub(crate) cluster: String,
    pub(crate) timeout: u64,
    pub(crate) remaining: u64,
    pub(crate) idle: u64,
    pub(crate) hedge: u64,
    pub(crate) headers: Vec<(String, String)>,
}

/// A verdict, in words.
pub(crate) struct Verdict {
    pub(crate) action: String,
    pub(crate) reason: String,
    pub(crate) after: String,
    pub(crate) status: String,
    pub(crate) flags: String,
}

/// A limit in nanoseconds, `-` when there is none.
pub(crate) fn dash(limit: u64) -> String {
    if limit == raw::NEVER { "-".into() } else { limit.to_string() }
}

pub(crate) struct Engine(u64);

impl Drop for Engine {
    fn drop(&mut self) {
        raw::engine_free(self.0).expect("an open engine");
    }
}

fn documents(docs: &[String]) -> Vec<raw::Document<'_>> {
    docs.iter()
        .map(|text| raw::Document {
            kind: raw::document_kind::TEXT,
            dialect: "",
            name: "",
            text: text.as_bytes(),
        })
        .collect()
}

impl Engine {
    pub(crate) fn open(docs: &[String], seed: u64, draws: &str) -> Option<Self> {
        let draws =
            (!draws.is_empty()).then(|| draws.split(',').map(|word| word.parse().expect("a draw")).collect());
        let options =
            raw::Options { workers: 1, seed, clock: raw::clock::MANUAL, draws, ..raw::Options::default() };
        match raw::engine_new(&options, &documents(docs)) {
            Ok(id) => Some(Self(id)),
            Err(error) => {
                eprintln!("{error}");
                None
            }
        }
    }

    pub(crate) fn update(&self, docs: &[String]) -> bool {
        raw::update(self.0, &documents(docs)).map_err(|error| eprintln!("{error}")).is_ok()
    }

    pub(crate) fn endpoints(&self, cluster: &str, text: &str) -> bool {
        let change =
            raw::HostChange { op: raw::host_op::ENDPOINTS, metadata: text, ..raw::HostChange::default() };
        raw::apply(self.0, cluster, &[change]).map_err(|error| eprintln!("{error}")).is_ok()
    }

    pub(crate) fn advance(&self, span: u64) {
        raw::advance(self.0, span).expect("a manual clock");
    }

    pub(crate) fn stats(&self) -> Vec<(String, String)> {
        let text = raw::text(self.0, 1, "").expect("statistics");
        let mut stats: Vec<_> = Json::parse(&text)
            .expect("JSON")
            .entries()
            .iter()
            .filter(|(_, value)| matches!(value, Json::Number(_)))
            .map(|(name, value)| (name.clone(), value.text()))
            .collect();
        stats.sort();
        stats
    }

    pub(crate) fn events(&self) -> Vec<Vec<String>> {
        let mut events = Vec::new();
        while let Some(text) = raw::poll_event(self.0).expect("an open engine") {
            let event = Json::parse(&text).expect("JSON");
            if event.has("action") {
                let keys = ["cluster_name", "upstream_url", "action", "type", "num_ejections", "enforced"];
                events.push(keys.map(|key| event.get(key).text()).to_vec());
            }
        }
        events
    }

    pub(crate) fn request(&self, head: &[String]) -> Request {
        Request { engine: self.0, head: head.to_vec(), decision: raw::Decision::default() }
    }
}

pub(crate) struct Request {
    engine: u64,
    head: Vec<String>,
    decision: raw::Decision,
}

fn block(engine: u64, set: u32, pairs: &[String]) -> (u32, Vec<u8>) {
    let mut block = Vec::new();
    if pairs.is_empty() && set != 0 {
        return (set, block);
    }
    let (number, names) = raw::want(engine, set).expect("a wanted set");
    for pair in pairs.chunks_exact(2) {
        if let Some(index) = names.iter().position(|name| **name == pair[0].to_ascii_lowercase()) {
            nexthop::engine::headers::pack(&mut block, index as u16, pair[1].as_bytes());
        }
    }
    (number, block)
}

impl Request {
    pub(crate) fn choose(&mut self) -> Answer {
        let result = if self.decision.request == 0 && self.decision.kind == 0 {
            self.begin()
        } else {
            raw::with_local(|local| raw::choose(local, self.decision.request, raw::NOW, &mut self.decision))
        };
        let d = self.decision;
        match (result, d.kind) {
            (Err(_), _) => Answer::Misuse,
            (_, raw::kind::GO) => Answer::Go(self.go()),
            (_, raw::kind::WAIT) => {
                Answer::Wait { reason: raw::name(9, d.refusal.into()).to_owned(), span: d.wait }
            }
            _ => Answer::Refused {
                refusal: raw::name(3, d.refusal.into()).to_owned(),
                resource: raw::name(10, d.resource.into()).to_owned(),
                reply: self.reply_words().unwrap_or_default(),
            },
        }
    }

    fn begin(&mut self) -> Result<(), raw::Misuse> {
        let mut head = raw::Head::default();
        let mut pairs = Vec::new();
        for pair in self.head.chunks_exact(2) {
            let value = pair[1].as_str();
            match pair[0].as_str() {
                "cluster" => head.target = raw::resolve(self.engine, value).unwrap_or(raw::NO_SUCH_TARGET),
                "method" => head.method = value,
                "authority" => head.authority = value,
                "path" => head.path = value,
                "source" => head.source = value,
                "local" => head.local = value,
                "key" => head.key = Some(value.as_bytes()),
                "timeout" => head.timeout = value.parse().expect("nanoseconds"),
                "internal" => head.bits |= raw::head_bits::INTERNAL,
                "metadata" => head.metadata = value,
                "override_host" => head.override_host = value,
                name => pairs.extend([name.trim_start_matches("h:").to_owned(), value.to_owned()]),
            }
        }
        let (want, headers) = block(self.engine, 0, &pairs);
        head.want = want;
        head.headers = &headers;
        raw::with_local(|local| raw::begin(local, self.engine, &head, raw::NOW, &mut self.decision))
    }

    fn go(&self) -> Go {
        let d = &self.decision;
        let host = raw::host(self.engine, d.host, d.host_version).expect("an open attempt pins its host").1;
        let info = raw::request_info(d.request).expect("an open request");
        let headers = raw::extra_headers(d.attempt).expect("an open attempt");
        Go {
            id: d.attempt,
            number: d.number,
            host: host.address.to_string(),
            cluster: host.cluster.to_string(),
            timeout: d.try_timeout,
            remaining: d.remaining,
            idle: info.idle_timeout,
            hedge: d.wait,
            headers: sorted(headers),
        }
    }

    pub(crate) fn answer(
        &mut self,
        attempt: u64,
        whole: bool,
        status: &str,
        grpc: &str,
        pairs: &[String],
    ) -> Option<Verdict> {
        let status: u16 = status.parse().expect("a status");
        let set = if status < 400 { self.decision.want_ok } else { self.decision.want_err };
        let (_, headers) = block(self.engine, set.into(), pairs);
        let grpc_status = if grpc.is_empty() { -1 } else { grpc.parse().expect("a grpc status") };
        let outcome = raw::Outcome { status, grpc_status, headers: &headers, ..raw::Outcome::default() };
        verdict(raw::with_local(|local| match whole {
            true => raw::complete(local, attempt, &outcome, raw::NOW),
            false => raw::headers(local, attempt, &outcome, raw::NOW),
        }))
    }

    pub(crate) fn fail(&mut self, attempt: u64, failure: &str) -> Option<Verdict> {
        let number = raw::failure::NAMES.iter().position(|name| *name == failure).expect("a failure");
        verdict(raw::with_local(|local| raw::fail(local, attempt, number as u32, raw::NOW)))
    }

    pub(crate) fn end(&mut self, attempt: u64, grpc: &str, pairs: &[String]) {
        let (_, headers) = block(self.engine, self.decision.want_ok.into(), pairs);
        let grpc_status = if grpc.is_empty() { -1 } else { grpc.parse().expect("a grpc status") };
        let outcome = raw::Outcome { grpc_status, headers: &headers, ..raw::Outcome::default() };
        raw::with_local(|local| raw::end(local, attempt, Some(&outcome), raw::NOW));
    }

    pub(crate) fn note(&mut self, attempt: u64, what: &str) {
        let number = match what {
            "connected" => raw::note::CONNECTED,
            "sent" => raw::note::SENT,
            "body_complete" => raw::note::BODY_COMPLETE,
            "retry_abandoned" => raw::note::RETRY_ABANDONED,
            _ => raw::note::INTERIM,
        };
        raw::with_local(|local| raw::note(local, attempt, number, raw::NOW)).expect("a note");
    }

    pub(crate) fn connected(&mut self) {
        let request = self.decision.request;
        raw::with_local(|local| raw::note(local, request, raw::note::CONNECTED, raw::NOW)).expect("a note");
    }

    pub(crate) fn close(&mut self) {
        let request = self.decision.request;
        raw::with_local(|local| raw::finish(local, request, raw::finish::CLIENT_GONE, raw::NOW));
    }

    fn reply_words(&self) -> Option<Vec<String>> {
        let reply = raw::reply(self.decision.request).ok().flatten()?;
        let mut words =
            vec![reply.status.to_string(), flags(reply.flags), reply.details.clone(), reply.body.clone()];
        let mut headers = reply.headers;
        headers.sort();
        words.extend(headers.into_iter().flat_map(|(name, value)| [name, value]));
        Some(words)
    }

    /// The local reply after a final failure; a refusal has shown its own.
    pub(crate) fn reply(&self) -> Option<Vec<String>> {
        if self.decision.kind == raw::kind::REFUSED { None } else { self.reply_words() }
    }

    pub(crate) fn response_headers(&self) -> Vec<String> {
        let headers = raw::extra_headers(self.decision.request).unwrap_or_default();
        sorted(headers).into_iter().flat_map(|(name, value)| [name, value]).collect()
    }
}

/// Headers to set, by name; what rewrites the URL is not among them in every language.
fn sorted(headers: Vec<(String, Option<String>)>) -> Vec<(String, String)> {
    let kept = |name: &str| name != "host" && !name.starts_with(':');
    let mut headers: Vec<_> = headers
        .into_iter()
        .filter(|(name, _)| kept(name))
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    headers.sort();
    headers
}

fn flags(bits: u32) -> String {
    raw::flags::text(bits)
}

/// `None`: the call was a misuse.
fn verdict(v: raw::Verdict) -> Option<Verdict> {
    (v.code == 0).then(|| Verdict {
        action: ["none", "forward", "retry", "discard"][usize::from(v.action)].into(),
        reason: raw::name(6, v.reason.into()).into(),
        after: v.after_ms.to_string(),
        status: v.status.to_string(),
        flags: flags(v.flags),
    })
}
