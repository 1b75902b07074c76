// The loop of `run` against scripted answers: which attempt it starts when, whom it listens to, whom it drops.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';

const { run } = createRequire(import.meta.url)('../lib/run.cjs');
const { ENDED } = createRequire(import.meta.url)('../lib/attempt.cjs');

const FORWARD = { action: 'forward', retry: false };
const RETRY = { action: 'retry', retry: true };
const DISCARD = { action: 'discard', retry: false };

class ScriptedAttempt {
  kind = 'attempt';
  verdict = undefined;
  _state = 0;
  _more = { lost: false };
  constructor(number, hedgeAfter) {
    this.number = number;
    this.hedgeAfter = hedgeAfter;
  }
  report(verdict) {
    this._state = ENDED;
    this.verdict = verdict;
  }
  complete() {
    this.report(FORWARD);
  }
  _caught(error) {
    if (this._more.lost) return undefined;
    if (this.verdict === undefined) this.report(FORWARD);
    if (this.verdict.action === 'forward') throw error;
    return undefined;
  }
}

class ScriptedRequest {
  asked = 0;
  pauses = [];
  closed = 0;
  _aborted = undefined;
  #resolve = undefined;
  constructor(answers) {
    this.answers = answers;
  }
  tryChooseHost() {
    this.asked += 1;
    const answer = this.answers.shift();
    assert.ok(answer, 'asked more often than expected');
    return answer;
  }
  _refused(refusal) {
    return Object.assign(new Error('refused'), { refusal });
  }
  _pause(ms) {
    this.pauses.push(ms);
    return new Promise((resolve) => (this.#resolve = resolve));
  }
  poke() {
    this.#resolve?.();
    this.#resolve = undefined;
  }
  close() {
    this.closed += 1;
  }
}

/** The first try's hedge time is over: the second begins. */
async function hedged(request) {
  await turn();
  assert.deepEqual(request.pauses, [0]);
  request.poke();
  await turn();
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const deferred = () => Promise.withResolvers?.() ?? (() => {
  const all = {};
  all.promise = new Promise((resolve, reject) => Object.assign(all, { resolve, reject }));
  return all;
})();

test('asks again at the hedge time; the second wins and the first is dropped', async () => {
  const attempts = [new ScriptedAttempt(1, 150), new ScriptedAttempt(2, Infinity)];
  const request = new ScriptedRequest([attempts[0], { kind: 'wait', reason: 'hedge', ms: 8 }, attempts[1]]);
  const second = deferred();
  const work = run(request, (attempt) => (attempt.number === 1 ? new Promise(() => {}) : second.promise));
  await turn();
  assert.deepEqual(request.pauses, [150]);
  request.poke(); // 150 ms
  await turn();
  assert.deepEqual(request.pauses, [150, 8]);
  request.poke(); // 8 ms
  await turn();
  assert.deepEqual(request.pauses, [150, 8, Infinity]);
  attempts[1].report(FORWARD);
  second.resolve('second');
  assert.equal(await work, 'second');
  assert.equal(request.closed, 1);
  assert.equal(request.asked, 3);
});

test('a discarded answer leaves the field to the other attempt', async () => {
  const attempts = [new ScriptedAttempt(1, 0), new ScriptedAttempt(2, Infinity)];
  const request = new ScriptedRequest([...attempts]);
  const first = deferred();
  const second = deferred();
  const work = run(request, (attempt) => (attempt.number === 1 ? first : second).promise);
  await hedged(request);
  attempts[1].report(DISCARD);
  second.resolve('second');
  await turn();
  assert.deepEqual(request.pauses, [0, Infinity, Infinity]);
  attempts[0].report(FORWARD);
  first.resolve('first');
  assert.equal(await work, 'first');
});

test('a retry while another is in flight asks at once and waits as told', async () => {
  const attempts = [new ScriptedAttempt(1, 0), new ScriptedAttempt(2, Infinity), new ScriptedAttempt(3, Infinity)];
  const request = new ScriptedRequest([attempts[0], attempts[1], { kind: 'wait', reason: 'backoff', ms: 20 }, attempts[2]]);
  const results = [deferred(), deferred(), deferred()];
  const work = run(request, (attempt) => results[attempt.number - 1].promise);
  await hedged(request);
  attempts[0].report(RETRY);
  results[0].reject(new Error('first'));
  await turn();
  assert.deepEqual(request.pauses, [0, Infinity, 20]);
  request.poke();
  await turn();
  attempts[2].report(FORWARD);
  results[2].resolve('third');
  assert.equal(await work, 'third');
});

test('a lost attempt neither fails nor answers the request', async () => {
  const attempts = [new ScriptedAttempt(1, 0), new ScriptedAttempt(2, Infinity)];
  const request = new ScriptedRequest([...attempts]);
  const first = deferred();
  const second = deferred();
  const work = run(request, (attempt) => (attempt.number === 1 ? first : second).promise);
  await hedged(request);
  attempts[0]._state = ENDED;
  attempts[0]._more.lost = true;
  first.reject(new Error('aborted'));
  await turn();
  attempts[1].report(FORWARD);
  second.resolve('second');
  assert.equal(await work, 'second');
});

test('a refusal ends it though another attempt is in flight; a failure of the last one too', async () => {
  const refused = new ScriptedRequest([new ScriptedAttempt(1, 0), { kind: 'refusal', refusal: 'overflow' }]);
  const work = assert.rejects(run(refused, () => new Promise(() => {})), /refused/);
  await hedged(refused);
  await work;
  assert.equal(refused.closed, 1);
  const failed = new ScriptedRequest([new ScriptedAttempt(1, Infinity)]);
  await assert.rejects(run(failed, async () => {
    throw new Error('final');
  }), /final/);
  assert.equal(failed.closed, 1);
});

test('the client going ends it', async () => {
  const request = new ScriptedRequest([new ScriptedAttempt(1, Infinity)]);
  const work = run(request, () => new Promise(() => {}));
  await turn();
  request._aborted = { reason: new Error('gone') };
  request.poke();
  await assert.rejects(work, /gone/);
});
