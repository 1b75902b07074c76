import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Engine } from 'nexthop';
import { idle, settle, thrown } from './help.mjs';

const strict = () => Engine.fromString(
  'clusters: {b: {hosts: ["10.0.0.1:80"], limits: {connections: 2, pending: 2}, timeout: 0s, nexthop: {connections: strict}}}',
  { clock: 'manual', workers: 1, seed: 1n },
);

test('a connection lets a waiter go on', () => {
  const mesh = strict();
  const calls = Array.from({ length: 20 }, () => mesh.request('b'));
  const kinds = calls.map((call) => call.tryChooseHost().kind);
  assert.equal(kinds.filter((kind) => kind === 'refusal').length, 18);
  const waits = calls.filter((_, index) => kinds[index] === 'wait');
  assert.equal(waits.length, 2);
  for (const call of waits) call.note('connected');
  for (const call of waits) {
    const attempt = call.tryChooseHost();
    assert.equal(attempt.kind, 'attempt');
    attempt.note('sent');
    attempt.note('interim');
    assert.equal(attempt.complete(200).retry, false);
    attempt.note('sent');
    call.note('connected');
  }
  assert.deepEqual(idle(mesh), []);
});

test('a connection wakes who awaits', async () => {
  const mesh = strict();
  const calls = [mesh.request('b'), mesh.request('b')];
  const chosen = calls.map((call) => call.chooseHost());
  await settle();
  let came = 0;
  for (const one of chosen) one.then(() => { came += 1; });
  await settle();
  assert.equal(came, 0);
  for (const call of calls) call.note('connected');
  await settle();
  assert.equal(came, 2);
  for (const attempt of await Promise.all(chosen)) attempt.complete(200);
});

test('wrong notes are usage errors', () => {
  const mesh = strict();
  const call = mesh.request('b');
  assert.equal(thrown(() => call.note('connected')).code, 'ERR_NEXTHOP_STATE');
  for (const what of ['sneezed', 'toString', '', 1, undefined]) {
    assert.equal(thrown(() => call.note(what)).code, 'ERR_NEXTHOP_INVALID');
  }
  assert.equal(call.tryChooseHost().kind, 'wait');
  call.note('connected');
  const attempt = call.tryChooseHost();
  const error = thrown(() => attempt.note('sneezed'));
  assert.equal(error.code, 'ERR_NEXTHOP_INVALID');
  assert.match(error.message, /connected, sent, body_complete, retry_abandoned, interim/);
  attempt.complete(200);
});
