import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RefusedError } from 'nexthop';
import { RETRY, cluster, engine, idle, route, settle } from './help.mjs';

/** Moves the clock whenever everything else stands still, until the work is done. */
async function drive(mesh, work, step = 50) {
  let done = false;
  const finished = work.finally(() => (done = true));
  finished.catch(() => {});
  while (!done) {
    await settle();
    if (!done) mesh.advance(step);
  }
  return finished;
}

test('run returns what the function returns; an unreported return is a success', async () => {
  const mesh = engine(['web']);
  const call = mesh.request('web');
  let attempt;
  assert.equal(await call.run(async (each) => {
    attempt = each;
    return 'value';
  }), 'value');
  assert.equal(attempt.verdict.action, 'forward');
  assert.equal(attempt.verdict.reason, 'success');
  assert.equal(call.reply, undefined);
  assert.deepEqual(idle(mesh), []);
});

test('run retries statuses and errors, waits in between, and ends with the answer', async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  const hosts = [];
  const work = mesh.request({ path: '/' }).run(async (attempt) => {
    hosts.push(attempt.host.address);
    if (attempt.number === 1) throw Object.assign(new Error('x'), { code: 'ECONNREFUSED' });
    attempt.complete(attempt.number === 2 ? 503 : 200);
    return attempt.number;
  });
  assert.equal(await drive(mesh, work), 3);
  assert.equal(hosts.length, 3);
  assert.deepEqual(idle(mesh), []);
});

test('run rejects with the last error, and the request has its local reply', async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  const call = mesh.request({ path: '/' });
  const errors = [];
  const work = call.run(async () => {
    const error = Object.assign(new Error(`refused ${errors.length}`), { code: 'ECONNREFUSED' });
    errors.push(error);
    throw error;
  });
  await assert.rejects(drive(mesh, work), (error) => error === errors[2]);
  assert.equal(errors.length, 3);
  assert.equal(call.reply.status, 503);
  assert.match(call.reply.flags, /UF.*URX|URX.*UF/);
  assert.deepEqual(idle(mesh), []);
});

test('run lets foreign errors and falsy ones through, without a retry', async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  for (const thing of [new RangeError('mine'), undefined, 0, 'text']) {
    let calls = 0;
    let caught = 'nothing';
    try {
      await mesh.request({ path: '/' }).run(async () => {
        calls += 1;
        throw thing;
      });
    } catch (error) {
      caught = error;
    }
    assert.equal(caught, thing);
    assert.equal(calls, 1);
  }
  assert.deepEqual(idle(mesh), []);
});

test('run rejects with a refusal', async () => {
  const mesh = engine([cluster('web', { hosts: [] })]);
  const call = mesh.request('web');
  await assert.rejects(call.run(async () => assert.fail('no attempt')), RefusedError);
  assert.equal(call.reply.flags, 'UH');
});

test('run ends when the client goes', async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  const gone = new AbortController();
  const work = mesh.request({ path: '/', signal: gone.signal }).run(() => new Promise(() => {}));
  await settle();
  gone.abort(new Error('client gone'));
  await assert.rejects(work, /client gone/);
  assert.deepEqual(idle(mesh), []);
});

test('a body that run hands over outlives it', async () => {
  const mesh = engine(['web'], [route('web', RETRY)]);
  const stream = await mesh.request({ path: '/' }).run(async (attempt) => {
    attempt.onHeaders(200);
    return attempt.body(new Blob(['hello']).stream());
  });
  assert.notDeepEqual(idle(mesh), []);
  assert.equal(await new Response(stream).text(), 'hello');
  assert.deepEqual(idle(mesh), []);
});
