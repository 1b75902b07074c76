'use strict';
// The text array of this thread: 32 words of numbers, then the bytes that go along with a call. Calls are
// synchronous, so one array serves all engines of a thread.

const { invalid, UsageError } = require('./errors.cjs');

const NUMBERS = 128;
// 60 KiB of head text, and what a head block adds around it.
const LIMIT = 61440;
const MORE = 1024;
/** Most bytes of the free text that goes along with headers. */
const DETAIL = 256;

const shared = new SharedArrayBuffer(NUMBERS + LIMIT + MORE);
const bytes = new Uint8Array(shared);
const numbers = new Int32Array(shared, 0, NUMBERS / 4);
const view = new DataView(shared);
// Where `pollReady` writes: request (2 words), user data (2 words), ...
const ready = new Int32Array(shared);
const buffer = Buffer.from(shared);

// Below this many characters a loop is faster than a call into the runtime.
const SHORT = 64;

function tooLong(what) {
  return new UsageError('ERR_NEXTHOP_LIMIT', `${what}: all texts of a call together may have ${LIMIT} bytes`);
}

function wellFormed(text, what) {
  if (!text.isWellFormed()) throw invalid(`${what}: expected text without lone surrogates`);
}

/** Writes text as UTF-8 at `at` (counted after the numbers); the number of bytes. */
function utf8(at, text, what) {
  const { length } = text;
  if (at + length > LIMIT) throw tooLong(what);
  const from = NUMBERS + at;
  if (length <= SHORT) {
    let index = 0;
    for (; index < length; index++) {
      const code = text.charCodeAt(index);
      if (code > 127) break;
      bytes[from + index] = code;
    }
    if (index === length) return length;
  }
  wellFormed(text, what);
  if (at + Buffer.byteLength(text) > LIMIT) throw tooLong(what);
  return buffer.utf8Write(text, from);
}

/** Writes a header value or key: Latin-1 while every code point fits, else UTF-8; bytes as they are. */
function raw(at, value, what) {
  if (typeof value !== 'string') {
    if (at + value.length > LIMIT) throw tooLong(what);
    bytes.set(value, NUMBERS + at);
    return value.length;
  }
  const { length } = value;
  if (at + length > LIMIT) throw tooLong(what);
  const from = NUMBERS + at;
  for (let index = 0; index < length; index++) {
    const code = value.charCodeAt(index);
    if (code > 255) return utf8(at, value, what);
    bytes[from + index] = code;
  }
  return length;
}

/** One entry of a header block; the number of bytes. */
function entry(at, index, value, what) {
  if (at + 8 > LIMIT) throw tooLong(what);
  const length = raw(at + 8, value, what);
  view.setUint32(NUMBERS + at, index, true);
  view.setUint32(NUMBERS + at + 4, length, true);
  return 8 + length;
}

/** A header block of any length, in bytes of its own. */
function block(found) {
  const parts = [];
  for (let each = 0; each < found.length; each += 2) {
    const value = found[each + 1];
    wellFormed(value, 'headers');
    // Latin-1 while every code point fits, as above.
    const part = Buffer.from(value, /^[\0-\xff]*$/.test(value) ? 'latin1' : 'utf8');
    const head = Buffer.alloc(8);
    head.writeUInt32LE(found[each], 0);
    head.writeUInt32LE(part.length, 4);
    parts.push(head, part);
  }
  return Buffer.concat(parts);
}

module.exports = { LIMIT, DETAIL, block, bytes, numbers, ready, utf8, raw, entry };
