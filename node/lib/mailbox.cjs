'use strict';
// Wakes across worker threads that share an engine. One block of shared memory, a stripe per thread: whoever
// completes an attempt writes the numbers of the requests that may go on into the stripes of the threads that
// wait for them, and notifies. A reader that finds its ring overrun asks again for everything it waits for.

const { UsageError } = require('./errors.cjs');

const THREADS = 64;
const RING = 256;
const STRIPE = RING + 4;
const ALIVE = 0;
const BELL = 1;
const WRITTEN = 2;
const ALL = 3;
const FIRST = 4;

function create() {
  const words = new Int32Array(new SharedArrayBuffer(THREADS * STRIPE * 4));
  words[ALIVE] = 1; // stripe 0 is its creator's
  return words;
}

/** Takes a free stripe; its number. */
function enter(words) {
  for (let slot = 1; slot < THREADS; slot++) {
    if (Atomics.compareExchange(words, slot * STRIPE + ALIVE, 0, 1) === 0) return slot;
  }
  throw new UsageError('ERR_NEXTHOP_LIMIT', `an engine can be shared by ${THREADS} threads at once`);
}

/** The word that is cleared when the thread of that stripe ends. */
function aliveWord(words, slot) {
  return words.subarray(slot * STRIPE + ALIVE, slot * STRIPE + ALIVE + 1);
}

/** Request number `seq` of the thread in stripe `slot` may go on. */
function post(words, slot, seq) {
  const stripe = slot * STRIPE;
  const place = Atomics.add(words, stripe + WRITTEN, 1);
  // 0 means empty; a number that is 0 by chance is covered by "all".
  if (seq === 0) Atomics.store(words, stripe + ALL, 1);
  else Atomics.store(words, stripe + FIRST + ((place >>> 0) % RING), seq);
  ring(words, stripe);
}

/** Everybody should look again (a manual clock moved, the engine was closed). */
function broadcast(words) {
  for (let slot = 0; slot < THREADS; slot++) {
    const stripe = slot * STRIPE;
    if (Atomics.load(words, stripe + ALIVE) === 0) continue;
    Atomics.store(words, stripe + ALL, 1);
    ring(words, stripe);
  }
}

function ring(words, stripe) {
  Atomics.add(words, stripe + BELL, 1);
  Atomics.notify(words, stripe + BELL);
}

/** The reading side of one stripe. */
class Reader {
  #words;
  #stripe;
  #read;
  #waiting = false;
  constructor(words, slot) {
    this.#words = words;
    this.#stripe = slot * STRIPE;
    this.#read = Atomics.load(words, this.#stripe + WRITTEN);
  }

  /** Reads what is there and goes on listening while `wanted()`; `deliver(seq)` gets numbers, or undefined = all. */
  listen(wanted, deliver) {
    if (this.#waiting) return;
    for (;;) {
      const bell = Atomics.load(this.#words, this.#stripe + BELL);
      this.#drain(deliver);
      if (!wanted()) return;
      const { async, value } = Atomics.waitAsync(this.#words, this.#stripe + BELL, bell);
      if (!async) continue;
      this.#waiting = true;
      value.then(() => {
        this.#waiting = false;
        this.listen(wanted, deliver);
      });
      return;
    }
  }

  #drain(deliver) {
    const words = this.#words;
    const stripe = this.#stripe;
    const written = Atomics.load(words, stripe + WRITTEN);
    let all = Atomics.exchange(words, stripe + ALL, 0) !== 0 || ((written - this.#read) | 0) > RING;
    if (all) this.#read = written;
    for (; this.#read !== written; this.#read = (this.#read + 1) | 0) {
      const seq = Atomics.exchange(words, stripe + FIRST + ((this.#read >>> 0) % RING), 0);
      if (seq === 0) all = true; // its writer is between its two steps
      else deliver(seq);
    }
    if (all) deliver(undefined);
  }
}

module.exports = { create, enter, aliveWord, post, broadcast, Reader };
