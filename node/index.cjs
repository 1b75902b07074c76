'use strict';
// Envoy's upstream decisions: which host, may I, how long, and what now.

// Node 20 before these symbols, and runtimes without them.
for (const name of ['dispose', 'asyncDispose']) {
  if (Symbol[name] === undefined) Object.defineProperty(Symbol, name, { value: Symbol(`Symbol.${name}`) });
}

const { Engine } = require('./lib/engine.cjs');
const { Request } = require('./lib/request.cjs');
const { Attempt } = require('./lib/attempt.cjs');
const { NexthopError, ConfigError, RefusedError, WouldWaitError, UsageError } = require('./lib/errors.cjs');

module.exports = { Engine, Request, Attempt, NexthopError, ConfigError, RefusedError, WouldWaitError, UsageError };
