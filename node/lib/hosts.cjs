'use strict';
// Hosts given by code, as the addon reads them.

const check = require('./check.cjs');

const OPS = { set: 0, add: 1, remove: 2, change: 3 };
const HEALTH = { UNKNOWN: 0, HEALTHY: 1, UNHEALTHY: 2, DRAINING: 3, TIMEOUT: 4, DEGRADED: 5 };
const FIELDS = { weight: 1, priority: 2, health: 4, region: 8, zone: 8, subZone: 8, metadata: 16, hostname: 32 };
const KEYS = new Set(['op', 'address', ...Object.keys(FIELDS)]);
const SET = 0;
const ENDPOINTS = 4;

function change(given, op) {
  if (typeof given === 'string') given = { address: given };
  check.knownKeys('host', given, KEYS);
  const { address, weight, priority, health, metadata } = given;
  const one = { op: op ?? (given.op === undefined ? OPS.add : check.oneOf('op', given.op, OPS)), address: check.text('address', address), fields: 0 };
  for (const name of Object.keys(FIELDS)) if (given[name] !== undefined) one.fields |= FIELDS[name];
  if (weight !== undefined) one.weight = check.integer('weight', weight, 1, check.U32);
  if (priority !== undefined) one.priority = check.integer('priority', priority, 0, 128);
  if (health !== undefined) one.health = check.oneOf('health', typeof health === 'string' ? health.toUpperCase() : health, HEALTH);
  if (given.hostname !== undefined) one.hostname = check.text('hostname', given.hostname);
  if (given.region !== undefined) one.region = check.text('region', given.region);
  if (given.zone !== undefined) one.zone = check.text('zone', given.zone);
  if (given.subZone !== undefined) one.sub_zone = check.text('subZone', given.subZone);
  if (metadata !== undefined) one.metadata = check.json('metadata', metadata);
  return one;
}

function changes(list, op) {
  if (typeof list === 'string' || typeof list?.[Symbol.iterator] !== 'function') throw check.reject('hosts', 'a list', list);
  return Array.from(list, (one) => change(one, op));
}

module.exports = { changes, SET, ENDPOINTS };
