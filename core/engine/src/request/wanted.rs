//! A host that a request asks for by address (`spec/load-balancing.md` section 25.2).

use crate::cluster::ClusterView;
use crate::hosts::{HostArena, HostInfo, flag};
use crate::spec::HealthStatus;

/// The slot and priority of a cluster's host at this address, when its health is one that the cluster allows.
#[cold]
pub(super) fn wanted(hosts: &HostArena, view: &ClusterView, address: &str) -> Option<(u32, u32)> {
    let (slot, priority) = view.prepared.at_address(&view.sets, hosts, address)?;
    let (_, info) = hosts.info(slot)?;
    let allowed = &view.spec.override_host_status;
    allowed.contains(&status(hosts.flags(slot), &info)).then_some((slot, priority))
}

/// What discovery said, unless active checks or outlier detection know better.
fn status(flags: u32, info: &HostInfo) -> HealthStatus {
    if flags & (flag::FAILED_ACTIVE_HC | flag::FAILED_OUTLIER_CHECK) != 0 {
        return HealthStatus::Unhealthy;
    }
    match info.health {
        down @ (HealthStatus::Unhealthy | HealthStatus::Draining | HealthStatus::Timeout) => down,
        _ if flags & flag::DEGRADED_ACTIVE_HC != 0 => HealthStatus::Degraded,
        said => said,
    }
}

#[cfg(test)]
mod tests {
    use crate::balance::testing::each_case;
    use crate::clock::Time;
    use crate::engine::{Core, Settings};
    use crate::outcome::{Decision, Head, kind, refusal};
    use crate::spec::{
        ClusterSpec, Endpoint, EndpointSpec, Endpoints, HealthStatus, LocalityEndpoints, Specs,
    };
    use serde_json::Value;

    fn status(name: &Value) -> HealthStatus {
        match name.as_str().unwrap() {
            "UNKNOWN" => HealthStatus::Unknown,
            "HEALTHY" => HealthStatus::Healthy,
            "UNHEALTHY" => HealthStatus::Unhealthy,
            "DRAINING" => HealthStatus::Draining,
            "TIMEOUT" => HealthStatus::Timeout,
            "DEGRADED" => HealthStatus::Degraded,
            other => panic!("unknown status {other}"),
        }
    }

    /// The address chosen, `None` when the request is refused.
    fn choose(core: &Core, wanted: &str, number: u32) -> Option<String> {
        let mut worker = core.worker(Time(0));
        let mut out = Decision::default();
        let head = Head { target: core.resolve("c").unwrap(), override_host: wanted, ..Head::default() };
        let stateless = (number > 0).then_some(crate::request::Stateless { number });
        core.begin(&mut worker, &head, stateless, Time(1), &mut out).unwrap();
        if out.kind != kind::GO {
            assert_eq!(out.refusal, refusal::NO_HEALTHY_UPSTREAM);
            return None;
        }
        Some(core.host(out.host, out.host_version).unwrap().1.address.clone())
    }

    #[test]
    fn stateful() {
        let mut ran = 0;
        each_case("override_host", 12, &[], |name, given, expect| {
            let Some(queries) = given["queries"].as_array() else { return };
            ran += 1;
            let host = |host: &Value| EndpointSpec {
                address: host["address"].as_str().unwrap().into(),
                health: status(&host["health_status"]),
                ..EndpointSpec::default()
            };
            let endpoints = given["hosts"].as_array().unwrap().iter().map(host).map(Endpoint::from).collect();
            let group = LocalityEndpoints { endpoints, ..LocalityEndpoints::default() };
            let mut cluster = ClusterSpec {
                name: "c".into(),
                endpoints: Endpoints { localities: vec![group], ..Endpoints::default() },
                ..ClusterSpec::default()
            };
            if let Some(statuses) = given["override_host_status"].as_array() {
                cluster.override_host_status = statuses.iter().map(status).collect();
            }
            let specs = Specs { clusters: vec![cluster], ..Specs::default() };
            let core = Core::new(&specs, Settings::default(), Time(0)).unwrap();
            let strict = given["strict"].as_bool().unwrap();
            for (query, result) in queries.iter().zip(expect["results"].as_array().unwrap()) {
                let address = query.as_str().unwrap();
                let wanted = if strict { format!("!{address}") } else { address.to_owned() };
                // Two in a row: what a balancer chooses changes, the wanted host does not.
                let chosen = [(); 4].map(|()| choose(&core, &wanted, 0));
                match result.as_str().unwrap() {
                    "override host" => {
                        assert_eq!(chosen, [(); 4].map(|()| Some(address.to_owned())), "{name}")
                    }
                    "null" => assert_eq!(chosen, [const { None }; 4], "{name}"),
                    "load balancer" => {
                        let others = |chosen: &Option<String>| chosen.as_ref().is_some_and(|c| c != address);
                        assert!(chosen.iter().any(others), "{name}: {address}");
                    }
                    other => panic!("unknown result {other}"),
                }
            }
        });
        assert!(ran > 0);
    }

    #[test]
    fn only_the_first_attempt_asks() {
        let host = |address: &str| EndpointSpec { address: address.into(), ..EndpointSpec::default() };
        let group = LocalityEndpoints {
            endpoints: vec![host("a:1").into(), host("b:1").into()],
            ..LocalityEndpoints::default()
        };
        let endpoints = Endpoints { localities: vec![group], ..Endpoints::default() };
        let cluster = ClusterSpec { name: "c".into(), endpoints, ..ClusterSpec::default() };
        let specs = Specs { clusters: vec![cluster], ..Specs::default() };
        let core = Core::new(&specs, Settings::default(), Time(0)).unwrap();
        assert_eq!(choose(&core, "!b:1", 1).as_deref(), Some("b:1"));
        // The host is not there, yet a later attempt does not insist on it.
        assert_eq!(choose(&core, "!z:1", 1), None);
        assert!(choose(&core, "!z:1", 2).is_some());
    }
}
