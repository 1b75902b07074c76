//! A cluster's detector alone, driven by hand or by the scripts of `tests/vectors/outlier`.

use crate::clock::{MILLI, Time};
use crate::hosts::{HostArena, HostInfo, flag};
use crate::outlier::*;
use crate::random::{Draws, Source};
use crate::spec::OutlierSpec;
use crate::stats::{ClusterCounters, Counter};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(crate) struct Bench {
    pub(crate) hosts: HostArena,
    pub(crate) detector: Detector,
    pub(crate) counters: ClusterCounters,
    pub(crate) rules: Rules,
    /// Members in the order in which they joined.
    pub(crate) members: Vec<(String, u32)>,
    pub(crate) random: Source,
    log: Vec<(u32, Record)>,
    /// Hosts that left keep their names for the log.
    names: BTreeMap<u32, String>,
}

impl Bench {
    pub(crate) fn new<S: AsRef<str>>(names: &[S], spec: &OutlierSpec) -> Self {
        let mut bench = Self {
            hosts: HostArena::default(),
            detector: Detector::default(),
            counters: ClusterCounters::default(),
            rules: Rules::new(spec, &Overrides::default()).unwrap(),
            members: Vec::new(),
            random: Source::Draws(Draws::default()),
            log: Vec::new(),
            names: BTreeMap::new(),
        };
        bench.detector.start(&bench.hosts, std::iter::empty());
        for name in names {
            bench.add(name.as_ref());
        }
        bench
    }

    pub(crate) fn draw(&mut self, words: Vec<u64>) {
        self.random = Source::Draws(Draws::new(words));
    }

    pub(crate) fn add(&mut self, name: &str) {
        let slot = self.hosts.add(HostInfo::at(name), 0);
        self.names.insert(slot, name.to_owned());
        self.members.push((name.to_owned(), slot));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        let slot = self.slot(name);
        self.hosts.facts(slot).flags.fetch_or(flag::REMOVED, AcqRel);
        self.detector.remove(&self.hosts, slot);
        self.members.retain(|(member, _)| member != name);
    }

    pub(crate) fn slot(&self, name: &str) -> u32 {
        self.members.iter().find(|(member, _)| member == name).map(|(_, slot)| *slot).unwrap()
    }

    fn run(&mut self, act: impl FnOnce(&Watch<'_>, &mut Source) -> Effects) -> Effects {
        let watch = Watch {
            rules: &self.rules,
            detector: &self.detector,
            hosts: &self.hosts,
            counters: &self.counters,
            number_of_hosts: self.members.len() as u32,
        };
        let effects = act(&watch, &mut self.random);
        self.log.extend(effects.log.iter().copied());
        effects
    }

    pub(crate) fn tell(&mut self, name: &str, told: Told, code: Option<u16>, at: u64) {
        let slot = self.slot(name);
        let met = tell(&self.rules, &self.hosts, slot, told, code, false);
        if met != Met::NONE {
            self.run(|watch, random| watch.fire(met, slot, Time(at * MILLI), random));
        }
    }

    pub(crate) fn sweep(&mut self, at: u64) -> Effects {
        let slots: Vec<u32> = self.members.iter().map(|(_, slot)| *slot).collect();
        self.run(|watch, random| watch.sweep(&slots, Time(at * MILLI), random))
    }

    pub(crate) fn check_passed(&mut self, name: &str, at: u64) {
        let slot = self.slot(name);
        self.run(|watch, _| watch.check_passed(slot, Time(at * MILLI)));
    }

    pub(crate) fn flagged(&self, bit: u32) -> Vec<String> {
        let with = self.members.iter().filter(|(_, slot)| self.hosts.flags(*slot) & bit != 0);
        with.map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn ejected(&self) -> Vec<String> {
        self.flagged(flag::FAILED_OUTLIER_CHECK)
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        let name = format!("outlier_detection.{name}");
        let counter = Counter::ALL.iter().find(|counter| counter.name() == name);
        self.counters.get(*counter.unwrap_or_else(|| panic!("no counter {name}")))
    }

    /// Log entries as the vectors write them, since the last call.
    pub(crate) fn log(&mut self) -> Vec<Value> {
        let entry = |(slot, record): (u32, Record)| match record.event {
            Event::Eject(kind, _) => {
                serde_json::json!([self.names[&slot], "EJECT", kind.name(), record.enforced])
            }
            Event::Uneject => serde_json::json!([self.names[&slot], "UNEJECT"]),
        };
        std::mem::take(&mut self.log).into_iter().map(entry).collect()
    }

    fn host<R>(&self, name: &str, ask: impl FnOnce(&Host) -> R) -> R {
        let state = self.detector.state.lock();
        let fresh = Host::default();
        ask(state.hosts.get(&self.slot(name)).unwrap_or(&fresh))
    }

    pub(crate) fn multiplier(&self, name: &str) -> u32 {
        self.host(name, |host| host.multiplier)
    }

    /// Plays one step of a script.
    pub(crate) fn step(&mut self, step: &Value) {
        let at = step["t_ms"].as_u64().unwrap_or(0);
        match step["op"].as_str().unwrap() {
            "result" => {
                let names: Vec<String> = match step["hosts"].as_array() {
                    Some(list) => list.iter().map(|name| name.as_str().unwrap().to_owned()).collect(),
                    None => vec![step["host"].as_str().unwrap().to_owned()],
                };
                let one = [step.clone()];
                let sequence = step["sequence"].as_array().map_or(&one[..], Vec::as_slice);
                for name in names {
                    for _ in 0..step["n"].as_u64().unwrap() {
                        for result in sequence {
                            let code = result["code"].as_u64().map(|code| code as u16);
                            self.tell(&name, told(result["result"].as_str().unwrap()), code, at);
                        }
                    }
                }
            }
            "sweep" => {
                self.sweep(at);
            }
            "sweeps" => {
                let number = |key: &str| step[key].as_u64().unwrap();
                for round in 0..number("count") {
                    self.sweep(number("first_t_ms") + round * number("every_ms"));
                }
            }
            "hc" => {
                let name = step["host"].as_str().unwrap();
                let flags = &self.hosts.facts(self.slot(name)).flags;
                if step["failed_active_hc"].as_bool() == Some(true) {
                    flags.fetch_or(flag::FAILED_ACTIVE_HC, AcqRel);
                } else {
                    flags.fetch_and(!flag::FAILED_ACTIVE_HC, AcqRel);
                }
                if step["healthy"].as_bool() == Some(true) {
                    self.check_passed(name, at);
                }
            }
            "remove" => self.remove(step["host"].as_str().unwrap()),
            "destroy" => self.detector.clear(&self.hosts),
            other => panic!("unknown step {other}"),
        }
    }

    /// Compares the present state with one checkpoint; nothing that it names goes unread.
    pub(crate) fn check(&mut self, wanted: &Value, id: &str) {
        let place = format!("{id} after step {}", wanted["after_step"]);
        let set = |list: &Value| -> BTreeSet<String> {
            list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
        };
        for (key, value) in wanted.as_object().unwrap() {
            match key.as_str() {
                "after_step" => {}
                "ejected" => {
                    assert_eq!(self.ejected().into_iter().collect::<BTreeSet<_>>(), set(value), "{place}")
                }
                "degraded" => {
                    let degraded = self.flagged(flag::DEGRADED_OUTLIER_DETECTION);
                    assert_eq!(degraded.into_iter().collect::<BTreeSet<_>>(), set(value), "{place}");
                }
                "ejections_active" => {
                    assert_eq!(
                        u64::from(self.detector.ejections_active()),
                        value.as_u64().unwrap(),
                        "{place}"
                    );
                }
                "counters" => {
                    for (name, count) in value.as_object().unwrap() {
                        assert_eq!(self.counter(name), count.as_u64().unwrap(), "{name}, {place}");
                    }
                }
                "host_success_rate" => {
                    for (side, hosts) in value.as_object().unwrap() {
                        for (name, rate) in hosts.as_object().unwrap() {
                            let got =
                                self.detector.success_rate(self.slot(name), by_word(side)).unwrap_or(-1.0);
                            assert_eq!(got, rate.as_f64().unwrap(), "{side} rate of {name}, {place}");
                        }
                    }
                }
                "cluster_success_rate" => {
                    for (side, numbers) in value.as_object().unwrap() {
                        let got = self.detector.cluster_success_rate(by_word(side)).unwrap_or((-1.0, -1.0));
                        let number = |key: &str| numbers[key].as_f64().unwrap();
                        assert_eq!(got, (number("average"), number("threshold")), "{side}, {place}");
                    }
                }
                "eject_multiplier" => {
                    for (name, count) in value.as_object().unwrap() {
                        assert_eq!(
                            u64::from(self.multiplier(name)),
                            count.as_u64().unwrap(),
                            "{name}, {place}"
                        );
                    }
                }
                "jitter_ms" => {
                    for (name, jitter) in value.as_object().unwrap() {
                        let got = self.host(name, |host| host.jitter_ms);
                        assert_eq!(got, jitter.as_u64().unwrap(), "{name}, {place}");
                    }
                }
                "log" => assert_eq!(&self.log(), value.as_array().unwrap(), "{place}"),
                "drain_log" => {
                    self.log();
                }
                other => panic!("unknown expectation {other}"),
            }
        }
    }
}

fn by_word(side: &str) -> Side {
    match side {
        "external" => Side::External,
        "local" => Side::Local,
        other => panic!("no side {other}"),
    }
}

/// A result by the vectors' word.
pub(crate) fn told(word: &str) -> Told {
    match word {
        "ext_success" => Told::ExtSuccess,
        "ext_failed" => Told::ExtFailed,
        "ext_degraded" => Told::ExtDegraded,
        "local_timeout" => Told::LocalTimeout,
        "local_connect_failed" => Told::LocalConnectFailed,
        "local_connect_success" => Told::LocalConnectSuccess,
        "local_connect_success_final" => Told::LocalConnectSuccessFinal,
        other => panic!("no result {other}"),
    }
}

/// The fields that scripts use.
pub(crate) fn spec(config: &Value) -> OutlierSpec {
    let mut spec = OutlierSpec::default();
    let mut max = None;
    for (name, value) in config.as_object().unwrap() {
        let number = || value.as_u64().unwrap() as u32;
        let span = || {
            let seconds = value.as_str().unwrap().trim_end_matches('s').parse().unwrap();
            Duration::from_secs_f64(seconds)
        };
        let flag = || value.as_bool().unwrap();
        match name.as_str() {
            "max_ejection_percent" => spec.max_ejection_percent = number(),
            "consecutive_5xx" => spec.consecutive_5xx = number(),
            "base_ejection_time" => spec.base_ejection_time = span(),
            "consecutive_gateway_failure" => spec.consecutive_gateway_failure = number(),
            "interval" => spec.interval = span(),
            "enforcing_consecutive_5xx" => spec.enforcing_consecutive_5xx = number(),
            "split_external_local_origin_errors" => spec.split_external_local_origin_errors = flag(),
            "max_ejection_time" => max = Some(span()),
            "enforcing_success_rate" => spec.enforcing_success_rate = number(),
            "enforcing_failure_percentage" => spec.enforcing_failure_percentage = number(),
            "detect_degraded_hosts" => spec.detect_degraded_hosts = flag(),
            "max_ejection_time_jitter" => spec.max_ejection_time_jitter = span(),
            "enforcing_consecutive_gateway_failure" => spec.enforcing_consecutive_gateway_failure = number(),
            "always_eject_one_host" => spec.always_eject_one_host = flag(),
            "consecutive_local_origin_failure" => spec.consecutive_local_origin_failure = number(),
            "enforcing_consecutive_local_origin_failure" => {
                spec.enforcing_consecutive_local_origin_failure = number();
            }
            "failure_percentage_minimum_hosts" => spec.failure_percentage_minimum_hosts = number(),
            "successful_active_health_check_uneject_host" => {
                spec.successful_active_health_check_uneject_host = flag();
            }
            "success_rate_minimum_hosts" => spec.success_rate_minimum_hosts = number(),
            "success_rate_stdev_factor" => spec.success_rate_stdev_factor = number(),
            "enforcing_local_origin_success_rate" => spec.enforcing_local_origin_success_rate = number(),
            "enforcing_failure_percentage_local_origin" => {
                spec.enforcing_failure_percentage_local_origin = number();
            }
            "failure_percentage_threshold" => spec.failure_percentage_threshold = number(),
            "failure_percentage_request_volume" => spec.failure_percentage_request_volume = number(),
            other => panic!("no field {other}"),
        }
    }
    let most = spec.max_ejection_time.max(spec.base_ejection_time);
    spec.max_ejection_time = max.unwrap_or(most);
    spec
}
