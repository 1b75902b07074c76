//! How an engine is made.

use crate::choice::nanos;
use crate::engine_face::Engine;
use crate::raw::{self, Document, Error, Options, clock, document_kind};
use std::path::Path;
use std::time::Duration;

/// Which clock an engine reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Monotonic, to one scheduler tick (1 to 4 ms).
    #[default]
    Coarse,
    /// Monotonic, as exact as the machine can.
    Precise,
    /// Moves only by [`Engine::advance`]: for tests.
    Manual,
}

/// Documents and options of an engine to be.
///
/// ```
/// use nexthop::{Clock, Engine};
///
/// let mesh = Engine::builder()
///     .text("clusters: {web: {hosts: [10.0.0.1:80]}}")
///     .seed(7)
///     .workers(1)
///     .clock(Clock::Manual)
///     .build()?;
/// mesh.advance(std::time::Duration::from_secs(10))?;
/// # Ok::<(), nexthop::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Builder {
    documents: Vec<(u8, String, Vec<u8>)>,
    dialect: String,
    options: Options,
}

impl Builder {
    /// Adds the document in a file; [`Engine::reload`] reads it again.
    pub fn file(self, path: impl AsRef<Path>) -> Self {
        self.document(document_kind::PATH, "", path.as_ref().as_os_str().as_encoded_bytes())
    }

    /// Adds a document's text.
    pub fn text(self, text: &str) -> Self {
        self.document(document_kind::TEXT, "", text.as_bytes())
    }

    /// Adds a document's text under a name: for messages, and the cluster of an instance list.
    pub fn named(self, name: &str, text: &str) -> Self {
        self.document(document_kind::TEXT, name, text.as_bytes())
    }

    /// Runtime values, a JSON object; they win over those of the documents.
    pub fn runtime(self, json: &str) -> Self {
        self.document(document_kind::RUNTIME, "", json.as_bytes())
    }

    fn document(mut self, kind: u8, name: &str, text: &[u8]) -> Self {
        self.documents.push((kind, name.to_owned(), text.to_vec()));
        self
    }

    /// `envoy` or `nexthop` for all documents; without it each one is recognised by its keys.
    pub fn dialect(mut self, name: &str) -> Self {
        name.clone_into(&mut self.dialect);
        self
    }

    /// Seed of all random words; 0 = the system's.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// 0 = a worker per thread; N = N shared by all threads. With 1, the same seed and calls decide the same.
    pub fn workers(mut self, workers: u32) -> Self {
        self.options.workers = workers;
        self
    }

    /// The clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.options.clock = match clock {
            Clock::Coarse => clock::COARSE,
            Clock::Precise => clock::PRECISE,
            Clock::Manual => clock::MANUAL,
        };
        self
    }

    /// Words in place of the first worker's random ones, in order, then zeros.
    pub fn draws(mut self, words: Vec<u64>) -> Self {
        self.options.draws = Some(words);
        self
    }

    /// How long after its request's deadline an unreported attempt counts as lost; 300 s unless set.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = nanos(lease);
        self
    }

    /// How many events are kept; 1,024 unless set.
    pub fn events(mut self, events: u64) -> Self {
        self.options.events = events;
        self
    }

    /// Makes the engine. A document that cannot be understood refuses all.
    pub fn build(&self) -> Result<Engine, Error> {
        let documents: Vec<Document<'_>> = self
            .documents
            .iter()
            .map(|(kind, name, text)| Document { kind: *kind, dialect: &self.dialect, name, text })
            .collect();
        let id = raw::engine_new(&self.options, &documents)?;
        Ok(Engine::of(id, self.options.clock == clock::MANUAL))
    }
}
