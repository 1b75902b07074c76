// A small gateway on node:http: routes, retries, limits and ejection as the Envoy document says.
//   CONFIG=examples/envoy.yaml PORT=8080 node examples/node/gateway.mjs
import http from 'node:http';
import { Engine } from '../../node/index.mjs'; // installed from npm: 'nexthop'

const mesh = Engine.fromFile(process.env.CONFIG ?? 'examples/envoy.yaml');
mesh.startChecks(); // performs the health checks of the documents, if they have any
mesh.startMaintenance(); // ejected hosts come back on time even without traffic
const agent = new http.Agent({ keepAlive: true });
const HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'te', 'trailer']);

function forwardable(headers, more = {}) {
  const kept = Object.entries({ ...headers, ...more }).filter(([name, value]) => !HOP.has(name) && value != null && !name.startsWith(':'));
  return Object.fromEntries(kept);
}

/** One try; resolves with the response when its headers are there. */
function upstream(attempt, req, hasBody) {
  return new Promise((resolve, reject) => {
    const out = http.request(attempt.url(), { agent, method: req.method, headers: forwardable(req.headers, attempt.headers), signal: attempt.signal }, resolve);
    out.on('error', reject);
    if (hasBody) req.pipe(out);
    else out.end();
  });
}

async function handle(req, res) {
  const gone = new AbortController();
  res.on('close', () => {
    if (!res.writableFinished) gone.abort(new Error('the client is gone'));
  });
  const hasBody = req.headers['content-length'] !== undefined || req.headers['transfer-encoding'] !== undefined;
  const call = mesh.request({
    method: req.method,
    authority: req.headers.host,
    path: req.url,
    headers: req.headers,
    source: `${req.socket.remoteAddress}:${req.socket.remotePort}`,
    body: hasBody ? 'once' : 'none', // an upload that was passed on cannot be sent again
    signal: gone.signal,
  });
  try {
    for await (const attempt of call) {
      const up = await attempt.send(() => upstream(attempt, req, hasBody));
      if (!up) continue;
      if (attempt.onHeaders(up.statusCode, up.headers).retry) {
        up.resume();
        continue;
      }
      res.writeHead(up.statusCode, forwardable(up.headers, call.responseHeaders()));
      attempt.body(up).pipe(res); // from here on the stream ends the attempt
      up.on('error', () => res.destroy());
      return;
    }
  } catch (error) {
    if (!call.reply) return void res.destroy(error);
  }
  // Refused, or failed for good: 503 UH, 503 UO, 504 UT ...
  const { status, headers, body } = call.reply;
  res.writeHead(status, headers).end(body);
}

const server = http.createServer((req, res) => void handle(req, res));
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
process.once('SIGTERM', () => {
  server.close(() => mesh.close());
  agent.destroy();
});
