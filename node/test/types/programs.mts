// The three programs of the contract, as a user writes them; checked, never run.
import type { IncomingMessage, ServerResponse } from 'node:http';
import * as undici from 'undici';
import { Engine } from 'nexthop';

const mesh = Engine.fromFile('envoy.yaml'); // (a)
const one = mesh.chooseHost('providers', { attempt: 2 });
console.log(one.host.address, one.complete(200).retry);

let reply: Response | undefined; // (b)
for await (const attempt of mesh.request({ cluster: 'checkout', path: '/pay', headers: { 'x-user': '42' } })) {
  reply = await attempt.send(() => fetch(attempt.url(), { signal: attempt.signal }));
  if (reply) attempt.complete(reply.status, reply.headers);
}
console.log(reply?.status);

export async function gateway(req: IncomingMessage, res: ServerResponse): Promise<void> { // (c)
  await using call = mesh.request({ method: req.method, authority: req.headers.host, path: req.url, headers: req.headers, body: 'once' });
  try {
    for await (const attempt of call) {
      const up = await attempt.send(() => undici.request(attempt.url(), { method: req.method as undici.Dispatcher.HttpMethod, body: req, signal: attempt.signal }));
      if (!up) continue;
      if (attempt.onHeaders(up.statusCode, up.headers).retry) {
        await up.body.dump();
        continue;
      }
      res.writeHead(up.statusCode, up.headers as {});
      return void attempt.body(up.body).pipe(res);
    }
  } catch (error) {
    if (!call.reply) throw error;
  }
  res.writeHead(call.reply!.status, call.reply!.headers).end(call.reply!.body);
}
