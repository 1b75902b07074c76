// The example experiment against small backends: the same document, on free ports.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const example = (name) => fileURLToPath(new URL(`../../examples/${name}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'nexthop-experiment-'));
const servers = [];
after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(folder, { recursive: true });
});

test('the experiment counts what the backends count', async () => {
  let counts = {};
  const fails = {
    18101: () => false,
    18102: () => counts[18102] % 2 === 0,
    18111: (req) => Number(req.headers['x-fail']) >= 1,
    18112: (req) => Number(req.headers['x-fail']) >= 2,
    18113: () => false,
  };
  let yaml = readFileSync(example('envoy.yaml'), 'utf8');
  let lab;
  for (const [port, failing] of Object.entries(fails)) {
    const server = http.createServer((req, res) => {
      if (req.url === '/__lab/reset') counts = {};
      if (req.url.startsWith('/__lab/')) return void res.end(JSON.stringify(counts));
      counts[port] = (counts[port] ?? 0) + 1;
      res.writeHead(failing(req) ? 500 : 200).end('.');
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    servers.push(server);
    yaml = yaml.replaceAll(`port_value: ${port} `, `port_value: ${server.address().port} `);
    lab ??= `http://127.0.0.1:${server.address().port}`;
  }
  const config = join(folder, 'envoy.yaml');
  writeFileSync(config, yaml);
  const child = spawn(process.execPath, [example('node/experiment.mjs')], { env: { ...process.env, CONFIG: config, REQUESTS: '80', LAB: lab }, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  let progress = '';
  child.stdout.on('data', (part) => (text += part));
  child.stderr.on('data', (part) => (progress += part));
  const [code] = await once(child, 'close');
  assert.equal(code, 0, progress);
  const [a, b, c, chain] = text.trim().split('\n').map((line) => JSON.parse(line));
  for (const each of [a, b, c, chain]) {
    assert.equal(each.backend_requests, each.attempts);
    assert.equal(each.retries, each.attempts - each.requests);
    assert.ok(each.us_per_attempt > 0);
  }
  assert.deepEqual([a.experiment, b.experiment, c.experiment, chain.experiment], ['a', 'b', 'c', 'chain']);
  assert.equal(a.success, 60);
  assert.equal(a.attempts, 80);
  assert.equal(b.success, 80);
  assert.ok(c.success >= a.success);
  assert.equal(chain.success, 60);
  assert.deepEqual(Object.keys(chain.answered_by), ['1', '2', '3']);
  assert.equal(chain.attempts, 20 + 40 + 60);
  assert.match(progress, /node {2}chain {2}60\/60/);
});
