//! Rust: choose + complete against the limit M, for 3, 100 and 1,000 hosts; with no detector and with all of them; a
//! sweep over 10,000 hosts. In one run; JSON lines on stdout.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use nexthop::raw::{self, Decision, Options, clock};
use nexthop_bench::limit::Limit;
use nexthop_bench::mesh;
use nexthop_bench::rounds::{Case, Row, measure, rounds};
use std::time::Instant;

fn main() {
    let sizes = [3, 100, 1000];
    let limits: Vec<Limit> = sizes.iter().map(|n| Limit::new(*n)).collect();
    let engines: Vec<(u64, u32)> = sizes.iter().map(|n| mesh::engine(*n)).collect();
    let mut cases = Vec::new();
    for (at, hosts) in sizes.into_iter().enumerate() {
        let limit = &limits[at];
        cases.push(Case {
            name: "limit",
            hosts,
            run: Box::new(move |n| {
                for _ in 0..n {
                    limit.finish(std::hint::black_box(limit.pick()));
                }
            }),
        });
        let (engine, target) = engines[at];
        cases.push(Case { name: "choose+complete", hosts, run: Box::new(move |n| serve(engine, target, n)) });
    }
    // The cost of being told of every outcome: the same without any detector, and with all of them.
    let options = Options { seed: 1, ..Options::default() };
    let detected = ["", mesh::ALL_DETECTORS]
        .map(|outlier| mesh::engine_of(&mesh::document_with(100, outlier), &options));
    for (name, (engine, target)) in ["no detector", "all detectors"].into_iter().zip(detected) {
        cases.push(Case { name, hosts: 100, run: Box::new(move |n| serve(engine, target, n)) });
    }
    let rows = measure(&mut cases, rounds());
    for row in rows.into_iter().chain([sweep(10_000)]) {
        println!(
            "{{\"face\":\"rust\",\"case\":\"{}\",\"hosts\":{},\"min_ns\":{:.2},\"med_ns\":{:.2}}}",
            row.name, row.hosts, row.min, row.med
        );
    }
    for (engine, _) in engines.into_iter().chain(detected) {
        raw::engine_free(engine).unwrap();
    }
}

/// So many attempts, each answered 200.
fn serve(engine: u64, target: u32, n: u32) {
    let mut out = Decision::default();
    for _ in 0..n {
        raw::with_local(|local| raw::pick(local, engine, target, 1, None, 0, &mut out)).unwrap();
        let verdict = raw::with_local(|local| raw::complete_status(local, out.attempt, 200, 0));
        assert_eq!(verdict.code, 0);
    }
}

/// One sweep of all detectors, each host with several answers since the one before.
fn sweep(hosts: usize) -> Row {
    let options = Options { seed: 1, clock: clock::MANUAL, ..Options::default() };
    let (engine, target) = mesh::engine_of(&mesh::document_with(hosts, mesh::ALL_DETECTORS), &options);
    let mut times: Vec<f64> = (0..rounds().max(3))
        .map(|_| {
            serve(engine, target, 4 * hosts as u32);
            raw::advance(engine, 9_999_000_000).unwrap();
            let start = Instant::now();
            raw::advance(engine, 1_000_000).unwrap();
            start.elapsed().as_nanos() as f64
        })
        .collect();
    raw::engine_free(engine).unwrap();
    times.sort_by(f64::total_cmp);
    Row { name: "sweep", hosts, min: times[0], med: times[times.len() / 2] }
}
