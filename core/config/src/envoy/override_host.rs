//! `OverrideHost`: the policy that takes hosts which a request lists.

use super::hash_policy::header_name;
use super::policy::load_balancing_policy;
use crate::error::Result;
use crate::read::{At, Fields};
use nexthop_engine::spec::{OverrideSource, OverrideSpec, PolicySpec};
use std::sync::Arc;

const OVERRIDE: Fields = Fields::of("OverrideHost", &["override_host_sources", "fallback_policy"])
    .not_used(&["selected_host_key"]);
const SOURCE: Fields = Fields::of("OverrideHostSource", &["header", "metadata"]);
const KEY: Fields = Fields::of("MetadataKey", &["key", "path"]);
const SEGMENT: Fields = Fields::of("PathSegment", &["key"]);

/// Reads the policy. Unlike the other messages its rules hold in Envoy, too.
pub(super) fn override_host(at: &At<'_>) -> Result<PolicySpec> {
    let msg = at.message(&OVERRIDE)?;
    let sources = msg.repeated("override_host_sources", |item| source(&item))?;
    if sources.is_empty() {
        let seen = msg.get("override_host_sources");
        return Err(seen
            .as_ref()
            .unwrap_or(at)
            .fail("override_host_sources: at least one source is required"));
    }
    let fallback_at = msg.need("fallback_policy")?;
    let fallback = load_balancing_policy(&fallback_at)?;
    if fallback == PolicySpec::ClusterProvided {
        return Err(
            fallback_at.fail("the fallback has to choose among hosts, which CLUSTER_PROVIDED does not")
        );
    }
    Ok(PolicySpec::OverrideHost(Arc::new(OverrideSpec { sources, fallback })))
}

fn source(at: &At<'_>) -> Result<OverrideSource> {
    let msg = at.message(&SOURCE)?;
    let header = msg.get("header").filter(|header| header.text().map_or(true, |text| !text.is_empty()));
    match (header, msg.get("metadata")) {
        (Some(_), Some(metadata)) => Err(metadata.fail("only one of header and metadata is a source")),
        (None, None) => Err(at.fail("an override source needs one of header and metadata")),
        (Some(header), None) => Ok(OverrideSource::Header(header_name(&header)?)),
        (None, Some(metadata)) => {
            let msg = metadata.message(&KEY)?;
            let path = msg.repeated("path", |segment| segment.message(&SEGMENT)?.need("key")?.filled())?;
            if path.is_empty() {
                return Err(msg.missing("path"));
            }
            Ok(OverrideSource::Metadata(msg.need("key")?.filled()?, path))
        }
    }
}
