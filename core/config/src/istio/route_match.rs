//! Matches, rewrites and answers of a `VirtualService`, in Envoy's form.

use super::read::{labels as texts_by_name, object};
use crate::error::Result;
use crate::form::{Form, flag, list, number, text};
use crate::front::{Node, Place};
use crate::read::{At, Fields, Msg};
use crate::report::What;
use std::collections::BTreeMap;

const MATCH: Fields = Fields::of(
    "match",
    &[
        "name",
        "uri",
        "scheme",
        "method",
        "authority",
        "headers",
        "withoutHeaders",
        "queryParams",
        "ignoreUriCase",
        "sourceLabels",
        "port",
    ],
)
.not_used(&["gateways", "sourceNamespace", "statPrefix"]);
const STRING: Fields = Fields::of("match", &["exact", "prefix", "regex"]);
const REWRITE: Fields = Fields::of("rewrite", &["uri", "authority", "uriRegexRewrite"]);
const REGEX_REWRITE: Fields = Fields::of("uriRegexRewrite", &["match", "rewrite"]);
const REDIRECT: Fields =
    Fields::of("redirect", &["uri", "authority", "port", "scheme", "redirectCode", "derivePort"]);
const REPLY: Fields = Fields::of("directResponse", &["status", "body"]).not_used(&["headers"]);
const BODY: Fields = Fields::of("body", &["string", "bytes"]);

/// The match of a route without any.
pub(super) fn everything(at: &At<'_>) -> Form {
    let place = at.node.place;
    Form::new(place).with("prefix", text(place, "/"))
}

/// Envoy's `RouteMatch`, and the labels that a client must have for it.
pub(super) fn route_match(at: &At<'_>) -> Result<(Form, BTreeMap<String, String>)> {
    let msg = object(*at, &MATCH)?;
    let labels = msg.or("sourceLabels", BTreeMap::new(), texts_by_name)?;
    if let Some(at) = msg.get("port") {
        at.note(What::NotAvailable, "the port a request came in on is not known here: any port matches");
    }
    let place = at.node.place;
    let mut form = Form::new(place);
    match msg.map("uri", string_match)?.flatten() {
        None => form.put("prefix", text(place, "/")),
        Some(("exact", at, value)) => form.put("path", text(at, value)),
        Some(("prefix", at, value)) => form.put("prefix", text(at, value)),
        Some((_, at, value)) => form.put("safe_regex", regex(at, value)),
    }
    if let Some(at) = msg.get("ignoreUriCase").filter(|at| at.bool().unwrap_or(false)) {
        form.put("case_sensitive", flag(at.node.place, false));
    }
    let mut headers = Vec::new();
    for (name, header) in [("scheme", ":scheme"), ("method", ":method"), ("authority", ":authority")] {
        if let Some(at) = msg.get(name) {
            headers.push(header_match(&at, header, false)?);
        }
    }
    for (name, inverted) in [("headers", false), ("withoutHeaders", true)] {
        if let Some(at) = msg.get(name) {
            for (entry, value) in at.entries()? {
                headers.push(header_match(&value, &entry.key, inverted)?);
            }
        }
    }
    if !headers.is_empty() {
        form.put("headers", list(place, headers));
    }
    if let Some(at) = msg.get("queryParams") {
        let mut query = Vec::new();
        for (entry, value) in at.entries()? {
            let place = value.node.place;
            let mut one = Form::new(place).with("name", text(place, entry.key.to_string()));
            match string_match(&value)? {
                Some((kind, at, text)) => one.put("string_match", string_form(kind, at, text)),
                None => one.put("present_match", flag(place, true)),
            }
            query.push(one.node());
        }
        form.put("query_parameters", list(place, query));
    }
    Ok((form, labels))
}

/// Kind, place and text of a match; `None` = anything.
fn string_match(at: &At<'_>) -> Result<Option<(&'static str, Place, String)>> {
    let msg = object(*at, &STRING)?;
    for kind in ["exact", "prefix", "regex"] {
        if let Some(at) = msg.get(kind) {
            return Ok(Some((kind, at.node.place, at.text()?)));
        }
    }
    Ok(None)
}

fn regex(place: Place, pattern: String) -> Node<'static> {
    Form::new(place).with("regex", text(place, pattern)).node()
}

fn string_form(kind: &'static str, place: Place, value: String) -> Node<'static> {
    match kind {
        "regex" => Form::new(place).with("safe_regex", regex(place, value)).node(),
        kind => Form::new(place).with(kind, text(place, value)).node(),
    }
}

fn header_match(at: &At<'_>, name: &str, inverted: bool) -> Result<Node<'static>> {
    let place = at.node.place;
    let mut form = Form::new(place).with("name", text(place, name));
    let found = if at.node.is_null() { None } else { string_match(at)? };
    let present = found.is_none();
    match found {
        Some((kind, at, value)) => form.put("string_match", string_form(kind, at, value)),
        None => form.put("present_match", flag(place, true)),
    }
    if inverted {
        form.put("invert_match", flag(place, true));
        if !present {
            form.put("treat_missing_header_as_empty", flag(place, true));
        }
    }
    Ok(form.node())
}

/// Fields of Envoy's `RouteAction`.
pub(super) fn rewrite(at: &At<'_>) -> Result<Vec<(&'static str, Node<'static>)>> {
    let msg = object(*at, &REWRITE)?;
    let mut forms = Vec::new();
    if let Some(uri) = msg.get("uri") {
        let place = uri.node.place;
        forms.push(("prefix_rewrite", text(place, uri.text()?)));
    } else if let Some(at) = msg.get("uriRegexRewrite") {
        let regexes: Msg<'_> = object(at, &REGEX_REWRITE)?;
        let place = at.node.place;
        let pattern = regex(place, regexes.need("match")?.filled()?);
        let substitution = regexes.or("rewrite", String::new(), |text| text.text())?;
        let form = Form::new(place).with("pattern", pattern).with("substitution", text(place, substitution));
        forms.push(("regex_rewrite", form.node()));
    }
    if let Some(at) = msg.get("authority") {
        forms.push(("host_rewrite_literal", text(at.node.place, at.text()?)));
    }
    Ok(forms)
}

/// Envoy's `RedirectAction`.
pub(super) fn redirect(at: &At<'_>) -> Result<Form> {
    let msg = object(*at, &REDIRECT)?;
    let mut form = Form::new(at.node.place);
    for (name, field) in
        [("uri", "path_redirect"), ("authority", "host_redirect"), ("scheme", "scheme_redirect")]
    {
        if let Some(at) = msg.get(name) {
            form.put(field, text(at.node.place, at.text()?));
        }
    }
    if let Some(at) = msg.get("port") {
        form.put("port_redirect", number(at.node.place, at.u32_in(0, 65_535)?));
    }
    if let Some(at) = msg.get("derivePort") {
        at.note(What::NotUsed, "not used here: the port of the target is what the other fields say");
    }
    if let Some(at) = msg.get("redirectCode") {
        let word = match at.u32()? {
            0 | 301 => "MOVED_PERMANENTLY",
            302 => "FOUND",
            303 => "SEE_OTHER",
            307 => "TEMPORARY_REDIRECT",
            308 => "PERMANENT_REDIRECT",
            _ => return Err(at.expected("one of 301, 302, 303, 307, 308")),
        };
        form.put("response_code", text(at.node.place, word));
    }
    Ok(form)
}

/// Envoy's `DirectResponseAction`.
pub(super) fn reply(at: &At<'_>) -> Result<Form> {
    let msg = object(*at, &REPLY)?;
    let status = msg.need("status")?;
    let mut form =
        Form::new(at.node.place).with("status", number(status.node.place, status.u32_in(200, 599)?));
    if let Some(body) = msg.get("body") {
        let place = body.node.place;
        let source = object(body, &BODY)?;
        let value = match (source.get("string"), source.get("bytes")) {
            (Some(at), _) => Form::new(place).with("inline_string", text(place, at.text()?)),
            (None, Some(at)) => Form::new(place).with("inline_bytes", text(place, at.text()?)),
            (None, None) => Form::new(place).with("inline_string", text(place, "")),
        };
        form.put("body", value.node());
    }
    Ok(form)
}
