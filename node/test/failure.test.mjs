// Real clients against loopback servers that misbehave: which failure each error becomes.
import assert from 'node:assert/strict';
import http from 'node:http';
import http2 from 'node:http2';
import net from 'node:net';
import { after, before, test } from 'node:test';
import * as undici from 'undici';
import { createRequire } from 'node:module';
import { RETRY, cluster, engine, idle, route, thrown } from './help.mjs';

const { classify } = createRequire(import.meta.url)('../lib/failure.cjs');
const { tables } = createRequire(import.meta.url)('../lib/values.cjs');

const servers = {};
const sockets = new Set();
async function serve(name, handler) {
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    handler(socket);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers[name] = server;
  return `127.0.0.1:${server.address().port}`;
}
const at = {};
before(async () => {
  at.resets = await serve('resets', (socket) => socket.once('data', () => socket.resetAndDestroy()));
  at.closes = await serve('closes', (socket) => socket.once('data', () => socket.end()));
  at.garbage = await serve('garbage', (socket) => socket.once('data', () => socket.end('this is not http\r\n\r\n')));
  at.silent = await serve('silent', () => {});
  at.cut = await serve('cut', (socket) => socket.once('data', () => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc', () => socket.resetAndDestroy());
  }));
  at.ok = await serve('ok', (socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok')));
  at.refused = await serve('refused', () => {});
  await new Promise((resolve) => servers.refused.close(resolve));
});
after(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of Object.values(servers)) server.close();
});

const clients = {
  fetch: (url, signal) => fetch(url, { signal }).then((reply) => reply.text()),
  undici: (url, signal) => undici.request(url, { signal, headersTimeout: 300, bodyTimeout: 300 }).then((reply) => reply.body.text()),
  http: (url, signal) => new Promise((resolve, reject) => {
    const request = http.get(url, { signal, agent: false }, (reply) => {
      let text = '';
      reply.on('data', (part) => (text += part)).on('end', () => resolve(text)).on('error', reject);
    });
    request.on('error', reject);
  }),
};

const expected = {
  refused: { fetch: 'connect_failure', undici: 'connect_failure', http: 'connect_failure' },
  resets: { fetch: 'remote_reset', undici: 'remote_reset', http: 'remote_reset' },
  closes: { fetch: 'connection_termination', undici: 'connection_termination', http: 'remote_reset' },
  garbage: { fetch: 'protocol_error', undici: 'protocol_error', http: 'protocol_error' },
  cut: { fetch: ['connection_termination', 'remote_reset'], undici: ['connection_termination', 'remote_reset'], http: 'remote_reset' },
};

for (const [server, map] of Object.entries(expected)) {
  for (const [client, want] of Object.entries(map)) {
    test(`${client}: a server that ${server}`, async () => {
      const error = await clients[client](`http://${at[server]}/`).then(() => assert.fail('no error'), (each) => each);
      const found = tables.failures[classify(error)];
      assert.ok([want].flat().includes(found), `${found}: ${error.name} ${error.code} ${error.cause?.code} ${error.message}`);
    });
  }
}

test('undici: no headers in its own time', async () => {
  const error = await clients.undici(`http://${at.silent}/`).catch((each) => each);
  assert.equal(tables.failures[classify(error)], 'timeout');
});

for (const client of Object.keys(clients)) {
  test(`${client}: the attempt's signal times out`, async () => {
    const mesh = engine([cluster('web', { hosts: [at.silent] })], [route('web', { timeout: '0.150s' })], { clock: 'precise' });
    const call = mesh.request({ path: '/' });
    const attempt = await call.chooseHost();
    const error = await attempt.send(() => clients[client](attempt.url(), attempt.signal)).then(() => assert.fail('no error'), (each) => each);
    assert.match(error.name, /TimeoutError|AbortError/);
    assert.equal(attempt.verdict.action, 'forward');
    assert.match(attempt.verdict.flags, /UT/);
    assert.equal(call.reply.status, 504);
    assert.deepEqual(idle(mesh), []);
  });

  test(`${client}: failover from a dead host to a live one`, async () => {
    const mesh = engine([cluster('web', { hosts: [at.refused, at.ok] })], [route('web', RETRY)], { clock: 'precise' });
    for (let round = 0; round < 4; round++) {
      const text = await mesh.request({ path: '/' }).run((attempt) => clients[client](attempt.url(), attempt.signal));
      assert.equal(text, 'ok');
    }
    assert.deepEqual(idle(mesh), []);
  });

  test(`${client}: the client goes away`, async () => {
    const mesh = engine([cluster('web', { hosts: [at.silent] })], [route('web', RETRY)], { clock: 'precise' });
    const gone = new AbortController();
    const work = mesh.request({ path: '/', signal: gone.signal }).run((attempt) => {
      setImmediate(() => gone.abort(new Error('client gone')));
      return clients[client](attempt.url(), attempt.signal);
    });
    await assert.rejects(work, /client gone/);
    assert.deepEqual(idle(mesh), []);
  });
}

test('http2: a refused stream may go elsewhere', async () => {
  const server = http2.createServer();
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const session = http2.connect(`http://127.0.0.1:${server.address().port}`);
  const error = await new Promise((resolve) => session.request({ ':path': '/' }).on('error', resolve));
  session.destroy();
  server.close();
  assert.equal(tables.failures[classify(error)], 'refused_stream');
});

test('shapes that no server gives on demand', () => {
  const made = (fields, more = {}) => Object.assign(new Error('x'), fields, more);
  const cases = {
    connect_failure: [made({ code: 'EHOSTUNREACH' }), new AggregateError([made({ code: 'ECONNREFUSED' })]), made({}, { cause: new AggregateError([made({ code: 'ECONNREFUSED' })]) }), made({ code: 'ENOTFOUND' })],
    connect_timeout: [made({ code: 'UND_ERR_CONNECT_TIMEOUT' }), made({ code: 'ETIMEDOUT', syscall: 'connect' })],
    local_connect_failure: [made({ code: 'EMFILE' }), made({ code: 'EADDRNOTAVAIL' })],
    per_try_idle_timeout: [made({ code: 'UND_ERR_BODY_TIMEOUT' })],
    timeout: [new DOMException('x', 'TimeoutError'), made({ code: 'UND_ERR_HEADERS_TIMEOUT' })],
    local_reset: [new DOMException('x', 'AbortError')],
    protocol_error: [made({ code: 'HPE_INVALID_CONSTANT' })],
    '': [new RangeError('mine'), undefined, null, 5, 'text', made({ code: 5 }), made({ code: 'ENOENT' })],
  };
  for (const [name, errors] of Object.entries(cases)) for (const error of errors) assert.equal(tables.failures[classify(error)] , name, String(error?.code ?? error));
  const loop = made({});
  loop.cause = loop;
  assert.equal(classify(loop), 0);
  const mesh = engine(['web']);
  for (const name of tables.failures.slice(1)) assert.ok(mesh.chooseHost('web').fail(name, 'detail').action);
  assert.equal(thrown(() => mesh.chooseHost('web').fail('')).code, 'ERR_NEXTHOP_INVALID');
  const attempt = mesh.chooseHost('web');
  assert.equal(attempt.fail(new RangeError('mine')).retry, false);
});
