// Events on their way to a log. A manual clock runs the timer: rounds are made by `advance` and `flush`.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { cluster, engine, thrown } from './help.mjs';

const DETECTION = { outlier_detection: { consecutive_5xx: 2, base_ejection_time: '30s', interval: '10s', max_ejection_percent: 100 } };
const BOTH = ['EJECT', 'EJECT'];
const BACK = ['UNEJECT', 'UNEJECT'];

const failing = () => engine([cluster('web', { hosts: 2, ...DETECTION })]);

function ejectAll(mesh) {
  for (let call = 0; call < 4; call++) mesh.chooseHost('web').complete(500);
}

function actions(lines) {
  const events = lines.map((line) => JSON.parse(line));
  for (const event of events) assert.equal(event.cluster_name, 'web');
  return events.map((event) => event.action);
}

const read = (path) => actions(readFileSync(path, 'utf8').trimEnd().split('\n'));

test('a file that is moved away, and the end of the engine', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'nexthop-events-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'events.jsonl');
  const mesh = failing();
  const log = mesh.logEvents(pathToFileURL(path), { every: 500 });
  ejectAll(mesh);
  mesh.advance(500);
  assert.deepEqual(read(path), BOTH);
  renameSync(path, `${path}.1`);
  mesh.advance(31_000);
  assert.deepEqual(read(path), BACK);
  ejectAll(mesh);
  mesh.close();
  assert.deepEqual(read(path), [...BACK, ...BOTH]);
  log.close();
  assert.equal(log.error, undefined);
  assert.deepEqual(read(`${path}.1`), BOTH);
});

test('loggers and functions', () => {
  for (const make of [(lines) => (line) => lines.push(line), (lines) => ({ info: (line) => lines.push(line) })]) {
    const mesh = failing();
    const lines = [];
    const log = mesh.logEvents(make(lines));
    ejectAll(mesh);
    assert.equal(log.flush(), 2);
    log[Symbol.dispose]();
    mesh.advance(31_000);
    assert.deepEqual(actions(lines), BOTH, 'a closed log writes no more');
    mesh.close();
  }
});

test('a stream that is full is left alone until it has drained', async () => {
  const mesh = failing();
  const chunks = [];
  let go;
  const slow = new Writable({
    highWaterMark: 1,
    write(chunk, _encoding, done) {
      chunks.push(chunk.toString().trimEnd());
      go = done;
    },
  });
  mesh.logEvents(slow, { every: 1000 });
  ejectAll(mesh);
  mesh.advance(1000);
  assert.equal(chunks.length, 1);
  mesh.advance(31_000);
  assert.equal(slow.writableLength > 0 && mesh.events().length, 2, 'the events are still the engine\'s');
  const drained = new Promise((resolve) => slow.once('drain', resolve));
  go();
  await new Promise((resolve) => setImmediate(resolve));
  go();
  await drained;
  ejectAll(mesh);
  mesh.advance(1000);
  assert.deepEqual(actions(chunks), ['EJECT', 'EJECT', 'EJECT']);
  mesh.close();
});

test('a line that could not be written comes first', () => {
  const mesh = failing();
  const lines = [];
  let full = true;
  const log = mesh.logEvents((line) => {
    if (full) throw new Error('no space left');
    lines.push(line);
  });
  ejectAll(mesh);
  mesh.advance(1000);
  assert.equal(log.error.message, 'no space left');
  assert.equal(thrown(() => log.flush()).message, 'no space left');
  full = false;
  mesh.advance(1000);
  assert.deepEqual([log.error, actions(lines)], [undefined, BOTH]);
  mesh.close();
});

test('wrong use', () => {
  const mesh = failing();
  const ended = new PassThrough();
  ended.end();
  for (const every of [0, -1, Number.NaN, Infinity, '1']) assert.equal(thrown(() => mesh.logEvents(console, { every })).code, 'ERR_NEXTHOP_INVALID');
  for (const sink of [7, undefined, null, {}]) assert.match(thrown(() => mesh.logEvents(sink)).message, /^sink: expected a path, a stream/);
  assert.equal(thrown(() => mesh.logEvents(console, { evry: 1 })).code, 'ERR_NEXTHOP_INVALID');
  const log = mesh.logEvents(ended);
  ejectAll(mesh);
  assert.equal(thrown(() => log.flush()).code, 'ERR_NEXTHOP_INVALID');
  mesh.close();
  assert.equal(thrown(() => mesh.logEvents(console)).code, 'ERR_NEXTHOP_CLOSED');
});

test('a log on the real clock writes by itself and keeps no process alive', () => {
  const script = `
    const { Engine } = require(${JSON.stringify(fileURLToPath(new URL('../index.cjs', import.meta.url)))});
    const mesh = Engine.fromString('clusters: {web: {hosts: [10.0.0.1:80], outlier: {consecutive_5xx: 1, max_percent: 100}}}');
    mesh.logEvents((line) => { console.log(JSON.parse(line).action); clearInterval(alive); }, { every: 1 });
    const alive = setInterval(() => {}, 1000);
    mesh.chooseHost('web').complete(500);`;
  const { status, stdout } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', timeout: 60_000 });
  assert.deepEqual({ status, stdout }, { status: 0, stdout: 'EJECT\n' });
});
