'use strict';
// What an error of an HTTP client says about the upstream: fetch (its `cause` chain), undici, node:http, http2.

const { FAILURES } = require('./values.cjs');

const byCode = new Map();
for (const [name, codes] of Object.entries({
  connect_failure: ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN', 'ENOTFOUND', 'EAI_AGAIN', 'ERR_TLS_CERT_ALTNAME_INVALID',
    'CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'EPROTO'],
  connect_timeout: ['UND_ERR_CONNECT_TIMEOUT'],
  connection_termination: ['UND_ERR_SOCKET', 'EPIPE', 'ECONNABORTED', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_HTTP2_SESSION_ERROR'],
  remote_reset: ['ECONNRESET', 'ERR_HTTP2_STREAM_ERROR'],
  refused_stream: ['ERR_HTTP2_GOAWAY_SESSION'],
  protocol_error: ['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'ERR_HTTP2_ERROR'],
  local_connect_failure: ['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'EADDRINUSE'],
  timeout: ['UND_ERR_HEADERS_TIMEOUT'],
  per_try_idle_timeout: ['UND_ERR_BODY_TIMEOUT'],
  local_reset: ['UND_ERR_ABORTED', 'ABORT_ERR'],
})) {
  for (const code of codes) byCode.set(code, FAILURES.get(name));
}

const DEEPEST = 8;

function one(error) {
  const { code, name } = error;
  if (typeof code === 'string') {
    // The kernel gives up on a connect, or on a connection it had.
    if (code === 'ETIMEDOUT') return FAILURES.get(error.syscall === 'connect' ? 'connect_timeout' : 'remote_reset');
    if (code === 'ERR_HTTP2_STREAM_ERROR' && /REFUSED_STREAM/.test(error.message)) return FAILURES.get('refused_stream');
    if (code.startsWith('HPE_')) return FAILURES.get('protocol_error');
    const found = byCode.get(code);
    if (found !== undefined) return found;
  }
  if (name === 'TimeoutError') return FAILURES.get('timeout');
  if (name === 'HTTPParserError') return FAILURES.get('protocol_error');
  if (name === 'AbortError') return FAILURES.get('local_reset');
  return 0;
}

/** The number of the failure that this error stands for; 0 = not the upstream's. */
function classify(error, depth = 0) {
  if (typeof error !== 'object' || error === null || depth > DEEPEST) return 0;
  const wrapped = error.cause !== undefined ? classify(error.cause, depth + 1) : 0;
  // An abort names what aborted it as its cause; for the rest the outer code is what the client made of it.
  const own = one(error);
  if (own !== 0 && !(own === FAILURES.get('local_reset') && wrapped !== 0)) return own;
  if (wrapped !== 0) return wrapped;
  if (Array.isArray(error.errors)) {
    for (const each of error.errors) {
      const found = classify(each, depth + 1);
      if (found !== 0) return found;
    }
  }
  return 0;
}

/** A short text of an error for events and explain. */
function detail(error) {
  const { cause } = error ?? {};
  const text = String(error?.message ?? error);
  return cause instanceof Error && cause.message ? `${text}: ${cause.message}` : text;
}

module.exports = { classify, detail };
