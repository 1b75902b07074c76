//! What a route changes in a request's path.

use super::condition::Condition;
use super::path_part;
use crate::matching::rewrite::Rewrite;

/// The new path, query kept; `None` when it stays as it is.
pub(super) fn path(
    prefix_rewrite: &str,
    substitution: Option<&Rewrite>,
    condition: &Condition,
    path: &str,
) -> Option<String> {
    let before = path_part(path);
    let rewritten = if !prefix_rewrite.is_empty() {
        let tail = path.get(condition.matched_length(before)..)?;
        [prefix_rewrite, tail].concat()
    } else {
        let mut new = String::from_utf8_lossy(&substitution?.apply(before.as_bytes())?).into_owned();
        new.push_str(&path[before.len()..]);
        new
    };
    (rewritten != path).then_some(rewritten)
}
