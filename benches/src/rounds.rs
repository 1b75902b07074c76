//! Interleaved rounds: every case runs once in each round for a millisecond or so, so that a slow phase of the
//! machine hits all alike. Reported: the cheapest and the median round, in nanoseconds per operation.

use std::time::Instant;

/// One case: its name, host count, and a loop of `n` operations.
pub struct Case<'a> {
    /// What it is.
    pub name: &'static str,
    /// Hosts, 0 where it does not matter.
    pub hosts: usize,
    /// Runs n operations.
    pub run: Box<dyn FnMut(u32) + 'a>,
}

/// A case's result.
pub struct Row {
    /// What it was.
    pub name: &'static str,
    /// Hosts.
    pub hosts: usize,
    /// Nanoseconds per operation, cheapest round.
    pub min: f64,
    /// Nanoseconds per operation, median round.
    pub med: f64,
}

/// Rounds asked for by `ROUNDS`, 60 by default.
pub fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

/// Runs all cases.
pub fn measure(cases: &mut [Case<'_>], rounds: usize) -> Vec<Row> {
    // How many operations last about 1.5 ms.
    let mut sizes = Vec::new();
    for case in cases.iter_mut() {
        let mut n = 1000;
        loop {
            let start = Instant::now();
            (case.run)(n);
            let spent = start.elapsed().as_nanos() as u64;
            if spent > 400_000 {
                sizes.push((u64::from(n) * 1_500_000 / spent).max(1000) as u32);
                break;
            }
            n *= 4;
        }
    }
    let mut seen: Vec<Vec<f64>> = cases.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (at, case) in cases.iter_mut().enumerate() {
            let start = Instant::now();
            (case.run)(sizes[at]);
            seen[at].push(start.elapsed().as_nanos() as f64 / f64::from(sizes[at]));
        }
    }
    let rows = cases.iter().zip(seen).map(|(case, mut times)| {
        times.sort_by(f64::total_cmp);
        Row { name: case.name, hosts: case.hosts, min: times[0], med: times[times.len() / 2] }
    });
    rows.collect()
}
