//! Rust: choose + complete against the limit M, for 3, 100 and 1,000 hosts, in one run. JSON lines on stdout.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use nexthop::raw::{self, Decision};
use nexthop_bench::limit::Limit;
use nexthop_bench::mesh;
use nexthop_bench::rounds::{Case, measure, rounds};

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
        cases.push(Case {
            name: "choose+complete",
            hosts,
            run: Box::new(move |n| {
                let mut out = Decision::default();
                for _ in 0..n {
                    raw::with_local(|local| raw::pick(local, engine, target, 1, None, 0, &mut out)).unwrap();
                    let verdict = raw::with_local(|local| raw::complete_status(local, out.attempt, 200, 0));
                    assert_eq!(verdict.code, 0);
                }
            }),
        });
    }
    for row in measure(&mut cases, rounds()) {
        println!(
            "{{\"face\":\"rust\",\"case\":\"{}\",\"hosts\":{},\"min_ns\":{:.2},\"med_ns\":{:.2}}}",
            row.name, row.hosts, row.min, row.med
        );
    }
    for (engine, _) in engines {
        raw::engine_free(engine).unwrap();
    }
}
