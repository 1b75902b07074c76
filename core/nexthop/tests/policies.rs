//! Policies and options beyond Envoy's, through the id-level functions, on a clock moved by hand.

use nexthop::raw::{
    self, Decision, Document, Head, Options, Outcome, action, clock, document_kind, failure, kind,
};
use std::collections::BTreeSet;

const MS: u64 = 1_000_000;

struct Mesh(u64);

impl Mesh {
    fn new(yaml: &str) -> Self {
        Self::seeded(yaml, 7)
    }

    fn seeded(yaml: &str, seed: u64) -> Self {
        let options = Options { workers: 1, seed, clock: clock::MANUAL, ..Options::default() };
        let document = Document { kind: document_kind::TEXT, dialect: "", name: "", text: yaml.as_bytes() };
        Self(raw::engine_new(&options, &[document]).unwrap_or_else(|error| panic!("{error}")))
    }

    fn begin(&self, head: &Head<'_>) -> Decision {
        let mut out = Decision::default();
        let head = Head { target: raw::resolve(self.0, "c").unwrap(), ..*head };
        raw::with_local(|local| raw::begin(local, self.0, &head, 0, &mut out)).unwrap();
        assert_eq!(out.kind, kind::GO);
        out
    }

    fn choose(&self, request: u64) -> Decision {
        let mut out = Decision::default();
        raw::with_local(|local| raw::choose(local, request, 0, &mut out)).unwrap();
        if out.kind == kind::WAIT {
            raw::advance(self.0, out.wait).unwrap();
            return self.choose(request);
        }
        out
    }

    fn complete(&self, attempt: u64, status: u16) -> u8 {
        raw::with_local(|local| raw::complete(local, attempt, &Outcome::status(status), 0)).action
    }

    fn address(&self, decision: &Decision) -> String {
        raw::host(self.0, decision.host, decision.host_version).unwrap().1.address.clone()
    }

    fn advance(&self, ns: u64) {
        raw::advance(self.0, ns).unwrap();
    }

    /// The hosts of one request whose every attempt is answered 503.
    fn tries(&self, key: &str) -> Vec<String> {
        let mut at = self.begin(&Head { key: Some(key.as_bytes()), ..Head::default() });
        let mut hosts = vec![self.address(&at)];
        while self.complete(at.attempt, 503) == action::RETRY {
            at = self.choose(at.request);
            hosts.push(self.address(&at));
        }
        hosts
    }
}

fn hosts(count: u32) -> String {
    (0..count).map(|at| format!("\"10.0.0.{at}:80\", ")).collect()
}

#[test]
fn retries_meet_every_host_before_one_comes_again() {
    let policies = [
        "round_robin",
        "least_request",
        "random",
        "ring_hash",
        "{maglev: {table_size: 251}}",
        "peak_ewma",
        "rendezvous_hash",
        "{deterministic_aperture: {size: 2, id: 1, peers: 3}}",
    ];
    for policy in policies {
        let mesh = Mesh::new(&format!(
            "clusters: {{c: {{hosts: [{}], policy: {policy}, panic: 0, outlier: {{consecutive_5xx: 1000}},
              retry: {{on: 5xx, times: 7}}, nexthop: {{exclude_tried: true}}}}}}",
            hosts(6)
        ));
        for key in 0..40 {
            let tries = mesh.tries(&format!("key {key}"));
            assert_eq!(tries.len(), 8, "{policy}");
            let met: BTreeSet<&String> = tries.iter().take(6).collect();
            assert_eq!(met.len(), 6, "{policy}: {tries:?}");
        }
    }
}

#[test]
fn a_stateless_retry_avoids_the_hosts_it_names() {
    let mesh = Mesh::new(&format!(
        "clusters: {{c: {{hosts: [{}], policy: random, retry: {{on: 5xx}}, nexthop: {{exclude_tried: true}}}}}}",
        hosts(4)
    ));
    for _ in 0..20 {
        let tried = "10.0.0.0:80, 10.0.0.1:80,10.0.0.3:80";
        let mut out = Decision::default();
        let head = Head { target: raw::resolve(mesh.0, "c").unwrap(), number: 2, tried, ..Head::default() };
        raw::with_local(|local| raw::begin(local, mesh.0, &head, 0, &mut out)).unwrap();
        assert_eq!(mesh.address(&out), "10.0.0.2:80");
        mesh.complete(out.attempt, 200);
    }
}

#[test]
fn peak_ewma_learns_latencies_and_failures() {
    let mesh = Mesh::new(&format!(
        "clusters: {{c: {{hosts: [{}], policy: {{peak_ewma: {{choices: 20, default_rtt: 10ms}}}}}}}}",
        hosts(3)
    ));
    let answer = |took: u64, status: u16| {
        let at = mesh.begin(&Head::default());
        mesh.advance(took);
        mesh.complete(at.attempt, status);
        mesh.address(&at)
    };
    // Each unknown host has its turn while the ones before it are slower.
    let slow: BTreeSet<String> = (0..3).map(|at| answer((30 - at * 5) * MS, 200)).collect();
    assert_eq!(slow.len(), 3);
    let best = answer(MS, 200);
    assert!((0..10).all(|_| answer(MS, 200) == best));
    // One failure costs five seconds.
    assert_eq!(answer(MS, 503), best);
    let next = answer(MS, 200);
    assert_ne!(next, best);
    let at = mesh.begin(&Head::default());
    assert_eq!(mesh.address(&at), next);
    raw::with_local(|local| raw::fail(local, at.attempt, failure::CONNECT_FAILURE.into(), 0));
    let third = answer(MS, 200);
    assert!(third != best && third != next);
    // It fades.
    mesh.advance(200_000 * MS);
    let back: BTreeSet<String> = (0..20).map(|_| answer(MS, 200)).collect();
    assert!(back.contains(&best) || back.contains(&next));
}

#[test]
fn a_subset_of_the_hosts_by_the_seed_of_the_engine() {
    let yaml = format!("clusters: {{c: {{hosts: [{}], nexthop: {{subset_size: 4}}}}}}", hosts(40));
    let used = |seed: u64| -> BTreeSet<String> {
        let mesh = Mesh::seeded(&yaml, seed);
        let used = (0..60).map(|_| {
            let at = mesh.begin(&Head::default());
            mesh.complete(at.attempt, 200);
            mesh.address(&at)
        });
        used.collect()
    };
    let first = used(1);
    assert_eq!(first.len(), 4);
    assert_eq!(first, used(1));
    let all: BTreeSet<String> = (0..60).flat_map(used).collect();
    assert!(all.len() > 36, "{} of 40 hosts are in some part", all.len());
}

#[test]
fn a_host_that_leaves_a_subset_changes_one_place() {
    let mesh = |count: u32| {
        let mesh = Mesh::new(&format!(
            "clusters: {{c: {{hosts: [{}], nexthop: {{subset_size: 5}}}}}}",
            hosts(count)
        ));
        (0..30)
            .map(|_| {
                let at = mesh.begin(&Head::default());
                mesh.complete(at.attempt, 200);
                mesh.address(&at)
            })
            .collect::<BTreeSet<String>>()
    };
    let mut before = mesh(60);
    for count in (5..60).rev() {
        let after = mesh(count);
        assert_eq!(after.len(), 5);
        assert!(before.difference(&after).count() <= 1, "{count}");
        before = after;
    }
}
