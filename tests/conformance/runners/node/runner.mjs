// The player over the Node face: script on standard input, trace on standard output.
import { readFileSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const { Engine, ConfigError, UsageError } = createRequire(import.meta.url)(
  path.join(process.env.NEXTHOP_ROOT, 'node'),
);

const ns = (ms) => (ms === Infinity ? null : Math.round(ms * 1e6));
const dash = (limit) => (limit === null ? '-' : String(limit));
const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const flat = (headers) =>
  Object.keys(headers)
    .filter((name) => headers[name] !== null && name !== 'host' && !name.startsWith(':'))
    .sort(order)
    .flatMap((name) => [name, headers[name]]);
const local = (reply) => [String(reply.status), reply.flags, reply.details, reply.body, ...flat(reply.headers)];
const couples = (words) => words.flatMap((_, i) => (i % 2 ? [] : [[words[i], words[i + 1]]]));

let out = [];
function say(...words) {
  out.push(JSON.stringify(words));
  if (out.length > 1000) flush();
}
function flush() {
  let bytes = Buffer.from(out.map((line) => line + '\n').join(''));
  out = [];
  while (bytes.length) {
    try {
      bytes = bytes.subarray(writeSync(1, bytes));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

class Player {
  reset() {
    this.engine?.close();
    Object.assign(this, { engine: null, now: 0, sequence: 0, connect: null, docs: [], plans: new Map(), plan: null });
    Object.assign(this, { rules: [], calls: 0, heads: [], queue: [], events: [] });
  }

  command([name, ...args]) {
    if (name === 'case') {
      this.reset();
      flush();
      say('case', args[0]);
      flush();
    } else if (name === 'doc') this.docs.push(args[0]);
    else if (name === 'open') {
      const options = { seed: BigInt(args[0]), workers: 1, clock: 'manual' };
      if (args[1]) options.draws = args[1].split(',').map(BigInt);
      this.load('open', (docs) => (this.engine = Engine.fromString(docs, options)));
    } else if (!this.engine) return;
    else if (name === 'plan') this.plans.set(args[0], (this.plan = []));
    else if (name === 'act') this.plan.push([Number(args[0]), args.slice(1)]);
    else if (name === 'drop') this.rules = this.rules.filter((rule) => rule.host !== args[0]);
    else if (name === 'rule') {
      const [host, attempt, prefix, ending, ...plans] = args;
      this.rules.push({ host, attempt: Number(attempt), prefix, cycle: ending === 'cycle', plans, used: 0 });
    } else if (name === 'connect') this.connect = Number(args[0]);
    else if (name === 'request') this.heads.push(args);
    else if (name === 'run') this.run(Number(args[0]), Number(args[1]), Number(args[2]), args[3] === 'wait');
    else if (name === 'sleep') {
      const until = this.now + Number(args[0]);
      while (this.events.length && this.events[0].time <= until) this.step();
      this.advance(until);
    } else if (name === 'endpoints') {
      this.load(name, () => this.engine.applyEndpoints(args[0], args[1]));
      this.pump();
    } else if (name === 'update') {
      this.load(name, (docs) => this.engine.updateString(docs));
      this.pump();
    } else if (name === 'stats') {
      const stats = this.engine.stats();
      for (const key of Object.keys(stats).sort(order))
        if (typeof stats[key] === 'number') say('stat', args[0], key, String(stats[key]));
    } else if (name === 'events') {
      const keys = ['cluster_name', 'upstream_url', 'action', 'type', 'num_ejections', 'enforced'];
      for (const event of this.engine.events())
        if ('action' in event) say('event', args[0], ...keys.map((key) => String(event[key] ?? '')));
    } else throw new Error(name);
  }

  load(name, action) {
    const docs = this.docs;
    if (name !== 'endpoints') this.docs = [];
    try {
      action(docs);
      say(name, 'ok');
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      console.error(error.message);
      say(name, 'refused');
    }
  }

  at(time, kind, on, detail) {
    const event = { time, sequence: ++this.sequence, kind, on, detail };
    let [low, high] = [0, this.events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.events[middle].time <= time) low = middle + 1;
      else high = middle;
    }
    this.events.splice(low, 0, event);
  }

  advance(time) {
    if (time <= this.now) return;
    this.engine.advance((time - this.now) / 1e6);
    this.now = time;
  }

  run(clients, gap, stagger, wait) {
    const batch = { open: this.heads.length, gap, clients: clients > 0, waiting: [] };
    this.heads.forEach((words, i) => {
      const pairs = couples(words);
      const path = pairs.find(([key]) => key === 'path')?.[1] ?? '/';
      const call = { index: String(this.calls++), request: this.request(pairs), path, batch, tries: [], asking: 0 };
      batch.waiting.push(call);
      if (!clients) this.at(this.now + i * stagger, 'begin', call);
    });
    this.heads = [];
    for (let i = 0; i < clients; i++) this.next(batch, 0);
    while (wait && batch.open && this.events.length) this.step();
  }

  request(pairs) {
    const head = { headers: [] };
    for (const [key, value] of pairs) {
      if (key.startsWith('h:')) head.headers.push([key.slice(2), value]);
      else if (key === 'internal') head.internal = true;
      else if (key === 'timeout') head.timeout = Number(value) / 1e6;
      else if (key === 'metadata') head.metadata = JSON.parse(value);
      else if (key === 'override_host') head.overrideHost = value;
      else head[key] = value;
    }
    return this.engine.request(head);
  }

  next(batch, gap) {
    if (batch.clients && batch.waiting.length) this.at(this.now + gap, 'begin', batch.waiting.shift());
  }

  step() {
    const { time, kind, on, detail } = this.events.shift();
    if (kind === 'connected' && !on.queued) return;
    if (kind === 'ask' && (on.done || on.asking !== detail)) return;
    if (['act', 'limit', 'idle'].includes(kind) && !on.open) return;
    this.advance(time);
    if (kind === 'begin' || kind === 'ask') this.ask(on);
    else if (kind === 'connected') on.request.note('connected');
    else if (kind === 'act') {
      on.last = this.now;
      this.act(on, detail);
      if (on.open && on.idle !== null) this.at(this.now + on.idle, 'idle', on);
    } else if (kind === 'limit') {
      if (detail || !on.answered) this.act(on, ['fail', 'timeout']);
    } else if ((on.answered || !on.hedges) && this.now - on.last >= on.idle) this.act(on, ['fail', 'per_try_idle_timeout']);
    this.pump();
  }

  pump() {
    for (const call of [...this.queue]) if (call.queued) this.ask(call);
  }

  unqueue(call) {
    if (call.queued) this.queue = this.queue.filter((queued) => queued !== call);
    call.queued = false;
  }

  misuse(call, error) {
    if (!(error instanceof UsageError)) throw error;
    say('misuse', call.index, String(this.now));
    this.done(call);
  }

  ask(call) {
    call.asking++;
    const now = String(this.now);
    let answer;
    try {
      answer = call.request.tryChooseHost();
    } catch (error) {
      return this.misuse(call, error);
    }
    if (answer.kind === 'attempt') {
      this.unqueue(call);
      const limits = [answer.timeout, answer.remaining, answer.idleTimeout, answer.hedgeAfter].map(ns);
      const { number, host, headers } = answer;
      say('go', call.index, String(number), host.address, host.cluster, now, ...limits.map(dash), ...flat(headers));
      this.send(call, answer, limits);
    } else if (answer.kind === 'wait') {
      const [span, queue] = [ns(answer.ms), answer.reason === 'queue'];
      if (!queue) this.unqueue(call);
      if (!call.queued) say('wait', call.index, answer.reason, queue ? '-' : dash(span), now);
      if (queue && !call.queued) {
        call.queued = true;
        this.queue.push(call);
        if (this.connect !== null) this.at(this.now + this.connect, 'connected', call);
      }
      if (span !== null) this.at(this.now + span, 'ask', call, call.asking);
    } else {
      this.unqueue(call);
      call.refused = true;
      say('refused', call.index, answer.refusal, answer.resource ?? '', now, ...local(answer.reply));
      this.done(call);
    }
  }

  send(call, attempt, [timeout, remaining, idle, hedge]) {
    const on = { call, attempt, sent: this.now, last: this.now, idle, hedges: hedge !== null, open: true, answered: false };
    call.tries.push(on);
    if (timeout !== null) this.at(this.now + timeout, 'limit', on, false);
    if (remaining !== null) this.at(this.now + remaining, 'limit', on, true);
    if (idle !== null) this.at(this.now + idle, 'idle', on);
    if (hedge !== null) this.at(this.now + hedge, 'ask', call, call.asking);
    const rule = this.rules.find(
      ({ host, attempt: number, prefix }) =>
        (!host || host === attempt.host.address) && (!number || number === attempt.number) && call.path.startsWith(prefix),
    );
    if (!rule) return;
    const count = rule.plans.length;
    const turn = rule.cycle ? rule.used % count : Math.min(rule.used, count - 1);
    rule.used++;
    let time = this.now;
    for (const [after, words] of this.plans.get(rule.plans[turn])) this.at((time += after), 'act', on, words);
  }

  act(on, [kind, ...args]) {
    const { call, attempt } = on;
    const [now, number] = [String(this.now), String(attempt.number)];
    let verdict;
    let word = args[0];
    try {
      if (kind === 'headers' || kind === 'complete') {
        const more = args[1] ? { grpcStatus: Number(args[1]) } : {};
        const report = kind === 'headers' ? 'onHeaders' : 'complete';
        verdict = attempt[report](Number(args[0]), couples(args.slice(2)), more);
        if (kind === 'headers') word += '+';
      } else if (kind === 'fail') verdict = attempt.fail(args[0]);
      else if (kind === 'end') {
        const more = args[0] ? { grpcStatus: Number(args[0]) } : {};
        attempt.end({ trailers: couples(args.slice(1)), ...more });
        on.open = false;
        say('end', call.index, number, now);
        return this.done(call);
      } else if (kind === 'note') return attempt.note(args[0]);
      else {
        call.request.close();
        say('gone', call.index, now);
        return this.done(call);
      }
    } catch (error) {
      return this.misuse(call, error);
    }
    const { action, reason, after, status, flags } = verdict;
    const age = String(this.now - on.sent);
    say('verdict', call.index, number, word, action, reason, String(after), String(status), flags, now, age);
    if (action === 'forward' && kind === 'headers' && !on.answered) {
      on.answered = true;
      for (const other of call.tries) other.open = other === on;
      return;
    }
    on.open = false;
    if (action === 'retry') this.ask(call);
    else if (action !== 'discard') this.done(call);
  }

  done(call) {
    const reply = call.refused ? undefined : call.request.reply;
    if (reply) say('reply', call.index, ...local(reply));
    say('done', call.index, String(this.now), ...flat(call.request.responseHeaders()));
    this.unqueue(call);
    call.done = true;
    for (const on of call.tries) on.open = false;
    call.batch.open--;
    this.next(call.batch, call.batch.gap);
  }
}

const player = new Player();
for (const line of readFileSync(0, 'utf8').split('\n')) if (line) player.command(JSON.parse(line));
player.engine?.close();
flush();
