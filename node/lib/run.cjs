'use strict';
// The ready-made loop: one attempt after the other, or several at once when the request hedges.

const { ANSWERED, ENDED } = require('./attempt.cjs');

/** Calls `send` for an attempt; never rejects. */
async function start(attempt, send, settled) {
  const outcome = { attempt, value: undefined, error: undefined, failed: false };
  try {
    outcome.value = await send(attempt);
    if (attempt._state === ANSWERED && !attempt._handed) attempt.end();
    // A function that returns without reporting has succeeded.
    if (attempt._state !== ENDED && !attempt._handed) attempt.complete(0);
  } catch (error) {
    try {
      attempt._caught(error);
    } catch (thrown) {
      outcome.failed = true;
      outcome.error = thrown;
    }
  }
  settled(outcome);
}

/** Whether somebody else goes on: the outcome is then nobody's. */
function superseded(outcome) {
  const { attempt } = outcome;
  if (outcome.failed) return false;
  return attempt._more?.lost === true || attempt.verdict?.action === 'retry' || attempt.verdict?.action === 'discard';
}

async function run(request, send) {
  const settled = [];
  let running = 0;
  const done = (outcome) => {
    running -= 1;
    settled.push(outcome);
    request.poke();
  };
  // When asking makes sense, and how long that was from there.
  let wait = 0;
  let since = performance.now();
  try {
    for (;;) {
      if (wait <= 0) {
        since = performance.now();
        const answer = request.tryChooseHost();
        if (answer.kind === 'refusal') throw request._refused(answer);
        if (answer.kind === 'attempt') {
          running += 1;
          wait = answer.hedgeAfter;
          void start(answer, send, done);
        } else {
          wait = answer.reason === 'queue' ? Math.min(answer.ms, 1000) : answer.ms;
        }
      }
      if (settled.length === 0) await request._pause(wait);
      if (settled.length === 0) {
        if (request._aborted !== undefined) throw request._aborted.reason;
        wait = 0;
        continue;
      }
      const outcome = settled.shift();
      if (superseded(outcome)) {
        // A retry is due, or another attempt goes on, and the time to add one is as it was; without one there is
        // nothing to wait for.
        const left = wait - (performance.now() - since);
        wait = outcome.attempt.verdict?.retry || running === 0 ? 0 : left;
        continue;
      }
      if (outcome.failed) throw outcome.error;
      return outcome.value;
    }
  } finally {
    // Losers, and whatever an error left behind; what was handed over goes on.
    request.close();
  }
}

module.exports = { run };
