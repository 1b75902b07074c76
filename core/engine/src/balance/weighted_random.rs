//! weighted_random: Nacos' draw over cumulative shares (`spec/gray-and-nacos.md` section 3).

use super::per_list::PerList;
use super::routing::Routing;
use super::{Accept, Policy, Selection, View};
use crate::clock::Time;
use crate::hosts::HostArena;
use crate::random::{Random as _, Source, unit};
use crate::spec::{LocalityBalancing, Value};

/// The policy: a table of every list.
pub(super) struct WeightedRandom {
    routing: Routing,
    tables: PerList<Table>,
}

/// Shares of a list, added up in its order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    /// Of the entries with a share, each with its place in the list.
    cumulative: Vec<(f64, u32)>,
    /// Weights that were not finite: NaN counts as 1, infinity as 10,000.
    pub(super) bad: usize,
}

impl Table {
    /// Of weights in list order; entries of 0 and less have no share.
    pub(super) fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut bad = 0;
        let mut kept: Vec<(f64, u32)> = Vec::new();
        for (at, weight) in (0..).zip(weights) {
            if weight <= 0.0 {
                continue;
            }
            bad += usize::from(!weight.is_finite());
            let weight = match weight {
                w if w.is_nan() => 1.0,
                w if w.is_infinite() => 10_000.0,
                w => w,
            };
            kept.push((weight, at));
        }
        let sum = |kept: &[(f64, u32)]| kept.iter().fold(0.0, |sum: f64, (weight, _)| sum + weight);
        let mut whole = sum(&kept);
        if whole.is_infinite() {
            // Nacos fails here; the shares are the same at another scale.
            kept.iter_mut().for_each(|(weight, _)| *weight *= 1e-100);
            whole = sum(&kept);
        }
        let mut so_far = 0.0;
        for (weight, _) in &mut kept {
            so_far += *weight / whole;
            *weight = so_far;
        }
        Self { cumulative: kept, bad }
    }

    /// Place in the list of the entry that `unit`, from 0 to below 1, leads to.
    #[inline]
    pub(super) fn draw(&self, unit: f64) -> Option<usize> {
        let at = self.cumulative.partition_point(|(upto, _)| *upto < unit);
        // Rounding may leave a rest above the last sum.
        self.cumulative.get(at).or_else(|| self.cumulative.last()).map(|(_, at)| *at as usize)
    }

    #[cfg(test)]
    pub(super) fn sums(&self) -> Vec<f64> {
        self.cumulative.iter().map(|(upto, _)| *upto).collect()
    }
}

/// A host's weight as its registry has it, else its whole one.
pub(super) fn weight(hosts: &HostArena, slot: u32) -> f64 {
    let given = hosts.info(slot).and_then(|(_, info)| match info.metadata.0.get("nexthop")?.get("weight") {
        Some(Value::Number(weight)) => Some(*weight),
        _ => None,
    });
    given.unwrap_or_else(|| f64::from(hosts.weight(slot)))
}

fn table(list: &[u32], hosts: &HostArena) -> Table {
    Table::new(list.iter().map(|slot| weight(hosts, *slot)))
}

impl Policy for WeightedRandom {
    fn new(view: View<'_>, random: &mut Source, _: Time) -> Self {
        let routing = Routing::new(&LocalityBalancing::None, view, random);
        Self { routing, tables: PerList::new(view, |list| table(list, view.hosts)) }
    }

    fn refresh(&mut self, view: View<'_>, random: &mut Source, _: Time) {
        self.routing.refresh(view, random);
        self.tables.refresh(view, |list| table(list, view.hosts));
    }

    #[inline(never)]
    fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        selection.examine(|selection, _| {
            let word = selection.random.next_u64();
            let (priority, list) = self.routing.list(view, selection, word)?;
            let table = self.tables.get(priority, list)?;
            list.of(view.sets.get(priority as usize)?).get(table.draw(unit(word))?).copied()
        })
    }

    fn search(&mut self, view: View<'_>, selection: &mut Selection<'_>, accept: Accept<'_>) -> Option<u32> {
        let weighs = |slot: u32| {
            let own = weight(view.hosts, slot);
            own.is_nan() || own > 0.0
        };
        let found = self.routing.search(view, selection, &|slot| accept(slot) && weighs(slot))?;
        let at = table(&found.hosts, view.hosts).draw(unit(selection.random.next_u64()))?;
        found.hosts.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::testing::{TestCluster, TestHost};
    use crate::spec::PolicySpec;
    use serde_json::Value as Json;

    /// `tests/vectors/gray`: draws are handed in as they are.
    #[test]
    fn recorded_draws() {
        let named = |document: &nexthop_vectors::Document| document.text.contains("\"random_by_weight\"");
        for document in nexthop_vectors::documents("gray", "json", 7, named) {
            let name = &document.name;
            let case: Json = serde_json::from_str(&document.text).unwrap();
            let weight = |value: &Json| match value.as_str() {
                Some("NaN") => f64::NAN,
                Some("Infinity") => f64::INFINITY,
                Some(other) => panic!("{other}"),
                None => value.as_f64().unwrap(),
            };
            let table = Table::new(case["input"]["weights"].as_array().unwrap().iter().map(weight));
            let expected = |key: &str| match &case["engine_expect"][key] {
                Json::Null => case["expect"][key].clone(),
                given => given.clone(),
            };
            let draws = case["input"]["draws"].as_array().unwrap().iter();
            let chosen: Vec<Option<usize>> = draws.map(|draw| table.draw(draw.as_f64().unwrap())).collect();
            assert_eq!(serde_json::json!(chosen), expected("chosen"), "{name}");
            if let Some(sums) = case["expect"]["cumulative"].as_array() {
                let sums: Vec<f64> = sums.iter().map(|sum| sum.as_f64().unwrap()).collect();
                assert_eq!(table.sums(), sums, "{name}");
            }
            let warned = expected("warnings").as_array().is_some_and(|list| !list.is_empty());
            assert_eq!(table.bad > 0, warned, "{name}");
        }
    }

    #[test]
    fn sums_beyond_any_number_keep_their_shares() {
        let table = Table::new([f64::MAX, f64::MAX]);
        assert_eq!(table.sums(), [0.5, 1.0]);
        assert_eq!(Table::new([f64::INFINITY, 10_000.0]).sums(), [0.5, 1.0]);
    }

    #[test]
    fn registry_weights_win_and_shares_are_kept() {
        let registry = |weight: f64| TestHost { registry_weight: Some(weight), ..TestHost::default() };
        let hosts = [registry(0.25), registry(0.75)];
        let mut cluster = TestCluster::with_hosts(PolicySpec::WeightedRandom, &hosts, &[]);
        let word = |unit: f64| ((unit * (1u64 << 53) as f64) as u64) << 11;
        let picks: Vec<_> =
            [0.0, 0.25, 0.26, 0.999].map(|unit| cluster.pick(&[word(unit)]).host.unwrap()).to_vec();
        assert_eq!(picks, [0, 0, 1, 1]);
    }
}
