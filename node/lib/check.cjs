'use strict';
// What arguments must be. Wrong ones are found here, before any crossing, and say what was found.

const { inspect } = require('node:util');
const { invalid, UsageError } = require('./errors.cjs');

const U32 = 4294967295;
/** Of an attempt. */
const LAST_NUMBER = 2147483647;

function shown(value) {
  const text = inspect(value, { depth: 0, breakLength: Infinity, maxStringLength: 40 });
  return text.length > 80 ? `${text.slice(0, 80)}...` : text;
}

function reject(name, expected, value) {
  return invalid(`${name}: expected ${expected}, found ${shown(value)}`);
}

function integer(name, value, low, high) {
  if (!Number.isInteger(value) || value < low || value > high) throw reject(name, `an integer from ${low} to ${high}`, value);
  return value;
}

/** Milliseconds: finite and not negative, or no limit. */
function milliseconds(name, value) {
  if (typeof value !== 'number' || !(value >= 0)) throw reject(name, 'milliseconds, 0 or more', value);
  return value;
}

function string(name, value) {
  if (typeof value !== 'string') throw reject(name, 'a string', value);
  return value;
}

/** Text that UTF-8 can carry. */
function text(name, value) {
  if (!string(name, value).isWellFormed()) throw reject(name, 'text without lone surrogates', value);
  return value;
}

/** An object as JSON: what JSON would drop or change is refused. */
function json(name, value) {
  const faithful = (key, each) => {
    if (typeof each === 'number' && !Number.isFinite(each)) throw new TypeError(`${key} is ${each}`);
    return each;
  };
  let written;
  try {
    written = JSON.stringify(object(name, value), faithful);
  } catch (error) {
    throw error instanceof UsageError ? error : invalid(`${name} does not fit into JSON: ${error.message.split('\n')[0]}`);
  }
  if (typeof written !== 'string') throw reject(name, 'an object that fits into JSON', value);
  return written;
}

function oneOf(name, value, table) {
  const number = typeof value === 'string' && Object.hasOwn(table, value) ? table[value] : undefined;
  if (number === undefined) throw reject(name, `one of ${Object.keys(table).join(', ')}`, value);
  return number;
}

function u64(name, value) {
  if (typeof value !== 'bigint' || BigInt.asUintN(64, value) !== value) throw reject(name, 'a bigint from 0n to 2n ** 64n - 1n', value);
  return value;
}

function object(name, value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw reject(name, 'an object', value);
  return value;
}

function knownKeys(name, value, keys) {
  object(name, value);
  for (const key of Object.keys(value)) {
    if (!keys.has(key)) throw invalid(`${name}: unknown option ${shown(key)}; known are ${[...keys].join(', ')}`);
  }
  return value;
}

/** HTTP status of a report: 0 is success without a status. */
function status(value) {
  if (typeof value !== 'number' || (value | 0) !== value || (value !== 0 && (value < 100 || value > 999))) {
    throw reject('status', '0 or an integer from 100 to 999', value);
  }
  return value;
}

module.exports = { U32, LAST_NUMBER, shown, reject, integer, milliseconds, string, text, json, oneOf, u64, object, knownKeys, status };
