// What every thread of the stress test does: requests that fail, wait, go away, are dropped.
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { Engine } from 'nexthop';

const CLUSTERS = ['web', 'narrow'];
/** Of both clusters in both documents. */
const REQUESTS = 6;

/** Numbers that look random. */
function dice(seed) {
  let word = seed * 2654435761 >>> 0;
  return (sides) => {
    word = (Math.imul(word, 1664525) + 1013904223) >>> 0;
    return (word >>> 8) % sides;
  };
}

function report(attempt, draw) {
  switch (draw(8)) {
    case 0:
    case 1:
      return attempt.complete(503).retry;
    case 2:
      return attempt.fail('connect_failure').retry;
    case 3:
      attempt.onHeaders(200);
      attempt.end();
      return false;
    case 4:
      attempt.cancel();
      return false;
    default:
      attempt.complete(200);
      return false;
  }
}

async function one(mesh, open, draw) {
  const which = draw(2);
  // Some are gone before their turn comes.
  const gone = draw(5) === 0 ? new AbortController() : undefined;
  const call = mesh.request({ cluster: CLUSTERS[which], ...(gone && { signal: gone.signal }) });
  if (gone) setImmediate(() => gone.abort(new Error('gone')));
  try {
    for (let retry = true; retry;) {
      const attempt = await call.chooseHost();
      if (Atomics.add(open, which, 1) >= REQUESTS) throw new Error('over the limit');
      await null;
      Atomics.sub(open, which, 1);
      retry = report(attempt, draw);
    }
  } catch (error) {
    const refused = error.code === 'ERR_NEXTHOP_REFUSED' && error.refusal.refusal === 'overflow';
    if (!refused && error.message !== 'gone' && !(gone && error.code === 'ERR_NEXTHOP_ENDED')) throw error;
  } finally {
    call.close();
  }
}

/** So many requests, some at a time; how many were answered. */
export async function stressed(mesh, open, calls, seed) {
  const draw = dice(seed);
  let answered = 0;
  while (answered < calls) {
    await Promise.all(Array.from({ length: 40 }, () => one(mesh, open, draw)));
    answered += 40;
  }
  return answered;
}

if (!isMainThread && workerData?.open) {
  const { shared, open, calls, seed } = workerData;
  parentPort.postMessage(await stressed(Engine.fromShared(shared), open, calls, seed));
}
