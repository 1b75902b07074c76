import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Attempt, Engine, NexthopError, Request, UsageError } from 'nexthop';
import { RETRY, cluster, document, engine, idle, route, thrown } from './help.mjs';

const mesh = engine(['web'], [route('web', RETRY)]);

function code(action, expected, pattern = /./) {
  const error = thrown(action);
  assert.ok(error instanceof NexthopError, `expected ${expected}, got ${error}`);
  assert.equal(error.code, expected);
  assert.match(error.message, pattern);
  return error;
}
const invalid = (action, pattern) => assert.ok(code(action, 'ERR_NEXTHOP_INVALID', pattern) instanceof UsageError);

const NOT_A_STATUS = [NaN, -1, 1, 99, 1000, 200.5, Infinity, 2 ** 53, 200n, '200', null, {}, Symbol.iterator];

test('statuses', () => {
  const attempt = mesh.chooseHost('web');
  for (const status of [...NOT_A_STATUS, undefined]) {
    invalid(() => attempt.complete(status), /status: expected/);
    invalid(() => attempt.onHeaders(status), /status: expected/);
  }
  assert.equal(attempt.complete(0).action, 'forward');
});

test('a second report says ended, a second release is nothing', () => {
  const attempt = mesh.chooseHost('web');
  attempt.complete(200);
  code(() => attempt.complete(200), 'ERR_NEXTHOP_ENDED');
  code(() => attempt.onHeaders(200), 'ERR_NEXTHOP_ENDED');
  code(() => attempt.fail('remote_reset'), 'ERR_NEXTHOP_ENDED');
  code(() => attempt.fail(new RangeError('mine')), 'ERR_NEXTHOP_ENDED');
  attempt.end();
  attempt.cancel();
  attempt[Symbol.dispose]();
  const open = mesh.chooseHost('web');
  code(() => open.end(), 'ERR_NEXTHOP_STATE');
  open.cancel();
});

test('one attempt at a time', () => {
  const call = mesh.request({ path: '/' });
  const attempt = call.tryChooseHost();
  code(() => call.tryChooseHost(), 'ERR_NEXTHOP_STATE');
  attempt.complete(200);
  code(() => call.tryChooseHost(), 'ERR_NEXTHOP_ENDED');
});

test("another engine's objects, and things that are none", () => {
  const other = engine(['web']);
  const attempt = other.chooseHost('web');
  // An attempt carries its engine: there is no way to report it to another one.
  mesh.chooseHost('web').complete(200);
  assert.equal(attempt.complete(200).action, 'forward');
  assert.throws(() => Attempt.prototype.complete.call({}, 200));
  assert.throws(() => Attempt.prototype.complete.call(mesh, 200));
  assert.throws(() => Request.prototype.tryChooseHost.call(mesh));
  assert.throws(() => Engine.prototype.request.call({}, 'web'), TypeError);
  invalid(() => new Engine());
  other.close();
});

test('after close', () => {
  const other = engine(['web']);
  const attempt = other.chooseHost('web');
  const call = other.request('web');
  const begun = other.request('web');
  begun.tryChooseHost();
  other.close();
  other.close();
  const closed = (action) => code(action, 'ERR_NEXTHOP_CLOSED');
  closed(() => attempt.complete(200));
  closed(() => call.tryChooseHost());
  closed(() => begun.tryChooseHost());
  closed(() => other.chooseHost('web'));
  closed(() => other.updateString('{}'));
  closed(() => other.reload());
  closed(() => other.setHosts('web', []));
  closed(() => other.stats());
  closed(() => other.prometheus());
  closed(() => other.events());
  closed(() => other.maintain());
  closed(() => other.advance(1));
  closed(() => other.now());
  closed(() => other.share());
  closed(() => other.info);
  attempt.cancel();
  begun.close();
});

test('numbers of picks and heads', () => {
  invalid(() => mesh.chooseHost('web', { attempt: 0, path: '/' }), /attempt: expected an integer from 1 to 2147483647/);
  for (const attempt of [NaN, -1, 1.5, 2n, '1', 2 ** 31, 2 ** 32, Infinity, null]) {
    invalid(() => mesh.chooseHost('web', { attempt }), /attempt: expected an integer from 0 to 2147483647/);
    invalid(() => mesh.chooseHost('web', { attempt, path: '/' }), /attempt: expected an integer from 1 to 2147483647/);
  }
  const [none, absent] = [{ timeout: 0 }, {}].map((head) => mesh.request({ path: '/', ...head }).tryChooseHost());
  assert.equal(none.remaining, absent.remaining);
  none.complete(200);
  absent.complete(200);
  for (const timeout of [NaN, -1, '5', 5n, null]) invalid(() => mesh.request({ path: '/', timeout }), /timeout: expected/);
  mesh.request({ path: '/', timeout: Infinity }).tryChooseHost().complete(200);
  mesh.request({ path: '/', timeout: Number.MAX_VALUE }).tryChooseHost().complete(200);
  mesh.request({ path: '/', timeout: 0.25 }).tryChooseHost().complete(200);
  const attempt = mesh.chooseHost('web');
  for (const latency of [NaN, -1, '5', 5n, Infinity]) invalid(() => attempt.complete(200, undefined, { latency }), /latency: expected/);
  for (const grpcStatus of [NaN, -1, '5', 5n, 1.5]) invalid(() => attempt.complete(200, undefined, { grpcStatus }), /grpcStatus: expected/);
  attempt.complete(200, undefined, { grpcStatus: 4_000_000_000, latency: 1e9 });
  for (const ms of [NaN, -1, '5', 5n, Infinity, undefined]) invalid(() => mesh.advance(ms), /ms: expected/);
  for (const ms of [1e30, Infinity, Number.MAX_VALUE]) invalid(() => mesh.advance(ms), /292 years/);
  code(() => Engine.fromString(document(['web'])).advance(1), 'ERR_NEXTHOP_STATE', /clock: 'manual'/);
});

test('send wants a function', async () => {
  const attempt = mesh.chooseHost('web');
  for (const action of [undefined, null, 5, {}, Promise.resolve()]) {
    await assert.rejects(attempt.send(action), { code: 'ERR_NEXTHOP_INVALID', message: /action: expected a function/ });
  }
  assert.equal(attempt.complete(200).action, 'forward');
});

test('what a head is refused for is said by its field', () => {
  invalid(() => mesh.request({ cluster: 'web', overrideHost: '!' }).tryChooseHost(), /override_host/);
  invalid(() => mesh.chooseHost('web', { overrideHost: '!' }), /override_host/);
  assert.deepEqual(idle(mesh), []);
});

test('the sentence of an error is its own, not that of the call before', () => {
  const other = engine([cluster('web')]);
  const attempt = other.chooseHost('web');
  attempt.onHeaders(200);
  assert.throws(() => other.updateString('clusters: 7'), /clusters/);
  const again = code(() => attempt.onHeaders(200), 'ERR_NEXTHOP_STATE');
  assert.doesNotMatch(again.message, /clusters: 7|mapping/);
  attempt.end();
});

test('kinds of values', () => {
  for (const head of [undefined, null, 1, [], Symbol.iterator]) invalid(() => mesh.request(head));
  invalid(() => mesh.request({ paht: '/' }), /unknown option.*paht/);
  for (const name of ['cluster', 'route', 'method', 'scheme', 'authority', 'path', 'source', 'local', 'overrideHost']) invalid(() => mesh.request({ [name]: 1 }), new RegExp(`${name}: expected a string`));
  invalid(() => mesh.request({ cluster: 'web', route: 'r' }), /both a cluster and a route are named/);
  invalid(() => mesh.request({ path: '/', body: 'twice' }), /body: expected one of none/);
  invalid(() => mesh.request({ path: '/', body: 'toString' }), /body: expected one of none/);
  invalid(() => mesh.request({ path: '/', priority: 'low' }), /priority/);
  invalid(() => mesh.request({ path: '/', key: 5 }), /key/);
  invalid(() => mesh.request({ path: '/', metadata: [1] }), /metadata/);
  invalid(() => mesh.request({ path: '/', signal: {} }), /signal/);
  for (const cluster of [undefined, null, 1, {}]) invalid(() => mesh.chooseHost(cluster), /cluster: expected a string/);
  invalid(() => mesh.chooseHost('web', 2), /options/);
  invalid(() => mesh.chooseHost('web', { tried: 'text' }), /tried/);
  invalid(() => mesh.chooseHost('web', { tried: [1] }), /tried/);
  const attempt = mesh.chooseHost('web');
  invalid(() => attempt.fail('broken'), /failure: expected one of connect_failure/);
  invalid(() => attempt.fail(5), /failure/);
  invalid(() => attempt.fail('remote_reset', 5), /detail/);
  invalid(() => attempt.url(5), /path/);
  attempt.cancel();
});

test('what neither JSON nor UTF-8 can carry', () => {
  const cycle = {};
  cycle.self = cycle;
  for (const metadata of [{ a: NaN }, { a: [1, { b: Infinity }] }, { a: 5n }, cycle, { toJSON: () => 5 }, { toJSON: () => undefined }, { a: '\ud800' }]) {
    invalid(() => mesh.request({ path: '/', metadata }).tryChooseHost(), /metadata/);
    invalid(() => mesh.chooseHost('web', { metadata }), /metadata/);
    invalid(() => mesh.setHosts('web', [{ address: '10.0.0.1:80', metadata }]), /metadata/);
  }
  for (const filterMetadata of [{ a: NaN }, { a: 5n }, cycle]) invalid(() => mesh.request({ path: '/', filterMetadata }), /filterMetadata does not fit into JSON/);
  for (const name of ['method', 'scheme', 'authority', 'path', 'source', 'local', 'overrideHost', 'cluster', 'route']) invalid(() => mesh.request({ [name]: '/\ud800' }), new RegExp(`${name}: expected text without lone surrogates`));
  invalid(() => mesh.request({ path: '/', key: '\ud800' }).tryChooseHost(), /key: expected text without/);
  invalid(() => mesh.chooseHost('\ud800'), /cluster: expected text without/);
  invalid(() => mesh.chooseHost('web', { tried: ['\udfff'] }), /tried: expected text without/);
  const attempt = mesh.chooseHost('web');
  invalid(() => attempt.fail('local_reset', '\ud800'), /detail: expected text without/);
  // What another library says is taken as it comes.
  attempt.fail(Object.assign(new Error('\ud800'), { code: 'ECONNRESET' }));
  const cut = mesh.chooseHost('web');
  cut.fail('local_reset', `${'x'.repeat(255)}😀`);
  assert.deepEqual(idle(mesh), []);
});

test('response headers of any size', () => {
  const other = engine(['web'], [route('web', { retry_policy: { retry_on: 'retriable-headers', num_retries: 1, retriable_headers: [{ name: 'x-big', present_match: true }, { name: 'x-retry', string_match: { exact: 'yes' } }] } })]);
  for (const value of ['x'.repeat(61_441), 'é'.repeat(70_000), '你'.repeat(70_000), ['x'.repeat(50_000), 'y'.repeat(50_000)]]) {
    const call = other.request({ path: '/' });
    assert.equal(call.tryChooseHost().complete(503, { 'x-big': value }).action, 'retry');
    call.close();
    const streamed = other.request({ path: '/' });
    assert.equal(streamed.tryChooseHost().onHeaders(503, { 'x-big': value, 'x-retry': 'yes' }).action, 'retry');
    streamed.close();
  }
  assert.deepEqual(idle(other), []);
});

test('a report in the wrong state says what to do', () => {
  const call = mesh.request({ path: '/' });
  const attempt = call.tryChooseHost();
  code(() => call.tryChooseHost(), 'ERR_NEXTHOP_STATE', /attempt 1 is open; report or cancel it/);
  code(() => attempt.end(), 'ERR_NEXTHOP_STATE', /no response headers were reported; report them first/);
  attempt.onHeaders(200);
  code(() => attempt.complete(200), 'ERR_NEXTHOP_STATE', /answered; use end/);
  code(() => call.tryChooseHost(), 'ERR_NEXTHOP_STATE', /the response of attempt 1 was forwarded/);
  attempt.end();
  code(() => attempt.complete(200), 'ERR_NEXTHOP_ENDED', /the attempt has ended/);
  code(() => call.tryChooseHost(), 'ERR_NEXTHOP_ENDED', /the request has ended/);
});

test('odd headers', () => {
  for (const headers of [null, 'text', 5]) invalid(() => mesh.request({ path: '/', headers }), /headers/);
  const other = engine(['web'], [route('web', {}, { prefix: '/', headers: [{ name: 'x-user', present_match: true }] })]);
  for (const headers of [{ 'x-user': {} }, { 'x-user': [1] }, { 'x-user': null }, { 'x-user': Symbol.iterator }, { 'x-user': NaN }, { 'x-user': Infinity }, { 'x-user': '\ud800' }, [['x-user']], [['x-user', {}]], ['x-user'], [[1, 'a']]]) {
    invalid(() => other.request({ path: '/', headers }).tryChooseHost());
  }
  for (const value of ['', ' ', '\0', '\r\n', 'é', 'ÿ', 'Ā', '你好', 'x'.repeat(30_000), 7, ['a', 'b'], '__proto__']) {
    const attempt = other.request({ path: '/', headers: { 'X-User': value } }).tryChooseHost();
    assert.equal(attempt.kind, 'attempt');
    attempt.complete(200, { 'x-user': 'y' });
  }
  const naughty = { get 'x-user'() { throw new Error('getter'); } };
  assert.throws(() => other.request({ path: '/', headers: naughty }).tryChooseHost(), /getter/);
  const proto = Object.create({ 'x-user': 'inherited' });
  assert.equal(other.request({ path: '/', headers: proto }).tryChooseHost().kind, 'refusal');
  assert.deepEqual(idle(other), []);
});

test('a header object that calls the engine does not disturb the call', () => {
  const other = engine(['a', 'b'], [
    route('a', {}, { prefix: '/', headers: [{ name: 'x-user', string_match: { exact: 'outer' } }] }),
    route('b'),
  ]);
  const nested = { get 'x-user'() { other.request({ path: '/nested', headers: { 'x-user': 'inner' } }).tryChooseHost().complete(200); return 'outer'; } };
  const attempt = other.request({ path: '/outer', headers: nested }).tryChooseHost();
  assert.equal(attempt.cluster, 'a');
  attempt.complete(200);
  assert.deepEqual(idle(other), []);
});

test('oversized strings', () => {
  const long = 'x'.repeat(70_000);
  const limit = (action) => code(action, 'ERR_NEXTHOP_LIMIT', /61440/);
  limit(() => mesh.request({ path: `/${long}` }).tryChooseHost());
  limit(() => mesh.request({ path: '/', key: long }).tryChooseHost());
  limit(() => mesh.chooseHost('web', { key: new Uint8Array(70_000) }));
  limit(() => mesh.request({ path: '/', authority: '€'.repeat(30_000) }).tryChooseHost());
  limit(() => mesh.request({ path: `/${'x'.repeat(40_000)}`, authority: 'x'.repeat(40_000) }).tryChooseHost());
  limit(() => mesh.request({ path: '/', metadata: { a: long } }).tryChooseHost());
  for (const detail of [long, '你'.repeat(500), `${'x'.repeat(255)}€`]) {
    const call = mesh.request({ path: '/', authority: 'x'.repeat(60_000) });
    call.tryChooseHost().fail('local_reset', detail);
    call.close();
  }
  assert.equal(mesh.tryChooseHost(long).refusal, 'no_cluster');
  assert.deepEqual(idle(mesh), []);
});

test('options of engines', () => {
  const make = (options) => Engine.fromString(document(['web']), options);
  for (const seed of [1, -1n, 2n ** 64n, '1', null]) invalid(() => make({ seed }), /seed: expected a bigint/);
  for (const workers of [-1, 1.5, NaN, 1n, 2 ** 32]) invalid(() => make({ workers }), /workers/);
  for (const lease of [-1, NaN, 1n, Infinity]) invalid(() => make({ lease }), /lease/);
  for (const events of [-1, 1.5, NaN, 1n]) invalid(() => make({ events }), /events/);
  for (const draws of [1n, [1], [-1n], [2n ** 64n]]) invalid(() => make({ draws }), /draws/);
  invalid(() => make({ clock: 'fast' }), /clock: expected one of coarse/);
  invalid(() => make({ dialect: 5 }), /dialect/);
  invalid(() => make({ sede: 1n }), /unknown option/);
  invalid(() => make({ shared: {} }), /shared/);
  for (const text of [undefined, null, 5, [], {}, [5]]) invalid(() => Engine.fromString(text));
  for (const path of [undefined, null, 5, [], {}, new Uint8Array()]) invalid(() => Engine.fromFile(path));
  assert.throws(() => Engine.fromFile('a\0b'), { code: 'ERR_NEXTHOP_CONFIG', file: 'a\0b' });
  make({ seed: 2n ** 64n - 1n, workers: 2, lease: 1000, events: 5, clock: 'precise' }).close();
});

test('names that nothing has', async () => {
  const other = engine(['web'], [], { clock: 'coarse' });
  code(() => other.hosts('wbe'), 'ERR_NEXTHOP_NOT_FOUND', /no cluster "wbe"; did you mean "web"\?/);
  assert.equal(other.hosts('web').length, 3);
  const sentence = 'no attempt: no_cluster; no cluster or route "wbe"; did you mean "web"?; the local reply is 503 NC, cluster_not_found';
  assert.throws(() => other.chooseHost('wbe'), { code: 'ERR_NEXTHOP_REFUSED', message: sentence });
  await assert.rejects(other.request('wbe').chooseHost(), { code: 'ERR_NEXTHOP_REFUSED', message: sentence });
  await assert.rejects(other.request({ route: 'none' }).chooseHost(), { message: /no cluster or route "route:none"/ });
  other.close();
});

test('hosts from code', () => {
  const other = engine([cluster('web')]);
  for (const list of [undefined, 5, 'text', {}]) invalid(() => other.setHosts('web', list), /hosts: expected a list/);
  for (const host of [5, {}, { address: 5 }, { address: '1.2.3.4:5', weight: 0 }, { address: '1.2.3.4:5', weight: 2 ** 32 }, { address: '1.2.3.4:5', priority: 129 },
    { address: '1.2.3.4:5', health: 'SICK' }, { address: '1.2.3.4:5', wieght: 5 }, { address: '1.2.3.4:5', metadata: 5 }]) {
    invalid(() => other.setHosts('web', [host]));
  }
  invalid(() => other.apply('web', [{ op: 'destroy', address: '1.2.3.4:5' }]), /op/);
  for (const address of ['', 'no port', '1.2.3.4:99999', '[::1:80', ':']) {
    assert.ok(thrown(() => other.setHosts('web', [address])) instanceof NexthopError, address);
  }
  assert.ok(thrown(() => other.setHosts('nobody', ['1.2.3.4:5'])) instanceof NexthopError);
  // Nothing was half applied.
  assert.match(other.chooseHost('web').host.address, /^10\.0\.0\./);
});
