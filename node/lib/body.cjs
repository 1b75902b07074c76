'use strict';
// The response body takes over the attempt: its end, its error and its early close are the attempt's.

const failures = require('./failure.cjs');
const { reject } = require('./check.cjs');
const { FAILURES } = require('./values.cjs');

function broke(attempt, error) {
  if (attempt._state === 2) return;
  if (attempt._more?.timedOut) return void attempt._fail(FAILURES.get('timeout'), failures.detail(error));
  const number = failures.classify(error) || FAILURES.get('remote_reset');
  attempt._fail(number, failures.detail(error));
}

function node(attempt, stream) {
  if (stream.readableEnded) {
    attempt.end();
    return stream;
  }
  if (stream.destroyed) {
    if (stream.errored) broke(attempt, stream.errored);
    else attempt.cancel();
    return stream;
  }
  stream.once('end', () => {
    const { trailers } = stream;
    attempt.end(trailers && typeof trailers === 'object' && Object.keys(trailers).length > 0 ? { trailers } : undefined);
  });
  stream.once('error', (error) => broke(attempt, error));
  stream.once('close', () => attempt.cancel()); // nothing, after one of the two others
  return stream;
}

function web(attempt, stream) {
  const reader = stream.getReader();
  return new ReadableStream({
    async pull(controller) {
      let part;
      try {
        part = await reader.read();
      } catch (error) {
        broke(attempt, error);
        throw error;
      }
      if (part.done) {
        attempt.end();
        controller.close();
      } else {
        controller.enqueue(part.value);
      }
    },
    cancel(reason) {
      attempt.cancel();
      return reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}

/** Gives the stream (or, for web streams, one in its place) to the caller; no body at all ends at once. */
function handOver(attempt, stream) {
  if (stream === null || stream === undefined) {
    attempt.end();
    return stream;
  }
  if (typeof stream.getReader === 'function') return web(attempt, stream);
  if (typeof stream.once === 'function') return node(attempt, stream);
  throw reject('body', 'a Readable or a ReadableStream', stream);
}

module.exports = { handOver };
