//! Cases to scripts.

mod compact;
mod facts;
mod gray;
mod live;
mod other;
mod outlier;
mod plan;
mod predicates;
mod sentences;
mod statuses;

pub use live::phases as live_phases;

use crate::judge::Judge;
use crate::script::Script;
use crate::vectors::Case;

/// A case made ready to run: scripts to play and how to judge their traces.
pub struct Job {
    /// One or more variants; each begins with its own `case` command.
    pub scripts: Vec<Script>,
    /// Name of each variant, as in its `case` command.
    pub names: Vec<String>,
    /// Compares traces with what the case expects.
    pub judge: Judge,
}

/// Cases for every language, made ready.
#[derive(Default)]
pub struct Facing {
    /// In the order of their files.
    pub jobs: Vec<(Case, Job)>,
}

/// What a converter gives back: variants of a script, and the judge of their traces.
type Converted = (Vec<Script>, Judge);

/// Where requests come from and arrive, unless a case says otherwise.
const SOURCE: &str = "127.0.0.1:40000";
const LOCAL: &str = "127.0.0.1:10000";

/// Makes a case ready, or says why that is not possible.
pub fn job(case: &Case) -> Result<Job, String> {
    let folder = case.file.split('/').next().unwrap_or("");
    let (scripts, judge) = match (folder, case.file.as_str()) {
        ("envoy-live", _) => live::convert(case)?,
        ("gray", _) => gray::convert(case)?,
        (_, "composite/other_live.json") if case.id.starts_with("previous_priorities") => {
            sentences::priorities(case)?
        }
        (_, "composite/other_live.json") => other::convert(case)?,
        (_, "breakers/retry_live.json") => sentences::failing(case)?,
        (_, "retry/retry_circuit_breaker.json") => sentences::breaker(case)?,
        (_, "retry/headers_and_timeouts_live.json") if !case.given().has("clusters") => {
            sentences::headers(case)?
        }
        (_, "outlier/outcome_mapping.json" | "outlier/panic.json") => outlier::convert(case)?,
        (_, "health/eds_status.json") => statuses::convert(case)?,
        (_, "retry/retry_on_predicates.json") => predicates::convert(case)?,
        (_, "retry/weighted_cluster_refresh.json") => other::weighted(case)?,
        (_, "concurrency/admission_criteria.json" | "concurrency/gradient_behaviour.json") => {
            facts::convert(case)?
        }
        _ if case.file.contains("config") || case.expect().has("error") => facts::convert(case)?,
        _ if case.given().get("clusters").items().iter().any(|cluster| cluster.has("type")) => {
            compact::convert(case)?
        }
        _ => return Err("no converter knows this kind of case".into()),
    };
    let names: Vec<String> = (0..scripts.len()).map(|at| format!("{} /{at}", case.name())).collect();
    let scripts = scripts
        .into_iter()
        .zip(&names)
        .map(|(mut script, name)| {
            script.lines.insert(0, crate::script::line(["case", name]));
            script
        })
        .collect();
    Ok(Job { scripts, names, judge })
}
