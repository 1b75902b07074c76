//! What an answer means, by the entries of `classes`.

use crate::headers::HeaderView;
use crate::spec::{ClassMatch, FailureClass};

/// The first entry that an answer fits. `code`: the error code of its body, as the caller tells it; may be empty.
pub(crate) fn find<'c>(
    classes: &'c [FailureClass],
    status: u16,
    headers: HeaderView<'_>,
    code: &str,
) -> Option<&'c FailureClass> {
    classes.iter().find(|class| fits(&class.when, status, headers, code))
}

fn fits(when: &ClassMatch, status: u16, headers: HeaderView<'_>, code: &str) -> bool {
    let any = |list: &[(u16, u16)]| list.iter().any(|(from, to)| (*from..=*to).contains(&status));
    let has = |(name, wanted): &(String, Option<String>)| match wanted {
        None => headers.first(name).is_some(),
        Some(value) => headers.values(name).any(|found| found.trim_ascii() == value.as_bytes()),
    };
    (when.statuses.is_empty() || any(&when.statuses))
        && when.headers.iter().all(has)
        && (when.body_codes.is_empty() || when.body_codes.iter().any(|wanted| wanted == code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::pack;
    use crate::spec::ClassName;

    fn class(class: ClassName, when: ClassMatch) -> FailureClass {
        FailureClass { when, class, same_host: false, cool_down: None, next: None, dry_run: false }
    }

    #[test]
    fn all_that_is_given_must_hold_and_the_first_counts() {
        let quota = ClassMatch {
            statuses: vec![(429, 429)],
            body_codes: vec!["insufficient_quota".into()],
            ..ClassMatch::default()
        };
        let stop = ClassMatch {
            headers: vec![("x-should-retry".into(), Some("false".into()))],
            ..ClassMatch::default()
        };
        let there = ClassMatch { headers: vec![("retry-after".into(), None)], ..ClassMatch::default() };
        let any = ClassMatch { statuses: vec![(400, 499), (503, 503)], ..ClassMatch::default() };
        let classes = [
            class(ClassName::Quota, quota),
            class(ClassName::Filtered, stop),
            class(ClassName::Overloaded, there),
            class(ClassName::RateLimited, any),
        ];
        let names: Vec<Box<str>> = vec!["retry-after".into(), "x-should-retry".into()];
        let found = |status, header: Option<(u16, &str)>, code: &str| {
            let mut block = Vec::new();
            if let Some((name, value)) = header {
                pack(&mut block, name, value.as_bytes());
            }
            let headers = HeaderView::new(&names, &block).unwrap();
            find(&classes, status, headers, code).map(|class| class.class)
        };
        assert_eq!(found(429, None, "insufficient_quota"), Some(ClassName::Quota));
        assert_eq!(found(429, None, "rate_limit_exceeded"), Some(ClassName::RateLimited));
        assert_eq!(found(429, None, ""), Some(ClassName::RateLimited));
        assert_eq!(found(500, None, "insufficient_quota"), None);
        assert_eq!(found(500, Some((1, " false ")), ""), Some(ClassName::Filtered));
        assert_eq!(found(500, Some((1, "true")), ""), None);
        assert_eq!(found(502, Some((0, "")), ""), Some(ClassName::Overloaded));
        assert_eq!(found(503, None, ""), Some(ClassName::RateLimited));
        assert_eq!(found(504, None, ""), None);
    }
}
