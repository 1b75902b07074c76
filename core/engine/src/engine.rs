//! The engine: clusters, routes, requests, and the calls that walk a request through them.

use crate::clock::Time;
use crate::hosts::HostInfo;
use crate::outcome::{Decision, Head, LocalReply, Misuse, Outcome, Ready, Verdict};
use crate::spec::{Endpoints, SpecError, Specs};
use std::sync::Arc;

/// What an engine is made with besides documents.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number in every id this engine gives out, 1..=1023.
    pub index: u32,
    /// First generation of request slots: an engine that takes over an index starts where the last one ended.
    pub first_generation: u32,
    /// Seeds the generators of all workers.
    pub seed: u64,
    /// Words that replace worker 1's, in order, then zeros.
    pub draws: Option<Vec<u64>>,
    /// Nanoseconds after a request's deadline until an unreported attempt counts as lost. Defaults to 300 s.
    pub lease: u64,
    /// How many events are kept. Defaults to 1,024.
    pub events: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { index: 1, first_generation: 0, seed: 0, draws: None, lease: 300_000_000_000, events: 1024 }
    }
}

/// What faces may ask about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Cluster the route or caller named.
    pub cluster: String,
    /// Matched route, `VHOST/NAME` or `NAME`; empty when the cluster was named.
    pub route: String,
    /// Nanoseconds of the global limit, NEVER when off.
    pub timeout: u64,
    /// Nanoseconds of the per-try idle limit, NEVER when off.
    pub idle_timeout: u64,
}

/// The engine. Every method takes `&self` and may be called from any thread.
pub struct Core {}

#[allow(unused_variables, missing_docs)]
impl Core {
    pub fn new(specs: Specs, settings: Settings, now: Time) -> Result<Self, SpecError> {
        Ok(Self {})
    }
    pub fn worker(&self, now: Time) -> crate::worker::Worker {
        crate::worker::Worker {}
    }
    pub fn begin(
        &self,
        worker: &mut crate::worker::Worker,
        head: &Head<'_>,
        now: Time,
        out: &mut Decision,
    ) -> Result<(), Misuse> {
        Err(Misuse::NotFound)
    }
}
