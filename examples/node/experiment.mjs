// Four experiments with the unchanged Envoy document and the backends of examples/lab; one JSON line each.
import { performance } from 'node:perf_hooks';
import { Engine } from '../../node/index.mjs'; // installed from npm: 'nexthop'

const requests = Number(process.env.REQUESTS ?? 400);
const mesh = Engine.fromFile(process.env.CONFIG ?? 'examples/envoy.yaml');
const lab = process.env.LAB ?? 'http://127.0.0.1:18101';

async function one(path, headers, told) {
  const call = mesh.request({ method: 'GET', authority: 'lab.example', path, headers });
  const answer = { status: 0, attempts: 0, last: undefined };
  let mark = performance.now();
  try {
    for await (const attempt of call) {
      // Later attempts come after a back-off: their choice cannot be told from the wait.
      if (attempt.number === 1) told.choosing += performance.now() - mark;
      answer.attempts = attempt.number;
      answer.last = attempt;
      // Undefined: the connection failed and a retry follows.
      const reply = await attempt.send(() => fetch(attempt.url(), { headers, signal: attempt.signal }));
      if (!reply) continue;
      await reply.arrayBuffer(); // frees the connection for the next request
      mark = performance.now();
      attempt.complete(reply.status, reply.headers);
      told.reporting += performance.now() - mark;
      told.reports += 1;
      answer.status = reply.status;
    }
  } catch (error) {
    // Refused, or the last attempt failed for good: what a proxy would answer by itself.
    if (!call.reply) throw error;
    answer.status = call.reply.status;
  }
  return answer;
}

async function experiment(name, path, count) {
  await fetch(`${lab}/__lab/reset`, { method: 'POST' });
  const told = { choosing: 0, reporting: 0, reports: 0 };
  const answeredBy = {};
  let attempts = 0;
  let success = 0;
  for (let number = 0; number < count; number++) {
    const headers = name === 'chain' ? { 'x-fail': String(number % 3) } : {};
    const answer = await one(path, headers, told);
    attempts += answer.attempts;
    if (answer.status < 500) success += 1;
    // A final answer, good or bad; not where the retry was refused.
    if (answer.last?.verdict?.retry === false) {
      const { address } = answer.last.host;
      const hosts = (answeredBy[answer.attempts] ??= {});
      hosts[address] = (hosts[address] ?? 0) + 1;
    }
    if (number % 20 === 0 || number === count - 1) process.stderr.write(`\rnode  ${name}  ${number + 1}/${count}   `);
  }
  const counts = await (await fetch(`${lab}/__lab/counts`)).json();
  console.log(JSON.stringify({
    lang: 'node',
    experiment: name,
    requests: count,
    success,
    attempts,
    retries: attempts - count,
    backend_requests: Object.values(counts).reduce((sum, each) => sum + each, 0),
    us_per_attempt: +(1000 * (told.choosing / count + told.reporting / Math.max(1, told.reports))).toFixed(3),
    answered_by: answeredBy,
  }));
}

await experiment('a', '/a', requests);
await experiment('b', '/b', requests);
await experiment('c', '/c', requests);
await experiment('chain', '/chain', 60);
process.stderr.write('\n');
mesh.close();
