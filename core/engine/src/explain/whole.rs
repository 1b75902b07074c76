//! A head that only asks, and decisions of requests whose head wants to know.

use super::hosts::{Asked, Predicates, hosts};
use super::{Explanation, LevelWhy, LimitWhy, RetryWhy, RouteWhy, TimesWhy};
use crate::balance::Criteria;
use crate::breaker::{Doors, Members, Room};
use crate::clock::{Time, nanos};
use crate::cluster::Subs;
use crate::engine::Core;
use crate::headers::HeaderView;
use crate::leads::{Leads, Share};
use crate::outcome::{Head, Misuse, NEVER, head_bits, refusal, resource};
use crate::policies::{Policies, RequestPolicy};
use crate::random::{Draws, Source};
use crate::request::{Again, Asks, Course, Judge, State, filter_previous, filter_values};
use crate::retry::RetrySettings;
use crate::route::RequestView;
use crate::snapshot::Snapshot;
use crate::spec::{PathMatch, RetryOn};
use crate::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use twox_hash::XxHash64;

/// What a request knows beside its state.
pub(crate) struct Beside<'a> {
    pub(crate) criteria: Option<&'a Criteria>,
    /// Values of filters by cluster.
    pub(crate) values: &'a [(u32, Vec<Option<String>>)],
    /// Addresses that were tried.
    pub(crate) named: &'a [String],
    /// Hosts, slot and birth, that answers spoke against.
    pub(crate) avoid: &'a [(u32, u32)],
    pub(crate) now: Time,
}

/// So many moves from cluster to cluster are followed.
const MOVES: u32 = 64;

impl Core {
    /// What would be decided for a head, and why: nothing is decided or counted. Where a draw would decide (weighted
    /// clusters), the first of them is followed. `head.number` is the attempt to explain; 0 = the first.
    ///
    /// # Errors
    /// As `begin`: a head that no request could have.
    pub fn explain_head(&self, head: &Head<'_>, now: Time) -> Result<Explanation, Misuse> {
        let snapshot = self.current.lock().clone();
        let policies = &snapshot.policies;
        let names = match head.headers.is_empty() {
            true => None,
            false => Some(self.wants.lock().get(head.want).ok_or(Misuse::Invalid)?),
        };
        let headers =
            HeaderView::new(names.as_deref().unwrap_or(&[]), head.headers).ok_or(Misuse::Invalid)?;
        let view = head.view(headers);
        let context = self.own_criteria(head)?.map(Arc::new);
        let mut why = Explanation { number: head.number.max(1), ..Explanation::default() };
        // Words of zero: what a runtime fraction may let through, it lets through.
        let mut zero = Source::Draws(Draws::default());
        let mut word = None;
        let Some(at) = policies.of_head(head, &view, &mut word, &mut zero)? else {
            (why.refusal, why.route.why) = match head.target {
                0 => (refusal::NO_ROUTE, no_route(policies, &view)),
                _ => (refusal::NO_CLUSTER, "no document has a cluster or route of that name".into()),
            };
            return Ok(why);
        };
        let policy = &policies.list[at as usize];
        why.route = route_why(policies, policy, head.target == 0);
        let cluster = match &policy.leads {
            Leads::Direct { status, .. } => {
                why.refusal = refusal::DIRECT_RESPONSE;
                why.route.why += &format!("; it answers {status} by itself");
                let to = policy.route.and_then(|route| policies.tables.location(route as usize, &view));
                if let Some(to) = to {
                    why.route.why += &format!(", location {to}");
                }
                return Ok(why);
            }
            Leads::Cluster(cluster) => Some(*cluster),
            Leads::Header(name) => {
                let value = headers.first(name).and_then(|value| std::str::from_utf8(value).ok());
                policies.names.get(value.unwrap_or("")).copied()
            }
            leads => {
                let word = policy.word(head, &view, &mut word, &mut zero);
                let mut again = Again::new(policies, leads, word, &self.namespaces(head)?);
                let first = again.choose(leads, 1).map(|(cluster, _)| cluster);
                let moves = first.is_some_and(|first| policies.retry_of(at, first).refresh_cluster);
                let number = if moves { why.number } else { 1 };
                // What comes after so many is no other cluster than one of those.
                let later = (2..=number.min(MOVES)).filter_map(|n| again.choose(leads, n)).last();
                if let Some((group, shares)) = again.group(leads, number) {
                    if !group.is_empty() {
                        why.route.why += &format!("; attempt {} takes priority group {group:?}", why.number);
                    }
                    let name = |share: &Share| {
                        let entry = snapshot.clusters.get(share.cluster as usize);
                        (entry.map_or_else(String::new, |entry| entry.shared.name.to_string()), share.weight)
                    };
                    why.route.weighted = shares.list.iter().map(name).collect();
                }
                later.map(|(cluster, _)| cluster).or(first)
            }
        };
        let Some(cluster) = cluster.filter(|cluster| policies.cluster(*cluster).is_some()) else {
            why.refusal = refusal::NO_CLUSTER;
            return Ok(why);
        };
        let mut st = State::default();
        st.begin(&Course::new(policies, at, cluster), now);
        st.number = why.number;
        st.is_retry = why.number > 1;
        let trusted = head.bits & head_bits::INTERNAL != 0;
        if trusted {
            let limits = policy.limits.resolve(headers, true, false);
            (st.timeout, st.per_try) = (limits.timeout, limits.per_try);
        }
        if head.timeout != 0 {
            st.timeout = st.timeout.min(head.timeout);
        }
        if let 0 | 1 = head.priority {
            st.routing = head.priority as u8;
        }
        let retry = policies.retry(&st);
        if trusted || !retry.is_plain() {
            match RetrySettings::new(retry, &view, trusted) {
                Some(settings) => {
                    (st.retries, st.remaining, st.on) = (true, settings.remaining, settings.bits);
                }
                None => (st.retries, st.remaining, st.on) = (false, 0, RetryOn::NONE),
            }
        }
        st.remaining = st.remaining.saturating_sub(why.number - 1);
        let own = policies.cluster(cluster);
        let criteria = Criteria::both(policy.criteria.as_ref(), context.as_ref());
        if let Some(own) = own.filter(|own| own.hashes) {
            why.hash = match head.key {
                _ if head.bits & head_bits::HASH != 0 => Some(head.hash),
                Some(key) => Some(XxHash64::oneshot(0, key)),
                None => own.hash_policies(policy).evaluate(&head.hash_input(&view), &mut None),
            };
        }
        let values: Vec<(u32, Vec<Option<String>>)> = own
            .into_iter()
            .flat_map(|own| &own.filters)
            .map(|(of, spec)| (*of, filter_values(spec, &view, context.as_deref(), &self.settings.hostname)))
            .collect();
        let tried: Vec<String> =
            head.tried.split(',').map(|a| a.trim_ascii().to_owned()).filter(|a| !a.is_empty()).collect();
        let beside =
            Beside { criteria: criteria.as_deref(), values: &values, named: &tried, avoid: &[], now };
        self.explain_state(&snapshot, policies, &st, &beside, &mut why);
        let entry = &snapshot.clusters[cluster as usize];
        if let Some(view) = entry.view.as_ref().filter(|_| st.is_retry && st.retries) {
            // Nobody decided a stateless retry before: its limit comes before any host.
            let (p, members) = (usize::from(st.routing), Members { hosts: &self.hosts, list: &view.members });
            if !entry.shared.ledgers[p].has_retry(&view.limits[p], members, p, now) {
                (why.refusal, why.resource) = (refusal::OVERFLOW, resource::RETRIES);
            }
        }
        if let Some(sheds) = &entry.sheds
            && let Some((refusal, told)) = sheds.why(st.is_retry)
        {
            if refusal != 0 {
                (why.refusal, why.resource) = (refusal, resource::NONE);
            }
            if let Some(level) = why.levels.first_mut() {
                level.why += &format!("; {told}");
            }
        }
        Ok(why)
    }

    /// What of an explanation a request's state tells: cluster, hosts, limits, times, retries.
    pub(crate) fn explain_state(
        &self,
        snapshot: &Snapshot,
        policies: &Policies,
        st: &State,
        beside: &Beside<'_>,
        why: &mut Explanation,
    ) {
        let Beside { criteria, values, named, avoid, now } = *beside;
        let retry = policies.retry(st);
        let policy = policies.request(st);
        why.number = st.number.max(1);
        let hosts_of = |cluster: u32| -> Option<(bool, super::HostsWhy)> {
            let entry = snapshot.clusters.get(cluster as usize)?;
            let view = entry.view.as_ref()?;
            let own = values.iter().find(|(of, _)| *of == cluster).map_or(&[][..], |(_, values)| values);
            let predicates = Predicates { policy: retry, tried: &st.tried, named };
            let predicates =
                (st.is_retry && (retry.rejects() || view.spec.exclude_tried)).then_some(predicates);
            let p = usize::from(st.routing);
            let doors = Doors {
                room: Room {
                    hosts: &self.hosts,
                    ledger: &entry.shared.ledgers[p],
                    max_connections: view.limits[p].max_connections,
                    per_host: view.spec.breakers.per_host_max_connections[p].unwrap_or(u32::MAX),
                    streams: view.streams,
                },
                limits: &view.limits[p],
                members: Members { hosts: &self.hosts, list: &view.members },
                queues: &entry.shared.queues,
                strict: view.strict,
            };
            let asks = Asks { routing: st.routing, avoid, probes: !st.is_retry };
            let asked = Asked {
                criteria,
                values: own,
                previous: filter_previous(&self.hosts, view, &st.tried, named),
                retry: predicates,
                doors: (doors, p),
                judge: &Judge::new(self, snapshot, cluster, view, &asks, now),
            };
            let found = hosts(view, &self.hosts, &asked);
            Some((found.any(), found))
        };
        let mut cluster = st.cluster;
        while let Some(entry) = snapshot.clusters.get(cluster as usize) {
            let mut level = LevelWhy { cluster: entry.shared.name.to_string(), why: String::new() };
            let Some(view) = &entry.view else {
                level.why = "no document has this cluster".into();
                why.levels.push(level);
                break;
            };
            let usable = |sub: &u32| {
                let view = snapshot.clusters.get(*sub as usize).and_then(|entry| entry.view.as_ref());
                view.is_some_and(|view| view.subs.is_some() || hosts_of(*sub).is_some_and(|(any, _)| any))
            };
            let subs = match &view.subs {
                None => {
                    level.why = "it has hosts of its own".into();
                    why.levels.push(level);
                    why.hosts = hosts_of(cluster).map(|(_, found)| found);
                    break;
                }
                Some(Subs::Aggregate(subs)) => {
                    let parts = subs.len();
                    level.why = format!(
                        "an aggregate: the priorities of its {parts} clusters, laid end to end; the first with a host is explained"
                    );
                    why.levels.push(level);
                    match subs.iter().find(|sub| usable(sub)).or_else(|| subs.first()) {
                        Some(sub) => cluster = *sub,
                        None => break,
                    }
                    continue;
                }
                Some(Subs::Composite(subs)) => subs,
            };
            let first = why.number as usize - 1;
            let rest = subs.get(first..).unwrap_or(&[]);
            let found = match snapshot.runtime.composite_skip_empty {
                true => rest.iter().position(usable),
                false => (!rest.is_empty()).then_some(0),
            };
            match found {
                Some(skipped) => {
                    level.why =
                        format!("a composite: attempt {} goes to its sub-cluster {}", why.number, first + 1);
                    if skipped > 0 {
                        level.why += &format!(", and {skipped} further on, because no host was there");
                    }
                    why.levels.push(level);
                    cluster = rest[skipped];
                }
                None => {
                    level.why =
                        format!("a composite of {}: attempt {} finds no sub-cluster", subs.len(), why.number);
                    why.levels.push(level);
                    why.refusal = refusal::NO_HEALTHY_UPSTREAM;
                    break;
                }
            }
        }
        if why.hosts.as_ref().is_none_or(|found| found.more == 0 && !found.any()) && why.refusal == 0 {
            let cooling = why.hosts.as_ref().is_some_and(|found| found.cooling);
            why.refusal = if cooling { refusal::COOLING } else { refusal::NO_HEALTHY_UPSTREAM };
        }
        let closed = why.hosts.as_ref().map_or(resource::NONE, super::HostsWhy::closed_by);
        if why.refusal == 0 && closed != resource::NONE {
            (why.refusal, why.resource) = (refusal::OVERFLOW, closed);
        }
        let p = usize::from(st.routing);
        if let Some((entry, view)) =
            snapshot.clusters.get(cluster as usize).and_then(|entry| Some((entry, entry.view.as_ref()?)))
        {
            let ledger = &entry.shared.ledgers[p];
            let limits = &view.limits[p];
            let members = Members { hosts: &self.hosts, list: &view.members };
            let limit = |name, used: u32, max: u32| LimitWhy { name, used: used.into(), max: max.into() };
            why.limits = vec![
                limit("connections", ledger.connections.load(Relaxed), limits.max_connections),
                limit("pending_requests", ledger.pending.load(Relaxed), limits.max_pending_requests),
                limit("requests", ledger.active(members, p), limits.max_requests),
                limit("retries", ledger.retries.load(Relaxed), limits.max_retries),
            ];
            why.times.connect = nanos(view.spec.connect_timeout);
        }
        why.times = TimesWhy {
            timeout: st.timeout,
            per_try: if st.timeout != NEVER && st.per_try >= st.timeout { NEVER } else { st.per_try },
            per_try_idle: policy.per_try_idle,
            ..std::mem::take(&mut why.times)
        };
        why.retry = retry_why(st, retry.previous_hosts, st.retries);
    }
}

fn retry_why(st: &State, avoids: bool, retries: bool) -> RetryWhy {
    let on = if retries { st.on.names() } else { Vec::new() };
    let left = if retries { st.remaining } else { 0 };
    let then = match (on.is_empty(), left) {
        (true, _) => "no retry policy acts: the outcome is final".to_owned(),
        (false, 0) => "no retry is left: the outcome is final".to_owned(),
        (false, left) => format!(
            "a failure that meets a condition is tried again, up to {left} times, if the limit of retries allows it{}",
            if avoids { ", on a host that was not tried if one is drawn" } else { "" }
        ),
    };
    RetryWhy { on, left, then }
}

/// How a request came by its policy.
pub(crate) fn route_why(policies: &Policies, policy: &RequestPolicy, matched: bool) -> RouteWhy {
    let Some(route) = policy.route else {
        return RouteWhy { why: "the caller named the cluster".into(), ..RouteWhy::default() };
    };
    let (spec, host, table) = policies.tables.get(route as usize);
    let table = if table.is_empty() { String::new() } else { format!(" of table {table:?}") };
    let path = match &spec.matcher.path {
        PathMatch::Prefix(path) => format!("path begins with {path:?}"),
        PathMatch::Exact(path) => format!("path is {path:?}"),
        PathMatch::SeparatedPrefix(path) => format!("path is {path:?} or below it"),
        PathMatch::Regex(path) => format!("path matches {path:?}"),
    };
    let more = spec.matcher.headers.len() + spec.matcher.query.len() + usize::from(spec.matcher.grpc);
    let more = if more > 0 { format!(" and {more} more conditions") } else { String::new() };
    let why = match matched {
        true => format!(
            "virtual host {:?}{table} has a domain for the authority ({}); its first route that fits is the one whose {path}{more}",
            host.name,
            host.domains.join(", "),
        ),
        false => format!("the caller named the route (virtual host {:?}{table}, {path}{more})", host.name),
    };
    RouteWhy { name: policy.name.clone(), why, weighted: Vec::new() }
}

fn no_route(policies: &Policies, view: &RequestView<'_>) -> String {
    match policies.by_route.len() {
        0 => "no document has routes; name a cluster".into(),
        count => format!(
            "none of {count} routes fits authority {:?}, path {:?}, method {:?}",
            view.authority,
            if view.path.is_empty() { "/" } else { view.path },
            if view.method.is_empty() { "GET" } else { view.method },
        ),
    }
}
