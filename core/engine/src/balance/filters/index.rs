//! Which hosts the stages keep for which values; built once per update, shared by all workers.

use super::java;
use crate::hosts::{HostArena, HostInfo, flag};
use crate::sets::HostSet;
use crate::spec::{FilterSpec, HostKey, MatchRule, NoMatch, StageRule, StageSpec, Value, WhenAbsent};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The hosts of a cluster as its stages see them.
pub(crate) struct Index {
    pub(super) spec: Arc<FilterSpec>,
    /// Every host with its priority, in list order.
    pub(super) hosts: Vec<(u32, u32)>,
    /// Of them those that are healthy, or degraded.
    pub(super) well: BTreeSet<u32>,
    stages: Vec<Stage>,
}

struct Stage {
    counts: Arc<StageCounts>,
    /// Under [`StageRule::Match`]: hosts by value.
    values: BTreeMap<String, Known>,
    absent: BTreeSet<u32>,
    /// Under [`StageRule::IpFamily`]: what it keeps, and what when that is nobody.
    family: [BTreeSet<u32>; 2],
}

struct Known {
    /// The same over updates.
    code: u32,
    hosts: BTreeSet<u32>,
}

/// What one stage counts in all workers, over updates.
#[derive(Default)]
pub(crate) struct StageCounts {
    pub(crate) fallback: AtomicU64,
    pub(crate) refused: AtomicU64,
    next: AtomicU64,
    /// Values that an event told of, and the second.
    told: Mutex<BTreeMap<String, u64>>,
}

impl StageCounts {
    /// Whether an event is due for a value: once a second.
    pub(super) fn tells(&self, value: &str, second: u64) -> bool {
        const MOST: usize = 64;
        // Somebody else is telling; one event less.
        let Some(mut told) = self.told.try_lock() else { return false };
        if told.get(value) == Some(&second) {
            return false;
        }
        if told.len() >= MOST {
            told.retain(|_, at| *at == second);
        }
        let room = told.len() < MOST;
        if room {
            told.insert(value.to_owned(), second);
        }
        room
    }
}

/// A slot with its priority.
pub(super) type Placed = (u32, u32);

/// What a request brings to one stage: 0 nothing, 1 what no host has, else a value or host.
pub(super) type Code = u32;
pub(super) const ABSENT: Code = 0;
pub(super) const UNKNOWN: Code = 1;
const FIRST: Code = 2;

/// What a stage did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageOutcome {
    /// Nothing: the request brings nothing to it.
    Skipped,
    /// It kept some.
    Matched,
    /// It would have kept nobody, so what came in went on.
    FellBack,
    /// It would have kept nobody, so all hosts went on.
    StartedOver,
    /// It kept nobody.
    Refused,
}

/// All stages, walked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// By stage: what it did, and how many hosts were left.
    pub(super) outcomes: Vec<(StageOutcome, usize)>,
    /// Slots with priorities, in order.
    pub(super) candidates: Vec<(u32, u32)>,
}

impl Index {
    pub(crate) fn build(
        spec: &Arc<FilterSpec>,
        sets: &[HostSet],
        arena: &HostArena,
        previous: Option<&Self>,
    ) -> Self {
        let hosts: Vec<(u32, u32)> = (0..)
            .zip(sets)
            .flat_map(|(priority, set)| set.hosts.iter().map(move |slot| (*slot, priority)))
            .collect();
        let well = sets.iter().flat_map(|set| set.healthy.iter().chain(&set.degraded)).copied().collect();
        let infos: Vec<(u32, Arc<HostInfo>)> =
            hosts.iter().filter_map(|(slot, _)| Some((*slot, arena.info(*slot)?.1))).collect();
        let stage = |stage: &StageSpec| {
            let before = previous.and_then(|old| {
                let at = old.spec.stages.iter().position(|other| other.name == stage.name)?;
                old.stages.get(at)
            });
            let counts = before.map_or_else(Arc::default, |old| Arc::clone(&old.counts));
            Stage::build(stage, &infos, counts, before)
        };
        Self { spec: Arc::clone(spec), stages: spec.stages.iter().map(stage).collect(), hosts, well }
    }

    /// What stages counted: name, fallbacks, refusals.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let each = self.spec.stages.iter().zip(&self.stages);
        each.map(|(spec, stage)| {
            let count = |count: &AtomicU64| count.load(Relaxed);
            (spec.name.as_str(), count(&stage.counts.fallback), count(&stage.counts.refused))
        })
    }

    pub(super) fn stage_counts(&self, at: usize) -> Option<&StageCounts> {
        self.stages.get(at).map(|stage| &*stage.counts)
    }

    /// What a request brings to each stage. `last`: the host this worker chose last.
    pub(super) fn codes(
        &self,
        values: &[Option<String>],
        previous: Option<u32>,
        last: Option<u32>,
        codes: &mut Vec<Code>,
    ) {
        codes.clear();
        let host = |slot: Option<u32>| slot.map_or(ABSENT, |slot| slot.saturating_add(FIRST));
        for (at, (spec, stage)) in self.spec.stages.iter().zip(&self.stages).enumerate() {
            codes.push(match &spec.rule {
                StageRule::Match(rule) => match values.get(at).and_then(Option::as_deref) {
                    None | Some("") => ABSENT,
                    Some(value) => stage.code(rule, value),
                },
                StageRule::AvoidPrevious => host(previous),
                StageRule::SameInstance => host(last),
                StageRule::IpFamily { .. } | StageRule::Part { .. } | StageRule::CrossCluster => ABSENT,
            });
        }
    }

    /// Walks the stages.
    pub(super) fn walk(&self, codes: &[Code]) -> Walked {
        self.walk_with(codes, |_, _, _| {})
    }

    /// The same; `seen` is told each stage's number, and the hosts before and after it.
    pub(super) fn walk_with(
        &self,
        codes: &[Code],
        mut seen: impl FnMut(usize, &[Placed], &[Placed]),
    ) -> Walked {
        let mut now = self.hosts.clone();
        let mut outcomes = Vec::with_capacity(self.stages.len());
        for (at, ((spec, stage), code)) in self.spec.stages.iter().zip(&self.stages).zip(codes).enumerate() {
            let before = now.clone();
            let kept = stage.keep(spec, *code, &now, &self.well);
            let outcome = match kept {
                None => StageOutcome::Skipped,
                Some(kept) if !kept.is_empty() => {
                    now = kept;
                    StageOutcome::Matched
                }
                // Nobody to fall back to: the list was empty before.
                Some(_) if now.is_empty() => StageOutcome::Skipped,
                Some(_) => match spec.no_match {
                    NoMatch::Input => StageOutcome::FellBack,
                    NoMatch::All => {
                        now.clone_from(&self.hosts);
                        StageOutcome::StartedOver
                    }
                    NoMatch::Fail => {
                        now.clear();
                        StageOutcome::Refused
                    }
                },
            };
            seen(at, &before, &now);
            outcomes.push((outcome, now.len()));
            if outcome == StageOutcome::Refused {
                break;
            }
        }
        Walked { outcomes, candidates: now }
    }

    /// Those of the candidates that may be chosen.
    pub(super) fn eligible(&self, candidates: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let may = |(slot, _): &&(u32, u32)| self.spec.ignore_health || self.well.contains(slot);
        candidates.iter().filter(may).copied().collect()
    }

    /// The candidates as a cluster of their own, by priority.
    pub(super) fn sets(
        &self,
        candidates: &[(u32, u32)],
        sets: &[HostSet],
        arena: &HostArena,
    ) -> Vec<HostSet> {
        let eligible = self.eligible(candidates);
        let each = (0..).zip(sets);
        each.map(|(priority, set)| {
            let hosts: Vec<u32> =
                eligible.iter().filter(|(_, of)| *of == priority).map(|(slot, _)| *slot).collect();
            // As the cluster sees them: protection makes everybody healthy.
            let degraded: BTreeSet<u32> = match self.spec.ignore_health {
                true => BTreeSet::new(),
                false => set.degraded.iter().copied().collect(),
            };
            let part =
                |of: bool| hosts.iter().copied().filter(|slot| degraded.contains(slot) == of).collect();
            let (healthy, degraded): (Vec<u32>, Vec<u32>) = (part(false), part(true));
            let excluded = hosts.iter().filter(|slot| flag::excluded(arena.flags(**slot))).count() as u32;
            let locality = crate::sets::LocalityHosts {
                weight: 1,
                hosts: hosts.clone(),
                healthy: healthy.clone(),
                degraded: degraded.clone(),
                excluded,
                ..Default::default()
            };
            HostSet {
                version: set.version,
                hosts,
                healthy,
                degraded,
                excluded,
                localities: vec![locality],
                has_local: false,
                overprovisioning_factor: set.overprovisioning_factor,
                weighted_priority_health: set.weighted_priority_health,
            }
        })
        .collect()
    }
}

impl Stage {
    fn build(
        spec: &StageSpec,
        infos: &[(u32, Arc<HostInfo>)],
        counts: Arc<StageCounts>,
        before: Option<&Self>,
    ) -> Self {
        let mut stage =
            Self { counts, values: BTreeMap::new(), absent: BTreeSet::new(), family: Default::default() };
        match &spec.rule {
            StageRule::Match(rule) => {
                for (slot, info) in infos {
                    match value_of(rule, info).filter(|value| !value.is_empty()) {
                        None => {
                            stage.absent.insert(*slot);
                        }
                        Some(value) => {
                            let code = || {
                                let old = before.and_then(|old| Some(old.values.get(&value)?.code));
                                old.unwrap_or_else(|| stage.counts.next.fetch_add(1, Relaxed) as Code + FIRST)
                            };
                            let known = match stage.values.entry(value.clone()) {
                                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                                std::collections::btree_map::Entry::Vacant(place) => {
                                    place.insert(Known { code: code(), hosts: BTreeSet::new() })
                                }
                            };
                            known.hosts.insert(*slot);
                        }
                    }
                }
            }
            StageRule::IpFamily { ipv6, .. } => {
                for (slot, info) in infos {
                    let v4 = is_ipv4(&info.address);
                    let publishes = info.metadata.lb("IPv6").is_some();
                    if if *ipv6 { !v4 || publishes } else { v4 } {
                        stage.family[0].insert(*slot);
                    }
                    if *ipv6 && v4 {
                        stage.family[1].insert(*slot);
                    }
                }
            }
            StageRule::AvoidPrevious
            | StageRule::SameInstance
            | StageRule::Part { .. }
            | StageRule::CrossCluster => {}
        }
        stage
    }

    fn code(&self, rule: &MatchRule, value: &str) -> Code {
        let known = match rule.ignore_case {
            true => self.values.get(&value.to_lowercase()),
            false => self.values.get(value),
        };
        known.map_or(UNKNOWN, |known| known.code)
    }

    /// What the stage keeps of `now`; `None` = it does nothing.
    fn keep(
        &self,
        spec: &StageSpec,
        code: Code,
        now: &[(u32, u32)],
        well: &BTreeSet<u32>,
    ) -> Option<Vec<(u32, u32)>> {
        let only = |wanted: &dyn Fn(u32) -> bool| -> Vec<(u32, u32)> {
            let fits = |(slot, _): &&(u32, u32)| wanted(*slot) && (!spec.healthy_only || well.contains(slot));
            now.iter().filter(fits).copied().collect()
        };
        match &spec.rule {
            StageRule::Match(rule) => match (code, rule.absent) {
                (ABSENT, WhenAbsent::Skip) => None,
                (ABSENT, WhenAbsent::RequireAbsent) => Some(only(&|slot| self.absent.contains(&slot))),
                _ => {
                    let known = self.values.values().find(|known| known.code == code);
                    Some(known.map_or_else(Vec::new, |known| only(&|slot| known.hosts.contains(&slot))))
                }
            },
            StageRule::IpFamily { .. } => {
                let kept = only(&|slot| self.family[0].contains(&slot));
                Some(if kept.is_empty() { only(&|slot| self.family[1].contains(&slot)) } else { kept })
            }
            StageRule::AvoidPrevious => (code != ABSENT).then(|| only(&|slot| slot + FIRST != code)),
            StageRule::SameInstance => (code != ABSENT).then(|| only(&|slot| slot + FIRST == code)),
            StageRule::Part { size, id } => Some(java::part(now, *size, id)),
            StageRule::CrossCluster => None,
        }
    }
}

/// What a host has for a rule, as it is compared.
fn value_of(rule: &MatchRule, info: &HostInfo) -> Option<String> {
    let value = match &rule.key {
        HostKey::Metadata(key) => text(info.metadata.lb(key)?)?,
        HostKey::Id => info
            .metadata
            .0
            .get("nexthop")
            .and_then(|own| text(own.get("id")?))
            .unwrap_or_else(|| info.address.clone()),
        HostKey::Address => info.address.clone(),
        HostKey::Zone => info.locality.zone.clone(),
    };
    Some(if rule.ignore_case { value.to_lowercase() } else { value })
}

/// Metadata as text: numbers and booleans as they are written.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::List(_) | Value::Struct(_) => None,
    }
}

fn is_ipv4(address: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(host, _)| host.parse::<std::net::Ipv4Addr>().is_ok())
}
