// Documents and small tools for the tests.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Engine } from 'nexthop';

setFlagsFromString('--expose-gc');
/** Runs the collector. */
export const collect = runInNewContext('gc');

export function cluster(name, { hosts = 3, ...more } = {}) {
  const list = typeof hosts === 'number' ? Array.from({ length: hosts }, (_, index) => `10.0.${index >> 8}.${(index & 255) + 1}:8080`) : hosts;
  return {
    name,
    type: 'STATIC',
    connect_timeout: '1s',
    lb_policy: 'ROUND_ROBIN',
    load_assignment: {
      cluster_name: name,
      endpoints: [{
        lb_endpoints: list.map((one) => {
          const host = typeof one === 'string' ? { address: one } : one;
          const at = host.address.lastIndexOf(':');
          return {
            endpoint: { address: { socket_address: { address: host.address.slice(0, at), port_value: Number(host.address.slice(at + 1)) } } },
            ...(host.metadata && { metadata: { filter_metadata: { 'envoy.lb': host.metadata } } }),
            ...(host.weight && { load_balancing_weight: host.weight }),
          };
        }),
      }],
    },
    ...more,
  };
}

export function limits(thresholds) {
  return { circuit_breakers: { thresholds: [thresholds] } };
}

export function route(to, more = {}, match = { prefix: '/' }) {
  return { name: `to-${to}`, match, route: { cluster: to, ...more } };
}

export function document(clusters, routes = []) {
  const list = clusters.map((one) => (typeof one === 'string' ? cluster(one) : one));
  const all = [JSON.stringify({ static_resources: { clusters: list } })];
  if (routes.length > 0) {
    all.push(JSON.stringify({ name: 'main', virtual_hosts: [{ name: 'all', domains: ['*'], routes }] }));
  }
  return all;
}

export function engine(clusters, routes, options = {}) {
  return Engine.fromString(document(clusters, routes), { seed: 7n, workers: 1, clock: 'manual', ...options });
}

/** Retries that need no real time: back-off is drawn, the manual clock moves. */
export const RETRY = { timeout: '10s', retry_policy: { retry_on: '5xx,connect-failure,reset', num_retries: 2, retry_back_off: { base_interval: '0.025s', max_interval: '0.250s' } } };

/** Nothing is in flight, queued or retried anywhere. */
export function idle(mesh) {
  const numbers = Object.entries(mesh.stats()).flatMap(flat).filter(([name, value]) => /(_active|_open)$/.test(name) && typeof value === 'number' && value !== 0 && !/ejections_active|cx_open|cx_active/.test(name));
  return numbers.concat(mesh.info.liveRequests === 0 ? [] : [['live requests', mesh.info.liveRequests]]);
}

function flat([name, value]) {
  if (typeof value !== 'object' || value === null) return [[name, value]];
  return Object.entries(value).flatMap(([inner, each]) => flat([`${name}.${inner}`, each]));
}

/** A number of a cluster's statistics, wherever the shape puts it. */
export function stat(mesh, name) {
  const found = Object.entries(mesh.stats()).flatMap(flat).find(([each]) => each === name || each.endsWith(`.${name}`));
  return found?.[1];
}

export function thrown(action) {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
}

/** Lets everything that is ready run. */
export async function settle() {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}
