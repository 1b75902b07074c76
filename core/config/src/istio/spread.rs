//! From hosts and a client's place to priorities and weights (`spec/istio-destination-rule.md` section 7).

use super::locality::{LocalitySetting, TOPOLOGY, ZoneSetting, matches, split};
use std::collections::{BTreeMap, BTreeSet};

/// One host of a service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    /// Address and port, or `unix:` and a path.
    pub(crate) address: String,
    pub(crate) port: u16,
    pub(crate) locality: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) weight: u32,
}

/// Who asks: where it is and what labels it carries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Client {
    pub(crate) locality: String,
    pub(crate) labels: BTreeMap<String, String>,
}

/// The setting in force.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Force<'a> {
    /// The mesh's default: on, without a list.
    Default,
    Locality(&'a LocalitySetting),
    Zone(&'a ZoneSetting),
}

/// Hosts of one locality and priority.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) locality: String,
    pub(crate) priority: u32,
    pub(crate) weight: u32,
    /// Positions in the list of hosts.
    pub(crate) members: Vec<usize>,
}

/// Groups hosts. `detects`: outlier detection is there, without which failover does nothing.
pub(super) fn spread(members: &[&Member], force: Force<'_>, client: &Client, detects: bool) -> Vec<Group> {
    let place = split(&client.locality);
    let mut groups = match force {
        Force::Default if detects => {
            grouped(members, |member| distance(&split(&member.locality), &place, &[]))
        }
        Force::Default => grouped(members, |_| 0),
        Force::Locality(setting) if !setting.enabled => grouped(members, |_| 0),
        Force::Zone(setting) if !setting.enabled => grouped(members, |_| 0),
        Force::Locality(setting) if !setting.distribute.is_empty() => {
            distributed(grouped(members, |_| 0), setting, &place)
        }
        Force::Locality(setting) if detects => {
            let labels = &setting.failover_priority;
            let by_label = by_labels(labels, client).filter(|_| !labels.is_empty());
            let by_place = labels.is_empty() || !setting.failover.is_empty();
            grouped(members, |member| {
                let priority = by_label.as_ref().map_or(0, |priority| priority(member));
                match by_place {
                    true => priority * 5 + distance(&split(&member.locality), &place, &setting.failover),
                    false => priority,
                }
            })
        }
        Force::Locality(_) => grouped(members, |_| 0),
        Force::Zone(setting) => {
            let by_label = by_labels(&setting.failover_priority, client);
            grouped(members, |member| {
                let step = region_step(&split(&member.locality)[0], &place[0], &setting.failover);
                by_label.as_ref().map_or(0, |priority| priority(member)) * 3 + step
            })
        }
    };
    renumber(&mut groups);
    groups
}

/// By locality, then priority.
fn grouped(members: &[&Member], priority: impl Fn(&Member) -> u32) -> Vec<Group> {
    let mut map: BTreeMap<(&str, u32), Group> = BTreeMap::new();
    for (at, member) in members.iter().enumerate() {
        let priority = priority(member);
        let group = map.entry((&member.locality, priority)).or_insert_with(|| Group {
            locality: member.locality.clone(),
            priority,
            weight: 0,
            members: Vec::new(),
        });
        group.weight = group.weight.saturating_add(member.weight);
        group.members.push(at);
    }
    map.into_values().collect()
}

/// Priorities without gaps, from 0.
fn renumber(groups: &mut [Group]) {
    let used: BTreeSet<u32> = groups.iter().map(|group| group.priority).collect();
    let order: BTreeMap<u32, u32> = used.into_iter().zip(0..).collect();
    for group in groups {
        group.priority = order.get(&group.priority).copied().unwrap_or(0);
    }
}

/// 0 in the same subzone to 3 in another region; 4 when the client's region fails over to yet another one.
fn distance(place: &[String; 3], client: &[String; 3], failover: &[(String, String)]) -> u32 {
    if place[0] == client[0] {
        return match (place[1] == client[1], place[2] == client[2]) {
            (true, true) => 0,
            (true, false) => 1,
            (false, _) => 2,
        };
    }
    match failover.iter().find(|(from, _)| *from == client[0]) {
        Some((_, to)) if *to != place[0] => 4,
        _ => 3,
    }
}

fn region_step(region: &str, client: &str, failover: &[(String, String)]) -> u32 {
    if region == client {
        return 0;
    }
    match failover.iter().find(|(from, _)| from == client) {
        Some((_, to)) if to == region => 1,
        _ => 2,
    }
}

/// Priority by leading labels that agree; `None` for a client without labels.
fn by_labels<'a>(wanted: &'a [String], client: &'a Client) -> Option<impl Fn(&Member) -> u32 + use<'a>> {
    const NETWORK: &str = "topology.istio.io/network";
    if client.labels.is_empty() {
        return None;
    }
    let all = u32::try_from(wanted.len()).unwrap_or(u32::MAX / 16);
    let own = with_place(&client.labels, &client.locality);
    Some(move |member: &Member| {
        let theirs = with_place(&member.labels, &member.locality);
        let agrees = |label: &&String| match label.split_once('=') {
            Some((key, value)) => theirs.get(key).is_some_and(|found| found == value),
            None => own.get(label.as_str()) == theirs.get(label.as_str()),
        };
        let leading = wanted.iter().take_while(agrees).count();
        let far = leading == 0 && wanted.first().is_some_and(|label| label == NETWORK);
        all - u32::try_from(leading).unwrap_or(0) + if far { all } else { 0 }
    })
}

/// Labels, and those that the place implies.
fn with_place(labels: &BTreeMap<String, String>, locality: &str) -> BTreeMap<String, String> {
    let mut all = labels.clone();
    for (label, part) in TOPOLOGY.iter().zip(split(locality)) {
        if !part.is_empty() {
            all.entry((*label).to_owned()).or_insert(part);
        }
    }
    all
}

/// Weights by shares; a locality that no pattern names loses its hosts.
fn distributed(mut groups: Vec<Group>, setting: &LocalitySetting, client: &[String; 3]) -> Vec<Group> {
    let Some(entry) = setting.distribute.iter().find(|entry| matches(client, &entry.from)) else {
        return groups;
    };
    let mut left: BTreeSet<usize> = (0..groups.len()).collect();
    for (pattern, share, _) in &entry.to {
        let named: Vec<usize> =
            left.iter().copied().filter(|&at| matches(&split(&groups[at].locality), pattern)).collect();
        let total: u64 = named.iter().map(|&at| u64::from(groups[at].weight)).sum();
        for at in named {
            let part = (u64::from(groups[at].weight) * u64::from(*share)).div_ceil(total.max(1));
            groups[at].weight = u32::try_from(part).unwrap_or(u32::MAX);
            left.remove(&at);
        }
    }
    for at in left {
        groups[at].members.clear();
    }
    groups
}
