// The AI gateway of the examples: three stand-ins for providers, on loopback.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { demo } from '../../examples/ai-gateway/ai_gateway.mjs';

const LIMITED = 'preferred: 429 rate_limit_exceeded';
const LATE = 'backup: no token in time';

test('who answers and why', { timeout: 60_000 }, async () => {
  const { rows, seen, stats } = await demo();
  assert.deepEqual(rows.map(({ prompt, status, tokens, whole, way }) => [prompt, status, tokens, whole, way]), [
    ['one', 200, 5, true, 'preferred: 200'],
    ['two', 200, 5, true, 'preferred: 200'],
    ['three, long', 200, 5, true, `${LIMITED} -> ${LATE} -> cheap: 200`],
    ['four', 200, 5, true, 'backup: 200'],
    ['preferred or none', 503, 0, true, 'cooling'],
    ['five, long', 200, 5, true, `${LATE} -> cheap: 200`],
    ['six, long: break', 200, 2, false, `${LATE} -> cheap: 200`],
    ['seven', 200, 5, true, 'preferred: 200'],
  ]);
  assert.ok(['3', '4'].includes(rows[4].retryAfter));
  assert.deepEqual(seen.preferred, ['one', 'two', 'three, long', 'seven'], 'left alone while it asked for it');
  assert.equal(stats['cluster.preferred.nexthop.cool_down.set_aside'], 1);
  assert.equal(stats['cluster.preferred.nexthop.classes.rate_limited'], 1);
  assert.equal(stats['cluster.cheap.nexthop.outcome_at.cut'], 1);
  assert.equal(stats['nexthop.live_requests'], 0);
});
