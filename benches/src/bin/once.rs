//! A fixed number of choose + complete pairs, for instruction counts (`valgrind --tool=callgrind`).

use nexthop::raw::{self, Decision};
use nexthop_bench::mesh;

fn main() {
    let pairs: u32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let (engine, target) = mesh::engine(100);
    let mut out = Decision::default();
    for _ in 0..pairs {
        raw::with_local(|local| raw::pick(local, engine, target, 1, None, 0, &mut out)).unwrap();
        let verdict = raw::with_local(|local| raw::complete_status(local, out.attempt, 200, 0));
        assert_eq!(verdict.code, 0);
    }
}
