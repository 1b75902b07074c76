// Mechanisms beyond Envoy, as this face shows them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Engine } from 'nexthop';

const MODELS = `
clusters:
  first: {hosts: [10.0.0.1:80], nexthop: {cool_down: {}}}
  second: {hosts: [10.0.0.2:80], nexthop: {cool_down: {}}}
  models:
    composite: [first, second]
    retry:
      on: 5xx
      times: 3
      backoff: {base: 1ms}
      nexthop: {classes: [{when: {status: 429, body_code: quota}, class: quota, next: cluster}]}
`;

for (const report of ['complete', 'onHeaders']) {
  test(`a class by the detail, and a refusal that says when: ${report}`, () => {
    const mesh = Engine.fromString(MODELS, { workers: 1, seed: 1n, clock: 'manual' });
    const call = mesh.request('models');
    const first = call.tryChooseHost();
    assert.equal(first[report](429, { 'retry-after': '9' }, { detail: 'quota' }).retry, true);
    mesh.advance(1);
    const second = call.tryChooseHost();
    assert.deepEqual([first.host.address, second.host.address], ['10.0.0.1:80', '10.0.0.2:80']);
    // Without its code it is an answer like any other.
    assert.equal(second[report](429, { 'Retry-After': '4.5' }).retry, false);
    const refused = mesh.request('models').tryChooseHost();
    assert.deepEqual([refused.kind, refused.refusal, refused.retryAfter], ['refusal', 'cooling', 4500]);
    assert.deepEqual([refused.reply.status, refused.reply.headers['retry-after']], [503, '5']);
    assert.deepEqual(mesh.events().map(({ type }) => type), ['nexthop.cool_down', 'nexthop.cool_down']);
    mesh.close();
  });
}

test('a detail is text', () => {
  const mesh = Engine.fromString(MODELS, { workers: 1, clock: 'manual' });
  const attempt = mesh.request('models').tryChooseHost();
  assert.throws(() => attempt.complete(429, {}, { detail: 5 }), /detail: expected a string/);
  assert.equal(attempt.complete(200, {}, { detail: 'x'.repeat(10_000) }).action, 'forward');
  mesh.close();
});
