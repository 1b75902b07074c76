import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ConfigError, Engine, NexthopError } from 'nexthop';
import * as esm from 'nexthop';
import { RETRY, cluster, collect, document, engine, idle, limits, route, stat, thrown } from './help.mjs';

const folder = mkdtempSync(join(tmpdir(), 'nexthop-node-'));
after(() => rmSync(folder, { recursive: true }));
const file = (name, text) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

test('both module systems give the same classes', () => {
  const cjs = createRequire(import.meta.url)('nexthop');
  assert.deepEqual(Object.keys(esm).sort(), Object.keys(cjs).sort());
  for (const name of Object.keys(cjs)) assert.equal(esm[name], cjs[name], name);
});

test('from files, text, bytes, several documents', () => {
  const [clusters, routes] = document(['web'], [route('web')]);
  for (const mesh of [
    Engine.fromFile(file('a.json', clusters)),
    Engine.fromFile([file('b.json', clusters), file('c.json', routes)]),
    Engine.fromString(clusters),
    Engine.fromString(Buffer.from(clusters)),
    Engine.fromString(new Uint8Array(Buffer.from(clusters))),
    Engine.fromString([clusters, routes], { dialect: 'envoy' }),
    Engine.fromString('static_resources:\n  clusters:\n  - name: web\n    connect_timeout: 1s\n    load_assignment:\n      cluster_name: web\n      endpoints:\n      - lb_endpoints:\n        - endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}\n'),
  ]) {
    const attempt = mesh.chooseHost('web');
    assert.match(attempt.url(), /^http:\/\/10\.0\.0\.\d(:8080)?\/$/);
    attempt.complete(200);
    mesh.close();
  }
});

test('a bad document says where, what was found, and what is near', () => {
  const text = 'static_resources:\n  clusters:\n  - name: web\n    lb_polcy: RANDOM\n';
  const error = thrown(() => Engine.fromFile(file('bad.yaml', text)));
  assert.ok(error instanceof ConfigError);
  assert.equal(error.code, 'ERR_NEXTHOP_CONFIG');
  assert.equal(error.name, 'ConfigError');
  assert.equal(error.file, join(folder, 'bad.yaml'));
  assert.equal(error.line, 4);
  assert.equal(error.column, 5);
  assert.match(error.path, /clusters\[0\]/);
  assert.match(error.message, /lb_polcy/);
  assert.match(error.message, /lb_policy/);
});

test('files that are none', () => {
  for (const path of [join(folder, 'missing.yaml'), folder, file('empty.yaml', ''), file('blank.yaml', ' \n\n'), file('binary.yaml', Buffer.from([0xff, 0xfe, 0x00, 0x80])), file('list.json', '[1]')]) {
    const error = thrown(() => Engine.fromFile(path));
    assert.ok(error instanceof ConfigError, path);
    assert.equal(error.file, path);
    assert.ok(error.message.length > path.length, error.message);
  }
});

test('a document of 50 MB', () => {
  const big = `# ${'x'.repeat(100)}\n`.repeat(500_000);
  assert.ok(big.length > 50_000_000);
  const mesh = Engine.fromString(`${big}${document(['web'])[0]}`);
  mesh.chooseHost('web').complete(200);
  mesh.close();
});

test('100,000 hosts', () => {
  const mesh = engine([cluster('web', { hosts: 1, lb_policy: 'RANDOM' })]);
  const hosts = Array.from({ length: 100_000 }, (_, index) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}:80`);
  mesh.setHosts('web', hosts);
  const seen = new Set();
  for (let call = 0; call < 2000; call++) {
    const attempt = mesh.chooseHost('web');
    seen.add(attempt.host.address);
    attempt.complete(200);
  }
  assert.ok(seen.size > 1900, `${seen.size}`);
  for (const address of seen) assert.ok(address.startsWith('10.'));
  mesh.close();
});

test('seeds and draws decide', () => {
  const run = (options) => {
    const mesh = engine([cluster('web', { hosts: 50, lb_policy: 'RANDOM' })], [], options);
    return Array.from({ length: 20 }, () => {
      const attempt = mesh.chooseHost('web');
      attempt.complete(200);
      return attempt.host.address;
    }).join();
  };
  assert.equal(run({ seed: 5n }), run({ seed: 5n }));
  assert.notEqual(run({ seed: 5n }), run({ seed: 6n }));
  assert.equal(run({ draws: [1n, 2n, 3n] }), run({ draws: [1n, 2n, 3n] }));
  assert.equal(engine(['web'], [], { seed: 5n }).info.seed, 5n);
});

test('updates swap whole or not at all', () => {
  const mesh = engine(['a']);
  const { epoch } = mesh.info;
  const report = mesh.updateString(document(['a', 'b']));
  assert.equal(typeof report, 'object');
  assert.ok(mesh.info.epoch > epoch);
  mesh.chooseHost('b').complete(200);
  assert.ok(thrown(() => mesh.updateString('clusters: [{name: a, nmae: b}]')) instanceof ConfigError);
  mesh.chooseHost('b').complete(200);
  mesh.updateFile(file('update.json', document(['c'])[0]));
  assert.equal(mesh.tryChooseHost('b').refusal, 'no_cluster');
  mesh.chooseHost('c').complete(200);
  mesh.updateString(document(['b']));
  mesh.chooseHost('b').complete(200);
});

test('reload reads what changed and keeps serving on bad content', () => {
  const path = file('reload.json', document(['a'])[0]);
  const mesh = Engine.fromFile(path);
  assert.equal(mesh.reload(), false);
  writeFileSync(path, document(['a', 'bb'])[0]);
  assert.equal(mesh.reload(), true);
  mesh.chooseHost('bb').complete(200);
  writeFileSync(path, '{"clusters": [');
  assert.equal(mesh.reload(), false);
  mesh.chooseHost('bb').complete(200);
  assert.ok(mesh.events().some((event) => event.type === 'nexthop.config_rejected'));
  mesh.close();
});

test('hosts from code: set, add, change, remove; attempts in flight keep theirs', () => {
  const mesh = engine([cluster('web', { hosts: 1 })]);
  const addresses = () => {
    const seen = new Map();
    for (let call = 0; call < 12; call++) {
      const attempt = mesh.chooseHost('web');
      seen.set(attempt.host.address, attempt.host);
      attempt.complete(200);
    }
    return seen;
  };
  const open = mesh.chooseHost('web');
  const epoch = mesh.setHosts('web', ['1.1.1.1:1', { address: '1.1.1.2:1', zone: 'z', metadata: { version: 'v2', n: 1 }, hostname: 'h' }]);
  assert.equal(epoch, mesh.info.epoch);
  assert.deepEqual([...addresses().keys()].sort(), ['1.1.1.1:1', '1.1.1.2:1']);
  const second = addresses().get('1.1.1.2:1');
  assert.deepEqual({ ...second.metadata }, { version: 'v2', n: 1 });
  assert.equal(second.zone, 'z');
  assert.equal(second.hostname, 'h');
  assert.ok(Object.isFrozen(second) && Object.isFrozen(second.metadata));
  mesh.apply('web', [{ op: 'change', address: '1.1.1.2:1', metadata: { version: 'v3' } }]);
  const changed = addresses().get('1.1.1.2:1');
  assert.notEqual(changed, second);
  assert.equal(changed.metadata.version, 'v3');
  mesh.apply('web', ['1.1.1.3:1', { op: 'remove', address: '1.1.1.1:1' }]);
  assert.deepEqual([...addresses().keys()].sort(), ['1.1.1.2:1', '1.1.1.3:1']);
  mesh.setHosts('web', []);
  assert.equal(mesh.tryChooseHost('web').refusal, 'no_healthy_upstream');
  mesh.applyEndpoints('web', JSON.stringify({ cluster_name: 'web', endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: '1.1.1.9', port_value: 443 } } } }] }] }));
  assert.deepEqual([...addresses().keys()], ['1.1.1.9:443']);
  assert.equal(open.complete(200).action, 'forward');
  assert.deepEqual(idle(mesh), []);
});

test('numbers and texts', () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  mesh.request({ path: '/' }).tryChooseHost().complete(200);
  assert.equal(stat(mesh, 'web.upstream_rq_total'), 1);
  assert.match(mesh.prometheus(), /upstream_rq_total/);
  const attributes = { 'envoy.response_code': '200', 'envoy.cluster_name': 'web' };
  assert.deepEqual(mesh.metrics().filter(({ name }) => name === 'cluster.upstream_rq'), [{ name: 'cluster.upstream_rq', type: 'counter', value: 1, attributes }]);
  assert.equal(typeof mesh.loadReport(), 'object');
  assert.ok(Array.isArray(mesh.lint().findings));
  assert.ok(JSON.stringify(mesh.hosts('web')).includes('10.0.0.1:8080'));
  assert.ok(JSON.stringify(mesh.hosts()).includes('10.0.0.1:8080'));
  assert.throws(() => mesh.hosts('nobody'), { code: 'ERR_NEXTHOP_NOT_FOUND' });
  const attempt = mesh.request({ path: '/', explain: true }).tryChooseHost();
  const why = attempt.explain();
  assert.equal(why.chosen, attempt.host.address);
  const asked = mesh.explain({ cluster: attempt.cluster, attempt: 1, headers: { 'X-A': ['b'] } });
  assert.equal(asked.refusal, null);
  assert.ok(mesh.effective(attempt.cluster).values.some((row) => row.field === 'connect_timeout'));
  assert.ok(mesh.loadReport({ whole: true }).entries.some((entry) => entry.what === 'default'));
  attempt.complete(200);
});

test('an ejection is an event, and time brings the host back', () => {
  const mesh = engine([cluster('web', { hosts: 2, outlier_detection: { consecutive_5xx: 2, interval: '1s', base_ejection_time: '3s', max_ejection_percent: 100, enforcing_consecutive_5xx: 100 } })]);
  const hosts = () => {
    const seen = new Set();
    for (let call = 0; call < 6; call++) {
      const attempt = mesh.chooseHost('web');
      seen.add(attempt.host.address);
      attempt.complete(200);
    }
    return seen.size;
  };
  const sick = mesh.chooseHost('web');
  sick.complete(500);
  for (let call = 0; call < 4; call++) {
    const attempt = mesh.chooseHost('web');
    attempt.complete(attempt.host === sick.host ? 500 : 200);
  }
  assert.equal(hosts(), 1);
  const events = mesh.events();
  assert.ok(events.some((event) => JSON.stringify(event).includes(sick.host.address)), JSON.stringify(events));
  assert.deepEqual(mesh.events(), []);
  mesh.advance(10_000);
  assert.equal(hosts(), 2);
});

test('maintenance: due times, a timer that keeps nothing alive, stop', () => {
  const mesh = engine([cluster('web', { outlier_detection: { interval: '5s' } })]);
  const due = mesh.maintain();
  assert.ok(due > 0 && due <= 5000, `${due}`);
  const maintenance = mesh.startMaintenance();
  assert.equal(mesh.startMaintenance(), maintenance);
  mesh.advance(20_000);
  maintenance.stop();
  maintenance[Symbol.dispose]();
  assert.notEqual(mesh.startMaintenance(), maintenance);
  mesh.close();
  const real = Engine.fromString(document(['web']));
  real.startMaintenance();
  assert.ok(real.now() > 0);
});

test('a manual clock moves by advance only', () => {
  const mesh = engine(['web']);
  const before = mesh.now();
  assert.equal(before, 1000);
  mesh.advance(1.5);
  assert.equal(mesh.now(), 1001.5);
  assert.ok(thrown(() => Engine.fromString(document(['web'])).advance(1)) instanceof NexthopError);
});

test('forgotten attempts without a deadline come back with the collector', async () => {
  const mesh = engine([cluster('web', { hosts: 1, ...limits({ max_requests: 100_000 }) })], [route('web', { timeout: '0s' })]);
  (() => {
    for (let call = 0; call < 50; call++) {
      mesh.request({ path: '/' }).tryChooseHost();
    }
  })();
  assert.equal(mesh.info.liveRequests, 50);
  for (let round = 0; round < 50 && mesh.info.liveRequests > 0; round++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.deepEqual(idle(mesh), []);
});

test('forgotten attempts with a deadline are lost at the end of their lease', () => {
  const mesh = engine(['web'], [route('web', { timeout: '1s' })], { lease: 1000 });
  const forgotten = mesh.request({ path: '/' }).tryChooseHost();
  mesh.advance(5000);
  assert.deepEqual(idle(mesh), []);
  assert.ok(mesh.events().some((event) => event.type === 'nexthop.attempt_lost'));
  assert.equal(thrown(() => forgotten.complete(200)).code, 'ERR_NEXTHOP_ENDED');
});

test('engines that nobody closes are freed', async () => {
  // Over 1,023 engines at once would be refused.
  for (let made = 0; made < 3000; made++) {
    engine(['web']).chooseHost('web').complete(200);
    if (made % 200 === 0) {
      collect();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
});
