//! Keys that stand twice in one mapping.

use super::{Finding, Severity};
use crate::front::{Entry, Kind};
use crate::read::At;
use crate::report::What;
use std::collections::{BTreeMap, BTreeSet};

/// From so many entries on, sorting beats comparing each with each.
const FEW: usize = 12;

/// Finds, and reports, every value that a later one of the same key replaces; what aliases repeat is told once.
pub(crate) fn repeated_keys(root: &At<'_>) {
    walk(root, &mut BTreeSet::new());
}

/// Lines and columns of dropped values.
type Told = BTreeSet<(u32, u32)>;

fn walk(at: &At<'_>, told: &mut Told) {
    match &at.node.resolve().kind {
        Kind::Map(entries) => {
            if repeats(entries) {
                tell(at, entries, told);
            }
            for entry in entries {
                walk(&at.key(&entry.key, &entry.value), told);
            }
        }
        Kind::List(_) => {
            for item in at.items().into_iter().flatten() {
                walk(&item, told);
            }
        }
        _ => {}
    }
}

fn repeats(entries: &[Entry<'_>]) -> bool {
    if entries.len() <= FEW {
        return entries
            .iter()
            .enumerate()
            .any(|(at, entry)| entries[..at].iter().any(|other| other.key == entry.key));
    }
    let mut keys: Vec<&str> = entries.iter().map(|entry| &*entry.key).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

#[cold]
fn tell(at: &At<'_>, entries: &[Entry<'_>], told: &mut Told) {
    let mut last = BTreeMap::new();
    for entry in entries {
        let Some(dropped) = last.insert(&*entry.key, entry) else { continue };
        if !told.insert((dropped.place.line, dropped.place.column)) {
            continue;
        }
        let mut seen = at.key(&entry.key, &dropped.value).seen();
        seen.place = dropped.place;
        let effect = format!(
            "the key `{}` stands again at line {}, so this value is dropped",
            entry.key, entry.place.line
        );
        let advice = "write each key once, or give the two values different names";
        let sink = &mut at.sink().borrow_mut();
        let again = format!("not used: the key `{}` stands again at line {}", entry.key, entry.place.line);
        sink.report.push(seen.entry(What::NotUsed, again));
        sink.findings.push(Finding::new("NX-043", Severity::Error, &seen, effect, advice));
    }
}
