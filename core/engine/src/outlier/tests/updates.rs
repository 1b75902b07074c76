//! What updates do to ejected hosts, on a whole engine.

use crate::clock::Time;
use crate::engine::{Core, Settings};
use crate::hosts::flag;
use crate::outcome::{Decision, Head, Outcome, kind};
use crate::request::Report;
use crate::spec::{
    ClusterSpec, EndpointSpec, Endpoints, HealthStatus, Locality, LocalityEndpoints, OutlierSpec, Specs,
    Value,
};
use crate::worker::Worker;
use serde_json::Value as Json;
use std::time::Duration;

struct Mesh {
    core: Core,
    worker: Worker,
    endpoints: Endpoints,
    specs: Specs,
    now: Time,
}

fn host(address: &str) -> EndpointSpec {
    EndpointSpec { address: address.into(), port: 80, ..EndpointSpec::default() }
}

impl Mesh {
    /// Hosts `h0` .. in one locality, ejected by one 5xx each.
    fn new(hosts: usize, runtime: Vec<(String, Value)>) -> Self {
        let group = LocalityEndpoints {
            locality: Some(Locality::default()),
            endpoints: (0..hosts).map(|i| host(&format!("h{i}:80")).into()).collect(),
            ..LocalityEndpoints::default()
        };
        let endpoints = Endpoints { localities: vec![group], ..Endpoints::default() };
        let cluster = ClusterSpec {
            name: "c".into(),
            endpoints: endpoints.clone(),
            panic_threshold: 0,
            update_merge_window: Duration::ZERO,
            outlier: Some(OutlierSpec {
                consecutive_5xx: 1,
                max_ejection_percent: 50,
                ..OutlierSpec::default()
            }),
            ..ClusterSpec::default()
        };
        let specs = Specs { clusters: vec![cluster], runtime, ..Specs::default() };
        let core = Core::new(&specs, Settings::default(), Time(0)).unwrap();
        let worker = core.worker(Time(0));
        Self { core, worker, endpoints, specs, now: Time(1) }
    }

    /// One request; the host that it went to answers with this status.
    fn request(&mut self, answer: impl Fn(&str) -> u16) -> Option<String> {
        let target = self.core.resolve("c").unwrap();
        let mut out = Decision::default();
        self.core
            .begin(&mut self.worker, &Head { target, ..Head::default() }, None, self.now, &mut out)
            .unwrap();
        if out.kind != kind::GO {
            return None;
        }
        let address = self.core.host(out.host, out.host_version).unwrap().1.address.clone();
        let outcome = Outcome::status(answer(&address));
        self.core.report(&mut self.worker, out.attempt, &outcome, Report::Whole, self.now);
        Some(address)
    }

    fn eject(&mut self, address: &str) {
        for _ in 0..4 {
            self.request(|at| if at == address { 500 } else { 200 });
        }
        assert!(self.flags(address) & flag::FAILED_OUTLIER_CHECK != 0, "{address} is ejected");
    }

    fn flags(&self, address: &str) -> u32 {
        let states = self.core.host_states("c");
        states.iter().find(|state| state.info.address == address).map_or(0, |state| state.flags)
    }

    fn active(&self) -> u64 {
        let mut active = None;
        self.core.stats(&mut |name, stat| {
            if name == "cluster.c.outlier_detection.ejections_active" {
                active = Some(stat);
            }
        });
        match active {
            Some(crate::inspect::Stat::Gauge(active)) => active,
            other => panic!("no gauge: {other:?}"),
        }
    }

    fn events(&self) -> Vec<Json> {
        std::iter::from_fn(|| self.core.poll_event())
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect()
    }

    fn first(&mut self) -> &mut EndpointSpec {
        &mut self.endpoints.localities[0].endpoints[0]
    }

    fn apply(&mut self) {
        self.core.set_endpoints("c", &self.endpoints, self.now).unwrap();
        self.core.refresh(&mut self.worker, self.now);
    }
}

#[test]
fn host_lifecycle() {
    for case in nexthop_vectors::cases("outlier/host_lifecycle.json", 6) {
        let mut mesh = Mesh::new(case["given"]["hosts"].as_u64().unwrap() as usize, Vec::new());
        mesh.eject("h0:80");
        assert_eq!(mesh.active(), 1);
        assert_eq!(mesh.events().len(), 1);
        match case["id"].as_str().unwrap() {
            "weight" => mesh.first().weight = 7,
            "eds-degraded" => mesh.first().health = HealthStatus::Degraded,
            "hostname" => mesh.first().hostname = "other".into(),
            "locality" => {
                let moved = mesh.endpoints.localities[0].endpoints.remove(0);
                mesh.endpoints.localities.push(LocalityEndpoints {
                    locality: Some(Locality { zone: "z".into(), ..Locality::default() }),
                    endpoints: vec![moved],
                    ..LocalityEndpoints::default()
                });
            }
            "removed" | "re-added" => {
                let gone = mesh.endpoints.localities[0].endpoints.remove(0);
                if case["id"] == "re-added" {
                    mesh.apply();
                    mesh.endpoints.localities[0].endpoints.push(gone);
                }
            }
            other => panic!("unknown update {other}"),
        }
        mesh.apply();
        let mut told = 0;
        for (key, wanted) in case["expect"].as_object().unwrap() {
            match key.as_str() {
                "host0_ejected" => {
                    let ejected = mesh.flags("h0:80") & flag::FAILED_OUTLIER_CHECK != 0;
                    assert_eq!(ejected, wanted.as_bool().unwrap(), "{case}");
                }
                "host0_flags" => {
                    let states = mesh.core.host_states("c");
                    let state = states.iter().find(|state| state.info.address == "h0:80").unwrap();
                    let list: Vec<&str> =
                        wanted.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
                    assert_eq!(state.health_flags(), format!("/{}", list.join("/")), "{case}");
                }
                "ejections_active" => assert_eq!(mesh.active(), wanted.as_u64().unwrap(), "{case}"),
                "uneject_event" => assert_eq!(!mesh.events().is_empty(), wanted.as_bool().unwrap(), "{case}"),
                "num_ejections_at_next_ejection" => told += 1,
                other => panic!("unknown expectation {other}"),
            }
        }
        if told > 0 {
            mesh.eject("h0:80");
            let wanted = &case["expect"]["num_ejections_at_next_ejection"];
            assert_eq!(&mesh.events()[0]["num_ejections"], wanted, "{case}");
        }
    }
}

#[test]
fn runtime_values_act_at_once_and_disturb_no_scheduler() {
    let number = |key: &str, value: f64| (format!("outlier_detection.{key}"), Value::Number(value));
    let mut mesh = Mesh::new(2, vec![number("consecutive_5xx", 3.0)]);
    let version = |mesh: &Mesh| mesh.core.current.lock().clusters[0].view.as_ref().unwrap().version;
    let before = version(&mesh);
    let bad = |address: &str| if address == "h0:80" { 500 } else { 200 };
    for _ in 0..4 {
        mesh.request(bad);
    }
    assert_eq!(mesh.active(), 0, "two failures of three");
    mesh.core.set_runtime(&[], mesh.now);
    assert_eq!(version(&mesh), before);
    mesh.request(bad);
    mesh.request(bad);
    assert_eq!(mesh.active(), 0, "the counter is past the threshold of 1");
    mesh.core.set_runtime(&[number("consecutive_5xx", 4.0)], mesh.now);
    mesh.request(bad);
    mesh.request(bad);
    assert_eq!(mesh.active(), 1);
    // A new document takes the runtime values of that document.
    mesh.specs.runtime = vec![number("max_ejection_percent", 0.0)];
    mesh.specs.clusters[0].panic_threshold = 50;
    mesh.core.update(&mesh.specs, mesh.now).unwrap();
    assert_eq!(mesh.active(), 1, "the ejected host stays so");
}

#[test]
fn a_sweep_by_time_brings_back_and_counts() {
    let mut mesh = Mesh::new(2, Vec::new());
    mesh.eject("h0:80");
    mesh.now = Time(40_000_000_000);
    mesh.request(|_| 200);
    assert_eq!(mesh.active(), 0);
    let actions: Vec<Json> = mesh.events().iter().map(|event| event["action"].clone()).collect();
    assert_eq!(actions, ["EJECT", "UNEJECT"]);
}

#[test]
fn what_sweeps_count_is_in_the_stats() {
    let mut mesh = Mesh::new(5, Vec::new());
    mesh.specs.clusters[0].outlier =
        Some(OutlierSpec { consecutive_5xx: 0, success_rate_request_volume: 10, ..OutlierSpec::default() });
    mesh.core.update(&mesh.specs, mesh.now).unwrap();
    for _ in 0..50 {
        mesh.request(|address| if address == "h3:80" { 500 } else { 200 });
    }
    mesh.now = Time(10_000_000_000);
    mesh.request(|_| 200);
    let mut seen = std::collections::BTreeMap::new();
    mesh.core.stats(&mut |name, stat| {
        if let crate::inspect::Stat::Counter(count @ 1..) = stat {
            seen.insert(name.to_owned(), count);
        }
    });
    let prefix = "cluster.c.outlier_detection.ejections_";
    assert_eq!(seen.get(&format!("{prefix}detected_success_rate")), Some(&1), "{seen:?}");
    assert_eq!(seen.get(&format!("{prefix}overflow")), Some(&1), "10 % of five hosts are none");
    let rates: Vec<f64> = mesh.core.host_states("c").iter().map(|state| state.success_rate[0]).collect();
    assert_eq!(rates, [100.0, 100.0, 100.0, 0.0, 100.0]);
}

#[test]
fn a_detector_that_goes_leaves_no_host_behind() {
    let mut mesh = Mesh::new(2, Vec::new());
    mesh.eject("h0:80");
    let outlier = mesh.specs.clusters[0].outlier.take();
    mesh.core.update(&mesh.specs, mesh.now).unwrap();
    mesh.core.refresh(&mut mesh.worker, mesh.now);
    assert_eq!(mesh.flags("h0:80") & flag::FAILED_OUTLIER_CHECK, 0);
    assert!((0..4).filter_map(|_| mesh.request(|_| 200)).any(|address| address == "h0:80"));
    // One that comes back knows nothing of the failures meanwhile.
    for _ in 0..4 {
        mesh.request(|_| 500);
    }
    mesh.specs.clusters[0].outlier = outlier;
    mesh.core.update(&mesh.specs, mesh.now).unwrap();
    mesh.request(|_| 200);
    assert_eq!(mesh.active(), 0);
    mesh.eject("h0:80");
}

#[test]
fn wanted_headers_follow_the_detectors_behind_a_composite() {
    let mut mesh = Mesh::new(1, Vec::new());
    let mut composite = ClusterSpec { name: "all".into(), ..ClusterSpec::default() };
    composite.kind = crate::spec::ClusterKind::Composite(vec!["c".into()]);
    mesh.specs.clusters.insert(0, composite);
    if let Some(outlier) = &mut mesh.specs.clusters[1].outlier {
        outlier.detect_degraded_hosts = true;
    }
    mesh.core.update(&mesh.specs, mesh.now).unwrap();
    for name in ["c", "all"] {
        let head = Head { target: mesh.core.resolve(name).unwrap(), ..Head::default() };
        let mut out = Decision::default();
        mesh.core.begin(&mut mesh.worker, &head, None, mesh.now, &mut out).unwrap();
        let (_, names) = mesh.core.want(u32::from(out.want_ok)).unwrap();
        assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["x-envoy-degraded"], "{name}");
        let block = [0, 0, 0, 0, 0, 0, 0, 0];
        let outcome = Outcome { headers: &block, ..Outcome::status(200) };
        mesh.core.report(&mut mesh.worker, out.attempt, &outcome, Report::Whole, mesh.now);
    }
    assert!(mesh.flags("h0:80") & flag::DEGRADED_OUTLIER_DETECTION != 0, "whatever the value");
}
