//! The known name nearest to a misspelt one.

/// The candidate with the fewest edits, when they are few enough to be a slip. Case, `_` and `-` do not count.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    let wanted = fold(name);
    if wanted.len() > 100 {
        return None;
    }
    let limit = (wanted.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let folded = fold(candidate);
        if folded.len().abs_diff(wanted.len()) > limit {
            continue;
        }
        let edits = distance(&wanted, &folded);
        if edits <= limit && best.is_none_or(|(fewest, _)| edits < fewest) {
            best = Some((edits, candidate));
        }
    }
    best.map(|(_, candidate)| candidate.to_owned())
}

fn fold(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).take(101).collect()
}

/// Levenshtein, with a swap of neighbours as one edit.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, &left) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &right) in b.iter().enumerate() {
            let change = above[j] + usize::from(left != right);
            let mut edits = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && left == b[j - 1] && a[i - 1] == right {
                edits = edits.min(before[j - 1] + 1);
            }
            row.push(edits);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_only() {
        let known = ["connect_timeout", "lb_policy", "load_assignment", "type"];
        let near = |name: &str| nearest(name, known.into_iter());
        assert_eq!(near("conect_timeout").as_deref(), Some("connect_timeout"));
        assert_eq!(near("connectTimeOut").as_deref(), Some("connect_timeout"));
        assert_eq!(near("lb_polciy").as_deref(), Some("lb_policy"));
        assert_eq!(near("tpye").as_deref(), Some("type"));
        assert_eq!(near("zzz"), None);
        assert_eq!(near(&"x".repeat(1_000_000)), None);
        assert_eq!(near(""), None);
    }
}
