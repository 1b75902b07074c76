//! An engine with one cluster whose hosts are checked.

use crate::clock::Time;
use crate::engine::{Core, Settings};
use crate::headers::pack;
use crate::health::*;
use crate::inspect::Stat;
use crate::outcome::{Decision, Head, Outcome, failure, kind};
use crate::request::Report;
use crate::spec::*;
use crate::worker::Worker;
use std::collections::BTreeMap;
use std::time::Duration;

const MILLI: u64 = 1_000_000;

pub(super) struct Mesh {
    pub(super) core: Core,
    pub(super) worker: Worker,
    pub(super) specs: Specs,
    pub(super) endpoints: Endpoints,
    /// Milliseconds.
    pub(super) now: u64,
}

pub(super) fn http() -> HealthCheckSpec {
    let probe = Probe::Http(Box::new(HttpProbe::get("/health")));
    HealthCheckSpec {
        no_traffic_interval: Duration::from_secs(1),
        ..HealthCheckSpec::new(Duration::from_secs(1), Duration::from_millis(500), (3, 2), probe)
    }
}

impl Mesh {
    /// Hosts `10.0.0.1:80` and so on.
    pub(super) fn new(
        hosts: usize,
        checks: Vec<HealthCheckSpec>,
        change: impl FnOnce(&mut ClusterSpec),
    ) -> Self {
        let settings = Settings { active_checks: true, ..Settings::default() };
        Self::with(settings, hosts, checks, change)
    }

    /// The same on an engine made with these settings.
    pub(super) fn with(
        settings: Settings,
        hosts: usize,
        checks: Vec<HealthCheckSpec>,
        change: impl FnOnce(&mut ClusterSpec),
    ) -> Self {
        let host =
            |i| EndpointSpec { address: format!("10.0.0.{i}:80"), port: 80, ..EndpointSpec::default() };
        let group = LocalityEndpoints {
            locality: Some(Locality::default()),
            endpoints: (1..=hosts).map(host).map(Endpoint::from).collect(),
            ..LocalityEndpoints::default()
        };
        let mut cluster = ClusterSpec {
            name: "c".into(),
            endpoints: Endpoints { localities: vec![group], ..Endpoints::default() },
            panic_threshold: 0,
            update_merge_window: Duration::ZERO,
            health_checks: checks,
            ..ClusterSpec::default()
        };
        change(&mut cluster);
        let endpoints = cluster.endpoints.clone();
        let specs = Specs { clusters: vec![cluster], ..Specs::default() };
        let core = Core::new(&specs, settings, Time(0)).unwrap();
        let worker = core.worker(Time(0));
        Self { core, worker, specs, endpoints, now: 1 }
    }

    pub(super) fn time(&self) -> Time {
        Time(self.now * MILLI)
    }

    pub(super) fn due(&mut self) -> Vec<Check> {
        let now = self.time();
        self.core.checks(&mut self.worker, now)
    }

    pub(super) fn report(&mut self, id: u64, report: CheckReport<'_>) -> bool {
        let now = self.time();
        self.core.check_result(&mut self.worker, id, report, now).unwrap()
    }

    /// An answer with this status.
    pub(super) fn answer(&mut self, id: u64, status: u16, degraded: bool) {
        let mut block = Vec::new();
        if degraded {
            pack(&mut block, 1, b"");
        }
        let outcome = Outcome { headers: &block, ..Outcome::status(status) };
        assert!(self.report(id, CheckReport::Answer(&outcome, b"")));
    }

    pub(super) fn break_off(&mut self, id: u64) {
        let outcome = Outcome::failed(failure::CONNECTION_TERMINATION);
        assert!(self.report(id, CheckReport::Answer(&outcome, b"")));
    }

    /// Everything that is due is answered by a function of the address.
    pub(super) fn round(&mut self, status: impl Fn(&str) -> u16) -> usize {
        let due = self.due();
        for check in &due {
            self.answer(check.id, status(&check.address), false);
        }
        due.len()
    }

    pub(super) fn flags(&self, address: &str) -> Option<u32> {
        let states = self.core.host_states("c");
        states.iter().find(|state| state.info.address == address).map(|state| state.flags)
    }

    pub(super) fn stats(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        self.core.stats(&mut |name, stat| {
            let (Stat::Counter(value) | Stat::Gauge(value)) = stat;
            all.insert(name.trim_start_matches("cluster.c.").to_owned(), value);
        });
        all
    }

    /// One request that is answered with a status; the host it went to.
    pub(super) fn request(&mut self, status: u16) -> Option<String> {
        let now = self.time();
        let head = Head { target: self.core.resolve("c").unwrap(), ..Head::default() };
        let mut out = Decision::default();
        self.core.begin(&mut self.worker, &head, None, now, &mut out).unwrap();
        if out.kind != kind::GO {
            return None;
        }
        let address = self.core.host(out.host, out.host_version).unwrap().1.address.clone();
        self.core.report(&mut self.worker, out.attempt, &Outcome::status(status), Report::Whole, now);
        Some(address)
    }

    pub(super) fn apply(&mut self) {
        self.core.set_endpoints("c", &self.endpoints, Time(0)).unwrap();
    }

    pub(super) fn remove_first(&mut self) -> Endpoint {
        let gone = self.endpoints.localities[0].endpoints.remove(0);
        self.apply();
        gone
    }

    pub(super) fn events(&self) -> Vec<String> {
        std::iter::from_fn(|| self.core.poll_event()).collect()
    }
}
