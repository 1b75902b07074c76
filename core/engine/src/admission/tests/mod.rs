//! The tables of `tests/vectors/concurrency`, and requests that pass gates on a whole engine.

mod admission;
mod gradient;
mod requests;

use serde_json::Value as Json;

/// The cases of a file that `wanted` is true for, which are so many.
fn cases(text: &str, number: usize, wanted: impl Fn(&str) -> bool) -> Vec<(String, Json)> {
    let list: Vec<Json> = serde_json::from_str(text).unwrap();
    let id = |case: &Json| case["id"].as_str().unwrap().to_owned();
    let list: Vec<_> = list.into_iter().map(|case| (id(&case), case)).filter(|(id, _)| wanted(id)).collect();
    assert_eq!(list.len(), number);
    list
}
