// choose + complete through every layer, against an empty call through generated glue, interleaved. `choose+complete`
// is the pair of bound calls with the decision as slot and id in words; the classes lie over it.
import { createRequire } from 'node:module';
import { Engine } from 'nexthop';

const require = createRequire(import.meta.url);
const { empty, limit } = require('./reference/reference.node');
const native = require('../lib/native.cjs');
const { Binding } = require('../lib/binding.cjs');

const ROUNDS = Number(process.env.ROUNDS ?? 60);
const CALLS = Number(process.env.CALLS ?? 2000);
const HOSTS = [3, 100, 1000];

function document(count) {
  const endpoints = Array.from({ length: count }, (_, index) => {
    const address = `10.0.${index >> 8}.${index & 255}`;
    return { endpoint: { address: { socket_address: { address, port_value: 8080 } } } };
  });
  return JSON.stringify({
    static_resources: {
      clusters: [{
        name: 'web',
        type: 'STATIC',
        connect_timeout: '1s',
        lb_policy: 'LEAST_REQUEST',
        circuit_breakers: { thresholds: [{ max_connections: 1000, max_pending_requests: 1000, max_requests: 1000, retry_budget: { budget_percent: { value: 20 }, min_retry_concurrency: 3 } }] },
        outlier_detection: { consecutive_5xx: 5, interval: '10s', base_ejection_time: '30s' },
        load_assignment: { cluster_name: 'web', endpoints: [{ lb_endpoints: endpoints }] },
      }],
    },
  });
}

let sink = 0;
const cases = [
  ['empty', 0, (calls) => { for (let call = 0; call < calls; call++) empty(); }],
];
{
  const out = new Uint32Array(new SharedArrayBuffer(16));
  const { pick, finish } = limit(100, out);
  cases.push(['limit', 100, (calls) => {
    for (let call = 0; call < calls; call++) {
      pick();
      sink += out[0];
      finish();
    }
  }]);
}
for (const hosts of HOSTS) {
  const engine = Engine.fromString(document(hosts), { seed: 1n });
  const shared = engine.share();
  const bound = new Binding(shared.id, false, false, shared.mail);
  const { words, pick, completeStatus } = bound;
  const target = native.resolve(shared.id, 'web');
  cases.push(
    // Compiled anew for each engine: one loop over the functions of several would not know whom it calls. The number
    // makes the text another one, for the same text is compiled once.
    ['choose+complete', hosts, new Function('words', 'pick', 'completeStatus', 'target', `return (calls) => {
      let sum = ${hosts};
      for (let call = 0; call < calls; call++) {
        words[0] = target;
        words[1] = 1;
        words[2] = -1;
        pick();
        sum += words[14];
        words[0] = words[12];
        words[1] = words[13];
        words[2] = 200;
        completeStatus();
        sum += words[26];
      }
      return void (globalThis.sum = sum);
    }`)(words, pick, completeStatus, target)],
    ['engine.chooseHost + complete, address read', hosts, (calls) => {
      for (let call = 0; call < calls; call++) {
        const attempt = engine.chooseHost('web');
        sink += attempt.host.address.length;
        sink += attempt.complete(200).status;
      }
    }],
    ['request + tryChooseHost + complete, address read', hosts, (calls) => {
      for (let call = 0; call < calls; call++) {
        const attempt = engine.request('web').tryChooseHost();
        sink += attempt.host.address.length;
        sink += attempt.complete(200).status;
      }
    }],
  );
  if (hosts !== 100) continue;
  cases.push(
    ['request({cluster, path, headers}) + tryChooseHost + complete', hosts, (calls) => {
      for (let call = 0; call < calls; call++) {
        const attempt = engine.request({ cluster: 'web', path: '/pay', headers: { 'x-user': '42' } }).tryChooseHost();
        sink += attempt.complete(200).status;
      }
    }],
    ['await request.chooseHost() + complete', hosts, async (calls) => {
      for (let call = 0; call < calls; call++) {
        const attempt = await engine.request('web').chooseHost();
        sink += attempt.complete(200).status;
      }
    }],
    ['for await + complete', hosts, async (calls) => {
      for (let call = 0; call < calls; call++) {
        for await (const attempt of engine.request('web')) sink += attempt.complete(200).status;
      }
    }],
    ['tryChooseHost refused + value read', hosts, (calls) => {
      for (let call = 0; call < calls; call++) sink += engine.tryChooseHost('nobody').reply.status;
    }],
  );
}

const rounds = cases.map(() => []);
async function round(keep) {
  for (const [index, [, , work]] of cases.entries()) {
    const begin = process.hrtime.bigint();
    const pending = work(CALLS);
    if (pending !== undefined) await pending;
    const spent = Number(process.hrtime.bigint() - begin) / CALLS;
    if (keep) rounds[index].push(spent);
  }
}
for (let warm = 0; warm < 5; warm++) await round(false);
for (let each = 0; each < ROUNDS; each++) await round(true);

const least = rounds.map((list) => Math.min(...list));
const middle = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];
for (const [index, [name, hosts]] of cases.entries()) {
  console.log(JSON.stringify({
    face: 'node', case: name, hosts, min_ns: +least[index].toFixed(1), med_ns: +middle(rounds[index]).toFixed(1), min_over_n: +(least[index] / least[0]).toFixed(2),
  }));
}
if (sink === 0) process.exitCode = 1;
