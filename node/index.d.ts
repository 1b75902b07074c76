/// <reference types="node" />

/** Anything HTTP libraries call headers: Node's `IncomingHttpHeaders`, fetch's `Headers`, `Map`, pairs. */
export type Headers = Record<string, string | string[] | undefined> | Iterable<[string, string]>;

export type Dialect = 'envoy' | 'nexthop' | 'istio' | 'kubernetes' | 'nacos' | 'consul' | 'eureka' | 'spring';

/** A document with a name: for messages, and the cluster of an instance list. */
export interface NamedText {
  text: string | Uint8Array;
  name?: string;
  dialect?: Dialect;
}
/** A file with a name. */
export interface NamedFile {
  path: string;
  name?: string;
  dialect?: Dialect;
}
export type Text = string | Uint8Array | NamedText;
export type File = string | NamedFile;

export interface UpdateOptions {
  dialect?: Dialect;
  /** Runtime keys, or their JSON text; without documents they are replaced alone. */
  runtime?: object | string;
}

export interface EngineOptions {
  /** What the documents are written in; told by their keys when absent. */
  dialect?: Dialect;
  /** Runtime keys, or their JSON text; they win over those of the documents. */
  runtime?: object | string;
  /** Same seed, `workers: 1`, same calls: same decisions. */
  seed?: bigint;
  /** 0 (default) = random words and scheduler cursors per thread; N = N of them for all threads. */
  workers?: number;
  /** `coarse` (default) ticks every 1 to 4 ms; `manual` moves by `advance` only and begins at 1 s. */
  clock?: 'coarse' | 'precise' | 'manual';
  /** Milliseconds after a request's deadline until an unreported attempt counts as lost; 300,000 by default. */
  lease?: number;
  /** Events kept until they are read; 1,024 by default. */
  events?: number;
  /** Random words in place of worker 1's, then zeros: for tests. */
  draws?: bigint[];
  /** Joins the engine another thread shares; the documents are not read then. Same as `Engine.fromShared`. */
  shared?: SharedEngine;
}

/** What a request is made from. Neither `cluster` nor `route`: the route tables are matched. */
export interface Head {
  cluster?: string;
  /** `NAME` or `VIRTUAL_HOST/NAME`. */
  route?: string;
  method?: string;
  scheme?: string;
  authority?: string;
  /** With its query. */
  path?: string;
  /** Only those that a route or cluster reads cross into the engine, when the request first chooses. */
  headers?: Headers;
  /** Downstream `ip` or `ip:port`. */
  source?: string;
  /** Local `ip:port`. */
  local?: string;
  /** Replaces every hash policy. */
  key?: string | Uint8Array;
  /** `envoy.lb` criteria; types are kept (1 is not "1"). */
  metadata?: object;
  /** Values of other namespaces. */
  filterMetadata?: object;
  /** `ip:port` to prefer for the first attempt; `!` before it: that host or none. */
  overrideHost?: string;
  /** The caller's own limit in milliseconds; 0 or Infinity = none. */
  timeout?: number;
  priority?: 'default' | 'high';
  body?: 'none' | 'replayable' | 'once' | 'streaming';
  /** Whether x-envoy-* request headers count. */
  internal?: boolean;
  /** Keep the whole reason trail for `attempt.explain()`. */
  explain?: boolean;
  /** The client: when it aborts, waits end and attempts are cancelled. */
  signal?: AbortSignal;
}

/** A stateless attempt, for foreign retry loops. */
export interface PickOptions extends Omit<Head, 'cluster'> {
  /** Attempt number from 1 (the default) to 2147483647; a composite cluster takes the sub-cluster of that number. */
  attempt?: number;
  /** Addresses tried before. */
  tried?: Iterable<string>;
}

/** A host given by code. */
export interface HostSpec {
  /** `ip:port`, `[v6]:port` or `name:port`. */
  address: string;
  weight?: number;
  priority?: number;
  health?: 'UNKNOWN' | 'HEALTHY' | 'UNHEALTHY' | 'DRAINING' | 'TIMEOUT' | 'DEGRADED';
  hostname?: string;
  region?: string;
  zone?: string;
  subZone?: string;
  /** `envoy.lb` values. */
  metadata?: object;
}

export interface HostChange extends HostSpec {
  /** `add` (default) adds or replaces; `change` touches the given fields only; `set` entries replace the whole list. */
  op?: 'set' | 'add' | 'remove' | 'change';
}

/** What a load has understood; shape in the project's `docs/schemas`. */
export type LoadReport = Readonly<Record<string, unknown>>;

/** One number of an engine. */
export interface Metric {
  /** Such as `cluster.upstream_rq`. */
  readonly name: string;
  /** A counter only grows. */
  readonly type: 'counter' | 'gauge';
  readonly value: number;
  /** Such as `envoy.cluster_name`. */
  readonly attributes: Readonly<Record<string, string>>;
}

export declare class Engine implements Disposable {
  private constructor();
  /** @throws ConfigError */
  static fromFile(path: File | File[], options?: EngineOptions): Engine;
  /** @throws ConfigError */
  static fromString(text: Text | Text[], options?: EngineOptions): Engine;
  /** Joins the engine of another thread of this process. */
  static fromShared(shared: SharedEngine): Engine;

  /** One downstream request; a string names its cluster. Nothing is decided before the first choice. */
  request(head: Head | string): Request;
  /** Stateless; throws RefusedError, WouldWaitError. */
  chooseHost(cluster: string, options?: PickOptions): Attempt;
  /** Stateless; answers with values instead of throwing. */
  tryChooseHost(cluster: string, options?: PickOptions): Attempt | Wait | Refusal;

  /** Replaces all documents, whole or not at all. */
  updateFile(path: File | File[] | undefined, options?: UpdateOptions): LoadReport;
  updateString(text: Text | Text[] | undefined, options?: UpdateOptions): LoadReport;
  /** Re-reads changed files; whether new content was swapped in. Bad content is an event, not an error. */
  reload(): boolean;
  /** Replaces a cluster's hosts; the new epoch. */
  setHosts(cluster: string, hosts: Iterable<string | HostSpec>): number;
  /** Changes a cluster's hosts, whole or not at all; the new epoch. */
  apply(cluster: string, changes: Iterable<string | HostChange>): number;
  /** Endpoints as Envoy sends them: a `ClusterLoadAssignment` in JSON or YAML; the new epoch. */
  applyEndpoints(cluster: string, endpoints: string): number;

  /** Hosts with health and load, of one cluster or of all; ERR_NEXTHOP_NOT_FOUND for a name that nothing has. */
  hosts(cluster?: string): unknown;
  /** Numbers under Envoy's names. */
  stats(): Record<string, unknown>;
  /** The same with kinds and attributes, as OpenTelemetry and others want them. */
  metrics(): Metric[];
  prometheus(): string;
  /** What of the documents does nothing here; with `whole` every field: used, absent and whose default acts. */
  loadReport(options?: { whole?: boolean }): LoadReport;
  /** Every number in force for a cluster (`name`) or route (`route:name`), and where it came from. */
  effective(name: string): Record<string, unknown>;
  /** What would be decided for a request, and why; decides and counts nothing. */
  explain(head: (PickOptions & { cluster?: string }) | string): Record<string, unknown>;
  /** What deserves a second look in the documents. */
  lint(): { findings: Array<Record<string, unknown>> };
  /** Drains the events, oldest first. */
  events(): Array<Record<string, unknown>>;
  /**
   * Runs due maintenance every so often and hands each event to `sink`, as a line of JSON: a path (appended to, with
   * synchronous writes), a stream, a logger with `info`, or a function. An unref'ed timer: it keeps no process alive. A line
   * whose sink throws is kept for the next round. Closing the engine closes it. Throws `ERR_NEXTHOP_INVALID`, `_CLOSED`.
   */
  logEvents(sink: EventSink, options?: EventLogOptions): EventLog;
  readonly info: { readonly epoch: number; readonly liveRequests: number; readonly seed: bigint };

  /**
   * The active checks that are due, each handed out once. The first call begins active checking: before it hosts count as
   * if no cluster had `health_checks`; those that serve at that moment go on until their first result.
   */
  checks(): Check[];
  /** Milliseconds until checks are due, Infinity when nothing is checked; updates may bring some at once. */
  checksDeadline(): number;
  /** Performs active checks in this thread's event loop, on unref'ed timers, until it is stopped or the engine closed. */
  startChecks(options?: CheckOptions): Disposable & { stop(): void };
  /** Runs due maintenance; milliseconds until it is due again. Traffic does this by itself. */
  maintain(): number;
  /** Maintenance on an unref'ed timer, for idle processes. */
  startMaintenance(): Disposable & { stop(): void };
  /** Moves a manual clock by milliseconds and wakes what is due. */
  advance(ms: number): void;
  /** The engine's clock in milliseconds. */
  now(): number;

  /** For `workerData`: one engine in several worker threads. */
  share(): SharedEngine;
  /** Ends the engine for every thread; in a thread that joined it, ends what this thread has open and leaves it. */
  close(): void;
  [Symbol.dispose](): void;
}

export type EventSink = string | URL | NodeJS.WritableStream | { info(line: string): void } | ((line: string) => void);

export interface EventLogOptions {
  /** Milliseconds between two rounds, above 0; 1,000 by default. */
  every?: number;
}

/** A log of an engine's events. Two logs of one engine share them: each line goes to one of them. */
export interface EventLog extends Disposable {
  /** Why the sink failed in the newest round. */
  readonly error?: Error;
  /** Writes now what there is; the number of lines. Throws what the sink throws. */
  flush(): number;
  /** Ends the timer and writes what is left; what the sink throws then is in `error`. */
  close(): void;
}

/** One downstream request: retries, back-off and queueing are all `chooseHost` asked again. */
export declare class Request implements AsyncIterable<Attempt>, AsyncDisposable {
  private constructor();
  readonly cluster: string;
  readonly route?: string;
  /** Milliseconds of the global limit, known from the first choice on. */
  readonly timeout: number;
  /** What to answer to the client when there was a refusal, or when the last attempt failed for good. */
  readonly reply?: LocalReply;
  /** The next attempt; waits for the queue and for back-off. Rejects with RefusedError or the signal's reason. */
  chooseHost(): Promise<Attempt>;
  /** Never waits. */
  tryChooseHost(): Attempt | Wait | Refusal;
  /** Retries, hedges, aborts losers. A function that returns without reporting has succeeded. */
  run<T>(send: (attempt: Attempt) => Promise<T>): Promise<T>;
  /** Headers to add to the answer for the client. */
  responseHeaders(): Record<string, string>;
  /** A streaming upload is complete: its time-outs begin, before the first choice with it. */
  bodyComplete(): void;
  /** A fact between choices and reports; nothing happens when the request has ended. */
  note(what: Note): void;
  /** The client is gone; attempts whose body was handed over go on. */
  close(): void;
  [Symbol.asyncIterator](): AsyncIterator<Attempt>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What an answer says besides its status and headers. */
export interface OutcomeDetails {
  readonly grpcStatus?: number;
  /** Milliseconds from sent to headers; measured when absent. */
  readonly latency?: number;
  /** Up to 256 bytes of text; the body's error code, for the failure classes of a retry policy. */
  readonly detail?: string;
}

/** One upstream try. */
export declare class Attempt implements Disposable {
  private constructor();
  readonly kind: 'attempt';
  /** From 1 on. */
  readonly number: number;
  readonly host: Host;
  readonly cluster: string;
  /** The answer to the last report. */
  readonly verdict?: Verdict;
  /** Headers to add on the way up; null = remove. */
  readonly headers: Readonly<Record<string, string | null>>;
  /** Milliseconds to response headers. */
  readonly timeout: number;
  /** Milliseconds to the end of the body. */
  readonly remaining: number;
  /** Milliseconds that the response may be silent. */
  readonly idleTimeout: number;
  /** Milliseconds until a hedged request should ask for another attempt. */
  readonly hedgeAfter: number;
  /** Made on first use: aborts at the time-out, when the client is gone, when another attempt has won. */
  readonly signal: AbortSignal;
  /** `http://` or `https://` to this host; the request's path, or the route's rewrite of it, by default. */
  url(path?: string): string;
  /** No outlier report, no retry; harmless once ended. */
  cancel(): void;
  explain(): object;
  [Symbol.dispose](): void;
  /** Runs the action and reports what it throws; undefined: failed, a retry follows; rejects when final. */
  send<T>(action: () => Promise<T>): Promise<T | undefined>;
  /** The whole report; status 0 is success without a status. */
  complete(status: number, headers?: Headers, more?: OutcomeDetails): Verdict;
  onHeaders(status: number, headers?: Headers, more?: OutcomeDetails): Verdict;
  end(more?: { trailers?: Headers; grpcStatus?: number }): void;
  /** A failure by name, or an error of fetch, undici, node:http, node:http2. */
  fail(failure: string | Error, detail?: string): Verdict;
  /** A fact before the report; nothing happens when the attempt has ended. */
  note(what: Note): void;
  /** The stream ends the attempt: its end, its error, its early close. Handling its errors stays the caller's (`pipeline`). */
  body<S extends NodeJS.ReadableStream | ReadableStream>(stream: S): S;
}

/**
 * What can be noted. `connected`: a connection that a queued request of a cluster with strict connections asked for is
 * there. `sent`: the request headers are sent. `body_complete`: a streaming upload is over. `retry_abandoned`: the upload outgrew
 * what the caller keeps, no retry any more. `interim`: an interim response arrived.
 */
export type Note = 'connected' | 'sent' | 'body_complete' | 'retry_abandoned' | 'interim';

export interface Verdict {
  readonly action: 'forward' | 'retry' | 'discard';
  readonly retry: boolean;
  /** Milliseconds of back-off. */
  readonly after: number;
  readonly reason: string;
  readonly status: number;
  /** Envoy's short names, comma-joined; `-` for none. */
  readonly flags: string;
}

export interface Wait {
  readonly kind: 'wait';
  /** Milliseconds until asking again makes sense; Infinity: only after a report. */
  readonly ms: number;
  readonly reason: 'queue' | 'backoff' | 'hedge' | 'attempts';
}

export interface CheckOptions {
  /** Performs and reports custom checks; without it their hosts count as unreachable, with a process warning. */
  others?: (check: Check, signal: AbortSignal) => unknown;
  /** Options of `tls.connect` for hosts that speak TLS. */
  tls?: object;
}

/**
 * A check to perform now: connect to `address`, ask, report once. What is not reported within `timeout` milliseconds counts as
 * timed out. Reports throw UsageError ERR_NEXTHOP_ENDED when it was reported before, is out of time, or its host has left:
 * nothing has changed then.
 */
export interface Check {
  readonly id: number;
  readonly host: Host;
  readonly cluster: string;
  /** Of the checker; empty when its cluster has one. */
  readonly name: string;
  readonly protocol: 'http' | 'tcp' | 'grpc' | 'custom';
  readonly http2: boolean;
  /** Whether the host speaks TLS. */
  readonly secure: boolean;
  /** Whether one connection may carry many checks. */
  readonly mayReuse: boolean;
  /** Name of a custom check's extension; empty for others. */
  readonly extension: string;
  /** `ip:port` to connect to: the host's, unless the documents name another to check. */
  readonly address: string;
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  /** Of the request, besides its authority. */
  readonly headers: ReadonlyArray<readonly [string, string]>;
  /** A body, a framed gRPC message, or plain bytes to send. */
  readonly payload: Uint8Array;
  /** Milliseconds. */
  readonly timeout: number;
  /** Bytes of a response's body that are looked at; Infinity for all. */
  readonly bodyLimit: number;
  /**
   * A result that the caller judged. `failed` fails the host at once; `network`, `timeout` and `retriable` count towards the
   * threshold; `passive` is about data traffic: the check itself is still out.
   */
  result(result: 'success' | 'degraded' | 'failed' | 'network' | 'timeout' | 'retriable' | 'passive'): void;
  /** An answer over HTTP or gRPC, judged by the engine; `headers` may hold trailers, too. */
  answer(status: number, headers?: Headers, body?: string | Uint8Array, more?: { grpcStatus?: number }): void;
  /** Everything that a TCP connection has brought so far, nothing once it is up; whether that decides the check. */
  data(received: string | Uint8Array): boolean;
  /** No (whole) answer. Time-outs count as such, everything else as a matter of the network. */
  fail(failure: string | Error): void;
}

export interface SharedEngine {
  readonly __shared: unique symbol;
}

export interface LocalReply {
  readonly status: number;
  readonly flags: string;
  readonly details: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Refusal {
  readonly kind: 'refusal';
  readonly refusal: string;
  readonly resource?: string;
  /** Milliseconds until it could work again, where that is known. */
  readonly retryAfter?: number;
  /** The host that was chosen before a limit refused. */
  readonly host?: Host;
  readonly reply: LocalReply;
}

export interface Host {
  readonly address: string;
  readonly port: number;
  readonly hostname: string;
  readonly cluster: string;
  readonly weight: number;
  readonly zone: string;
  readonly metadata: object;
  readonly secure: boolean;
}

export declare class NexthopError extends Error {
  /** ERR_NEXTHOP_ENDED, _STATE, _CLOSED, _INVALID, _LIMIT, _NOT_FOUND, _CONFIG, _REFUSED, _WOULD_WAIT, _PANIC. */
  readonly code: string;
}
/** A document was refused whole, or a file could not be read (line 0). */
export declare class ConfigError extends NexthopError {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly path: string;
  readonly found?: string;
  readonly allowed?: string;
  readonly nearest?: string;
}
export declare class RefusedError extends NexthopError {
  readonly refusal: Refusal;
  readonly reply: LocalReply;
}
export declare class WouldWaitError extends NexthopError {
  readonly wait: Wait;
}
export declare class UsageError extends NexthopError {}
