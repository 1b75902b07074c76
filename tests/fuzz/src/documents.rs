//! Documents of every dialect: refused in one sentence with a place, or accepted and then usable.

use crate::bytes::Bytes;
use nexthop::config::{Dialect, ListOptions, Source, load, load_assignment, load_hosts, translate};
use nexthop::raw::{self, Decision, Document, HostChange, Options, clock, document_kind, host_op, kind};

const DIALECTS: [Dialect; 9] = [
    Dialect::Auto,
    Dialect::Envoy,
    Dialect::Nexthop,
    Dialect::Istio,
    Dialect::Kubernetes,
    Dialect::Nacos,
    Dialect::Consul,
    Dialect::Eureka,
    Dialect::Spring,
];

/// First byte: dialect and way of reading; the rest is the document.
pub fn documents(data: &[u8]) {
    let mut bytes = Bytes(data);
    let choice = bytes.byte();
    let dialect = DIALECTS[usize::from(choice & 15) % DIALECTS.len()];
    let text = bytes.rest();
    let source = Source { name: "fuzz", text, dialect };
    match choice >> 4 & 3 {
        0 => whole(&source),
        1 => {
            let _ = translate(&[source]);
        }
        2 => {
            let options = ListOptions::default();
            let _ = (load_assignment(&source), load_hosts(&source, &options, "web"));
            hosts_of_an_engine(text);
        }
        _ => {
            // Half of it after a document that is fine: what spans documents.
            let first = Source {
                name: "first",
                text: b"clusters: {web: {hosts: [10.0.0.1:80]}}",
                dialect: Dialect::Auto,
            };
            let _ = load(&[first, source]);
        }
    }
}

fn whole(source: &Source<'_>) {
    match load(std::slice::from_ref(source)) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(loaded) => {
            let _ = (loaded.report.to_json(), format!("{:?}", loaded.findings));
            // Tables of millions of entries are legal and slow; they have a test of their own.
            if source.text.len() < 4096 && !large(source.text) {
                engine(source);
            }
        }
    }
}

fn large(text: &[u8]) -> bool {
    text.windows(5).any(|window| window.iter().all(u8::is_ascii_digit))
}

/// What was accepted makes an engine that answers.
fn engine(source: &Source<'_>) {
    let document = Document {
        kind: document_kind::TEXT,
        dialect: source.dialect.name(),
        name: "fuzz",
        text: source.text,
    };
    let options = Options { workers: 1, seed: 1, clock: clock::MANUAL, ..Options::default() };
    let engine = raw::engine_new(&options, &[document]).expect("a document that loads makes an engine");
    let head = raw::Head { authority: "a.example", path: "/x?y=1", ..raw::Head::default() };
    let mut decision = Decision::default();
    let answered = raw::with_local(|local| raw::begin(local, engine, &head, 0, &mut decision));
    assert!(answered.is_ok() && (kind::GO..=kind::REFUSED).contains(&decision.kind));
    raw::with_local(|local| raw::finish(local, decision.request, raw::finish::CLIENT_GONE, 0));
    for what in [1, 2, 4, 5, 6, 7, 10] {
        assert!(raw::text(engine, what, "").is_ok());
    }
    let info = raw::engine_info(engine).expect("the engine is open");
    assert_eq!((info.panics, info.live_requests), (0, 0));
    raw::engine_free(engine).expect("the engine is open");
}

fn hosts_of_an_engine(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let document = Document {
        kind: document_kind::TEXT,
        dialect: "",
        name: "",
        text: b"clusters: {web: {hosts: [10.0.0.1:80]}}",
    };
    let engine = raw::engine_new(&Options::default(), &[document]).expect("a good document");
    let change = HostChange { op: host_op::ENDPOINTS, metadata: text, ..HostChange::default() };
    let _ = raw::apply(engine, "web", &[change]);
    assert_eq!(raw::engine_info(engine).expect("the engine is open").panics, 0);
    raw::engine_free(engine).expect("the engine is open");
}
