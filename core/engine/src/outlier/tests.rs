//! Facts of `spec/outlier-detection.md` sections 5 to 8, on the detector alone.

use super::*;
use crate::hosts::HostInfo;
use crate::random::Draws;
use crate::spec::{HealthStatus, Locality, Metadata};
use std::time::Duration;

const SECOND: u64 = 1000 * MILLI;

struct Bench {
    hosts: HostArena,
    detector: Detector,
    counters: ClusterCounters,
    spec: OutlierSpec,
    slots: Vec<u32>,
    random: Source,
}

impl Bench {
    fn new(n: usize, spec: OutlierSpec) -> Self {
        let hosts = HostArena::default();
        let slots = (0..n)
            .map(|i| {
                let info = HostInfo {
                    address: format!("10.0.0.{i}:80"),
                    port: 80,
                    hostname: String::new(),
                    cluster: "c".into(),
                    cluster_index: 0,
                    weight: 1,
                    priority: 0,
                    locality: Locality::default(),
                    metadata: Metadata::default(),
                    health: HealthStatus::Unknown,
                    connect_timeout: 0,
                    secure: false,
                };
                hosts.add(info, 0)
            })
            .collect();
        let random = Source::Draws(Draws::default());
        Self {
            hosts,
            detector: Detector::default(),
            counters: ClusterCounters::default(),
            spec,
            slots,
            random,
        }
    }

    fn watch(&self) -> Watch<'_> {
        Watch {
            spec: &self.spec,
            detector: &self.detector,
            hosts: &self.hosts,
            counters: &self.counters,
            number_of_hosts: self.slots.len() as u32,
        }
    }

    fn report(&mut self, host: usize, code: u16, times: usize, at: u64) {
        for _ in 0..times {
            let slot = self.slots[host];
            let mut random = std::mem::replace(&mut self.random, Source::Draws(Draws::default()));
            if book(&self.watch(), slot, code) {
                self.watch().fire(slot, Time(at), &mut random);
            }
            self.random = random;
        }
    }

    fn ejected(&self, host: usize) -> bool {
        self.hosts.flags(self.slots[host]) & flag::FAILED_OUTLIER_CHECK != 0
    }

    fn multiplier(&self, host: usize) -> u32 {
        self.detector.state.lock().hosts.get(&self.slots[host]).map_or(0, |h| h.multiplier)
    }
}

fn all(percent: u32) -> OutlierSpec {
    OutlierSpec { max_ejection_percent: percent, ..OutlierSpec::default() }
}

#[test]
fn five_in_a_row_and_a_success_between() {
    let mut bench = Bench::new(1, all(100));
    bench.report(0, 500, 1, 0);
    bench.report(0, 200, 1, 0);
    bench.report(0, 500, 4, 0);
    assert!(!bench.ejected(0));
    bench.report(0, 500, 1, 0);
    assert!(bench.ejected(0));
    assert!(bench.watch().sweep(Time(9_999 * MILLI)).changed.is_empty());
    assert_eq!(bench.watch().sweep(Time(30_001 * MILLI)).changed.len(), 1);
    assert!(!bench.ejected(0));
    assert_eq!(bench.detector.ejections_active(), 0);
}

#[test]
fn zero_never_fires() {
    let mut bench = Bench::new(1, OutlierSpec { consecutive_5xx: 0, ..all(100) });
    bench.report(0, 500, 20, 0);
    assert!(!bench.ejected(0));
}

#[test]
fn percent_counts_the_host_about_to_go() {
    for (hosts, percent, expected) in
        [(10, 10, 1), (9, 10, 0), (3, 33, 0), (3, 34, 1), (4, 49, 1), (4, 50, 2), (1, 99, 0), (1, 100, 1)]
    {
        let mut bench = Bench::new(hosts, all(percent));
        for host in 0..hosts {
            bench.report(host, 500, 5, 0);
        }
        let ejected = (0..hosts).filter(|host| bench.ejected(*host)).count();
        assert_eq!(ejected, expected, "{hosts} hosts, {percent} %");
    }
    let mut bench = Bench::new(3, OutlierSpec { always_eject_one_host: true, ..all(0) });
    bench.report(0, 500, 5, 0);
    bench.report(1, 500, 5, 0);
    assert!(bench.ejected(0) && !bench.ejected(1));
}

#[test]
fn gateway_first_then_5xx() {
    let spec =
        OutlierSpec { enforcing_consecutive_gateway_failure: 100, enforcing_consecutive_5xx: 0, ..all(100) };
    let mut bench = Bench::new(1, spec);
    bench.report(0, 503, 1, 0);
    bench.report(0, 500, 1, 0);
    bench.report(0, 503, 4, 0);
    assert_eq!(bench.counters.get(Counter::OutlierEjectionsDetectedConsecutive5xx), 1);
    assert!(!bench.ejected(0));
    bench.report(0, 503, 1, 0);
    assert!(bench.ejected(0));
}

#[test]
fn time_grows_and_decays() {
    let spec = OutlierSpec { base_ejection_time: Duration::from_secs(10), ..all(100) };
    let mut bench = Bench::new(1, spec);
    let at = |seconds: u64| Time(seconds * SECOND);
    bench.report(0, 500, 5, 0);
    bench.watch().sweep(at(10));
    assert!(!bench.ejected(0));
    bench.report(0, 500, 5, 10 * SECOND);
    bench.watch().sweep(at(20));
    assert!(bench.ejected(0));
    bench.watch().sweep(at(30));
    assert!(!bench.ejected(0));
    bench.report(0, 500, 5, 30 * SECOND);
    for (second, ejected) in [(40, true), (50, true), (60, false)] {
        bench.watch().sweep(at(second));
        assert_eq!(bench.ejected(0), ejected, "at {second} s");
    }
    for (second, multiplier) in [(70, 2), (80, 1)] {
        bench.watch().sweep(at(second));
        assert_eq!(bench.multiplier(0), multiplier, "at {second} s");
    }
    bench.report(0, 500, 5, 80 * SECOND);
    for (second, ejected) in [(90, true), (100, false)] {
        bench.watch().sweep(at(second));
        assert_eq!(bench.ejected(0), ejected, "at {second} s");
    }
}

#[test]
fn enforcement_and_jitter_draws() {
    let spec = OutlierSpec {
        enforcing_consecutive_5xx: 40,
        max_ejection_time_jitter: Duration::from_secs(10),
        ..all(100)
    };
    let mut bench = Bench::new(1, spec);
    bench.random = Source::Draws(Draws::new(vec![140, 139, 123_456_789]));
    bench.report(0, 500, 5, 0);
    assert!(!bench.ejected(0), "40 is not below 40");
    bench.report(0, 500, 5, 0);
    assert!(bench.ejected(0));
    assert_eq!(bench.detector.state.lock().hosts[&bench.slots[0]].jitter_ms, 4445);
}
