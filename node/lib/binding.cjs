'use strict';
// One engine as one thread sees it: bound functions, their words, the mirror of hosts, names, wanted headers,
// and who waits.

const native = require('./native.cjs');
const text = require('./text.cjs');
const mailbox = require('./mailbox.cjs');
const check = require('./check.cjs');
const { cold, hotError, RefusedError } = require('./errors.cjs');
const { RealClock, ManualClock } = require('./clock.cjs');
const { tables, Verdict, Host } = require('./values.cjs');
const { Wanted } = require('./headers.cjs');

const WAKE = 1;
const WANT_CHANGED = 8;
const CHUNK = 1024;

// Requests and attempts without a deadline that were forgotten: no lease would end them soon.
const forgotten = new FinalizationRegistry(({ binding, low, high, request }) => binding.release(low, high, request));

class Binding {
  constructor(id, created, manual, shared) {
    this.id = id;
    this.owner = created;
    this.manual = manual;
    this.closed = false;
    this.words = new Int32Array(new SharedArrayBuffer(128));
    this.mail = shared;
    this.slot = 0;
    let alive;
    if (shared !== undefined) {
      this.slot = mailbox.enter(shared);
      alive = mailbox.aliveWord(shared, this.slot);
    }
    let bound;
    try {
      bound = cold(native.bind, id, this.words, text.bytes, created, this.slot, alive);
    } catch (error) {
      if (alive !== undefined) Atomics.store(alive, 0, 0);
      throw error;
    }
    this.pick = bound.pick;
    this.begin = bound.begin;
    this.beginTarget = bound.beginTarget;
    this.choose = bound.choose;
    this.completeStatus = bound.completeStatus;
    this.report = bound.report;
    this.cancel = bound.cancel;
    this.finish = bound.finish;
    this.note = bound.note;
    this.pollReady = bound.pollReady;
    this.leave = bound.release;
    this.reader = shared === undefined ? undefined : new mailbox.Reader(shared, this.slot);
    this.clock = manual ? new ManualClock(() => native.now(id)) : new RealClock();
    this.chunks = [];
    this.targets = new Map();
    this.lastName = undefined;
    this.lastTarget = 0;
    this.wantedSets = [];
    this.requestWanted = undefined;
    this.waiting = new Map();
    this.seq = 0;
    this.lastHead = 0;
    this.lastFlags = 0;
    this.lastStatus = 0;
    this.lastAfter = 0;
    this.lastVerdict = undefined;
  }

  /** Number of a cluster or route; names that nothing has get a number that nothing has. */
  target(name) {
    if (name === this.lastName) return this.lastTarget;
    const known = this.targets.get(name);
    if (known === undefined) return this.resolve(name);
    this.lastName = name;
    return (this.lastTarget = known);
  }

  resolve(name) {
    const target = cold(native.resolve, this.id, check.text('cluster', name));
    if (target === 0) return tables.noSuchTarget | 0; // the engine refuses it
    this.targets.set(name, target | 0);
    return target | 0;
  }

  /** Why nothing is called so, with the nearest name; '' when something is. */
  missing(name) {
    try {
      return native.resolve(this.id, name) === 0 ? native.lastError() : '';
    } catch {
      return ''; // closed meanwhile
    }
  }

  /** The error of a refusal of the cluster or route of this name. */
  refused(refusal, name) {
    const missing = refusal.refusal === 'no_cluster' && name !== undefined ? this.missing(name) : '';
    return new RefusedError(refusal, missing);
  }

  /** The host of the decision in the words. */
  host(slot, version) {
    const chunk = this.chunks[slot >>> 10];
    if (chunk !== undefined && chunk.versions[slot & 1023] === version) {
      const host = chunk.hosts[slot & 1023];
      if (host !== undefined) return host;
    }
    return this.fetchHost(slot);
  }

  /** Whatever version is there by now: the open attempt pins the slot, so it is the same host. */
  fetchHost(slot) {
    const list = cold(native.host, this.id, slot >>> 0, 0);
    const at = slot >>> 10;
    while (this.chunks.length <= at) this.chunks.push(undefined);
    const chunk = (this.chunks[at] ??= { versions: new Int32Array(CHUNK), hosts: new Array(CHUNK).fill(undefined) });
    const host = new Host(list);
    chunk.versions[slot & 1023] = list[0] | 0;
    chunk.hosts[slot & 1023] = host;
    return host;
  }

  /** A numbered set of wanted names; 0 = the present request set. */
  wanted(number) {
    return this.wantedSets[number] ?? this.fetchWanted(number);
  }

  fetchWanted(number) {
    const [found, ...names] = cold(native.want, this.id, number);
    const set = new Wanted(found, names);
    while (this.wantedSets.length <= found) this.wantedSets.push(undefined);
    this.wantedSets[found] = set;
    return set;
  }

  headWanted() {
    return (this.requestWanted ??= this.fetchWanted(0));
  }

  /** A fact about a request or attempt. */
  tell(low, high, what) {
    const { words } = this;
    words[0] = low;
    words[1] = high;
    words[2] = what;
    this.note();
    if (words[30] < 0) throw hotError(words[30]);
    if (words[30] > 0) this.signals(words[30]);
  }

  /** What every answer may carry besides itself. */
  signals(bits) {
    if ((bits & WAKE) !== 0) this.wake();
    if ((bits & WANT_CHANGED) !== 0) this.requestWanted = undefined;
  }

  /** The verdict in the words; equal ones are one object. */
  verdict(head) {
    const { words } = this;
    const fact = head & 0x00ffffff;
    if (fact === this.lastHead && words[27] === this.lastFlags && words[28] === this.lastStatus && words[29] === this.lastAfter && this.lastVerdict !== undefined) {
      return this.lastVerdict;
    }
    this.lastHead = fact;
    this.lastFlags = words[27];
    this.lastStatus = words[28];
    this.lastAfter = words[29];
    return (this.lastVerdict = new Verdict(fact, words[27] >>> 0, words[28], words[29]));
  }

  /** Hands every request whose wait is over to whoever waits for it, in this thread or another. */
  wake() {
    const { words } = this;
    const { ready } = text;
    for (;;) {
      this.pollReady();
      const count = words[30];
      for (let index = 0; index < count; index++) {
        const seq = ready[index * 4 + 2];
        const slot = ready[index * 4 + 3];
        if (slot === this.slot) this.waiting.get(seq)?.poke();
        else if (this.mail !== undefined) mailbox.post(this.mail, slot, seq);
      }
      if (count < 1024) return;
    }
  }

  /** Everything that waits here asks again. */
  pokeAll() {
    this.clock.advanced();
    for (const request of [...this.waiting.values()]) request.poke();
  }

  wait(request) {
    this.waiting.set(request.seq, request);
    this.reader?.listen(() => this.waiting.size > 0, (seq) => {
      if (seq === undefined) this.pokeAll();
      else this.waiting.get(seq)?.poke();
    });
  }

  share() {
    if (this.mail === undefined) {
      this.mail = mailbox.create();
      this.reader = new mailbox.Reader(this.mail, 0);
    }
    return { id: this.id, manual: this.manual, mail: this.mail };
  }

  /** Something that moves the waits of every thread: a manual clock, closing. */
  moved() {
    this.pokeAll();
    if (this.mail !== undefined) mailbox.broadcast(this.mail);
  }

  watch(object, low, high, request) {
    forgotten.register(object, { binding: this, low, high, request }, object);
  }

  unwatch(object) {
    forgotten.unregister(object);
  }

  /** Cancels an attempt or finishes a request from outside; harmless at any time. */
  release(low, high, request) {
    const { words } = this;
    words[0] = low;
    words[1] = high;
    words[2] = 1; // client gone
    if (request) this.finish();
    else this.cancel();
    this.signals(words[26] >>> 24);
  }
}

module.exports = { Binding };
