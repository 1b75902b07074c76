'use strict';
// Error classes, and how numbers become them.

const native = require('./native.cjs');

class NexthopError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}
class ConfigError extends NexthopError {
  constructor(thrown) {
    super('ERR_NEXTHOP_CONFIG', thrown.message);
    this.file = thrown.file ?? '';
    this.line = thrown.line ?? 0;
    this.column = thrown.column ?? 0;
    this.path = thrown.path ?? '';
    if (thrown.found) this.found = thrown.found;
    if (thrown.allowed) this.allowed = thrown.allowed;
    if (thrown.nearest) this.nearest = thrown.nearest;
  }
}
class RefusedError extends NexthopError {
  constructor(refusal, missing) {
    const { status, flags, details } = refusal.reply;
    const limit = refusal.resource === undefined ? '' : ` (${refusal.resource})`;
    const hint = missing === '' ? '' : `; ${missing}`;
    super('ERR_NEXTHOP_REFUSED', `no attempt: ${refusal.refusal}${limit}${hint}; the local reply is ${status} ${flags}, ${details}`);
    this.refusal = refusal;
    this.reply = refusal.reply;
  }
}
class WouldWaitError extends NexthopError {
  constructor(wait) {
    super('ERR_NEXTHOP_WOULD_WAIT', `no attempt now: wait (${wait.reason})`);
    this.wait = wait;
  }
}
class UsageError extends NexthopError {}
for (const type of [NexthopError, ConfigError, RefusedError, WouldWaitError, UsageError]) {
  Object.defineProperty(type.prototype, 'name', { value: type.name, configurable: true, writable: true });
}

const CODES = {
  '-1': 'ERR_NEXTHOP_INVALID',
  '-2': 'ERR_NEXTHOP_ENDED',
  '-3': 'ERR_NEXTHOP_STATE',
  '-4': 'ERR_NEXTHOP_CLOSED',
  '-7': 'ERR_NEXTHOP_NOT_FOUND',
  '-8': 'ERR_NEXTHOP_LIMIT',
};
const SENTENCES = {
  '-1': 'an argument is invalid',
  '-2': 'this attempt or request has ended: choose again for another attempt',
  '-3': 'not legal in this state',
  '-4': 'the engine is closed',
  '-7': 'no such name',
  '-8': 'a fixed limit is reached',
};

/** The error of a negative status. */
function statusError(status, message) {
  const code = CODES[status];
  if (code === undefined) return new NexthopError('ERR_NEXTHOP_PANIC', message ?? 'internal error, contained');
  return new UsageError(code, message || SENTENCES[status]);
}

/** The error of a hot call that answered with this status. */
function hotError(status) {
  return statusError(status, native.lastError());
}

/** Wrong arguments, found before any call. */
function invalid(message) {
  return new UsageError('ERR_NEXTHOP_INVALID', message);
}

/** Runs a cold function; what it throws as a plain object becomes an error. */
function cold(call, ...args) {
  try {
    return call(...args);
  } catch (thrown) {
    if (thrown instanceof Error) throw thrown;
    throw thrown.status === -5 || thrown.status === -6 ? new ConfigError(thrown) : statusError(thrown.status, thrown.message);
  }
}

module.exports = {
  NexthopError, ConfigError, RefusedError, WouldWaitError, UsageError, statusError, hotError, invalid, cold,
};
