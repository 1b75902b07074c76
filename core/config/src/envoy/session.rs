//! The stateful_session filter: requests of a session go to the host that they name.

use super::hash_policy::header_name;
use crate::error::Result;
use crate::read::{At, Fields};
use crate::report::What;
use nexthop_engine::spec::{SessionSpec, SessionState};
use std::sync::Arc;
use std::time::Duration;

/// Types of this filter begin like that.
pub(super) const FILTER: &str = "envoy.extensions.filters.http.stateful_session.";

const SESSION: Fields =
    Fields::of("StatefulSession", &["session_state", "strict"]).not_used(&["status_on_error"]);
const PER_ROUTE: Fields = Fields::of("StatefulSessionPerRoute", &["disabled", "stateful_session"])
    .one_of(&[&["disabled", "stateful_session"]]);
const COOKIE_STATE: Fields = Fields::of("CookieBasedSessionState", &["cookie"]);
const COOKIE: Fields = Fields::of("Cookie", &["name", "ttl", "path"]).not_available(&["attributes"]);
const HEADER_STATE: Fields = Fields::of("HeaderBasedSessionState", &["name"]);

/// Reads a `StatefulSession`; `None` = without a state it does nothing.
pub(super) fn session(at: &At<'_>) -> Result<Option<Arc<SessionSpec>>> {
    let msg = at.message(&SESSION)?;
    let strict = msg.or("strict", false, |flag| flag.bool())?;
    let Some(state) = msg.get("session_state") else {
        at.note(What::NotUsed, "not used: it has no `session_state`");
        return Ok(None);
    };
    let state = state.extension(|_, type_name, config| {
        let Some(config) = config else { return Err(state.fail("the field `typed_config` is required")) };
        match type_name {
            "envoy.extensions.http.stateful_session.cookie.v3.CookieBasedSessionState" => {
                cookie(&config).map(Some)
            }
            "envoy.extensions.http.stateful_session.header.v3.HeaderBasedSessionState" => {
                header(&config).map(Some)
            }
            _ => {
                config.note(What::NotAvailable, "known, but not available in this version");
                Ok(None)
            }
        }
    })?;
    Ok(state.map(|state| Arc::new(SessionSpec { strict, state })))
}

fn cookie(at: &At<'_>) -> Result<SessionState> {
    let msg = at.message(&COOKIE_STATE)?;
    let msg = msg.need("cookie")?.message(&COOKIE)?;
    Ok(SessionState::Cookie {
        name: msg.need("name")?.filled()?,
        ttl: msg.or("ttl", Duration::ZERO, |ttl| ttl.duration())?,
        path: msg.or("path", String::new(), |path| path.text())?,
    })
}

fn header(at: &At<'_>) -> Result<SessionState> {
    let msg = at.message(&HEADER_STATE)?;
    Ok(SessionState::Header { name: header_name(&msg.need("name")?)? })
}

/// What a route or virtual host says of the filter in its `typed_per_filter_config`: nothing, off, or a session of its
/// own. Settings of other filters are their own work.
pub(super) fn per_filter(at: &At<'_>) -> Result<Option<Option<Arc<SessionSpec>>>> {
    let mut said = None;
    for (_, config) in at.entries()? {
        let type_name = config.type_name().unwrap_or_default();
        if !type_name.starts_with(FILTER) {
            config.note(What::NotUsed, "not used here: filters are a proxy's own work");
            continue;
        }
        said = Some(config.any(|_, at| {
            let msg = at.message(&PER_ROUTE)?;
            match msg.get("stateful_session") {
                Some(own) => session(&own),
                None => Ok(None),
            }
        })?);
    }
    Ok(said)
}
