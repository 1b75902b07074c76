import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RefusedError, UsageError, WouldWaitError } from 'nexthop';
import { cluster, engine, idle, limits, settle, thrown } from './help.mjs';

test('the pending queue: the one who completes wakes the oldest', async () => {
  const mesh = engine([cluster('web', { hosts: 1, ...limits({ max_connections: 1, max_pending_requests: 10 }) })]);
  const first = await mesh.request('web').chooseHost();
  const order = [];
  const calls = [1, 2, 3].map((name) => mesh.request('web').chooseHost().then((attempt) => {
    order.push(name);
    return attempt;
  }));
  const wait = mesh.request('web').tryChooseHost();
  assert.equal(wait.kind, 'wait');
  assert.equal(wait.reason, 'queue');
  await settle();
  assert.deepEqual(order, []);
  first.complete(200);
  (await calls[0]).complete(200);
  (await calls[1]).complete(200);
  (await calls[2]).complete(200);
  assert.deepEqual(order, [1, 2, 3]);
});

test('an overflowing queue refuses at once', () => {
  const mesh = engine([cluster('web', { hosts: 1, ...limits({ max_connections: 1, max_pending_requests: 1 }) })]);
  const open = mesh.request('web').tryChooseHost();
  const queued = mesh.request('web');
  assert.equal(queued.tryChooseHost().kind, 'wait');
  const call = mesh.request('web');
  const refused = call.tryChooseHost();
  assert.equal(refused.refusal, 'overflow');
  assert.equal(refused.resource, 'pending');
  assert.equal(refused.reply.status, 503);
  assert.equal(refused.reply.flags, 'UO');
  assert.equal(refused.reply.headers['x-envoy-overloaded'], 'true');
  assert.deepEqual(call.reply, refused.reply);
  queued.close();
  open.complete(200);
  assert.deepEqual(idle(mesh), []);
});

test('two that wait for one request: one attempt, one error', async () => {
  const mesh = engine([cluster('web', { hosts: 1, ...limits({ max_connections: 1, max_pending_requests: 10 }) })]);
  const open = await mesh.request('web').chooseHost();
  const call = mesh.request('web');
  const both = Promise.allSettled([call.chooseHost(), call.chooseHost()]);
  await settle();
  open.complete(200);
  const [first, second] = await both;
  assert.deepEqual([first.status, second.status], ['fulfilled', 'rejected']);
  assert.equal(second.reason.code, 'ERR_NEXTHOP_STATE');
  first.value.complete(200);
  assert.deepEqual(idle(mesh), []);
});

test('a refusal by a limit behind the choice names the host', () => {
  const mesh = engine([cluster('web', { hosts: 1, ...limits({ max_requests: 1 }) })]);
  const open = mesh.request('web').tryChooseHost();
  const refused = mesh.request('web').tryChooseHost();
  assert.deepEqual([refused.kind, refused.resource, refused.host?.address], ['refusal', 'requests', '10.0.0.1:8080']);
  open.complete(200);
  assert.deepEqual(idle(mesh), []);
});

test('a signal ends the wait', async () => {
  const mesh = engine([cluster('web', { hosts: 1, ...limits({ max_connections: 1, max_pending_requests: 10 }) })]);
  const open = await mesh.request('web').chooseHost();
  const gone = new AbortController();
  const waiting = mesh.request({ cluster: 'web', signal: gone.signal }).chooseHost();
  await settle();
  gone.abort(new Error('client gone'));
  await assert.rejects(waiting, /client gone/);
  open.complete(200);
  assert.deepEqual(idle(mesh), []);
  const late = mesh.request({ cluster: 'web', signal: gone.signal });
  await assert.rejects(late.chooseHost(), /client gone/);
  assert.throws(() => late.tryChooseHost(), /client gone/);
});

test('a signal that fires as the permit is granted passes it on', async () => {
  const mesh = engine([cluster('web', { hosts: 1, ...limits({ max_connections: 1, max_pending_requests: 10 }) })]);
  const open = await mesh.request('web').chooseHost();
  const gone = new AbortController();
  const granted = mesh.request({ cluster: 'web', signal: gone.signal }).chooseHost();
  const next = mesh.request('web').chooseHost();
  await settle();
  open.complete(200); // grants the first waiter, whose continuation has not run yet
  gone.abort(new Error('client gone'));
  await assert.rejects(granted, /client gone/);
  (await next).complete(200);
  assert.deepEqual(idle(mesh), []);
});

test('a signal cancels the attempt in flight and its own signal', async () => {
  const mesh = engine(['web']);
  const gone = new AbortController();
  const call = mesh.request({ cluster: 'web', signal: gone.signal });
  const attempt = await call.chooseHost();
  const { signal } = attempt;
  assert.equal(signal.aborted, false);
  gone.abort(new Error('client gone'));
  assert.equal(signal.aborted, true);
  assert.match(signal.reason.message, /client gone/);
  assert.equal(thrown(() => attempt.complete(200)).code, 'ERR_NEXTHOP_ENDED');
  assert.deepEqual(idle(mesh), []);
  const stateless = new AbortController();
  const pick = mesh.chooseHost('web', { signal: stateless.signal });
  stateless.abort(new Error('gone too'));
  assert.match(pick.signal.reason.message, /gone too/);
  assert.deepEqual(idle(mesh), []);
});

test('the deadline in the queue is a refusal', async () => {
  const mesh = engine([cluster('web', { hosts: 1, ...limits({ max_connections: 1, max_pending_requests: 10 }) })]);
  const open = await mesh.request('web').chooseHost();
  const waiting = mesh.request({ cluster: 'web', timeout: 100 });
  const answer = waiting.chooseHost();
  await settle();
  mesh.advance(150);
  await assert.rejects(answer, (error) => error instanceof RefusedError && error.refusal.refusal === 'timeout');
  assert.equal(waiting.reply.status, 504);
  assert.equal(waiting.reply.flags, 'UT');
  open.complete(200);
  assert.deepEqual(idle(mesh), []);
});

test('closing the engine answers everybody who waits', async () => {
  const mesh = engine([cluster('web', { hosts: 1, ...limits({ max_connections: 1, max_pending_requests: 10 }) })]);
  const open = await mesh.request('web').chooseHost();
  const waiting = mesh.request('web').chooseHost();
  await settle();
  mesh.close();
  await assert.rejects(waiting, (error) => error instanceof UsageError && error.code === 'ERR_NEXTHOP_CLOSED');
  assert.equal(thrown(() => open.complete(200)).code, 'ERR_NEXTHOP_CLOSED');
  open.cancel();
});

test('a stateless pick that would have to wait says so and leaves nothing behind', () => {
  const block = { nexthop: { connections: 'queue' } };
  const mesh = engine([cluster('web', { hosts: 1, ...limits({ max_connections: 1, max_pending_requests: 10 }), ...block })]);
  const first = mesh.chooseHost('web');
  const second = mesh.tryChooseHost('web');
  if (second.kind === 'wait') {
    const error = thrown(() => mesh.chooseHost('web'));
    assert.ok(error instanceof WouldWaitError);
    assert.equal(error.wait.reason, 'queue');
  } else {
    assert.equal(second.kind, 'attempt');
    second.complete(200);
  }
  first.complete(200);
  assert.deepEqual(idle(mesh), []);
});
