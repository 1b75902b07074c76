// Everything at once (tests/stress), with promises in several worker threads.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { Engine } from 'nexthop';
import { stressed } from './stress.mjs';

const DOCUMENTS = ['first', 'second'].map((name) => fileURLToPath(new URL(`../../tests/stress/${name}.yaml`, import.meta.url)));
const CALLS = 1200;

/** Everything is given back, and the next request is sent at once. */
function isOver(mesh) {
  assert.equal(mesh.info.liveRequests, 0);
  const gauges = Object.entries(mesh.stats()).filter(([name]) => /\.(upstream_rq_active|upstream_rq_pending_active|rq_open|rq_pending_open|rq_retry_open)$/.test(name));
  assert.ok(gauges.length >= 10);
  assert.deepEqual(gauges.filter(([, value]) => value !== 0), []);
  for (const cluster of ['web', 'narrow']) {
    const answer = mesh.request(cluster).tryChooseHost();
    assert.equal(answer.kind, 'attempt', `${cluster} is stuck`);
    answer.complete(200);
  }
}

test('stress: everything at once', { timeout: 60_000 }, async () => {
  const mesh = Engine.fromFile(DOCUMENTS[0]);
  const open = new Int32Array(new SharedArrayBuffer(8));
  const workers = [1, 2].map((seed) => new Worker(new URL('stress.mjs', import.meta.url), { workerData: { shared: mesh.share(), open, calls: CALLS, seed } }));
  const answers = workers.map((worker) => Promise.race([once(worker, 'message').then(([count]) => count), once(worker, 'error').then(([error]) => Promise.reject(error))]));
  const exits = workers.map((worker) => once(worker, 'exit'));
  let over = false;
  let at = 0;
  const updates = (async () => {
    while (!over) {
      mesh.updateFile(DOCUMENTS[++at % 2]);
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  const counts = await Promise.all([...answers, stressed(mesh, open, CALLS, 3)]);
  over = true;
  await updates;
  assert.deepEqual(counts, [CALLS, CALLS, CALLS]);
  assert.deepEqual((await Promise.all(exits)).map(([code]) => code), [0, 0]);
  isOver(mesh);
  mesh.close();
});
