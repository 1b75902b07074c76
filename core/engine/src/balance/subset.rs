//! subset (section 22.4): which subset a request is for; one balancer for each.

use super::criteria::Criteria;
use super::subsets::{Child, Subsets};
use super::{Accept, Policy, Scheduler, Selection, View};
use crate::clock::Time;
use crate::random::Source;
use crate::spec::{PolicySpec, SelectorFallback, SubsetFallback, SubsetSpec, Value};
use crate::stats::Counter;

/// The key of a request that is a list of criteria.
const LIST: &str = "fallback_list";

/// One worker's balancers, in the order of the subsets they stand for.
pub(super) struct Subset {
    children: Vec<Balancer>,
}

struct Balancer {
    id: u64,
    since: Time,
    /// `None` where the subset is one host.
    scheduler: Option<Scheduler>,
}

/// A subset in the eyes of its balancer.
fn view_of<'a>(view: View<'a>, spec: &'a SubsetSpec, child: &'a Child, since: Time) -> View<'a> {
    View { policy: &spec.child, sets: &child.sets, prepared: &child.prepared, hosts: view.hosts, since }
}

fn parts<'a>(view: View<'a>) -> Option<(&'a SubsetSpec, &'a Subsets)> {
    match view.policy {
        PolicySpec::Subset(spec) => Some((spec, view.prepared.subsets()?)),
        _ => None,
    }
}

impl Policy for Subset {
    fn new(view: View<'_>, random: &mut Source, now: Time) -> Self {
        let mut policy = Self { children: Vec::new() };
        policy.refresh(view, random, now);
        policy
    }

    fn refresh(&mut self, view: View<'_>, random: &mut Source, now: Time) {
        let Some((spec, subsets)) = parts(view) else { return };
        let mut old = std::mem::take(&mut self.children).into_iter().peekable();
        for child in &subsets.children {
            while old.next_if(|balancer| balancer.id < child.id).is_some() {}
            let kept = old.next_if(|balancer| balancer.id == child.id);
            let mut balancer = kept.unwrap_or(Balancer { id: child.id, since: now, scheduler: None });
            let view = view_of(view, spec, child, balancer.since);
            match &mut balancer.scheduler {
                _ if child.single.is_some() => balancer.scheduler = None,
                Some(scheduler) => scheduler.refresh(view, random, now),
                none => *none = Some(Scheduler::new(view, random, now)),
            }
            self.children.push(balancer);
        }
    }

    #[inline(never)]
    fn choose(&mut self, view: View<'_>, selection: &mut Selection<'_>) -> Option<u32> {
        self.walk(view, selection, None)
    }

    /// Within the subset that the request is for.
    fn search(&mut self, view: View<'_>, selection: &mut Selection<'_>, accept: Accept<'_>) -> Option<u32> {
        self.walk(view, selection, Some(accept))
    }
}

impl Subset {
    /// `accept`: what a search looks for; it counts nothing.
    fn walk(
        &mut self,
        view: View<'_>,
        selection: &mut Selection<'_>,
        accept: Option<Accept<'_>>,
    ) -> Option<u32> {
        let (spec, subsets) = parts(view)?;
        let mut walk = Walk { spec, subsets, view, children: &mut self.children, accept };
        let Some(criteria) = selection.criteria else { return walk.fallback(selection) };
        let Some(list) = criteria.fields().get(LIST).filter(|_| spec.fallback_list) else {
            return walk.one(criteria, selection);
        };
        let mut rest = criteria.fields().clone();
        rest.remove(LIST);
        match list {
            Value::List(items) if !items.is_empty() => items.iter().find_map(|item| match item {
                Value::Struct(fields) => walk.one(&Criteria::new(fields.clone()).over(&rest), selection),
                _ => None,
            }),
            _ => walk.one(&Criteria::new(rest), selection),
        }
    }
}

struct Walk<'a> {
    spec: &'a SubsetSpec,
    subsets: &'a Subsets,
    view: View<'a>,
    children: &'a mut [Balancer],
    accept: Option<Accept<'a>>,
}

impl Walk<'_> {
    fn one(&mut self, criteria: &Criteria, selection: &mut Selection<'_>) -> Option<u32> {
        let narrowed = match self.spec.allow_redundant_keys {
            true => {
                let fitting = self.subsets.widest(self.spec).find(|selector| criteria.has(&selector.keys));
                fitting.map(|selector| criteria.only(&selector.keys))
            }
            false => None,
        };
        let criteria = narrowed.as_ref().unwrap_or(criteria);
        if criteria.fields().is_empty() {
            return self.fallback(selection);
        }
        if let Some(at) = self.subsets.with_key(criteria.key()) {
            self.count(selection, Counter::LbSubsetsSelected);
            return self.child(Some(at), selection);
        }
        match self.subsets.fallback(self.spec, &criteria.names()) {
            None => self.fallback(selection),
            Some(SelectorFallback::None) => None,
            Some(SelectorFallback::Any) => self.child(self.subsets.any(), selection),
            Some(SelectorFallback::Default) => self.child(self.subsets.default(), selection),
            // Fewer keys each time.
            Some(SelectorFallback::Keys(keys)) => self.one(&criteria.only(keys), selection),
        }
    }

    /// No subset fits.
    fn fallback(&mut self, selection: &mut Selection<'_>) -> Option<u32> {
        let child = match self.spec.fallback {
            SubsetFallback::None => return None,
            SubsetFallback::Any => self.subsets.any(),
            SubsetFallback::Default => self.subsets.default(),
        };
        if let Some(slot) = self.child(child, selection) {
            self.count(selection, Counter::LbSubsetsFallback);
            return Some(slot);
        }
        if !self.spec.panic_mode_any {
            return None;
        }
        let slot = self.child(self.subsets.any(), selection)?;
        self.count(selection, Counter::LbSubsetsFallbackPanic);
        Some(slot)
    }

    fn child(&mut self, at: Option<usize>, selection: &mut Selection<'_>) -> Option<u32> {
        let at = at?;
        let child = self.subsets.children.get(at)?;
        if let Some((slot, priority)) = child.single {
            if self.accept.is_some_and(|accept| !accept(slot)) {
                return None;
            }
            (selection.priority, selection.panic, selection.degraded) = (priority, false, false);
            return Some(slot);
        }
        let balancer = self.children.get_mut(at)?;
        let view = view_of(self.view, self.spec, child, balancer.since);
        let scheduler = balancer.scheduler.as_mut()?;
        match self.accept {
            None => scheduler.choose(view, selection),
            Some(accept) => scheduler.search(view, selection, accept),
        }
    }

    fn count(&self, selection: &Selection<'_>, counter: Counter) {
        if self.accept.is_none() {
            selection.counters.count(counter);
        }
    }
}
