'use strict';
const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Engine, RefusedError } = require('nexthop');

test('the CommonJS entry chooses and reports', () => {
  const mesh = Engine.fromString('static_resources: {clusters: [{name: web, connect_timeout: 1s, load_assignment: {cluster_name: web, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}}]}');
  const attempt = mesh.chooseHost('web');
  assert.equal(attempt.host.address, '10.0.0.1:80');
  assert.equal(attempt.url('/a'), 'http://10.0.0.1/a');
  assert.equal(attempt.complete(200).action, 'forward');
  assert.throws(() => mesh.chooseHost('nobody'), RefusedError);
  mesh.close();
});
