'use strict';
// Finds and loads the addon.

const { join } = require('node:path');

// An interface number of our own functions: the addon must be the one this package was built with.
const ABI = 1;

function load() {
  const path = process.env.NEXTHOP_NODE_ADDON || join(__dirname, '..', 'nexthop.node');
  let native;
  try {
    native = require(path);
  } catch (cause) {
    const built = `no usable addon for ${process.platform}-${process.arch} at ${path}`;
    throw new Error(`nexthop: ${built}; build it with node/build.sh or set NEXTHOP_NODE_ADDON`, { cause });
  }
  if (native.abi !== ABI) {
    throw new Error(`nexthop: the addon at ${path} speaks interface ${native.abi}, this package ${ABI}`);
  }
  return native;
}

module.exports = load();
