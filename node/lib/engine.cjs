'use strict';
// The engine: documents, hosts, numbers, and where requests begin.

const native = require('./native.cjs');
const check = require('./check.cjs');
const text = require('./text.cjs');
const { Binding } = require('./binding.cjs');
const { Head } = require('./head.cjs');
const { Request, plain } = require('./request.cjs');
const { Attempt } = require('./attempt.cjs');
const { Wait, Refusal, milliseconds } = require('./values.cjs');
const { cold, hotError, invalid, statusError, UsageError, WouldWaitError } = require('./errors.cjs');
const { EventLog } = require('./event_log.cjs');
const { changes, SET, ENDPOINTS } = require('./hosts.cjs');
const { Loop, due } = require('./health.cjs');

const CLOCKS = { coarse: 0, precise: 1, manual: 2 };
const OPTIONS = new Set(['dialect', 'seed', 'workers', 'clock', 'lease', 'events', 'draws', 'shared', 'runtime']);
const UPDATE_OPTIONS = new Set(['dialect', 'runtime']);
const NAMED = new Set(['name', 'dialect', 'path', 'text']);
const TEXT = 0;
const PATH = 1;
const RUNTIME = 2;
const GO = 1;
const WAIT = 2;
// What `text` prints.
const STATS = 1;
const PROMETHEUS = 2;
const EFFECTIVE = 3;
const METRICS = 12;
const LOAD_REPORT = 4;
const LINT = 6;
const EXPLAIN = 8;
const HOSTS = 10;

/** Where time ends, in milliseconds. */
const LATEST = 9.2e12;

const constructing = Symbol('engine');

/** Documents as the addon takes them; runtime values may come with them or, in an update, alone. */
function documents(name, given, kind, options, alone = false) {
  const dialect = dialectOf(options);
  const { runtime } = options;
  const list = Array.isArray(given) ? given : given === undefined && alone && runtime !== undefined ? [] : [given];
  if (list.length === 0 && !(alone && runtime !== undefined)) throw check.reject(name, 'at least one document (`clusters: []` stands for none)', given);
  const all = list.map((one) => {
    const named = typeof one === 'object' && one !== null && !(one instanceof Uint8Array);
    const content = named ? check.knownKeys('document', one, NAMED)[kind === PATH ? 'path' : 'text'] : one;
    if (typeof content !== 'string' && !(kind === TEXT && content instanceof Uint8Array)) {
      throw check.reject(name, kind === PATH ? 'a path' : 'a string or Uint8Array', content);
    }
    if (typeof content === 'string') check.text(name, content);
    const called = named && one.name !== undefined ? check.text('name', one.name) : '';
    return [kind, named ? dialectOf(one) || dialect : dialect, called, content];
  });
  if (runtime !== undefined) all.push([RUNTIME, '', '', typeof runtime === 'string' ? check.text('runtime', runtime) : check.json('runtime', runtime)]);
  return all;
}

function create(list, options) {
  const { seed = 0n, workers = 0, clock = 'coarse', lease = 0, events = 0, draws } = options;
  const words = draws === undefined ? undefined : BigUint64Array.from(drawn(draws));
  const id = cold(
    native.engineNew, list, check.integer('workers', workers, 0, check.U32), check.u64('seed', seed),
    finite('lease', lease), check.integer('events', events, 0, check.U32), check.oneOf('clock', clock, CLOCKS), words,
  );
  return new Engine(constructing, new Binding(id, true, clock === 'manual', undefined));
}

function drawn(draws) {
  if (!Array.isArray(draws)) throw check.reject('draws', 'an array of bigints', draws);
  return draws.map((word) => check.u64('draws', word));
}

function finite(name, value) {
  if (check.milliseconds(name, value) > LATEST) throw check.reject(name, `at most ${LATEST} milliseconds (292 years)`, value);
  return value;
}

class Engine {
  #binding;
  #maintenance = undefined;
  #checks = undefined;
  #logs = new Set();

  constructor(secret, binding) {
    if (secret !== constructing) throw invalid('an engine is made with Engine.fromFile or Engine.fromString');
    this.#binding = binding;
  }

  static fromFile(path, options = {}) {
    check.knownKeys('options', options, OPTIONS);
    if (options.shared !== undefined) return Engine.fromShared(options.shared);
    return create(documents('path', path, PATH, options), options);
  }

  static fromString(given, options = {}) {
    check.knownKeys('options', options, OPTIONS);
    if (options.shared !== undefined) return Engine.fromShared(options.shared);
    return create(documents('text', given, TEXT, options), options);
  }

  /** The engine that another thread of this process shares. */
  static fromShared(shared) {
    const { id, manual, mail } = check.object('shared', shared);
    if (typeof id !== 'bigint' || !(mail instanceof Int32Array)) throw check.reject('shared', 'what share() returned', shared);
    return new Engine(constructing, new Binding(id, false, manual === true, mail));
  }

  request(head) {
    if (typeof head === 'string') return plain(this.#binding, head);
    const checked = new Head(head);
    return new Request(this.#binding, checked, checked.cluster);
  }

  chooseHost(cluster, options) {
    const answer = this.tryChooseHost(cluster, options);
    if (answer.kind === 'attempt') return answer;
    if (answer.kind === 'wait') throw new WouldWaitError(answer);
    throw this.#binding.refused(answer, options?.route === undefined ? cluster : `route:${options.route}`);
  }

  tryChooseHost(cluster, options) {
    check.string('cluster', cluster);
    const binding = this.#binding;
    const { words } = binding;
    let signal;
    if (options === undefined) {
      words[0] = binding.target(cluster);
      words[1] = 1;
      words[2] = -1;
      binding.pick();
    } else {
      signal = this.#pick(cluster, check.object('options', options));
    }
    if (words[30] < 0) throw hotError(words[30]);
    const packed = words[9];
    const bits = packed >>> 16;
    let answer;
    if ((packed & 0xffff) === GO) {
      answer = new Attempt(binding, null);
      if (answer._watched) binding.watch(answer, answer._low, answer._high, false);
      if (signal !== undefined) answer._follow(signal);
    } else if ((packed & 0xffff) === WAIT) {
      answer = new Wait(milliseconds(words[22], words[23]), (words[24] >>> 16) & 0xff);
      // Nobody can ask again for a stateless attempt: its place goes to the next.
      binding.release(words[10], words[11], true);
    } else {
      answer = new Refusal(binding);
    }
    if (bits !== 0) binding.signals(bits);
    return answer;
  }

  #pick(cluster, options) {
    const binding = this.#binding;
    const { words } = binding;
    const { attempt, key } = options;
    let target = binding.target(cluster);
    for (const name in options) {
      if (name === 'attempt' || name === 'key' || options[name] === undefined) continue;
      const head = Head.pick(options);
      if (head.route !== undefined) target = binding.target(`route:${head.route}`);
      if (head.signal?.aborted) throw head.signal.reason;
      head.write(target, binding.headWanted(), 0, binding.slot);
      binding.begin();
      return head.signal;
    }
    if (key !== undefined && typeof key !== 'string' && !(key instanceof Uint8Array)) throw check.reject('key', 'a string or Uint8Array', key);
    words[0] = target;
    words[1] = attempt === undefined ? 1 : check.integer('attempt', attempt, 0, check.LAST_NUMBER);
    words[2] = key === undefined ? -1 : text.raw(0, key, 'key');
    binding.pick();
    return undefined;
  }

  updateFile(path, options = {}) {
    check.knownKeys('options', options, UPDATE_OPTIONS);
    return this.#update(documents('path', path, PATH, options, true));
  }

  updateString(given, options = {}) {
    check.knownKeys('options', options, UPDATE_OPTIONS);
    return this.#update(documents('text', given, TEXT, options, true));
  }

  #update(list) {
    cold(native.update, this.#binding.id, list);
    this.#settle();
    return this.loadReport();
  }

  reload() {
    const swapped = cold(native.reload, this.#binding.id);
    this.#settle();
    return swapped;
  }

  setHosts(cluster, hosts) {
    const list = changes(hosts, SET);
    // A list of no changes changes nothing; an assignment without endpoints removes all.
    return list.length === 0 ? this.applyEndpoints(cluster, JSON.stringify({ cluster_name: cluster })) : this.#apply(cluster, list);
  }

  apply(cluster, list) {
    return this.#apply(cluster, changes(list, undefined));
  }

  applyEndpoints(cluster, endpoints) {
    return this.#apply(cluster, [{ op: ENDPOINTS, metadata: check.string('endpoints', endpoints) }]);
  }

  #apply(cluster, list) {
    const epoch = cold(native.apply, this.#binding.id, check.string('cluster', cluster), JSON.stringify(list));
    this.#settle();
    return epoch;
  }

  /** An update may have freed permits, or changed what is wanted. */
  #settle() {
    this.#binding.requestWanted = undefined;
    this.#binding.wake();
  }

  hosts(cluster = '') {
    return JSON.parse(this.#text(HOSTS, check.string('cluster', cluster)));
  }
  stats() {
    return JSON.parse(this.#text(STATS, ''));
  }
  metrics() {
    return JSON.parse(this.#text(METRICS, ''));
  }
  prometheus() {
    return this.#text(PROMETHEUS, '');
  }
  loadReport({ whole = false } = {}) {
    return JSON.parse(this.#text(LOAD_REPORT, whole ? 'all' : ''));
  }
  effective(name) {
    return JSON.parse(this.#text(EFFECTIVE, check.string('name', name)));
  }
  explain(head) {
    const given = typeof head === 'string' ? { cluster: head } : head;
    return JSON.parse(this.#text(EXPLAIN, JSON.stringify(Head.asked(given))));
  }
  lint() {
    return JSON.parse(this.#text(LINT, ''));
  }
  #text(what, argument) {
    return cold(native.text, this.#binding.id, what, argument);
  }

  events() {
    const list = [];
    for (;;) {
      const event = cold(native.pollEvent, this.#binding.id);
      if (event === null) return list;
      list.push(JSON.parse(event));
    }
  }

  /** Hands each event to a sink, on a timer that does not keep the process alive. */
  logEvents(sink, options) {
    const log = new EventLog(this.#binding, () => this.maintain(), (one) => this.#logs.delete(one), sink, options);
    this.#logs.add(log);
    return log;
  }

  get info() {
    const [epoch, liveRequests, seed] = cold(native.engineInfo, this.#binding.id);
    return { epoch, liveRequests, seed };
  }

  /** The active checks that are due; the first call begins active checking. */
  checks() {
    return due(this.#binding);
  }

  /** Milliseconds until checks are due. */
  checksDeadline() {
    return cold(native.checksDeadline, this.#binding.id);
  }

  /** Performs active checks on the event loop, without keeping the process alive. */
  startChecks(options = {}) {
    if (this.#checks !== undefined) throw new UsageError('ERR_NEXTHOP_STATE', 'startChecks: checks are performed already; stop them first');
    if (this.#binding.closed) throw statusError(-4);
    let loop;
    const running = new Loop(this.#binding, options, () => {
      if (this.#checks === loop) this.#checks = undefined;
    });
    loop = { stop: running.stop, [Symbol.dispose]: running.stop };
    if (!this.#binding.closed) this.#checks = loop;
    return loop;
  }

  /** Runs what is due; milliseconds until it is due again. */
  maintain() {
    const [bits, due] = cold(native.maintain, this.#binding.id);
    this.#binding.signals(bits);
    return due;
  }

  /** Keeps maintenance on time in an idle process, without keeping the process alive. */
  startMaintenance() {
    if (this.#maintenance !== undefined) return this.#maintenance;
    const binding = this.#binding;
    let timer;
    const stop = () => {
      if (timer !== undefined) binding.clock.cancel(timer);
      timer = undefined;
      this.#maintenance = undefined;
    };
    const round = () => {
      timer = undefined;
      if (binding.closed) return;
      // Work that appears later is found within a second.
      const due = this.maintain();
      timer = binding.clock.after(Math.max(1, Math.min(due, 1000)), round, true);
    };
    this.#maintenance = { stop, [Symbol.dispose]: stop };
    round();
    return this.#maintenance;
  }

  advance(ms) {
    const { id } = this.#binding;
    if (check.milliseconds('ms', ms) > LATEST) throw check.reject('ms', `at most ${LATEST} milliseconds (292 years)`, ms);
    try {
      cold(native.advance, id, ms);
    } catch (error) {
      if (error.code !== 'ERR_NEXTHOP_STATE') throw error;
      throw new UsageError('ERR_NEXTHOP_STATE', "advance: only a manual clock can be moved; make the engine with { clock: 'manual' }");
    }
    const bits = cold(native.maintain, this.#binding.id)[0];
    this.#binding.signals(bits);
    this.#binding.moved();
  }

  now() {
    const now = native.now(this.#binding.id);
    if (now === 0) throw statusError(-4);
    return now;
  }

  share() {
    if (this.#binding.closed) throw statusError(-4);
    return this.#binding.share();
  }

  /** Closes the engine; in a thread that joined a shared one, leaves it. */
  close() {
    const binding = this.#binding;
    if (binding.closed) return;
    for (const log of this.#logs) log.close();
    binding.closed = true;
    this.#maintenance?.stop();
    this.#checks?.stop();
    if (binding.owner) {
      try {
        native.engineClose(binding.id);
      } catch {
        // closed already: that is what was wanted
      }
    }
    binding.leave();
    binding.moved();
  }

  [Symbol.dispose]() {
    this.close();
  }
}

function dialectOf(options) {
  return options.dialect === undefined ? '' : check.string('dialect', options.dialect);
}

module.exports = { Engine };
