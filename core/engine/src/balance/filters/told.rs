//! What an operator is told about stages that found nobody (`spec/gray-and-nacos.md` section 9).

use super::index::{Index, StageOutcome, Walked};
use crate::clock::Time;
use crate::spec::StageRule;
use crate::sync::atomic::Ordering::Relaxed;

/// Of one choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// A stage refused: its number.
    pub(crate) refused: Option<usize>,
    /// Events that are due.
    pub(crate) warnings: Vec<Warning>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// `W-...`.
    pub(crate) code: String,
    /// Name of the stage; empty for what concerns none.
    pub(crate) stage: String,
    /// The request's value, if any.
    pub(crate) value: String,
}

impl Told {
    fn warn(&mut self, code: &str, stage: &str, value: &str) {
        self.warnings.push(Warning {
            code: code.to_owned(),
            stage: stage.to_owned(),
            value: value.to_owned(),
        });
    }
}

/// The code of a stage that found nobody.
pub(super) fn code(rule: &StageRule, name: &str, absent: bool, refused: bool) -> String {
    let upper = || name.to_uppercase().replace('_', "-");
    match rule {
        _ if refused => format!("W-{}-REFUSED", upper()),
        StageRule::AvoidPrevious => "W-ONLY-PREVIOUS-LEFT".into(),
        StageRule::Match(_) if absent => "W-UNTAGGED-FALLBACK".into(),
        _ => format!("W-{}-FALLBACK", upper()),
    }
}

/// Counts what the stages did; what is due as an event. Nothing in the frequent case.
pub(super) fn told(
    index: &Index,
    walked: &Walked,
    values: &[Option<String>],
    now: Time,
) -> Option<Box<Told>> {
    let ordinary = |what: StageOutcome| matches!(what, StageOutcome::Skipped | StageOutcome::Matched);
    let speaks = index.spec.stages.iter().any(|stage| stage.rule == StageRule::CrossCluster);
    let quiet = walked.outcomes.iter().all(|(what, _)| ordinary(*what));
    if quiet && !speaks && !index.hosts.is_empty() {
        return None;
    }
    Some(Box::new(tell(index, walked, values, now)))
}

#[cold]
fn tell(index: &Index, walked: &Walked, values: &[Option<String>], now: Time) -> Told {
    let mut told = Told::default();
    let second = now.0 / 1_000_000_000;
    let outcomes = walked.outcomes.iter().map(|(what, _)| *what);
    for (at, (stage, what)) in index.spec.stages.iter().zip(outcomes).enumerate() {
        let Some(counts) = index.stage_counts(at) else { continue };
        if index.hosts.is_empty() {
            if counts.tells("", second) {
                told.warn("W-NO-INSTANCES", "", "");
            }
            break;
        }
        if stage.rule == StageRule::CrossCluster && counts.tells("", second) {
            told.warn("W-CROSS-CLUSTER", &stage.name, "");
        }
        match what {
            StageOutcome::Skipped | StageOutcome::Matched => continue,
            StageOutcome::Refused => {
                told.refused = Some(at);
                counts.refused.fetch_add(1, Relaxed);
            }
            StageOutcome::FellBack | StageOutcome::StartedOver => {
                counts.fallback.fetch_add(1, Relaxed);
            }
        }
        let value = values.get(at).and_then(Option::as_deref).unwrap_or("");
        let absent = value.is_empty();
        let wanted = if absent { stage.warn_absent } else { stage.warn };
        if wanted && counts.tells(value, second) {
            let refused = what == StageOutcome::Refused;
            told.warn(&code(&stage.rule, &stage.name, absent, refused), &stage.name, value);
        }
    }
    told
}
