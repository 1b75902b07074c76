'use strict';
// Active checks, and the loop that performs them.

const net = require('node:net');
const tls = require('node:tls');
const http = require('node:http');
const https = require('node:https');
const http2 = require('node:http2');
const native = require('./native.cjs');
const check = require('./check.cjs');
const headersOf = require('./headers.cjs');
const text = require('./text.cjs');
const failures = require('./failure.cjs');
const { cold, UsageError } = require('./errors.cjs');
const { CHECK_RESULTS, FAILURES, tables } = require('./values.cjs');

// Bits of a check.
const HTTP2 = 1;
const REUSE = 2;
const SECURE = 4;
const JUDGE = 0;
const REMOTE_RESET = FAILURES.get('remote_reset');
const ANSWER_KEYS = new Set(['grpcStatus']);
const NO_BYTES = new Uint8Array(0);

/** A check to perform now, handed out once. */
class Check {
  #binding;
  #want;
  #slot;
  #version;
  #host;
  constructor(binding, list) {
    this.#binding = binding;
    const bits = list[2];
    this.id = list[0];
    this.protocol = tables.checkProtocols[list[1]] ?? `unknown(${list[1]})`;
    this.http2 = (bits & HTTP2) !== 0;
    this.mayReuse = (bits & REUSE) !== 0;
    this.secure = (bits & SECURE) !== 0;
    this.#want = list[3];
    this.timeout = list[4];
    this.#slot = list[5] | 0;
    this.#version = list[6] | 0;
    this.bodyLimit = list[7];
    [this.cluster, this.name, this.extension, this.address, this.method, this.path, this.authority, this.payload] = list.slice(8, 16);
    const headers = [];
    for (let at = 16; at < list.length; at += 2) headers.push(Object.freeze([list[at], list[at + 1]]));
    this.headers = Object.freeze(headers);
    Object.freeze(this);
  }

  get host() {
    return (this.#host ??= this.#binding.host(this.#slot, this.#version));
  }

  result(result) {
    this.#report(check.oneOf('result', result, CHECK_RESULTS), 0, 0, -1, NO_BYTES, NO_BYTES);
  }

  answer(status, headers = [], body = NO_BYTES, more = {}) {
    const { grpcStatus } = check.knownKeys('more', more, ANSWER_KEYS);
    // Codes beyond 16 are legal on the wire and count as invalid ones.
    const grpc = grpcStatus === undefined ? -1 : Math.min(check.integer('grpcStatus', grpcStatus, 0, check.U32), 127);
    const found = headersOf.find(headers, this.#binding.wanted(this.#want));
    this.#report(JUDGE, check.status(status), 0, grpc, text.block(found), octets('body', body));
  }

  data(received) {
    return this.#report(JUDGE, 0, 0, -1, NO_BYTES, octets('received', received));
  }

  fail(failure) {
    let number;
    if (typeof failure === 'string') {
      number = FAILURES.get(failure);
      if (number === undefined) throw check.reject('failure', `one of ${[...FAILURES.keys()].join(', ')}`, failure);
    } else if (failure instanceof Error) {
      // What says nothing about the upstream says that there was no answer.
      number = failures.classify(failure) || REMOTE_RESET;
    } else throw check.reject('failure', 'a name or an Error', failure);
    this.#report(JUDGE, 0, number, -1, NO_BYTES, NO_BYTES);
  }

  #report(result, status, failure, grpc, headers, body) {
    const binding = this.#binding;
    const decided = cold(native.checkResult, binding.id, this.id, result, status, failure, grpc, headers, body);
    binding.wake();
    return decided;
  }
}

function octets(name, value) {
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) throw check.reject(name, 'a string or Uint8Array', value);
  return value;
}

/** The checks that are due. */
function due(binding) {
  const list = [];
  for (;;) {
    const next = cold(native.pollCheck, binding.id);
    if (next === null) return list;
    list.push(new Check(binding, next));
  }
}

// Updates bring checks unannounced; a coarse clock may lag behind its deadline.
const LOOK = 1000;
const TICK = 1;
/** Bytes of a TCP answer that are kept; more are read and dropped. */
const KEPT = 1 << 20;
const OPTIONS = new Set(['others', 'tls']);

class Loop {
  #binding;
  #others;
  #tls;
  #timer;
  #stopped = false;
  #told = new Set();
  #agents = { http: new http.Agent({ keepAlive: true }), https: new https.Agent({ keepAlive: true }) };
  #sessions = new Map();
  #underWay = new Set();

  constructor(binding, options, whenStopped) {
    check.knownKeys('options', options, OPTIONS);
    if (options.others !== undefined && typeof options.others !== 'function') throw check.reject('others', 'a function', options.others);
    this.#binding = binding;
    this.#others = options.others;
    this.#tls = options.tls === undefined ? {} : check.object('tls', options.tls);
    this.stop = () => {
      this.#stopped = true;
      if (this.#timer !== undefined) binding.clock.cancel(this.#timer);
      this.#timer = undefined;
      for (const controller of this.#underWay) controller.abort();
      for (const agent of Object.values(this.#agents)) agent.destroy();
      for (const session of this.#sessions.values()) session.destroy();
      whenStopped();
    };
    this.#round();
  }

  #round() {
    if (this.#stopped) return;
    if (this.#binding.closed) return this.stop();
    if (this.#timer !== undefined) this.#binding.clock.cancel(this.#timer);
    this.#timer = undefined;
    let pause;
    try {
      for (const one of due(this.#binding)) void this.#perform(one);
      pause = cold(native.checksDeadline, this.#binding.id);
    } catch (error) {
      // Another thread has closed the engine.
      if (error.code !== 'ERR_NEXTHOP_CLOSED') throw error;
      return this.stop();
    }
    this.#timer = this.#binding.clock.after(Math.min(Math.max(pause, TICK), LOOK), () => this.#round(), true);
  }

  async #perform(one) {
    const controller = new AbortController();
    this.#underWay.add(controller);
    const late = setTimeout(() => controller.abort(new DOMException('The check took too long', 'TimeoutError')), Math.ceil(one.timeout));
    late.unref();
    try {
      await this.#ask(one, controller.signal);
    } catch (error) {
      this.#failed(one, controller.signal.aborted ? controller.signal.reason : error);
    } finally {
      clearTimeout(late);
      this.#underWay.delete(controller);
    }
    // The result has set when this host is due again.
    this.#round();
  }

  #failed(one, error) {
    // Over meanwhile: out of time, its host has left, the engine is closed; or given up with the loop.
    if (this.#stopped || error instanceof UsageError) return;
    try {
      one.fail(error instanceof Error ? error : 'remote_reset');
    } catch (late) {
      if (!(late instanceof UsageError)) throw late;
    }
  }

  async #ask(one, signal) {
    if (one.protocol === 'tcp') return this.#bytes(one, signal);
    if (one.protocol !== 'custom') {
      const answer = await (one.http2 ? this.#http2(one, signal) : this.#http1(one, signal));
      return one.answer(answer.status, answer.headers, answer.body);
    }
    if (this.#others !== undefined) return this.#others(one, signal);
    const checker = `${one.cluster} ${one.name}`;
    if (!this.#told.has(checker)) {
      this.#told.add(checker);
      process.emitWarning(
        `the health check '${one.name}' of cluster '${one.cluster}' is custom (${one.extension}): give startChecks a function \`others\` that performs it; until then its hosts count as unreachable`,
        { code: 'NEXTHOP_CHECK_NOT_PERFORMED' },
      );
    }
    return one.fail('local_connect_failure');
  }

  /** Where to connect, for net, tls and http. */
  #place(one) {
    const { address } = one;
    if (address.startsWith('/')) return { path: address };
    const at = address.lastIndexOf(':');
    const host = address.slice(0, at).replace(/^\[|\]$/g, '');
    return { host, port: Number(address.slice(at + 1)) };
  }

  #secure(one) {
    const name = (one.authority || one.host.hostname || '').replace(/:\d+$/, '');
    return { ...(name !== '' && net.isIP(name) === 0 && { servername: name }), ...this.#tls };
  }

  #bytes(one, signal) {
    return new Promise((resolve, reject) => {
      const place = this.#place(one);
      const socket = one.secure ? tls.connect({ ...place, ...this.#secure(one) }) : net.connect(place);
      const end = (settle, value) => {
        socket.destroy();
        settle(value);
      };
      let received = Buffer.alloc(0);
      const look = () => {
        try {
          if (one.data(received)) end(resolve);
        } catch (error) {
          end(reject, error);
        }
      };
      signal.addEventListener('abort', () => end(reject, signal.reason), { once: true });
      socket.on('error', (error) => end(reject, error));
      socket.on('close', () => reject(Object.assign(new Error('closed before the expected bytes came'), { code: 'ECONNABORTED' })));
      socket.on('data', (chunk) => {
        received = Buffer.concat([received, chunk.subarray(0, KEPT - received.length)]);
        look();
      });
      socket.on(one.secure ? 'secureConnect' : 'connect', () => {
        if (one.payload.length > 0) socket.write(one.payload);
        look();
      });
    });
  }

  #http1(one, signal) {
    return new Promise((resolve, reject) => {
      const headers = {};
      for (const [name, value] of one.headers) headers[name] = name in headers ? [headers[name], value].flat() : value;
      headers.host = one.authority;
      if (one.payload.length > 0) headers['content-length'] = one.payload.length;
      const place = this.#place(one);
      const { host, port } = place;
      const to = place.path === undefined ? { host, port } : { socketPath: place.path };
      const agent = one.mayReuse ? this.#agents[one.secure ? 'https' : 'http'] : false;
      const options = { ...to, agent, method: one.method, path: one.path, headers, signal, ...(one.secure && this.#secure(one)) };
      const request = (one.secure ? https : http).request(options, (response) => {
        collect(response, one.bodyLimit, (body) => {
          resolve({ status: response.statusCode, headers: { ...response.headers, ...response.trailers }, body });
        }, reject);
      });
      request.on('error', (error) => {
        // The host may have closed the idle connection just now.
        if (request.reusedSocket && error.code === 'ECONNRESET' && !signal.aborted) resolve(this.#http1(one, signal));
        else reject(error);
      });
      request.end(one.payload);
    });
  }

  #session(one) {
    const key = `${one.secure ? 'https' : 'http'} ${one.address}`;
    const known = this.#sessions.get(key);
    if (known !== undefined && !known.closed && !known.destroyed) return known;
    const place = this.#place(one);
    const connect = () => (one.secure ? tls.connect({ ...place, ALPNProtocols: ['h2'], ...this.#secure(one) }) : net.connect(place));
    const session = http2.connect(`${one.secure ? 'https' : 'http'}://${one.address.startsWith('/') ? 'localhost' : one.address}`, { createConnection: connect });
    session.on('error', () => {}); // each stream tells it, too
    session.unref();
    if (one.mayReuse) {
      this.#sessions.set(key, session);
      session.on('close', () => {
        if (this.#sessions.get(key) === session) this.#sessions.delete(key);
      });
    }
    return session;
  }

  #http2(one, signal) {
    return new Promise((resolve, reject) => {
      const session = this.#session(one);
      const headers = { ':method': one.method, ':path': one.path, ':scheme': one.secure ? 'https' : 'http', ':authority': one.authority };
      for (const [name, value] of one.headers) headers[name] = name in headers ? [headers[name], value].flat() : value;
      const finish = (settle, value) => {
        if (!one.mayReuse) session.destroy();
        settle(value);
      };
      session.once('error', reject);
      const stream = session.request(headers, { signal, endStream: one.payload.length === 0 });
      let answer;
      let trailers = {};
      stream.on('response', (found) => (answer = found));
      stream.on('trailers', (found) => (trailers = found));
      stream.on('close', () => session.off('error', reject));
      collect(stream, one.bodyLimit, (body) => {
        if (answer === undefined) return finish(reject, Object.assign(new Error('no response'), { code: 'ERR_STREAM_PREMATURE_CLOSE' }));
        const named = Object.entries({ ...answer, ...trailers }).filter(([name]) => !name.startsWith(':'));
        return finish(resolve, { status: answer[':status'], headers: Object.fromEntries(named), body });
      }, (error) => finish(reject, error));
      if (one.payload.length > 0) stream.end(one.payload);
    });
  }
}

/** Reads a body whole and keeps so much of it. */
function collect(stream, limit, done, failed) {
  const chunks = [];
  let length = 0;
  stream.on('data', (chunk) => {
    const kept = chunk.subarray(0, Math.max(0, limit - length));
    length += kept.length;
    chunks.push(kept);
  });
  stream.on('error', failed);
  stream.on('aborted', () => failed(Object.assign(new Error('the body was cut short'), { code: 'ECONNABORTED' })));
  stream.on('end', () => done(Buffer.concat(chunks)));
}

module.exports = { Check, Loop, due };
