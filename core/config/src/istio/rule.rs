//! `DestinationRule`, and several of them for one host (`spec/istio-destination-rule.md` sections 2, 9).

use super::policy::{Policy, policy};
use super::read::{Problems, labels, object};
use crate::error::Result;
use crate::read::{At, Fields, Msg, Seen};
use std::collections::{BTreeMap, BTreeSet};

const RULE: Fields = Fields::of("DestinationRule", &["host", "trafficPolicy", "subsets"])
    .not_used(&["workloadSelector", "exportTo"]);
const SUBSET: Fields = Fields::of("subsets", &["name", "labels", "trafficPolicy"]);
const SELECTOR: Fields = Fields::of("workloadSelector", &[]).not_used(&["matchLabels"]);
const META: Fields = Fields::of("metadata", &["name", "namespace", "creationTimestamp", "labels"]);

/// Name, namespace and age of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Meta {
    pub(crate) created: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) labels: BTreeMap<String, String>,
}

impl Meta {
    /// Reads `metadata`; unknown fields of it are Kubernetes' business.
    pub(super) fn of(msg: &Msg<'_>) -> Result<Self> {
        let Some(at) = msg.get("metadata") else {
            return Ok(Self { namespace: "default".into(), ..Self::default() });
        };
        let meta = at.object(&META, |_, _| {})?;
        let text = |name| meta.or(name, String::new(), |text| text.text());
        let namespace = text("namespace")?;
        Ok(Self {
            created: text("creationTimestamp")?,
            name: text("name")?,
            namespace: if namespace.is_empty() { "default".into() } else { namespace },
            labels: meta.or("labels", BTreeMap::new(), labels)?,
        })
    }

    /// A host's full name: one without a dot belongs to the object's namespace.
    pub(super) fn complete(&self, host: &str) -> String {
        match host.contains('.') || host == "*" {
            true => host.to_owned(),
            false => format!("{host}.{}.svc.cluster.local", self.namespace),
        }
    }
}

/// One subset.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subset {
    pub(crate) seen: Seen,
    pub(crate) name: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) policy: Option<Policy>,
}

/// One `DestinationRule`, or several merged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(crate) seen: Seen,
    pub(crate) meta: Meta,
    /// In full.
    pub(crate) host: String,
    /// It was written without a dot.
    pub(crate) short: Option<Seen>,
    pub(crate) policy: Option<Policy>,
    pub(crate) subsets: Vec<Subset>,
    pub(crate) selector: Option<Seen>,
    /// Rules for the same host after the first.
    pub(crate) others: Vec<Seen>,
}

pub(super) fn rule(at: &At<'_>, meta: Meta, problems: &Problems) -> Result<Rule> {
    let msg = object(*at, &RULE)?;
    let host_at = msg.need("host")?;
    let host = host_at.text()?;
    if !is_host(&host) {
        let text = format!("expected a domain name or a wildcard such as \"*.example.com\", found {host:?}");
        problems.error(&host_at, "E-HOST", text);
    }
    let mut names = BTreeSet::new();
    let subsets = msg.each("subsets", |item| {
        let subset = subset(&item, problems)?;
        if !subset.name.is_empty() && !names.insert(subset.name.clone()) {
            problems.error(&item, "E-SUBSET-DUP", format!("the subset {:?} is defined twice", subset.name));
        }
        Ok(subset)
    })?;
    let exported = match msg.get("exportTo") {
        Some(at) => super::read::texts(&at)?,
        None => Vec::new(),
    };
    if let Some(at) = msg.get("workloadSelector") {
        let selector = object(at, &SELECTOR)?;
        let chosen = selector.or("matchLabels", BTreeMap::new(), labels)?;
        if chosen.is_empty() {
            problems.warn(&at, "W-SELECTOR-EMPTY", "a workloadSelector without labels selects nothing");
        }
        if exported.iter().any(|scope| scope != "." && *scope != meta.namespace) {
            let text = "a rule with a workloadSelector is private to its namespace";
            problems.error(&at, "E-SELECTOR-EXPORT", text);
        }
    }
    Ok(Rule {
        seen: at.seen(),
        host: meta.complete(&host),
        short: (!host.contains('.') && host != "*").then(|| host_at.seen()),
        policy: msg.map("trafficPolicy", |at| policy(at, problems, true))?,
        subsets,
        selector: msg.get("workloadSelector").map(|at| at.seen()),
        others: Vec::new(),
        meta,
    })
}

fn subset(at: &At<'_>, problems: &Problems) -> Result<Subset> {
    let msg = object(*at, &SUBSET)?;
    let name = msg.or("name", String::new(), |name| name.text())?;
    if !is_dns_label(&name) {
        let at = msg.get("name").unwrap_or(*at);
        let text = format!("expected a DNS label (letters, digits and `-`) as subset name, found {name:?}");
        problems.error(&at, "E-SUBSET-NAME", text);
    }
    let labels = msg.or("labels", BTreeMap::new(), labels)?;
    for (key, value) in &labels {
        if !is_label_key(key) || !is_label_value(value) {
            let at = msg.need("labels")?;
            problems.error(&at, "E-SUBSET-LABEL", format!("{key}: {value:?} is no legal label"));
        }
    }
    Ok(Subset {
        seen: at.seen(),
        name,
        labels,
        policy: msg.map("trafficPolicy", |at| policy(at, problems, false))?,
    })
}

/// Rules for the same host become one, in the order of their age and name: subsets are united, the first policy
/// counts.
pub(super) fn merge(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.sort_by(|a, b| a.meta.cmp(&b.meta));
    let mut merged: BTreeMap<String, Rule> = BTreeMap::new();
    for rule in rules {
        let Some(first) = merged.get_mut(&rule.host) else {
            merged.insert(rule.host.clone(), rule);
            continue;
        };
        first.others.push(rule.seen);
        for subset in rule.subsets {
            if first.subsets.iter().all(|known| known.name != subset.name) {
                first.subsets.push(subset);
            }
        }
        if first.policy.is_none() {
            first.policy = rule.policy;
        }
        first.selector = first.selector.take().or(rule.selector);
    }
    merged.into_values().collect()
}

/// The rule for a host: its own, else that of the longest wildcard.
pub(super) fn find<'a>(rules: &'a [Rule], host: &str) -> Option<&'a Rule> {
    rules.iter().find(|rule| rule.host == host).or_else(|| {
        let fits = |rule: &&Rule| rule.host.strip_prefix('*').is_some_and(|tail| host.ends_with(tail));
        rules.iter().filter(fits).max_by_key(|rule| rule.host.len())
    })
}

fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A domain name; its first part may be `*`, or begin with `*` or `*-`.
pub(super) fn is_host(text: &str) -> bool {
    let (wild, rest) = match text.strip_prefix('*') {
        Some("") => return true,
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let rest = match wild {
        true => rest.strip_prefix(['.', '-']).unwrap_or(rest),
        false => rest,
    };
    let rest = rest.strip_suffix('.').unwrap_or(rest);
    !rest.is_empty() && text.len() <= 255 && rest.split('.').all(is_dns_label)
}

fn is_label_value(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_none_or(|b| b.is_ascii_alphanumeric());
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && edge(text.bytes().next())
        && edge(text.bytes().last())
}

fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_host(prefix) && !name.is_empty() && is_label_value(name),
        None => !text.is_empty() && is_label_value(text),
    }
}
