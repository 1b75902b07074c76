'use strict';
// What a request is made from: checked when it is made, written into the text array when it first chooses.

const check = require('./check.cjs');
const headers = require('./headers.cjs');
const text = require('./text.cjs');
const { invalid } = require('./errors.cjs');

const BODIES = { none: 0, replayable: 1, once: 2, streaming: 3 };
const PRIORITIES = { default: 0, high: 1 };
const INTERNAL = 1;
const EXPLAIN = 2;

const TEXTS = ['method', 'scheme', 'authority', 'path', 'source', 'local', 'overrideHost', 'route', 'cluster'];
const KEYS = new Set([
  ...TEXTS, 'headers', 'key', 'metadata', 'filterMetadata', 'timeout', 'priority', 'body', 'internal', 'explain', 'signal',
]);
const PICK_KEYS = new Set([...KEYS, 'attempt', 'tried']);

/** A checked head. Its headers are read when the request first chooses, all else now. */
class Head {
  constructor(given, keys = KEYS) {
    check.knownKeys('head', given, keys);
    for (const name of TEXTS) if (given[name] !== undefined) check.text(name, given[name]);
    if (given.cluster !== undefined && given.route !== undefined) throw invalid('both a cluster and a route are named; name one of them');
    const { key, timeout, signal } = given;
    if (key !== undefined && typeof key !== 'string' && !(key instanceof Uint8Array)) throw check.reject('key', 'a string or Uint8Array', key);
    if (timeout !== undefined) check.milliseconds('timeout', timeout);
    if (given.headers !== undefined) headers.check(given.headers);
    if (signal !== undefined && typeof signal?.addEventListener !== 'function') throw check.reject('signal', 'an AbortSignal', signal);
    this.cluster = given.cluster;
    this.route = given.route;
    this.method = given.method;
    this.scheme = given.scheme;
    this.authority = given.authority;
    this.path = given.path;
    this.headers = given.headers;
    this.source = given.source;
    this.local = given.local;
    this.overrideHost = given.overrideHost;
    this.key = key;
    this.timeout = timeout;
    this.signal = signal;
    this.metadata = given.metadata === undefined ? '' : check.json('metadata', given.metadata);
    this.filterMetadata = given.filterMetadata === undefined ? '' : check.json('filterMetadata', given.filterMetadata);
    this.body = given.body === undefined ? 0 : check.oneOf('body', given.body, BODIES);
    this.priority = given.priority === undefined ? -1 : check.oneOf('priority', given.priority, PRIORITIES);
    this.bits = (given.internal ? INTERNAL : 0) | (given.explain ? EXPLAIN : 0);
    this.number = 0;
    this.tried = '';
  }

  /** For stateless use. */
  static pick(options) {
    const head = new Head(options, PICK_KEYS);
    const { attempt, tried } = options;
    head.number = attempt === undefined ? 1 : check.integer('attempt', attempt, 1, check.LAST_NUMBER);
    if (tried !== undefined) {
      if (typeof tried === 'string' || typeof tried?.[Symbol.iterator] !== 'function') throw check.reject('tried', 'addresses', tried);
      head.tried = Array.from(tried, (address) => check.text('tried', address)).join(',');
    }
    return head;
  }

  /** What `explain` asks about, by the names of the library. */
  static asked(options) {
    const head = Head.pick(options);
    const asked = { attempt: head.number };
    for (const name of ['cluster', 'route', 'method', 'scheme', 'authority', 'path', 'source', 'local']) {
      if (head[name] !== undefined) asked[name] = head[name];
    }
    if (head.key !== undefined) asked.key = typeof head.key === 'string' ? head.key : Buffer.from(head.key).toString();
    if (head.timeout !== undefined) asked.timeout = head.timeout / 1000;
    if (head.metadata) asked.metadata = JSON.parse(head.metadata);
    if (head.tried) asked.tried = head.tried;
    if (options.internal) asked.internal = true;
    if (head.headers !== undefined) asked.headers = headers.all(head.headers);
    return asked;
  }

  /** Writes it for `begin`; `seq` and `slot` come back when its wait is over. */
  write(target, wanted, seq, slot, uploaded = false) {
    const found = this.headers === undefined ? headers.NONE : headers.find(this.headers, wanted);
    const { numbers } = text;
    numbers[0] = this.bits;
    numbers[1] = target;
    numbers[2] = this.number;
    numbers[3] = wanted.number;
    numbers[4] = this.priority;
    // An upload that is over before the first choice cannot be sent again, but runs no more.
    numbers[5] = uploaded && this.body === BODIES.streaming ? BODIES.once : this.body;
    numbers[6] = 0;
    numbers[7] = 0;
    writeTimeout(this.timeout);
    numbers[10] = seq;
    numbers[11] = slot;
    let at = 0;
    at += numbers[12] = utf8(at, this.method, 'method');
    at += numbers[13] = utf8(at, this.scheme, 'scheme');
    at += numbers[14] = utf8(at, this.authority, 'authority');
    at += numbers[15] = utf8(at, this.path, 'path');
    at += numbers[16] = utf8(at, this.source, 'source');
    at += numbers[17] = utf8(at, this.local, 'local');
    at += numbers[18] = utf8(at, this.tried, 'tried');
    at += numbers[19] = utf8(at, this.overrideHost, 'overrideHost');
    at += numbers[20] = utf8(at, this.metadata, 'metadata');
    at += numbers[21] = utf8(at, this.filterMetadata, 'filterMetadata');
    at += numbers[22] = headers.write(found, at);
    numbers[23] = this.key === undefined ? -1 : text.raw(at, this.key, 'key');
  }
}

function utf8(at, value, what) {
  return value === undefined || value === '' ? 0 : text.utf8(at, value, what);
}

function writeTimeout(timeout) {
  const { numbers } = text;
  // 584 years are as good as no limit, and 0 stands for none.
  if (timeout === undefined || timeout >= 1.8e13) {
    numbers[8] = -1;
    numbers[9] = -1;
    return;
  }
  const nanoseconds = Math.round(timeout * 1e6);
  numbers[8] = nanoseconds % 4294967296;
  numbers[9] = nanoseconds / 4294967296;
}

/** The head of `request("cluster")`: nothing to check, nothing else to write. */
const PLAIN = new Head({});

module.exports = { Head, PLAIN };
