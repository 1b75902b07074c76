// A gateway in front of three model providers, with stand-ins for them: who answered, and why.
//   node examples/ai-gateway/ai_gateway.mjs
// Only node:http and nexthop. The gateway streams; it fails over until the first token is there, never after.
import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Engine } from '../../node/index.mjs'; // installed from npm: 'nexthop'

const CONFIG = fileURLToPath(new URL('models.yaml', import.meta.url));
const TOKENS = ['all', 'of', 'this', 'is', 'local'];
const RETRY_AFTER = 4;

/** Stand-ins: each gets the prompt and the response. What they write is chunked, so a cut body is told from a whole one. */
function providers() {
  const stream = { 'content-type': 'text/event-stream' };
  const generate = (res, most = TOKENS.length) => {
    res.writeHead(200, stream);
    for (const token of TOKENS.slice(0, most)) res.write(`data: ${JSON.stringify({ token })}\n\n`);
  };
  let until = 0;
  return {
    /** Two requests, then a pause that it names. */
    preferred(prompt, res, seen) {
      if (seen.length === 3) until = performance.now() + RETRY_AFTER * 1000;
      if (performance.now() < until) {
        res.writeHead(429, { 'retry-after': String(RETRY_AFTER) });
        res.end(JSON.stringify({ error: { code: 'rate_limit_exceeded' } }));
        return;
      }
      generate(res);
      res.end();
    },
    /** Headers at once; the first token of a long prompt takes its time. */
    async backup(prompt, res) {
      if (prompt.includes('long')) {
        res.writeHead(200, stream).flushHeaders();
        await sleep(2000, undefined, { ref: false });
        res.destroy();
        return;
      }
      generate(res);
      res.end();
    },
    /** Always there. A stream of it may break. */
    cheap(prompt, res) {
      if (!prompt.includes('break')) {
        generate(res);
        res.end();
        return;
      }
      generate(res, 2);
      setImmediate(() => res.destroy());
    },
  };
}

async function read(stream) {
  let text = '';
  for await (const part of stream) text += part;
  return text;
}

/** One try, until the first part of the body is there; the time-out of the try is for that. */
function send(attempt, body) {
  return new Promise((resolve, reject) => {
    const out = http.request(attempt.url(), { method: 'POST', agent: false, signal: attempt.signal }, (up) => {
      up.on('error', reject);
      up.once('readable', () => resolve(up));
    });
    out.on('error', reject);
    out.end(body);
  });
}

function code(body) {
  try {
    return String(JSON.parse(body).error.code);
  } catch {
    return '';
  }
}

async function handle(mesh, req, res) {
  const body = await read(req);
  const call = mesh.request({ method: 'POST', authority: req.headers.host, path: req.url, headers: req.headers, body: 'replayable' });
  const way = [];
  const whole = (status, text, headers = {}) => res.writeHead(status, { ...headers, 'x-way': way.join(' -> ') }).end(text);
  try {
    for await (const attempt of call) {
      const up = await attempt.send(async () => {
        try {
          return await send(attempt, body);
        } catch (error) {
          way.push(`${attempt.cluster}: ${attempt.signal.aborted ? 'no token in time' : error.code}`);
          throw error;
        }
      });
      if (!up) continue; // failed, and another provider follows
      if (up.statusCode < 400) {
        // The first token is there: from here on this is the answer, and the stream ends the attempt.
        attempt.onHeaders(up.statusCode, up.headers);
        way.push(`${attempt.cluster}: ${up.statusCode}`);
        res.writeHead(200, { 'content-type': 'text/event-stream', 'x-way': way.join(' -> ') });
        // The client has seen tokens: what breaks there breaks here, and nobody is asked again.
        up.on('error', () => res.destroy());
        attempt.body(up).pipe(res);
        return;
      }
      const text = await read(up);
      way.push(`${attempt.cluster}: ${up.statusCode} ${code(text)}`);
      if (attempt.complete(up.statusCode, up.headers, { detail: code(text) }).retry) continue;
      whole(up.statusCode, text);
      return;
    }
  } catch (error) {
    if (!call.reply) return void res.destroy(error);
    if (error.refusal) way.push(error.refusal.refusal);
  }
  const { status, headers, body: text } = call.reply;
  whole(status, text, headers);
}

/** Asks the gateway and counts what comes. */
async function client(port, path, prompt) {
  const begun = performance.now();
  const out = http.request({ host: '127.0.0.1', port, path, method: 'POST', agent: false });
  out.end(JSON.stringify({ prompt }));
  const [reply] = await once(out, 'response');
  const row = { prompt, status: reply.statusCode, way: reply.headers['x-way'], retryAfter: reply.headers['retry-after'], ms: performance.now() - begun, whole: true };
  let text = '';
  try {
    for await (const part of reply) text += part;
  } catch {
    row.whole = false;
  }
  return { ...row, tokens: text.split('data: ').length - 1 };
}

async function listen(handler) {
  const server = http.createServer((req, res) => void handler(req, res));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: server.address().port };
}

/** Seven prompts and one that wants the preferred provider or none. */
export async function demo() {
  const mesh = Engine.fromFile(CONFIG);
  const servers = [];
  const seen = {};
  for (const [name, answer] of Object.entries(providers())) {
    const asked = (seen[name] = []);
    const { server, port } = await listen(async (req, res) => {
      const { prompt } = JSON.parse(await read(req));
      asked.push(prompt);
      await answer(prompt, res, asked);
    });
    servers.push(server);
    mesh.setHosts(name, [`127.0.0.1:${port}`]);
  }
  const { server, port } = await listen((req, res) => handle(mesh, req, res));
  servers.push(server);
  const rows = [];
  const ask = async (prompt, path = '/v1/models') => rows.push(await client(port, path, prompt));
  for (const prompt of ['one', 'two', 'three, long']) await ask(prompt);
  const paused = performance.now();
  await ask('four');
  await ask('preferred or none', '/v1/preferred');
  await ask('five, long');
  await ask('six, long: break');
  await sleep(Math.max(paused + RETRY_AFTER * 1000 + 100 - performance.now(), 0));
  await ask('seven');
  const stats = mesh.stats();
  for (const one of servers) {
    one.close();
    one.closeAllConnections();
  }
  mesh.close();
  return { rows, seen, stats };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { rows, stats } = await demo();
  const line = (...cells) => console.log(cells.map((cell, at) => String(cell).padEnd([18, 13, 13, 9, 0][at])).join(''));
  line('prompt', 'answered by', 'first token', 'tokens', 'why');
  for (const row of rows) {
    const good = row.status === 200;
    const by = good ? row.way.split(' -> ').at(-1).split(':')[0] : `(${row.status})`;
    line(row.prompt, by, good ? `${Math.round(row.ms)} ms` : `in ${row.retryAfter} s`, `${row.tokens}${row.whole ? '' : ', cut'}`, row.way);
  }
  console.log();
  for (const [name, value] of Object.entries(stats)) {
    if (name.startsWith('cluster.') && name.includes('.nexthop.') && value) console.log(`${name.slice(8)}: ${value}`);
  }
}
