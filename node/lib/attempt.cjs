'use strict';
// One upstream try.

const native = require('./native.cjs');
const check = require('./check.cjs');
const headersOf = require('./headers.cjs');
const text = require('./text.cjs');
const failures = require('./failure.cjs');
const { handOver } = require('./body.cjs');
const { cold, hotError, invalid, UsageError } = require('./errors.cjs');
const { FAILURES, NOTES, EMPTY, milliseconds, pairs } = require('./values.cjs');

const OPEN = 0;
const ANSWERED = 1;
const ENDED = 2;
// What `report` does.
const HEADERS = 0;
const COMPLETE = 1;
const END = 2;
const FAIL = 3;

const HAS_HEADERS = 16 << 16;
const REWRITE = 4096 << 16;
const RETRY_ACTION = 2;
const TIMEOUT = 8;

class Attempt {
  constructor(binding, request) {
    const { words } = binding;
    this._binding = binding;
    this._request = request;
    this._state = OPEN;
    this._kind = words[9];
    this._low = words[12];
    this._high = words[13];
    this.host = binding.host(words[14], words[15]);
    this.number = words[16];
    this._wants = words[17];
    this._try0 = words[18];
    this._try1 = words[19];
    this._rest0 = words[20];
    this._rest1 = words[21];
    this.verdict = undefined;
    // What few attempts have: a hedge time, a signal, headers to add.
    this._more = undefined;
    if ((words[22] & words[23]) !== -1) this._rare().hedgeAfter = milliseconds(words[22], words[23]);
  }

  get kind() {
    return 'attempt';
  }
  get cluster() {
    return this.host.cluster;
  }
  get timeout() {
    return milliseconds(this._try0, this._try1);
  }
  get remaining() {
    return milliseconds(this._rest0, this._rest1);
  }
  get hedgeAfter() {
    return this._more?.hedgeAfter ?? Infinity;
  }
  get idleTimeout() {
    return (this._rare().idleTimeout ??= cold(native.requestInfo, this._low >>> 0, this._high >>> 0)[3]);
  }

  /** Headers to add on the way up; null = remove. */
  get headers() {
    if ((this._kind & HAS_HEADERS) === 0) return EMPTY;
    return (this._rare().headers ??= Object.freeze(pairs(cold(native.extraHeaders, this._low >>> 0, this._high >>> 0))));
  }

  /** Aborted at the time-out, when the client is gone, and when another attempt has won. */
  get signal() {
    const rare = this._rare();
    if (rare.controller === undefined) {
      rare.controller = new AbortController();
      if (rare.reason !== undefined) rare.controller.abort(rare.reason);
      else if (this._state !== ENDED) this._arm(this._state === OPEN ? this.timeout : this.remaining);
    }
    return rare.controller.signal;
  }

  url(path) {
    const { address, port, secure } = this.host;
    if (path !== undefined) check.text('path', path);
    else if ((this._kind & REWRITE) !== 0) path = this.headers[':path'];
    path ??= this._request?._head.path ?? '/';
    if (!path.startsWith('/')) path = `/${path}`;
    if (address.startsWith('/')) return `unix:${address}:${path}`;
    const usual = secure ? 443 : 80;
    const authority = port === usual && address.endsWith(`:${port}`) ? address.slice(0, -1 - String(port).length) : address;
    return `${secure ? 'https' : 'http'}://${authority}${path}`;
  }

  complete(status, headers, more) {
    check.status(status);
    if (more === undefined && (headers === undefined || (status < 400 ? this._wants & 0xffff : this._wants >>> 16) <= 1)) {
      if (headers !== undefined) headersOf.check(headers);
      const binding = this._binding;
      const { words } = binding;
      words[0] = this._low;
      words[1] = this._high;
      words[2] = status;
      binding.completeStatus();
      return this._judge(ENDED);
    }
    this._report(COMPLETE, status, 0, headers, more, '');
    return this._judge(ENDED);
  }

  onHeaders(status, headers, more) {
    check.status(status);
    this._report(HEADERS, status, 0, headers, more, '');
    return this._judge(status >= 100 && status < 200 && status !== 101 ? OPEN : ANSWERED);
  }

  end(more) {
    if (this._state === ENDED) return;
    if (more !== undefined) check.knownKeys('end', more, END_KEYS);
    this._report(END, 0, 0, more?.trailers, more, '');
    this._judge(ENDED);
  }

  note(what) {
    this._binding.tell(this._low, this._high, check.oneOf('note', what, NOTES));
  }

  fail(failure, detail) {
    if (detail !== undefined) check.text('detail', detail);
    if (typeof failure === 'string') {
      const number = FAILURES.get(failure);
      if (number === undefined) throw invalid(`failure: expected one of ${[...FAILURES.keys()].join(', ')}, found ${check.shown(failure)}`);
      return this._fail(number, detail ?? '');
    }
    if (!(failure instanceof Error)) throw check.reject('failure', 'a name or an Error', failure);
    const number = this._more?.timedOut ? TIMEOUT : failures.classify(failure);
    if (number !== 0) return this._fail(number, detail ?? failures.detail(failure).toWellFormed());
    this._checkReportable();
    this.cancel();
    return this.verdict;
  }

  cancel() {
    if (this._state === ENDED) return;
    const binding = this._binding;
    const { words } = binding;
    words[0] = this._low;
    words[1] = this._high;
    binding.cancel();
    // A closed engine or an ended attempt has nothing left to give back.
    if (words[26] << 24 >> 24 < 0) this._ended(undefined, 0);
    else this._judge(ENDED);
  }

  /** Runs the action and reports what it throws; undefined = failed, a retry follows. */
  async send(action) {
    if (typeof action !== 'function') throw check.reject('action', 'a function', action);
    try {
      return await action();
    } catch (error) {
      return this._caught(error);
    }
  }

  body(stream) {
    if (this._state === OPEN) throw new UsageError('ERR_NEXTHOP_STATE', 'body: the attempt has no response yet; report its headers before handing over the body');
    if (this._state === ENDED) return stream;
    const handed = handOver(this, stream);
    this._rare().handed = true;
    return handed;
  }

  explain() {
    const id = (BigInt(this._high >>> 0) << 32n) | BigInt(this._low >>> 0);
    return JSON.parse(cold(native.text, this._binding.id, 9, id.toString()));
  }

  [Symbol.dispose]() {
    if (!this._handed) this.cancel();
  }

  // What follows is not part of the interface.

  get _handed() {
    return this._more?.handed === true;
  }

  _rare() {
    return (this._more ??= { controller: undefined, timer: undefined, reason: undefined, timedOut: false, lost: false, handed: false, unlisten: undefined, headers: undefined, idleTimeout: undefined, hedgeAfter: undefined });
  }

  _checkReportable() {
    if (this._state === ENDED) throw hotErrorEnded();
  }

  _fail(number, detail) {
    this._report(FAIL, 0, number, undefined, undefined, detail);
    const verdict = this._judge(ENDED);
    if (verdict.action === 'forward') this._request?._failed();
    return verdict;
  }

  /** What `send` and `run` do with an error: undefined when somebody else goes on, else it is thrown again. */
  _caught(error) {
    const aborted = this._request?._aborted;
    if (aborted !== undefined) {
      this.cancel();
      throw aborted.reason;
    }
    if (this._state === ENDED) {
      if (this._more?.lost) return undefined;
      throw error;
    }
    const number = this._more?.timedOut ? TIMEOUT : failures.classify(error);
    if (number === 0) {
      this.cancel();
      throw error;
    }
    if (this._fail(number, failures.detail(error).toWellFormed()).action === 'forward') throw error;
    return undefined;
  }

  _report(what, status, failure, headers, more, detail) {
    const binding = this._binding;
    let grpc = -1;
    let nanoseconds = 0;
    if (more !== undefined) {
      if (what !== END) check.knownKeys('more', more, MORE_KEYS);
      // Codes beyond 16 are legal on the wire and count as invalid ones.
      if (more.grpcStatus !== undefined) grpc = Math.min(check.integer('grpcStatus', more.grpcStatus, 0, check.U32), 127);
      if (more.latency !== undefined) {
        nanoseconds = Math.round(check.milliseconds('latency', more.latency) * 1e6);
        if (!(nanoseconds < 1.8e19)) throw check.reject('latency', 'finite milliseconds', more.latency);
      }
      if (more.detail !== undefined) detail = check.string('detail', more.detail);
    }
    let found = headersOf.NONE;
    if (headers !== undefined) {
      // Trailers are read over the set that the answer's headers were.
      const answer = what === END ? this.verdict.status : status;
      const set = answer < 400 ? this._wants & 0xffff : this._wants >>> 16;
      if (set > 1) found = headersOf.find(headers, binding.wanted(set));
      else headersOf.check(headers);
    }
    const { words } = binding;
    const { numbers } = text;
    numbers[0] = nanoseconds % 4294967296;
    numbers[1] = nanoseconds / 4294967296;
    numbers[2] = numbers[3] = 0;
    const large = found.length === 0 ? undefined : headersOf.large(found);
    const at = found.length === 0 || large !== undefined ? 0 : headersOf.write(found, 0);
    words[0] = this._low;
    words[1] = this._high;
    words[2] = what;
    words[3] = status | (failure << 16) | (grpc << 24);
    words[4] = 0;
    words[5] = at;
    words[6] = detail === '' ? 0 : text.utf8(at, detail.length > text.DETAIL / 4 ? clipped(detail) : detail, 'detail');
    words[7] = large === undefined ? 0 : 1;
    if (large === undefined) binding.report();
    else binding.report(large);
  }

  /** Reads the verdict of a report. */
  _judge(next) {
    const binding = this._binding;
    const head = binding.words[26];
    if ((head & 0xff) !== 0) throw hotError((head << 24) >> 24);
    const verdict = binding.verdict(head);
    this.verdict = verdict;
    const bits = head >>> 24;
    // Retry and discard end the attempt whatever was reported.
    if (next === ENDED || ((head >>> 8) & 0xff) >= RETRY_ACTION) this._ended(verdict, bits);
    else if (next === ANSWERED) this._answered(bits);
    else if (bits !== 0) binding.signals(bits);
    return verdict;
  }

  _answered(bits) {
    this._state = ANSWERED;
    if (this._more?.controller !== undefined && !this._more.controller.signal.aborted) this._arm(this.remaining);
    if (bits !== 0) this._binding.signals(bits);
    this._request?._reported(this, this.verdict, bits);
  }

  _ended(verdict, bits) {
    this._state = ENDED;
    if (this._more !== undefined) {
      this._disarm();
      this._more.unlisten?.();
    }
    if (this._request !== null) this._request._reported(this, verdict, bits);
    else if (this._watched) this._binding.unwatch(this);
    if (bits !== 0) this._binding.signals(bits);
  }

  get _watched() {
    return this._rest0 === -1 && this._rest1 === -1;
  }

  /** The engine has ended this attempt: another one won, or the client is gone. */
  _lose(reason, lost) {
    if (this._state === ENDED && !this._more?.handed) return;
    this._state = ENDED;
    const rare = this._rare();
    rare.lost = lost;
    rare.reason = reason;
    this._disarm();
    rare.controller?.abort(reason);
  }

  /** Stateless use with a signal: the client's going ends this attempt. */
  _follow(signal) {
    const gone = () => {
      this.cancel();
      this._more.reason = signal.reason;
      this._more.controller?.abort(signal.reason);
    };
    signal.addEventListener('abort', gone, { once: true });
    this._rare().unlisten = () => signal.removeEventListener('abort', gone);
  }

  _arm(ms) {
    this._disarm();
    if (ms === Infinity) return;
    const rare = this._more;
    rare.timer = this._binding.clock.after(ms, () => {
      rare.timer = undefined;
      if (this._state === ENDED) return;
      rare.timedOut = true;
      rare.controller.abort(new DOMException('The attempt took too long', 'TimeoutError'));
    }, true);
  }

  _disarm() {
    const rare = this._more;
    if (rare?.timer === undefined) return;
    this._binding.clock.cancel(rare.timer);
    rare.timer = undefined;
  }
}

const MORE_KEYS = new Set(['grpcStatus', 'latency', 'detail']);
const END_KEYS = new Set(['trailers', 'grpcStatus']);

function hotErrorEnded() {
  return new UsageError('ERR_NEXTHOP_ENDED', 'the attempt has ended; report an attempt once, and choose again for another one');
}

/** At most 256 bytes of free text, whole characters. */
function clipped(detail) {
  const first = detail.slice(0, text.DETAIL).toWellFormed();
  const bytes = Buffer.from(first);
  return bytes.length <= text.DETAIL ? first : new TextDecoder().decode(bytes.subarray(0, text.DETAIL), { stream: true });
}

module.exports = { Attempt, OPEN, ANSWERED, ENDED };
