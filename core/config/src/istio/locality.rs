//! Where traffic goes by distance: `localityLbSetting` and `zoneAwareLbSetting` (`spec/istio-destination-rule.md`
//! section 7).

use super::read::{Problems, object, texts};
use crate::error::Result;
use crate::read::{At, Fields, Seen};
use std::cmp::Ordering;

const LOCALITY: Fields =
    Fields::of("localityLbSetting", &["distribute", "failover", "failoverPriority", "enabled"]);
const ZONE: Fields =
    Fields::of("zoneAwareLbSetting", &["enabled", "failover", "failoverPriority", "minClusterSize"]);
const DISTRIBUTE: Fields = Fields::of("distribute", &["from", "to"]);
const FAILOVER: Fields = Fields::of("failover", &["from", "to"]);

/// Labels that say where something is.
pub(super) const TOPOLOGY: [&str; 3] =
    ["topology.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.istio.io/subzone"];

/// Shares of the traffic of clients in one place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distribute {
    pub(crate) from: String,
    pub(crate) to: Vec<(String, u32, Seen)>,
}

/// `localityLbSetting`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LocalitySetting {
    pub(crate) seen: Seen,
    pub(crate) enabled: bool,
    pub(crate) distribute: Vec<Distribute>,
    /// Regions: from, to.
    pub(crate) failover: Vec<(String, String)>,
    pub(crate) failover_priority: Vec<String>,
}

/// `zoneAwareLbSetting`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ZoneSetting {
    pub(crate) seen: Seen,
    pub(crate) enabled: bool,
    pub(crate) failover: Vec<(String, String)>,
    pub(crate) failover_priority: Vec<String>,
    pub(crate) min_cluster_size: Option<u64>,
}

pub(super) fn locality_setting(at: &At<'_>, problems: &Problems) -> Result<LocalitySetting> {
    let msg = object(*at, &LOCALITY)?;
    let setting = LocalitySetting {
        seen: at.seen(),
        enabled: msg.or("enabled", true, |flag| flag.bool())?,
        distribute: msg.each("distribute", |item| distribute(&item, problems))?,
        failover: msg.each("failover", |item| failover(&item, problems))?,
        failover_priority: msg.or("failoverPriority", Vec::new(), texts)?,
    };
    if let Some(at) = msg.get("distribute") {
        let sources: Vec<&str> = setting.distribute.iter().map(|entry| entry.from.as_str()).collect();
        check_patterns(&at, &sources, false, problems);
        if !setting.distribute.is_empty() && !setting.failover.is_empty() {
            problems.error(&at, "E-DISTRIBUTE-AND-FAILOVER", "distribute and failover exclude each other");
        }
    }
    let located = setting.failover_priority.iter().any(|label| TOPOLOGY.contains(&label.as_str()));
    if let Some(at) = msg.get("failoverPriority").filter(|_| located && !setting.failover.is_empty()) {
        let text = "with `failover` the priorities cannot name region, zone or subzone";
        problems.error(&at, "E-FAILOVER-AND-TOPOLOGY", text);
    }
    Ok(setting)
}

pub(super) fn zone_setting(at: &At<'_>, problems: &Problems) -> Result<ZoneSetting> {
    let msg = object(*at, &ZONE)?;
    let setting = ZoneSetting {
        seen: at.seen(),
        enabled: msg.or("enabled", true, |flag| flag.bool())?,
        failover: msg.each("failover", |item| failover(&item, problems))?,
        failover_priority: msg.or("failoverPriority", Vec::new(), texts)?,
        min_cluster_size: msg.map("minClusterSize", |n| n.u64())?,
    };
    let located = setting.failover_priority.iter().any(|label| TOPOLOGY.contains(&label.as_str()));
    if let Some(at) = msg.get("failoverPriority").filter(|_| located) {
        problems.error(&at, "E-ZONE-TOPOLOGY", "the priorities cannot name region, zone or subzone");
    }
    Ok(setting)
}

fn distribute(at: &At<'_>, problems: &Problems) -> Result<Distribute> {
    let msg = object(*at, &DISTRIBUTE)?;
    let mut to = Vec::new();
    if let Some(shares) = msg.get("to") {
        for (entry, share) in shares.entries()? {
            let weight = share.u32()?;
            if !(1..=100).contains(&weight) {
                let text = format!("expected a share from 1 to 100, found {weight}");
                problems.error(&share, "E-LOCALITY-WEIGHT", text);
            }
            to.push((entry.key.to_string(), weight, share.seen()));
        }
        let sum: u64 = to.iter().map(|(_, weight, _)| u64::from(*weight)).sum();
        if sum != 100 {
            problems.error(&shares, "E-LOCALITY-SUM", format!("the shares add up to {sum}, not to 100"));
        }
        let patterns: Vec<&str> = to.iter().map(|(pattern, ..)| pattern.as_str()).collect();
        check_patterns(&shares, &patterns, true, problems);
    }
    Ok(Distribute { from: msg.or("from", String::new(), |from| from.text())?, to })
}

fn failover(at: &At<'_>, problems: &Problems) -> Result<(String, String)> {
    let msg = object(*at, &FAILOVER)?;
    let text = |name| msg.or(name, String::new(), |text| text.text());
    let (from, to) = (text("from")?, text("to")?);
    let any = |c: char| from.contains(c) || to.contains(c);
    if from == to {
        problems.error(at, "E-FAILOVER-SAME", format!("failover from {from:?} to itself"));
    }
    if any('*') {
        problems.error(at, "E-FAILOVER-WILDCARD", "failover names regions, without `*`");
    }
    if any('/') {
        problems.error(at, "E-FAILOVER-NOT-REGION", "failover names regions, without zones");
    }
    Ok((from, to))
}

/// Checks patterns of places as one list; the first fault ends it. In a mapping the order does not count.
fn check_patterns(at: &At<'_>, patterns: &[&str], unordered: bool, problems: &Problems) {
    for (index, pattern) in patterns.iter().enumerate() {
        let stars = pattern.matches('*').count();
        if stars > 1 || (stars == 1 && !pattern.ends_with('*')) {
            let text = format!("{pattern:?}: `*` may stand once, at the end");
            return problems.error(at, "E-LOCALITY-WILDCARD", text);
        }
        if pattern.split('/').any(str::is_empty) {
            let text = format!("{pattern:?} has an empty region, zone or subzone");
            return problems.error(at, "E-LOCALITY-EMPTY", text);
        }
        for earlier in &patterns[..index] {
            let overlap = match covers(earlier, pattern) {
                Some(Ordering::Less) => unordered || !pattern.ends_with('*'),
                Some(_) => true,
                None => false,
            };
            if overlap {
                let text = format!("{pattern:?} overlaps {earlier:?}");
                return problems.error(at, "E-LOCALITY-OVERLAP", text);
            }
        }
    }
}

/// Greater: `a` covers all of `b`. Less: `b` covers all of `a`. `None`: neither.
fn covers(a: &str, b: &str) -> Option<Ordering> {
    let parts = |text: &'_ str| -> Vec<String> {
        text.split('/').filter(|part| *part != "*").map(str::to_owned).collect()
    };
    let (a, b) = (parts(a), parts(b));
    let shared = a.len().min(b.len());
    (a[..shared] == b[..shared]).then(|| b.len().cmp(&a.len()))
}

/// Whether a place is one that a pattern names: `*` and missing parts are anything.
pub(super) fn matches(place: &[String; 3], pattern: &str) -> bool {
    let mut parts = pattern.split('/');
    let region = parts.next().unwrap_or_default();
    let fits = |part: Option<&str>, value: &str| matches!(part, None | Some("" | "*")) || part == Some(value);
    (region == "*" || region == place[0]) && fits(parts.next(), &place[1]) && fits(parts.next(), &place[2])
}

/// Region, zone and subzone of `region/zone/subzone`.
pub(super) fn split(locality: &str) -> [String; 3] {
    let mut parts = locality.splitn(3, '/').map(str::to_owned);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover() {
        assert_eq!(covers("north", "north/n1"), Some(Ordering::Greater));
        assert_eq!(covers("north/n1", "north"), Some(Ordering::Less));
        assert_eq!(covers("north/n1/*", "*"), Some(Ordering::Less));
        assert_eq!(covers("north", "north/*"), Some(Ordering::Equal));
        assert_eq!(covers("north", "south"), None);
        let place = split("north/n1/r1");
        for pattern in ["*", "north", "north/*", "north/n1", "north/n1/*", "north/n1/r1"] {
            assert!(matches(&place, pattern), "{pattern}");
        }
        for pattern in ["south", "north/n2", "north/n1/r2", "", "south/*"] {
            assert!(!matches(&place, pattern), "{pattern}");
        }
    }
}
