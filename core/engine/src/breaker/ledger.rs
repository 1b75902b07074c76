//! What is in use of a cluster's limits, per routing priority (`spec/breakers-and-health.md` A2).
//!
//! Taking checks and takes in one step, so a limit is never passed, not even for an instant.
//!
//! Every decision needs a place under `max_requests`, so that count would be the busiest word of a cluster. While
//! less than half of the places are taken, a request that ends leaves its place at its host as a credit
//! (`pool.rs`), where the next request finds it at no cost. `requests` counts credits as taken: it never tells
//! too little. When no place is left, credits are called back before anybody is refused.

use super::pool;
use super::window::Window;
use crate::clock::Time;
use crate::hosts::{HostArena, HostEntry};
use crate::spec::{RetryBudget, Thresholds};
use crate::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Relaxed, Ordering::Release,
};
use std::sync::{Arc, OnceLock};

/// Counts of one routing priority. Apart from other clusters' counts by alignment: they are the only words
/// that every worker writes on every decision.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Ledger {
    pub(crate) connections: AtomicU32,
    pub(crate) pending: AtomicU32,
    /// With the credits that lie at hosts.
    requests: AtomicU32,
    pub(crate) retries: AtomicU32,
    /// Ending requests leave credits while no more than this many places are taken.
    keep_below: AtomicU32,
    /// Credits may lie at hosts.
    idle: AtomicBool,
    /// Made when a budget looks back in time.
    window: OnceLock<Box<Window>>,
}

/// Hosts of a cluster, for whoever looks for credits.
#[derive(Clone, Copy)]
pub(crate) struct Members<'a> {
    pub(crate) hosts: &'a HostArena,
    pub(crate) list: &'a [Arc<HostEntry>],
}

impl Members<'_> {
    fn each(&self, priority: usize) -> impl Iterator<Item = &AtomicU64> {
        self.list.iter().map(move |member| &self.hosts.load(member.slot).pools[priority])
    }
}

/// Takes one when fewer than `max` are taken.
#[inline]
pub(crate) fn take(count: &AtomicU32, max: u32) -> bool {
    let mut taken = count.load(Relaxed);
    while taken < max {
        match count.compare_exchange_weak(taken, taken + 1, AcqRel, Relaxed) {
            Ok(_) => return true,
            Err(now) => taken = now,
        }
    }
    false
}

/// Takes one whatever the limit.
pub(crate) fn take_anyway(count: &AtomicU32) {
    count.fetch_add(1, AcqRel);
}

/// Gives one back. A count never goes below 0: a second release is a bug elsewhere and must not open the limit.
#[inline]
pub(crate) fn give(count: &AtomicU32) {
    let before = count.fetch_sub(1, AcqRel);
    debug_assert!(before > 0, "a permit was given back twice");
    if before == 0 {
        count.fetch_add(1, AcqRel);
    }
}

/// Gives several back.
pub(crate) fn give_many(count: &AtomicU32, n: u32) {
    if n > 0 {
        let _ = count.fetch_update(AcqRel, Relaxed, |taken| Some(taken.saturating_sub(n)));
    }
}

impl Ledger {
    /// Limits that hold from now on. `exact`: something reads how many requests are active on every decision.
    pub(crate) fn set_limits(&self, limits: &Thresholds, exact: bool) {
        self.keep_below.store(if exact { 0 } else { limits.max_requests / 2 }, Relaxed);
    }

    /// Takes a place for a request when fewer than `max` are taken.
    #[inline]
    pub(crate) fn take_request(&self, max: u32) -> bool {
        take(&self.requests, max)
    }

    /// The same; calls credits back before it gives up.
    #[cold]
    pub(crate) fn take_last_request(&self, max: u32, members: Members<'_>, priority: usize) -> bool {
        while !take(&self.requests, max) {
            if !self.call_back(members, priority) {
                return false;
            }
        }
        true
    }

    /// Whether fewer than `max` places are taken; calls credits back before it says no.
    pub(crate) fn has_room(&self, max: u32, members: Members<'_>, priority: usize) -> bool {
        while self.requests.load(Relaxed) >= max {
            if !self.call_back(members, priority) {
                return false;
            }
        }
        true
    }

    /// Takes a place whatever the limit.
    pub(crate) fn take_request_anyway(&self) {
        take_anyway(&self.requests);
    }

    /// Gives back a request's place.
    #[inline]
    pub(crate) fn give_request(&self) {
        give(&self.requests);
    }

    /// Whether a credit may be used: all places, credits among them, are within `max`.
    #[inline]
    pub(crate) fn within(&self, max: u32) -> bool {
        self.requests.load(Relaxed) <= max
    }

    /// Whether a request that ends may leave its place at its host.
    #[inline]
    pub(crate) fn may_keep(&self) -> bool {
        self.requests.load(Relaxed) <= self.keep_below.load(Relaxed)
    }

    /// A credit lies at a host now.
    #[inline]
    pub(crate) fn left_credit(&self) {
        if !self.idle.load(Relaxed) {
            self.idle.store(true, Release);
        }
    }

    /// Credits of a host that is gone.
    pub(crate) fn give_credits(&self, credits: u32) {
        give_many(&self.requests, credits);
    }

    /// What lay at a host that is gone.
    pub(crate) fn give_left(&self, left: pool::Left) {
        self.give_credits(left.credits);
        give_many(&self.connections, left.connections);
    }

    /// Takes all credits back. Whether there were any.
    fn call_back(&self, members: Members<'_>, priority: usize) -> bool {
        // Whoever leaves a credit says so afterwards: one that this look misses is told for the next.
        if !self.idle.swap(false, AcqRel) {
            return false;
        }
        let found: u32 = members.each(priority).map(pool::strip).sum();
        self.give_credits(found);
        found > 0
    }

    /// Requests under way.
    pub(crate) fn active(&self, members: Members<'_>, priority: usize) -> u32 {
        let taken = self.requests.load(Relaxed);
        if !self.idle.load(Relaxed) {
            return taken;
        }
        let credits: u64 = members.each(priority).map(|pool| pool::credits(pool.load(Relaxed))).sum();
        taken.saturating_sub(credits as u32)
    }

    /// Places taken, credits among them: at least as many as requests are under way.
    #[inline]
    pub(crate) fn places(&self) -> u32 {
        self.requests.load(Relaxed)
    }

    /// Nothing is taken any more (after a fork).
    pub(crate) fn reset(&self) {
        for count in [&self.connections, &self.pending, &self.requests, &self.retries] {
            count.store(0, Relaxed);
        }
        self.idle.store(false, Relaxed);
        if let Some(window) = self.window.get() {
            window.reset();
        }
    }

    /// A request got its stream, in a cluster whose budget looks back.
    #[cold]
    pub(crate) fn begin(&self, limits: &Thresholds, now: Time) {
        if let Some(budget) = limits.retry_budget.filter(|budget| !budget.interval.is_zero()) {
            self.window.get_or_init(Box::default).begin(budget.interval, now);
        }
    }

    /// That request never had a connection.
    #[cold]
    pub(crate) fn take_back(&self) {
        if let Some(window) = self.window.get() {
            window.take_back();
        }
    }

    /// Takes a place for a retry, under the budget's share or `max_retries` (A4).
    #[cold]
    pub(crate) fn take_retry(
        &self,
        limits: &Thresholds,
        members: Members<'_>,
        priority: usize,
        now: Time,
    ) -> bool {
        take(&self.retries, self.max_retries(limits, members, priority, now))
    }

    /// Whether [`Ledger::take_retry`] would find a place.
    pub(crate) fn has_retry(
        &self,
        limits: &Thresholds,
        members: Members<'_>,
        priority: usize,
        now: Time,
    ) -> bool {
        self.retries.load(Relaxed) < self.max_retries(limits, members, priority, now)
    }

    /// As many as may be under way, or fewer when fewer are.
    fn max_retries(&self, limits: &Thresholds, members: Members<'_>, priority: usize, now: Time) -> u32 {
        match limits.retry_budget {
            None => limits.max_retries,
            Some(budget) if self.retries.load(Relaxed) < budget.min_retry_concurrency => {
                budget.min_retry_concurrency
            }
            Some(budget) if !budget.interval.is_zero() => {
                let window = self.window.get_or_init(Box::default);
                self.budget(budget, window.recent(budget.interval, now))
            }
            Some(budget) => {
                let active = self.active(members, priority);
                self.budget(budget, active.saturating_add(self.pending.load(Relaxed)))
            }
        }
    }

    fn budget(&self, budget: RetryBudget, active: u32) -> u32 {
        // Truncated like Envoy's conversion of the double.
        ((budget.budget_percent / 100.0 * f64::from(active)) as u32).max(budget.min_retry_concurrency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn takes_up_to_the_limit() {
        let count = AtomicU32::new(0);
        assert!(!take(&count, 0));
        assert!(take(&count, 2) && take(&count, 2) && !take(&count, 2));
        give(&count);
        assert!(take(&count, 2));
    }

    /// Every recorded fact about budgets: counts in, how many retries may be under way out.
    #[test]
    fn budget_facts() {
        let cases = nexthop_vectors::read("breakers/retry_budget.json", 13);
        let hosts = HostArena::default();
        let members = Members { hosts: &hosts, list: &[] };
        for case in &cases.list {
            let (given, expect) = (&case["given"], &case["expect"]);
            let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0) as u32;
            let spec = &given["retry_budget"];
            let limits = Thresholds {
                max_retries: number(&given["max_retries"]),
                retry_budget: Some(RetryBudget {
                    budget_percent: spec["budget_percent"].as_f64().unwrap(),
                    min_retry_concurrency: number(&spec["min_retry_concurrency"]),
                    interval: Duration::from_millis(spec["budget_interval_ms"].as_u64().unwrap_or(0)),
                }),
                ..Thresholds::default()
            };
            let ledger = Ledger::default();
            let ask = |retries: u32, now| {
                // As many retries are under way as the minimum allows, so that the budget itself is asked.
                ledger
                    .retries
                    .store(retries.max(limits.retry_budget.unwrap().min_retry_concurrency), Relaxed);
                ledger.max_retries(&limits, members, 0, now)
            };
            let id = &case["id"];
            if let Some(steps) = given["steps"].as_array().filter(|steps| steps[0].is_array()) {
                let mut now = Time(0);
                for (step, wanted) in steps.iter().zip(expect["max_retries_after_step"].as_array().unwrap()) {
                    let count = step[1].as_u64().unwrap();
                    match step[0].as_str().unwrap() {
                        "ticks" => now = now.plus(count * given["tick_ms"].as_u64().unwrap() * 1_000_000),
                        _ => (0..count).for_each(|_| ledger.begin(&limits, now)),
                    }
                    assert_eq!(ask(0, now), number(wanted), "{id}: {step}");
                }
            } else {
                let one = [given.clone()];
                let steps = given["steps"].as_array().map_or(&one[..], Vec::as_slice);
                let wanted = &expect["max_retries"];
                for (at, step) in steps.iter().enumerate() {
                    ledger.requests.store(number(&step["active"]), Relaxed);
                    ledger.pending.store(number(&step["pending"]), Relaxed);
                    let wanted = if wanted.is_array() { &wanted[at] } else { wanted };
                    assert_eq!(ask(number(&step["retries"]), Time(0)), number(wanted), "{id}: {step}");
                }
            }
        }
        assert_eq!(Ledger::default().max_retries(&Thresholds::default(), members, 0, Time(0)), 3);
    }
}
