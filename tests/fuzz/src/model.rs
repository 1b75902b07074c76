//! A small model of one cluster under round robin: what each call must answer, written without any of the engine's
//! code. Hosts are all healthy, connections are not limited, nobody queues.

use nexthop::raw::{action, kind};

/// What limits a mesh.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) hosts: usize,
    pub(crate) max_requests: usize,
    pub(crate) max_retries: usize,
    pub(crate) num_retries: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// An attempt is out.
    Open,
    /// Its headers were forwarded, the body streams.
    Answered,
    /// A retry waits for its time.
    Backoff,
    Done,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Call {
    phase: Phase,
    number: u32,
    retries_left: u32,
    holds_retry: bool,
}

/// Expected answer of a report.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Forward,
    Retry,
    Misuse(i8),
}

/// Expected answer of a choice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// Attempt number and host, counted from the first host that was ever chosen.
    Go(u32, usize),
    Refused,
    Wait,
    Misuse(i8),
}

/// The ends of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Complete { bad: bool },
    Headers { bad: bool },
    Fail,
    End,
}

const ENDED: i8 = -2;
const STATE: i8 = -3;

pub(crate) struct Model {
    rules: Rules,
    picks: usize,
    pub(crate) active: usize,
    pub(crate) retrying: usize,
    pub(crate) total: u64,
    pub(crate) calls: Vec<Call>,
}

impl Model {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { rules, picks: 0, active: 0, retrying: 0, total: 0, calls: Vec::new() }
    }

    pub(crate) fn live(&self) -> usize {
        self.calls.iter().filter(|call| call.phase != Phase::Done).count()
    }

    pub(crate) fn is_done(&self, at: usize) -> bool {
        self.calls[at].phase == Phase::Done
    }

    /// A new request and its first choice.
    pub(crate) fn begin(&mut self) -> Chosen {
        let retries_left = self.rules.num_retries;
        self.calls.push(Call { phase: Phase::Backoff, number: 0, retries_left, holds_retry: false });
        self.take(self.calls.len() - 1)
    }

    /// Asks again; `due` says whether a back-off is over.
    pub(crate) fn choose(&mut self, at: usize, due: bool) -> Chosen {
        match self.calls[at].phase {
            Phase::Done => Chosen::Misuse(ENDED),
            Phase::Open | Phase::Answered => Chosen::Misuse(STATE),
            Phase::Backoff if !due => Chosen::Wait,
            Phase::Backoff => self.take(at),
        }
    }

    fn take(&mut self, at: usize) -> Chosen {
        let host = self.picks % self.rules.hosts;
        self.picks += 1;
        if self.active == self.rules.max_requests {
            self.close(at);
            return Chosen::Refused;
        }
        self.active += 1;
        self.total += 1;
        let call = &mut self.calls[at];
        call.number += 1;
        call.phase = Phase::Open;
        Chosen::Go(call.number, host)
    }

    pub(crate) fn report(&mut self, at: usize, report: Report) -> Told {
        let phase = self.calls[at].phase;
        let bad = match (phase, report) {
            (Phase::Done | Phase::Backoff, Report::End) => return Told::Forward,
            (Phase::Done | Phase::Backoff, _) => return Told::Misuse(ENDED),
            (Phase::Open, Report::End) => return Told::Misuse(STATE),
            (Phase::Answered, Report::Complete { .. } | Report::Headers { .. }) => {
                return Told::Misuse(STATE);
            }
            (Phase::Answered, _) => {
                self.close(at);
                return Told::Forward;
            }
            (Phase::Open, Report::Complete { bad } | Report::Headers { bad }) => bad,
            (Phase::Open, Report::Fail) => {
                // There was no connection, so no request was sent.
                self.total -= 1;
                true
            }
        };
        // The slot of the retry that brought this answer is free again before the next one is asked for.
        self.free_retry(at);
        if bad && self.calls[at].retries_left > 0 {
            self.calls[at].retries_left -= 1;
            if self.retrying < self.rules.max_retries {
                self.retrying += 1;
                self.active -= 1;
                let call = &mut self.calls[at];
                call.holds_retry = true;
                call.phase = Phase::Backoff;
                return Told::Retry;
            }
        }
        if matches!(report, Report::Headers { .. }) {
            self.calls[at].phase = Phase::Answered;
        } else {
            self.close(at);
        }
        Told::Forward
    }

    fn free_retry(&mut self, at: usize) {
        if std::mem::take(&mut self.calls[at].holds_retry) {
            self.retrying -= 1;
        }
    }

    /// Ends a request from any state.
    pub(crate) fn close(&mut self, at: usize) {
        if matches!(self.calls[at].phase, Phase::Open | Phase::Answered) {
            self.active -= 1;
        }
        self.free_retry(at);
        self.calls[at].phase = Phase::Done;
    }

    /// Cancels the present attempt: with it the request ends. After it has ended nothing happens.
    pub(crate) fn cancel(&mut self, at: usize) {
        if matches!(self.calls[at].phase, Phase::Open | Phase::Answered) {
            self.close(at);
        }
    }
}

/// A verdict in the model's words.
pub(crate) fn told(verdict: nexthop::raw::Verdict) -> Told {
    match (verdict.code, verdict.action) {
        (0, action::RETRY) => Told::Retry,
        (0, _) => Told::Forward,
        (code, _) => Told::Misuse(code),
    }
}

/// A decision in the model's words; `host` maps a slot to its place after the first.
pub(crate) fn chosen(
    answer: Result<(), nexthop::raw::Misuse>,
    decision: &nexthop::raw::Decision,
    host: usize,
) -> Chosen {
    match answer {
        Err(misuse) => Chosen::Misuse(misuse as i8),
        Ok(()) => match decision.kind {
            kind::GO => Chosen::Go(decision.number, host),
            kind::WAIT => Chosen::Wait,
            _ => Chosen::Refused,
        },
    }
}
