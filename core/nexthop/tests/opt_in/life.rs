//! Whatever happens, in any order: everything is given back, and nothing stays refused or held back for ever.

use crate::{Mesh, S, status, with};
use nexthop::raw::{self, Decision, Outcome, failure, kind, outcome_bits};
use proptest::prelude::*;

const ALL: &str = "
clusters:
  a:
    hosts: [10.0.0.1:80, 10.0.0.2:80, {address: 10.0.0.3:80, priority: 1}]
    limits: {connections: 3, pending: 2}
    outlier: {consecutive_5xx: 2, interval: 1s, eject: 2s, max_percent: 70}
    nexthop: {half_open: {probes: 2, interval: 1s}, cool_down: {}, prefer_below_limit: true, outcome_at: end}
  b: {hosts: [10.0.1.1:80], outlier: {consecutive_5xx: 1, interval: 1s, eject: 1s, max_percent: 100}}
  both:
    composite: [a, b]
    timeout: 30s
    retry:
      on: [5xx, connect-failure, reset]
      times: 3
      nexthop:
        deadline_first: {least: 10ms}
        retry_after: honour
        idempotency: guard
        layers: {max_product: 3}
        classes:
          - {when: {status: 429}, class: rate_limited, next: host}
          - {when: {status: 500}, class: quota, next: cluster, cool_down: 2s}
nexthop: {defaults: {half_open: {}, cool_down: {max: 3s}}}
";

/// One step: what to do, with which of the open requests, and how.
type Step = (u8, usize, u8);

fn run(steps: Vec<Step>) {
    let mesh = Mesh::new(ALL);
    let mut open: Vec<Decision> = Vec::new();
    let mut streams: Vec<Decision> = Vec::new();
    for (what, which, how) in steps {
        let take =
            |list: &mut Vec<Decision>| (!list.is_empty()).then(|| list.swap_remove(which % list.len()));
        match what {
            0..=3 => {
                let method = if how % 3 == 0 { "POST" } else { "GET" };
                open.push(mesh.request(["a", "both"][usize::from(how % 2)], method, &[]));
            }
            4 => mesh.advance(u64::from(how) * S / 20),
            5 => {
                let Some(at) = take(&mut open) else { continue };
                if at.kind != kind::GO {
                    open.push(at);
                } else if mesh.headers(&at, status(200)).code == 0 {
                    streams.push(at);
                }
            }
            6 => {
                let Some(at) = take(&mut streams) else { continue };
                let bits = if how % 2 == 0 { outcome_bits::CUT } else { 0 };
                mesh.end(&at, &Outcome { bits, ..Outcome::default() });
            }
            _ => {
                let Some(at) = take(&mut open) else { continue };
                let next = match at.kind {
                    kind::WAIT => at.request,
                    kind::GO => {
                        let verdict = match how % 9 {
                            0 => mesh.fail(&at, failure::CONNECT_FAILURE),
                            1 => mesh.fail(&at, failure::REMOTE_RESET),
                            2 => {
                                mesh.cancel(&at);
                                continue;
                            }
                            3 => raw::with_local(|local| {
                                raw::finish(local, at.request, raw::finish::CLIENT_GONE, 0)
                            }),
                            4 => mesh.complete(&at, with(429, &[("retry-after", "2")])),
                            5 => mesh.complete(&at, with(503, &[("retry-after", "1")])),
                            6 => mesh.complete(&at, status(500)),
                            7 => mesh.complete(&at, status(502)),
                            _ => mesh.complete(&at, status(200)),
                        };
                        if verdict.action != raw::action::RETRY {
                            continue;
                        }
                        at.request
                    }
                    _ => continue,
                };
                let mut out = Decision::default();
                if raw::with_local(|local| raw::choose(local, next, 0, &mut out)).is_ok() {
                    open.push(out);
                }
            }
        }
    }
    for at in open.into_iter().chain(streams) {
        raw::with_local(|local| raw::finish(local, at.request, raw::finish::CLIENT_GONE, 0));
    }
    for cluster in ["a", "b", "both"] {
        for gauge in
            ["upstream_rq_active", "upstream_rq_pending_active", "circuit_breakers.default.rq_retry_open"]
        {
            assert_eq!(mesh.stat(&format!("cluster.{cluster}.{gauge}")), 0, "{cluster} {gauge}");
        }
    }
    assert_eq!(mesh.stat("nexthop.live_requests"), 0);
    // Time heals: after the longest wait every host is served again, through its probes.
    for _ in 0..4 {
        mesh.advance(400 * S);
        (0..12).for_each(|_| drop(mesh.visit("a", status(200))));
    }
    let seen: std::collections::BTreeSet<String> = (0..12).map(|_| mesh.visit("a", status(200))).collect();
    assert_eq!(seen.len(), 2, "both hosts of the first priority: {seen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn everything_comes_back(steps in proptest::collection::vec((0_u8..12, 0_usize..64, any::<u8>()), 0..120)) {
        run(steps);
    }
}
