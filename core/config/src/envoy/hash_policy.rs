//! `RouteAction.HashPolicy`.

use super::matcher::regex_rewrite;
use crate::error::Result;
use crate::read::{At, Fields, Msg};
use nexthop_engine::spec::{HashPolicySpec, HashSource};

const HASH_POLICY: Fields = Fields::of(
    "HashPolicy",
    &["header", "cookie", "connection_properties", "query_parameter", "filter_state", "terminal"],
)
.one_of(&[&["header", "cookie", "connection_properties", "query_parameter", "filter_state"]]);
const HEADER: Fields = Fields::of("HashPolicy.Header", &["header_name", "regex_rewrite"]);
const COOKIE: Fields = Fields::of("HashPolicy.Cookie", &["name", "ttl", "path", "attributes"]);
const ATTRIBUTE: Fields = Fields::of("HashPolicy.CookieAttribute", &["name", "value"]);
const CONNECTION: Fields = Fields::of("HashPolicy.ConnectionProperties", &["source_ip"]);
const QUERY: Fields = Fields::of("HashPolicy.QueryParameter", &["name"]);
const FILTER_STATE: Fields = Fields::of("HashPolicy.FilterState", &["key"]);

/// Reads the field `hash_policy`. An entry without a source is refused: where Envoy has no field rule for it, it
/// ends its process.
pub(super) fn hash_policies(msg: &Msg<'_>) -> Result<Vec<HashPolicySpec>> {
    let policies = msg.repeated("hash_policy", |item| hash_policy(&item))?;
    Ok(policies.into_iter().flatten().collect())
}

/// `None` = the policy is switched off and leaves no trace, its `terminal` neither.
fn hash_policy(at: &At<'_>) -> Result<Option<HashPolicySpec>> {
    let msg = at.message(&HASH_POLICY)?;
    let source = if let Some(header) = msg.get("header") {
        let header = header.message(&HEADER)?;
        HashSource::Header {
            name: header_name(&header.need("header_name")?)?,
            rewrite: header.map("regex_rewrite", regex_rewrite)?,
        }
    } else if let Some(cookie) = msg.get("cookie") {
        let cookie = cookie.message(&COOKIE)?;
        HashSource::Cookie {
            name: cookie.need("name")?.filled()?,
            ttl: cookie.map("ttl", |d| d.duration())?,
            path: cookie.or("path", String::new(), |p| p.text())?,
            attributes: cookie.repeated("attributes", |item| {
                let attribute = item.message(&ATTRIBUTE)?;
                let value = attribute.or("value", String::new(), |v| v.text())?;
                Ok((attribute.need("name")?.filled()?, value))
            })?,
        }
    } else if let Some(connection) = msg.get("connection_properties") {
        if !connection.message(&CONNECTION)?.or("source_ip", false, |flag| flag.bool())? {
            return Ok(None);
        }
        HashSource::SourceIp
    } else if let Some(query) = msg.get("query_parameter") {
        HashSource::QueryParameter { name: query.message(&QUERY)?.need("name")?.filled()? }
    } else if let Some(state) = msg.get("filter_state") {
        HashSource::FilterState { key: state.message(&FILTER_STATE)?.need("key")?.filled()? }
    } else {
        return Err(at.expected(
            "a hash policy with one of header, cookie, connection_properties, query_parameter, filter_state",
        ));
    };
    Ok(Some(HashPolicySpec { source, terminal: msg.or("terminal", false, |flag| flag.bool())? }))
}

/// The name of a header, in lower case.
pub(crate) fn header_name(at: &At<'_>) -> Result<String> {
    let name = at.filled()?;
    if name.contains(['\0', '\r', '\n']) {
        return Err(at.expected("a header name without line breaks"));
    }
    Ok(name.to_ascii_lowercase())
}
