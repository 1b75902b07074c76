import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { Engine } from 'nexthop';
import { cluster, document, idle, limits, settle, thrown } from './help.mjs';

const ONE_PERMIT = [cluster('web', { hosts: 1, ...limits({ max_connections: 1, max_pending_requests: 1000 }) })];

function start(job, shared, more = {}) {
  const worker = new Worker(new URL('worker.mjs', import.meta.url), { workerData: { job, shared, ...more } });
  const messages = [];
  const waiting = [];
  worker.on('message', (message) => {
    const next = waiting.shift();
    if (next) next(message);
    else messages.push(message);
  });
  const failed = new Promise((_, reject) => worker.once('error', reject));
  failed.catch(() => {});
  return {
    worker,
    next: () => Promise.race([failed, messages.length > 0 ? messages.shift() : new Promise((resolve) => waiting.push(resolve))]),
    exit: once(worker, 'exit').then(([code]) => code),
  };
}

test('worker threads load and unload the addon, round after round', async () => {
  for (let round = 0; round < 3; round++) {
    const all = [1, 2, 3, 4].map(() => start('load'));
    for (const each of all) assert.equal((await each.next()).result, 'loaded');
    assert.deepEqual(await Promise.all(all.map((each) => each.exit)), [0, 0, 0, 0]);
  }
});

test('a process whose workers alone load the addon exits clean', () => {
  const script = `
    const { Worker } = require('node:worker_threads');
    const file = ${JSON.stringify(fileURLToPath(new URL('worker.mjs', import.meta.url)))};
    let left = 8;
    const next = () => { if (left-- > 0) new Worker(file, { workerData: { job: 'load' } }).on('exit', (code) => { if (code) process.exit(code); next(); }); };
    for (let lane = 0; lane < 4; lane++) next();`;
  const { status, signal, stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', timeout: 60_000 });
  assert.deepEqual({ status, signal, stderr }, { status: 0, signal: null, stderr: '' });
});

test('a permit freed here wakes a waiter in another thread at once', async () => {
  const mesh = Engine.fromString(document(ONE_PERMIT));
  const open = await mesh.request('web').chooseHost();
  const other = start('wait', mesh.share());
  assert.equal(await other.next(), 'waiting');
  while (mesh.info.liveRequests < 2) await settle();
  open.complete(200);
  const { result } = await other.next();
  assert.ok(result < 900, `woken after ${result} ms`);
  assert.equal(await other.exit, 0);
  assert.deepEqual(idle(mesh), []);
  mesh.close();
});

test('a permit freed in another thread wakes a waiter here', async () => {
  const mesh = Engine.fromString(document(ONE_PERMIT));
  const other = start('hold', mesh.share());
  assert.equal(await other.next(), 'holding');
  const waiting = mesh.request('web').chooseHost();
  await settle();
  const begin = performance.now();
  other.worker.postMessage('release');
  (await waiting).complete(200);
  assert.ok(performance.now() - begin < 900);
  assert.equal((await other.next()).result, 'released');
  assert.equal(await other.exit, 0);
  // The other thread has left; the engine is still ours.
  mesh.chooseHost('web').complete(200);
  assert.deepEqual(idle(mesh), []);
  mesh.close();
});

test('what a terminated thread held, waited for or was granted goes to the others', async () => {
  const mesh = Engine.fromString(document([...ONE_PERMIT, cluster('other', { hosts: 1, ...limits({ max_connections: 1, max_pending_requests: 1000 }) })]));
  const open = await mesh.request('web').chooseHost();
  const other = start('stuck', mesh.share());
  assert.equal(await other.next(), 'stuck');
  // Held here; held there; waiting there.
  assert.equal(mesh.info.liveRequests, 3);
  open.complete(200); // granted to the other thread, which does not take it
  const waiting = [mesh.request('web').chooseHost(), mesh.request('other').chooseHost()];
  await settle();
  assert.equal(mesh.info.liveRequests, 4);
  await other.worker.terminate();
  for (const attempt of await Promise.all(waiting)) attempt.complete(200);
  assert.deepEqual(idle(mesh), []);
  assert.equal(mesh.info.liveRequests, 0);
  mesh.close();
});

test('closing a shared engine answers the waiters of every thread', async () => {
  const mesh = Engine.fromString(document(ONE_PERMIT));
  const open = await mesh.request('web').chooseHost();
  const other = start('closed', mesh.share());
  assert.equal(await other.next(), 'waiting');
  while (mesh.info.liveRequests < 2) await settle();
  const shared = mesh.share();
  mesh.close();
  assert.equal((await other.next()).result, 'ERR_NEXTHOP_CLOSED');
  assert.equal(await other.exit, 0);
  assert.equal(thrown(() => Engine.fromShared(shared)).code, 'ERR_NEXTHOP_CLOSED');
  open.cancel();
});

test('stress: threads share an engine; every waiter is answered and nothing is left', async () => {
  const mesh = Engine.fromString(document([cluster('web', { hosts: 3, ...limits({ max_connections: 2, max_pending_requests: 30 }) })]));
  const calls = 1000;
  const all = [1, 2, 3].map(() => start('stress', mesh.share(), { calls }));
  let ended = 0;
  const here = (async () => {
    for (let call = 0; call < calls; call++) {
      try {
        const attempt = await mesh.request('web').chooseHost();
        await new Promise((resolve) => setImmediate(resolve));
        attempt.complete(200);
      } catch (error) {
        assert.equal(error.code, 'ERR_NEXTHOP_REFUSED');
      }
      ended += 1;
    }
  })();
  for (const each of all) assert.equal((await each.next()).result, calls);
  await here;
  assert.equal(ended, calls);
  for (const each of all) assert.equal(await each.exit, 0);
  assert.deepEqual(idle(mesh), []);
  mesh.close();
});

test('stress: promises in one thread', async () => {
  const mesh = Engine.fromString(document([cluster('web', { hosts: 3, ...limits({ max_connections: 5, max_pending_requests: 5000 }) })]));
  let ended = 0;
  await Promise.all(Array.from({ length: 3000 }, async (_, number) => {
    const gone = new AbortController();
    const call = mesh.request({ cluster: 'web', signal: gone.signal });
    if (number % 11 === 0) setImmediate(() => gone.abort(new Error('gone')));
    try {
      const attempt = await call.chooseHost();
      if (number % 2 === 0) await null;
      if (number % 13 === 0) call.close();
      else if (number % 3 === 0) attempt.cancel();
      else attempt.complete(number % 5 === 0 ? 503 : 200);
    } catch (error) {
      assert.match(`${error.message} ${error.code}`, /gone|ERR_NEXTHOP_ENDED/);
    }
    ended += 1;
  }));
  assert.equal(ended, 3000);
  assert.deepEqual(idle(mesh), []);
  mesh.close();
});

test('more threads than an engine has places for are told', () => {
  const mesh = Engine.fromString(document(['web']));
  const joined = Array.from({ length: 63 }, () => Engine.fromShared(mesh.share()));
  assert.equal(thrown(() => Engine.fromShared(mesh.share())).code, 'ERR_NEXTHOP_LIMIT');
  joined[0].close();
  Engine.fromShared(mesh.share()).chooseHost('web').complete(200);
  mesh.close();
});
