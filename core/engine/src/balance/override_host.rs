//! override_host (section 25.1): hosts that a request lists by address, then a policy of its own. Their health does not
//! matter, nor does any predicate of retries.

use super::{Accept, Policy, Scheduler, Selection, View};
use crate::clock::Time;
use crate::random::Source;
use crate::spec::PolicySpec;
use std::cell::Cell;

/// The addresses that a request lists, each of which is asked for once.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    list: Vec<String>,
    next: Cell<usize>,
}

impl Overrides {
    /// Lists of addresses apart by commas, one after the other.
    pub(crate) fn new<'t>(lists: impl IntoIterator<Item = &'t str>) -> Self {
        let pieces = lists.into_iter().flat_map(|list| list.split(','));
        let list = pieces.map(str::trim_ascii).filter(|piece| !piece.is_empty()).map(str::to_owned).collect();
        Self { list, next: Cell::new(0) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn take(&self) -> Option<&str> {
        let at = self.next.get();
        let address = self.list.get(at)?;
        self.next.set(at + 1);
        Some(address)
    }
}

/// The policy.
pub(super) struct OverrideHost {
    fallback: Box<Scheduler>,
}

/// The same hosts under the fallback.
fn below(view: View<'_>) -> View<'_> {
    match view.policy {
        PolicySpec::OverrideHost(spec) => View { policy: &spec.fallback, ..view },
        _ => view,
    }
}

impl Policy for OverrideHost {
    fn new(view: View<'_>, random: &mut Source, now: Time) -> Self {
        Self { fallback: Box::new(Scheduler::new(below(view), random, now)) }
    }

    fn refresh(&mut self, view: View<'_>, random: &mut Source, now: Time) {
        self.fallback.refresh(below(view), random, now);
    }

    #[inline(never)]
    fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        while let Some(address) = selection.overrides.and_then(Overrides::take) {
            if let Some((slot, priority)) = view.prepared.at_address(view.sets, view.hosts, address) {
                (selection.priority, selection.panic, selection.degraded) = (priority, false, false);
                return Some(slot);
            }
        }
        self.fallback.choose(below(view), selection)
    }

    fn search(&mut self, view: View<'_>, selection: &mut Selection<'_>, accept: Accept<'_>) -> Option<u32> {
        self.fallback.search(below(view), selection, accept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::{Ask, TestCluster, TestHost, each_case};
    use crate::hosts::flag;
    use crate::spec::{OverrideSpec, PolicySpec};
    use std::sync::Arc;

    fn policy() -> PolicySpec {
        PolicySpec::OverrideHost(Arc::new(OverrideSpec::default()))
    }

    #[test]
    fn listed_hosts_then_the_fallback() {
        each_case("override_host", 12, &[], |name, given, expect| {
            let Some(expected) = expect["picks_by_attempt"].as_array() else { return };
            let unhealthy = |address: &str| {
                given["unhealthy"].as_array().into_iter().flatten().any(|down| down == address)
            };
            let addresses: Vec<&str> =
                given["hosts"].as_array().unwrap().iter().map(|host| host.as_str().unwrap()).collect();
            let host = |address: &&str| TestHost {
                flags: if unhealthy(address) { flag::FAILED_EDS_HEALTH } else { 0 },
                ..TestHost::at(address)
            };
            let hosts: Vec<TestHost> = addresses.iter().map(host).collect();
            let mut cluster = TestCluster::with_hosts(policy(), &hosts, &[]);
            let sources = given["sources"].as_array().unwrap().iter();
            let lists = sources.filter_map(|source| given["values"][source["header"].as_str()?].as_str());
            let overrides = Overrides::new(lists);
            for (attempt, expected) in expected.iter().enumerate() {
                let candidates = if attempt == 0 { 1 } else { 2 };
                let reject = |_: usize| true;
                let before = overrides.next.get();
                let picked = cluster.ask(Ask {
                    overrides: Some(&overrides),
                    candidates,
                    reject: (attempt > 0).then_some(&reject),
                    ..Ask::default()
                });
                let chosen = picked.host.map(|host| addresses[host]);
                match expected.as_str().unwrap() {
                    "fallback" => {
                        assert_eq!(overrides.next.get(), overrides.list.len(), "{name}");
                        assert!(picked.draws > 0, "{name}: the fallback draws");
                    }
                    address => {
                        assert_eq!(chosen, Some(address), "{name}");
                        assert_eq!(picked.draws, 0, "{name}");
                        assert!(overrides.next.get() > before);
                    }
                }
            }
        });
    }

    #[test]
    fn any_priority_will_do() {
        let hosts = [TestHost::at("a:1"), TestHost { priority: 1, ..TestHost::at("b:1") }];
        let mut cluster = TestCluster::new(
            policy(),
            crate::balance::testing::Assignment { priorities: 2, ..Default::default() },
        );
        cluster.update(&hosts, &[]);
        let overrides = Overrides::new(["z:1,,b:1"]);
        let picked = cluster.ask(Ask { overrides: Some(&overrides), ..Ask::default() });
        assert_eq!((picked.host, picked.priority), (Some(1), 1));
    }
}
