'use strict';
// Finds wanted headers in whatever a caller's HTTP library calls headers.

const { reject } = require('./check.cjs');
const text = require('./text.cjs');

const NONE = Object.freeze([]);

/** A numbered set of wanted names. */
class Wanted {
  constructor(number, names) {
    this.number = number;
    this.index = new Map(names.map((name, index) => [name, index]));
  }
}

function collect(found, index, name, value) {
  if (value === undefined) return;
  if (typeof value === 'string') found.push(index, value);
  else if (typeof value === 'number' && Number.isFinite(value)) found.push(index, String(value));
  else if (Array.isArray(value)) {
    for (const one of value) {
      if (typeof one !== 'string') throw reject(`header ${name}`, 'a string', one);
      found.push(index, one);
    }
  } else throw reject(`header ${name}`, 'a string or an array of strings', value);
}

function lookup(wanted, name) {
  if (typeof name !== 'string') throw reject('header name', 'a string', name);
  return wanted.index.get(name) ?? wanted.index.get(name.toLowerCase());
}

/** Checks headers that nobody reads now, so that wrong use shows at once. */
function check(headers) {
  if (typeof headers !== 'object' || headers === null) throw reject('headers', 'an object or pairs', headers);
  return headers;
}

/** `[index, value, ...]` of the wanted headers. Runs the caller's code (iterators, getters), so nothing is written yet. */
function find(headers, wanted) {
  check(headers);
  if (wanted.index.size === 0) return NONE;
  const found = [];
  if (typeof headers[Symbol.iterator] !== 'function') {
    for (const name of Object.keys(headers)) {
      const index = lookup(wanted, name);
      if (index !== undefined) collect(found, index, name, headers[name]);
    }
    return found;
  }
  for (const pair of headers) {
    if (!Array.isArray(pair) || pair.length !== 2) throw reject('headers', 'pairs of name and value', pair);
    const index = lookup(wanted, pair[0]);
    if (index !== undefined) collect(found, index, pair[0], pair[1]);
  }
  return found;
}

/** Every header by its name in lower case: lists of values. */
function all(headers) {
  check(headers);
  const found = {};
  const pairs = typeof headers[Symbol.iterator] === 'function' ? headers : Object.entries(headers);
  for (const pair of pairs) {
    if (!Array.isArray(pair) || pair.length !== 2) throw reject('headers', 'pairs of name and value', pair);
    const [name, value] = pair;
    if (typeof name !== 'string') throw reject('header name', 'a string', name);
    const list = [];
    collect(list, 0, name, value);
    const values = list.filter((_, at) => at % 2 === 1);
    if (values.length > 0) (found[name.toLowerCase()] ??= []).push(...values);
  }
  return found;
}

/** Writes them as a block at `at` of the text array; its length. */
function write(found, at) {
  const from = at;
  for (let each = 0; each < found.length; each += 2) at += text.entry(at, found[each], found[each + 1], 'headers');
  return at - from;
}

/** The same as bytes of their own, when they may be too many for the text array; else undefined. */
function large(found) {
  let most = 0;
  for (let each = 1; each < found.length; each += 2) most += 8 + 3 * found[each].length;
  return most <= text.LIMIT - text.DETAIL ? undefined : text.block(found);
}

module.exports = { Wanted, check, find, write, large, NONE, all };
