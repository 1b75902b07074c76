import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RefusedError } from 'nexthop';
import { RETRY, cluster, engine, idle, route, settle, thrown } from './help.mjs';

test('a stateless pair', () => {
  const mesh = engine(['web']);
  const attempt = mesh.chooseHost('web');
  assert.equal(attempt.kind, 'attempt');
  assert.equal(attempt.number, 1);
  assert.equal(attempt.cluster, 'web');
  assert.match(attempt.host.address, /^10\.0\.0\.[123]:8080$/);
  assert.equal(attempt.host.port, 8080);
  assert.equal(attempt.host.secure, false);
  assert.equal(attempt.url('/x'), `http://${attempt.host.address}/x`);
  assert.equal(attempt.url(), `http://${attempt.host.address}/`);
  const verdict = attempt.complete(200);
  assert.deepEqual({ ...verdict }, { action: 'forward', retry: false, after: 0, reason: 'success', status: 200, flags: '-' });
  assert.equal(attempt.verdict, verdict);
  assert.deepEqual(idle(mesh), []);
  mesh.close();
});

test('round robin reaches all, and the same host is the same object', () => {
  const mesh = engine(['web']);
  const hosts = new Set();
  for (let call = 0; call < 9; call++) {
    const attempt = mesh.chooseHost('web');
    hosts.add(attempt.host);
    attempt.complete(200);
  }
  assert.equal(hosts.size, 3);
});

test('a refused stateless choice throws, a tried one is a value', () => {
  const mesh = engine([cluster('empty', { hosts: [] })]);
  const error = thrown(() => mesh.chooseHost('empty'));
  assert.ok(error instanceof RefusedError);
  assert.equal(error.code, 'ERR_NEXTHOP_REFUSED');
  assert.equal(error.refusal.refusal, 'no_healthy_upstream');
  assert.equal(error.reply.status, 503);
  assert.equal(error.reply.flags, 'UH');
  const unknown = mesh.tryChooseHost('emptee');
  assert.equal(unknown.kind, 'refusal');
  assert.equal(unknown.refusal, 'no_cluster');
  assert.equal(unknown.reply.flags, 'NC');
});

test('headers of one kind after another, in every shape', () => {
  const mesh = engine(['a', 'b'], [
    route('b', {}, { prefix: '/', headers: [{ name: 'x-user', string_match: { exact: '42' } }] }),
    route('a'),
  ]);
  const b = [{ 'X-User': '42' }, { 'x-user': ['42'] }, new Headers({ 'x-user': '42' }), new Map([['x-USER', '42']]), [['x-user', '42']], { other: undefined, 'x-user': '42' }];
  for (const headers of b) {
    const call = mesh.request({ path: '/pay', headers });
    assert.equal(call.cluster, '');
    const attempt = call.tryChooseHost();
    assert.equal(attempt.cluster, 'b');
    assert.equal(call.cluster, 'b');
    attempt.complete(200);
  }
  for (const headers of [{}, { 'x-user': '41' }, { 'x-user': undefined }, new Map()]) {
    const attempt = mesh.request({ path: '/pay', headers }).tryChooseHost();
    assert.equal(attempt.cluster, 'a');
    attempt.complete(200);
  }
  assert.deepEqual(idle(mesh), []);
});

test('retries wait for the back-off of the manual clock', async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  const call = mesh.request({ path: '/pay' });
  const first = await call.chooseHost();
  const verdict = first.complete(503);
  assert.equal(verdict.retry, true);
  assert.equal(verdict.action, 'retry');
  const wait = call.tryChooseHost();
  assert.equal(wait.kind, 'wait');
  assert.equal(wait.reason, 'backoff');
  let second;
  const pending = call.chooseHost().then((attempt) => (second = attempt));
  await settle();
  assert.equal(second, undefined);
  mesh.advance(250);
  await pending;
  assert.equal(second.number, 2);
  assert.equal(second.complete(200).action, 'forward');
  assert.equal(call.reply, undefined);
  assert.deepEqual(idle(mesh), []);
});

test('for await goes on after a retry and stops after an answer', async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  const numbers = [];
  setImmediate(function tick() {
    mesh.advance(300);
    if (numbers.length < 3) setImmediate(tick);
  });
  for await (const attempt of mesh.request({ path: '/' })) {
    numbers.push(attempt.number);
    attempt.complete(attempt.number < 3 ? 503 : 200);
  }
  assert.deepEqual(numbers, [1, 2, 3]);
  assert.deepEqual(idle(mesh), []);
});

test('an iteration cancels what nobody reported, and stops', async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  let rounds = 0;
  let forgotten;
  for await (const attempt of mesh.request({ path: '/' })) {
    rounds += 1;
    forgotten = attempt;
  }
  assert.equal(rounds, 1);
  assert.equal(thrown(() => forgotten.complete(200)).code, 'ERR_NEXTHOP_ENDED');
  for await (const attempt of mesh.request({ path: '/' })) {
    forgotten = attempt;
    break;
  }
  assert.equal(thrown(() => forgotten.complete(200)).code, 'ERR_NEXTHOP_ENDED');
  await assert.rejects(async () => {
    for await (const attempt of mesh.request({ path: '/' })) throw new Error(`mine ${attempt.number}`);
  }, /mine 1/);
  assert.deepEqual(idle(mesh), []);
});

test('an iteration left between two tries gives the retry back', async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  for await (const attempt of mesh.request({ path: '/' })) {
    assert.equal(attempt.complete(503).retry, true);
    break;
  }
  assert.deepEqual(idle(mesh), []);
});

test('a final failure has a local reply, and send rejects with the error', async () => {
  const mesh = engine(['web'], [route('web', { timeout: '10s' })]);
  const call = mesh.request({ path: '/' });
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' });
  await assert.rejects(async () => {
    for await (const attempt of call) await attempt.send(() => Promise.reject(refused));
  }, refused);
  assert.equal(call.reply.status, 503);
  assert.match(call.reply.flags, /UF/);
  assert.deepEqual(idle(mesh), []);
});

test('send answers undefined when a retry follows', async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  let tries = 0;
  setImmediate(function tick() {
    mesh.advance(300);
    if (tries < 2) setImmediate(tick);
  });
  const seen = [];
  for await (const attempt of mesh.request({ path: '/' })) {
    tries += 1;
    const answer = await attempt.send(async () => {
      if (tries === 1) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
      return 'body';
    });
    seen.push(answer);
    if (answer !== undefined) attempt.complete(200);
  }
  assert.deepEqual(seen, [undefined, 'body']);
});

test("an error that is not the upstream's goes on, and the attempt is cancelled", async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  const mine = new RangeError('mine');
  const call = mesh.request({ path: '/' });
  const attempt = await call.chooseHost();
  await assert.rejects(attempt.send(() => Promise.reject(mine)), mine);
  assert.deepEqual(idle(mesh), []);
});

test('attempt.signal aborts at the time-out and the failure is a timeout', async () => {
  const mesh = engine(['web'], [route('web', { timeout: '0.500s' })]);
  const call = mesh.request({ path: '/' });
  const attempt = await call.chooseHost();
  assert.equal(attempt.timeout, 500);
  assert.equal(attempt.remaining, 500);
  assert.equal(attempt.hedgeAfter, Infinity);
  const sent = attempt.send(() => new Promise((_, reject) => {
    attempt.signal.addEventListener('abort', () => reject(attempt.signal.reason));
  }));
  mesh.advance(499);
  assert.equal(attempt.signal.aborted, false);
  mesh.advance(2);
  await assert.rejects(sent, { name: 'TimeoutError' });
  assert.equal(call.reply.status, 504);
  assert.match(call.reply.flags, /UT/);
  assert.deepEqual(idle(mesh), []);
});

test('two phases: headers decide, the end gives back', async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  const call = mesh.request({ path: '/' });
  const attempt = await call.chooseHost();
  assert.equal(attempt.onHeaders(200, { 'content-type': 'text/plain' }).action, 'forward');
  assert.notDeepEqual(idle(mesh), []);
  assert.equal(thrown(() => attempt.onHeaders(200)).code, 'ERR_NEXTHOP_STATE');
  assert.equal(thrown(() => attempt.complete(200)).code, 'ERR_NEXTHOP_STATE');
  attempt.end();
  attempt.end();
  assert.deepEqual(idle(mesh), []);
});

test('scopes give back: dispose, asyncDispose, close', async () => {
  const mesh = engine(['web']);
  const attempt = mesh.chooseHost('web');
  attempt[Symbol.dispose]();
  attempt[Symbol.dispose]();
  const call = mesh.request('web');
  await call.chooseHost();
  await call[Symbol.asyncDispose]();
  const closed = mesh.request('web');
  const open = await closed.chooseHost();
  closed.close();
  closed.close();
  assert.equal(thrown(() => open.complete(200)).code, 'ERR_NEXTHOP_ENDED');
  assert.equal(thrown(() => closed.tryChooseHost()).code, 'ERR_NEXTHOP_ENDED');
  await assert.rejects(closed.chooseHost(), { code: 'ERR_NEXTHOP_ENDED' });
  assert.deepEqual(idle(mesh), []);
});

test('a cluster of its own number is chosen by attempt in a composite', () => {
  const composite = {
    name: 'providers',
    connect_timeout: '1s',
    lb_policy: 'CLUSTER_PROVIDED',
    cluster_type: {
      name: 'envoy.clusters.composite',
      typed_config: { '@type': 'type.googleapis.com/envoy.extensions.clusters.composite.v3.ClusterConfig', clusters: [{ name: 'a' }, { name: 'b' }] },
    },
  };
  const mesh = engine(['a', 'b', composite]);
  const one = mesh.chooseHost('providers', { attempt: 1 });
  const two = mesh.chooseHost('providers', { attempt: 2 });
  assert.equal(one.cluster, 'a');
  assert.equal(two.cluster, 'b');
  assert.equal(two.number, 2);
  one.complete(200);
  two.complete(200);
  const past = mesh.tryChooseHost('providers', { attempt: 3 });
  assert.equal(past.refusal, 'no_healthy_upstream');
  assert.equal(past.resource, 'past_last_sub_cluster');
  assert.equal(mesh.tryChooseHost('providers', { attempt: 0 }).resource, 'no_attempt_number');
});

test('headers to add, a rewritten path, idle and overall time-outs', async () => {
  const more = { timeout: '3s', prefix_rewrite: '/v2/', retry_policy: { retry_on: '5xx', per_try_timeout: '0.400s', per_try_idle_timeout: '0.200s' } };
  const mesh = engine(['web'], [route('web', more, { prefix: '/api/' }), route('web')]);
  const call = mesh.request({ path: '/api/pay?a=b', headers: { host: 'x' } });
  assert.deepEqual(call.responseHeaders(), {});
  assert.equal(call.timeout, Infinity);
  const attempt = await call.chooseHost();
  assert.equal(attempt.url(), `http://${attempt.host.address}/v2/pay?a=b`);
  assert.equal(attempt.url('/other'), `http://${attempt.host.address}/other`);
  assert.equal(attempt.url('other'), `http://${attempt.host.address}/other`);
  assert.equal(attempt.timeout, 400);
  assert.equal(attempt.remaining, 3000);
  assert.equal(attempt.idleTimeout, 200);
  assert.equal(attempt.idleTimeout, 200);
  assert.equal(attempt.headers[':path'], '/v2/pay?a=b');
  assert.ok(Object.isFrozen(attempt.headers));
  assert.equal(call.timeout, 3000);
  assert.match(call.route, /to-web/);
  assert.equal(typeof call.responseHeaders(), 'object');
  attempt.complete(200);
  const stateless = mesh.chooseHost('web');
  assert.equal(typeof stateless.idleTimeout, 'number');
  stateless.complete(200);
  assert.deepEqual(idle(mesh), []);
});

test('a streaming upload starts its time-outs when it is complete', async () => {
  const mesh = engine(['web'], [route('web', { timeout: '1s' })]);
  const call = mesh.request({ path: '/', body: 'streaming' });
  call.bodyComplete();
  const attempt = await call.chooseHost();
  mesh.advance(5000);
  call.bodyComplete();
  assert.equal(attempt.complete(200).action, 'forward');
  assert.deepEqual(idle(mesh), []);
});

test('statuses and failures in trailers and by name', async () => {
  const mesh = engine(['web'], [route('web', { retry_policy: { retry_on: 'unavailable', num_retries: 1 } })]);
  const call = mesh.request({ path: '/', headers: { 'content-type': 'application/grpc' } });
  const first = await call.chooseHost();
  assert.equal(first.onHeaders(200, { 'grpc-status': '14' }).retry, true);
  mesh.advance(1000);
  const second = await call.chooseHost();
  assert.equal(second.onHeaders(200, {}, { latency: 3 }).action, 'forward');
  second.end({ trailers: new Headers({ 'grpc-status': '14' }) });
  const other = mesh.request({ path: '/', headers: { 'content-type': 'application/grpc' } });
  const third = await other.chooseHost();
  assert.equal(third.onHeaders(200, [], { grpcStatus: 14 }).retry, true);
  other.close();
  assert.deepEqual(idle(mesh), []);
});

const PREVIOUS = {
  name: 'envoy.retry_host_predicates.previous_hosts',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate' },
};

test('tried hosts and keys of a stateless attempt', () => {
  const previous = { retry_policy: { retry_on: '5xx', num_retries: 3, retry_host_predicate: [PREVIOUS], host_selection_retry_max_attempts: 20 } };
  const mesh = engine([cluster('web', { hosts: 2, lb_policy: 'RANDOM' })], [route('web', previous)]);
  for (let call = 0; call < 20; call++) {
    const attempt = mesh.chooseHost('web', { attempt: 2, tried: ['10.0.0.1:8080'] });
    assert.equal(attempt.host.address, '10.0.0.2:8080');
    assert.equal(attempt.number, 2);
    attempt.complete(200);
  }
  const ring = engine([cluster('web', { hosts: 20, lb_policy: 'MAGLEV' })]);
  const hosts = new Set();
  for (const key of ['user-1', Buffer.from('user-1'), 'user-1', new Uint8Array(Buffer.from('user-1'))]) {
    const attempt = ring.chooseHost('web', { key });
    hosts.add(attempt.host.address);
    attempt.complete(200);
    const routed = ring.request({ cluster: 'web', key }).tryChooseHost();
    hosts.add(routed.host.address);
    routed.complete(200);
  }
  assert.equal(hosts.size, 1);
  assert.deepEqual(idle(mesh), []);
});
