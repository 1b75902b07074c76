//! The hash of a request from a list of hash policies (section 17).

use super::{cookie, xxh64};
use crate::headers::HeaderView;
use crate::matching::rewrite::Rewrite;
use crate::spec::{HashPolicySpec, HashSource, SpecError};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A compiled list of hash policies.
#[derive(Default)]
pub struct HashPolicies {
    policies: Vec<Policy>,
}

struct Policy {
    source: Source,
    terminal: bool,
}

enum Source {
    Header {
        name: HeaderName,
        rewrite: Option<Rewrite>,
    },
    Cookie {
        name: String,
        ttl: Option<Duration>,
        path: String,
        attributes: Vec<(String, String)>,
    },
    Peer,
    QueryParameter {
        name: String,
    },
    /// A source this engine never has.
    Absent,
}

/// Where a header's values are found.
enum HeaderName {
    Path,
    Authority,
    Method,
    Scheme,
    Block(String),
}

/// What a request gives to hash.
#[derive(Clone, Copy)]
pub struct HashInput<'a> {
    /// At least the headers that [`HashPolicies::wanted_headers`] names.
    pub headers: HeaderView<'a>,
    /// `:method`.
    pub method: &'a str,
    /// `:scheme`.
    pub scheme: &'a str,
    /// `:authority`.
    pub authority: &'a str,
    /// `:path` with its query.
    pub path: &'a str,
    /// The downstream peer: `ip`, `ip:port`, `[v6]:port`, or empty.
    pub source: &'a str,
    /// This end of the downstream connection, in the same forms.
    pub local: &'a str,
}

/// Cookies that the answer must set because hash policies generated them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeneratedCookie {
    /// Value of the `set-cookie` header.
    pub set_cookie: String,
    /// Values of further `set-cookie` headers, when several policies of one list generated.
    pub others: Vec<String>,
}

impl HashPolicies {
    /// Compiles a list; fails on the first bad regular expression.
    pub fn compile(specs: &[HashPolicySpec]) -> Result<Self, SpecError> {
        let policies = specs.iter().map(Policy::compile).collect::<Result<_, _>>()?;
        Ok(Self { policies })
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// Visits the names of the headers that evaluation reads from the block: lower case, perhaps repeatedly.
    pub fn wanted_headers(&self, visit: &mut dyn FnMut(&str)) {
        for policy in &self.policies {
            match &policy.source {
                Source::Header { name: HeaderName::Block(name), .. } => visit(name),
                Source::Cookie { .. } => visit("cookie"),
                Source::Header { .. } | Source::Peer | Source::QueryParameter { .. } | Source::Absent => {}
            }
        }
    }

    /// The request's hash; `None` when no policy yields one. `cookie` is set when a policy generates one.
    pub fn evaluate(&self, input: &HashInput<'_>, cookie: &mut Option<GeneratedCookie>) -> Option<u64> {
        self.evaluate_with(input, Some(cookie))
    }

    /// The same from what the request brings alone: no cookie is generated.
    pub fn of_request(&self, input: &HashInput<'_>) -> Option<u64> {
        self.evaluate_with(input, None)
    }

    fn evaluate_with(
        &self,
        input: &HashInput<'_>,
        mut cookie: Option<&mut Option<GeneratedCookie>>,
    ) -> Option<u64> {
        let mut hash: Option<u64> = None;
        for policy in &self.policies {
            if let Some(new) = policy.source.evaluate(input, cookie.as_deref_mut()) {
                // Rotation keeps the same policy given twice from cancelling itself.
                hash = Some(hash.map_or(0, |hash| hash.rotate_left(1)) ^ new);
            }
            // A terminal policy without a hash of its own still ends the list once there is one.
            if policy.terminal && hash.is_some() {
                break;
            }
        }
        hash
    }
}

impl Policy {
    fn compile(spec: &HashPolicySpec) -> Result<Self, SpecError> {
        let source = match &spec.source {
            HashSource::Header { name, rewrite } => Source::Header {
                name: HeaderName::new(name),
                rewrite: rewrite.as_ref().map(Rewrite::compile).transpose()?,
            },
            HashSource::Cookie { name, ttl, path, attributes } => Source::Cookie {
                name: name.clone(),
                ttl: *ttl,
                path: path.clone(),
                attributes: attributes.clone(),
            },
            HashSource::SourceIp => Source::Peer,
            HashSource::QueryParameter { name } => Source::QueryParameter { name: name.clone() },
            HashSource::FilterState { .. } => Source::Absent,
        };
        Ok(Self { source, terminal: spec.terminal })
    }
}

impl HeaderName {
    fn new(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            ":path" => Self::Path,
            // Envoy keeps a legacy `host` header as `:authority`.
            ":authority" | "host" => Self::Authority,
            ":method" => Self::Method,
            ":scheme" => Self::Scheme,
            name => Self::Block(name.to_owned()),
        }
    }
}

impl Source {
    fn evaluate(
        &self,
        input: &HashInput<'_>,
        generated: Option<&mut Option<GeneratedCookie>>,
    ) -> Option<u64> {
        match self {
            Self::Header { name, rewrite } => match name {
                HeaderName::Path => header(present(input.path), rewrite.as_ref()),
                HeaderName::Authority => header(present(input.authority), rewrite.as_ref()),
                HeaderName::Method => header(present(input.method), rewrite.as_ref()),
                HeaderName::Scheme => header(present(input.scheme), rewrite.as_ref()),
                HeaderName::Block(name) => header(input.headers.values(name), rewrite.as_ref()),
            },
            Self::Cookie { name, ttl, path, attributes } => {
                let found = cookie::find(input.headers.values("cookie"), name);
                if let Some(value) = found.filter(|value| !value.is_empty()) {
                    return Some(xxh64(value, 0));
                }
                let (ttl, generated) = ((*ttl)?, generated?);
                let value = cookie::value(input.source, input.local);
                let value_text = std::str::from_utf8(&value).unwrap_or_default();
                let text = cookie::set_cookie(name, value_text, ttl, path, attributes);
                match generated {
                    Some(first) => first.others.push(text),
                    None => *generated = Some(GeneratedCookie { set_cookie: text, others: Vec::new() }),
                }
                Some(xxh64(&value, 0))
            }
            Self::Peer => source_ip(input.source),
            Self::QueryParameter { name } => {
                query_parameter(input.path, name).map(|value| xxh64(value.as_bytes(), 0))
            }
            Self::Absent => None,
        }
    }
}

/// A pseudo header's value, when the request has it.
fn present(value: &str) -> impl Iterator<Item = &[u8]> {
    Some(value.as_bytes()).filter(|value| !value.is_empty()).into_iter()
}

/// Rewrites, sorts and chains values, so that the order of header lines does not matter.
fn header<'a>(values: impl Iterator<Item = &'a [u8]>, rewrite: Option<&Rewrite>) -> Option<u64> {
    let mut values: SmallVec<[Cow<'a, [u8]>; 4]> = values
        .map(|value| {
            rewrite.and_then(|rewrite| rewrite.apply(value)).map_or(Cow::Borrowed(value), Cow::Owned)
        })
        .collect();
    if values.is_empty() {
        return None;
    }
    values.sort_unstable();
    Some(values.iter().fold(0, |seed, value| xxh64(value, seed)))
}

/// The hash of an address' canonical text without its port.
fn source_ip(source: &str) -> Option<u64> {
    let ip = match source.parse::<IpAddr>() {
        Ok(ip) => ip,
        Err(_) => source.parse::<SocketAddr>().ok()?.ip(),
    };
    let mut text = [0_u8; 48];
    let mut rest = &mut text[..];
    write!(rest, "{ip}").ok()?;
    let unused = rest.len();
    Some(xxh64(&text[..text.len() - unused], 0))
}

/// The first parameter of that name in a path's query, as sent.
fn query_parameter<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = path.split_once('?')?;
    query
        .split('&')
        .map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: HashInput<'_> = HashInput {
        headers: HeaderView::EMPTY,
        method: "GET",
        scheme: "https",
        authority: "example.com",
        path: "/a?b=c",
        source: "",
        local: "",
    };

    fn hash_of(source: HashSource, input: &HashInput<'_>) -> Option<u64> {
        let policies = HashPolicies::compile(&[HashPolicySpec { source, terminal: false }]).unwrap();
        policies.evaluate(input, &mut None)
    }

    #[test]
    fn addresses_in_every_form() {
        let hash = |source| hash_of(HashSource::SourceIp, &HashInput { source, ..INPUT });
        assert_eq!(hash("10.0.0.1"), Some(xxh64(b"10.0.0.1", 0)));
        assert_eq!(hash("10.0.0.1:80"), Some(xxh64(b"10.0.0.1", 0)));
        assert_eq!(hash("[::1]:80"), Some(xxh64(b"::1", 0)));
        assert_eq!(hash("2001:0db8::0001"), Some(xxh64(b"2001:db8::1", 0)));
        assert_eq!(hash("/run/socket"), None);
        assert_eq!(hash(""), None);
    }

    #[test]
    fn pseudo_headers_come_from_the_request_line() {
        let hash = |name: &str| hash_of(HashSource::Header { name: name.into(), rewrite: None }, &INPUT);
        assert_eq!(hash(":path"), Some(xxh64(b"/a?b=c", 0)));
        assert_eq!(hash(":method"), Some(xxh64(b"GET", 0)));
        assert_eq!(hash(":scheme"), Some(xxh64(b"https", 0)));
        assert_eq!(hash(":authority"), Some(xxh64(b"example.com", 0)));
        assert_eq!(hash("host"), hash(":authority"));
        assert_eq!(hash("other"), None);
    }

    #[test]
    fn names_what_it_reads_from_the_block() {
        let header = |name: &str| HashSource::Header { name: name.into(), rewrite: None };
        let cookie =
            HashSource::Cookie { name: "c".into(), ttl: None, path: String::new(), attributes: Vec::new() };
        let specs: Vec<_> = [header("X-User"), header(":path"), cookie, HashSource::SourceIp]
            .into_iter()
            .map(|source| HashPolicySpec { source, terminal: false })
            .collect();
        let mut names = Vec::new();
        HashPolicies::compile(&specs).unwrap().wanted_headers(&mut |name| names.push(name.to_owned()));
        assert_eq!(names, ["x-user", "cookie"]);
    }

    #[test]
    fn several_policies_may_each_generate_a_cookie() {
        let cookie = |name: &str| HashPolicySpec {
            source: HashSource::Cookie {
                name: name.into(),
                ttl: Some(Duration::ZERO),
                path: String::new(),
                attributes: Vec::new(),
            },
            terminal: false,
        };
        let policies = HashPolicies::compile(&[cookie("a"), cookie("b")]).unwrap();
        let mut generated = None;
        policies.evaluate(&HashInput { source: "1.2.3.4:5", local: "6.7.8.9:10", ..INPUT }, &mut generated);
        let generated = generated.unwrap();
        assert!(generated.set_cookie.starts_with("a=\""));
        assert_eq!(generated.others.len(), 1);
        assert!(generated.others[0].starts_with("b=\""));
    }
}
