// Active checks: by hand on a manual clock, and performed by the ready-made loop.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createServer as createHttp2 } from 'node:http2';
import { createServer as createTcp } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import { Engine } from 'nexthop';
import { cluster, settle, stat, thrown } from './help.mjs';

const HTTP = { http_health_check: { path: '/health' } };

function made(probe, { hosts = 1, ...options } = {}) {
  const health_checks = [{ timeout: '5s', interval: '0.02s', no_traffic_interval: '0.02s', unhealthy_threshold: 2, healthy_threshold: 1, ...probe }];
  const http2 = probe.grpc_health_check === undefined ? {} : { http2_protocol_options: {} };
  const web = cluster('web', { hosts, health_checks, common_lb_config: { healthy_panic_threshold: { value: 0 } }, ...http2 });
  return Engine.fromString(JSON.stringify({ clusters: [web] }), options);
}

const manual = (probe, more) => made(probe, { clock: 'manual', workers: 1, ...more });
const flags = (mesh) => mesh.hosts('web').map((host) => host.health_flags);

test('nobody is checked without a question', () => {
  const mesh = manual(HTTP);
  mesh.advance(3_600_000);
  assert.deepEqual([flags(mesh), mesh.checksDeadline()], [['healthy'], Infinity]);
});

test('answers are judged and results taken', () => {
  const mesh = manual(HTTP, { hosts: 2 });
  const [first, second] = mesh.checks();
  assert.deepEqual([mesh.checks(), mesh.checksDeadline()], [[], 5000]);
  assert.deepEqual(
    [first.protocol, first.method, first.path, first.authority, first.cluster, first.name, first.extension, first.payload.length],
    ['http', 'GET', '/health', 'web', 'web', '', '', 0],
  );
  assert.deepEqual([first.timeout, first.bodyLimit, first.http2, first.secure, first.mayReuse], [5000, 0, false, false, true]);
  assert.deepEqual(first.headers, [['user-agent', 'Envoy/HC']]);
  assert.equal(first.address, first.host.address);
  first.answer(503, { 'X-Envoy-Immediate-Health-Check-Fail': '1' });
  second.result('degraded');
  assert.deepEqual(flags(mesh), ['/failed_active_hc/excluded_via_immediate_hc_fail', '/degraded_active_hc']);
  assert.ok(mesh.events().some((event) => event.health_check_failure_event !== undefined));
  assert.equal(stat(mesh, 'health_check.success'), 1);
});

test('bytes and gRPC', () => {
  const bytes = manual({ tcp_health_check: { send: { text: '50' }, receive: [{ text: '6f' }, { text: '6b' }] } });
  const [check] = bytes.checks();
  assert.deepEqual([check.protocol, Buffer.from(check.payload).toString(), check.bodyLimit], ['tcp', 'P', Infinity]);
  assert.deepEqual(['', 'xo', Buffer.from('xo k')].map((part) => check.data(part)), [false, false, true]);
  assert.deepEqual(flags(bytes), ['healthy']);
  const grpc = manual({ grpc_health_check: { service_name: 's' } });
  const [call] = grpc.checks();
  assert.deepEqual([call.protocol, call.http2, [...call.payload]], ['grpc', true, [0, 0, 0, 0, 3, 10, 1, 115]]);
  call.answer(200, [['grpc-status', '0']], Uint8Array.of(0, 0, 0, 0, 2, 8, 2));
  assert.deepEqual(flags(grpc), ['/failed_active_hc']);
  grpc.advance(20);
  grpc.checks()[0].answer(200, [], Uint8Array.of(0, 0, 0, 0, 2, 8, 1), { grpcStatus: 0 });
  assert.deepEqual(flags(grpc), ['healthy']);
});

test('time and wrong use', () => {
  const mesh = manual(HTTP);
  const [late] = mesh.checks();
  mesh.advance(5000);
  assert.deepEqual(flags(mesh), ['/failed_active_hc/active_hc_timeout']);
  for (const [call, code] of [
    [() => late.result('success'), 'ENDED'],
    [() => late.answer(200), 'ENDED'],
    [() => late.fail(Object.assign(new Error('no'), { code: 'ECONNREFUSED' })), 'ENDED'],
    [() => late.result('judge'), 'INVALID'],
    [() => late.fail('sneezed'), 'INVALID'],
    [() => late.fail(7), 'INVALID'],
    [() => late.answer(7), 'INVALID'],
    [() => late.data(7), 'INVALID'],
    [() => late.answer(200, {}, '', { grpc: 1 }), 'INVALID'],
    [() => mesh.startChecks({ other: 1 }), 'INVALID'],
    [() => mesh.startChecks({ others: 1 }), 'INVALID'],
  ]) assert.equal(thrown(call)?.code, `ERR_NEXTHOP_${code}`, String(call));
  assert.match(thrown(() => late.result('success')).message, /its time has run out/);
  mesh.advance(20);
  const [check] = mesh.checks();
  assert.match(thrown(() => check.answer(0)).message, /cannot be judged/);
  check.result('passive');
  check.fail(new Error('anything'));
  assert.equal(stat(mesh, 'health_check.network_failure'), 2);
  mesh.close();
  for (const call of [() => mesh.checks(), () => mesh.checksDeadline(), () => mesh.startChecks(), () => check.result('success')]) {
    assert.equal(thrown(call)?.code, 'ERR_NEXTHOP_CLOSED');
  }
});

test('hosts leave while checks are out', () => {
  const mesh = manual(HTTP, { hosts: 2 });
  const [first, second] = mesh.checks();
  mesh.setHosts('web', [second.address]);
  assert.equal(thrown(() => first.result('success'))?.code, 'ERR_NEXTHOP_ENDED');
  mesh.updateString('{"clusters": []}');
  assert.equal(thrown(() => second.result('success'))?.code, 'ERR_NEXTHOP_ENDED');
  assert.deepEqual(mesh.checks(), []);
});

class Queue {
  #list = [];
  #wake = () => {};
  push(item) {
    this.#list.push(item);
    this.#wake();
  }
  async next() {
    while (this.#list.length === 0) await new Promise((resolve) => (this.#wake = resolve));
    return this.#list.shift();
  }
}

/** Tells what was asked, and answers in order, each when it may; the last answer for ever. */
class Script {
  #answers;
  seen = new Queue();
  may = new Queue();
  constructor(...answers) {
    this.#answers = answers;
  }
  async next(asked) {
    this.seen.push(asked);
    await this.may.next();
    return this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0];
  }
  /** Lets the check that is out be answered; the flags after it. The next one begins when its result is known. */
  async judged(mesh) {
    this.may.push();
    await this.seen.next();
    return flags(mesh);
  }
}

async function listening(server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `127.0.0.1:${server.address().port}`;
}

async function performed(server, probe, script, line) {
  const mesh = made(probe, { hosts: [await listening(server)], clock: 'precise' });
  const checks = mesh.startChecks();
  assert.equal(thrown(() => mesh.startChecks())?.code, 'ERR_NEXTHOP_STATE');
  assert.equal(await script.seen.next(), line);
  assert.deepEqual([await script.judged(mesh), await script.judged(mesh)], [['/failed_active_hc'], ['healthy']]);
  const failures = stat(mesh, 'health_check.network_failure');
  checks.stop();
  await settle();
  assert.equal(stat(mesh, 'health_check.network_failure'), failures, 'what was given up says nothing about the host');
  mesh.close();
  server.close();
  server.closeAllConnections?.();
}

for (const [probe, script, line] of [
  [HTTP, new Script([503, ''], [200, '']), 'GET /health web Envoy/HC '],
  [
    { http_health_check: { path: '/h', method: 'PUT', send: { text: '6869' }, receive: [{ text: '6f6b' }], response_buffer_size: 4, host: 'other.example' } },
    new Script([200, '12345ok'], [200, '1ok456']),
    'PUT /h other.example Envoy/HC hi',
  ],
]) {
  test(`the loop performs HTTP: ${line}`, async () => {
    const server = createServer((request, response) => {
      let sent = '';
      request.on('data', (chunk) => (sent += chunk));
      request.on('end', async () => {
        const [status, body] = await script.next(`${request.method} ${request.url} ${request.headers.host} ${request.headers['user-agent']} ${sent}`);
        response.writeHead(status).end(body);
      });
    });
    await performed(server, probe, script, line);
  });
}

for (const [probe, script, line] of [
  [{ http_health_check: { path: '/h', codec_client_type: 'HTTP2' } }, new Script([500, []], [200, []]), 'GET /h web Envoy/HC '],
  [{ grpc_health_check: { service_name: 's' } }, new Script([200, [0, 0, 0, 0, 2, 8, 2]], [200, [0, 0, 0, 0, 2, 8, 1]]), 'POST /grpc.health.v1.Health/Check web Envoy/HC 0,0,0,0,3,10,1,115'],
]) {
  test(`the loop performs HTTP/2: ${line}`, async () => {
    const server = createHttp2();
    const sessions = new Set();
    server.on('session', (session) => sessions.add(session));
    server.on('stream', (stream, headers) => {
      const sent = [];
      stream.on('data', (chunk) => sent.push(...chunk));
      stream.on('end', async () => {
        const [status, body] = await script.next(`${headers[':method']} ${headers[':path']} ${headers[':authority']} ${headers['user-agent']} ${sent}`);
        if (stream.destroyed) return;
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
        stream.respond({ ':status': status }, { waitForTrailers: true });
        stream.end(Buffer.from(body));
      });
    });
    await performed(server, probe, script, line);
    assert.equal(sessions.size, 1, 'one connection carries all checks');
    for (const session of sessions) session.destroy();
  });
}

test('the loop performs TCP until the engine is closed', async () => {
  const script = new Script([], ['xPO', 'NGx']);
  const server = createTcp((socket) => {
    socket.on('error', () => {});
    socket.once('data', async (asked) => {
      for (const part of await script.next(String(asked))) socket.write(part);
      socket.end();
    });
  });
  await performed(server, { tcp_health_check: { send: { text: '50494e47' }, receive: [{ text: '504f4e47' }] } }, script, 'PING');
});

test('what the loop cannot do is handed on', async () => {
  const custom = { custom_health_check: { name: 'envoy.health_checkers.redis' } };
  const mesh = made(custom, { hosts: ['127.0.0.1:1'] });
  const { promise, resolve } = Promise.withResolvers?.() ?? (() => {
    let resolve;
    const promise = new Promise((settled) => (resolve = settled));
    return { promise, resolve };
  })();
  mesh.startChecks({
    others(check, signal) {
      check.result('failed');
      resolve([check.extension, signal.aborted]);
    },
  });
  assert.deepEqual(await promise, ['envoy.health_checkers.redis', false]);
  assert.deepEqual(flags(mesh), ['/failed_active_hc']);
  mesh.close();

  const alone = made(custom, { hosts: ['127.0.0.1:1'] });
  const warned = once(process, 'warning');
  alone.startChecks();
  const [warning] = await warned;
  assert.deepEqual([warning.code, flags(alone)], ['NEXTHOP_CHECK_NOT_PERFORMED', ['/failed_active_hc']]);
  alone.close();
  await settle();
});
