'use strict';
// Events on their way to a log: a timer that hands each line to a sink.

const { appendFileSync } = require('node:fs');
const { fileURLToPath } = require('node:url');
const native = require('./native.cjs');
const check = require('./check.cjs');
const { cold, invalid } = require('./errors.cjs');

const OPTIONS = new Set(['every']);
const CLOSED = 'ERR_NEXTHOP_CLOSED';

/** A stream; it asks for a pause by what `write` returns. */
class StreamSink {
  #stream;
  full = false;
  constructor(stream) {
    this.#stream = stream;
  }
  write(line) {
    if (this.#stream.destroyed || this.#stream.writableEnded) throw invalid('sink: the stream has ended');
    if (this.#stream.write(`${line}\n`) !== false || this.full) return;
    this.full = true;
    this.#stream.once('drain', () => {
      this.full = false;
    });
  }
}

function sinkOf(sink) {
  if (typeof sink === 'function') return { full: false, write: sink };
  if (sink instanceof URL || typeof sink === 'string') {
    const path = typeof sink === 'string' ? check.text('sink', sink) : fileURLToPath(sink);
    // Opened for each line, so that whoever rotates logs needs to tell nobody.
    return { full: false, write: (line) => appendFileSync(path, `${line}\n`) };
  }
  if (typeof sink?.write === 'function') return new StreamSink(sink);
  if (typeof sink?.info === 'function') return { full: false, write: (line) => void sink.info(line) };
  throw check.reject('sink', 'a path, a stream, a logger with `info` or a function', sink);
}

class EventLog {
  #binding;
  #maintain;
  #sink;
  #every;
  #timer = undefined;
  #kept = undefined;
  #error = undefined;
  #ended;
  #open = true;

  constructor(binding, maintain, ended, sink, options = {}) {
    const { every = 1000 } = check.knownKeys('options', options, OPTIONS);
    if (check.milliseconds('every', every) === 0 || every === Infinity) throw check.reject('every', 'milliseconds above 0', every);
    this.#binding = binding;
    this.#maintain = maintain;
    this.#ended = ended;
    this.#sink = sinkOf(sink);
    this.#every = every;
    maintain(); // a closed engine has no log
    this.#next();
  }

  #next() {
    this.#timer = this.#binding.clock.after(this.#every, () => this.#round(), true);
  }

  #round() {
    try {
      // A stream that is full is asked again when it has drained; the engine keeps the events.
      if (!this.#sink.full) this.flush();
    } catch (error) {
      if (error.code === CLOSED) return this.#stop();
    }
    if (this.#open) this.#next();
  }

  /** Writes now what there is; the number of lines. */
  flush() {
    let written = 0;
    try {
      // Sweeps and the ends of ejections happen here when no request makes them happen.
      this.#maintain();
      for (;;) {
        const line = this.#kept ?? cold(native.pollEvent, this.#binding.id);
        if (line === null) break;
        this.#kept = line;
        this.#sink.write(line);
        this.#kept = undefined;
        written += 1;
      }
    } catch (error) {
      this.#error = error;
      throw error;
    }
    this.#error = undefined;
    return written;
  }

  get error() {
    return this.#error;
  }

  #stop() {
    this.#open = false;
    this.#binding.clock.cancel(this.#timer);
    this.#ended(this);
  }

  close() {
    if (!this.#open) return;
    this.#stop();
    try {
      this.flush();
    } catch {
      // `error` tells
    }
  }

  [Symbol.dispose]() {
    this.close();
  }
}

module.exports = { EventLog };
