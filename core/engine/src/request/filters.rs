//! What a request brings to filters, what these tell, and the life of a request as Spring's listeners see it
//! (`spec/gray-and-nacos.md` sections 1, 8 and 9).

use super::Walk;
use super::state::{Attempt, State};
use crate::balance::{Criteria, FilterCall, FilterTold, filter_text};
use crate::cluster::ClusterView;
use crate::events::{Json, timestamp};
use crate::hash::find_cookie;
use crate::hosts::HostArena;
use crate::outcome::{Outcome, failure, resource};
use crate::policies::ClusterPolicy;
use crate::route::RequestView;
use crate::spec::{FilterSpec, RequestValue, StageRule};
use crate::sync::atomic::Ordering::Relaxed;

/// What a request brings to the filters of its cluster, or of sub-clusters.
#[derive(Default)]
pub(crate) struct Brought {
    /// Values by stage, for each cluster with filters.
    pub(crate) values: Vec<(u32, Vec<Option<String>>)>,
    /// Its life is told in events.
    pub(crate) told: bool,
}

/// What stands for the name of this machine.
const HOSTNAME: &str = "${HOSTNAME}";
/// No host has this: a machine without a name is nobody's.
const NOBODY: &str = "\u{0}";

/// The value of each stage.
pub(crate) fn values(
    spec: &FilterSpec,
    view: &RequestView<'_>,
    context: Option<&Criteria>,
    hostname: &str,
) -> Vec<Option<String>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let value = |rule: &StageRule| {
        let StageRule::Match(rule) = rule else { return None };
        let value = rule.values.iter().find_map(|value| {
            let found = match value {
                RequestValue::Header(name) => view.headers.first(name).map(text),
                RequestValue::Cookie(name) => find_cookie(view.headers.values("cookie"), name).map(text),
                RequestValue::Context(name) => context.and_then(|own| filter_text(own.fields().get(name)?)),
                RequestValue::Fixed(value) => Some(value.clone()),
            };
            found.filter(|value| !value.is_empty())
        })?;
        let value = match &rule.hostname {
            Some(own) if value == HOSTNAME => {
                let name = own.as_deref().unwrap_or(hostname);
                if name.is_empty() { NOBODY.to_owned() } else { name.to_owned() }
            }
            _ => value,
        };
        Some(rule.value_map.get(&value).cloned().unwrap_or(value))
    };
    spec.stages.iter().map(|stage| value(&stage.rule)).collect()
}

impl<'a> Walk<'a> {
    /// Keeps what the filters of a cluster, or of its sub-clusters, ask of a request.
    #[cold]
    pub(super) fn bring(
        &self,
        st: &mut State,
        own: &ClusterPolicy,
        view: &RequestView<'_>,
        context: Option<&Criteria>,
    ) {
        let hostname = &self.core.settings.hostname;
        let values = own.filters.iter().map(|(of, spec)| (*of, values(spec, view, context, hostname)));
        let values = values.collect();
        let told = own.lifecycle;
        st.rare().brought = Some(Box::new(Brought { values, told }));
        if told {
            self.live(st, "start", None, |json| json);
        }
    }

    /// The host of the attempt before, as a filter asks for it.
    pub(super) fn previous(&self, st: &State, view: &ClusterView) -> Option<u32> {
        let named = st.rare.as_deref().filter(|_| st.has_rare).map_or(&[][..], |rare| &rare.tried);
        previous(&self.core.hosts, view, &st.tried, named)
    }

    /// Events of one choice. Returns why there is no host.
    #[cold]
    pub(super) fn filters_told(&self, cluster: u32, call: &FilterCall<'_>) -> u8 {
        let Some(told) = call.told.take() else { return resource::NONE };
        let FilterTold { refused, warnings } = *told;
        for warning in warnings {
            let json = Json::new()
                .text("type", "nexthop.filter")
                .text("timestamp", &self.stamp())
                .text("code", &warning.code)
                .text("cluster", &self.clusters[cluster as usize].shared.name)
                .text("stage", &warning.stage)
                .text("value", &warning.value);
            self.core.events.push(json.end());
        }
        if refused.is_some() { resource::FILTERED } else { resource::NONE }
    }

    fn stamp(&self) -> String {
        timestamp(self.core.settings.unix_base.saturating_add(self.now.0))
    }

    /// A request's listeners hear of something.
    fn live(&self, st: &State, phase: &str, attempt: Option<&Attempt>, more: impl FnOnce(Json) -> Json) {
        let mut json = Json::new()
            .text("type", "nexthop.lifecycle")
            .text("timestamp", &self.stamp())
            .text("phase", phase)
            .text("cluster", &self.clusters[st.cluster as usize].shared.name);
        if let Some(attempt) = attempt {
            let info = self.core.hosts.info(attempt.slot);
            json = json
                .raw("attempt", attempt.number)
                .text("host", info.as_ref().map_or("", |(_, info)| &info.address));
        }
        self.core.events.push(more(json).end());
    }

    /// A host is known; the attempt may be sent.
    #[cold]
    pub(super) fn live_start(&self, st: &State, attempt: &Attempt) {
        if tells(st) {
            self.live(st, "start_request", Some(attempt), |json| json);
        }
    }

    /// An attempt is over: with any answer that is a success, as Spring counts.
    #[cold]
    pub(super) fn live_complete(&self, st: &State, attempt: &Attempt, outcome: &Outcome<'_>) {
        self.live(st, "complete", Some(attempt), |json| match outcome.failure {
            failure::NONE => json.text("status", "SUCCESS").raw("code", outcome.status.max(200)),
            kind => json
                .text("status", "FAILED")
                .text("failure", failure::NAMES.get(usize::from(kind)).copied().unwrap_or("")),
        });
    }

    /// There is no host: nothing was sent.
    #[cold]
    pub(super) fn live_discard(&self, st: &State) {
        if tells(st) {
            self.live(st, "complete", None, |json| json.text("status", "DISCARD"));
        }
    }
}

/// The last host of those tried: slots with births, else, for stateless attempts, addresses.
pub(crate) fn previous(
    hosts: &HostArena,
    view: &ClusterView,
    tried: &[(u32, u32)],
    named: &[String],
) -> Option<u32> {
    if let Some((slot, birth)) = tried.last() {
        return (hosts.facts(*slot).birth.load(Relaxed) == *birth).then_some(*slot);
    }
    let named = named.last()?;
    let slots = view.members.iter().map(|member| member.slot);
    slots.into_iter().find(|slot| hosts.info(*slot).is_some_and(|(_, info)| info.address == *named))
}

/// Whether a request's life is told.
pub(super) fn tells(st: &State) -> bool {
    st.has_rare && st.rare.as_deref().and_then(|rare| rare.brought.as_ref()).is_some_and(|own| own.told)
}
