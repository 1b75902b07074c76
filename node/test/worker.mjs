// What the worker threads of the tests do.
import { parentPort, workerData } from 'node:worker_threads';
import { Engine } from 'nexthop';
import { document } from './help.mjs';

const { job, shared, calls } = workerData;
const jobs = {
  load() {
    const mesh = Engine.fromString(document(['web']));
    for (let call = 0; call < 100; call++) mesh.chooseHost('web').complete(200);
    mesh.tryChooseHost('nobody');
    return 'loaded';
  },
  async stress() {
    const mesh = Engine.fromShared(shared);
    let ended = 0;
    const one = async (number) => {
      const gone = number % 7 === 0 ? new AbortController() : undefined;
      const call = mesh.request({ cluster: 'web', ...(gone && { signal: gone.signal }) });
      if (gone) setImmediate(() => gone.abort(new Error('gone')));
      try {
        const attempt = await call.chooseHost();
        await new Promise((resolve) => setImmediate(resolve));
        if (number % 5 === 0) attempt.cancel();
        else if (number % 3 === 0) attempt.fail('remote_reset');
        else attempt.complete(200);
      } catch (error) {
        if (error.message !== 'gone' && error.code !== 'ERR_NEXTHOP_REFUSED' && error.code !== 'ERR_NEXTHOP_ENDED') throw error;
      }
      ended += 1;
    };
    for (let batch = 0; batch < calls; batch += 50) await Promise.all(Array.from({ length: 50 }, (_, index) => one(batch + index)));
    return ended;
  },
  async wait() {
    const mesh = Engine.fromFile('not read', { shared });
    const call = mesh.request('web');
    const pending = call.chooseHost();
    parentPort.postMessage('waiting');
    const begin = performance.now();
    const attempt = await pending;
    const spent = performance.now() - begin;
    attempt.complete(200);
    return spent;
  },
  async hold() {
    const mesh = Engine.fromShared(shared);
    const attempt = await mesh.request('web').chooseHost();
    parentPort.postMessage('holding');
    await new Promise((resolve) => parentPort.once('message', resolve));
    attempt.complete(200);
    mesh.close();
    return 'released';
  },
  /** Has an attempt in flight and waits for another one, but never looks: its event loop stands still. */
  async stuck() {
    const mesh = Engine.fromShared(shared);
    const held = mesh.request('other').chooseHost();
    const pending = mesh.request('web').chooseHost();
    await held;
    parentPort.postMessage('stuck');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    return pending;
  },
  async closed() {
    const mesh = Engine.fromShared(shared);
    const pending = mesh.request('web').chooseHost();
    parentPort.postMessage('waiting');
    return pending.then(() => 'chosen', (error) => error.code);
  },
};
parentPort.postMessage({ result: await jobs[job]() });
