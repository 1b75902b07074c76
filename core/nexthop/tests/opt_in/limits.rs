//! `prefer_below_limit`.

use crate::{Mesh, status};
use nexthop::raw::{bits, kind};

fn mesh(policy: &str, block: &str) -> Mesh {
    Mesh::new(&format!(
        "static_resources: {{clusters: [{{name: web, connect_timeout: 1s, lb_policy: {policy}, \
         circuit_breakers: {{thresholds: [{{max_pending_requests: 1}}], per_host_thresholds: [{{max_connections: 2}}]}}, \
         load_assignment: {{cluster_name: web, endpoints: [{{lb_endpoints: [{}]}}]}}, nexthop: {{{block}}}}}]}}",
        ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
            .map(|host| format!(
                "{{endpoint: {{address: {{socket_address: {{address: {host}, port_value: 80}}}}}}}}"
            ))
            .join(", ")
    ))
}

#[test]
fn a_host_at_its_limit_is_passed_over_before_anything_overflows() {
    for policy in ["ROUND_ROBIN", "RANDOM", "LEAST_REQUEST"] {
        let mesh = mesh(policy, "prefer_below_limit: true");
        let open: Vec<_> = (0..6).map(|_| mesh.begin("web")).collect();
        for decision in &open {
            assert_eq!(decision.kind, kind::GO, "{policy}");
        }
        for address in ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"] {
            assert_eq!(open.iter().filter(|at| mesh.address(at) == address).count(), 2, "{policy}");
        }
        assert_eq!(mesh.stat("cluster.web.upstream_rq_pending_overflow"), 0, "{policy}");
        // All are at it: as without.
        assert_eq!(mesh.begin("web").kind, kind::WAIT, "{policy}");
        let refused = mesh.begin("web");
        assert_eq!((refused.kind, mesh.stat("cluster.web.upstream_rq_pending_overflow")), (kind::REFUSED, 1));
        mesh.complete(&open[3], status(200));
    }
}

#[test]
fn a_busy_host_does_not_make_others_wait() {
    let with = mesh("ROUND_ROBIN", "prefer_below_limit: true");
    let without = mesh("ROUND_ROBIN", "prefer_below_limit: false");
    for (mesh, kinds) in [(&with, [kind::GO, kind::GO]), (&without, [kind::WAIT, kind::GO])] {
        let open: Vec<_> = (0..6).map(|_| mesh.begin("web")).collect();
        // Two hosts become free, and the turn is the third one's.
        let busy = mesh.address(&open[0]);
        for decision in open.iter().filter(|at| mesh.address(at) != busy) {
            mesh.complete(decision, status(200));
        }
        assert_eq!([mesh.begin("web").kind, mesh.begin("web").kind], kinds);
    }
    assert_eq!(with.stat("cluster.web.nexthop.prefer_below_limit.passed_over"), 1);
}

#[test]
fn a_dry_run_counts_and_queues() {
    let mesh = mesh("ROUND_ROBIN", "prefer_below_limit: {dry_run: true}");
    let open: Vec<_> = (0..6).map(|_| mesh.begin("web")).collect();
    assert!(open.iter().all(|at| at.bits & bits::DRY_RUN == 0));
    assert_eq!(mesh.begin("web").kind, kind::WAIT);
    assert_eq!(mesh.stat("cluster.web.nexthop.prefer_below_limit.dry_run"), 1);
    assert_eq!(mesh.events("nexthop.would")[0]["mechanism"], "prefer_below_limit");
}
