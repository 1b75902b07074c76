#!/usr/bin/env node
'use strict';
// The program `nexthop`.

const native = require('../lib/native.cjs');

process.exitCode = native.program(process.argv.slice(2));
