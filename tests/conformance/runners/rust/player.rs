//! The player: an event queue on virtual time. Every language has the same one.

use crate::face::{Answer, Engine, Request, Verdict, dash};
use nexthop_conformance::script::line;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

type Words = Vec<String>;

struct Rule {
    host: String,
    attempt: u32,
    prefix: String,
    cycle: bool,
    plans: Words,
    used: usize,
}

struct Call {
    request: Request,
    path: String,
    batch: usize,
    tries: Vec<usize>,
    asking: u64,
    queued: bool,
    done: bool,
}

struct Try {
    call: usize,
    id: u64,
    number: u32,
    open: bool,
    answered: bool,
    sent: u64,
    last: u64,
    idle: u64,
    hedges: bool,
}

#[derive(Default)]
struct Batch {
    waiting: Vec<usize>,
    open: usize,
    gap: u64,
    clients: bool,
}

#[derive(Clone)]
enum Event {
    Begin(usize),
    Ask(usize, u64),
    Connected(usize),
    Act(usize, Words),
    Limit(usize, bool),
    Idle(usize),
}

/// Plays commands and writes what happened.
pub(crate) struct Player<W> {
    pub(crate) out: W,
    engine: Option<Engine>,
    docs: Vec<String>,
    plans: HashMap<String, Vec<(u64, Words)>>,
    plan: String,
    rules: Vec<Rule>,
    calls: Vec<Call>,
    tries: Vec<Try>,
    batches: Vec<Batch>,
    heads: Vec<Words>,
    queue: Vec<usize>,
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    now: u64,
    connect: Option<u64>,
}

impl<W: Write> Player<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            out,
            engine: None,
            docs: Vec::new(),
            plans: HashMap::new(),
            plan: String::new(),
            rules: Vec::new(),
            calls: Vec::new(),
            tries: Vec::new(),
            batches: Vec::new(),
            heads: Vec::new(),
            queue: Vec::new(),
            events: BTreeMap::new(),
            sequence: 0,
            now: 0,
            connect: None,
        }
    }

    fn say<S: AsRef<str>>(&mut self, words: impl IntoIterator<Item = S>) -> io::Result<()> {
        writeln!(self.out, "{}", line(words))
    }

    pub(crate) fn command(&mut self, words: &Words) -> io::Result<()> {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let number = |at: usize| word(at).parse::<u64>().unwrap_or(0);
        match word(0) {
            "case" => {
                self.engine = None;
                self.docs.clear();
                self.plans.clear();
                self.rules.clear();
                self.calls.clear();
                self.tries.clear();
                self.batches.clear();
                self.heads.clear();
                self.queue.clear();
                self.events.clear();
                self.now = 0;
                self.connect = None;
                self.say(["case", word(1)])?;
                self.out.flush()?;
            }
            "doc" => self.docs.push(word(1).to_owned()),
            "open" => {
                self.engine = Engine::open(&std::mem::take(&mut self.docs), number(1), word(2));
                self.say(["open", if self.engine.is_some() { "ok" } else { "refused" }])?;
            }
            _ if self.engine.is_none() => {}
            "plan" => {
                self.plan = word(1).to_owned();
                self.plans.insert(self.plan.clone(), Vec::new());
            }
            "act" => {
                let act = (number(1), words[2..].to_vec());
                self.plans.get_mut(&self.plan).expect("a plan was begun").push(act);
            }
            "drop" => self.rules.retain(|rule| rule.host != word(1)),
            "rule" => self.rules.push(Rule {
                host: word(1).to_owned(),
                attempt: number(2) as u32,
                prefix: word(3).to_owned(),
                cycle: word(4) == "cycle",
                plans: words[5..].to_vec(),
                used: 0,
            }),
            "connect" => self.connect = Some(number(1)),
            "request" => self.heads.push(words[1..].to_vec()),
            "run" => self.run(number(1) as usize, number(2), number(3), word(4) == "wait")?,
            "sleep" => {
                let until = self.now + number(1);
                self.drain(until)?;
                self.advance(until);
            }
            "endpoints" => {
                let ok = self.engine.as_ref().is_some_and(|engine| engine.endpoints(word(1), word(2)));
                self.say(["endpoints", if ok { "ok" } else { "refused" }])?;
                self.pump()?;
            }
            "update" => {
                let docs = std::mem::take(&mut self.docs);
                let ok = self.engine.as_ref().is_some_and(|engine| engine.update(&docs));
                self.say(["update", if ok { "ok" } else { "refused" }])?;
                self.pump()?;
            }
            "stats" => {
                let stats = self.engine.as_ref().map(Engine::stats).unwrap_or_default();
                for (name, value) in stats {
                    self.say(["stat", word(1), &name, &value])?;
                }
            }
            "events" => {
                for event in self.engine.as_ref().map(Engine::events).unwrap_or_default() {
                    self.say(["event", word(1)].into_iter().chain(event.iter().map(String::as_str)))?;
                }
            }
            other => panic!("unknown command {other}"),
        }
        Ok(())
    }

    fn at(&mut self, time: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((time, self.sequence), event);
    }

    fn advance(&mut self, time: u64) {
        if let Some(engine) = self.engine.as_ref().filter(|_| time > self.now) {
            engine.advance(time - self.now);
            self.now = time;
        }
    }

    fn run(&mut self, clients: usize, gap: u64, stagger: u64, wait: bool) -> io::Result<()> {
        let heads = std::mem::take(&mut self.heads);
        let (first, batch) = (self.calls.len(), self.batches.len());
        self.batches.push(Batch { open: heads.len(), gap, clients: clients > 0, ..Batch::default() });
        for (i, head) in heads.iter().enumerate() {
            let call = self.calls.len();
            let path = head
                .chunks(2)
                .find(|pair| pair[0] == "path")
                .map_or_else(|| "/".into(), |pair| pair[1].clone());
            let request = self.engine.as_ref().expect("checked by the caller").request(head);
            self.calls.push(Call {
                request,
                path,
                batch,
                tries: Vec::new(),
                asking: 0,
                queued: false,
                done: false,
            });
            if clients == 0 {
                self.at(self.now + i as u64 * stagger, Event::Begin(call));
            }
        }
        if clients > 0 {
            self.batches[batch].waiting = (first..self.calls.len()).rev().collect();
            for _ in 0..clients {
                self.next_of(batch, 0);
            }
        }
        while wait && self.batches[batch].open > 0 && !self.events.is_empty() {
            self.step()?;
        }
        Ok(())
    }

    fn next_of(&mut self, batch: usize, gap: u64) {
        if let Some(call) = self.batches[batch].waiting.pop() {
            self.at(self.now + gap, Event::Begin(call));
        }
    }

    fn drain(&mut self, until: u64) -> io::Result<()> {
        while self.events.first_key_value().is_some_and(|((time, _), _)| *time <= until) {
            self.step()?;
        }
        Ok(())
    }

    fn step(&mut self) -> io::Result<()> {
        let Some(((time, _), event)) = self.events.pop_first() else { return Ok(()) };
        let usable = match &event {
            Event::Begin(_) => true,
            Event::Connected(call) => self.calls[*call].queued,
            Event::Ask(call, asking) => !self.calls[*call].done && self.calls[*call].asking == *asking,
            Event::Act(attempt, _) | Event::Limit(attempt, _) | Event::Idle(attempt) => {
                self.tries[*attempt].open
            }
        };
        if !usable {
            return Ok(());
        }
        self.advance(time);
        match event {
            Event::Begin(call) | Event::Ask(call, _) => self.ask(call)?,
            Event::Connected(call) => self.calls[call].request.connected(),
            Event::Act(attempt, words) => {
                self.tries[attempt].last = self.now;
                self.act(attempt, &words)?;
                let rearm = self.tries[attempt].open && self.tries[attempt].idle != u64::MAX;
                if rearm {
                    self.at(self.now + self.tries[attempt].idle, Event::Idle(attempt));
                }
            }
            Event::Limit(attempt, whole) => {
                if whole || !self.tries[attempt].answered {
                    self.act(attempt, &["fail".into(), "timeout".into()])?;
                }
            }
            Event::Idle(attempt) => {
                // Whoever hedges gives no attempt up before its headers.
                let on = &self.tries[attempt];
                if (on.answered || !on.hedges) && self.now - on.last >= on.idle {
                    self.act(attempt, &["fail".into(), "per_try_idle_timeout".into()])?;
                }
            }
        }
        self.pump()
    }

    /// Asks again for every request that waits in a queue, oldest first.
    fn pump(&mut self) -> io::Result<()> {
        for call in self.queue.clone() {
            if self.calls[call].queued {
                self.ask(call)?;
            }
        }
        Ok(())
    }

    fn unqueue(&mut self, call: usize) {
        if std::mem::take(&mut self.calls[call].queued) {
            self.queue.retain(|queued| *queued != call);
        }
    }

    fn ask(&mut self, call: usize) -> io::Result<()> {
        self.calls[call].asking += 1;
        let now = self.now.to_string();
        let index = call.to_string();
        match self.calls[call].request.choose() {
            Answer::Go(go) => {
                self.unqueue(call);
                let limits = [go.timeout, go.remaining, go.idle, go.hedge].map(dash);
                let number = go.number.to_string();
                let line = ["go", &index, &number, &go.host, &go.cluster, &now].into_iter();
                let headers = go.headers.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
                let line: Vec<String> =
                    line.chain(limits.iter().map(String::as_str)).chain(headers).map(str::to_owned).collect();
                self.say(&line)?;
                self.send(call, &go);
            }
            Answer::Wait { reason, span } => {
                let queue = reason == "queue";
                if !queue {
                    self.unqueue(call);
                }
                if !queue || !self.calls[call].queued {
                    self.say(["wait", &index, &reason, &if queue { "-".into() } else { dash(span) }, &now])?;
                }
                if queue && !self.calls[call].queued {
                    self.calls[call].queued = true;
                    self.queue.push(call);
                    if let Some(connect) = self.connect {
                        self.at(self.now + connect, Event::Connected(call));
                    }
                }
                if span != u64::MAX {
                    self.at(self.now + span, Event::Ask(call, self.calls[call].asking));
                }
            }
            Answer::Refused { refusal, resource, reply } => {
                self.unqueue(call);
                let line = ["refused", &index, &refusal, &resource, &now];
                let line: Vec<String> = line.into_iter().map(str::to_owned).chain(reply).collect();
                self.say(&line)?;
                self.done(call)?;
            }
            Answer::Misuse => {
                self.say(["misuse", &index, &now])?;
                self.done(call)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, call: usize, go: &crate::face::Go) {
        let attempt = self.tries.len();
        self.calls[call].tries.push(attempt);
        self.tries.push(Try {
            call,
            id: go.id,
            number: go.number,
            open: true,
            answered: false,
            sent: self.now,
            last: self.now,
            idle: go.idle,
            hedges: go.hedge != u64::MAX,
        });
        if go.timeout != u64::MAX {
            self.at(self.now + go.timeout, Event::Limit(attempt, false));
        }
        if go.remaining != u64::MAX {
            self.at(self.now + go.remaining, Event::Limit(attempt, true));
        }
        if go.idle != u64::MAX {
            self.at(self.now + go.idle, Event::Idle(attempt));
        }
        if go.hedge != u64::MAX {
            self.at(self.now + go.hedge, Event::Ask(call, self.calls[call].asking));
        }
        let path = &self.calls[call].path;
        let rule = self.rules.iter_mut().find(|rule| {
            (rule.host.is_empty() || rule.host == go.host)
                && (rule.attempt == 0 || rule.attempt == go.number)
                && path.starts_with(&rule.prefix)
        });
        let Some(rule) = rule else { return };
        let count = rule.plans.len();
        let turn = if rule.cycle { rule.used % count } else { rule.used.min(count - 1) };
        rule.used += 1;
        let mut time = self.now;
        for (after, words) in self.plans[&rule.plans[turn]].clone() {
            time += after;
            self.at(time, Event::Act(attempt, words));
        }
    }

    fn act(&mut self, attempt: usize, words: &[String]) -> io::Result<()> {
        let Try { call, id, number, sent, answered, .. } = self.tries[attempt];
        let now = self.now.to_string();
        let (index, number) = (call.to_string(), number.to_string());
        let request = &mut self.calls[call].request;
        let verdict = match words[0].as_str() {
            "headers" | "complete" => {
                request.answer(id, words[0] == "complete", &words[1], &words[2], &words[3..])
            }
            "fail" => request.fail(id, &words[1]),
            "end" => {
                request.end(id, &words[1], &words[2..]);
                self.tries[attempt].open = false;
                self.say(["end", &index, &number, &now])?;
                return self.done(call);
            }
            "note" => {
                return {
                    request.note(id, &words[1]);
                    Ok(())
                };
            }
            "gone" => {
                request.close();
                self.say(["gone", &index, &now])?;
                return self.done(call);
            }
            other => panic!("unknown act {other}"),
        };
        let report = match words[0].as_str() {
            "fail" => words[1].clone(),
            _ => words[1].clone() + if words[0] == "headers" { "+" } else { "" },
        };
        let age = (self.now - sent).to_string();
        let Some(Verdict { action, reason, after, status, flags }) = verdict else {
            self.say(["misuse", &index, &now])?;
            return self.done(call);
        };
        self.say([
            "verdict", &index, &number, &report, &action, &reason, &after, &status, &flags, &now, &age,
        ])?;
        let streams = words[0] == "headers" && !answered;
        if action == "forward" && streams {
            self.tries[attempt].answered = true;
            for &other in self.calls[call].tries.iter().filter(|other| **other != attempt) {
                self.tries[other].open = false;
            }
            return Ok(());
        }
        self.tries[attempt].open = false;
        match action.as_str() {
            "retry" => self.ask(call),
            "discard" => Ok(()),
            _ => self.done(call),
        }
    }

    fn done(&mut self, call: usize) -> io::Result<()> {
        let (index, now) = (call.to_string(), self.now.to_string());
        if let Some(reply) = self.calls[call].request.reply() {
            let line: Vec<String> = ["reply".into(), index.clone()].into_iter().chain(reply).collect();
            self.say(&line)?;
        }
        let headers = self.calls[call].request.response_headers();
        let line: Vec<String> = ["done".into(), index, now].into_iter().chain(headers).collect();
        self.say(&line)?;
        self.unqueue(call);
        self.calls[call].done = true;
        for &attempt in &self.calls[call].tries {
            self.tries[attempt].open = false;
        }
        let batch = self.calls[call].batch;
        self.batches[batch].open -= 1;
        if self.batches[batch].clients {
            self.next_of(batch, self.batches[batch].gap);
        }
        Ok(())
    }
}
