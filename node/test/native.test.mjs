// The addon below the classes: no argument and no word in shared memory may crash it.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { engine, idle } from './help.mjs';

const require = createRequire(import.meta.url);
const native = require('../lib/native.cjs');
const text = require('../lib/text.cjs');
const { Binding } = require('../lib/binding.cjs');

const ODD = [
  undefined, null, true, 0, -1, 1.5, NaN, Infinity, 2 ** 53, 1n, -1n, 2n ** 64n, 2n ** 200n, '', 'text', '\ud800', '\0', Symbol.iterator, {}, [], [1], [[]], [[0, '', '', 5]],
  [[9, 'x', 'y', 'z']], () => {}, new Int32Array(1), new Int32Array(0), new Uint8Array(2000), new BigUint64Array(1), new Float64Array(64), new DataView(new ArrayBuffer(8)), new Proxy({}, {}),
];

/** Small and repeatable. */
function* words(seed) {
  for (let state = seed | 1; ; ) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    yield state;
  }
}

test('plain functions refuse every odd argument', () => {
  let refused = 0;
  for (const [name, call] of Object.entries(native)) {
    if (typeof call !== 'function') continue;
    for (const first of ODD) {
      for (const rest of [[], [first, first], ODD.slice(0, 6), [ODD[26], ODD[27], true], [[], 0, 0n, 0, 0, 0, first]]) {
        try {
          call(first, ...rest);
        } catch (thrown) {
          refused += 1;
          assert.ok(Number.isInteger(thrown.status) && thrown.status < 0, `${name}: ${thrown}`);
          assert.ok(thrown.message.length > 0, name);
        }
      }
    }
  }
  assert.ok(refused > 1000, `${refused}`);
});

test('a getter that throws inside an argument is what is thrown', () => {
  const mine = new Error('mine');
  const list = [1];
  Object.defineProperty(list, 0, { get() { throw mine; } });
  assert.throws(() => native.engineNew(list, 0, 0n, 0, 0, 0), mine);
});

test('bound functions survive every word', () => {
  const mesh = engine(['web', 'other']);
  const shared = mesh.share();
  const bound = new Binding(shared.id, false, true, shared.mail);
  const target = native.resolve(shared.id, 'web');
  const random = words(7);
  const next = () => random.next().value;
  const calls = ['pick', 'begin', 'beginTarget', 'choose', 'completeStatus', 'report', 'cancel', 'finish', 'note', 'pollReady'];
  let chosen = 0;
  for (let round = 0; round < 30_000; round++) {
    const name = calls[(next() >>> 0) % calls.length];
    for (let word = 0; word < 8; word++) bound.words[word] = next() % 3 === 0 ? next() : next() & 7;
    for (let word = 0; word < 32; word++) text.numbers[word] = next() % 4 === 0 ? next() : next() & 31;
    if (next() % 2 === 0) {
      // Near misses: real ids and names with odd company.
      bound.words[0] = name === 'pick' || name === 'beginTarget' ? target : bound.words[12];
      bound.words[1] = name === 'pick' ? 1 : bound.words[13];
      text.numbers[1] = target;
    }
    bound[name]();
    if (name === 'pick' && bound.words[30] === 0 && (bound.words[9] & 0xffff) === 1) chosen += 1;
  }
  assert.ok(chosen > 100, `${chosen}`);
  bound.leave();
  bound.leave();
  // Still whole: what was left open ends with its lease.
  mesh.advance(4_000_000);
  mesh.advance(4_000_000);
  mesh.chooseHost('web').complete(200);
  assert.deepEqual(idle(mesh), []);
  mesh.close();
});
