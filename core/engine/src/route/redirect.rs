//! Where a route sends the client.

use super::condition::Condition;
use super::{RequestView, rewrite};
use crate::matching::rewrite::Rewrite;
use crate::spec::RedirectSpec;

/// The value of `location`: what the route does not say comes from the request.
pub(super) fn location(
    to: &RedirectSpec,
    substitution: Option<&Rewrite>,
    condition: &Condition,
    request: &RequestView<'_>,
) -> String {
    let before = or(request.scheme, "http");
    let scheme = or(&to.scheme, before);
    let port = if to.port == 0 { String::new() } else { format!(":{}", to.port) };
    let host = match to.host.as_str() {
        "" => old_host(request.authority, before, scheme != before, to.port != 0),
        host => host,
    };
    format!("{scheme}://{host}{port}{}", path(to, substitution, condition, or(request.path, "/")))
}

fn or<'a>(text: &'a str, default: &'a str) -> &'a str {
    if text.is_empty() { default } else { text }
}

/// The request's host: without its port where there is a new one, or where it is that of a scheme that is given up.
fn old_host<'a>(authority: &'a str, scheme: &str, leaves: bool, new_port: bool) -> &'a str {
    let colon = match authority.starts_with('[') {
        true => authority.rfind("]:").map(|end| end + 1),
        false => authority.rfind(':'),
    };
    let Some((host, port)) = colon.map(|at| authority.split_at(at)) else { return authority };
    let usual = matches!((scheme, port), ("https", ":443") | ("http", ":80"));
    if new_port || (leaves && usual) { host } else { authority }
}

fn path(to: &RedirectSpec, substitution: Option<&Rewrite>, condition: &Condition, old: &str) -> String {
    let query = old.find('?');
    if to.path.is_empty() {
        let rewritten = rewrite::path(&to.prefix_rewrite, substitution, condition, old);
        let mut path = rewritten.unwrap_or_else(|| old.to_owned());
        if let Some(end) = path.find('?').filter(|_| to.strip_query) {
            path.truncate(end);
        }
        return path;
    }
    match query.filter(|_| !to.strip_query && !to.path.contains('?')) {
        Some(query) => format!("{}{}", to.path, &old[query..]),
        None => to.path.clone(),
    }
}
