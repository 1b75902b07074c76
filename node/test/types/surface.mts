// Every public name has the type that the contract gives it; checked, never run.
import {
  Attempt, ConfigError, Engine, NexthopError, RefusedError, Request, UsageError, WouldWaitError,
  type Host, type LocalReply, type Refusal, type SharedEngine, type Verdict, type Wait,
} from 'nexthop';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function is<_T extends true>(): void {}

const engine: Engine = Engine.fromString(['a', 'b'], { seed: 1n, workers: 1, clock: 'manual', draws: [1n, 2n], lease: 1, events: 2, dialect: 'envoy' });
const shared: SharedEngine = engine.share();
Engine.fromString(new Uint8Array(), { shared });
Engine.fromShared(shared);
const answer = engine.tryChooseHost('a', { attempt: 1, tried: new Set(['1.2.3.4:5']), key: new Uint8Array(), metadata: { v: 1 } });
is<Same<typeof answer, Attempt | Wait | Refusal>>();
if (answer.kind === 'wait') is<Same<typeof answer.ms, number>>();
else if (answer.kind === 'refusal') is<Same<typeof answer.reply, LocalReply>>();
else is<Same<typeof answer.host, Host>>();

const request: Request = engine.request({ authority: 'a', timeout: Infinity, signal: AbortSignal.timeout(1), priority: 'high', body: 'streaming' });
const attempt: Attempt = await request.chooseHost();
const verdict: Verdict = attempt.complete(200, new Map([['a', 'b']]), { grpcStatus: 0, latency: 1.5 });
attempt.onHeaders(200, new Headers());
attempt.fail(new Error('x'), 'detail');
attempt.end({ trailers: { 'grpc-status': '0' } });
is<Same<typeof verdict.action, 'forward' | 'retry' | 'discard'>>();
const sent: number | undefined = await attempt.send(async () => 1);
const value: string = await request.run(async (each: Attempt) => each.host.address);
const web: ReadableStream = attempt.body(new ReadableStream());
{
  using scoped = engine.chooseHost('a');
  await using call = engine.request('a');
  void scoped;
  void call;
}
const epoch: number = engine.setHosts('a', ['1.2.3.4:5', { address: '1.2.3.4:6', weight: 2, health: 'DRAINING' }]);
engine.apply('a', [{ op: 'remove', address: '1.2.3.4:5' }]);
const due: number = engine.maintain();
using maintenance = engine.startMaintenance();
maintenance.stop();
using checks = engine.startChecks({ others: (check, signal) => void (signal.aborted || check.result('success')), tls: { ca: '' } });
checks.stop();
for (const check of engine.checks()) {
  const seen: [string, number, boolean, string | undefined] = [check.host.address, check.bodyLimit, check.data(check.payload), check.headers[0]?.[1]];
  check.answer(200, { 'x-envoy-degraded': '' }, 'ok', { grpcStatus: 0 });
  check.fail('connect_failure');
  void seen;
}
const soon: number = engine.checksDeadline();
using log = engine.logEvents('events.jsonl', { every: 500 });
engine.logEvents(process.stderr);
engine.logEvents(console);
engine.logEvents((line: string) => void line);
const lines: number = log.flush();
void lines;
const error: NexthopError = new Error() as UsageError | WouldWaitError | RefusedError | ConfigError;
const code: string = error.code;

// @ts-expect-error: engines are made by the two functions
new Engine();
// @ts-expect-error: the engine's own judgement is no result
engine.checks()[0]?.result('judge');
// @ts-expect-error: a status is a number
attempt.complete('200');
// @ts-expect-error: values are read-only
verdict.retry = true;
// @ts-expect-error: a seed is a bigint
Engine.fromString('a', { seed: 1 });
export { sent, value, web, epoch, due, code, soon };
