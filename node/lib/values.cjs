'use strict';
// Small frozen values that decisions, verdicts and hosts turn into.

const native = require('./native.cjs');

const tables = native.tables();
// Nothing to do is forward, too: interim responses, cancelled attempts.
const ACTIONS = ['forward', 'forward', 'retry', 'discard'];
const FAILURES = new Map(tables.failures.map((name, number) => [name, number]).slice(1));
const NOTES = Object.fromEntries(tables.notes.map((name, number) => [name, number]).slice(1));
/** Results that a caller can report of a check; the engine's own judgement has no name here. */
const CHECK_RESULTS = Object.fromEntries(tables.checkResults.map((name, number) => [name, number]).slice(1));
const EMPTY = Object.freeze({});

const named = (table, number) => table[number] ?? `unknown(${number})`;

function flagsText(flags) {
  if (flags === 0) return '-';
  const names = [];
  for (let bit = 0; bit < 32; bit++) if ((flags >>> bit) & 1) names.push(named(tables.flags, bit));
  return names.join(',');
}

class Verdict {
  constructor(head, flags, status, after) {
    const action = (head >>> 8) & 0xff;
    this.action = ACTIONS[action] ?? 'forward';
    this.retry = action === 2;
    this.after = after >>> 0;
    this.reason = named(tables.reasons, (head >>> 16) & 0xff);
    this.status = status & 0xffff;
    this.flags = flagsText(flags);
    Object.freeze(this);
  }
}

class Wait {
  constructor(ms, reason) {
    this.kind = 'wait';
    this.ms = ms;
    this.reason = named(tables.waits, reason);
    Object.freeze(this);
  }
}

class LocalReply {
  constructor(status, flags, details, headers, body) {
    this.status = status;
    this.flags = flags;
    this.details = details;
    this.headers = Object.freeze(headers);
    this.body = body;
    Object.freeze(this);
  }
}

/** `[name, value, ...]` as an object. */
function pairs(list, from = 0) {
  const object = {};
  for (let at = from; at < list.length; at += 2) object[list[at]] = list[at + 1];
  return object;
}

/** The local reply of a request (two halves of its id), if it has one. */
function localReply(low, high) {
  let list;
  try {
    list = native.reply(low >>> 0, high >>> 0);
  } catch {
    return undefined; // the slot belongs to another request by now
  }
  if (list === null) return undefined;
  return new LocalReply(list[0], flagsText(list[1]), list[2], pairs(list, 4), list[3]);
}

class Refusal {
  constructor(binding) {
    const { words } = binding;
    const packed = words[24];
    this.kind = 'refusal';
    this.refusal = named(tables.refusals, (packed >>> 16) & 0xff);
    const resource = packed >>> 24;
    if (resource !== 0) this.resource = named(tables.resources, resource);
    const wait = milliseconds(words[22], words[23]);
    if (wait !== 0 && wait !== Infinity) this.retryAfter = wait;
    const status = packed & 0xffff;
    const { [25]: flags, [10]: low, [11]: high } = words;
    // One was picked before a limit refused.
    if (words[15] !== 0) this.host = binding.host(words[14], words[15]);
    this.reply = localReply(low, high) ?? new LocalReply(status, flagsText(flags), this.refusal, {}, '');
    Object.freeze(this);
  }
}

/** Two halves of nanoseconds as milliseconds; all ones is no limit. */
function milliseconds(low, high) {
  if (low === -1 && high === -1) return Infinity;
  return ((high >>> 0) * 4294967296 + (low >>> 0)) / 1e6;
}

class Host {
  constructor(list) {
    [, this.address, this.port, this.hostname, this.cluster, this.weight, this.zone, this.secure] = list;
    this.metadata = list[8] === '{}' ? EMPTY : deepFreeze(JSON.parse(list[8]));
    Object.freeze(this);
  }
}

function deepFreeze(value) {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}

module.exports = {
  tables, FAILURES, NOTES, CHECK_RESULTS, EMPTY, Verdict, Wait, Refusal, LocalReply, Host, localReply, pairs, milliseconds,
};
