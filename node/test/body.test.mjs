import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { test } from 'node:test';
import { RETRY, engine, idle, route, settle, thrown } from './help.mjs';

function answered(mesh) {
  const call = mesh.request({ path: '/' });
  const attempt = call.tryChooseHost();
  attempt.onHeaders(200);
  return { call, attempt };
}

const mesh = engine(['web'], [route('web', RETRY)]);

test('a node stream ends the attempt at its end', async () => {
  const { call, attempt } = answered(mesh);
  const stream = Readable.from(['a', 'b']);
  assert.equal(attempt.body(stream), stream);
  call.close(); // leaves it alone
  attempt[Symbol.dispose]();
  assert.notDeepEqual(idle(mesh), []);
  const parts = [];
  for await (const part of stream) parts.push(part);
  await settle();
  assert.deepEqual(parts, ['a', 'b']);
  assert.equal(attempt.verdict.action, 'forward');
  assert.deepEqual(idle(mesh), []);
});

test('a node stream that breaks fails the attempt', async () => {
  const { attempt } = answered(mesh);
  const stream = attempt.body(new PassThrough());
  stream.on('error', () => {});
  stream.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
  await settle();
  assert.equal(attempt.verdict.reason, 'stream_ended');
  assert.deepEqual(idle(mesh), []);
});

test('a node stream closed early cancels the attempt', async () => {
  const { attempt } = answered(mesh);
  attempt.body(new PassThrough()).destroy();
  await settle();
  assert.deepEqual(idle(mesh), []);
});

test('node streams that are over already', async () => {
  const ended = Readable.from([]);
  for await (const part of ended) assert.fail(part);
  answered(mesh).attempt.body(ended);
  const destroyed = new PassThrough();
  destroyed.destroy();
  answered(mesh).attempt.body(destroyed);
  const broken = new PassThrough();
  broken.on('error', () => {});
  broken.destroy(new Error('x'));
  await settle();
  answered(mesh).attempt.body(broken);
  assert.deepEqual(idle(mesh), []);
});

test('a web stream: end, error, cancel', async () => {
  const whole = answered(mesh).attempt;
  assert.equal(await new Response(whole.body(new Blob(['hello']).stream())).text(), 'hello');
  assert.deepEqual(idle(mesh), []);

  const broken = answered(mesh).attempt;
  const failing = broken.body(new ReadableStream({ pull: () => Promise.reject(Object.assign(new Error('x'), { code: 'UND_ERR_SOCKET' })) }));
  await assert.rejects(new Response(failing).text());
  assert.equal(broken.verdict.reason, 'stream_ended');
  assert.deepEqual(idle(mesh), []);

  const left = answered(mesh).attempt;
  let reason;
  await left.body(new ReadableStream({ cancel: (given) => void (reason = given) })).cancel('enough');
  assert.equal(reason, 'enough');
  assert.deepEqual(idle(mesh), []);
});

test('no body ends at once; before headers there is none', () => {
  assert.equal(answered(mesh).attempt.body(null), null);
  assert.deepEqual(idle(mesh), []);
  const attempt = mesh.request({ path: '/' }).tryChooseHost();
  assert.equal(thrown(() => attempt.body(new PassThrough())).code, 'ERR_NEXTHOP_STATE');
  attempt.onHeaders(200);
  assert.equal(thrown(() => attempt.body('text')).code, 'ERR_NEXTHOP_INVALID');
  attempt.cancel();
  const stream = new PassThrough();
  assert.equal(attempt.body(stream), stream);
  assert.deepEqual(idle(mesh), []);
});

test('the client going while a body is handed over ends the attempt', async () => {
  const gone = new AbortController();
  const call = mesh.request({ path: '/', signal: gone.signal });
  const attempt = call.tryChooseHost();
  attempt.onHeaders(200);
  attempt.body(new PassThrough());
  const { signal } = attempt;
  gone.abort();
  assert.equal(signal.aborted, true);
  assert.deepEqual(idle(mesh), []);
});

test('a handed over body that takes longer than the deadline is aborted', async () => {
  const call = mesh.request({ path: '/', timeout: 300 });
  const attempt = call.tryChooseHost();
  const { signal } = attempt;
  attempt.onHeaders(200);
  const stream = attempt.body(new PassThrough({ signal }));
  stream.on('error', () => {});
  mesh.advance(400);
  assert.equal(signal.reason.name, 'TimeoutError');
  await settle();
  assert.equal(attempt.verdict.reason, 'stream_ended');
  assert.deepEqual(idle(mesh), []);
});
