//! The scripts of `tests/vectors/outlier`: raw results and free sweeps.

use super::bench::{Bench, spec};

fn play(name: &str, cases: usize) {
    for case in nexthop_vectors::cases(&format!("outlier/{name}.json"), cases) {
        let given = &case["given"];
        let names: Vec<&str> =
            given["hosts"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let mut bench = Bench::new(&names, &spec(&given["config"]));
        if let Some(draws) = given["random"].as_array() {
            bench.draw(draws.iter().map(|word| word.as_u64().unwrap()).collect());
        }
        let id = case["id"].as_str().unwrap();
        let mut seen = 0;
        for (at, step) in given["steps"].as_array().unwrap().iter().enumerate() {
            bench.step(step);
            for wanted in case["expect"].as_array().unwrap() {
                if wanted["after_step"].as_u64() == Some(at as u64) {
                    bench.check(wanted, id);
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, case["expect"].as_array().unwrap().len(), "{id}");
    }
}

macro_rules! scripts {
    ($($name:ident: $cases:literal,)*) => {
        $(#[test]
        fn $name() {
            play(stringify!($name), $cases);
        })*
    };
}

scripts! {
    consecutive: 24,
    success_rate: 7,
    failure_percentage: 4,
    quirks: 2,
    max_ejection_percent: 15,
    ejection_time: 7,
    degraded: 6,
}
