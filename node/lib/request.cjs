'use strict';
// One downstream request: its attempts, its waits, its end.

const native = require('./native.cjs');
const check = require('./check.cjs');
const { Attempt, ANSWERED, ENDED } = require('./attempt.cjs');
const { cold, hotError, UsageError } = require('./errors.cjs');
const { NOTES, Wait, Refusal, localReply, milliseconds, pairs } = require('./values.cjs');
const { PLAIN } = require('./head.cjs');
const { run } = require('./run.cjs');

const GO = 1;
const WAIT = 2;
const ABORT_OTHERS = 2;
// A lost wake-up costs this, not a hang.
const LONGEST_QUEUE_WAIT = 1000;

class Request {
  constructor(binding, head, name) {
    this._binding = binding;
    this._head = head;
    this._name = name;
    this._begun = false;
    this._low = 0;
    this._high = 0;
    this.seq = (binding.seq = (binding.seq + 1) | 0);
    // The attempts in flight; nearly always one.
    this._open = undefined;
    this._others = undefined;
    this._over = false;
    this._watched = false;
    this._aborted = undefined;
    this._listener = undefined;
    // Whoever waits for the next attempt: one asks for it at a time, as a rule.
    this._waiters = undefined;
    this._uploaded = false;
    this._reply = undefined;
    this._facts = undefined;
  }

  get cluster() {
    return this._info()?.[0] ?? this._name ?? '';
  }
  get route() {
    return (this._info()?.[1] || this._head.route) ?? undefined;
  }
  get timeout() {
    return this._info()?.[2] ?? this._head.timeout ?? Infinity;
  }
  get reply() {
    return this._reply;
  }

  /** The next attempt; waits for the queue and for back-off. */
  chooseHost() {
    const answer = this.tryChooseHostOr();
    return answer instanceof Promise ? answer : Promise.resolve(answer);
  }

  tryChooseHost() {
    this._throwIfAborted();
    const binding = this._binding;
    const { words } = binding;
    if (this._begun) {
      words[0] = this._low;
      words[1] = this._high;
      binding.choose();
      if (words[30] < 0) throw hotError(words[30]);
    } else {
      this._begin();
    }
    const packed = words[9];
    const bits = packed >>> 16;
    let answer;
    if ((packed & 0xffff) === GO) {
      answer = new Attempt(binding, this);
      if (this._open === undefined) this._open = answer;
      else (this._others ??= []).push(answer);
      if (answer.number === 1) this._first(answer);
    } else if ((packed & 0xffff) === WAIT) {
      answer = new Wait(milliseconds(words[22], words[23]), (words[24] >>> 16) & 0xff);
    } else {
      answer = new Refusal(binding);
      this._reply = answer.reply;
      this._finished();
    }
    if ((bits & ABORT_OTHERS) !== 0) this._abortOthers(undefined);
    if (bits !== 0) binding.signals(bits);
    return answer;
  }

  run(send) {
    return run(this, send);
  }

  responseHeaders() {
    if (!this._begun) return {};
    return pairs(cold(native.extraHeaders, this._low >>> 0, this._high >>> 0));
  }

  bodyComplete() {
    if (this._begun) this._binding.tell(this._low, this._high, NOTES.body_complete);
    else this._uploaded = true;
  }

  note(what) {
    const number = check.oneOf('note', what, NOTES);
    if (!this._begun) throw new UsageError('ERR_NEXTHOP_STATE', 'note: no attempt has begun yet; choose a host first');
    this._binding.tell(this._low, this._high, number);
  }

  /** Ends the request from outside; an attempt whose body was handed over goes on. */
  close() {
    const attempts = this._attempts();
    if (attempts.some((attempt) => attempt._handed)) {
      for (const attempt of attempts) if (!attempt._handed) attempt.cancel();
      return;
    }
    const ended = new UsageError('ERR_NEXTHOP_ENDED', 'the request was closed');
    this._end(ended, new DOMException('The request was closed', 'AbortError'));
  }

  async [Symbol.asyncDispose]() {
    this.close();
  }

  [Symbol.asyncIterator]() {
    let last;
    let stopped = false;
    const done = () => {
      stopped = true;
      return { value: undefined, done: true };
    };
    return {
      next: async () => {
        if (stopped) return done();
        if (last !== undefined) {
          if (last._state === ANSWERED && !last._handed) last.end();
          if (last._state !== ENDED && !last._handed) last.cancel();
          if (!last.verdict?.retry) return done();
        }
        try {
          last = await this.chooseHost();
        } catch (error) {
          stopped = true;
          throw error;
        }
        return { value: last, done: false };
      },
      // The loop was left early: what is still in flight and not handed over is given back.
      return: async (value) => {
        stopped = true;
        if (last !== undefined && !last._handed) last.cancel();
        if (last === undefined || last._state === ENDED) this.close();
        return { value, done: true };
      },
    };
  }

  // What follows is not part of the interface.

  /** An attempt at once, or a promise of one. */
  tryChooseHostOr() {
    try {
      const answer = this.tryChooseHost();
      if (answer.kind === 'attempt') return answer;
      if (answer.kind === 'refusal') throw this._refused(answer);
      return this._waitAndChoose(answer);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async _waitAndChoose(answer) {
    for (;;) {
      await this._pause(answer.reason === 'queue' ? Math.min(answer.ms, LONGEST_QUEUE_WAIT) : answer.ms);
      answer = this.tryChooseHost();
      if (answer.kind === 'attempt') return answer;
      if (answer.kind === 'refusal') throw this._refused(answer);
    }
  }

  _refused(refusal) {
    const { route } = this._head;
    return this._binding.refused(refusal, route === undefined ? this._name : `route:${route}`);
  }

  _begin() {
    const binding = this._binding;
    const head = this._head;
    let target = 0;
    if (this._name !== undefined) target = binding.target(this._name);
    else if (head.route !== undefined) target = binding.target(`route:${head.route}`);
    const { words } = binding;
    if (head === PLAIN) {
      words[0] = target;
      words[1] = this.seq;
      words[2] = binding.slot;
      binding.beginTarget();
    } else {
      head.write(target, binding.headWanted(), this.seq, binding.slot, this._uploaded);
      binding.begin();
    }
    if (words[30] < 0) throw hotError(words[30]);
    this._begun = true;
    this._low = words[10];
    this._high = words[11];
    const { signal } = head;
    if (signal !== undefined) {
      this._listener = () => this._end(signal.reason, signal.reason);
      signal.addEventListener('abort', this._listener, { once: true });
    }
  }

  /** Without a deadline no lease ends a forgotten request soon: the collector does. */
  _first(attempt) {
    if (!attempt._watched || this._watched) return;
    this._watched = true;
    this._binding.watch(this, this._low, this._high, true);
  }

  _attempts() {
    const list = this._open === undefined ? [] : [this._open];
    return this._others === undefined ? list : list.concat(this._others);
  }

  _info() {
    if (!this._begun) return undefined;
    if (this._facts === undefined) {
      try {
        this._facts = native.requestInfo(this._low >>> 0, this._high >>> 0);
      } catch {
        return undefined; // long done: its slot is another request's
      }
    }
    return this._facts;
  }

  _throwIfAborted() {
    if (this._aborted !== undefined) throw this._aborted.reason;
    const { signal } = this._head;
    if (signal !== undefined && !this._begun && signal.aborted) throw signal.reason;
  }

  /** An attempt of this request was reported. */
  _reported(attempt, verdict, bits) {
    if (attempt._state === ENDED) this._forget(attempt);
    if ((bits & ABORT_OTHERS) !== 0) this._abortOthers(attempt);
    if (attempt._state === ENDED && verdict?.action !== 'retry' && this._open === undefined) {
      this._finished();
    }
    this.poke();
  }

  /** The last attempt failed for good. */
  _failed() {
    this._reply ??= localReply(this._low, this._high);
  }

  _forget(attempt) {
    if (this._open === attempt) this._open = this._others?.pop();
    else if (this._others !== undefined) {
      const at = this._others.indexOf(attempt);
      if (at >= 0) this._others.splice(at, 1);
    }
  }

  _abortOthers(winner) {
    const reason = new DOMException('Another attempt has won', 'AbortError');
    for (const attempt of this._attempts()) {
      if (attempt === winner) continue;
      this._forget(attempt);
      attempt._lose(reason, true);
    }
  }

  /** Client gone, closed: everything of this request is given back. */
  _end(reason, abort) {
    if (this._over) return;
    this._aborted = { reason };
    this._over = true;
    const attempts = this._attempts();
    this._open = this._others = undefined;
    this._finished();
    if (this._begun) this._binding.release(this._low, this._high, true);
    for (const attempt of attempts) attempt._lose(abort, false);
    this.poke();
  }

  /** Nothing is left to listen for. */
  _finished() {
    this._over = true;
    if (this._listener !== undefined) {
      this._head.signal.removeEventListener('abort', this._listener);
      this._listener = undefined;
    }
    if (this._watched) {
      this._watched = false;
      this._binding.unwatch(this);
    }
  }

  /** Until the time is over or somebody pokes. */
  _pause(ms) {
    const binding = this._binding;
    return new Promise((resolve) => {
      const timer = ms === Infinity ? undefined : binding.clock.after(ms, () => this.poke());
      (this._waiters ??= []).push({ resolve, timer });
      binding.wait(this);
    });
  }

  poke() {
    const waiters = this._waiters;
    if (waiters === undefined) return;
    this._waiters = undefined;
    this._binding.waiting.delete(this.seq);
    for (const { timer, resolve } of waiters) {
      if (timer !== undefined) this._binding.clock.cancel(timer);
      resolve();
    }
  }
}

/** A request for a cluster named alone. */
function plain(binding, name) {
  return new Request(binding, PLAIN, name);
}

module.exports = { Request, plain };
