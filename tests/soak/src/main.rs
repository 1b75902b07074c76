//! Runs a mesh for a while: threads that make attempts as fast as they can, one that changes documents and hosts, one that
//! performs checks, one that reads texts. In the end nothing is held, no gauge is off zero, and memory is where it was after warming up.
#![expect(clippy::print_stdout, reason = "its report goes to standard output")]

use nexthop::raw::{
    self, Decision, Document, Head, HostChange, Options, Outcome, Stat, clock, document_kind, failure,
    host_op, kind,
};
use nexthop_vectors::Dice;
use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

mod mesh;

/// Threads that make attempts.
const THREADS: u64 = 2;
/// What memory may grow by after warming up, in bytes and as a part of what it was.
const SLACK: (u64, u64) = (24 << 20, 5);

/// What all threads share.
struct Soak {
    engine: u64,
    over: AtomicBool,
    attempts: AtomicU64,
    updates: AtomicU64,
    checks: AtomicU64,
    /// Hosts that fail now: a bit for each cluster.
    dying: Vec<AtomicBool>,
}

fn main() -> ExitCode {
    let span = match span() {
        Ok(span) => span,
        Err(complaint) => {
            eprintln!("nexthop-soak: {complaint}; usage: nexthop-soak [--minutes N | --seconds N]");
            return ExitCode::from(2);
        }
    };
    let text = mesh::document(0);
    let options = Options { seed: 11, clock: clock::COARSE, ..Options::default() };
    let engine = raw::engine_new(&options, &[document(&text)]).unwrap_or_else(|error| panic!("{error}"));
    let soak = Soak {
        engine,
        over: AtomicBool::new(false),
        attempts: AtomicU64::new(0),
        updates: AtomicU64::new(0),
        checks: AtomicU64::new(0),
        dying: (0..mesh::CLUSTERS).map(|_| AtomicBool::new(false)).collect(),
    };
    let began = Instant::now();
    let (mut warm, mut most) = (0, 0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let soak = &soak;
            scope.spawn(move || soak.attempts(thread));
        }
        scope.spawn(|| soak.updates());
        scope.spawn(|| soak.texts());
        scope.spawn(|| soak.checks());
        while began.elapsed() < span {
            std::thread::sleep(Duration::from_millis(200));
            // Half of a short run, five minutes of a long one.
            if began.elapsed() < (span / 2).min(Duration::from_secs(300)) {
                warm = warm.max(resident());
            } else {
                most = most.max(resident());
            }
        }
        soak.over.store(true, Relaxed);
    });
    soak.verdict(began.elapsed(), warm, most)
}

fn span() -> Result<Duration, String> {
    let mut words = std::env::args().skip(1);
    match (words.next().as_deref(), words.next()) {
        (None, _) => Ok(Duration::from_secs(20)),
        (Some(unit @ ("--minutes" | "--seconds")), Some(number)) => {
            let number: f64 = number.parse().map_err(|_| format!("`{number}` is no number"))?;
            let seconds = number * if unit == "--minutes" { 60.0 } else { 1.0 };
            Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
        }
        (Some(word), _) => Err(format!("`{word}` is not known")),
    }
}

fn document(text: &str) -> Document<'_> {
    Document { kind: document_kind::TEXT, dialect: "", name: "soak", text: text.as_bytes() }
}

/// Resident memory in bytes; 0 where the system does not tell.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

impl Soak {
    /// Requests of all kinds; up to 32 of them open at a time.
    fn attempts(&self, thread: u64) {
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15 ^ thread);
        let mut open: VecDeque<(u64, u64)> = VecDeque::new();
        let mut decision = Decision::default();
        while !self.over.load(Relaxed) {
            let cluster = dice.roll(mesh::CLUSTERS);
            if dice.roll(3) == 0 {
                let path = format!("/{}/x?k={}", cluster / 3 * 3, dice.roll(1000));
                let head = Head { path: &path, authority: "soak", ..Head::default() };
                raw::with_local(|local| raw::begin(local, self.engine, &head, 0, &mut decision))
                    .expect("a good head");
            } else {
                let Ok(target) = raw::resolve(self.engine, &mesh::cluster(cluster)) else { continue };
                let head = Head { target, ..Head::default() };
                raw::with_local(|local| raw::begin(local, self.engine, &head, 0, &mut decision))
                    .expect("a good head");
            }
            let mut last = (decision.request, decision.attempt);
            // As a client does: tries until it is told to stop, never waits long.
            for _ in 0..4 {
                if decision.kind == kind::GO {
                    self.attempts.fetch_add(1, Relaxed);
                    last.1 = decision.attempt;
                    if dice.roll(16) == 0 {
                        open.push_back(last);
                        break;
                    }
                    if !self.answer(&mut dice, cluster, decision.attempt) {
                        break;
                    }
                } else if decision.kind == kind::REFUSED {
                    break;
                }
                if raw::with_local(|local| raw::choose(local, last.0, 0, &mut decision)).is_err() {
                    break;
                }
            }
            if open.back() != Some(&last) {
                raw::with_local(|local| raw::finish(local, last.0, raw::finish::CLIENT_GONE, 0));
            }
            if open.len() > 32 {
                let (request, attempt) = open.pop_front().expect("not empty");
                self.answer(&mut dice, cluster, attempt);
                raw::with_local(|local| raw::finish(local, request, raw::finish::CLIENT_GONE, 0));
            }
        }
        for (request, _) in open {
            raw::with_local(|local| raw::finish(local, request, raw::finish::SHUTDOWN, 0));
        }
    }

    /// Reports an attempt; whether to go on with its request.
    fn answer(&self, dice: &mut Dice, cluster: usize, attempt: u64) -> bool {
        let dying = self.dying[cluster].load(Relaxed);
        let verdict = raw::with_local(|local| match dice.roll(if dying { 4 } else { 40 }) {
            0 => raw::complete_status(local, attempt, 503, 0),
            1 => raw::fail(local, attempt, failure::CONNECT_FAILURE.into(), 0),
            2 => raw::cancel(local, attempt, 0),
            3 => {
                raw::headers(local, attempt, &Outcome::status(200), 0);
                raw::end(local, attempt, None, 0)
            }
            _ => raw::complete_status(local, attempt, 200, 0),
        });
        verdict.action == raw::action::RETRY
    }

    /// Documents, hosts and which clusters die.
    fn updates(&self) {
        let mut dice = Dice(77);
        let mut turn = 0;
        while !self.over.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
            let cluster = dice.roll(mesh::CLUSTERS);
            let dying = &self.dying[cluster];
            dying.store(!dying.load(Relaxed), Relaxed);
            if dice.roll(20) == 0 {
                turn += 1;
                let text = mesh::document(turn % 40);
                raw::update(self.engine, &[document(&text)]).expect("a good document");
            } else {
                let address = mesh::address(cluster, dice.roll(mesh::HOSTS));
                let op = [host_op::ADD, host_op::REMOVE, host_op::CHANGE][dice.roll(3)];
                let health = dice.roll(6) as u8;
                let fields = raw::host_fields::HEALTH;
                let change = HostChange { op, address: &address, health, fields, ..HostChange::default() };
                // The cluster, or the host, may be away just now.
                let _ = raw::apply(self.engine, &mesh::cluster(cluster), &[change]);
            }
            self.updates.fetch_add(1, Relaxed);
        }
    }

    /// Active checks: most pass, some fail, some are late or never reported.
    fn checks(&self) {
        let mut dice = Dice(99);
        let mut held = VecDeque::new();
        while !self.over.load(Relaxed) {
            let polled = raw::with_local(|local| raw::poll_check(local, self.engine, 0));
            match polled.expect("the engine is open") {
                Some(check) => held.push_back(check),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
            if held.len() < 40 && dice.roll(4) != 0 {
                continue;
            }
            let Some(check) = held.pop_front() else { continue };
            let result = [
                raw::check_results::NETWORK,
                raw::check_results::FAILED,
                raw::check_results::DEGRADED,
                raw::check_results::PASSIVE,
            ];
            let result = result.get(dice.roll(100)).copied().unwrap_or(raw::check_results::SUCCESS);
            if dice.roll(50) != 0 {
                self.checks.fetch_add(1, Relaxed);
                let outcome = Outcome::default();
                let told = raw::with_local(|local| {
                    raw::check_result(local, self.engine, check.id, result, &outcome, b"", 0)
                });
                // Its time may be over, its host or cluster gone.
                assert!(told.is_ok() || told.is_err_and(|error| error.status() == -2));
            }
        }
    }

    /// What an operator reads.
    fn texts(&self) {
        while !self.over.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(250));
            for what in [1, 2, 4, 10] {
                raw::text(self.engine, what, "").expect("the engine is open");
            }
            while raw::poll_event(self.engine).expect("the engine is open").is_some() {}
        }
    }

    fn verdict(&self, took: Duration, warm: u64, most: u64) -> ExitCode {
        let mut wrong = Vec::new();
        let info = raw::engine_info(self.engine).expect("the engine is open");
        if info.panics != 0 || info.live_requests != 0 {
            wrong.push(format!("{} bugs contained, {} requests left", info.panics, info.live_requests));
        }
        raw::stats(self.engine, &mut |name, stat| {
            let held = [
                "upstream_rq_active",
                "upstream_rq_pending_active",
                "rq_open",
                "rq_pending_open",
                "rq_retry_open",
            ];
            if let Stat::Gauge(value @ 1..) = stat
                && held.iter().any(|leaf| name.ends_with(&format!(".{leaf}")))
            {
                wrong.push(format!("{name} is {value} with nothing in flight"));
            }
        })
        .expect("the engine is open");
        if most > warm + SLACK.0.max(warm / SLACK.1) {
            wrong.push(format!("memory grew from {} to {} MiB", warm >> 20, most >> 20));
        }
        let attempts = self.attempts.load(Relaxed);
        println!(
            "soak: {:.0} s, {attempts} attempts ({:.0} per second), {} updates, {} checks, memory {} to {} MiB",
            took.as_secs_f64(),
            attempts as f64 / took.as_secs_f64(),
            self.updates.load(Relaxed),
            self.checks.load(Relaxed),
            warm >> 20,
            most >> 20
        );
        for line in &wrong {
            eprintln!("soak: {line}");
        }
        raw::engine_free(self.engine).expect("the engine is open");
        if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
