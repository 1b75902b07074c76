//! What is in force, told from the documents as they were read.

use super::changes::nearest;
use super::error::Error;
use super::registry::Engine;
use nexthop_engine::Misuse;

/// Every number in force for a cluster or route, and where it came from.
pub(super) fn effective(engine: &Engine, name: &str) -> Result<String, Error> {
    let documents = engine.documents.lock();
    let loaded = documents.in_detail()?;
    let told = nexthop_config::effective(&loaded, name, &documents.overlay);
    drop(documents);
    told.map(|told| told.to_string()).ok_or_else(|| {
        let hint = nearest(name, &engine.core.target_names());
        Error::misuse(Misuse::NotFound, format!("no cluster or route {name:?}{hint}"))
    })
}

/// The load report, field by field.
pub(super) fn load_report(engine: &Engine) -> Result<String, Error> {
    Ok(engine.documents.lock().in_detail()?.report.to_json().to_string())
}
