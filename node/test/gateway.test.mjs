// The example gateway, as a process of its own between real sockets.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { RETRY, cluster, limits, route } from './help.mjs';

const folder = mkdtempSync(join(tmpdir(), 'nexthop-gateway-'));
const seen = [];
let backend;
let gateway;
let base;
let broken = 0;

before(async () => {
  backend = http.createServer(async (req, res) => {
    seen.push(req.headers);
    let body = '';
    for await (const part of req) body += part;
    if (req.url === '/flaky' && broken++ % 2 === 0) return void res.writeHead(503).end('no');
    if (req.url === '/cut') {
      res.writeHead(200, { 'content-length': '100' });
      res.write('half');
      return void setImmediate(() => res.socket.resetAndDestroy());
    }
    if (req.url === '/slow') return;
    res.writeHead(200, { 'x-from': 'backend' }).end(`${req.method} ${req.url} ${body}`);
  });
  await new Promise((resolve) => backend.listen(0, '127.0.0.1', resolve));
  const live = `127.0.0.1:${backend.address().port}`;
  const clusters = [cluster('web', { hosts: [live] }), cluster('none', { hosts: [] }), cluster('tight', { hosts: [live], ...limits({ max_requests: 0 }) })];
  const routes = [
    route('none', {}, { prefix: '/none' }), route('tight', {}, { prefix: '/tight' }),
    route('web', { timeout: '0.200s' }, { prefix: '/slow' }), route('web', RETRY),
  ];
  const config = join(folder, 'envoy.json');
  const manager = {
    name: 'envoy.filters.network.http_connection_manager',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
      stat_prefix: 'ingress',
      route_config: { name: 'main', virtual_hosts: [{ name: 'all', domains: ['*'], include_request_attempt_count: true, routes }] },
    },
  };
  const listener = { name: 'in', address: { socket_address: { address: '127.0.0.1', port_value: 1 } }, filter_chains: [{ filters: [manager] }] };
  writeFileSync(config, JSON.stringify({ static_resources: { listeners: [listener], clusters } }));
  gateway = spawn(process.execPath, [fileURLToPath(new URL('../../examples/node/gateway.mjs', import.meta.url))], { env: { ...process.env, CONFIG: config, PORT: '0' }, stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(gateway.stdout, 'data');
  base = `http://127.0.0.1:${/(\d+)/.exec(String(line))[1]}`;
});

after(async () => {
  gateway.kill('SIGTERM');
  const [code] = await once(gateway, 'exit');
  backend.closeAllConnections();
  backend.close();
  rmSync(folder, { recursive: true });
  assert.equal(code, 0);
});

test('passes requests and bodies through', async () => {
  const reply = await fetch(`${base}/a?b=c`, { method: 'POST', body: 'hello' });
  assert.equal(reply.status, 200);
  assert.equal(reply.headers.get('x-from'), 'backend');
  assert.equal(await reply.text(), 'POST /a?b=c hello');
  assert.equal(seen.at(-1)['x-envoy-attempt-count'], '1');
});

test('retries what the document says', async () => {
  const reply = await fetch(`${base}/flaky`);
  assert.equal(reply.status, 200);
  await reply.text();
  assert.equal(seen.at(-1)['x-envoy-attempt-count'], '2');
});

test('answers by itself when there is no host, no permit, no time', async () => {
  for (const [path, status, body] of [['/none', 503, /no healthy upstream/], ['/tight', 503, /overflow/], ['/slow', 504, /timeout/]]) {
    const reply = await fetch(`${base}${path}`);
    assert.equal(reply.status, status, path);
    assert.match(await reply.text(), body);
  }
});

test('a body that breaks breaks the answer, and the gateway lives on', async () => {
  await assert.rejects(fetch(`${base}/cut`).then((reply) => reply.text()));
  assert.equal((await fetch(`${base}/a`)).status, 200);
});
