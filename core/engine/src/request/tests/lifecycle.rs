//! Random scripts of outcomes, drops, time-outs, hedges and updates: what was taken comes back, nothing is told
//! twice, nothing is retried past its limits, and the counters add up.

use super::*;
use crate::outcome::Misuse;
use crate::random::{Random, Xoshiro256};
use crate::spec::{Breakers, ClusterKind, ConnectionStyle};

const STEPS: usize = 400;
const SEEDS: u64 = 60;
const RETRIES: u32 = 2;
/// Clusters that requests name.
const NAMES: [&str; 5] = ["plain", "hedged", "counted", "composite", "aggregate"];

struct Live {
    request: u64,
    cluster: usize,
    attempts: Vec<Open>,
    begun: u32,
    retries: u32,
    hedges: bool,
}

struct Open {
    id: u64,
    answered: bool,
}

struct Script {
    core: Core,
    worker: Worker,
    random: Xoshiro256,
    now: Time,
    live: Vec<Live>,
    /// Attempts given out, less those whose connection failed or whose pool overflowed.
    sent: u64,
}

fn specs(random: &mut Xoshiro256) -> Specs {
    let mut number = |n: u64| random.next_u64() % n;
    let mut clusters = Vec::new();
    for name in NAMES {
        let hosts: Vec<String> = (0..number(4)).map(|i| format!("10.0.0.{}:{}", i + 1, name.len())).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let limits = Thresholds {
            max_connections: 1 + number(3) as u32,
            max_pending_requests: number(3) as u32,
            max_requests: 1 + number(6) as u32,
            max_retries: number(4) as u32,
            ..Thresholds::default()
        };
        let per_try = if number(3) == 0 { 0 } else { 20 };
        let policy = RetrySpec {
            per_try_timeout: ms(per_try),
            previous_hosts: number(2) == 0,
            previous_priorities: (number(3) == 0).then_some(1),
            back_off: Some(BackOffSpec { base_ms: 1 + number(10), max_ms: 20 }),
            ..retry("5xx,reset,connect-failure", RETRIES)
        };
        let mut spec = ClusterSpec {
            breakers: Breakers { thresholds: [limits, Thresholds::default()], ..Breakers::default() },
            outlier: (number(2) == 0).then(|| OutlierSpec { consecutive_5xx: 3, ..OutlierSpec::default() }),
            connections: match name {
                "counted" => Some(ConnectionStyle::Count),
                _ => None,
            },
            ..cluster(name, &hosts)
        };
        let subs = || ["plain", "counted", "gone"].map(str::to_owned).to_vec();
        match name {
            "composite" => spec.kind = ClusterKind::Composite(subs()),
            "aggregate" => spec.kind = ClusterKind::Aggregate(subs()),
            _ => {}
        }
        if spec.kind != ClusterKind::Hosts {
            spec.policy = PolicySpec::ClusterProvided;
            spec.endpoints = Endpoints::default();
        }
        spec.defaults = Some(ForwardSpec {
            hedge: Some(name != "plain" && number(2) == 0),
            ..forward(name, 60 + 100 * number(2), Some(policy))
        });
        clusters.push(spec);
    }
    Specs { clusters, ..Specs::default() }
}

impl Script {
    fn new(seed: u64) -> Self {
        let mut random = Xoshiro256::seeded(seed, 7);
        let core = Core::new(&specs(&mut random), Settings { seed, ..Settings::default() }, Time(0)).unwrap();
        let worker = core.worker(Time(0));
        Self { core, worker, random, now: Time(MILLI), live: Vec::new(), sent: 0 }
    }

    fn number(&mut self, n: usize) -> usize {
        (self.random.next_u64() % n as u64) as usize
    }

    /// What an answer of choosing means for the model. A request that is over leaves it.
    fn took(&mut self, at: usize, out: &Decision) {
        let live = &mut self.live[at];
        match out.kind {
            kind::GO => {
                assert!(out.number > live.begun, "numbers only grow");
                live.begun = out.number;
                assert!(out.number <= RETRIES + 1, "no retry past its limit");
                assert!(live.hedges || live.attempts.is_empty(), "one attempt at a time");
                live.attempts.push(Open { id: out.attempt, answered: false });
                self.sent += 1;
            }
            kind::WAIT => assert!(out.number <= RETRIES + 1),
            _ => {
                let over = self.live.remove(at);
                for attempt in over.attempts {
                    self.is_over(attempt.id);
                }
            }
        }
    }

    /// Nothing can be told of an attempt any more, and releasing it does nothing.
    fn is_over(&mut self, attempt: u64) {
        let again: Verdict = self
            .core
            .report(&mut self.worker, attempt, &Outcome::status(200), Report::Whole, self.now)
            .into();
        assert_eq!(again.code, Misuse::Ended as i8);
        let released: Verdict = self.core.cancel(&mut self.worker, attempt, self.now).into();
        assert_eq!((released.code, released.action), (0, 0));
    }

    fn begin(&mut self) {
        let cluster = self.number(NAMES.len());
        let head = Head {
            target: self.core.resolve(NAMES[cluster]).unwrap(),
            body: self.number(3) as u8,
            ..Head::default()
        };
        let mut out = Decision::default();
        self.core.begin(&mut self.worker, &head, None, self.now, &mut out).unwrap();
        let live =
            Live { request: out.request, cluster, attempts: Vec::new(), begun: 0, retries: 0, hedges: false };
        self.live.push(live);
        let at = self.live.len() - 1;
        if out.kind == kind::GO {
            // A request that may hedge is told so by not being given up for its limit per try.
            self.live[at].hedges = true;
        }
        self.took(at, &out);
    }

    fn choose(&mut self, at: usize) {
        let mut out = Decision::default();
        match self.core.choose(&mut self.worker, self.live[at].request, self.now, &mut out) {
            Ok(()) => self.took(at, &out),
            // An attempt is on its way, and the request does not hedge.
            Err(misuse) => {
                assert_eq!(misuse, Misuse::State);
                assert!(!self.live[at].attempts.is_empty());
            }
        }
    }

    fn report(&mut self, at: usize) {
        let which = self.number(self.live[at].attempts.len());
        let Open { id, answered } = self.live[at].attempts[which];
        if answered {
            match self.number(3) {
                0 => {
                    let verdict: Verdict =
                        self.core.end(&mut self.worker, id, &Outcome::default(), self.now).into();
                    assert_eq!(verdict.code, 0);
                }
                1 => {
                    let cut = Outcome::failed(failure::REMOTE_RESET);
                    let verdict: Verdict =
                        self.core.report(&mut self.worker, id, &cut, Report::Fail, self.now).into();
                    assert_eq!((verdict.code, verdict.action), (0, action::FORWARD));
                }
                _ => {
                    self.core.cancel(&mut self.worker, id, self.now);
                }
            }
            self.live.remove(at);
            return self.is_over(id);
        }
        let why = [
            failure::CONNECT_FAILURE,
            failure::REMOTE_RESET,
            failure::TIMEOUT,
            failure::OVERFLOW,
            failure::PER_TRY_TIMEOUT,
        ][self.number(5)];
        let status = [200, 200, 404, 500, 503, 204][self.number(6)];
        let (outcome, how) = match self.number(4) {
            0 => (Outcome::status(status), Report::Headers),
            1 => (Outcome::failed(why), Report::Fail),
            _ => (Outcome::status(status), Report::Whole),
        };
        let verdict: Verdict = self.core.report(&mut self.worker, id, &outcome, how, self.now).into();
        assert_eq!(verdict.code, 0);
        if how == Report::Fail && matches!(why, failure::CONNECT_FAILURE | failure::OVERFLOW) {
            self.sent -= 1;
        }
        match verdict.action {
            action::RETRY => {
                let live = &mut self.live[at];
                live.retries += 1;
                assert!(live.retries <= RETRIES, "no retry past its limit");
                live.attempts.remove(which);
                self.is_over(id);
            }
            action::DISCARD => {
                self.live[at].attempts.remove(which);
                self.is_over(id);
            }
            action::FORWARD if how == Report::Headers => {
                let mut others: Vec<Open> = std::mem::take(&mut self.live[at].attempts);
                others.remove(which);
                self.live[at].attempts.push(Open { id, answered: true });
                for other in others {
                    self.is_over(other.id);
                }
            }
            action::FORWARD => {
                let over = self.live.remove(at);
                for attempt in over.attempts {
                    self.is_over(attempt.id);
                }
            }
            other => panic!("verdict {other}"),
        }
    }

    fn step(&mut self) {
        let any = self.live.len();
        match self.number(20) {
            0..=5 => self.begin(),
            6..=8 if any > 0 => {
                let at = self.number(any);
                self.choose(at);
            }
            9..=14 if any > 0 => {
                let at = self.number(any);
                if self.live[at].attempts.is_empty() {
                    self.choose(at);
                } else {
                    self.report(at);
                }
            }
            15 if any > 0 => {
                let at = self.number(any);
                let why =
                    [finish::CLIENT_GONE, finish::GLOBAL_TIMEOUT, finish::MAX_DURATION, finish::SHUTDOWN];
                let why = why[self.number(4)];
                let over = self.live.remove(at);
                self.core.finish(&mut self.worker, over.request, why, self.now);
                for attempt in over.attempts {
                    self.is_over(attempt.id);
                }
            }
            16 if any > 0 => {
                let at = self.number(any);
                let what = [note::SENT, note::RETRY_ABANDONED, note::INTERIM, note::BODY_COMPLETE];
                let what = what[self.number(4)];
                self.core.note(&mut self.worker, self.live[at].request, what, self.now).unwrap();
            }
            17 => {
                let specs = specs(&mut self.random);
                self.core.update(&specs, self.now).unwrap();
            }
            _ => self.now = self.now.plus(self.random.next_u64() % (30 * MILLI)),
        }
    }

    fn gauge(&self, of: &str) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        self.core.stats(&mut |name, stat| {
            if let Stat::Gauge(n) | Stat::Counter(n) = stat
                && n != 0
                && name.ends_with(of)
            {
                all.insert(name.to_owned(), n);
            }
        });
        all
    }

    fn finish_all(&mut self) {
        for over in std::mem::take(&mut self.live) {
            assert!(over.cluster < NAMES.len());
            self.core.finish(&mut self.worker, over.request, finish::CLIENT_GONE, self.now);
        }
        // The last update may have taken clusters' hosts; what they had is given back all the same.
        let nothing = BTreeMap::new();
        for gauge in ["upstream_rq_active", "upstream_rq_pending_active", ".rq_retry_open"] {
            assert_eq!(self.gauge(gauge), nothing);
        }
        let current = self.core.current.lock().clone();
        for entry in &current.clusters {
            for ledger in &entry.shared.ledgers {
                let left = ledger.retries.load(crate::sync::atomic::Ordering::Relaxed);
                assert_eq!(left, 0, "retries of {}", entry.shared.name);
            }
        }
        assert!(self.core.host_states("").iter().all(|host| host.active == 0));
        let sum = |of: &str| self.gauge(of).values().sum::<u64>();
        assert_eq!(sum(".upstream_rq_total"), self.sent, "every attempt is counted once");
        let classes: u64 = ["1xx", "2xx", "3xx", "4xx", "5xx"]
            .iter()
            .flat_map(|class| self.gauge(&format!(".upstream_rq_{class}")))
            .filter(|(name, _)| !name.contains(".retry."))
            .map(|(_, n)| n)
            .sum();
        let completed: u64 = self
            .gauge(".upstream_rq_completed")
            .iter()
            .filter(|(name, _)| !name.contains(".retry."))
            .map(|(_, n)| n)
            .sum();
        assert_eq!(completed, classes);
        // How a retry came to be sent is told of each of them, but for those without a back-off.
        let told =
            sum(".upstream_rq_retry_backoff_exponential") + sum(".upstream_rq_retry_backoff_ratelimited");
        assert_eq!(sum(".upstream_rq_retry"), told);
    }
}

#[test]
fn random_scripts_leave_nothing_behind() {
    let (mut sent, mut hedged) = (0, 0);
    for seed in 0..SEEDS {
        let mut script = Script::new(seed);
        for _ in 0..STEPS {
            script.step();
            hedged += script.live.iter().filter(|live| live.attempts.len() > 1).count();
        }
        script.finish_all();
        sent += script.sent;
    }
    assert!(sent > 1_000 && hedged > 20, "the scripts do something: {sent} attempts, {hedged} hedges");
}
