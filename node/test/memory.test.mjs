// Attempts of every kind leave no memory behind. NEXTHOP_LEAK_ATTEMPTS says how many; the default is quick.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Engine } from 'nexthop';
import { collect } from './help.mjs';

const ATTEMPTS = Number(process.env.NEXTHOP_LEAK_ATTEMPTS ?? 120_000);
// What the allocators may keep: far below one object for each attempt.
const SLACK = Math.max(12 << 20, ATTEMPTS * 8);

const DOCUMENT = `
static_resources:
  clusters:
  - name: web
    circuit_breakers: {thresholds: [{max_requests: 2}]}
    load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [
      {endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}},
      {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}]}]}
---
name: routes
virtual_hosts:
- name: all
  domains: ["*"]
  routes:
  - match: {prefix: /}
    route:
      cluster: web
      hash_policy: [{header: {header_name: x-key}}, {cookie: {name: sid, ttl: 60s}}]
      retry_policy: {retry_on: 5xx, num_retries: 1, retry_back_off: {base_interval: 0.001s}}
`;

const mesh = () => Engine.fromString(DOCUMENT, { workers: 1, seed: 7n, clock: 'manual' });

const work = {
  requests(engine, count) {
    for (let number = 0; number < count / 4; number++) {
      const headers = { 'x-key': String(number), cookie: `sid=${number}`, unused: 'x'.repeat(40) };
      const call = engine.request({ authority: 'a', path: `/${number}`, headers });
      const first = call.tryChooseHost();
      if (first.complete(503, { 'x-answer': 'y'.repeat(40) }).retry) {
        engine.advance(10);
        const second = call.tryChooseHost();
        second.explain();
        second.complete(200);
      }
      call.close();
    }
  },
  failures(engine, count) {
    for (let number = 0; number < count / 16; number++) {
      assert.throws(() => engine.request({ cluster: 'web', method: 5 }).tryChooseHost());
      engine.request(`nowhere${number % 7}`).tryChooseHost();
      const calls = [engine.request('web'), engine.request('web'), engine.request('web')];
      for (const call of calls) call.tryChooseHost();
      for (const call of calls) call.close();
    }
  },
  texts(engine, count) {
    for (let number = 0; number < count / 4000; number++) {
      engine.stats();
      engine.hosts();
      engine.prometheus();
      engine.events();
      engine.apply('web', [{ address: '10.0.0.3:80', op: number % 2 ? 'remove' : 'add' }]);
    }
  },
};

for (const [name, run] of Object.entries(work)) {
  test(`memory stays flat: ${name}`, () => {
    const engine = mesh();
    run(engine, ATTEMPTS);
    collect();
    const before = process.memoryUsage().rss;
    run(engine, ATTEMPTS);
    collect();
    const grown = process.memoryUsage().rss - before;
    engine.close();
    assert.ok(grown < SLACK, `${grown} bytes more after ${ATTEMPTS} attempts`);
  });
}
