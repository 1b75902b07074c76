//! Retries beyond Envoy: what a request brings to them, and what they add to Envoy's decision
//! (`spec/nexthop-block.md`, "In a retry policy").

use super::Walk;
use super::state::{Rare, State};
use crate::clock::{MILLI, Time, nanos};
use crate::events::Json;
use crate::headers::HeaderView;
use crate::opt_in::{OptCounter, classes, when};
use crate::outcome::{Outcome, reason};
use crate::retry::Retry;
use crate::route::RequestView;
use crate::spec::{ClassNext, RetryOptions};

/// What a request remembers for mechanisms beyond Envoy.
#[derive(Default)]
pub(crate) struct Opted {
    /// Nothing says that it may be sent twice.
    unrepeatable: bool,
    /// Attempts that an outer layer's attempts leave.
    most_attempts: Option<u32>,
    /// The next attempt stays in the present sub-cluster.
    stays: bool,
    /// What makes an attempt's number the composite's step: attempts that stayed are no steps, clusters that were
    /// walked past are.
    offset: i64,
    /// Hosts that an answer spoke against, with their births.
    pub(super) avoid: Vec<(u32, u32)>,
    /// When the first host is back; of a refusal.
    pub(crate) cools_until: Time,
}

impl Opted {
    /// The composite's step that an attempt takes.
    pub(super) fn step(&self, number: u32) -> u32 {
        u32::try_from(i64::from(number) + self.offset).unwrap_or(0)
    }

    /// The composite's step that an attempt takes, or took.
    fn set_step(&mut self, number: u32, step: u32) {
        self.offset = i64::from(step) - i64::from(number);
    }
}

/// No sub-cluster follows.
struct Last;

/// What is known of an attempt when its retry is decided.
#[derive(Default)]
pub(super) struct Seen<'s> {
    /// Bytes of the request may have left.
    pub(super) sent: bool,
    /// The server says that it did not begin to work on it.
    pub(super) untouched: bool,
    /// The answer is below 400.
    pub(super) good: bool,
    /// Milliseconds by the headers that the policy names.
    pub(super) limited: Option<u64>,
    /// Nanoseconds by `retry-after`.
    pub(super) after: Option<u64>,
    /// The cluster whose host answered.
    pub(super) cluster: u32,
    pub(super) options: Option<&'s RetryOptions>,
}

impl Walk<'_> {
    /// What the request itself says about its retries.
    pub(super) fn opt_in(st: &mut State, options: &RetryOptions, view: &RequestView<'_>) {
        if options.idempotency.is_some() && !is_repeatable(view) {
            st.rare().opted.unrepeatable = true;
        }
        if let Some(layers) = &options.layers {
            let outer = view.headers.first(&layers.header);
            let outer = outer.and_then(|value| std::str::from_utf8(value).ok()?.trim_ascii().parse().ok());
            let most = (layers.max_product / outer.unwrap_or(1).max(1)).max(1);
            if most <= st.remaining {
                st.rare().opted.most_attempts = Some(most);
            }
        }
    }

    /// Whether too little time is left for any attempt.
    pub(super) fn is_short_of_time(&self, options: Option<&RetryOptions>, st: &State) -> bool {
        let deadline_first = options.and_then(|options| options.deadline_first);
        let Some(least) = deadline_first.map(|first| nanos(first.least)).filter(|least| *least > 0) else {
            return false;
        };
        let short = st.deadline != Time::NEVER && self.now.plus(least) > st.deadline;
        short && !self.only_would(deadline_first.is_some_and(|first| first.dry_run), st, &DEADLINE)
    }

    /// What forbids a retry that the conditions want.
    pub(super) fn forbids(&self, st: &State, seen: &Seen<'_>) -> Option<u8> {
        let options = seen.options?;
        let opted = opted(st)?;
        if let Some(guard) = options.idempotency
            && opted.unrepeatable
            && seen.sent
            && !seen.untouched
            && !self.only_would(guard.dry_run, st, &IDEMPOTENCY)
        {
            return Some(reason::NOT_IDEMPOTENT);
        }
        if let Some(layers) = &options.layers
            && opted.most_attempts.is_some_and(|most| st.number >= most)
            && !self.only_would(layers.dry_run, st, &LAYERS)
        {
            return Some(reason::OUTER_LAYER_RETRIES);
        }
        None
    }

    /// The wait of a retry, or why nobody can wait that long.
    pub(super) fn waits(&self, st: &State, seen: &Seen<'_>, drawn: (u64, u8)) -> Result<(u64, u8), u8> {
        let Some(options) = seen.options else { return Ok(drawn) };
        let (mut after_ms, mut why) = drawn;
        if let (Some(honour), Some(wait)) = (options.retry_after, seen.after)
            && !self.goes_elsewhere(st, seen.cluster)
        {
            let too_long = wait > nanos(honour.max) || self.now.plus(wait) >= st.deadline;
            if too_long && !self.only_would(honour.dry_run, st, &RETRY_AFTER) {
                return Err(reason::RETRY_AFTER_TOO_LONG);
            }
            let wait_ms = wait.div_ceil(MILLI);
            if !too_long && wait_ms > 0 {
                if honour.dry_run {
                    self.only_would(true, st, &RETRY_AFTER);
                } else {
                    self.clusters[st.cluster as usize].counters.count_opt(OptCounter::RetryAfterWaited);
                    // What was drawn comes on top, so that clients do not return together, unless it costs the retry.
                    let both = wait_ms.saturating_add(after_ms);
                    let late = self.now.plus(both.saturating_mul(MILLI)) >= st.deadline;
                    (after_ms, why) = (if late { wait_ms } else { both }, reason::BACKOFF_RATELIMITED);
                }
            }
        }
        if let Some(first) = options.deadline_first {
            let begins = self.now.plus(after_ms.saturating_mul(MILLI));
            let ends = begins.plus(nanos(first.least));
            let late = st.deadline != Time::NEVER && (begins >= st.deadline || ends > st.deadline);
            if late && !self.only_would(first.dry_run, st, &DEADLINE) {
                return Err(reason::DEADLINE);
            }
        }
        Ok((after_ms, why))
    }

    /// Whether the next attempt goes to another cluster than the one that answered: nobody there asked for a wait.
    fn goes_elsewhere(&self, st: &State, answered: u32) -> bool {
        let view = self.snapshot.clusters[st.cluster as usize].view.as_ref();
        let Some(subs) = view.and_then(|view| view.composite()) else { return false };
        let next = st.number.saturating_add(1);
        let (stays, step) = opted(st).map_or((false, next), |opted| (opted.stays, opted.step(next)));
        let sub = (step as usize).checked_sub(1).and_then(|at| subs.get(at));
        !stays && sub.is_some_and(|sub| *sub != answered)
    }

    /// What the answer means by the policy's classes; `retry`: what its conditions say.
    #[expect(clippy::too_many_arguments, reason = "the parts of one answer")]
    #[cold]
    pub(super) fn classify(
        &mut self,
        st: &mut State,
        at: usize,
        options: &RetryOptions,
        status: u16,
        headers: HeaderView<'_>,
        outcome: &Outcome<'_>,
        retry: Retry,
    ) -> Retry {
        let Some(class) = classes::find(&options.classes, status, headers, outcome.detail) else {
            return retry;
        };
        let attempt = st.attempts[at];
        let counters = &self.clusters[attempt.cluster as usize].counters;
        counters.count_opt(OptCounter::of_class(class.class));
        if class.dry_run {
            self.only_would(true, st, &CLASSES);
            return retry;
        }
        if let Some(wait) = class.cool_down {
            self.set_aside(&attempt, status, nanos(wait), false);
        }
        let retry = match class.next {
            Some(ClassNext::Stop) => Retry::No,
            Some(_) if !st.retries || st.interim => Retry::No,
            Some(ClassNext::Host) => Retry::WithBackoff,
            Some(ClassNext::Cluster) => match self.step_beyond(st, attempt.cluster) {
                Ok(step) => {
                    let next = st.number.saturating_add(1);
                    st.rare().opted.set_step(next, step);
                    Retry::WithBackoff
                }
                // Better the answer itself than none.
                Err(Last) => Retry::No,
            },
            None => retry,
        };
        if retry != Retry::No {
            if !class.same_host {
                st.rare().opted.avoid.push((attempt.slot, attempt.birth));
            }
            if class.next == Some(ClassNext::Host) {
                st.rare().opted.stays = true;
            }
        }
        retry
    }

    /// The composite's first step after the sub-cluster that answered; the next one outside composites.
    fn step_beyond(&self, st: &State, answered: u32) -> Result<u32, Last> {
        let now = opted(st).map_or(st.number, |opted| opted.step(st.number)).max(1);
        let view = self.snapshot.clusters[st.cluster as usize].view.as_ref();
        let Some(subs) = view.and_then(|view| view.composite()) else { return Ok(now + 1) };
        let step = step_of(subs, now, answered);
        if (step as usize) < subs.len() { Ok(step + 1) } else { Err(Last) }
    }

    /// An attempt walked past clusters whose hosts are set aside: the next one goes on from where it went.
    #[cold]
    pub(super) fn walked(&self, st: &mut State, chosen: u32) {
        let view = self.snapshot.clusters[st.cluster as usize].view.as_ref();
        let Some(subs) = view.and_then(|view| view.composite()) else { return };
        let now = opted(st).map_or(st.number, |opted| opted.step(st.number)).max(1);
        let (number, step) = (st.number, step_of(subs, now, chosen));
        st.rare().opted.set_step(number, step);
    }

    /// The retry is scheduled: whether it stays in its sub-cluster is settled.
    #[inline]
    pub(super) fn settle(st: &mut State) {
        if st.has_rare
            && let Some(Rare { opted, .. }) = st.rare.as_deref_mut()
        {
            opted.offset -= i64::from(std::mem::take(&mut opted.stays));
        }
    }

    /// Counts what a mechanism decided. Whether it only would: then there is an event, and nothing else.
    fn only_would(&self, dry_run: bool, st: &State, mechanism: &Mechanism) -> bool {
        let mine = &self.clusters[st.cluster as usize];
        let Some(dry) = mechanism.dry.filter(|_| dry_run) else {
            if let Some(acted) = mechanism.acted {
                mine.counters.count_opt(acted);
            }
            return false;
        };
        mine.counters.count_opt(dry);
        self.core.events.push(would(mechanism.name, &mine.shared.name).raw("attempt", st.number).end());
        true
    }
}

/// The step at which a composite's sub-cluster was met, from step `now` on. In a composite of composites it is the
/// step of the number.
fn step_of(subs: &[u32], now: u32, cluster: u32) -> u32 {
    let walked = subs.iter().skip(now as usize - 1).position(|sub| *sub == cluster);
    now.saturating_add(walked.unwrap_or(0) as u32)
}

/// The beginning of an event about what a mechanism would have done.
pub(crate) fn would(mechanism: &str, cluster: &str) -> Json {
    Json::new().text("type", "nexthop.would").text("mechanism", mechanism).text("cluster_name", cluster)
}

struct Mechanism {
    name: &'static str,
    acted: Option<OptCounter>,
    dry: Option<OptCounter>,
}

impl Mechanism {
    const fn new(name: &'static str, acted: OptCounter, dry: OptCounter) -> Self {
        Self { name, acted: Some(acted), dry: Some(dry) }
    }
}

const DEADLINE: Mechanism =
    Mechanism::new("deadline_first", OptCounter::DeadlineGaveUp, OptCounter::DeadlineDryRun);
const RETRY_AFTER: Mechanism =
    Mechanism::new("retry_after", OptCounter::RetryAfterGaveUp, OptCounter::RetryAfterDryRun);
const IDEMPOTENCY: Mechanism =
    Mechanism::new("idempotency", OptCounter::IdempotencyGaveUp, OptCounter::IdempotencyDryRun);
const LAYERS: Mechanism = Mechanism::new("layers", OptCounter::LayersGaveUp, OptCounter::LayersDryRun);
const CLASSES: Mechanism = Mechanism { name: "classes", acted: None, dry: Some(OptCounter::ClassesDryRun) };

fn opted(st: &State) -> Option<&Opted> {
    st.rare.as_deref().filter(|_| st.has_rare).map(|rare| &rare.opted)
}

/// Whether a request may be sent twice: by its method, or because its sender gave it a key.
fn is_repeatable(view: &RequestView<'_>) -> bool {
    const METHODS: [&str; 7] = ["", "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"];
    METHODS.contains(&view.method) || view.headers.first("idempotency-key").is_some_and(|key| !key.is_empty())
}

/// Nanoseconds that an answer asks to wait. The finer header goes first.
pub(super) fn retry_after(headers: HeaderView<'_>, unix: u64) -> Option<u64> {
    let wait = |name| headers.first(name).and_then(|value| when::wait_of(name, value, unix));
    wait("retry-after-ms").or_else(|| wait("retry-after"))
}
