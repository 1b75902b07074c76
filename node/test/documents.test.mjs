import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, Engine, UsageError } from 'nexthop';
import { cluster, document, engine, idle, limits, route, settle, thrown, RETRY } from './help.mjs';

test('no documents are refused and change nothing', () => {
  const mesh = engine(['web']);
  for (const action of [() => Engine.fromString([]), () => Engine.fromFile([]), () => mesh.updateString([]), () => mesh.updateFile([])]) {
    const error = thrown(action);
    assert.ok(error instanceof UsageError);
    assert.match(error.message, /at least one document/);
  }
  for (const empty of ['', '# nothing', '[]', '---\n']) assert.ok(thrown(() => mesh.updateString(empty)) instanceof ConfigError, empty);
  const error = thrown(() => mesh.updateFile(''));
  assert.ok(error instanceof ConfigError);
  assert.match(error.message, /path of document 1 is empty/);
  mesh.chooseHost('web').complete(200);
  mesh.updateString('clusters: []');
  assert.equal(mesh.tryChooseHost('web').refusal, 'no_cluster');
});

test('endpoints name their cluster', () => {
  const odd = 'o"d\\ \n\u0085';
  const mesh = engine(['web', odd]);
  const { epoch } = mesh.info;
  const error = thrown(() => mesh.applyEndpoints('web', '{cluster_name: api}'));
  assert.equal(error.code, 'ERR_NEXTHOP_INVALID');
  assert.match(error.message, /"api".*"web"/);
  assert.ok(thrown(() => mesh.applyEndpoints('web', '{endpoints: []}')) instanceof ConfigError);
  assert.equal(mesh.info.epoch, epoch);
  mesh.applyEndpoints('web', '{cluster_name: web}');
  assert.deepEqual(mesh.hosts('web'), []);
  mesh.setHosts(odd, []);
  assert.deepEqual(mesh.hosts(odd), []);
});

test('a composite has no hosts of its own, and its missing sub-cluster is reported', () => {
  const mesh = Engine.fromString('clusters: {a: {hosts: [10.0.0.1:80]}, x: {composite: [a, b]}}');
  for (const hosts of [[], ['10.0.0.1:80']]) {
    const { code, message } = thrown(() => mesh.setHosts('x', hosts));
    assert.equal(code, 'ERR_NEXTHOP_INVALID');
    assert.match(message, /composite/);
    assert.doesNotMatch(message, /did you mean/);
  }
  assert.deepEqual(mesh.loadReport().entries.map(({ path, what }) => [path, what]), [['clusters.x.composite[1]', 'not_used']]);
});

test('a raised limit wakes who waits, oldest first', async () => {
  const narrow = (max_connections) => document([cluster('web', { hosts: 1, ...limits({ max_connections, max_pending_requests: 9 }) })]);
  const mesh = Engine.fromString(narrow(1));
  await mesh.request('web').chooseHost();
  const order = [];
  const waiting = [1, 2, 3].map(async (number) => {
    const attempt = await mesh.request('web').chooseHost();
    order.push(number);
    return attempt;
  });
  await settle();
  const begin = performance.now();
  mesh.updateString(narrow(3));
  const granted = await Promise.all(waiting.slice(0, 2));
  assert.ok(performance.now() - begin < 900);
  assert.deepEqual(order, [1, 2]);
  granted[0].complete(200);
  (await waiting[2]).complete(200);
  mesh.close();
});

test('an attempt whose scope is left is cancelled, deadline or not', async () => {
  const mesh = engine([cluster('web', { hosts: 1, ...limits({ max_connections: 1, max_pending_requests: 0 }) })], [route('web', RETRY)]);
  for await (const attempt of mesh.request({ cluster: 'web', timeout: 1000 })) {
    assert.equal(attempt.number, 1);
    break;
  }
  assert.deepEqual(idle(mesh), []);
  await assert.rejects(async () => {
    for await (const attempt of mesh.request('web')) throw new Error(`mine ${attempt.number}`);
  }, /mine 1/);
  assert.deepEqual(idle(mesh), []);
  async function* through() {
    for await (const attempt of mesh.request('web')) yield attempt;
  }
  const generator = through();
  assert.equal((await generator.next()).value.number, 1);
  await generator.return();
  assert.deepEqual(idle(mesh), []);
  const iterator = mesh.request('web')[Symbol.asyncIterator]();
  await iterator.next();
  await iterator.return();
  assert.deepEqual(idle(mesh), []);
  mesh.chooseHost('web')[Symbol.dispose]();
  const call = mesh.request('web');
  await call.chooseHost();
  await call[Symbol.asyncDispose]();
  assert.deepEqual(idle(mesh), []);
  assert.equal(mesh.info.liveRequests, 0);
});

test('named documents and runtime values', () => {
  const eds = 'static_resources: {clusters: [{name: orders, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}, connect_timeout: 1s}]}';
  const list = '{"hosts": [{"ip": "10.4.0.1", "port": 80, "weight": 1, "healthy": true, "enabled": true}]}';
  const mesh = Engine.fromString([eds, { name: 'orders', dialect: 'nacos', text: list }]);
  assert.equal(mesh.hosts('orders')[0].address, '10.4.0.1:80');
  assert.throws(() => Engine.fromString({ name: 'mine', text: 'clusters: 7' }), { code: 'ERR_NEXTHOP_CONFIG', file: 'mine', found: '7' });
  assert.throws(() => Engine.fromString({ name: 'mine', txet: '' }), { code: 'ERR_NEXTHOP_INVALID', message: /unknown option 'txet'/ });
  mesh.close();
  const limited = 'clusters: {web: {hosts: [10.0.0.1:80], retry: {on: [5xx], times: 1}}}';
  const off = { upstream: { use_retry: 0 } };
  const retried = (engine) => {
    const call = engine.request('web');
    const { action } = call.tryChooseHost().complete(503);
    call.close();
    return action;
  };
  const other = Engine.fromString(limited, { runtime: off });
  assert.equal(retried(other), 'forward');
  other.updateString(undefined, { runtime: { 'upstream.use_retry': 100 } });
  assert.equal(retried(other), 'retry');
  other.updateString(limited, { runtime: JSON.stringify(off) });
  assert.equal(retried(other), 'forward');
  assert.throws(() => other.updateString(undefined, { runtime: '[1]' }), { code: 'ERR_NEXTHOP_CONFIG', file: '<runtime>', line: 1, column: 1, found: 'a list' });
  assert.throws(() => other.updateString(undefined, { runtime: { a: NaN } }), { code: 'ERR_NEXTHOP_INVALID' });
  assert.throws(() => other.updateString(undefined), { code: 'ERR_NEXTHOP_INVALID' });
  other.close();
});
